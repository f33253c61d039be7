package arrowfile

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/snapshot"
)

// foreignDir holds readers in other languages: `npm ci` there installs them.
const foreignDir = "testdata/foreign"

// foreignReaders are the scripts there, and what has to be installed for each: polars is
// nothing without its native part, which npm leaves out on a machine that it is not made for.
// docs/formats/segment.md says what else reads segments.
var foreignReaders = map[string]string{"read.mjs": "apache-arrow", "polars.mjs": "nodejs-polars-*"}

// requireEnv makes a missing foreign reader a failure instead of a skip, for CI.
const requireEnv = "ARROWFILE_REQUIRE_FOREIGN"

// runForeign runs a reader over a file and returns the rows that it printed.
func runForeign(t *testing.T, script, path string) []object {
	t.Helper()
	_, noNode := exec.LookPath("node")
	found, err := filepath.Glob(filepath.Join(foreignDir, "node_modules", foreignReaders[script]))
	if err != nil {
		t.Fatal(err)
	}
	if noNode != nil || len(found) == 0 {
		if os.Getenv(requireEnv) != "" {
			t.Fatalf("node: %v; %s: %v", noNode, foreignReaders[script], found)
		}
		t.Skipf("no %s here: needs node and `npm ci` in %s", foreignReaders[script], foreignDir)
	}
	cmd := exec.Command("node", filepath.Join(foreignDir, script), path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var rows []object
	for line := range bytes.Lines(out) {
		var row object
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		rows = append(rows, row)
	}
	return rows
}

// sameNumber compares text that two languages printed: equal, or the same float64.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Float64bits(x) == math.Float64bits(y)
}

// eachForeign runs a test with each reader.
func eachForeign(t *testing.T, test func(t *testing.T, read func(path string) []object)) {
	for script := range foreignReaders {
		t.Run(script, func(t *testing.T) {
			test(t, func(path string) []object { return runForeign(t, script, path) })
		})
	}
}

// All columns of rows with nulls, empty and missing lists, dictionaries and structs.
func TestForeignReadersSeeTheSameRows(t *testing.T) {
	g := newGen(61)
	g.nan = true
	rows := randomRows(g, 200)
	path, _ := oneSegment(t, rows, 70)
	var want []object
	for _, s := range rows {
		want = append(want, normal(canonSnapshot(s)))
	}
	eachForeign(t, func(t *testing.T, read func(string) []object) {
		if d := cmp.Diff(want, read(path), cmp.Comparer(sameNumber)); d != "" {
			t.Fatalf("-written +read by the foreign reader:\n%.3000s", d)
		}
	})
}

// What is read today must stay readable to others as well.
func TestForeignReadersReadTheGoldenFile(t *testing.T) {
	const path = "testdata/golden-v1.arrow"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []object
	for _, row := range canonRecords(libraryRecords(t, data)) {
		want = append(want, normal(row))
	}
	eachForeign(t, func(t *testing.T, read func(string) []object) {
		if d := cmp.Diff(want, read(path), cmp.Comparer(sameNumber)); d != "" {
			t.Fatalf("-library +foreign reader:\n%.3000s", d)
		}
	})
}

// The other layouts: plain utf8 in place of dictionaries, outcomes, labels with null rows.
func TestForeignReadersOpenEveryKind(t *testing.T) {
	g := newGen(62)
	outcomes, os := outcomeFile(t, g)
	labels, ls := labelFile(t, g)
	eachForeign(t, func(t *testing.T, read func(string) []object) {
		rows := read(outcomes)
		if len(rows) != len(os) {
			t.Fatalf("%d outcome rows of %d", len(rows), len(os))
		}
		for i, row := range rows {
			want := normal(object{"id": canonBytes(os[i].ID[:], true), "row": strconv.Itoa(i), "backend": os[i].Backend,
				"candidates": canonCandidates(os[i].Candidates), "missing": canonStrings(os[i].Missing), "recorded": canonText(os[i].Recorded)})
			for name, v := range want {
				if d := cmp.Diff(v, row[name], cmp.Comparer(sameNumber)); d != "" {
					t.Fatalf("outcome %d, %s:\n%s", i, name, d)
				}
			}
		}
		checkForeignLabels(t, ls, read(labels))
	})
}

func outcomeFile(t *testing.T, g *gen) (path string, rows []*snapshot.Outcome) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "o.arrow")
	w, err := CreateOutcomes(path, Options{BatchRows: 40})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		rows = append(rows, g.outcome(i))
		if err := w.Append(rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, rows
}

func labelFile(t *testing.T, g *gen) (path string, rows []*snapshot.Label) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "l.arrow")
	w, err := CreateLabels(path, Options{BatchRows: 40})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		rows = append(rows, g.truth(i))
		if err := w.Append(rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, rows
}

func checkForeignLabels(t *testing.T, want []*snapshot.Label, got []object) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d label rows of %d", len(got), len(want))
	}
	for i, row := range got {
		if (want[i] == nil) != (row["id"] == nil) {
			t.Fatalf("label %d: %v", i, row)
		}
		if want[i] != nil && row["action"] != canonText(want[i].Action) {
			t.Fatalf("label %d: action %v", i, row["action"])
		}
	}
}
