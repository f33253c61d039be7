package runs

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func write(t testing.TB, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(data), 0o644))
}

func remove(t testing.TB, path string) {
	t.Helper()
	must(t, os.Remove(path))
}

// flip damages a byte in the middle of a file.
func flip(t testing.TB, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data[len(data)/2] ^= 1
	write(t, path, string(data))
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	write(t, to, string(data))
}

// sameNumber compares numbers that may be unknown.
func sameNumber() cmp.Option {
	return cmp.Comparer(func(a, b scoring.Number) bool {
		return a == b || (math.IsNaN(float64(a)) && math.IsNaN(float64(b)))
	})
}

// ids are those of row n and of its request; requests have two rows each.
func ids(n int) (row, request decision.ID) {
	row[0], request[0] = 1, 2
	binary.BigEndian.PutUint64(row[8:], uint64(n)+1)
	binary.BigEndian.PutUint64(request[8:], uint64(n/2)+1)
	return row, request
}

func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		out[e.Name()] = string(data)
	}
	return out
}

// No changed byte of a run goes unnoticed, the manifest's own included.
func TestOpenRunNoticesEveryChange(t *testing.T) {
	dir := sealedRun(t)
	digest := ""
	if r, err := Open(dir); err != nil {
		t.Fatal(err)
	} else {
		digest = r.Digest()
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		must(t, err)
		for at := 0; at < len(data); at += len(data)/25 + 1 {
			bad := slices.Clone(data)
			bad[at] ^= 4
			write(t, path, string(bad))
			// A change inside a text of the manifest is legible JSON: the digest tells.
			if r, err := Open(dir); err == nil && r.Digest() == digest {
				t.Errorf("%s: byte %d", path, at)
			} else if err != nil && !errors.Is(err, arrowfile.ErrCorrupt) && !errors.Is(err, ErrEmpty) {
				t.Errorf("%s: byte %d: %v", path, at, err)
			}
		}
		write(t, path, string(data[:len(data)/2]))
		if _, err := Open(dir); !errors.Is(err, arrowfile.ErrCorrupt) {
			t.Errorf("%s cut in half: %v", path, err)
		}
		write(t, path, string(data))
		return nil
	})
	must(t, err)
}

// What a run would replace is looked at again when it is sealed.
func TestCloseRefusesWhatCameInBetween(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "run")
	w := newRun(t, dir, runManifest())
	fill(t, w)
	must(t, os.MkdirAll(dir, 0o755))
	write(t, filepath.Join(dir, "thesis.tex"), "mine")
	if err := w.Close(false); !errors.Is(err, ErrExists) {
		t.Errorf("error %v", err)
	}
	if got := contents(t, dir); len(got) != 1 || got["thesis.tex"] != "mine" {
		t.Errorf("the directory holds %v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "mine")
	if _, err := Create(file, runManifest()); err == nil {
		t.Error("a file is replaced by a run")
	}
	if _, err := Create(filepath.Join(file, "run"), runManifest()); err == nil {
		t.Error("a run below a file")
	}
}

// Iterations over a run may be left early.
func TestRunIterationsStop(t *testing.T) {
	r, err := Open(sealedRun(t))
	must(t, err)
	n := 0
	for range r.Cold() {
		n++
		break
	}
	for range r.Rows() {
		n++
		break
	}
	for range r.Labels() {
		n++
		break
	}
	if n != 3 {
		t.Errorf("%d iterations began", n)
	}
	// A file that vanishes after the run was opened is an error of the iteration.
	must(t, os.Remove(filepath.Join(r.dir, "cold", "rules.arrow")))
	for _, err := range r.Cold() {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	}
}

// Runs hold all that they need: what was replayed from the old segments is scored without
// them.
func TestRunsOutliveTheirSegments(t *testing.T) {
	run := sealedRun(t)
	r, err := Open(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Manifest().Dataset.Paths {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s is there: %v", p, err)
		}
	}
	rows := 0
	for _, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	if rows == 0 {
		t.Error("no rows")
	}
}
