package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// fragments records boots of short segments and batches, with losses, two attribute lists,
// two capture lists, and labels of actions that come one after the other.
func fragments(t testing.TB, boots int) string {
	t.Helper()
	dir := t.TempDir()
	schemas := []*decision.Schema{schema(t, decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "local.n", Type: decision.Int}),
		schema(t, decision.Field{Name: "metrics.x", Type: decision.Double})}
	n := 0
	for b := range boots {
		w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: fmt.Sprintf("boot%d", b), BatchRows: 3, SegmentBytes: 40_000,
			CaptureDigest: strings.Repeat(fmt.Sprint(b/2), 64)})
		if err != nil {
			t.Fatal(err)
		}
		total := snapshot.Ledger{Requests: &snapshot.Counts{}}
		for i := range 60 {
			s := row(n, schemas[i/40])
			s.Action = fmt.Sprintf("action-%d", n/17)
			if err := w.Append(s); err != nil {
				t.Fatal(err)
			}
			n++
			lost := snapshot.Ledger{}
			if i%10 == 9 {
				lost = snapshot.Ledger{Offered: 3, SampledOut: 2, Requests: &snapshot.Counts{Offered: 2, SampledOut: 1}}
				lost.Drop("queue-full", 1)
				lost.Requests.Drop("queue-full", 1)
				total.Add(lost)
			}
			if err := w.Flush(lost); err != nil {
				t.Fatal(err)
			}
		}
		total.Add(snapshot.Ledger{Offered: 60, Written: 60, Requests: &snapshot.Counts{Offered: 30, Written: 30}})
		if err := w.Close(snapshot.Ledger{}, total); err != nil {
			t.Fatal(err)
		}
	}
	label(t, dir)
	if err := StoreArtefact(dir, []byte("rules: []\n")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// placeless takes a row's place out of an exported line.
var placeless = regexp.MustCompile(`"segment":"[^"]*","row":[0-9]+,?`)

func exportedRows(t testing.TB, dir string) string {
	t.Helper()
	return placeless.ReplaceAllString(exported(t, opened(t, dir), ExportJSONL, Filter{}), "")
}

func compactOptions() CompactOptions {
	return CompactOptions{Ran: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), By: "me", Tool: "test"}
}

func compact(t testing.TB, dir string) (out string, done *Compaction) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	done, err := Compact(dir, out, compactOptions())
	if err != nil {
		t.Fatal(err)
	}
	return out, done
}

func TestCompactLosesNothing(t *testing.T) {
	dir := fragments(t, 3)
	before := tree(t, dir)
	out, done := compact(t, dir)
	if !same(before, tree(t, dir)) {
		t.Error("the old data set was changed")
	}
	if exportedRows(t, dir) != exportedRows(t, out) {
		t.Error("the rows or their labels differ")
	}
	a, b := verified(t, dir), verified(t, out)
	if len(b.Findings) > 0 || !sameLedger(a.Ledger, b.Ledger) || b.Ledger.Requests == nil || b.Ledger.Requests.Written != 90 || b.Ledger.Dropped["queue-full"] != 18 {
		t.Errorf("%+v: %s, before %s", b.Findings, ledgerText(b.Ledger), ledgerText(a.Ledger))
	}
	// Two attribute lists in each of two capture lists, of which one is that of two boots:
	// lists that alternate cannot be merged.
	if a.Segments < 20 || b.Segments != 6 || done.After.Bytes*2 > done.Before.Bytes || done.Before.Segments != a.Segments || done.After.Segments != 6 {
		t.Errorf("%d segments became %d: %+v", a.Segments, b.Segments, done)
	}
	info, err := opened(t, out).Info()
	if err != nil || info.CaptureLists != 4 || !info.Intact || info.Labelled == 0 {
		t.Errorf("%v: %+v", err, info)
	}
	m, _, err := readManifest(out)
	old, _, err2 := readManifest(dir)
	if err != nil || err2 != nil || len(m.Labels) == 0 || m.Tasks["fraud"].Baseline != old.Tasks["fraud"].Baseline {
		t.Errorf("%v %v: %+v", err, err2, m)
	}
	log, err := ReadCompactions(out)
	if err != nil || len(log) != 1 || log[0].Source.Digest != opened(t, dir).digest || log[0].By != "me" || log[0].Source.Heads[0].Length == 0 {
		t.Errorf("%v: %+v", err, log)
	}
	if a.Artefacts != 1 || b.Artefacts != 1 {
		t.Errorf("%d artefacts, %d before", b.Artefacts, a.Artefacts)
	}
}

// The new segments refer to what they were made of, and verify holds them to it.
func TestCompactBeginsAChain(t *testing.T) {
	dir := fragments(t, 2)
	out, _ := compact(t, dir)
	d := opened(t, out)
	if l := d.segments[0].meta.Previous; l == nil || l.Replaces != opened(t, dir).digest || l.Segment != "" {
		t.Errorf("%+v", l)
	}
	for i := 1; i < len(d.segments); i++ {
		if l := d.segments[i].meta.Previous; l == nil || l.Segment != d.segments[i-1].name() {
			t.Errorf("segment %d: %+v", i, l)
		}
	}
	remove(t, filepath.Join(out, RetentionName))
	if got := faults(verified(t, out)); len(got) != 1 || !strings.Contains(got[0], "of which retention.json says nothing") {
		t.Errorf("%q", got)
	}
}

