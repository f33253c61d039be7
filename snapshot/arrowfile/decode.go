package arrowfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxBuffer bounds what one buffer may declare as its length, and maxBatch all
	// buffers of a batch.
	maxBuffer = 256 << 20
	maxBatch  = 1 << 30
	// maxExpansion is zstd's best case, a block of 128 KiB in 4 bytes: a frame that
	// declares more cannot hold it, so that no allocation is larger than the file
	// justifies.
	maxExpansion = 128 << 10 / 4
	// maxRows bounds the rows of a batch.
	maxRows = 16 << 20
	// decodeSlack lets zstd use its fast copy loops, which may write past the end of a
	// block.
	decodeSlack = 64
	// expansionSlack is what frame headers and small frames are off by.
	expansionSlack = 64
)

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBatch),
		zstd.WithDecodeAllCapLimit(true))
}

// message is one encapsulated message of a file.
type message struct {
	// offset, metaLen (with the prefix) and bodyLen place it in the file.
	offset, metaLen, bodyLen int64
	header                   byte
	table                    table
	// digestAt is the offset of the digest field inside the message, or 0.
	digestAt int
	body     []byte
	meta     map[string]string
}

func (m *message) end() int64 { return m.offset + m.metaLen + m.bodyLen }

const (
	headerSchema = iota + 1
	headerDictionary
	headerRecord
)

// parseMessage reads the message at an offset. It trusts nothing: lengths are held
// against the data.
func parseMessage(data []byte, offset int64) (*message, error) {
	if offset < 0 || offset%8 != 0 || int64(len(data))-offset < 8 {
		return nil, fmt.Errorf("no message")
	}
	rest := data[offset:]
	if binary.LittleEndian.Uint32(rest) != math.MaxUint32 {
		return nil, fmt.Errorf("no continuation marker")
	}
	n := int64(int32(binary.LittleEndian.Uint32(rest[4:])))
	if n <= 0 || n%8 != 0 || n > int64(len(rest))-8 {
		return nil, fmt.Errorf("metadata of %d bytes, %d left", n, len(rest)-8)
	}
	m := &message{offset: offset, metaLen: 8 + n}
	f := &flat{b: rest[8 : 8+n]}
	root := f.root()
	m.header, m.table, m.bodyLen = root.u8(1), root.sub(2), root.i64(3, 0)
	if f.err != nil || !m.table.ok() {
		return nil, fmt.Errorf("no header: %w", orCorrupt(f.err))
	}
	if m.bodyLen < 0 || m.bodyLen%8 != 0 || m.bodyLen > int64(len(rest))-m.metaLen {
		return nil, fmt.Errorf("body of %d bytes, %d left", m.bodyLen, int64(len(rest))-m.metaLen)
	}
	m.body = rest[m.metaLen : m.metaLen+m.bodyLen]
	m.findDigest(root)
	m.meta = root.keyValues(4)
	return m, f.err
}

func orCorrupt(err error) error {
	if err == nil {
		return ErrCorrupt
	}
	return err
}

func (m *message) findDigest(root table) {
	n, at := root.tables(4)
	for i := range n {
		kv := at(i)
		if string(kv.bytes(0)) != keyDigest {
			continue
		}
		if pos, n := kv.vector(1, 1); n == digestText {
			m.digestAt = 8 + pos
		}
		return
	}
}

// decoder turns record batch messages into vectors.
type decoder struct {
	zstd    *zstd.Decoder
	strided unstrider
	dicts   map[int64][]string

	f              *flat
	body           []byte
	compressed     bool
	nodes, buffers cursor
	variadic       cursor // of single numbers
	spent          int
	// all decodes also what rows do not need, so that every checksum is compared.
	all bool
	// own copies buffers that are not compressed: vectors must not refer to a map.
	own bool
}

// cursor steps through a vector of 16-byte structs.
type cursor struct{ pos, left int }

func (d *decoder) next(c *cursor) (a, b int64, err error) {
	if c.left == 0 {
		return 0, 0, fmt.Errorf("fewer nodes or buffers than columns")
	}
	a = int64(binary.LittleEndian.Uint64(d.f.b[c.pos:]))
	b = int64(binary.LittleEndian.Uint64(d.f.b[c.pos+8:]))
	c.pos, c.left = c.pos+16, c.left-1
	return a, b, nil
}

