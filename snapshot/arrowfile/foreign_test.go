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

// foreignDir holds readers in another language: `npm ci` there installs them.
const foreignDir = "testdata/foreign"

// requireEnv makes a missing foreign reader a failure instead of a skip, for CI.
const requireEnv = "ARROWFILE_REQUIRE_FOREIGN"

// runForeign runs a reader over a file and returns the rows that it printed.
func runForeign(t *testing.T, script, path string) []object {
	t.Helper()
	_, noNode := exec.LookPath("node")
	_, noPackages := os.Stat(filepath.Join(foreignDir, "node_modules", "apache-arrow"))
	if noNode != nil || noPackages != nil {
		if os.Getenv(requireEnv) != "" {
			t.Fatalf("node: %v; packages: %v", noNode, noPackages)
		}
		t.Skipf("no foreign reader here: needs node and `npm ci` in %s", foreignDir)
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

func TestForeignReaderSeesTheSameRows(t *testing.T) {
	g := newGen(61)
	g.nan = true
	rows := randomRows(g, 200)
	path, _ := oneSegment(t, rows, 70)
	got := runForeign(t, "read.mjs", path)
	var want []object
	for _, s := range rows {
		want = append(want, normal(canonSnapshot(s)))
	}
	if d := cmp.Diff(want, got, cmp.Comparer(sameNumber)); d != "" {
		t.Fatalf("-written +read by the foreign reader:\n%.3000s", d)
	}
}

// The other layouts: plain utf8 in place of dictionaries, outcomes, labels with null rows.
func TestForeignReaderOpensEveryKind(t *testing.T) {
	g := newGen(62)
	outcomes := filepath.Join(t.TempDir(), "o.arrow")
	ow, err := CreateOutcomes(outcomes, Options{BatchRows: 40})
	if err != nil {
		t.Fatal(err)
	}
	labels := filepath.Join(t.TempDir(), "l.arrow")
	lw, err := CreateLabels(labels, Options{BatchRows: 40})
	if err != nil {
		t.Fatal(err)
	}
	var os []*snapshot.Outcome
	var ls []*snapshot.Label
	for i := range 100 {
		os, ls = append(os, g.outcome(i)), append(ls, g.truth(i))
		if err := ow.Append(os[i]); err != nil {
			t.Fatal(err)
		}
		if err := lw.Append(ls[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{ow.Close(), lw.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, row := range runForeign(t, "read.mjs", outcomes) {
		want := normal(object{"id": canonBytes(os[i].ID[:], true), "row": strconv.Itoa(i), "backend": os[i].Backend,
			"candidates": canonCandidates(os[i].Candidates), "missing": canonStrings(os[i].Missing), "recorded": canonText(os[i].Recorded)})
		for name, v := range want {
			if d := cmp.Diff(v, row[name], cmp.Comparer(sameNumber)); d != "" {
				t.Fatalf("outcome %d, %s:\n%s", i, name, d)
			}
		}
	}
	rows := runForeign(t, "read.mjs", labels)
	if len(rows) != len(ls) {
		t.Fatalf("%d label rows of %d", len(rows), len(ls))
	}
	for i, row := range rows {
		if (ls[i] == nil) != (row["id"] == nil) {
			t.Fatalf("label %d: %v", i, row)
		}
		if ls[i] != nil && row["action"] != canonText(ls[i].Action) {
			t.Fatalf("label %d: action %v", i, row["action"])
		}
	}
}
