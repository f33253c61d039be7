package arrowfile

import (
	"bytes"
	"encoding/binary"
)

// frames keeps the zstd frames of buffers that a few bytes describe: columns that are null
// throughout or have one value, and the offsets of lists of one length. Most columns of
// most recordings are like that, batch after batch, and compressing them again would be a
// good part of the work. The bytes in the file are the same either way.
type frames struct {
	compress func(out, b []byte, width int) []byte
	kept     map[string][]byte
	size     int
	key      []byte
}

// maxFrames bounds the bytes of the kept frames.
const maxFrames = 4 << 20

// maxPeriod bounds what is looked at as one repeated value.
const maxPeriod = 128

// repeats reports whether a buffer is its first bytes over and over again.
func repeats(b []byte, period int) bool {
	return period > 0 && period <= maxPeriod && len(b) >= 2*period && bytes.Equal(b[period:], b[:len(b)-period])
}

// riseOf is the difference between neighbours in a buffer of offsets, when all have the
// same; else 0 and false.
func riseOf(offsets []byte) (step uint32, ok bool) {
	if len(offsets) < 8 {
		return 0, false
	}
	step = binary.LittleEndian.Uint32(offsets[4:])
	if step > maxPeriod {
		return 0, false
	}
	for i := 4; i < len(offsets); i += 4 {
		if binary.LittleEndian.Uint32(offsets[i:])-binary.LittleEndian.Uint32(offsets[i-4:]) != step {
			return 0, false
		}
	}
	return step, true
}

// repeated returns the frame of a buffer that repeats its first bytes, nil when it does
// not.
func (f *frames) repeated(b []byte, period int, ok bool) []byte {
	if !ok || period > len(b) {
		return nil
	}
	return f.frame(b, 'r', b[:period], 0)
}

// rising returns the frame of offsets of a step.
func (f *frames) rising(b []byte, step uint32, ok bool) []byte {
	if !ok {
		return nil
	}
	return f.frame(b, 'o', binary.LittleEndian.AppendUint32(nil, step), 4)
}

// frame returns the frame of a buffer that its kind, its length and what describes it
// determine.
func (f *frames) frame(b []byte, kind byte, what []byte, width int) []byte {
	f.key = binary.LittleEndian.AppendUint64(append(f.key[:0], kind), uint64(len(b)))
	f.key = append(f.key, what...)
	frame, ok := f.kept[string(f.key)]
	if !ok {
		frame = f.compress(nil, b, width)
		if f.size += len(frame) + len(f.key); f.size > maxFrames {
			clear(f.kept)
			f.size = len(frame) + len(f.key)
		}
		f.kept[string(f.key)] = frame
	}
	return frame
}
