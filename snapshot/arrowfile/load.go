package arrowfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
)

// places are a value of each of n rows: the first at first, the others stride bytes apart.
type places struct {
	first  unsafe.Pointer
	stride uintptr
	n      int
}

func (p *places) at(i int) unsafe.Pointer { return unsafe.Add(p.first, uintptr(i)*p.stride) }

// loader writes the rows of a column from a row on to their places, nulls as zeroes.
// Column by column, a block of rows costs a fraction of what it costs row by row.
type loader func(v *vector, from int, p places)

// load is one column of a batch that was bound to a place.
type load struct {
	vector *vector
	at     uintptr
	load   loader
}

// loads fill rows of one type.
type loads []load

// constants fills rows with the columns that have one value in the whole batch, and
// returns those that vary.
func (l loads) constants(rows places) loads {
	varying := l[:0]
	for i := range l {
		if s := l[i]; s.vector.constant() {
			l[i:i+1].fill(0, rows)
		} else {
			varying = append(varying, s)
		}
	}
	return varying
}

// constant reports whether all rows have one value of fixed width. Many columns are like
// that, and to see it costs next to nothing.
func (v *vector) constant() bool {
	w := v.width
	if v.shape.dict != noDict {
		w = v.index
	}
	if v.nulls > 0 || v.n == 0 || w == 0 {
		return false
	}
	return bytes.Equal(v.data[w:w*v.n], v.data[:w*(v.n-1)])
}

// fill fills rows, from row from of the batch on.
func (l loads) fill(from int, rows places) {
	for i := range l {
		s := &l[i]
		s.load(s.vector, from, places{unsafe.Add(rows.first, s.at), rows.stride, rows.n})
	}
}

// bindAll binds columns to the vectors of their names. Columns that are absent, not wanted
// or null throughout are not loaded: rows hold zeroes there.
func bindAll(specs []spec, vectors []*vector, out loads) (loads, error) {
	for i := range specs {
		s := &specs[i]
		v := named(vectors, s.shape.name)
		if v == nil && !s.shape.nullable {
			return nil, fmt.Errorf("%w: no column %q", ErrSchema, s.shape.name)
		}
		if v == nil || (v.skipped && !v.foreign) {
			continue
		}
		if err := v.is(&s.shape); err != nil {
			return nil, err
		}
		bound, err := s.bind(s, v, out)
		if err != nil {
			return nil, err
		}
		if v.nulls < v.n || v.n == 0 {
			out = bound
		}
	}
	return out, nil
}

// named finds a column. Of two of a name the last one counts.
func named(vectors []*vector, name string) *vector {
	for i := len(vectors) - 1; i >= 0; i-- {
		if vectors[i].name == name {
			return vectors[i]
		}
	}
	return nil
}

// bindTo binds a column to one loader.
func bindTo(l loader) binder {
	return func(s *spec, v *vector, out loads) (loads, error) { return append(out, load{v, s.at, l}), nil }
}

func bindGroup(s *spec, v *vector, out loads) (loads, error) {
	v.hide()
	return bindAll(s.fields, v.children, out)
}

// hide makes the children null where the struct is; files of our own have no such rows.
func (v *vector) hide() {
	if v.nulls == 0 {
		return
	}
	for _, k := range v.children {
		if k.skipped {
			continue
		}
		valid := make([]byte, len(v.valid))
		nulls := 0
		for i := range v.n {
			if v.ok(i) && k.ok(i) {
				valid[i>>3] |= 1 << (i & 7)
			} else {
				nulls++
			}
		}
		k.valid, k.nulls = valid, nulls
	}
}

func loadText(v *vector, from int, p places) {
	if v.shape.dict != noDict && v.index == 2 {
		loadCodes(v, from, p)
		return
	}
	for i := range p.n {
		s := (*string)(p.at(i))
		if v.ok(from + i) {
			*s = v.str(from + i)
		} else {
			*s = ""
		}
	}
}

// loadCodes is loadText for the codes that this package writes.
func loadCodes(v *vector, from int, p places) {
	labels, codes := v.dict, v.data[2*from:]
	if v.nulls == 0 {
		for i := range p.n {
			*(*string)(p.at(i)) = labels[binary.LittleEndian.Uint16(codes[2*i:])]
		}
		return
	}
	for i := range p.n {
		s := (*string)(p.at(i))
		if v.ok(from + i) {
			*s = labels[binary.LittleEndian.Uint16(codes[2*i:])]
		} else {
			*s = ""
		}
	}
}

func loadBlob(v *vector, from int, p places) {
	for i := range p.n {
		b := (*[]byte)(p.at(i))
		if v.ok(from + i) {
			*b = v.slice(from + i)
		} else {
			*b = nil
		}
	}
}

func load64(v *vector, from int, p places) {
	for i := range p.n {
		*(*uint64)(p.at(i)) = v.number(from + i)
	}
}

