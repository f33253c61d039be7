package arrowfile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/klauspost/compress/zstd"
)

const (
	metadataV5 = 4
	codecZstd  = 1
	// keyDigest is the custom metadata of a message, and of the footer, that holds the
	// digest; its value is always the last bytes of the flatbuffer.
	keyDigest  = "clefbench.digest"
	digestText = 2 * sha256.Size
	// digestTail is the distance of the digest's text from the end of the flatbuffer: the
	// text, its NUL and padding to a multiple of 4.
	digestTail = digestText + 4
)

// sum is the digest of a message, chained: it covers the digest of the message before.
type sum [sha256.Size]byte

var zeroDigest = strings.Repeat("0", digestText)

// digestOf hashes a part of a file after the digest before it, reading the digest field
// at an offset of the part as zeroes; 0 is no field.
func digestOf(prev sum, part []byte, field int) sum {
	h := sha256.New()
	h.Write(prev[:])
	if field > 0 {
		h.Write(part[:field])
		h.Write([]byte(zeroDigest))
		part = part[field+digestText:]
	}
	h.Write(part)
	return sum(h.Sum(nil))
}

type (
	node   struct{ rows, nulls int64 }
	extent struct{ offset, length int64 }
	// block places a message in the file, for the footer.
	block struct {
		offset, bodyLen int64
		metaLen         int32
	}
	keyValue struct{ key, value string }
)

// encoder builds dictionary and record batch messages. Its memory is reused.
type encoder struct {
	zstd    *zstd.Encoder
	fb      *flatbuffers.Builder
	nodes   []node
	buffers []extent
	body    []byte
	frames  frames
	strider strider
	// thorough makes both frames where there is a choice and keeps the smaller one.
	thorough bool
	spare    []byte
	// number is the frame of the column of numbers at hand.
	number []byte
}

func newEncoder(l Level) (*encoder, error) {
	level, window := l.zstd()
	// The lower memory mode moves the whole window for every block: a third of the time.
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	e := &encoder{zstd: z, fb: flatbuffers.NewBuilder(4096), thorough: level != zstd.SpeedFastest}
	e.frames = frames{compress: e.compress, kept: map[string][]byte{}}
	return e, nil
}

// compress appends the frame of a buffer of values of a width, 0 when they have none.
func (e *encoder) compress(out, b []byte, width int) []byte {
	framed, ok := e.strider.frame(out, b, width)
	if !ok {
		return e.zstd.EncodeAll(b, out)
	}
	if e.thorough {
		if e.spare = e.zstd.EncodeAll(b, e.spare[:0]); len(e.spare) < len(framed)-len(out) {
			return append(out, e.spare...)
		}
	}
	return framed
}

// numbers appends the frame of a column of floating-point numbers. Where the general
// encoder finds next to nothing to refer to, its search is what costs most of all: for the
// benchmark's features, three quarters of the time for 14 % of the bytes. Every few batches
// a part is encoded both ways, and the cheap one is taken until then unless it is a fifth
// larger.
func (e *encoder) numbers(out []byte, c *column) []byte {
	if n := len(c.data); e.thorough || n < strideMin || n > strideMax {
		return e.compress(out, c.data, c.width)
	}
	if c.unmatched == 0 {
		if framed, ok := e.strider.frame(out, c.data, c.width); ok {
			return framed
		}
		part := c.data[:min(len(c.data), trialBytes)]
		e.spare = e.zstd.EncodeAll(part, e.spare[:0])
		n := len(e.spare)
		if e.spare = e.strider.unmatched(e.spare[:0], part); len(e.spare) > n+n/5 {
			return e.zstd.EncodeAll(c.data, out)
		}
		c.unmatched = unmatchedBatches
	}
	c.unmatched--
	return e.strider.unmatched(out, c.data)
}

const (
	// unmatchedBatches is how many batches one trial is good for.
	unmatchedBatches = 16
	// trialBytes is what it takes of a column, one block of zstd's.
	trialBytes = maxBlock
)

// buffer appends one compressed buffer to the body. It is never stored raw: the frame's
// checksum would be lost. kept is the frame when it is known, else nil.
func (e *encoder) buffer(b, kept []byte, width int) {
	start := len(e.body)
	if len(b) > 0 {
		e.body = binary.LittleEndian.AppendUint64(e.body, uint64(len(b)))
		if kept != nil {
			e.body = append(e.body, kept...)
		} else {
			e.body = e.compress(e.body, b, width)
		}
	}
	e.buffers = append(e.buffers, extent{int64(start), int64(len(e.body) - start)})
	e.body = pad8(e.body)
}

