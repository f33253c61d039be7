package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func schema(t testing.TB, fields ...decision.Field) *decision.Schema {
	t.Helper()
	s, err := decision.NewSchema(fields...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// row is snapshot number n: requests have two rows each, scenarios alternate by request.
func row(n int, s *decision.Schema) *snapshot.Snapshot {
	id := func(kind byte, n int) (id decision.ID) {
		id[0] = kind
		binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
		return id
	}
	out := &snapshot.Snapshot{
		ID: id(1, n), RequestID: id(2, n/2), SourceID: fmt.Sprintf("row/%d", n),
		Status: decision.OK, Action: []string{"allow", "block"}[n%2], Scenario: []string{"abuse", "fraud"}[n/2%2],
		Time: time.Unix(1700000000+int64(n), 0).UTC(), KeepProb: 1, Backend: "incumbent",
		Artefact: decision.Artefact{StrategyVersion: "v1", StrategyDigest: [32]byte{7}},
		Attrs:    decision.Attrs{Schema: s},
	}
	for _, f := range s.Fields() {
		switch f.Type {
		case decision.Int:
			out.Attrs.Values = append(out.Attrs.Values, decision.IntValue(int64(n)))
		case decision.Double:
			out.Attrs.Values = append(out.Attrs.Values, decision.DoubleValue(float64(n)/2))
		default:
			out.Attrs.Values = append(out.Attrs.Values, decision.StringValue(fmt.Sprintf("%s-%d", f.Name, n)))
		}
	}
	return out
}

// record writes rows from..to-1 as one recorder's segments: the schema of a row is
// chosen by pick, and a change of it starts a new segment.
func record(t testing.TB, dir, boot string, from, to int, pick func(n int) *decision.Schema) {
	t.Helper()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: boot})
	if err != nil {
		t.Fatal(err)
	}
	for n := from; n < to; n++ {
		if err := w.Append(row(n, pick(n))); err != nil {
			t.Fatal(err)
		}
	}
	// Offered counts all; the sampled-out rows are part of what was lost.
	lost := snapshot.Ledger{Offered: 3, SampledOut: 3}
	total := snapshot.Ledger{Offered: uint64(to-from) + 3, Written: uint64(to - from), SampledOut: 3}
	if err := w.Close(lost, total); err != nil {
		t.Fatal(err)
	}
}

// two returns a data set of two segments whose schemas overlap: 20 rows, 10 requests.
func two(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	a := schema(t, decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "local.n", Type: decision.Int})
	b := schema(t, decision.Field{Name: "metrics.x", Type: decision.Double}, decision.Field{Name: "path", Type: decision.String})
	record(t, dir, "boot1", 0, 20, func(n int) *decision.Schema {
		if n < 12 {
			return a
		}
		return b
	})
	return dir
}

func segmentsOf(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, labelExt) })
}

