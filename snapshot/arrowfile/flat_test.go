package arrowfile

import (
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
)

// sample is a flatbuffer with a field of every sort that the reader knows.
func sample() []byte {
	b := flatbuffers.NewBuilder(64)
	inner := keyValueTable(b, "key", b.CreateString("value"))
	list := keyValues(b, []keyValue{{"a", "1"}, {"b", "2"}, {"a", "3"}}, b.CreateString(zeroDigest))
	blocks := blockVector(b, []block{{8, 16, 24}, {48, 32, 40}})
	name := b.CreateString("name")
	b.StartObject(9)
	b.PrependByteSlot(0, 7, 0)
	b.PrependInt16Slot(1, -2, 0)
	b.PrependInt32Slot(2, -3, 0)
	b.PrependInt64Slot(3, -4, 0)
	b.PrependUOffsetTSlot(4, name, 0)
	b.PrependUOffsetTSlot(5, inner, 0)
	b.PrependUOffsetTSlot(6, list, 0)
	b.PrependUOffsetTSlot(7, blocks, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

func TestFlatReadsWhatTheBuilderWrites(t *testing.T) {
	f := &flat{b: sample()}
	r := f.root()
	if r.u8(0) != 7 || r.i16(1, 0) != -2 || r.i32(2, 0) != -3 || r.i64(3, 0) != -4 || r.str(4) != "name" {
		t.Errorf("scalars: %d %d %d %d %q", r.u8(0), r.i16(1, 0), r.i32(2, 0), r.i64(3, 0), r.str(4))
	}
	if kv := r.sub(5); kv.str(0) != "key" || kv.str(1) != "value" {
		t.Errorf("table: %q %q", kv.str(0), kv.str(1))
	}
	if m := r.keyValues(6); m["a"] != "1" || m["b"] != "2" || m[keyDigest] != zeroDigest || len(m) != 3 {
		t.Errorf("metadata: %v", m)
	}
	if got := r.blocks(7); len(got) != 2 || got[0] != (block{8, 16, 24}) || got[1] != (block{48, 32, 40}) {
		t.Errorf("blocks: %v", got)
	}
	if f.err != nil {
		t.Error(f.err)
	}
}

func TestFlatAbsentFieldsAreDefaults(t *testing.T) {
	f := &flat{b: sample()}
	r := f.root()
	if r.u8(8) != 0 || r.i16(8, 5) != 5 || r.i32(20, 6) != 6 || r.i64(8, 7) != 7 || r.str(8) != "" || r.sub(8).ok() {
		t.Error("an absent field has a value")
	}
	if n, _ := r.tables(8); n != 0 || len(r.keyValues(8)) != 0 || len(r.blocks(8)) != 0 {
		t.Error("an absent vector has elements")
	}
	if absent := r.sub(8); absent.u8(0) != 0 || absent.str(1) != "" || absent.sub(2).ok() {
		t.Error("an absent table has fields")
	}
	if f.err != nil {
		t.Error(f.err)
	}
}

// touch reads every field that sample has.
func touch(f *flat) {
	r := f.root()
	r.u8(0)
	r.i16(1, 0)
	r.i32(2, 0)
	r.i64(3, 0)
	r.str(4)
	r.sub(5).str(1)
	r.keyValues(6)
	r.blocks(7)
}

func TestFlatNeverReadsOutside(t *testing.T) {
	data := sample()
	noticed := 0
	for n := range data { // every truncation
		f := &flat{b: data[:n:n]}
		touch(f)
		if f.err != nil {
			noticed++
		}
	}
	if noticed < len(data)/2 {
		t.Errorf("%d of %d truncations were noticed", noticed, len(data))
	}
	for at := range data { // every byte, to the extremes
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := append([]byte(nil), data...)
			b[at] = v
			touch(&flat{b: b})
		}
	}
}

// A small buffer whose tables all refer to one long string must not be copied out without
// a bound.
func TestFlatBoundsTheCopies(t *testing.T) {
	b := flatbuffers.NewBuilder(64)
	long := b.CreateString(strings.Repeat("x", 10_000))
	var tables []flatbuffers.UOffsetT
	for i := range 200 {
		key := b.CreateString("k" + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, long, 0)
		tables = append(tables, b.EndObject())
	}
	vector := b.CreateVectorOfTables(tables)
	b.StartObject(1)
	b.PrependUOffsetTSlot(0, vector, 0)
	b.Finish(b.EndObject())
	f := &flat{b: b.FinishedBytes()}
	total := 0
	for k, v := range f.root().keyValues(0) {
		total += len(k) + len(v)
	}
	if f.err == nil || total > 3*len(f.b) {
		t.Errorf("%d bytes were copied out of %d, err %v", total, len(f.b), f.err)
	}
}