func pad8(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

func (e *encoder) start() {
	e.nodes, e.buffers, e.body = e.nodes[:0], e.buffers[:0], e.body[:0]
}

// column appends a column and its children, depth first, as the format orders them. each
// is the number of its values for every row, when that is the same for all.
func (e *encoder) column(c *column, each int) {
	e.nodes = append(e.nodes, node{int64(c.n), int64(c.nulls)})
	if c.nulls > 0 {
		e.buffer(c.valid, e.frames.repeated(c.valid, 1, c.nulls == c.n), 0)
	} else {
		e.buffer(nil, nil, 0)
	}
	if c.hasOffsets() {
		step, ok := riseOf(c.offsets)
		e.buffer(c.offsets, e.frames.rising(c.offsets, step, ok), 4)
		each *= int(step)
	}
	if c.typ != typeList && c.typ != typeStruct {
		period := c.slotWidth() * each
		kept := e.frames.repeated(c.data, max(period, 1), c.nulls == c.n || repeats(c.data, period))
		if kept == nil && (c.typ == typeFloat32 || c.typ == typeFloat64) && len(c.data) > 0 {
			e.number = e.numbers(e.number[:0], c)
			kept = e.number
		}
		e.buffer(c.data, kept, c.slotWidth())
	}
	for _, k := range c.children {
		e.column(k, each)
	}
}

// recordBatch appends a record batch message of the columns to out.
func (e *encoder) recordBatch(out []byte, columns []*column, rows int, meta []keyValue, prev sum) ([]byte, block, sum) {
	e.start()
	for _, c := range columns {
		c.settle()
		e.column(c, 1)
	}
	return e.message(out, headerRecord, meta, prev, func() flatbuffers.UOffsetT { return e.recordTable(rows) })
}

// dictionary appends a dictionary batch message with the labels to out.
func (e *encoder) dictionary(out []byte, id int64, labels []string, prev sum) ([]byte, block, sum) {
	c := column{shape: shape{typ: typeUTF8, dict: noDict}, mended: new([]string), rows: new(int)}
	c.reset()
	for _, s := range labels {
		c.text(s)
		*c.rows++
	}
	e.start()
	e.column(&c, 1)
	return e.message(out, headerDictionary, nil, prev, func() flatbuffers.UOffsetT {
		data := e.recordTable(len(labels))
		e.fb.StartObject(3)
		e.fb.PrependInt64Slot(0, id, 0)
		e.fb.PrependUOffsetTSlot(1, data, 0)
		return e.fb.EndObject()
	})
}

// recordTable builds the RecordBatch table of the gathered nodes and buffers.
func (e *encoder) recordTable(rows int) flatbuffers.UOffsetT {
	b := e.fb
	b.StartVector(16, len(e.nodes), 8)
	for i := len(e.nodes) - 1; i >= 0; i-- {
		prependPair(b, e.nodes[i].rows, e.nodes[i].nulls)
	}
	nodes := b.EndVector(len(e.nodes))
	b.StartVector(16, len(e.buffers), 8)
	for i := len(e.buffers) - 1; i >= 0; i-- {
		prependPair(b, e.buffers[i].offset, e.buffers[i].length)
	}
	buffers := b.EndVector(len(e.buffers))
	b.StartObject(2)
	b.PrependByteSlot(0, codecZstd, 0)
	compression := b.EndObject()
	b.StartObject(5)
	b.PrependInt64Slot(0, int64(rows), 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	b.PrependUOffsetTSlot(3, compression, 0)
	return b.EndObject()
}

func prependPair(b *flatbuffers.Builder, first, second int64) {
	b.Prep(8, 16)
	b.PrependInt64(second)
	b.PrependInt64(first)
}

// message appends an encapsulated message: continuation marker, metadata length,
// metadata, body. Its digest is written into its own metadata.
func (e *encoder) message(out []byte, header byte, meta []keyValue, prev sum, table func() flatbuffers.UOffsetT) ([]byte, block, sum) {
	b := e.fb
	b.Reset()
	// Created first, so that it ends up last: see digestTail.
	digest := b.CreateString(zeroDigest)
	head := table()
	custom := keyValues(b, meta, digest)
	b.StartObject(5)
	b.PrependInt16Slot(0, metadataV5, 0)
	b.PrependByteSlot(1, header, 0)
	b.PrependUOffsetTSlot(2, head, 0)
	b.PrependInt64Slot(3, int64(len(e.body)), 0)
	b.PrependUOffsetTSlot(4, custom, 0)
	b.Finish(b.EndObject())

	start := len(out)
	fb := b.FinishedBytes()
	padded := (len(fb) + 7) &^ 7
	out = binary.LittleEndian.AppendUint32(out, math.MaxUint32)
	out = binary.LittleEndian.AppendUint32(out, uint32(padded))
	out = append(out, fb...)
	out = append(out, make([]byte, padded-len(fb))...)
	out = append(out, e.body...)
	field := 8 + len(fb) - digestTail
	s := digestOf(prev, out[start:], field)
	hex.Encode(out[start+field:], s[:])
	return out, block{int64(start), int64(len(e.body)), int32(8 + padded)}, s
}

// keyValues builds a custom metadata vector that ends with the digest's entry.
func keyValues(b *flatbuffers.Builder, meta []keyValue, digest flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	entries := make([]flatbuffers.UOffsetT, 0, len(meta)+1)
	for _, kv := range meta {
		entries = append(entries, keyValueTable(b, kv.key, b.CreateString(kv.value)))
	}
	entries = append(entries, keyValueTable(b, keyDigest, digest))
	return b.CreateVectorOfTables(entries)
}

func keyValueTable(b *flatbuffers.Builder, key string, value flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	k := b.CreateString(key)
	b.StartObject(2)
	b.PrependUOffsetTSlot(0, k, 0)
	b.PrependUOffsetTSlot(1, value, 0)
	return b.EndObject()
}
