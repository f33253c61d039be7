package arrowfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func TestProjectionDecodesOnlyTheNamedColumns(t *testing.T) {
	rows := randomRows(newGen(51), 100)
	path, _ := oneSegment(t, rows, 30)
	f := mustOpen(t, path)
	var got []*snapshot.Snapshot
	for s, err := range f.Snapshots("id", "candidates", "attrs", "stages") {
		if err != nil {
			t.Fatal(err)
		}
		c := deepClone(s)
		c.Ref = snapshot.Ref{}
		got = append(got, c)
	}
	var want []*snapshot.Snapshot
	for _, s := range rows {
		want = append(want, &snapshot.Snapshot{ID: s.ID, Candidates: s.Candidates, Attrs: s.Attrs, Stages: s.Stages})
	}
	diff(t, want, got)
}

func TestStringsOutliveTheStep(t *testing.T) {
	rows := randomRows(newGen(52), 200)
	path, _ := oneSegment(t, rows, 10)
	f := mustOpen(t, path)
	var texts, errs []string
	for s, err := range f.Snapshots() {
		if err != nil {
			t.Fatal(err)
		}
		texts, errs = append(texts, s.Attrs.At(0).Str()), append(errs, s.Error)
	}
	for i, s := range rows {
		if texts[i] != s.Attrs.At(0).Str() || errs[i] != s.Error {
			t.Fatalf("row %d: strings changed after the step", i)
		}
	}
}

func TestIterationsRunInParallel(t *testing.T) {
	rows := randomRows(newGen(53), 120)
	path, _ := oneSegment(t, rows, 16)
	f := mustOpen(t, path)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 5 {
				got, err := readAll(f)
				if err != nil || len(got) != len(rows) || got[119].ID != rows[119].ID || !bytes.Equal(got[60].Input, rows[60].Input) {
					t.Errorf("%d rows, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestIterationCanBeLeft(t *testing.T) {
	path, _ := oneSegment(t, randomRows(newGen(54), 50), 10)
	f := mustOpen(t, path)
	for range 3 {
		n := 0
		for _, err := range f.Snapshots() {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 15 {
				break
			}
		}
		if n != 15 {
			t.Errorf("%d rows", n)
		}
	}
}

// rewritten returns a file's bytes with one text of its schema replaced by another of the
// same length, all digests made anew: a well-formed file of another program.
func rewritten(t *testing.T, data []byte, from, to string) []byte {
	t.Helper()
	f, err := newFile("x.arrow", bytes.Clone(data), (*File).loadSealed)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Concat([]byte(headMagic), bytes.ReplaceAll(data[f.schema.offset:f.schema.end()], []byte(from), []byte(to)))
	in := footerIn{schema: out[len(headMagic):]}
	last := digestOf(sum{}, in.schema, 0)
	in.digests = append(in.digests, last)
	for _, m := range append(slices.Clone(f.labels), f.batches...) {
		part := bytes.Clone(data[m.offset:m.end()])
		last = digestOf(last, part, m.digestAt)
		copy(part[m.digestAt:], fmt.Sprintf("%x", last[:]))
		b := block{int64(len(out)), m.bodyLen, int32(m.metaLen)}
		if m.header == headerDictionary {
			in.dicts = append(in.dicts, b)
		} else {
			in.blocks = append(in.blocks, b)
		}
		in.digests = append(in.digests, last)
		out = append(out, part...)
	}
	info, err := batchInfo(f.batches[len(f.batches)-1])
	if err != nil {
		t.Fatal(err)
	}
	if in.info, err = info.json(); err != nil {
		t.Fatal(err)
	}
	tail, _, err := in.tail()
	if err != nil {
		t.Fatal(err)
	}
	return append(out, tail...)
}

func TestLaterSchemaVersionsAreRefused(t *testing.T) {
	_, data := oneSegment(t, randomRows(newGen(55), 5), 10)
	load := func(from, to string) error {
		f, err := newFile("x.arrow", rewritten(t, data, from, to), (*File).loadSealed)
		if err != nil {
			return err
		}
		_, err = readAll(f)
		return err
	}
	// The value is followed by its length-prefixed key; "1" is the only one-byte text.
	if err := load("\x01\x00\x00\x001\x00", "\x01\x00\x00\x002\x00"); !errors.Is(err, ErrVersion) {
		t.Errorf("version 2: %v", err)
	}
	if err := load("snapshot", "postcard"); !errors.Is(err, ErrSchema) {
		t.Errorf("another kind: %v", err)
	}
	if err := load("keep_prob", "drop_prob"); !errors.Is(err, ErrSchema) {
		t.Errorf("a required column is missing: %v", err)
	}
	if err := load("engine_version", "engine_flavour"); err != nil {
		t.Errorf("an optional column is missing: %v", err)
	}
}

func TestUnknownLabelsOfClosedSetsAreRefused(t *testing.T) {
	w := startWriting(t, Options{})
	w.append(plainRow("s", "a"))
	d := w.batch.dicts["status"]
	d.values[0] = "maybe" // in place of ok
	if err := w.Close(snapshot.Ledger{}, totalOf(1)); err != nil {
		t.Fatal(err)
	}
	path := segments(t, w.dir)[0]
	if _, err := readAll(mustOpen(t, path)); !errors.Is(err, ErrSchema) {
		t.Errorf("read: %v", err)
	}
	if _, err := Verify(path); !errors.Is(err, ErrSchema) {
		t.Errorf("verify: %v", err)
	}
}

// Attribute names that are also column names, and attributes of every type, keep apart.
func TestAttributesMayHaveTheNamesOfColumns(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "action", Type: decision.String}, decision.Field{Name: "id", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	w := startWriting(t, Options{})
	for i := range maxLabels + 10 {
		s := plainRow("s", "a")
		s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue(fmt.Sprint(i)), decision.IntValue(int64(i))}}
		w.append(s)
	}
	w.done()
	if !hasDict(t, segments(t, w.dir)[0], "action") {
		t.Error("the column fell back because of the attribute of its name")
	}
	for i, s := range readDir(t, w.dir) {
		if s.Action != "a" || s.Attrs.Get("action").Str() != fmt.Sprint(i) || s.Attrs.Get("id").Int() != int64(i) {
			t.Fatalf("row %d: %+v", i, s)
		}
	}
}