func opened(t testing.TB, patterns ...string) *Dataset {
	t.Helper()
	d, err := Open(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestOpenUnitesSegments(t *testing.T) {
	dir := two(t)
	if n := len(segmentsOf(t, dir)); n != 2 {
		t.Fatalf("%d segments, want 2", n)
	}
	d := opened(t, dir)
	var names []string
	for _, f := range d.Schema().Fields() {
		names = append(names, f.Name)
	}
	if want := []string{"path", "local.n", "metrics.x"}; !slices.Equal(names, want) {
		t.Errorf("schema %q, want %q", names, want)
	}
	n := 0
	for s, err := range d.Snapshots(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.SourceID != fmt.Sprintf("row/%d", n) || s.Attrs.Schema != d.Schema() {
			t.Fatalf("row %d is %s", n, s.SourceID)
		}
		if got := s.Attrs.Get("path").Str(); got != fmt.Sprintf("path-%d", n) {
			t.Errorf("row %d: path %q", n, got)
		}
		if first := n < 12; s.Attrs.Get("local.n").IsNull() == first || s.Attrs.Get("metrics.x").IsNull() != first {
			t.Errorf("row %d: %v", n, s.Attrs.Values)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d rows, want 20", n)
	}
	if len(d.Warnings()) > 0 {
		t.Errorf("warnings: %v", d.Warnings())
	}
}

// A directory, its files one by one, and a glob that also takes in the label files are
// the same data set.
func TestOpenPatterns(t *testing.T) {
	dir := two(t)
	label(t, dir)
	want := opened(t, dir).digest
	segs := segmentsOf(t, dir)
	for _, patterns := range [][]string{{segs[1], segs[0]}, {filepath.Join(dir, "*.arrow")}, {dir, dir, segs[0]}, {dir + "/."}} {
		if d := opened(t, patterns...); d.digest != want || d.rows() != 20 {
			t.Errorf("%q: digest %s, %d rows", patterns, d.digest, d.rows())
		}
	}
	if d := opened(t, segs[0]); d.digest == want || d.rows() != 12 {
		t.Errorf("one segment: %d rows, digest %s", d.rows(), d.digest)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := two(t)
	segs := segmentsOf(t, dir)
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "[")); err == nil {
		t.Error("a malformed glob is no error")
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	other := t.TempDir()
	copyFile(t, segs[0], filepath.Join(other, filepath.Base(segs[0])))
	if _, err := Open(dir, other); err == nil || !strings.Contains(err.Error(), "stands twice") {
		t.Errorf("the same segment in two directories: %v", err)
	}
	clash := t.TempDir()
	record(t, clash, "boot2", 0, 2, func(int) *decision.Schema {
		return schema(t, decision.Field{Name: "path", Type: decision.Int})
	})
	if _, err := Open(dir, clash); err == nil || !strings.Contains(err.Error(), `attribute "path" is`) {
		t.Errorf("two types: %v", err)
	}
	var ps document.Problems
	write(t, filepath.Join(other, ManifestName), "version: 1\nnmae: x\n")
	if _, err := Open(other); !errors.As(err, &ps) {
		t.Errorf("malformed dataset.yaml: %v", err)
	}
}

// No byte of a segment can change unnoticed.
func TestOpenRefusesCorruptSegments(t *testing.T) {
	dir := two(t)
	path := segmentsOf(t, dir)[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(data); at += len(data)/40 + 1 {
		bad := slices.Clone(data)
		bad[at] ^= 0x10
		write(t, path, string(bad))
		if _, err := Open(dir); !errors.Is(err, arrowfile.ErrCorrupt) && !errors.Is(err, arrowfile.ErrSchema) && !errors.Is(err, arrowfile.ErrVersion) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

func TestFilter(t *testing.T) {
	dir := two(t)
	label(t, dir)
	d := opened(t, dir)
	f := Filter{Scenarios: []string{"fraud"}}
	rows, labels := 0, 0
	for s, err := range d.Snapshots(f) {
		if err != nil || s.Scenario != "fraud" {
			t.Fatalf("%v %v", s, err)
		}
		rows++
	}
	for l, err := range d.Labels(f) {
		if err != nil || l.Source != "fraud" {
			t.Fatalf("%v %v", l, err)
		}
		labels++
	}
	if rows != 10 || labels != 6 {
		t.Errorf("%d rows, %d labels, want 10 and 6", rows, labels)
	}
	for range d.Snapshots(Filter{}) {
		break // an iteration may be left early
	}
	for range d.Labels(Filter{}) {
		break
	}
}

// What a writer left unsealed is read up to its last complete batch, with a warning.
func TestOpenReadsUnsealedSegments(t *testing.T) {
	dir := two(t)
	s := schema(t, decision.Field{Name: "path", Type: decision.String})
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot2"})
	if err != nil {
		t.Fatal(err)
	}
	for n := 20; n < 24; n++ {
		if err := w.Append(row(n, s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(snapshot.Ledger{}); err != nil {
		t.Fatal(err)
	}
	d := opened(t, dir)
	if d.rows() != 24 || len(d.Warnings()) != 1 || d.Warnings()[0].Code != "unsealed" {
		t.Errorf("%d rows, warnings %v", d.rows(), d.Warnings())
	}
	// The writer goes on: what was opened stays as it was.
	if err := errors.Join(w.Append(row(24, s)), w.Flush(snapshot.Ledger{})); err != nil {
		t.Fatal(err)
	}
	info, err := d.Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Snapshots != 24 || info.Intact {
		t.Errorf("%d rows, intact %v", info.Snapshots, info.Intact)
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 5, Written: 5}); err != nil {
		t.Fatal(err)
	}
	if d := opened(t, dir); d.rows() != 25 || len(d.Warnings()) != 0 {
		t.Errorf("after sealing %d rows, warnings %v", d.rows(), d.Warnings())
	}
	write(t, filepath.Join(dir, "host-boot3-00000001.arrow.open"), "ARROW1")
	if d := opened(t, dir); d.rows() != 25 || len(d.Warnings()) != 1 {
		t.Errorf("with a torn head %d rows, warnings %v", d.rows(), d.Warnings())
	}
}

func TestOpenWarnsOfGaps(t *testing.T) {
	dir := t.TempDir()
	a := schema(t, decision.Field{Name: "a", Type: decision.Int})
	b := schema(t, decision.Field{Name: "b", Type: decision.Int})
	record(t, dir, "boot1", 0, 12, func(n int) *decision.Schema {
		if n/4 == 1 {
			return b
		}
		return a
	})
	segs := segmentsOf(t, dir)
	if len(segs) != 3 {
		t.Fatalf("%d segments, want 3", len(segs))
	}
	if err := os.Remove(segs[1]); err != nil {
		t.Fatal(err)
	}
	d := opened(t, dir)
	if len(d.Warnings()) != 1 || d.Warnings()[0].Code != "gap" {
		t.Errorf("warnings %v", d.Warnings())
	}
}

func TestOpenMergesManifests(t *testing.T) {
	a, b := two(t), t.TempDir()
	record(t, b, "boot2", 20, 24, func(int) *decision.Schema { return nil })
	task := func(baseline float64) scoring.Task {
		x := scoring.NewTask()
		x.Candidates, x.Baseline, x.BaselineAction, x.Ceiling = []string{"allow", "block"}, scoring.Number(baseline), "allow", 0.9
		return x
	}
	save := func(dir, preset string, x scoring.Task) {
		t.Helper()
		if err := WriteManifest(dir, &Manifest{Name: dir[len(dir)-3:], Preset: preset, Tasks: map[string]scoring.Task{"fraud": x}}); err != nil {
			t.Fatal(err)
		}
	}
	save(a, "fraud", task(0.5))
	save(b, "fraud", task(0.5))
	d := opened(t, a, b)
	if got := d.Tasks()["fraud"]; got.Baseline != 0.5 || d.Preset() != "fraud" || len(d.Warnings()) != 0 {
		t.Errorf("the same task twice: %+v, preset %q, %v", got, d.Preset(), d.Warnings())
	}
	save(b, "waf", task(0.7))
	d = opened(t, a, b)
	if got := d.Tasks()["fraud"]; !math.IsNaN(float64(got.Baseline)) || got.Ceiling != 0.9 || len(d.Warnings()) != 2 {
		t.Errorf("other anchors: %+v, %v", got, d.Warnings())
	}
	other := task(0.5)
	other.Candidates = []string{"allow"}
	save(b, "fraud", other)
	if _, err := Open(a, b); err == nil || !strings.Contains(err.Error(), `scenario "fraud"`) {
		t.Errorf("other candidates: %v", err)
	}
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(data))
}
