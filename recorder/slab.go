package recorder

import (
	"unsafe"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

const (
	// slabRows and slabBytes (of bodies) say when a slab is full. A larger slab gains
	// callers nothing, and a smaller one is still in the processor's cache when it comes
	// back: measured with 64 to 1024 rows.
	slabRows  = 256
	slabBytes = 256 << 10
)

// slab is the memory that callers copy rows into and that goes to the drain whole: no
// row has memory of its own, and what is variable in length stands in one array for all.
// It is reused. Strings stay the caller's (they do not change); they are let go with reset.
//
// A row is copied as it is, with its 1056 bytes. Rows split into what all have and parts
// that only some have took 10 % less where they had no part, but twice the time where they
// had all: finding out what there is, and copying field by field, is dearer than bytes.
type slab struct {
	rows []packed

	bytes      []byte
	values     []decision.Value
	candidates []decision.Candidate
	features   []float32
	notes      []string

	_ [64]byte // two shards' slabs may be neighbours in memory
}

// put copies src to the end of an array and returns the copy, which cannot be appended
// into its neighbour. When the array grows, what was put before stays in the old one, which
// the rows keep.
func put[T any](arena *[]T, src []T) []T {
	if len(src) == 0 {
		return src[:0:0] // in a file, nil and empty are not the same
	}
	n := len(*arena)
	end := n + len(src)
	if end > cap(*arena) {
		*arena = append(*arena, src...)
		return (*arena)[n:end:end]
	}
	*arena = (*arena)[:end] // stores the length alone, which append of a slice does not
	dst := (*arena)[n:end:end]
	copy(dst, src)
	return dst
}

// packed is a row, its slices being parts of the slab's arrays.
type packed struct {
	// The first row of a request says how large it is, and ticket orders it among the
	// requests of all slabs. size is 0 in the others, and where a hand-over broke off: such
	// rows belong to nobody.
	size   count
	ticket uint64
	// entity is raw: the drain hashes it.
	entity    string
	hasEntity bool
	// whole: the request's rows came complete.
	whole           bool
	inSeen, outSeen bool
	inKind, outKind bodyKind

	row snapshot.Snapshot
}

func newSlab(rows int) *slab {
	return &slab{rows: make([]packed, 0, rows)}
}

// full says when a slab of so many rows is handed on. Rows with uncommonly much of
// something make it so earlier, or its arrays would grow anew for every slab.
func (sl *slab) full(rows int) bool {
	return len(sl.rows) >= rows || len(sl.bytes) >= slabBytes || len(sl.features)*4 >= slabBytes ||
		max(len(sl.values), len(sl.candidates), len(sl.notes)) >= slabBytes/32
}

// add appends an empty row.
func (sl *slab) add() *packed {
	if n := len(sl.rows); n < cap(sl.rows) {
		sl.rows = sl.rows[:n+1] // reset has cleared it
	} else {
		sl.rows = append(sl.rows, packed{})
	}
	return &sl.rows[len(sl.rows)-1]
}

// pack copies what is the same for rows of every origin. Bodies, attributes and features
// are not: until they are put as well, the row has the caller's.
func (p *packed) pack(sl *slab, src *snapshot.Snapshot) {
	// copy is 5 % of a hand-over faster than an assignment, which copies 16 bytes at a time.
	copy(unsafe.Slice(&p.row, 1), unsafe.Slice(src, 1))
	p.row.Candidates = put(&sl.candidates, src.Candidates)
	p.row.Redacted = put(&sl.notes, src.Redacted)
}

// next returns the place of the first request at or after row i, or the end.
func (sl *slab) next(i int) int {
	for i < len(sl.rows) && sl.rows[i].size == 0 {
		i++
	}
	return i
}

// unpack copies a row into a slot, whose slices are then the slab's.
func (p *packed) unpack(to *slot) {
	to.row = p.row
	to.row.Ref = snapshot.Ref{}
	to.row.Input, to.row.Output = nil, nil
	to.entity, to.hasEntity = p.entity, p.hasEntity
	to.in = body{data: p.row.Input, seen: p.inSeen, bodyKind: p.inKind}
	to.out = body{data: p.row.Output, seen: p.outSeen, bodyKind: p.outKind}
}

// reset empties the slab and lets go of the callers' strings.
func (sl *slab) reset() {
	reuse(&sl.rows)
	reuse(&sl.bytes)
	reuse(&sl.values)
	reuse(&sl.candidates)
	reuse(&sl.features)
	reuse(&sl.notes)
}

// reuse empties an array. One that a large request made grow is left to the garbage
// collector, so that it does not hold its memory for ever.
func reuse[T any](arena *[]T) {
	var zero T
	if cap(*arena)*int(unsafe.Sizeof(zero)) > 4*slabBytes {
		*arena = nil
		return
	}
	clear(*arena)
	*arena = (*arena)[:0]
}
