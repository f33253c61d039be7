package arrowfile

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
)

// putter appends the value at p, a place in a row, to a column.
type putter func(c *column, p unsafe.Pointer)

// guard is a test for null that needs no call: most columns of most rows are null.
type guard uint8

const (
	// guardNone leaves the test to the putter.
	guardNone guard = iota
	// guardByte and guardWord: the value is null when the byte or word is zero. The word of
	// a string is its length, that of a slice its pointer.
	guardByte
	guardWord
)

// step puts one column.
type step struct {
	// The value is null when the word at wordAt, under the mask, is skip.
	wordAt, mask, skip uintptr

	at     uintptr
	column *column
	put    putter
}

// program puts one row: one step for each column, groups flattened. A closure for each
// value, row by row, cost four times as much.
type program []step

func programOf(specs []spec, columns []*column) program {
	var p program
	for i := range specs {
		s, c := &specs[i], columns[i]
		p = append(p, stepOf(s, c))
		switch {
		case s.shape.typ == typeList:
			c.elem = programOf(s.fields, c.children)
		case s.putsChildren:
		default:
			p = append(p, programOf(s.fields, c.children)...)
		}
	}
	return p
}

func stepOf(s *spec, c *column) step {
	const size = unsafe.Sizeof(uintptr(0))
	st := step{at: s.at, column: c, put: s.put, skip: 1}
	switch s.guard {
	case guardByte:
		// The word around the byte is in the row as well: rows with flags are made of words.
		st.wordAt, st.skip = s.guardAt&^(size-1), 0
		*(*byte)(unsafe.Add(unsafe.Pointer(&st.mask), s.guardAt%size)) = 0xff
	case guardWord:
		st.wordAt, st.mask, st.skip = s.guardAt, ^uintptr(0), 0
	}
	return st
}

// run puts the row at an address.
func (p program) run(row unsafe.Pointer) {
	for i := range p {
		s := &p[i]
		if *(*uintptr)(unsafe.Add(row, s.wordAt))&s.mask != s.skip {
			s.put(s.column, unsafe.Add(row, s.at))
		}
	}
}

func putText(c *column, p unsafe.Pointer)  { c.text(*(*string)(p)) }
func putLabel(c *column, p unsafe.Pointer) { c.label(*(*string)(p)) }
func putBlob(c *column, p unsafe.Pointer)  { c.bytes(*(*[]byte)(p)) }
func putBool(c *column, p unsafe.Pointer)  { c.bit(*(*bool)(p)) }
func put8(c *column, p unsafe.Pointer)     { c.u8(*(*uint8)(p)) }
func put32(c *column, p unsafe.Pointer)    { c.u32(*(*uint32)(p)) }
func put64(c *column, p unsafe.Pointer)    { c.u64(*(*uint64)(p)) }
func putGroup(c *column, _ unsafe.Pointer) { c.begin() }

// putWiden puts an uint16 into an int32 column.
func putWiden(c *column, p unsafe.Pointer) { c.u32(uint32(*(*uint16)(p))) }

// putCode16 puts a number whose 0 is null.
func putCode16(c *column, p unsafe.Pointer) {
	if n := *(*uint16)(p); n != 0 {
		c.u16(n)
	}
}

func putFixed(c *column, p unsafe.Pointer) { c.fixed(unsafe.Slice((*byte)(p), c.width)) }

func putID(c *column, p unsafe.Pointer) {
	if id := (*decision.ID)(p); !id.IsZero() {
		c.fixed(id[:])
	}
}

func putDigest(c *column, p unsafe.Pointer) {
	if d := (*[32]byte)(p); *d != [32]byte{} {
		c.fixed(d[:])
	}
}

func putInstant(c *column, p unsafe.Pointer) {
	if t := (*time.Time)(p); !t.IsZero() {
		c.u64(uint64(t.UnixNano()))
	}
}

// sliceOf is how a slice of any type lies in memory.
type sliceOf struct {
	data     unsafe.Pointer
	len, cap int
}

// putListOf puts a list of elements of a size, one by one.
func putListOf(size uintptr) putter {
	return func(c *column, p unsafe.Pointer) {
		items := (*sliceOf)(p)
		c.begin()
		for i := range items.len {
			c.elem.run(unsafe.Add(items.data, uintptr(i)*size))
			c.items++
		}
		c.close()
	}
}

// putFloats puts a list of float32 at once; NaN keeps its bits.
func putFloats(c *column, p unsafe.Pointer) {
	items := *(*[]float32)(p)
	c.begin()
	k := c.children[0]
	at := len(k.data)
	k.data = extend(k.data, 4*len(items))
	for i, v := range items {
		binary.LittleEndian.PutUint32(k.data[at+4*i:], math.Float32bits(v))
	}
	k.n += len(items)
	c.items += len(items)
	c.close()
}

// extend lengthens a slice; what is added is to be overwritten.
func extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(b, make([]byte, n)...)
		return b
	}
	return b[:len(b)+n]
}

// putAttrs puts the attributes of a row into a column for each; those beyond the row's
// values are null.
func putAttrs(c *column, p unsafe.Pointer) {
	c.begin()
	values := (*decision.Attrs)(p).Values
	for i := range values {
		putAttr(c.children[i], &values[i])
	}
}

func putAttr(c *column, v *decision.Value) {
	switch v.Type() {
	case decision.Null:
	case decision.Bool:
		c.bit(v.Bool())
	case decision.Int:
		c.u64(uint64(v.Int()))
	case decision.Double:
		c.f64(v.Double())
	default:
		c.text(v.Str())
	}
}
