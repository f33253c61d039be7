package arrowfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// bindList binds the elements too. Those of a block are loaded at once, into memory that
// the next block reuses.
func bindList[E any](s *spec, v *vector, out loads) (loads, error) {
	if _, n := v.bounds(0, v.n); n > maxBuffer/max(int(unsafe.Sizeof(*new(E))), 1) {
		return nil, fmt.Errorf("column %q: %d elements in one batch", v.name, n)
	}
	elem, err := bindAll(s.fields, v.children, nil)
	items, _ := v.scratch.([]E)
	return append(out, load{v, s.at, func(v *vector, from int, p places) {
		first, end := v.bounds(from, p.n)
		if n := end - first; cap(items) < n || items == nil {
			items = make([]E, n+n/4)
			v.scratch = items
		}
		items = items[:end-first]
		clear(items)
		elem.fill(first, placesOf(items))
		loadList(v, from, p, items)
	}}), err
}

// bounds are the elements of n rows.
func (v *vector) bounds(from, n int) (first, end int) {
	if n > 0 {
		first, _ = v.span(from)
		_, end = v.span(from + n - 1)
	}
	return first, end
}

// loadList makes each row's list a part of its block's elements; nil is null, an empty
// list is not.
func loadList[E any](v *vector, from int, p places, items []E) {
	base, _ := v.bounds(from, p.n)
	for i := range p.n {
		list := (*[]E)(p.at(i))
		if *list = nil; v.ok(from + i) {
			first, end := v.span(from + i)
			*list = items[first-base : end-base : end-base]
		}
	}
}

// bindFloats is bindList for elements without nulls that are the numbers themselves.
func bindFloats(s *spec, v *vector, out loads) (loads, error) {
	k := v.children[0]
	if k.typ != typeFloat32 || k.skipped || k.nulls > 0 {
		return bindList[float32](s, v, out)
	}
	items, _ := v.scratch.([]float32)
	return append(out, load{v, s.at, func(v *vector, from int, p places) {
		first, end := v.bounds(from, p.n)
		if n := end - first; cap(items) < n || items == nil {
			items = make([]float32, n+n/4)
			v.scratch = items
		}
		items = items[:end-first]
		copyFloats(items, k.data[4*first:4*end])
		loadList(v, from, p, items)
	}}), nil
}

func copyFloats(dst []float32, src []byte) {
	if littleEndian {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 4*len(dst)), src)
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// littleEndian: numbers in memory are as they are in the file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
