package arrowfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/clefbench/clefbench/snapshot"
)

// seedFiles are small files of all kinds, whole and torn.
func seedFiles(f *testing.F) {
	f.Helper()
	g := newGen(81)
	rows := randomRows(g, 3)
	_, data := oneSegment(f, rows, 2)
	f.Add(data)
	f.Add(openImage(f, data))
	f.Add(data[:len(data)/2])
	dir := f.TempDir()
	ow, err := CreateOutcomes(filepath.Join(dir, "o.arrow"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	lw, err := CreateLabels(filepath.Join(dir, "l.arrow"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 4 {
		if err := errors.Join(ow.Append(g.outcome(i)), lw.Append(g.truth(i))); err != nil {
			f.Fatal(err)
		}
	}
	if err := errors.Join(ow.Close(), lw.Close()); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"o.arrow", "l.arrow"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// drain reads all rows of whatever kind.
func drain(f *File) error {
	for _, err := range f.Snapshots() {
		if err != nil && !errors.Is(err, ErrSchema) {
			return err
		}
	}
	for o, err := range f.Outcomes() {
		if err == nil {
			_ = o.Validate()
		}
	}
	for range f.Labels() {
	}
	return nil
}

// FuzzOpen reads any bytes in every way. The digests stop nearly all damage early, so
// OpenForeign's way, which has none, is what exercises the bounds checks.
func FuzzOpen(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			t.Skip("a larger input finds nothing that a small one does not")
		}
		for _, load := range []func(*File) error{(*File).loadSealed, (*File).loadEither, (*File).loadForeign} {
			file, err := newFile("fuzz.arrow", data, load)
			if err == nil {
				err = drain(file)
			}
			known := err == nil || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrSchema) || errors.Is(err, ErrVersion)
			if !known {
				t.Fatalf("an error of no kind: %v", err)
			}
		}
	})
}

// FuzzRecover recovers any bytes: either nothing changes, or a file that verifies, or one
// whose rows a hostile writer made invalid.
func FuzzRecover(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "f.arrow")
		if err := os.WriteFile(path+OpenExt, data, 0o644); err != nil {
			t.Fatal(err)
		}
		rec, err := Recover(path + OpenExt)
		if err != nil {
			if after, rerr := os.ReadFile(path + OpenExt); rerr != nil || string(after) != string(data) {
				t.Fatalf("refused with %v, but the file changed (%v)", err, rerr)
			}
			return
		}
		report, err := Verify(path)
		if err != nil && !errors.Is(err, snapshot.ErrInvalid) && !errors.Is(err, snapshot.ErrLedger) && !errors.Is(err, ErrSchema) {
			t.Fatalf("recovered %+v, but: %v", rec, err)
		}
		if report.Batches != rec.Batches {
			t.Fatalf("recovered %+v, verified %+v", rec, report)
		}
	})
}