// number is row i of a column of 64 bits, 0 for null.
func (v *vector) number(i int) uint64 {
	if !v.ok(i) {
		return 0
	}
	return v.u64(i)
}

func load32(v *vector, from int, p places) {
	if v.nulls == 0 {
		data := v.data[4*from:]
		for i := range p.n {
			*(*uint32)(p.at(i)) = binary.LittleEndian.Uint32(data[4*i:])
		}
		return
	}
	for i := range p.n {
		n := (*uint32)(p.at(i))
		if *n = 0; v.ok(from + i) {
			*n = v.u32(from + i)
		}
	}
}

// loadNarrow reads an uint16 from an int32 column.
func loadNarrow(v *vector, from int, p places) {
	for i := range p.n {
		n := (*uint16)(p.at(i))
		if *n = 0; v.ok(from + i) {
			*n = uint16(v.u32(from + i))
		}
	}
}

func loadCode16(v *vector, from int, p places) {
	for i := range p.n {
		n := (*uint16)(p.at(i))
		if *n = 0; v.ok(from + i) {
			*n = v.u16(from + i)
		}
	}
}

func loadOpt64(v *vector, from int, p places) {
	if v.nulls == 0 {
		data := v.data[8*from:]
		for i := range p.n {
			*(*decision.Opt[uint64])(p.at(i)) = decision.Some(binary.LittleEndian.Uint64(data[8*i:]))
		}
		return
	}
	for i := range p.n {
		o := (*decision.Opt[uint64])(p.at(i))
		if v.ok(from + i) {
			o.V, o.Set = v.u64(from+i), true
		} else {
			o.V, o.Set = 0, false
		}
	}
}

func loadOpt32(v *vector, from int, p places) {
	if v.nulls == 0 {
		data := v.data[4*from:]
		for i := range p.n {
			*(*decision.Opt[uint32])(p.at(i)) = decision.Some(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return
	}
	for i := range p.n {
		o := (*decision.Opt[uint32])(p.at(i))
		if v.ok(from + i) {
			o.V, o.Set = v.u32(from+i), true
		} else {
			o.V, o.Set = 0, false
		}
	}
}

func loadOpt8(v *vector, from int, p places) {
	for i := range p.n {
		o := (*decision.Opt[uint8])(p.at(i))
		if *o = (decision.Opt[uint8]{}); v.ok(from + i) {
			o.V, o.Set = v.data[from+i], true
		}
	}
}

func loadOptBool(v *vector, from int, p places) {
	for i := range p.n {
		o := (*decision.Opt[bool])(p.at(i))
		if *o = (decision.Opt[bool]{}); v.ok(from + i) {
			o.V, o.Set = v.bit(from+i), true
		}
	}
}

func loadFixed(v *vector, from int, p places) {
	for i := range p.n {
		b := unsafe.Slice((*byte)(p.at(i)), v.width)
		if v.ok(from + i) {
			copy(b, v.fixed(from+i))
		} else {
			clear(b)
		}
	}
}

// loadOptFixed is loadFixed for an Opt, whose flag follows the bytes.
func loadOptFixed(v *vector, from int, p places) {
	loadFixed(v, from, p)
	for i := range p.n {
		*(*bool)(unsafe.Add(p.at(i), v.width)) = v.ok(from + i)
	}
}

func loadID(v *vector, from int, p places) {
	if v.nulls == 0 {
		data := v.data[16*from:]
		for i := range p.n {
			*(*decision.ID)(p.at(i)) = decision.ID(data[16*i:])
		}
		return
	}
	for i := range p.n {
		id := (*decision.ID)(p.at(i))
		if v.ok(from + i) {
			*id = decision.ID(v.fixed(from + i))
		} else {
			*id = decision.ID{}
		}
	}
}

func loadInstant(v *vector, from int, p places) {
	for i := range p.n {
		t := (*time.Time)(p.at(i))
		if v.ok(from + i) {
			*t = time.Unix(0, int64(v.u64(from+i))).UTC()
		} else {
			*t = time.Time{}
		}
	}
}

// loadValue loads an attribute.
func loadValue(v *vector, from int, p places) {
	if v.nulls == 0 && v.typ != typeBool {
		loadValues(v, from, p)
		return
	}
	for i := range p.n {
		o := (*decision.Value)(p.at(i))
		if v.ok(from + i) {
			*o = v.value(from + i)
		} else {
			*o = decision.Value{}
		}
	}
}

// loadValues is loadValue where none is null, without a look at the type for each.
func loadValues(v *vector, from int, p places) {
	switch v.typ {
	case typeInt64:
		for i := range p.n {
			*(*decision.Value)(p.at(i)) = decision.IntValue(int64(v.u64(from + i)))
		}
	case typeFloat64:
		for i := range p.n {
			*(*decision.Value)(p.at(i)) = decision.DoubleValue(v.f64(from + i))
		}
	default:
		for i := range p.n {
			*(*decision.Value)(p.at(i)) = decision.StringValue(v.str(from + i))
		}
	}
}
