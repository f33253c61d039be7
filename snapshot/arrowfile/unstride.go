package arrowfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/compress/huff0"
)

// unstrider reads the frames that a strider makes, in a third of the time that a decoder of
// any frame takes: what is the same in all values of a block is written as a constant, not
// as one match for each. Of frames that are anything else, or damaged, it says that it
// cannot read them, and leaves it to the general decoder to find out what they are.
type unstrider struct {
	huff     *huff0.Scratch
	literals []byte
	// out is what is decoded, up to at; distance is the last one told, 0 before.
	out          []byte
	at, distance int
}

// unstrideSlack is what is written or read past the end of values, whole words at a time.
const unstrideSlack = 32

// frame decodes a frame into out, which has the length of the content and room for
// unstrideSlack more.
func (u *unstrider) frame(out, frame []byte) bool {
	const header, checksum = 9, 4
	n := len(out)
	if len(frame) < header+checksum || binary.LittleEndian.Uint32(frame) != 0xfd2fb528 || frame[4] != 0xa4 ||
		uint64(binary.LittleEndian.Uint32(frame[5:])) != uint64(n) {
		return false
	}
	sum := binary.LittleEndian.Uint32(frame[len(frame)-checksum:])
	return u.blocks(out, frame[header:len(frame)-checksum]) && uint32(xxh64(out)) == sum
}

// blocks decodes all blocks of a frame.
func (u *unstrider) blocks(out, b []byte) bool {
	u.out, u.at, u.distance = out, 0, 0
	for last := false; !last; {
		if len(b) < 3 {
			return false
		}
		h := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		size := h >> 3
		if last = h&1 != 0; size > maxBlock || size > len(b)-3 || !u.block(b[3:3+size], h>>1&3) {
			return false
		}
		b = b[3+size:]
	}
	return len(b) == 0 && u.at == len(out)
}

// block decodes a block that is raw, has a Huffman code only, or has sequences that are all
// alike.
func (u *unstrider) block(b []byte, kind int) bool {
	if kind == 0 && len(b) <= len(u.out)-u.at {
		u.at += copy(u.out[u.at:], b)
		return true
	}
	if kind != 2 {
		return false
	}
	packed, size, rest, ok := literalsOf(b)
	if !ok || len(rest) == 0 || size > maxBlock {
		return false
	}
	n := int(rest[0])
	switch {
	case n == 0:
		if len(rest) != 1 || size > len(u.out)-u.at || !u.expand(u.out[u.at:u.at+size:u.at+size], packed) {
			return false
		}
		u.at += size
		return true
	case n == 255 && len(rest) > 2:
		n, rest = int(rest[1])+int(rest[2])<<8+0x7f00, rest[2:]
	case n >= 128 && len(rest) > 1:
		n, rest = (n-128)<<8+int(rest[1]), rest[1:]
	}
	q, ok := u.sequencesOf(rest[1:], n)
	if !ok || size < n*q.literals || size+n*q.same > min(len(u.out)-u.at, maxBlock) || u.at+q.literals < q.distance {
		return false
	}
	if cap(u.literals) < size+unstrideSlack {
		u.literals = make([]byte, size+unstrideSlack)
	}
	if !u.expand(u.literals[:size:size], packed) {
		return false
	}
	u.distance = q.distance
	u.run(n, q)
	u.at += copy(u.out[u.at:], u.literals[n*q.literals:size])
	return true
}

// literalsOf reads the header of a literal section; packed has the length size when the
// literals have no code.
func literalsOf(b []byte) (packed []byte, size int, rest []byte, ok bool) {
	if len(b) < 5 {
		return nil, 0, nil, false
	}
	h := uint64(binary.LittleEndian.Uint32(b)) | uint64(b[4])<<32
	header, length := 0, 0
	switch h & 15 {
	case 0, 8:
		header, size = 1, int(h>>3&31)
	case 4:
		header, size = 2, int(h>>4&0xfff)
	case 12:
		header, size = 3, int(h>>4&0xfffff)
	case 2 | 2<<2:
		header, size, length = 4, int(h>>4&0x3fff), int(h>>18&0x3fff)
	case 2 | 3<<2:
		header, size, length = 5, int(h>>4&0x3ffff), int(h>>22&0x3ffff)
	default:
		return nil, 0, nil, false
	}
	if h&3 == 0 {
		length = size
	} else if length >= size {
		return nil, 0, nil, false
	}
	if length > len(b)-header {
		return nil, 0, nil, false
	}
	return b[header : header+length], size, b[header+length:], true
}

// expand decodes literals; dst has their length.
func (u *unstrider) expand(dst, packed []byte) bool {
	if len(packed) == len(dst) {
		copy(dst, packed)
		return true
	}
	var err error
	if u.huff, packed, err = huff0.ReadTable(packed, u.huff); err != nil {
		return false
	}
	u.huff.MaxDecodedSize = len(dst)
	got, err := u.huff.Decoder().Decompress4X(dst[:0], packed)
	return err == nil && len(got) == len(dst)
}

// sequences are a number of literals and a match, the same for all of a block.
type sequences struct{ literals, same, distance int }

// sequencesOf reads the sequences of a block: constants for the three codes, then the bits
// of the distance. The matches have to be those of the value before.
func (u *unstrider) sequencesOf(b []byte, n int) (q sequences, ok bool) {
	if n == 0 || len(b) != 5 || b[0] != 0x54 || b[1] == 0 || b[1] > 15 || b[3] > 13 || b[4] == 0 || int(b[2]) != bits.Len8(b[4])-1 {
		return q, false
	}
	q = sequences{int(b[1]), int(b[3]) + minMatch, u.distance}
	if b[4] > 3 && n == 1 {
		q.distance = int(b[4]) - 3
	} else if b[4] != 1 {
		return q, false
	}
	return q, q.distance == q.literals+q.same
}

// run writes n values. What is the same comes from the value before the first.
func (u *unstrider) run(n int, q sequences) {
	var before [unstrideSlack]byte
	copy(before[:], u.out[u.at+q.literals-q.distance:u.at])
	same, more := binary.LittleEndian.Uint64(before[:]), binary.LittleEndian.Uint64(before[8:])
	out, lit := u.out[u.at:len(u.out)+unstrideSlack], u.literals[:cap(u.literals)]
	u.at += n * q.distance
	if q.distance <= 8 {
		for ; n > 0; n-- {
			binary.LittleEndian.PutUint64(out, binary.LittleEndian.Uint64(lit))
			binary.LittleEndian.PutUint64(out[q.literals:], same)
			out, lit = out[q.distance:], lit[q.literals:]
		}
		return
	}
	for ; n > 0; n-- {
		binary.LittleEndian.PutUint64(out, binary.LittleEndian.Uint64(lit))
		binary.LittleEndian.PutUint64(out[8:], binary.LittleEndian.Uint64(lit[8:]))
		binary.LittleEndian.PutUint64(out[q.literals:], same)
		binary.LittleEndian.PutUint64(out[q.literals+8:], more)
		out, lit = out[q.distance:], lit[q.literals:]
	}
}
