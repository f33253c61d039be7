package arrowfile

import (
	"testing"

	"github.com/clefbench/clefbench/snapshot"
)

// Rows of one batch that are alike in every column and rows of the next that are not:
// nothing of a row, a block or a batch shows in another, also in memory that an iteration
// before has used.
func TestBlocksAreIndependent(t *testing.T) {
	g := newGen(41)
	mixed := randomRows(g, 7*blockRows)
	for i, s := range mixed {
		if i < 2*blockRows || i > 5*blockRows {
			*s = *mixed[0]
		}
	}
	dir := t.TempDir()
	writeSnapshots(t, dir, Options{BatchRows: 2*blockRows + 1}, mixed)
	var first, second []*snapshot.Snapshot
	for _, path := range segments(t, dir) {
		f := mustOpen(t, path)
		first = append(first, collect(t, f.Snapshots(), cloneSnapshot)...)
		for range f.Snapshots("id") {
			break // gives no memory back: its row may be in use
		}
		second = append(second, collect(t, f.Snapshots(), cloneSnapshot)...)
	}
	diff(t, mixed, withoutRefs(first))
	diff(t, mixed, withoutRefs(second))
}

// The row at which a caller stops stays as it is while others read the file.
func TestTheLastRowOfABreakStays(t *testing.T) {
	g := newGen(42)
	rows := randomRows(g, 3*blockRows)
	dir := t.TempDir()
	writeSnapshots(t, dir, Options{}, rows)
	f := mustOpen(t, segments(t, dir)[0])
	collect(t, f.Snapshots(), cloneSnapshot)
	var kept *snapshot.Snapshot
	for s := range f.Snapshots() {
		kept = s
		break
	}
	collect(t, f.Snapshots(), cloneSnapshot)
	diff(t, rows[:1], withoutRefs([]*snapshot.Snapshot{deepClone(kept)}))
}

// Columns that were not asked for are zero, whatever an iteration before has read.
func TestAProjectionLeavesTheRestAtZero(t *testing.T) {
	dir := t.TempDir()
	rows := randomRows(newGen(43), 3*blockRows)
	writeSnapshots(t, dir, Options{}, rows)
	f := mustOpen(t, segments(t, dir)[0])
	collect(t, f.Snapshots(), cloneSnapshot)
	i := 0
	for s, err := range f.Snapshots("action", "latency_ns") {
		if err != nil {
			t.Fatal(err)
		}
		want := snapshot.Snapshot{Action: rows[i].Action, Latency: rows[i].Latency}
		diff(t, []*snapshot.Snapshot{&want}, withoutRefs([]*snapshot.Snapshot{deepClone(s)}))
		i++
	}
}
