package arrowfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/compress/huff0"
)

// strider makes zstd frames of columns of numbers and ids whose neighbours agree in their
// first or in their last bytes: times, durations, ids that begin with a time. For a general
// matcher such columns are the worst case: it finds one short match for each value and
// describes each anew. Here all matches are alike (the value before, the same bytes), which
// zstd writes as a constant of the block, so that only the bytes that differ are stored: a
// tenth of the time, and less space. The frames are plain zstd (RFC 8878), with checksum.
type strider struct {
	huff     huff0.Scratch
	literals []byte
	// vain counts the short sections in a row, in one frame, that a Huffman code did not
	// shorten: see literalSection.
	vain int
}

const (
	// runBytes is what a run of values costs beyond the bytes that differ: headers of two
	// blocks and one value in full.
	runBytes = 24
	// minRun is the shortest run of values that becomes a block.
	minRun = 4
	// maxBlock is zstd's bound for the content of a block.
	maxBlock = 128 << 10
	// minMatch is zstd's shortest match.
	minMatch = 3
	// strideMin and strideMax bound the buffers that are looked at.
	strideMin, strideMax = 1 << 10, 8 << 20
	// narrow is the number of differing bytes up to which a value costs no more than the
	// general encoder's reference to an earlier one does, some 14 bits.
	narrow = 3
	// shortSection is the length of literals for which making a code is what costs most.
	shortSection = 4 << 10
	// strideSample is the number of values that a hopeless column is recognised by.
	strideSample = 512
)

// stride says which bytes of a value are those of the value before: from lo to hi.
type stride struct{ width, lo, hi int }

// same and differ are the numbers of bytes of either kind.
func (p stride) same() int   { return p.hi - p.lo }
func (p stride) differ() int { return p.width - p.same() }

// frame appends the frame of a buffer of values to out; false when the general encoder
// is the better choice.
func (s *strider) frame(out, b []byte, width int) ([]byte, bool) {
	if (width != 4 && width != 8 && width != 16) || len(b)%width != 0 || len(b) < strideMin || len(b) > strideMax {
		return out, false
	}
	if _, ok := strideOf(b[:min(len(b), strideSample*width)], width); !ok {
		return out, false
	}
	p, ok := strideOf(b, width)
	if !ok || fewValues(b, p) {
		return out, false
	}
	s.vain = 0
	out = s.blocks(frameHeader(out, b), b, p)
	return binary.LittleEndian.AppendUint32(out, uint32(xxh64(b))), true
}

// frameHeader appends zstd's magic, the mark of one segment with a checksum and a length
// of 4 bytes, and the length.
func frameHeader(out, b []byte) []byte {
	out = append(out, 0x28, 0xb5, 0x2f, 0xfd, 0xa4)
	return binary.LittleEndian.AppendUint32(out, uint32(len(b)))
}

// unmatched appends a frame that has a Huffman code and no matches.
func (s *strider) unmatched(out, b []byte) []byte {
	s.vain = 0
	out = frameHeader(out, b)
	for rest := b; len(rest) > 0; {
		part := rest[:min(maxBlock, len(rest))]
		rest = rest[len(part):]
		header := len(out)
		out = append(out, 0, 0, 0)
		s.literals = append(s.literals[:0], part...)
		if out = append(s.literalSection(out), 0); len(out)-header-3 >= len(part) {
			out = appendRaw(out[:header], part, len(rest) == 0)
		} else {
			out = blockHeader(out, header, len(out)-header-3, 2, len(rest) == 0)
		}
	}
	return binary.LittleEndian.AppendUint32(out, uint32(xxh64(b)))
}

