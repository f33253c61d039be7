package arrowfile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/snapshot"
)

// oneSegment writes rows to one sealed file and returns its bytes.
func oneSegment(t testing.TB, rows []*snapshot.Snapshot, batchRows int) (path string, data []byte) {
	t.Helper()
	dir := t.TempDir()
	w, err := Create(dir, Options{Host: "h", Boot: "b", BatchRows: batchRows, Seed: labelsOf(t, rows)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(len(rows))); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "h-b-00000001.arrow")
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if extra, _ := filepath.Glob(filepath.Join(dir, "*"+Ext+"*")); len(extra) != 1 {
		t.Fatalf("more than one segment: %v", extra)
	}
	return path, data
}

// labelsOf writes the rows once and returns the labels of the last segment's
// dictionaries, to seed a writer with.
func labelsOf(t testing.TB, rows []*snapshot.Snapshot) map[string][]string {
	t.Helper()
	w, err := Create(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := map[string][]string{}
	for name, d := range w.batch.dicts {
		seed[name] = slices.Clone(d.values)
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(len(rows))); err != nil {
		t.Fatal(err)
	}
	return seed
}

// openImage returns a sealed file's bytes as they were before it was sealed.
func openImage(t testing.TB, data []byte) []byte {
	t.Helper()
	start, err := findFooter(data)
	if err != nil {
		t.Fatal(err)
	}
	return data[:start-len(eosMark)]
}

// readAll reads all rows or returns the first error.
func readAll(f *File) ([]*snapshot.Snapshot, error) {
	var out []*snapshot.Snapshot
	for s, err := range f.Snapshots() {
		if err != nil {
			return nil, err
		}
		s = deepClone(s)
		s.Ref = snapshot.Ref{}
		out = append(out, s)
	}
	return out, nil
}

func TestEveryBitFlipOfASealedFileIsFound(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(11), 60), 20)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		at, bit := r.IntN(len(data)), byte(1)<<r.IntN(8)
		data[at] ^= bit
		_, err := newFile(path, data, (*File).loadSealed)
		var where *CorruptError
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &where) || where.Path != path {
			t.Fatalf("bit %#x of byte %d of %d: %v", bit, at, len(data), err)
		}
		if where.Offset > int64(len(data)) || where.Offset < 0 {
			t.Fatalf("offset %d of %d", where.Offset, len(data))
		}
		data[at] ^= bit
	}
	if _, err := newFile(path, data, (*File).loadSealed); err != nil {
		t.Fatalf("the intact file: %v", err)
	}
}

// Every single byte, not a sample: a small file with one batch.
func TestEveryByteOfASealedFileIsCovered(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(12), 2), 20)
	for at := range data {
		mask := byte(1) << (at % 8)
		data[at] ^= mask
		if _, err := newFile(path, data, (*File).loadSealed); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %d, mask %#x: %v", at, len(data), mask, err)
		}
		data[at] ^= mask
	}
}

func TestTruncationsOfASealedFileAreFound(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(13), 60), 20)
	r := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		n := r.IntN(len(data))
		if _, err := newFile(path, data[:n], (*File).loadSealed); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d of %d: %v", n, len(data), err)
		}
	}
	if _, err := newFile(path, append(data, 0), (*File).loadSealed); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
}

// A file that was not sealed is read up to the damage: whole batches, exactly as they
// were written, and nothing after.
func TestDamageToAnOpenFileCutsItAndNeverChangesARow(t *testing.T) {
	rows := randomRows(newGen(14), 60)
	path, data := oneSegment(t, rows, 20)
	data = openImage(t, data)
	damages := map[string]func(r *rand.Rand) []byte{
		"bit flip": func(r *rand.Rand) []byte {
			b := bytes.Clone(data)
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			return b
		},
		"truncation": func(r *rand.Rand) []byte { return data[:r.IntN(len(data))] },
		"zeroed page": func(r *rand.Rand) []byte {
			b := bytes.Clone(data)
			at := r.IntN(len(b)) &^ 4095
			clear(b[at:min(at+4096, len(b))])
			return b
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			kept := map[int]int{}
			for range 400 {
				f, err := newFile(path, damage(r), (*File).loadPartial)
				if err != nil {
					if !errors.Is(err, ErrCorrupt) {
						t.Fatal(err)
					}
					kept[0]++
					continue
				}
				got, err := readAll(f)
				if err != nil {
					t.Fatal(err)
				}
				if len(got)%20 != 0 || int64(len(got)) != f.meta.Rows {
					t.Fatalf("%d rows, meta says %d", len(got), f.meta.Rows)
				}
				diff(t, rows[:len(got)], got)
				kept[len(got)]++
			}
			if kept[0] == 0 || kept[20] == 0 || kept[40] == 0 {
				t.Errorf("the damage did not hit all parts: %v", kept)
			}
			if kept[60] > 0 && name == "bit flip" {
				t.Errorf("%d flips went unnoticed", kept[60])
			}
		})
	}
}

// Batches that were swapped or dropped have right digests of their own; the chain finds
// them.
func TestReorderedBatchesAreFound(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(15), 60), 20)
	f, err := newFile(path, data, (*File).loadSealed)
	if err != nil {
		t.Fatal(err)
	}
	a, b := f.batches[0], f.batches[1]
	img := slices.Concat(data[:a.offset], data[b.offset:b.end()], data[a.offset:a.end()], data[b.end():])
	p, err := newFile(path, openImage(t, img), (*File).loadPartial)
	if err == nil {
		t.Fatalf("%d rows were read after the batches were swapped", p.meta.Rows)
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
}

func TestOpenOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "text": "hello, this is not an arrow file at all", "magic": headMagic, "both": headMagic + "........" + tailMagic} {
		path := filepath.Join(dir, name+Ext)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Rename(path, path+OpenExt); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path + OpenExt); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s, open: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "missing.arrow")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestKindsAreNotMixedUp(t *testing.T) {
	path, _ := oneSegment(t, randomRows(newGen(16), 3), 20)
	f := mustOpen(t, path)
	for _, err := range f.Outcomes() {
		if !errors.Is(err, ErrSchema) {
			t.Errorf("outcomes of a snapshot segment: %v", err)
		}
	}
	for _, err := range f.Labels() {
		if !errors.Is(err, ErrSchema) {
			t.Errorf("labels of a snapshot segment: %v", err)
		}
	}
}
