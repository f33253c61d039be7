package arrowfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/clefbench/clefbench/decision"
)

// strideCases are buffers of values by name; the width ends the name.
func strideCases(seed uint64, n int) map[string][]byte {
	r := rand.New(rand.NewPCG(seed, 5))
	at := time.Unix(1_700_000_000, 0)
	cases := map[string][]byte{}
	add := func(name string, value func(i int) []byte) {
		var b []byte
		for i := range n {
			b = append(b, value(i)...)
		}
		cases[name] = b
	}
	u64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	u32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	add("ids/16", func(i int) []byte {
		id := decision.NewID(at.Add(time.Duration(i) * 120 * time.Microsecond))
		return id[:]
	})
	add("rare ids/16", func(i int) []byte { id := decision.NewID(at.Add(time.Duration(i) * time.Minute)); return id[:] })
	add("random/16", func(int) []byte { return append(u64(r.Uint64()), u64(r.Uint64())...) })
	add("times/8", func(i int) []byte { return u64(uint64(at.UnixNano()) + uint64(i)*120_000 + uint64(r.IntN(90_000))) })
	add("durations/8", func(int) []byte { return u64(uint64(800 + r.IntN(4000))) })
	add("long durations/8", func(int) []byte { return u64(uint64(r.ExpFloat64() * 3e6)) })
	add("signs/8", func(int) []byte { return u64(uint64(int64(r.IntN(2000) - 1000))) })
	add("bursts/8", func(i int) []byte { return u64(uint64(i/97)<<40 | uint64(r.IntN(1<<14))) })
	add("steps of three/4", func(i int) []byte { return u32(uint32(3 * i)) })
	add("steps of twelve/4", func(i int) []byte { return u32(uint32(12 * i)) })
	add("small/4", func(int) []byte { return u32(uint32(r.IntN(250))) })
	add("few/8", func(int) []byte { return u64(uint64(r.IntN(5)) << 20) })
	add("prices/8", func(int) []byte { return u64(uint64(1000 * (40 + r.IntN(60)))) })
	sticky := uint64(0)
	add("sticky/8", func(int) []byte {
		if r.IntN(3) == 0 {
			sticky = uint64(r.IntN(1 << 16))
		}
		return u64(sticky)
	})
	add("constant/8", func(int) []byte { return u64(77) })
	return cases
}

func widthOf(name string) (width int) {
	fmt.Sscanf(filepath.Base(name), "%d", &width)
	return width
}

// Frames of our own are read by the zstd package, in full and with their checksum.
func TestStridedFramesDecode(t *testing.T) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	var s strider
	made := map[string]int{}
	for _, n := range []int{64, 65, 200, 500, 1000, 8192, 8193, 20000, 65536} {
		for name, b := range strideCases(uint64(n), n) {
			frame, ok := s.frame([]byte("before"), b, widthOf(name))
			if !ok {
				if string(frame) != "before" {
					t.Fatalf("%s: something was appended", name)
				}
				continue
			}
			made[name]++
			got, err := dec.DecodeAll(frame[len("before"):], nil)
			if err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%s of %d: %d bytes of %d, %v", name, n, len(got), len(b), err)
			}
			frame[len(frame)-1] ^= 1
			if _, err := dec.DecodeAll(frame[len("before"):], nil); err == nil {
				t.Fatalf("%s: a wrong checksum was read", name)
			}
		}
	}
	for _, name := range []string{"ids/16", "times/8", "durations/8", "bursts/8", "prices/8", "steps of three/4", "small/4"} {
		if made[name] < 5 {
			t.Errorf("%s: %d strided frames", name, made[name])
		}
	}
	for _, name := range []string{"random/16", "few/8", "sticky/8", "constant/8"} {
		if made[name] > 0 {
			t.Errorf("%s: %d strided frames", name, made[name])
		}
	}
}

// They are never much larger than the general encoder's, and smaller where it counts: of
// values of a small set a few bits larger, at a third of the time.
func TestStridedFramesAreSmall(t *testing.T) {
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range strideCases(1, 8192) {
		frame, ok := enc.strider.frame(nil, b, widthOf(name))
		if !ok {
			continue
		}
		general := enc.zstd.EncodeAll(b, nil)
		t.Logf("%-20s %7d bytes, %7d by the general encoder", name, len(frame), len(general))
		if len(frame) > len(general)+len(general)/8 {
			t.Errorf("%s: %d bytes, the general encoder needs %d", name, len(frame), len(general))
		}
	}
}

