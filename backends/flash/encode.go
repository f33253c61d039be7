package flash

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// magic starts a .cfb file. Its first byte is no text, and its line ends show a file
// that was changed by a transfer in text mode, as in PNG.
const magic = "\x89CFB\r\n\x1a\n"

// formatVersion is the version that this package reads and writes.
const formatVersion = 1

// headerSize is what stands before the variable parts; sumSize is the checksum at the end.
const (
	headerSize = 8 + 2 + 1 + 1 + 4 + 4 + 32
	sumSize    = sha256.Size
)

type encoder struct{ b []byte }

func (e *encoder) u8(x int)     { e.b = append(e.b, byte(x)) }
func (e *encoder) u16(x uint16) { e.b = binary.LittleEndian.AppendUint16(e.b, x) }
func (e *encoder) u32(x int)    { e.b = binary.LittleEndian.AppendUint32(e.b, uint32(x)) }
func (e *encoder) u64(x uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, x) }

func (e *encoder) text(s string) {
	e.u16(uint16(len(s)))
	e.b = append(e.b, s...)
}

// encode writes the file. The bytes depend on the content alone. The caller has checked
// that each length fits its field.
func (c *content) encode() []byte {
	e := &encoder{b: make([]byte, 0, 4096)}
	width := 1
	if len(c.actions) > 256 {
		width = 2
	}
	e.b = append(e.b, magic...)
	e.u16(formatVersion)
	e.u8(width)
	e.u8(0)
	e.u32(0) // the length of the file, set below
	e.u32(len(c.cells))
	e.b = append(e.b, c.digest[:]...)
	e.text(c.version)
	e.text(c.source)
	e.u16(uint16(len(c.scenarios)))
	for _, s := range c.scenarios {
		e.text(s)
	}
	e.u8(len(c.dims))
	for i := range c.dims {
		e.dimension(&c.dims[i])
	}
	e.actions(c)
	e.cells(c, width)
	binary.LittleEndian.PutUint32(e.b[12:], uint32(len(e.b)+sumSize))
	sum := sha256.Sum256(e.b)
	return append(e.b, sum[:]...)
}

func (e *encoder) dimension(d *dimension) {
	e.text(d.name)
	e.text(d.from)
	e.u8(int(d.kind))
	e.u16(uint16(len(d.values)))
	for _, v := range d.values {
		e.text(v)
	}
	e.u16(d.missing)
	e.u16(d.other)
	e.u16(uint16(len(d.texts)))
	for _, t := range d.texts {
		e.text(t.text)
		e.u16(t.digit)
	}
	e.u16(uint16(len(d.spans)))
	for _, s := range d.spans {
		e.u64(math.Float64bits(s.lo))
		e.u64(math.Float64bits(s.hi))
		e.u16(s.digit)
	}
}

func (e *encoder) actions(c *content) {
	e.u16(uint16(len(c.actions)))
	for _, a := range c.actions {
		e.u64(uint64(a.id))
		e.text(a.label)
		e.text(a.params)
	}
	e.u16(c.fallback)
	e.u32(c.fallbackLine)
}

// cells writes the action of each cell, then the line of each row as the difference to
// the row before it, which is small and never negative.
func (e *encoder) cells(c *content, width int) {
	for _, a := range c.cells {
		if width == 1 {
			e.u8(int(a))
		} else {
			e.u16(a)
		}
	}
	last := 0
	for _, l := range c.lines {
		e.b = binary.AppendUvarint(e.b, uint64(l-last))
		last = l
	}
}