// batch decodes one RecordBatch table; want says which top-level columns are needed.
func (d *decoder) batch(rb table, body []byte, vectors []*vector, want func(string) bool) (rows int, err error) {
	// A copy: the message is shared by all iterations, and a failing read would note itself.
	f := flat{b: rb.f.b}
	rb.f = &f
	d.f, d.body, d.spent = rb.f, body, 0
	d.nodes.pos, d.nodes.left = rb.vector(1, 16)
	d.buffers.pos, d.buffers.left = rb.vector(2, 16)
	d.variadic.pos, d.variadic.left = rb.vector(4, 8)
	if err := d.compression(rb.sub(3)); err != nil {
		return 0, err
	}
	n := rb.i64(0, 0)
	if d.f.err != nil {
		return 0, d.f.err
	}
	for _, v := range vectors {
		if err := d.column(v, want == nil || want(v.name)); err != nil {
			return 0, err
		}
		if int64(v.n) != n {
			return 0, fmt.Errorf("column %q has %d rows of %d", v.name, v.n, n)
		}
	}
	if d.nodes.left+d.buffers.left+d.variadic.left > 0 {
		return 0, fmt.Errorf("more nodes or buffers than columns")
	}
	return int(n), nil
}

func (d *decoder) compression(c table) error {
	d.compressed = c.ok()
	if d.compressed && c.u8(0) != codecZstd {
		return fmt.Errorf("body is compressed with codec %d, only zstd is read", c.u8(0))
	}
	return nil
}

// column decodes a column and its children, or steps over them.
func (d *decoder) column(v *vector, want bool) error {
	n, nulls, err := d.next(&d.nodes)
	if err != nil {
		return err
	}
	if n < 0 || n > maxRows || nulls < 0 || nulls > n {
		return fmt.Errorf("column %q: %d rows, %d nulls", v.name, n, nulls)
	}
	v.n, v.nulls = int(n), int(nulls)
	// Columns that are null throughout have no value to decode.
	empty := !d.all && nulls == n && n > 0
	v.skipped = !want || empty || v.typ == typeOther
	v.foreign = want && v.typ == typeOther && nulls < n
	if err := d.self(v); err != nil {
		return err
	}
	for _, k := range v.children {
		if err := d.column(k, !v.skipped); err != nil {
			return err
		}
	}
	return d.checkChildren(v)
}

// self reads the buffers of a column without its children.
func (d *decoder) self(v *vector) error {
	if v.skipped {
		return d.skip(v)
	}
	var err error
	bitmap := 0
	if v.nulls > 0 {
		bitmap = (v.n + 7) / 8
	}
	if v.valid, err = d.buffer(v, 0, bitmap); err != nil {
		return err
	}
	if v.nulls > 0 {
		if err := v.checkNulls(); err != nil {
			return err
		}
	}
	return d.values(v)
}

// skip steps over the buffers of a column without its children.
func (d *decoder) skip(v *vector) error {
	n := v.ownBuffers()
	if v.variadic {
		if d.variadic.left == 0 {
			return fmt.Errorf("column %q: no number of its buffers", v.name)
		}
		more := binary.LittleEndian.Uint64(d.f.b[d.variadic.pos:])
		if more > uint64(d.buffers.left) {
			return fmt.Errorf("column %q: %d buffers, %d left", v.name, more, d.buffers.left)
		}
		n += int(more)
		d.variadic.pos, d.variadic.left = d.variadic.pos+8, d.variadic.left-1
	}
	for range n {
		if _, _, err := d.next(&d.buffers); err != nil {
			return err
		}
	}
	return nil
}

// ownBuffers is the number of buffers of a column without its children.
func (s *shape) ownBuffers() int {
	if s.dict != noDict {
		return 2
	}
	return s.skipBuffers
}

func (d *decoder) values(v *vector) (err error) {
	switch {
	case v.shape.dict != noDict:
		labels, ok := d.dicts[v.shape.dict]
		if !ok {
			return fmt.Errorf("column %q: no dictionary %d", v.name, v.shape.dict)
		}
		v.dict = labels
		if v.data, err = d.buffer(v, 2, v.n*v.index); err == nil {
			err = v.checkCodes()
		}
	case v.typ == typeStruct:
	case v.typ == typeBool:
		v.data, err = d.buffer(v, 2, (v.n+7)/8)
	case v.typ == typeList:
		v.offsets, err = d.offsets(v)
	case v.typ == typeUTF8 || v.typ == typeBinary:
		if v.offsets, err = d.offsets(v); err != nil {
			return err
		}
		err = d.chars(v)
	default:
		v.data, err = d.buffer(v, 2, v.n*v.width)
	}
	return err
}

