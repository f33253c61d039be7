package arrowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
)

// hostileWords are what a 4-byte and what an 8-byte number is replaced with.
func hostileWords(size int) [][]byte {
	var out [][]byte
	for _, v := range []uint64{7, 0x7fffffff, 1 << 40, 1 << 62, ^uint64(0)} {
		b := binary.LittleEndian.AppendUint64(nil, v)
		out = append(out, b[:size])
	}
	return out
}

// Every number in the metadata of a file without digests, replaced by hostile ones: no
// panic, no endless loop, and no memory that the file does not justify.
func TestHostileNumbersAreBounded(t *testing.T) {
	_, data := oneSegment(t, randomRows(newGen(91), 4), 4)
	f, err := newFile("x.arrow", data, (*File).loadSealed)
	if err != nil {
		t.Fatal(err)
	}
	start, err := findFooter(data)
	if err != nil {
		t.Fatal(err)
	}
	type part struct{ from, to int64 }
	parts := []part{{f.schema.offset, f.schema.end()}, {int64(start), int64(len(data))}}
	for _, m := range append(f.labels[:2:2], f.batches...) {
		parts = append(parts, part{m.offset, m.offset + m.metaLen})
	}
	outcomes := map[bool]int{}
	img := bytes.Clone(data)
	var before, after runtime.MemStats
	for _, p := range parts {
		for at := p.from; at+8 <= p.to; at += 4 {
			runtime.ReadMemStats(&before)
			size := 4
			if (at/4)%2 == 0 {
				size = 8
			}
			for _, word := range hostileWords(size) {
				copy(img[at:], word)
				outcomes[readHostile(t, img)]++
				copy(img[at:], data[at:at+8])
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 5*(4<<20) {
				t.Fatalf("%d bytes were allocated for 5 files of %d, word at %d", used, len(data), at)
			}
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func readHostile(t *testing.T, img []byte) bool {
	t.Helper()
	f, err := newFile("x.arrow", img, (*File).loadForeign)
	if err == nil {
		err = drain(f)
	}
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrSchema) && !errors.Is(err, ErrVersion) {
		t.Fatalf("an error of no kind: %v", err)
	}
	return err == nil
}

// A frame cannot hold more than its blocks allow; what it declares beyond that is refused
// before memory is taken.
func TestZipBombsAreRefused(t *testing.T) {
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	z, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	const size = 32 << 20
	frame := enc.zstd.EncodeAll(make([]byte, size), nil)
	inflate := func(declared uint64, frame []byte) error {
		d := decoder{zstd: z}
		var memory held
		_, err := d.inflate(append(binary.LittleEndian.AppendUint64(nil, declared), frame...), &memory)
		if cap(memory.data) > 2*size {
			t.Errorf("%d bytes for %d declared", cap(memory.data), declared)
		}
		return err
	}
	if err := inflate(size, frame); err != nil {
		t.Errorf("an honest frame of %d bytes for %d: %v", len(frame), size, err)
	}
	for name, err := range map[string]error{
		"declared too little": inflate(size-1, frame), "declared too much": inflate(size+1, frame),
		"beyond the limit": inflate(maxBuffer+1, frame), "negative": inflate(1<<63, frame),
		"tiny frame": inflate(128<<20, frame[:20]), "nothing declared": inflate(0, frame),
	} {
		if err == nil {
			t.Errorf("%s was decoded", name)
		}
	}
	d := decoder{zstd: z, spent: maxBatch - size + 1}
	var memory held
	if _, err := d.inflate(append(binary.LittleEndian.AppendUint64(nil, size), frame...), &memory); err == nil {
		t.Error("a batch beyond its limit was decoded")
	}
}

// The fault of the stock readers that this package exists to avoid: a changed byte inside
// a compressed buffer. They return wrong rows; DecodeAll compares the checksum.
func TestFlipsInFramesAreFoundWithoutDigests(t *testing.T) {
	rows := randomRows(newGen(92), 200)
	_, data := oneSegment(t, rows, 200)
	f, err := newFile("x.arrow", data, (*File).loadSealed)
	if err != nil {
		t.Fatal(err)
	}
	m := f.batches[0]
	found, harmless := 0, 0
	for at := m.offset + m.metaLen; at < m.end(); at += 97 {
		img := bytes.Clone(data)
		img[at] ^= 0x10
		file, err := newFile("x.arrow", img, (*File).loadForeign)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(file)
		if err != nil {
			found++
			continue
		}
		diff(t, rows, got) // padding, or a column that no row needs
		harmless++
	}
	if found < 20*harmless || found == 0 {
		t.Errorf("%d found, %d harmless", found, harmless)
	}
}
