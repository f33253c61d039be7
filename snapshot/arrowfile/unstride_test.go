package arrowfile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// roomFor returns memory for n bytes as a decoder has it, dirty from what was there before.
func roomFor(n int) []byte { return bytes.Repeat([]byte{0xa5}, n+decodeSlack)[:n] }

// All frames of our own are read the short way, whatever was read before with the same
// memory; those of the general encoder are not, unless they are of a like kind.
func TestOwnFramesAreReadTheShortWay(t *testing.T) {
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	var s strider
	var u unstrider
	short := map[string]int{}
	check := func(name string, frame, want []byte) {
		t.Helper()
		out := roomFor(len(want))
		if !u.frame(out, frame) {
			t.Fatalf("%s: %d values are not read", name, len(want)/widthOf(name))
		}
		if !bytes.Equal(out, want) {
			t.Fatalf("%s: %d values are wrong", name, len(want)/widthOf(name))
		}
		short[name]++
	}
	for _, n := range []int{128, 200, 1000, 8192, 20000, 65536} {
		for name, b := range strideCases(uint64(n), n) {
			if frame, ok := s.frame(nil, b, widthOf(name)); ok {
				check(name, frame, b)
			}
			check("unmatched/"+name, s.unmatched(nil, b), b)
			out := roomFor(len(b))
			if u.frame(out, enc.zstd.EncodeAll(b, nil)) && !bytes.Equal(out, b) {
				t.Fatalf("%s: a frame of another encoder is read wrong", name)
			}
		}
	}
	for _, name := range []string{"ids/16", "times/8", "durations/8", "bursts/8", "steps of three/4", "unmatched/ids/16", "unmatched/few/8"} {
		if short[name] == 0 {
			t.Errorf("%s: no frame was read", name)
		}
	}
}

// A frame that is cut, of another length, or with any bit of it changed is not read.
func TestDamagedFramesAreNotReadTheShortWay(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var s strider
	var u unstrider
	for name, b := range strideCases(3, 600) {
		frame, ok := s.frame(nil, b, widthOf(name))
		if !ok {
			frame = s.unmatched(nil, b)
		}
		if u.frame(roomFor(len(b)+1), frame) || u.frame(roomFor(len(b)-1), frame) {
			t.Fatalf("%s: a wrong length is read", name)
		}
		for range 3000 {
			at, bit := r.IntN(len(frame)), byte(1)<<r.IntN(8)
			frame[at] ^= bit
			out := roomFor(len(b))
			if u.frame(out, frame) && !bytes.Equal(out, b) {
				t.Fatalf("%s: byte %d, bit %b: damage is read", name, at, bit)
			}
			frame[at] ^= bit
		}
		for range 300 {
			if n := r.IntN(len(frame)); u.frame(roomFor(len(b)), frame[:n]) {
				t.Fatalf("%s: %d bytes of %d are read", name, n, len(frame))
			}
		}
	}
}

// FuzzUnstride holds what is read the short way against the zstd package. The checksum is
// made anew for what was decoded: with it, the fuzzer would find nothing but failures.
func FuzzUnstride(f *testing.F) {
	var s strider
	for _, n := range []int{256, 600} {
		for name, b := range strideCases(uint64(n), n) {
			if frame, ok := s.frame(nil, b, widthOf(name)); ok {
				f.Add(frame[9:len(frame)-4], len(b))
			}
			frame := s.unmatched(nil, b)
			f.Add(frame[9:len(frame)-4], len(b))
		}
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, blocks []byte, n int) {
		if n < 0 || n > 1<<19 {
			t.Skip("too much memory")
		}
		var u unstrider
		out := roomFor(n)
		if !u.blocks(out, blocks) {
			return
		}
		frame := append(frameHeader(nil, out), blocks...)
		frame = binary.LittleEndian.AppendUint32(frame, uint32(xxh64(out)))
		if got, err := dec.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, out) {
			t.Fatalf("%d bytes, the zstd package reads %d: %v", n, len(got), err)
		}
		if !u.frame(roomFor(n), frame) {
			t.Fatal("read once and not twice")
		}
	})
}
