package arrowfile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
)

func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		text   string
		period int
		want   bool
	}{
		{"", 1, false}, {"a", 1, false}, {"aa", 1, true}, {"aab", 1, false}, {"abab", 2, true}, {"abab", 1, false},
		{"abab", 0, false}, {"ababa", 2, true}, {"abcabd", 3, false}, {"abcabc", 3, true}, {"abcabc", 6, false},
	} {
		if got := repeats([]byte(c.text), c.period); got != c.want {
			t.Errorf("%q every %d: %v", c.text, c.period, got)
		}
	}
	if repeats(make([]byte, 4*maxPeriod), maxPeriod+1) {
		t.Error("a period above the bound")
	}
}

func TestRiseOf(t *testing.T) {
	for _, c := range []struct {
		offsets []uint32
		step    uint32
		ok      bool
	}{
		{nil, 0, false}, {[]uint32{0}, 0, false}, {[]uint32{0, 3}, 3, true}, {[]uint32{0, 3, 6, 9}, 3, true},
		{[]uint32{0, 0, 0}, 0, true}, {[]uint32{0, 3, 6, 8}, 0, false}, {[]uint32{0, 0, 1}, 0, false}, {[]uint32{0, 1 << 20}, 0, false},
	} {
		var b []byte
		for _, o := range c.offsets {
			b = binary.LittleEndian.AppendUint32(b, o)
		}
		if step, ok := riseOf(b); step != c.step || ok != c.ok {
			t.Errorf("%v: %d, %v", c.offsets, step, ok)
		}
	}
}

// A kept frame is the one that compressing again would make, also when the store was
// emptied in between, and for buffers that differ in one property only.
func TestKeptFramesAreTheSame(t *testing.T) {
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	f := &enc.frames
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 3000 {
		period := 1 + r.IntN(6)
		what := make([]byte, period)
		for k := range what {
			what[k] = byte(r.IntN(3))
		}
		b := bytes.Repeat(what, 2+r.IntN(60))
		if got, want := f.repeated(b, period, repeats(b, period)), enc.zstd.EncodeAll(b, nil); !bytes.Equal(got, want) {
			t.Fatalf("%d: frame of %x", i, b)
		}
		step := uint32(r.IntN(4))
		var offsets []byte
		for k := range uint32(2 + r.IntN(40)) {
			offsets = binary.LittleEndian.AppendUint32(offsets, k*step)
		}
		s, ok := riseOf(offsets)
		if got, want := f.rising(offsets, s, ok), enc.zstd.EncodeAll(offsets, nil); !bytes.Equal(got, want) {
			t.Fatalf("%d: frame of offsets of step %d", i, step)
		}
		if i%1000 == 999 {
			f.size = maxFrames // the next new frame empties the store
		}
	}
	if len(f.kept) == 0 || f.size > maxFrames {
		t.Errorf("%d frames of %d bytes", len(f.kept), f.size)
	}
	if f.repeated([]byte("ab"), 1, false) != nil || f.rising([]byte("ab"), 1, false) != nil {
		t.Error("a frame for what is not known")
	}
}

// The writer's test for null in the word around a flag sees that flag only.
func TestGuardsSeeOneByte(t *testing.T) {
	type row struct {
		flags [16]bool
		word  uintptr
	}
	for i := range 16 {
		s := spec{guard: guardByte, guardAt: uintptr(i)}
		calls := 0
		s.put = func(*column, unsafe.Pointer) { calls++ }
		p := program{stepOf(&s, nil)}
		r := row{word: ^uintptr(0)}
		for k := range r.flags {
			r.flags[k] = k != i
		}
		if p.run(unsafe.Pointer(&r)); calls != 0 {
			t.Errorf("flag %d is not set", i)
		}
		r = row{}
		r.flags[i] = true
		if p.run(unsafe.Pointer(&r)); calls != 1 {
			t.Errorf("flag %d is set", i)
		}
	}
}

// A column that has no value under a null struct, as other writers may write it.
func TestNullStructsHideTheirChildren(t *testing.T) {
	specs := []spec{optInt64("n", func(o *decision.Opt[int64]) *decision.Opt[int64] { return o }).spec}
	v := newVectors([]*shape{{name: "s", typ: typeStruct, dict: noDict, children: shapesOf(specs)}})[0]
	v.n, v.nulls, v.valid = 3, 1, []byte{0b101}
	k := v.children[0]
	k.n, k.data = 3, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(make([]byte, 8), 7), 9)
	l, err := bindGroup(&spec{fields: specs}, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := []decision.Opt[int64]{decision.Some[int64](1), decision.Some[int64](1), decision.Some[int64](1)}
	l.fill(0, placesOf(rows))
	if want := [3]decision.Opt[int64]{decision.Some[int64](0), {}, decision.Some[int64](9)}; [3]decision.Opt[int64](rows) != want {
		t.Errorf("rows %v", rows)
	}
}

// A frame that comes again is not decoded again; any other one is, also after an error.
func TestHeldFramesAreTheirOwn(t *testing.T) {
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	z, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	buffer := func(b byte, n int) []byte {
		return enc.zstd.EncodeAll(bytes.Repeat([]byte{b}, n), binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	a, b, long := buffer('a', 4000), buffer('b', 4000), buffer('a', 5000)
	torn := bytes.Clone(a)
	torn[len(torn)-1] ^= 1
	d, memory := decoder{zstd: z}, held{}
	for i, part := range [][]byte{a, a, b, a, long, a, torn, a, torn, b} {
		want := byte('a')
		if bytes.Equal(part, b) {
			want = 'b'
		}
		got, err := d.inflate(part, &memory)
		if bytes.Equal(part, torn) {
			if err == nil {
				t.Fatalf("step %d: a torn frame was read", i)
			}
			continue
		}
		if n := binary.LittleEndian.Uint64(part); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{want}, int(n))) {
			t.Fatalf("step %d: %d bytes, %v", i, len(got), err)
		}
	}
}

// Four numbers at a time, against one by one.
func TestAllBelow16(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	outcomes := map[bool]int{}
	for range 20000 {
		data := make([]byte, 2*r.IntN(9))
		limit := []int{0, 1, 5, 4096, 1<<15 - 1, 1 << 15, 1 << 20}[r.IntN(7)]
		want := true
		for i := 0; i < len(data); i += 2 {
			v := r.IntN(max(min(limit, 1<<15), 1))
			if r.IntN(12) == 0 {
				v = []int{limit, limit - 1, limit + 1, 1 << 15, 1<<16 - 1}[r.IntN(5)] & 0xffff
			}
			binary.LittleEndian.PutUint16(data[i:], uint16(v))
			want = want && int(int16(v)) >= 0 && v < limit
		}
		if got := allBelow16(data, limit); got != want {
			t.Fatalf("%x below %d: %v, want %v", data, limit, got, want)
		}
		outcomes[want]++
	}
	if outcomes[true] < 1000 || outcomes[false] < 1000 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestOnesIn(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for n := range 200 {
		bitmap := make([]byte, (n+7)/8)
		want := 0
		for i := range bitmap {
			bitmap[i] = byte(r.Uint32()) // beyond the last bit too
		}
		for i := range n {
			want += int(bitmap[i>>3] >> (i & 7) & 1)
		}
		if got := onesIn(bitmap, n); got != want {
			t.Errorf("%d of %d bits, want %d", got, n, want)
		}
	}
}
