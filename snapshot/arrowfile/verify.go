package arrowfile

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Report is what [Verify] found.
type Report struct {
	Path  string
	Bytes int64
	Meta  Meta
	// Rows were decoded, in Batches.
	Rows    int64
	Batches int
	// Requests is how many requests the rows belong to; the first may have begun in the
	// segment before. Zero where rows are not snapshots.
	Requests int64
	// Findings says in words what does not hold, at most maxFindings of it; Failed counts
	// all.
	Findings []string
	Failed   int
}

// maxFindings keeps the report of a bad file short.
const maxFindings = 20

// Verify reads a whole file and holds it against everything that it says about itself:
// every digest, zstd's checksum of every buffer, the row count, the span of times, the
// strategy versions, the ledger, and the validity of every row. The error is nil when all
// holds; else it wraps [ErrCorrupt], [ErrUnsealed], [ErrSchema], [ErrVersion],
// [snapshot.ErrLedger] or [snapshot.ErrInvalid]. A report is returned whenever the file
// could be read at all.
func Verify(path string) (*Report, error) {
	r := &Report{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r.Bytes = info.Size()
	f, err := Open(path)
	if err != nil {
		r.note(err)
		return r, err
	}
	defer f.Close()
	v := verifier{Report: r, f: f}
	r.Meta, r.Batches = f.meta, len(f.batches)
	if !f.meta.Sealed {
		v.fail(fmt.Errorf("%w: %d bytes after the last whole batch", ErrUnsealed, f.meta.Tail))
	}
	if n := f.decodable(); n < len(f.batches) {
		v.fail(f.corrupt(f.batches[n].offset, fmt.Errorf("batch %d does not decode", n)))
	} else {
		v.rows()
	}
	v.ledger()
	if len(v.errs) == 0 {
		return r, nil
	}
	return r, fmt.Errorf("%s: %w", path, errors.Join(v.errs...))
}

func (r *Report) note(err error) {
	r.Failed++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, err.Error())
	}
}

type verifier struct {
	*Report
	f    *File
	errs []error
	seen segmentInfo
	// request is that of the row before.
	request decision.ID
}

func (v *verifier) fail(err error) {
	v.note(err)
	if len(v.errs) < maxFindings {
		v.errs = append(v.errs, err)
	}
}

func (v *verifier) rows() {
	switch v.f.meta.Kind {
	case KindSnapshot:
		verifyRows(v, v.f.Snapshots(), func(s *snapshot.Snapshot) error {
			v.seen.seen(s.Time.UnixNano())
			v.seen.strategy(s.Artefact.StrategyVersion)
			if s.RequestID != v.request {
				v.request = s.RequestID
				v.Requests++
			}
			return s.Validate()
		})
		v.contents()
	case KindOutcome:
		verifyRows(v, v.f.Outcomes(), (*snapshot.Outcome).Validate)
	case KindLabel:
		verifyRows(v, v.f.Labels(), (*snapshot.Label).Validate)
	}
}

// verifyRows decodes and validates every row; nil rows are rows without a label.
func verifyRows[R any](v *verifier, rows iter.Seq2[*R, error], validate func(*R) error) {
	for r, err := range rows {
		if err != nil {
			v.fail(err)
			return
		}
		if r != nil {
			if err := validate(r); err != nil {
				v.fail(fmt.Errorf("row %d: %w", v.Rows, err))
			}
		}
		v.Rows++
	}
}

// contents holds the rows' times and strategies against the footer's.
func (v *verifier) contents() {
	var seen Meta
	v.seen.fill(&seen)
	m := &v.f.meta
	if !seen.MinTime.Equal(m.MinTime) || !seen.MaxTime.Equal(m.MaxTime) {
		v.fail(fmt.Errorf("%w: rows from %v to %v, the file says %v to %v", ErrSchema, seen.MinTime, seen.MaxTime, m.MinTime, m.MaxTime))
	}
	if !slices.Equal(seen.StrategyVersions, m.StrategyVersions) {
		v.fail(fmt.Errorf("%w: strategy versions %q, the file says %q", ErrSchema, seen.StrategyVersions, m.StrategyVersions))
	}
}

func (v *verifier) ledger() {
	m := &v.f.meta
	if err := m.Ledger.Check(); err != nil {
		v.fail(err)
	}
	if m.Ledger.Written != uint64(m.Rows) || m.Rows != v.Rows {
		v.fail(fmt.Errorf("%w: %d rows, the file says %d and its ledger %d written", snapshot.ErrLedger, v.Rows, m.Rows, m.Ledger.Written))
	}
	if q := m.Ledger.Requests; q != nil && m.Kind == KindSnapshot {
		// The first request may count where it began.
		if n := uint64(v.Requests); q.Written != n && q.Written+1 != n {
			v.fail(fmt.Errorf("%w: rows of %d requests, the file's ledger says %d written", snapshot.ErrLedger, n, q.Written))
		}
	}
	if m.Total != nil {
		if err := m.Total.Check(); err != nil {
			v.fail(fmt.Errorf("total: %w", err))
		}
	}
}
