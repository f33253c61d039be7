package datasets

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/scoring"
)

// sameNumber lets NaN, which stands for "unknown", equal itself.
func sameNumber() cmp.Option {
	return cmp.Comparer(func(a, b scoring.Number) bool {
		return a == b || (math.IsNaN(float64(a)) && math.IsNaN(float64(b)))
	})
}

func fullManifest() *Manifest {
	nan := scoring.Number(math.NaN())
	zero := 0.0
	return &Manifest{Name: `the "demo"`, Preset: "fraud", Labels: map[string]string{"h-b-00000001.labels.arrow": strings.Repeat("0a", 32)}, Tasks: map[string]scoring.Task{
		"fraud": {
			Candidates: []string{"approve", "block"},
			Utility:    map[string]map[string]float64{"approve": {"approve": 1, "block{hard=true}": 0.25}, "block": {}},
			Unanswered: &zero, Baseline: 0.7189, BaselineAction: "approve", Top: 1, Majority: 0.7189, Ceiling: 1e-7,
			LabelStrength: "strong: repaid or not",
		},
		"edge: routing": {Baseline: nan, Top: nan, Majority: nan, Ceiling: nan},
		"no":            {Baseline: nan, Top: nan, Majority: nan, Ceiling: nan, Utility: map[string]map[string]float64{}},
	}}
}

func TestManifestRoundTrip(t *testing.T) {
	for _, m := range []*Manifest{fullManifest(), {Tasks: map[string]scoring.Task{}}} {
		got, err := ParseManifest("dataset.yaml", m.Format())
		if err != nil {
			t.Fatalf("%v\n%s", err, m.Format())
		}
		if d := cmp.Diff(m, got, sameNumber()); d != "" {
			t.Errorf("%s\n%s", d, m.Format())
		}
	}
}

// The committed file is what version 1 looks like; later versions must still read it.
func TestManifestGolden(t *testing.T) {
	want, err := os.ReadFile("testdata/dataset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := fullManifest().Format(); string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestManifestProblems(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"no version", "name: x\n", `m.yaml:1:1: missing field "version"`},
		{"newer version", "version: 2\n", "m.yaml:1:10: version must be a whole number from 1 to 1"},
		{"unknown field", "version: 1\ntask: {}\n", `m.yaml:2:1: unknown field "task"`},
		{"unknown field in a task", "version: 1\ntasks:\n  a: {ceilling: 1}\n", `m.yaml:3:7: unknown field "ceilling"`},
		{"out of range", "version: 1\ntasks:\n  a: {top: 1.5}\n", "m.yaml:3:12: tasks.a.top must be from 0 to 1, got 1.5"},
		{"utility of no candidate", "version: 1\ntasks:\n  a:\n    candidates: [allow, block]\n    utility: {allow: {alow: 1}}\n", `m.yaml:5:23: "alow" is not among the candidates`},
		{"twice", "version: 1\ntasks:\n  a: {candidates: [x, x]}\n", `m.yaml:3:23: candidate "x" is empty or stands twice`},
		{"no candidate's way not to choose", "version: 1\ntasks:\n  a: {candidates: [x], utility: {x: {x: 1, abstain: 0.5, denied: 0.2, escalate: 0.3}}}\n", `"escalate" is not among the candidates`},
		{"label file elsewhere", "version: 1\nlabels: {../x.labels.arrow: \"" + strings.Repeat("0a", 32) + "\"}\n", `m.yaml:2:10: "../x.labels.arrow" is not the name of a label file`},
		{"digest of labels", "version: 1\nlabels: {x.labels.arrow: \"12\"}\n", "m.yaml:2:26: labels.x.labels.arrow is not a SHA-256"},
		{"no name", "version: 1\ntasks:\n  \"\": {}\n", "m.yaml:3:3: a scenario needs a name"},
		{"text for a number", "version: 1\ntasks:\n  a: {top: high}\n", "m.yaml:3:12: tasks.a.top must be a finite number"},
		{"second document", "version: 1\n---\nversion: 1\n", "a second document"},
		{"empty", "", "file is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseManifest("m.yaml", []byte(c.yaml))
			var ps document.Problems
			if !errors.As(err, &ps) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A manifest that would not be read back is refused, and the old file stays.
func TestWriteManifestKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	if err := WriteManifest(dir, fullManifest()); err != nil {
		t.Fatal(err)
	}
	bad := fullManifest()
	bad.Tasks["fraud"] = scoring.Task{Top: 7}
	if err := WriteManifest(dir, bad); err == nil {
		t.Error("a utility of 7 was written")
	}
	m, _, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fullManifest(), m, sameNumber()); d != "" {
		t.Error(d)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
	if err := WriteManifest(filepath.Join(dir, "absent"), fullManifest()); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(fullManifest().Format()))
	f.Add([]byte("version: 1\nlabels: {a.labels.arrow: x}\n"))
	f.Add([]byte("version: 1\ntasks:\n  a: {utility: {x: {y: 0.5}}, unanswered: 0}\n"))
	f.Add([]byte(`{"version":1,"tasks":{"a":{"candidates":["x"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest("m.yaml", data)
		if err != nil {
			return
		}
		again, err := ParseManifest("m.yaml", m.Format())
		if err != nil {
			// Text that YAML cannot carry inside quotes is refused by WriteManifest.
			if WriteManifest(t.TempDir(), m) == nil {
				t.Fatalf("written, but not readable: %v", err)
			}
			return
		}
		if d := cmp.Diff(m, again, sameNumber(), cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}
