package arrowfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/clefbench/clefbench/decision"
)

// vector is one column of a batch that was read. Its memory is reused by the next batch of
// the same iteration, except text, which rows keep.
type vector struct {
	*shape
	n, nulls             int
	valid, offsets, data []byte
	// str holds the text of a utf8 column; dict the labels of a column of codes.
	chars    string
	dict     []string
	children []*vector
	// skipped: not wanted, or null throughout; nothing was decompressed.
	skipped bool
	// foreign: it was wanted, but is of a type that no column of ours has.
	foreign bool
	scratch any
	memory  [3]held
}

// held is what a buffer was decoded into, and the frame that it came from if that was a
// short one: columns of one value have the same frame in batch after batch.
type held struct{ data, frame []byte }

// maxHeld is the length above which a frame is not compared with the one before.
const maxHeld = 16 << 10

func newVectors(shapes []*shape) []*vector {
	out := make([]*vector, len(shapes))
	for i, s := range shapes {
		out[i] = &vector{shape: s, children: newVectors(s.children)}
	}
	return out
}

// is checks that the column has the type that a field wants, children aside: they are
// checked when they are bound.
func (v *vector) is(want *shape) error {
	if v.typ != want.typ || v.width != want.width {
		return fmt.Errorf("%w: column %q is %v of width %d, want %v of width %d",
			ErrSchema, v.name, v.typ, v.width, want.typ, want.width)
	}
	return nil
}

// ok reports whether row i is not null.
func (v *vector) ok(i int) bool {
	return v.nulls == 0 || v.valid[i>>3]&(1<<(i&7)) != 0
}

func (v *vector) u16(i int) uint16  { return binary.LittleEndian.Uint16(v.data[2*i:]) }
func (v *vector) u32(i int) uint32  { return binary.LittleEndian.Uint32(v.data[4*i:]) }
func (v *vector) u64(i int) uint64  { return binary.LittleEndian.Uint64(v.data[8*i:]) }
func (v *vector) f64(i int) float64 { return math.Float64frombits(v.u64(i)) }
func (v *vector) bit(i int) bool    { return v.data[i>>3]&(1<<(i&7)) != 0 }

func (v *vector) fixed(i int) []byte { return v.data[v.width*i : v.width*(i+1)] }

// span is the range of row i in the data or in the child.
func (v *vector) span(i int) (from, to int) {
	return int(binary.LittleEndian.Uint32(v.offsets[4*i:])), int(binary.LittleEndian.Uint32(v.offsets[4*i+4:]))
}

func (v *vector) slice(i int) []byte {
	from, to := v.span(i)
	return v.data[from:to:to]
}

// code is the dictionary code of row i.
func (v *vector) code(i int) int {
	switch v.index {
	case 1:
		return int(int8(v.data[i]))
	case 2:
		return int(int16(v.u16(i)))
	default:
		return int(int32(v.u32(i)))
	}
}

// str is the text of row i; it stays valid.
func (v *vector) str(i int) string {
	if v.shape.dict != noDict {
		return v.dict[v.code(i)]
	}
	from, to := v.span(i)
	return v.chars[from:to]
}

// labels returns the distinct labels of the batch and the row's index into them; plain
// utf8 is interned first.
func (v *vector) labels() ([]string, func(int) int) {
	if v.shape.dict != noDict {
		return v.dict, v.code
	}
	seen := map[string]int{}
	var labels []string
	codes := make([]int, v.n)
	for i := range v.n {
		if !v.ok(i) {
			continue
		}
		s := v.str(i)
		code, ok := seen[s]
		if !ok {
			code = len(labels)
			seen[s] = code
			labels = append(labels, s)
		}
		codes[i] = code
	}
	return labels, func(i int) int { return codes[i] }
}

// value is row i of an attribute.
func (v *vector) value(i int) decision.Value {
	switch v.typ {
	case typeBool:
		return decision.BoolValue(v.bit(i))
	case typeInt64:
		return decision.IntValue(int64(v.u64(i)))
	case typeFloat64:
		return decision.DoubleValue(v.f64(i))
	default:
		return decision.StringValue(v.str(i))
	}
}

// checkOffsets checks that the offsets of a column rise and end inside limit.
func (v *vector) checkOffsets(limit int) error {
	last := uint32(0)
	for i := 0; i <= v.n; i++ {
		o := binary.LittleEndian.Uint32(v.offsets[4*i:])
		if o < last || o > math.MaxInt32 {
			return fmt.Errorf("column %q: offset %d falls to %d", v.name, last, o)
		}
		last = o
	}
	if int(last) > limit {
		return fmt.Errorf("column %q: offset %d past %d", v.name, last, limit)
	}
	return nil
}

// checkCodes checks that the codes of the rows that are not null are in the dictionary.
func (v *vector) checkCodes() error {
	limit := len(v.dict)
	if v.index == 2 && allBelow16(v.data[:2*v.n], limit) {
		return nil
	}
	for i := range v.n {
		if c := v.code(i); (c < 0 || c >= limit) && v.ok(i) {
			return fmt.Errorf("column %q: code %d of %d labels", v.name, c, limit)
		}
	}
	return nil
}

// allBelow16 reports whether all numbers of 16 bits are below a limit, four at a time: the
// sum of a number below 1<<15 and of 1<<15 less the limit has the highest bit when the
// number is not below the limit, and no sum reaches its neighbour.
func allBelow16(data []byte, limit int) bool {
	if limit > 1<<15 {
		limit = 1 << 15
	}
	const ones, high = 0x0001_0001_0001_0001, 0x8000_8000_8000_8000
	add, bad := uint64(1<<15-limit)*ones, uint64(0)
	for ; len(data) >= 8; data = data[8:] {
		x := binary.LittleEndian.Uint64(data)
		bad |= x | ((x &^ high) + add)
	}
	for ; len(data) >= 2; data = data[2:] {
		if int(binary.LittleEndian.Uint16(data)) >= limit {
			return false
		}
	}
	return bad&high == 0
}

// onesIn counts the ones among the first n bits.
func onesIn(bitmap []byte, n int) int {
	ones := 0
	for ; n >= 64; n, bitmap = n-64, bitmap[8:] {
		ones += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap))
	}
	for ; n >= 8; n, bitmap = n-8, bitmap[1:] {
		ones += bits.OnesCount8(bitmap[0])
	}
	if n > 0 {
		ones += bits.OnesCount8(bitmap[0] & (1<<n - 1))
	}
	return ones
}

// checkNulls holds the null count to the bitmap: a getter trusts the count.
func (v *vector) checkNulls() error {
	nulls := v.n - onesIn(v.valid, v.n)
	if nulls != v.nulls {
		return fmt.Errorf("column %q: %d nulls declared, %d found", v.name, v.nulls, nulls)
	}
	return nil
}