// Random mixtures: values whose low, high or middle bytes vary, with breaks anywhere.
func TestStridedFramesOfRandomColumns(t *testing.T) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(6, 6))
	var s strider
	made := 0
	for range 3000 {
		width := []int{4, 8, 16}[r.IntN(3)]
		n := strideMin/width + r.IntN(2000)
		b := make([]byte, 0, n*width)
		value := make([]byte, width)
		lo := r.IntN(width)
		hi := lo + 1 + r.IntN(width-lo)
		breaks := 1 + r.IntN(400)
		for range n {
			for k := lo; k < hi; k++ {
				value[k] = byte(r.Uint32()) >> r.IntN(3)
			}
			if r.IntN(breaks) == 0 {
				value[r.IntN(width)]++
			}
			b = append(b, value...)
		}
		frame, ok := s.frame(nil, b, width)
		if !ok {
			continue
		}
		made++
		if got, err := dec.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("width %d, bytes %d to %d: %v", width, lo, hi, err)
		}
	}
	if made < 500 {
		t.Errorf("%d frames", made)
	}
}

// The reference implementation reads them, too.
func TestTheZstdToolReadsStridedFrames(t *testing.T) {
	tool, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("no zstd here")
	}
	var s strider
	for name, b := range strideCases(2, 20000) {
		frame, ok := s.frame(nil, b, widthOf(name))
		if !ok {
			continue
		}
		path := filepath.Join(t.TempDir(), "f.zst")
		if err := os.WriteFile(path, frame, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := exec.Command(tool, "-dc", path).Output(); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(b), err)
		}
	}
}

// The checksums of another implementation's frames are the oracle.
func TestXXH64(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(8, 8))
	for n := 1; n < 200; n++ {
		b := make([]byte, n+(n%7)*1000)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		frame := enc.EncodeAll(b, nil)
		if got, want := uint32(xxh64(b)), binary.LittleEndian.Uint32(frame[len(frame)-4:]); got != want {
			t.Fatalf("%d bytes: %x, want %x", len(b), got, want)
		}
	}
	if got := xxh64(nil); got != 0xef46db3751d8e999 { // of the specification
		t.Errorf("of nothing: %x", got)
	}
}

// At the slower levels the smaller of both frames is kept.
func TestThoroughEncodersKeepTheSmallerFrame(t *testing.T) {
	e, err := newEncoder(LevelBetter)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[bool]int{}
	for name, b := range strideCases(3, 8192) {
		own, ok := e.strider.frame(nil, b, widthOf(name))
		general := e.zstd.EncodeAll(b, nil)
		got := e.compress(nil, b, widthOf(name))
		want := general
		if ok && len(own) <= len(general) {
			want = own
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d and %d", name, len(got), len(own), len(general))
		}
		kept[ok && len(own) <= len(general)]++
	}
	if kept[true] == 0 || kept[false] == 0 {
		t.Errorf("kept %v", kept)
	}
}

// Frames without matches: of nothing but noise, of one byte, and of what a Huffman code
// shortens.
func TestUnmatchedFramesDecode(t *testing.T) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 9))
	var s strider
	for _, n := range []int{1, 31, 32, 255, 256, 4095, 4096, maxBlock - 1, maxBlock, maxBlock + 1, 3*maxBlock + 77} {
		for shift := range 9 {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(r.Uint32()) >> shift
			}
			frame := s.unmatched(nil, b)
			if got, err := dec.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%d bytes of %d bits: %v", n, 8-shift, err)
			}
			if shift == 4 && n > 4096 && len(frame) > n*6/10 {
				t.Errorf("%d bytes of 4 bits in %d", n, len(frame))
			}
		}
	}
}

// The search for matches is left out where it finds nothing, and taken up again when
// numbers begin to repeat.
func TestNumbersAreTriedAgain(t *testing.T) {
	e, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(10, 10))
	c := &column{shape: shape{typ: typeFloat32, width: 4, dict: noDict}}
	sizes := make([]int, 3*unmatchedBatches)
	for i := range sizes {
		c.data = c.data[:0]
		for k := range 4000 {
			v := float32(r.NormFloat64())
			if i > unmatchedBatches/2 {
				v = float32(k % 50) // from here on they repeat
			}
			c.data = binary.LittleEndian.AppendUint32(c.data, math.Float32bits(v))
		}
		frame := e.numbers(nil, c)
		if got, err := dec.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, c.data) {
			t.Fatalf("batch %d: %v", i, err)
		}
		sizes[i] = len(frame)
	}
	if sizes[1] > sizes[0]+sizes[0]/5 {
		t.Errorf("noise in %d bytes, %d with matches", sizes[1], sizes[0])
	}
	if last := sizes[len(sizes)-1]; last > 1000 || sizes[unmatchedBatches] > 1000 {
		t.Errorf("repeating numbers in %v bytes", sizes)
	}
}
