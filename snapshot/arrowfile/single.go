package arrowfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clefbench/clefbench/snapshot"
)

// single writes one file of rows. An error is final: the file keeps its .open name.
type single[R any] struct {
	opts  Options
	path  string
	kind  Kind
	enc   *encoder
	batch rowBatch[R]
	seg   *segment
	err   error
}

func newSingle[R any](path string, kind Kind, opts Options, fields []field[R]) (*single[R], error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(path, Ext) {
		return nil, fmt.Errorf("%s: the name must end in %s", path, Ext)
	}
	enc, err := newEncoder(o.Level)
	if err != nil {
		return nil, err
	}
	s := &single[R]{opts: o, path: path, kind: kind, enc: enc}
	s.batch.init(seedOf(nil), fields)
	if s.seg, err = newSegment(&s.opts, enc, segmentHead{path: path, kind: kind}, &s.batch.columnSet); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *single[R]) append(r *R, size int) error {
	if s.err != nil {
		return s.err
	}
	if err := tooLarge(size); err != nil {
		return err
	}
	if s.batch.full(&s.opts, size) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.batch.add(r, size)
	return nil
}

func (s *single[R]) flush() error {
	if s.err == nil && s.batch.n > 0 {
		if s.err = s.seg.write(&s.batch.columnSet, s.batch.pending(snapshot.Ledger{}, nil)); s.err == nil {
			s.batch.clear()
			s.err = s.seg.syncIfDue(s.opts.Now())
		}
	}
	return s.err
}

func (s *single[R]) close() error {
	if errors.Is(s.err, ErrClosed) {
		return nil
	}
	if s.err != nil {
		if s.seg != nil {
			s.err = errors.Join(s.err, s.seg.file.Close())
			s.seg = nil
		}
		return s.err
	}
	if err := s.flush(); err != nil {
		return s.close()
	}
	err := s.seg.seal(segmentInfo{})
	s.seg, s.err = nil, ErrClosed
	if err != nil {
		s.err = err
	}
	return err
}

// OutcomeWriter writes the outcomes of one lane to one file. It is not safe for
// concurrent use. An error is final, and returned again by every later call.
type OutcomeWriter struct{ *single[snapshot.Outcome] }

// CreateOutcomes makes the file, under path with .open appended until it is closed; path
// ends in .arrow.
func CreateOutcomes(path string, opts Options) (*OutcomeWriter, error) {
	s, err := newSingle(path, KindOutcome, opts, outcomeFields())
	if err != nil {
		return nil, err
	}
	return &OutcomeWriter{s}, nil
}

// Append takes a copy of one outcome; one that is not valid is refused with an error that
// wraps [snapshot.ErrInvalid].
func (w *OutcomeWriter) Append(o *snapshot.Outcome) error {
	if err := o.Validate(); err != nil {
		return err
	}
	return w.append(o, outcomeBytes(o))
}

// Close writes the pending rows and seals the file.
func (w *OutcomeWriter) Close() error { return w.close() }

// LabelWriter writes the labels of one snapshot segment to one file, a row for each
// snapshot in its order. It is not safe for concurrent use. An error is final.
type LabelWriter struct{ *single[snapshot.Label] }

// CreateLabels makes the file, under path with .open appended until it is closed; path
// ends in .arrow.
func CreateLabels(path string, opts Options) (*LabelWriter, error) {
	s, err := newSingle(path, KindLabel, opts, labelFields())
	if err != nil {
		return nil, err
	}
	return &LabelWriter{s}, nil
}

// Append takes a copy of the next row's label; nil means that the row has none. A label
// that is not valid is refused with an error that wraps [snapshot.ErrInvalid].
func (w *LabelWriter) Append(l *snapshot.Label) error {
	if l == nil {
		return w.append(nil, 0)
	}
	if err := l.Validate(); err != nil {
		return err
	}
	if y := l.Time.Year(); !l.Time.IsZero() && (y < 1678 || y > 2261) {
		return fmt.Errorf("%w: label time %v does not fit nanoseconds", snapshot.ErrInvalid, l.Time)
	}
	return w.append(l, labelBytes(l))
}

// Close writes the pending rows and seals the file.
func (w *LabelWriter) Close() error { return w.close() }
