package datasets

import (
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// A recording that goes on while it is read seals its segment at any moment: after the
// directory was listed, or after the data set was opened.
func TestSealingWhileReading(t *testing.T) {
	dir := t.TempDir()
	s := schema(t, decision.Field{Name: "path", Type: decision.String})
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if err := w.Append(row(n, s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(snapshot.Ledger{}); err != nil {
		t.Fatal(err)
	}
	d := opened(t, dir)
	listed, err := find([]string{dir})
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	if err := w.Append(row(4, s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 5, Written: 5}); err != nil {
		t.Fatal(err)
	}

	n := 0
	for _, err := range d.Snapshots(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d rows of the 4 that there were on opening", n)
	}
	late := &Dataset{whole: true}
	if err := late.add(listed[0]); err != nil {
		t.Fatal(err)
	}
	if late.rows() != 5 || !late.whole || len(late.warnings) != 0 {
		t.Errorf("%d rows, whole %v, warnings %v: it is sealed by now", late.rows(), late.whole, late.warnings)
	}
}