// firstChanged and lastChanged are the first and last byte in which value i differs from
// the one before; -1 and width when they are the same.
func (p stride) changed(b []byte, at int) (first, last int) {
	switch p.width {
	case 4:
		x := binary.LittleEndian.Uint32(b[at:]) ^ binary.LittleEndian.Uint32(b[at-4:])
		return bits.TrailingZeros32(x) >> 3, 3 - bits.LeadingZeros32(x)>>3
	case 8:
		x := binary.LittleEndian.Uint64(b[at:]) ^ binary.LittleEndian.Uint64(b[at-8:])
		return bits.TrailingZeros64(x) >> 3, 7 - bits.LeadingZeros64(x)>>3
	}
	x := binary.LittleEndian.Uint64(b[at:]) ^ binary.LittleEndian.Uint64(b[at-16:])
	y := binary.LittleEndian.Uint64(b[at+8:]) ^ binary.LittleEndian.Uint64(b[at-8:])
	first, last = bits.TrailingZeros64(x)>>3, 15-bits.LeadingZeros64(y)>>3
	if x == 0 {
		first = 8 + bits.TrailingZeros64(y)>>3
	}
	if y == 0 {
		last = 7 - bits.LeadingZeros64(x)>>3
	}
	return first, last
}

// strideOf finds the bytes to take from the value before: a choice for the whole buffer
// that weighs each byte saved against the runs that it breaks.
func strideOf(b []byte, width int) (stride, bool) {
	var first, last [18]int
	whole := stride{width: width}
	for at := width; at < len(b); at += width {
		f, l := whole.changed(b, at)
		first[f]++
		last[l+1]++
	}
	n := len(b) / width
	best, least := whole, len(b)-len(b)/16
	breaks := 0
	for hi := 1; hi < width; hi++ { // the first bytes are the same
		breaks += first[hi-1]
		if cost := n*(width-hi) + breaks*runBytes; hi >= minMatch && width-hi <= 15 && cost < least {
			best, least = stride{width, 0, hi}, cost
		}
	}
	breaks = 0
	for lo := width - 1; lo > 0; lo-- { // the last bytes are the same
		breaks += last[lo+1]
		if cost := n*lo + breaks*runBytes; width-lo >= minMatch && lo <= 15 && cost < least {
			best, least = stride{width, lo, width}, cost
		}
	}
	repeated := n / 8
	if best.differ() <= narrow {
		repeated = n / 2
	}
	// Of many repeated values the general encoder finds longer matches.
	return best, best.same() > 0 && first[width] <= repeated
}

// fewValues reports whether the values seem to be of a small set. The general encoder
// refers to whole values then, which is the smaller the fewer they are and the more bytes a
// reference saves.
func fewValues(b []byte, p stride) bool {
	const sample = 256
	width, times := p.width, 2
	if p.differ() <= narrow {
		times = 8
	}
	var seen [16]uint64 // 1024 bits
	n := len(b) / width
	step := max(n/sample, 1)
	taken := 0
	for i := 0; i < n && taken < sample; i += step {
		v := uint64(0)
		for at := i * width; at < (i+1)*width; at += 4 {
			v = (v ^ uint64(binary.LittleEndian.Uint32(b[at:]))) * xxPrime1
		}
		seen[v>>60] |= 1 << (v >> 54 & 63)
		taken++
	}
	distinct := 0
	for _, w := range seen {
		distinct += bits.OnesCount64(w)
	}
	return times*distinct < taken
}

// blocks appends the blocks of a frame.
func (s *strider) blocks(out, b []byte, p stride) []byte {
	done, known := 0, false
	n := len(b) / p.width
	for from := 0; from < n; {
		to := p.run(b, from, n)
		if to-from >= minRun {
			start, end := from*p.width+p.hi, (to-1)*p.width+p.hi
			out = rawBlocks(out, b[done:start], false)
			if !known { // the distance is told once, and is the last one used from then on
				out = s.block(out, b, start, start+p.width, p, byte(p.width+3))
				start, known = start+p.width, true
			}
			for ; start < end; start += maxBlock {
				out = s.block(out, b, start, min(start+maxBlock, end), p, 1)
			}
			done = end
		}
		from = to
	}
	return rawBlocks(out, b[done:], true)
}

// run returns the end of the run of values that begins at a value.
func (p stride) run(b []byte, from, n int) int {
	for i := from + 1; i < n; i++ {
		first, last := p.changed(b, i*p.width)
		if (p.lo == 0 && first < p.hi) || (p.lo > 0 && last >= p.lo) {
			return i
		}
	}
	return n
}

