package arrowfile

import (
	"encoding/binary"
	"fmt"
)

// flat reads a flatbuffer that may be hostile: every offset and length is checked, the
// first violation is kept in err, and reads after it return zero values. (The flatbuffers
// runtime panics instead; it serves the writer only.)
type flat struct {
	b   []byte
	err error
	// copied counts the bytes of strings taken out. Many tables may refer to one string,
	// so that without a bound the copies could be as large as the square of the buffer.
	copied int
}

func (f *flat) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("metadata: "+format, args...)
	}
}

// in reports whether n bytes at pos are inside the buffer.
func (f *flat) in(pos, n int) bool {
	if pos < 0 || n < 0 || pos > len(f.b) || n > len(f.b)-pos {
		f.fail("%d bytes at %d of %d", n, pos, len(f.b))
	}
	return f.err == nil
}

func (f *flat) u32(pos int) int {
	if !f.in(pos, 4) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.b[pos:]))
}

func (f *flat) u16(pos int) int {
	if !f.in(pos, 2) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[pos:]))
}

// table is one table of a flatbuffer; the zero table is absent and reads as defaults.
type table struct {
	f        *flat
	pos      int
	vt, size int
}

func (t table) ok() bool { return t.pos > 0 }

func (f *flat) root() table { return f.table(f.u32(0)) }

func (f *flat) table(pos int) table {
	vt := pos - int(int32(f.u32(pos)))
	size := f.u16(vt)
	if pos <= 0 || size < 4 || !f.in(vt, size) {
		f.fail("no table at %d", pos)
		return table{f: f}
	}
	return table{f: f, pos: pos, vt: vt, size: size}
}

// at returns the position of a slot's field with n bytes, or 0 when it is absent.
func (t table) at(slot, n int) int {
	o := 4 + 2*slot
	if !t.ok() || o+2 > t.size {
		return 0
	}
	rel := t.f.u16(t.vt + o)
	if rel == 0 || !t.f.in(t.pos+rel, n) {
		return 0
	}
	return t.pos + rel
}

func (t table) u8(slot int) byte {
	if p := t.at(slot, 1); p > 0 {
		return t.f.b[p]
	}
	return 0
}

func (t table) i16(slot int, def int16) int16 {
	if p := t.at(slot, 2); p > 0 {
		return int16(binary.LittleEndian.Uint16(t.f.b[p:]))
	}
	return def
}

func (t table) i32(slot int, def int32) int32 {
	if p := t.at(slot, 4); p > 0 {
		return int32(binary.LittleEndian.Uint32(t.f.b[p:]))
	}
	return def
}

func (t table) i64(slot int, def int64) int64 {
	if p := t.at(slot, 8); p > 0 {
		return int64(binary.LittleEndian.Uint64(t.f.b[p:]))
	}
	return def
}

// sub returns the table that a slot points at.
func (t table) sub(slot int) table {
	p := t.at(slot, 4)
	if p == 0 {
		return table{f: t.f}
	}
	return t.f.table(p + t.f.u32(p))
}

// vector returns the position and length of a vector of elements of a size; the length is
// such that all elements lie inside the buffer.
func (t table) vector(slot, size int) (pos, n int) {
	p := t.at(slot, 4)
	if p == 0 {
		return 0, 0
	}
	start := p + t.f.u32(p)
	n = t.f.u32(start)
	if n > len(t.f.b)/size || !t.f.in(start+4, n*size) {
		t.f.fail("vector of %d at %d", n, start)
		return 0, 0
	}
	return start + 4, n
}

// bytes returns a string's bytes, aliasing the buffer.
func (t table) bytes(slot int) []byte {
	pos, n := t.vector(slot, 1)
	return t.f.b[pos : pos+n]
}

func (t table) str(slot int) string {
	b := t.bytes(slot)
	if t.f.copied += len(b); t.f.copied > 2*len(t.f.b) {
		t.f.fail("strings longer than the metadata")
		return ""
	}
	return string(b)
}

// tables returns a vector of tables.
func (t table) tables(slot int) (n int, at func(i int) table) {
	pos, n := t.vector(slot, 4)
	return n, func(i int) table {
		p := pos + 4*i
		return t.f.table(p + t.f.u32(p))
	}
}

// keyValues reads a vector of KeyValue tables; the first of equal keys counts.
func (t table) keyValues(slot int) map[string]string {
	n, at := t.tables(slot)
	m := make(map[string]string)
	for i := range n {
		kv := at(i)
		if t.f.err != nil {
			break
		}
		if k := kv.str(0); k != "" {
			if _, dup := m[k]; !dup {
				m[k] = kv.str(1)
			}
		}
	}
	return m
}
