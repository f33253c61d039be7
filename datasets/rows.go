package datasets

import (
	"fmt"
	"iter"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// Filter selects rows; the zero Filter selects all.
type Filter struct {
	// Scenarios, when not empty, lists what is read.
	Scenarios []string
}

func (f Filter) holds(scenario string) bool {
	return len(f.Scenarios) == 0 || slices.Contains(f.Scenarios, scenario)
}

// Snapshots yields the selected rows in the order of their Ref, with the attributes of
// the data set's schema. A row is valid until the next step.
func (d *Dataset) Snapshots(f Filter) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		var values []decision.Value
		for i := range d.segments {
			s := &d.segments[i]
			at := positions(s.schema, d.schema)
			for row, err := range s.rows() {
				if err != nil {
					yield(nil, err)
					return
				}
				if !f.holds(row.Scenario) {
					continue
				}
				// The row is the reader's, which may reuse its attributes: lend it ours.
				own := row.Attrs
				values = widen(values[:0], own, at, d.schema.Len())
				row.Attrs = decision.Attrs{Schema: d.schema, Values: values}
				more := yield(row, nil)
				row.Attrs = own
				if !more {
					return
				}
			}
		}
	}
}

// positions returns where a segment's attributes stand in the union.
func positions(s, union *decision.Schema) []int {
	at := make([]int, s.Len())
	for i, f := range s.Fields() {
		at[i] = union.Index(f.Name)
	}
	return at
}

// widen copies a row's values to their places in the union; the rest is null.
func widen(dst []decision.Value, a decision.Attrs, at []int, n int) []decision.Value {
	dst = slices.Grow(dst, n)[:n]
	clear(dst)
	for i, v := range a.Values {
		if i < len(at) {
			dst[at[i]] = v
		}
	}
	return dst
}

// Labels yields the labels of the selected rows in the order of their Ref; rows without
// a label are left out. A label is valid until the next step.
func (d *Dataset) Labels(f Filter) iter.Seq2[*snapshot.Label, error] {
	return func(yield func(*snapshot.Label, error) bool) {
		for i := range d.segments {
			s := &d.segments[i]
			if s.labels == "" {
				continue
			}
			for p, err := range s.pairs() {
				switch {
				case err != nil:
					yield(nil, err)
					return
				case p.label == nil || !f.holds(p.row.Scenario):
				case !yield(p.label, nil):
					return
				}
			}
		}
	}
}

// pair is a snapshot and its label, nil when it has none.
type pair struct {
	row   *snapshot.Snapshot
	label *snapshot.Label
}

// pairs walks a segment and its label file side by side. A label that stands beside
// another decision than its own is corruption.
func (s *segment) pairs() iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		next, stop := func() (*snapshot.Label, error, bool) { return nil, nil, false }, func() {}
		if s.labels != "" {
			next, stop = iter.Pull2(rowsOf(s.labels, (*arrowfile.File).Labels))
		}
		defer stop()
		for row, err := range s.rows() {
			if err != nil {
				yield(pair{}, err)
				return
			}
			l, err, _ := next()
			if err == nil && l != nil && (l.ID != row.ID || l.Ref != row.Ref) {
				err = fmt.Errorf("%s: %w: row %d labels %v, the snapshot is %v", s.labels, arrowfile.ErrCorrupt, row.Ref.Row, l.ID, row.ID)
			}
			if !yield(pair{row, l}, err) || err != nil {
				return
			}
		}
	}
}

// rows yields the rows that the segment had when it was opened: an unsealed one may have
// grown since.
func (s *segment) rows() iter.Seq2[*snapshot.Snapshot, error] {
	all := rowsOf(s.path, (*arrowfile.File).Snapshots)
	return func(yield func(*snapshot.Snapshot, error) bool) {
		n := int64(0)
		for row, err := range all {
			if n++; n > s.meta.Rows || !yield(row, err) {
				return
			}
		}
	}
}

// rowsOf opens a file for the time of the iteration and yields its rows; none for the
// empty path.
func rowsOf[T any](path string, rows func(*arrowfile.File, ...string) iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if path == "" {
			return
		}
		f, err := openFile(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for row, err := range rows(f) {
			if !yield(row, err) {
				return
			}
		}
	}
}