// block appends a block of the sequences of bytes that differ and bytes that are the same,
// from the end of one same part to the end of another. distance is zstd's offset value: 1
// for the last distance, or the distance plus 3.
func (s *strider) block(out, b []byte, start, end int, p stride, distance byte) []byte {
	header := len(out)
	out = append(out, 0, 0, 0)
	s.gather(b, start, end, p)
	out = s.literalSection(out)
	n := (end - start) / p.width
	switch {
	case n < 128:
		out = append(out, byte(n))
	case n < 0x7f00:
		out = append(out, byte(n>>8)+128, byte(n))
	default:
		out = append(out, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	// All three codes are constants of the block. Lengths below 16 and matches below 35 are
	// their own codes; an offset value has the code of its highest bit and the bits below
	// it, after the bit that ends the stream.
	code := byte(bits.Len8(distance) - 1)
	out = append(out, 0x54, byte(p.differ()), code, byte(p.same()-minMatch), distance)
	return blockHeader(out, header, len(out)-header-3, 2, false)
}

// gather collects the bytes that differ.
func (s *strider) gather(b []byte, start, end int, p stride) {
	d := p.differ()
	n := (end - start) / p.width
	if need := n*d + 16; cap(s.literals) < need {
		s.literals = make([]byte, need)
	}
	lit := s.literals[:cap(s.literals)]
	at := 0
	for ; start < end; start += p.width {
		if start+16 <= len(b) { // whole words; the next ones overwrite what is too much
			binary.LittleEndian.PutUint64(lit[at:], binary.LittleEndian.Uint64(b[start:]))
			binary.LittleEndian.PutUint64(lit[at+8:], binary.LittleEndian.Uint64(b[start+8:]))
		} else {
			copy(lit[at:at+d], b[start:])
		}
		at += d
	}
	s.literals = lit[:n*d]
}

// literalSection appends the collected bytes, with a Huffman code when that pays. Of short
// sections two are tried in vain and no more: of times, each run's bytes are as random as
// those of the run before.
func (s *strider) literalSection(out []byte) []byte {
	n := len(s.literals)
	if n >= shortSection || (n >= 256 && s.vain < 2) {
		s.huff.Reuse = huff0.ReusePolicyNone
		if packed, _, err := huff0.Compress4X(s.literals, &s.huff); err == nil && len(packed) < n-n/32 {
			s.vain = 0
			return append(literalHeader(out, n, len(packed)), packed...)
		}
		s.vain++
	}
	switch {
	case n < 32:
		out = append(out, byte(n<<3))
	case n < 4096:
		out = append(out, byte(n<<4|1<<2), byte(n>>4))
	default:
		out = append(out, byte(n<<4|3<<2), byte(n>>4), byte(n>>12))
	}
	return append(out, s.literals...)
}

// literalHeader is the header of Huffman-coded bytes in four streams, with sizes of 14 or
// of 18 bits.
func literalHeader(out []byte, n, packed int) []byte {
	if n < 1<<14 && packed < 1<<14 {
		h := uint32(2) | 2<<2 | uint32(n)<<4 | uint32(packed)<<18
		return binary.LittleEndian.AppendUint32(out, h)
	}
	h := uint64(2) | 3<<2 | uint64(n)<<4 | uint64(packed)<<22
	out = binary.LittleEndian.AppendUint32(out, uint32(h))
	return append(out, byte(h>>32))
}

// rawBlocks appends bytes as they are.
func rawBlocks(out, b []byte, last bool) []byte {
	for len(b) > maxBlock {
		out = appendRaw(out, b[:maxBlock], false)
		b = b[maxBlock:]
	}
	if len(b) > 0 || last {
		out = appendRaw(out, b, last)
	}
	return out
}

func appendRaw(out, b []byte, last bool) []byte {
	header := len(out)
	out = append(out, 0, 0, 0)
	return append(blockHeader(out, header, len(b), 0, last), b...)
}

// blockHeader fills in the 3 bytes of a block's header.
func blockHeader(out []byte, at, size, kind int, last bool) []byte {
	h := size<<3 | kind<<1
	if last {
		h |= 1
	}
	out[at], out[at+1], out[at+2] = byte(h), byte(h>>8), byte(h>>16)
	return out
}
