package arrowfile

import (
	"fmt"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// maxRowBytes bounds one row: it has to fit a batch that every reader takes.
const maxRowBytes = 64 << 20

// rowBatch gathers rows of one kind.
type rowBatch[R any] struct {
	columnSet
	fields []field[R]
	bytes  int
	info   segmentInfo
}

func (b *rowBatch[R]) init(seed map[string][]string, fields []field[R]) {
	b.dicts, b.plain, b.seed = map[string]*interner{}, map[string]bool{}, seed
	b.use(fields)
}

// use changes the columns; the batch must be empty.
func (b *rowBatch[R]) use(fields []field[R]) {
	b.fields = fields
	b.rebuild(shapesOfFields(fields))
}

// add appends a row; nil is a row of nulls.
func (b *rowBatch[R]) add(r *R, size int) {
	b.mended = b.mended[:0]
	for i, c := range b.columns {
		if r == nil {
			c.null()
		} else {
			b.fields[i].put(c, r)
		}
	}
	b.n++
	b.bytes += size
	b.info.Mended += int64(len(b.mended))
}

// full reports whether the batch has no room for a row of a size.
func (b *rowBatch[R]) full(o *Options, size int) bool {
	return b.n >= o.BatchRows || (b.n > 0 && b.bytes+size > o.BatchBytes)
}

// clear empties the batch after it was written.
func (b *rowBatch[R]) clear() {
	b.reset()
	b.bytes, b.info = 0, segmentInfo{}
}

// pending is what the batch adds to its segment.
func (b *rowBatch[R]) pending(lost snapshot.Ledger) segmentInfo {
	info := b.info
	info.Rows = int64(b.n)
	info.Ledger = lost.Clone()
	info.Ledger.Offered += uint64(b.n)
	info.Ledger.Written += uint64(b.n)
	return info
}

// tooLarge refuses a row that no batch could hold.
func tooLarge(size int) error {
	if size > maxRowBytes {
		return fmt.Errorf("%w: row of %d bytes, at most %d can be written", snapshot.ErrInvalid, size, maxRowBytes)
	}
	return nil
}

// elementBytes is what one list element counts for in the size of a row.
const elementBytes = 32

func candidateBytes(cs []decision.Candidate) int {
	n := 0
	for i := range cs {
		n += elementBytes + len(cs[i].Action)
	}
	return n
}

func stringBytes(list []string) int {
	n := 0
	for _, s := range list {
		n += elementBytes + len(s)
	}
	return n
}

// snapshotBytes is the size of a row's parts of variable length.
func snapshotBytes(s *snapshot.Snapshot) int {
	n := len(s.Input) + len(s.Output) + 4*len(s.Features) + candidateBytes(s.Candidates) + stringBytes(s.Redacted) +
		len(s.SourceID) + len(s.Params) + len(s.Error) + len(s.ND) + len(s.Action) + len(s.Question) + len(s.RuleID)
	for i := range s.Attrs.Values {
		n += len(s.Attrs.Values[i].Str())
	}
	return n
}

func outcomeBytes(o *snapshot.Outcome) int {
	return candidateBytes(o.Candidates) + stringBytes(o.Missing) + len(o.Ref.Segment) + len(o.Action) +
		len(o.Params) + len(o.Error) + len(o.Recorded) + len(o.RuleID) + len(o.Question) + len(o.Scenario)
}

func labelBytes(l *snapshot.Label) int {
	n := len(l.Ref.Segment) + len(l.Action) + len(l.Source) + len(l.Key)
	for i := range l.Utilities {
		n += elementBytes + len(l.Utilities[i].Action)
	}
	return n
}
