package flash

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrCorrupt reports bytes that are no readable .cfb file: another format, another
// version, or damage.
var ErrCorrupt = errors.New("not a readable .cfb file")

// decoder reads the variable parts. The first problem sticks; every read after it gives
// zero, so that loops end.
type decoder struct {
	b   []byte
	off int
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("offset %d: "+format, append([]any{d.off}, args...)...)
	}
}

// take returns the next n bytes, or nil at the end.
func (d *decoder) take(n int) []byte {
	if d.err != nil || n > len(d.b)-d.off {
		d.fail("%d bytes are needed, %d are left", n, len(d.b)-d.off)
		return nil
	}
	d.off += n
	return d.b[d.off-n : d.off]
}

func (d *decoder) u8() int {
	if b := d.take(1); b != nil {
		return int(b[0])
	}
	return 0
}

func (d *decoder) u16() uint16 {
	if b := d.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) text() string {
	n := int(d.u16())
	b := d.take(n)
	if n > maxText || !utf8.Valid(b) {
		d.fail("a text of %d bytes that is too long or not UTF-8", n)
		return ""
	}
	return string(b)
}

// count reads the length of a list whose items take at least size bytes each, so that a
// wrong length cannot ask for memory that the file does not justify.
func (d *decoder) count(size int) int {
	n := int(d.u16())
	if n*size > len(d.b)-d.off {
		d.fail("a list of %d items in %d bytes", n, len(d.b)-d.off)
		return 0
	}
	return n
}

// decode verifies and reads a file. Errors wrap [ErrCorrupt] with name and offset.
func decode(name string, file []byte) (*content, error) {
	width, cells, err := verify(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrCorrupt, err)
	}
	d := &decoder{b: file[:len(file)-sumSize], off: headerSize}
	c := &content{digest: [32]byte(file[headerSize-32 : headerSize])}
	d.content(c, width, cells)
	if d.err == nil && d.off != len(d.b) {
		d.fail("%d bytes are left over", len(d.b)-d.off)
	}
	if d.err == nil {
		d.err = c.validate()
	}
	if d.err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrCorrupt, d.err)
	}
	return c, nil
}

// verify checks the fixed header and the checksum.
func verify(file []byte) (width, cells int, err error) {
	switch {
	case len(file) < headerSize+sumSize:
		return 0, 0, fmt.Errorf("offset 0: %d bytes are less than the smallest file", len(file))
	case len(file) > MaxSize:
		return 0, 0, fmt.Errorf("offset %d: the file has %d bytes, the limit is %d", MaxSize, len(file), MaxSize)
	case string(file[:8]) != magic:
		return 0, 0, fmt.Errorf("offset 0: wrong magic % x", file[:8])
	}
	le := binary.LittleEndian
	if v := le.Uint16(file[8:]); v != formatVersion {
		return 0, 0, fmt.Errorf("offset 8: format version %d, this program reads %d", v, formatVersion)
	}
	if n := int(le.Uint32(file[12:])); n != len(file) {
		return 0, 0, fmt.Errorf("offset 12: the header says %d bytes, the file has %d", n, len(file))
	}
	at := len(file) - sumSize
	if sum := sha256.Sum256(file[:at]); !bytes.Equal(sum[:], file[at:]) {
		return 0, 0, fmt.Errorf("offset %d: wrong checksum", at)
	}
	width, cells = int(file[10]), int(le.Uint32(file[16:]))
	if width < 1 || width > 2 || file[11] != 0 || cells > maxCells {
		return 0, 0, fmt.Errorf("offset 10: cell width %d, reserved byte %d, %d cells", width, file[11], cells)
	}
	return width, cells, nil
}

func (d *decoder) content(c *content, width, cells int) {
	c.version, c.source = d.text(), d.text()
	for range d.count(2) {
		c.scenarios = append(c.scenarios, d.text())
	}
	for range d.u8() {
		c.dims = append(c.dims, d.dimension())
	}
	for range d.count(12) {
		c.actions = append(c.actions, action{int64(d.u64()), d.text(), d.text()})
	}
	c.fallback = d.u16()
	if b := d.take(4); b != nil {
		c.fallbackLine = int(binary.LittleEndian.Uint32(b))
	}
	raw := d.take(width * cells)
	if raw == nil {
		d.fail("no cells")
		return
	}
	c.cells = make([]uint16, cells)
	for i := range c.cells {
		if width == 1 {
			c.cells[i] = uint16(raw[i])
		} else {
			c.cells[i] = binary.LittleEndian.Uint16(raw[2*i:])
		}
	}
	d.lines(c)
}

func (d *decoder) dimension() dimension {
	x := dimension{name: d.text(), from: d.text(), kind: sourceKind(d.u8())}
	for range d.count(2) {
		x.values = append(x.values, d.text())
	}
	x.missing, x.other = d.u16(), d.u16()
	for range d.count(4) {
		x.texts = append(x.texts, textKey{d.text(), d.u16()})
	}
	for range d.count(18) {
		x.spans = append(x.spans, span{math.Float64frombits(d.u64()), math.Float64frombits(d.u64()), d.u16()})
	}
	return x
}

// lines reads one number a row; rows are counted from the last dimension, which may be
// wrong still.
func (d *decoder) lines(c *content) {
	if d.err != nil || len(c.dims) == 0 {
		return
	}
	last := c.dims[len(c.dims)-1]
	if len(last.values) == 0 {
		return
	}
	line := 0
	for range len(c.cells) / len(last.values) {
		x, n := binary.Uvarint(d.b[d.off:])
		if n <= 0 || x > math.MaxInt32 || line+int(x) > math.MaxInt32 {
			d.fail("a line number that is cut off or too large")
			return
		}
		d.off += n
		line += int(x)
		c.lines = append(c.lines, line)
	}
}