// Compacting again changes nothing but the record; the same compaction gives the same bytes.
func TestCompactTwice(t *testing.T) {
	dir := fragments(t, 2)
	one, first := compact(t, dir)
	again, _ := compact(t, dir)
	if !same(tree(t, one), tree(t, again)) {
		t.Error("the same compaction gave other bytes")
	}
	two, second := compact(t, one)
	// Labels of columns that gave up their dictionary are known to the second one only.
	if second.After.Bytes > first.After.Bytes*105/100 || second.After.Segments != first.After.Segments || exportedRows(t, dir) != exportedRows(t, two) {
		t.Errorf("%+v, then %+v", first, second)
	}
	if log, err := ReadCompactions(two); err != nil || len(log) != 2 {
		t.Errorf("%v: %+v", err, log)
	}
}

// Retention and compaction go in any order; each record stays, and the last one lists the
// label files where dataset.yaml does not.
func TestCompactAndRetain(t *testing.T) {
	dir := traffic(t, 300)
	thin := filepath.Join(t.TempDir(), "thin")
	retain(t, dir, thin, policy())
	small, _ := compact(t, thin)
	if exportedRows(t, thin) != exportedRows(t, small) {
		t.Error("the rows differ")
	}
	again := filepath.Join(t.TempDir(), "again")
	o := policy()
	o.Now = o.Now.Add(30 * 24 * time.Hour)
	retain(t, small, again, o)
	for path, n := range map[string][2]int{thin: {1, 0}, small: {1, 1}, again: {2, 1}} {
		retentions, err := ReadRetentions(path)
		compactions, err2 := ReadCompactions(path)
		if err != nil || err2 != nil || len(retentions) != n[0] || len(compactions) != n[1] {
			t.Errorf("%s: %v %v %d %d", path, err, err2, len(retentions), len(compactions))
		}
		v := verified(t, path)
		if v.Err() != nil || v.Labels == 0 || len(v.Findings) > 0 {
			t.Errorf("%s: %+v", path, v.Findings)
		}
	}
	for name := range verifiedLabels(t, small) {
		flip(t, filepath.Join(small, name))
		if v := verified(t, small); v.Err() == nil {
			t.Error("a damaged label file passes")
		}
	}
}

func verifiedLabels(t *testing.T, dir string) map[string]string {
	t.Helper()
	log, err := ReadCompactions(dir)
	if err != nil || len(log[len(log)-1].Labels) == 0 {
		t.Fatalf("%v: %+v", err, log)
	}
	return log[len(log)-1].Labels
}

// A directory without dataset.yaml and labels, and one with losses alone, stay so.
func TestCompactOfBareSegments(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "boot1", 0, 6, func(int) *decision.Schema { return nil })
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot2"})
	if err != nil {
		t.Fatal(err)
	}
	lost := snapshot.Ledger{Offered: 2, SampledOut: 2}
	if err := w.Close(lost, lost); err != nil {
		t.Fatal(err)
	}
	out, _ := compact(t, dir)
	if _, err := os.Stat(filepath.Join(out, ManifestName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dataset.yaml: %v", err)
	}
	a, b := verified(t, dir), verified(t, out)
	if !sameLedger(a.Ledger, b.Ledger) || b.Err() != nil || b.Ledger.SampledOut != 5 || b.Ledger.Requests != nil {
		t.Errorf("%s, before %s: %v", ledgerText(b.Ledger), ledgerText(a.Ledger), b.Err())
	}
}

func TestCompactRefuses(t *testing.T) {
	dir, root := fragments(t, 1), t.TempDir()
	try := func(out string, want error) {
		t.Helper()
		if _, err := Compact(dir, out, compactOptions()); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	out := filepath.Join(root, "out")
	try(dir, fs.ErrExist)
	try(filepath.Join(dir, "new"), ErrPlace)
	o := compactOptions()
	o.Level = "lowest"
	if _, err := Compact(dir, out, o); err == nil {
		t.Error("an unknown level")
	}
	open := filepath.Join(dir, "host-boot-00000009.arrow.open")
	write(t, open, "")
	try(out, arrowfile.ErrUnsealed)
	remove(t, open)
	// Damage is not made to look sound: a segment that is gone in the middle, a label file
	// that is not the listed one, an artefact.
	segs := segmentsOf(t, dir)
	hidden := segs[1] + ".x"
	if err := os.Rename(segs[1], hidden); err != nil {
		t.Fatal(err)
	}
	try(out, arrowfile.ErrCorrupt)
	if err := os.Rename(hidden, segs[1]); err != nil {
		t.Fatal(err)
	}
	if err := WriteManifest(dir, &Manifest{Labels: map[string]string{filepath.Base(labelsOf(segs[0])): strings.Repeat("0", 64)}, Tasks: map[string]scoring.Task{}}); err != nil {
		t.Fatal(err)
	}
	try(out, arrowfile.ErrCorrupt)
	flip(t, segs[0])
	try(out, arrowfile.ErrCorrupt)
}
