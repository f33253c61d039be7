package arrowfile

import (
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// options compares rows exactly: NaN equals itself, nil differs from empty, attributes by
// bits and schemas by their fields.
func options() []cmp.Option {
	return []cmp.Option{
		cmpopts.EquateNaNs(),
		cmp.Comparer(func(a, b decision.Value) bool { return a == b }),
		cmp.Comparer(func(a, b *decision.Schema) bool { return slices.Equal(a.Fields(), b.Fields()) }),
	}
}

func diff[T any](t *testing.T, want, got []T) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return // much faster than cmp
	}
	if d := cmp.Diff(want, got, options()...); d != "" {
		t.Fatalf("rows differ (-want +got):\n%.3000s", d)
	}
}

func collect[R any](t *testing.T, rows iter.Seq2[*R, error], clone func(*R) *R) []*R {
	t.Helper()
	var out []*R
	for r, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			r = clone(r)
		}
		out = append(out, r)
	}
	return out
}

func cloneSnapshot(s *snapshot.Snapshot) *snapshot.Snapshot { return deepClone(s) }

// deepClone keeps the difference between nil and empty, which Clone does not promise.
func deepClone(s *snapshot.Snapshot) *snapshot.Snapshot {
	c := *s
	c.Attrs.Values = slices.Clone(s.Attrs.Values)
	c.Input, c.Output = slices.Clone(s.Input), slices.Clone(s.Output)
	c.Candidates, c.Features, c.Redacted = slices.Clone(s.Candidates), slices.Clone(s.Features), slices.Clone(s.Redacted)
	return &c
}

func cloneOutcome(o *snapshot.Outcome) *snapshot.Outcome {
	c := *o
	c.Candidates, c.Missing = slices.Clone(o.Candidates), slices.Clone(o.Missing)
	return &c
}

func cloneLabel(l *snapshot.Label) *snapshot.Label {
	c := *l
	c.Utilities = slices.Clone(l.Utilities)
	return &c
}

func mustOpen(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// segments returns the sealed files of a directory in their order.
func segments(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Ext))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// readDir reads all rows of the sealed segments of a directory.
func readDir(t *testing.T, dir string) []*snapshot.Snapshot {
	t.Helper()
	var out []*snapshot.Snapshot
	for _, p := range segments(t, dir) {
		out = append(out, collect(t, mustOpen(t, p).Snapshots(), cloneSnapshot)...)
	}
	return out
}

// totalOf is the ledger of a recorder that lost nothing.
func totalOf(n int) snapshot.Ledger { return snapshot.Ledger{Offered: uint64(n), Written: uint64(n)} }

func writeSnapshots(t *testing.T, dir string, opts Options, rows []*snapshot.Snapshot) {
	t.Helper()
	w, err := Create(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(len(rows))); err != nil {
		t.Fatal(err)
	}
	if w.Watermark() != uint64(len(rows)) {
		t.Fatalf("watermark %d after %d rows", w.Watermark(), len(rows))
	}
}

func randomRows(g *gen, n int) []*snapshot.Snapshot {
	rows := make([]*snapshot.Snapshot, n)
	for i := range rows {
		rows[i] = g.snapshot()
	}
	return rows
}

// place sets the Refs that a reader sets, segment by segment.
func withoutRefs(rows []*snapshot.Snapshot) []*snapshot.Snapshot {
	for _, r := range rows {
		r.Ref = snapshot.Ref{}
	}
	return rows
}

func TestSnapshotsRoundTrip(t *testing.T) {
	for seed, opts := range []Options{{}, {BatchRows: 1}, {BatchRows: 7}, {BatchRows: 64}, {BatchBytes: 2000}} {
		g := newGen(uint64(seed))
		g.nan = seed == 0
		rows := randomRows(g, 300)
		dir := t.TempDir()
		writeSnapshots(t, dir, opts, rows)
		diff(t, rows, withoutRefs(readDir(t, dir)))
	}
}

func TestRefsNameSegmentAndRow(t *testing.T) {
	g := newGen(3)
	dir := t.TempDir()
	writeSnapshots(t, dir, Options{Host: "h", Boot: "b", BatchRows: 10}, randomRows(g, 25))
	paths := segments(t, dir)
	if len(paths) == 0 || filepath.Base(paths[0]) != "h-b-00000001.arrow" {
		t.Fatalf("segments %v", paths)
	}
	for _, p := range paths {
		row := int64(0)
		for s, err := range mustOpen(t, p).Snapshots("id") {
			if err != nil {
				t.Fatal(err)
			}
			if want := (snapshot.Ref{Segment: SegmentOf(p), Row: row}); s.Ref != want {
				t.Fatalf("ref %v, want %v", s.Ref, want)
			}
			row++
		}
	}
}

func TestOutcomesRoundTrip(t *testing.T) {
	g := newGen(4)
	path := filepath.Join(t.TempDir(), "lane.arrow")
	w, err := CreateOutcomes(path, Options{BatchRows: 50})
	if err != nil {
		t.Fatal(err)
	}
	var want []*snapshot.Outcome
	for i := range 220 {
		o := g.outcome(i)
		want = append(want, o)
		if err := w.Append(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	diff(t, want, collect(t, mustOpen(t, path).Outcomes(), cloneOutcome))
	if _, err := os.Stat(path + OpenExt); !os.IsNotExist(err) {
		t.Errorf("the open file is still there: %v", err)
	}
}

func TestLabelsRoundTrip(t *testing.T) {
	g := newGen(5)
	path := filepath.Join(t.TempDir(), "labels.arrow")
	w, err := CreateLabels(path, Options{BatchRows: 50})
	if err != nil {
		t.Fatal(err)
	}
	var want []*snapshot.Label
	for i := range 220 {
		l := g.truth(i)
		want = append(want, l)
		if err := w.Append(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	diff(t, want, collect(t, mustOpen(t, path).Labels(), cloneLabel))
}