// offsets reads the offsets; a column without rows may leave them out.
func (d *decoder) offsets(v *vector) ([]byte, error) {
	if v.n == 0 {
		_, err := d.buffer(v, 1, 0)
		return make([]byte, 4), err
	}
	return d.buffer(v, 1, 4*(v.n+1))
}

// chars reads the data of a column of variable length. Text gets memory of its own that
// is never reused, so that rows may keep their strings.
func (d *decoder) chars(v *vector) (err error) {
	if v.typ == typeUTF8 {
		v.memory[2] = held{}
	}
	if v.data, err = d.buffer(v, 2, 0); err != nil {
		return err
	}
	if err := v.checkOffsets(len(v.data)); err != nil {
		return err
	}
	v.chars = ""
	if v.typ == typeUTF8 && len(v.data) > 0 {
		v.chars = unsafe.String(&v.data[0], len(v.data))
	}
	return nil
}

func (d *decoder) checkChildren(v *vector) error {
	if v.skipped {
		return nil
	}
	switch v.typ {
	case typeList:
		return v.checkOffsets(v.children[0].n)
	case typeStruct:
		for _, k := range v.children {
			if k.n != v.n {
				return fmt.Errorf("struct %q of %d rows has a child %q of %d", v.name, v.n, k.name, k.n)
			}
		}
	}
	return nil
}

// buffer reads the next buffer, at least need bytes, into the vector's memory.
func (d *decoder) buffer(v *vector, slot, need int) ([]byte, error) {
	offset, length, err := d.next(&d.buffers)
	if err != nil {
		return nil, err
	}
	if offset < 0 || length < 0 || offset > int64(len(d.body)) || length > int64(len(d.body))-offset {
		return nil, fmt.Errorf("column %q: buffer of %d bytes at %d of %d", v.name, length, offset, len(d.body))
	}
	b := d.body[offset : offset+length : offset+length]
	if d.compressed && length > 0 {
		if b, err = d.inflate(b, &v.memory[slot]); err != nil {
			return nil, fmt.Errorf("column %q: %w", v.name, err)
		}
	} else if d.own {
		b = bytes.Clone(b)
	}
	if len(b) < need {
		return nil, fmt.Errorf("column %q: buffer of %d bytes, %d needed", v.name, len(b), need)
	}
	return b, nil
}

// inflate decodes one compressed buffer into memory that it may enlarge: 8 bytes of
// length, then a zstd frame. DecodeAll runs to the frame's end, which is where the
// checksum is compared.
func (d *decoder) inflate(b []byte, memory *held) ([]byte, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("compressed buffer of %d bytes", len(b))
	}
	n, frame := int64(binary.LittleEndian.Uint64(b)), b[8:]
	if n == -1 { // stored as it is, by other writers
		if d.own {
			frame = bytes.Clone(frame)
		}
		return frame, nil
	}
	if n < 0 || n > maxBuffer || n > int64(len(frame)+expansionSlack)*maxExpansion {
		return nil, fmt.Errorf("%d bytes declared in a frame of %d", n, len(frame))
	}
	if d.spent += int(n); d.spent > maxBatch {
		return nil, fmt.Errorf("batch of more than %d bytes", maxBatch)
	}
	if len(memory.frame) > 0 && int64(len(memory.data)) == n && bytes.Equal(frame, memory.frame) {
		return memory.data, nil
	}
	return d.decodeFrame(frame, int(n), memory)
}

func (d *decoder) decodeFrame(frame []byte, n int, memory *held) ([]byte, error) {
	memory.frame = memory.frame[:0]
	room := n + decodeSlack
	if cap(memory.data) < room {
		memory.data = make([]byte, 0, room)
	}
	memory.data = memory.data[:n]
	if !d.strided.frame(memory.data, frame) {
		out, err := d.zstd.DecodeAll(frame, memory.data[:0:room])
		if err != nil {
			return nil, err
		}
		if len(out) != n {
			return nil, fmt.Errorf("%d bytes declared, %d found", n, len(out))
		}
	}
	if len(frame) <= maxHeld {
		memory.frame = append(memory.frame, frame...)
	}
	return memory.data, nil
}
