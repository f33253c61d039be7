package scoring

import (
	"cmp"
	"errors"
	"fmt"
	"iter"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// ErrOrder reports outcomes or labels that are not in the order of their snapshots.
var ErrOrder = errors.New("rows out of order")

// ErrMismatch reports outcomes and labels that stand at one place but name different
// decisions: they belong to different data sets.
var ErrMismatch = errors.New("rows belong to different data sets")

// Row is everything about one decision: its label, and each lane's outcome.
type Row struct {
	// Label is nil when there is none.
	Label *snapshot.Label
	// Outcomes runs parallel to the lanes; nil where a lane lacks this decision.
	Outcomes []*snapshot.Outcome
}

// Merge walks labels and lanes side by side, by the place of the snapshot (segment,
// then row), and yields a row for every decision that at least one lane has. Each
// input must be in that order and without repeats (else [ErrOrder]); labels may be nil.
// A row and what it points to are valid until the next step.
func Merge(labels iter.Seq2[*snapshot.Label, error], lanes []iter.Seq2[*snapshot.Outcome, error]) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		m := merger{row: Row{Outcomes: make([]*snapshot.Outcome, len(lanes))}}
		defer m.stop()
		if labels != nil {
			m.labels = open("labels", labels, labelKey)
		}
		for i, l := range lanes {
			m.lanes = append(m.lanes, open(fmt.Sprintf("lane %d", i+1), l, outcomeKey))
		}
		m.run(yield)
	}
}

func labelKey(l *snapshot.Label) (snapshot.Ref, decision.ID)     { return l.Ref, l.ID }
func outcomeKey(o *snapshot.Outcome) (snapshot.Ref, decision.ID) { return o.Ref, o.ID }

func compareRefs(a, b snapshot.Ref) int {
	if c := cmp.Compare(a.Segment, b.Segment); c != 0 {
		return c
	}
	return cmp.Compare(a.Row, b.Row)
}

// stream is one input with its next row looked at.
type stream[T any] struct {
	name string
	next func() (T, error, bool)
	stop func()
	key  func(T) (snapshot.Ref, decision.ID)

	head T
	ref  snapshot.Ref
	id   decision.ID
	any  bool // at least one row was read
	done bool
}

func open[T any](name string, seq iter.Seq2[T, error], key func(T) (snapshot.Ref, decision.ID)) *stream[T] {
	next, stop := iter.Pull2(seq)
	return &stream[T]{name: name, next: next, stop: stop, key: key}
}

func (s *stream[T]) advance() error {
	head, err, ok := s.next()
	if !ok {
		s.done = true
		return nil
	}
	if err != nil {
		s.done = true
		return fmt.Errorf("%s: %w", s.name, err)
	}
	ref, id := s.key(head)
	if s.any && compareRefs(ref, s.ref) <= 0 {
		s.done = true
		return fmt.Errorf("%s: %s row %d after %s row %d: %w", s.name, ref.Segment, ref.Row, s.ref.Segment, s.ref.Row, ErrOrder)
	}
	s.head, s.ref, s.id, s.any = head, ref, id, true
	return nil
}

type merger struct {
	labels *stream[*snapshot.Label]
	lanes  []*stream[*snapshot.Outcome]
	row    Row
}

func (m *merger) stop() {
	if m.labels != nil {
		m.labels.stop()
	}
	for _, l := range m.lanes {
		l.stop()
	}
}

func (m *merger) run(yield func(*Row, error) bool) {
	for _, l := range m.lanes {
		if err := l.advance(); err != nil {
			yield(nil, err)
			return
		}
	}
	if m.labels != nil {
		if err := m.labels.advance(); err != nil {
			yield(nil, err)
			return
		}
	}
	for {
		first := m.first()
		if first == nil {
			return
		}
		if err := m.fill(first.ref, first.id); err != nil {
			yield(nil, err)
			return
		}
		if !yield(&m.row, nil) {
			return
		}
		if err := m.step(first.ref); err != nil {
			yield(nil, err)
			return
		}
	}
}

// first returns a lane with the lowest place, or nil at the end.
func (m *merger) first() *stream[*snapshot.Outcome] {
	var first *stream[*snapshot.Outcome]
	for _, l := range m.lanes {
		if !l.done && (first == nil || compareRefs(l.ref, first.ref) < 0) {
			first = l
		}
	}
	return first
}

// fill sets the row of a place, skipping labels of decisions that no lane has.
func (m *merger) fill(ref snapshot.Ref, id decision.ID) error {
	for i, l := range m.lanes {
		m.row.Outcomes[i] = nil
		if l.done || l.ref != ref {
			continue
		}
		if l.id != id {
			return mismatch(l.name, ref, l.id, id)
		}
		m.row.Outcomes[i] = l.head
	}
	m.row.Label = nil
	l := m.labels
	for l != nil && !l.done && compareRefs(l.ref, ref) < 0 {
		if err := l.advance(); err != nil {
			return err
		}
	}
	if l != nil && !l.done && l.ref == ref {
		if l.id != id {
			return mismatch(l.name, ref, l.id, id)
		}
		m.row.Label = l.head
	}
	return nil
}

func mismatch(name string, ref snapshot.Ref, got, want decision.ID) error {
	return fmt.Errorf("%s: %s row %d is decision %v, elsewhere %v: %w", name, ref.Segment, ref.Row, got, want, ErrMismatch)
}

// step advances every lane that stood at ref; ref is a copy, the heads change.
func (m *merger) step(ref snapshot.Ref) error {
	for _, l := range m.lanes {
		if !l.done && l.ref == ref {
			if err := l.advance(); err != nil {
				return err
			}
		}
	}
	return nil
}
