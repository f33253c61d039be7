package datasets

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/datasets/runs"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func TestInfo(t *testing.T) {
	dir := two(t)
	label(t, dir)
	info, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Snapshots != 20 || info.Requests != 10 || info.Labelled != 13 || !info.Intact || len(info.Digest) != 64 {
		t.Errorf("%+v", info)
	}
	if want := (snapshot.Ledger{Offered: 23, Written: 20, SampledOut: 3}); !sameLedger(info.Ledger, want) {
		t.Errorf("ledger %+v", info.Ledger)
	}
	if !info.From.Equal(time.Unix(1700000000, 0)) || !info.To.Equal(time.Unix(1700000019, 0)) {
		t.Errorf("from %v to %v", info.From, info.To)
	}
	var got []ScenarioInfo
	for _, s := range info.Scenarios {
		if s.Task == nil {
			t.Errorf("%s: no task", s.Name)
		}
		s.Task = nil
		got = append(got, s)
	}
	want := []ScenarioInfo{
		{Name: "abuse", Snapshots: 10, Requests: 5, Labelled: 7, Actions: map[string]int64{"allow": 5, "block": 5}},
		{Name: "fraud", Snapshots: 10, Requests: 5, Labelled: 6, Actions: map[string]int64{"allow": 5, "block": 5}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]AttributeInfo{{"path", "string", 20}, {"local.n", "int", 12}, {"metrics.x", "double", 8}}, info.Attributes); d != "" {
		t.Error(d)
	}
	if len(info.Strategies) != 1 || info.Strategies[0].Version != "v1" || info.Strategies[0].Snapshots != 20 || len(info.Segments) != 2 {
		t.Errorf("strategies %v, segments %v", info.Strategies, info.Segments)
	}
	if _, err := Describe(t.TempDir()); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "deep", "b")
	record(t, a, "boot1", 0, 4, func(int) *decision.Schema { return nil })
	record(t, b, "boot1", 0, 4, func(int) *decision.Schema { return nil })
	label(t, a)
	if err := WriteManifest(a, &Manifest{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b, ManifestName), "version: 9\n")
	write(t, filepath.Join(b, "host-boot2-00000001.arrow.open"), "x")
	// A run and a hidden directory hold Arrow files too, but are no data sets.
	for _, skip := range []string{"run", ".hidden"} {
		dir := filepath.Join(root, skip)
		record(t, dir, "boot1", 0, 4, func(int) *decision.Schema { return nil })
	}
	write(t, filepath.Join(root, "run", runs.ManifestName), "{}")
	got, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Path != a || got[1].Path != b {
		t.Fatalf("%+v", got)
	}
	if got[0].Name != "first" || got[0].Segments != 1 || got[0].Labels != 1 || got[0].Bytes == 0 || got[0].Problem != "" {
		t.Errorf("%+v", got[0])
	}
	if got[1].Unsealed != 1 || !strings.Contains(got[1].Problem, "version") {
		t.Errorf("%+v", got[1])
	}
	if _, err := List(filepath.Join(root, "absent")); err == nil {
		t.Error("no error for a root that is not there")
	}
}

func verified(t *testing.T, path string) *Verification {
	t.Helper()
	v, err := Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifyOfIntactData(t *testing.T) {
	dir := two(t)
	label(t, dir)
	sum := "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of hello
	if err := os.Mkdir(filepath.Join(dir, ArtefactDir), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ArtefactDir, sum), "hello")
	v := verified(t, dir)
	if v.Err() != nil || len(v.Findings) != 0 || v.Segments != 2 || v.Labels != 2 || v.Rows != 20 || v.Artefacts != 1 || v.Ledger.SampledOut != 3 {
		t.Errorf("%+v", v)
	}
	if v := verified(t, segmentsOf(t, dir)[0]); v.Err() != nil || v.Rows != 12 {
		t.Errorf("one file: %+v", v)
	}
	if _, err := Verify(t.TempDir()); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	if _, err := Verify(filepath.Join(dir, "absent")); err == nil {
		t.Error("no error for a path that is not there")
	}
}

// Each way in which a data set can be unsound, done to a sound one of three segments.
func TestVerifyFindings(t *testing.T) {
	type set struct {
		dir  string
		segs []string
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s set)
		want  string
	}{
		{"missing in the middle", func(t *testing.T, s set) { remove(t, s.segs[1]) }, "segments 2 to 2 of this recorder are missing before it"},
		{"unsealed", func(t *testing.T, s set) { write(t, filepath.Join(s.dir, "h-b-00000001.arrow.open"), "x") }, "not sealed"},
		{"flipped byte", func(t *testing.T, s set) { flip(t, s.segs[0]) }, "byte "},
		{"flipped byte in labels", func(t *testing.T, s set) { flip(t, labelsOf(s.segs[0])) }, "byte "},
		{"labels of another segment", func(t *testing.T, s set) { copyFile(t, labelsOf(s.segs[1]), labelsOf(s.segs[0])) }, "row 0 labels"},
		{"labels without a segment", func(t *testing.T, s set) {
			copyFile(t, labelsOf(s.segs[0]), filepath.Join(s.dir, "gone"+labelExt))
		}, "labels of a segment that is not there"},
		{"renamed artefact", func(t *testing.T, s set) {
			if err := os.Mkdir(filepath.Join(s.dir, ArtefactDir), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(s.dir, ArtefactDir, strings.Repeat("0", 64)), "hello")
		}, "its content has the SHA-256 2cf24dba"},
		{"dataset.yaml", func(t *testing.T, s set) { write(t, filepath.Join(s.dir, ManifestName), "version: 1\nx: y\n") }, `unknown field "x"`},
		{"deleted labels", func(t *testing.T, s set) { remove(t, labelsOf(s.segs[1])) }, "dataset.yaml lists these labels, and they are not there"},
		{"other labels", func(t *testing.T, s set) {
			before := contents(t, s.dir)[ManifestName]
			if _, err := AttachLabels(s.dir, flipped); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(s.dir, ManifestName), before)
		}, "dataset.yaml says "},
		{"labels that came later", func(t *testing.T, s set) {
			edit(t, s.dir, func(m *Manifest) { delete(m.Labels, filepath.Base(labelsOf(s.segs[2]))) })
		}, "dataset.yaml does not list these labels"},
		{"edited baseline", func(t *testing.T, s set) {
			edit(t, s.dir, func(m *Manifest) { anchor(m, "fraud", func(k *scoring.Task) { k.Baseline -= 2e-12 }) })
		}, "baseline of scenario fraud is "},
		{"edited top", func(t *testing.T, s set) {
			edit(t, s.dir, func(m *Manifest) { anchor(m, "abuse", func(k *scoring.Task) { k.Top = 0.9 }) })
		}, "top of scenario abuse is 0.9, the labels give 1"},
		{"edited baseline action", func(t *testing.T, s set) {
			edit(t, s.dir, func(m *Manifest) { anchor(m, "abuse", func(k *scoring.Task) { k.BaselineAction = "deny" }) })
		}, `baseline_action of scenario abuse is "deny"`},
		{"edited utility", func(t *testing.T, s set) {
			edit(t, s.dir, func(m *Manifest) {
				anchor(m, "fraud", func(k *scoring.Task) {
					k.Utility = map[string]map[string]float64{"allow": {"allow": 0.3, "block": 0.9}, "block": {"block": 0.9}}
				})
			})
		}, "top of scenario fraud is 1, the labels give 0.8999"},
		{"outcomes among the segments", func(t *testing.T, s set) {
			w, err := arrowfile.CreateOutcomes(filepath.Join(s.dir, "z.arrow"), arrowfile.Options{})
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
		}, "it holds outcomes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := set{dir: t.TempDir()}
			a := schema(t, decision.Field{Name: "a", Type: decision.Int})
			record(t, s.dir, "boot1", 0, 12, func(n int) *decision.Schema {
				if n/4 == 1 {
					return nil
				}
				return a
			})
			label(t, s.dir)
			s.segs = segmentsOf(t, s.dir)
			if v := verified(t, s.dir); len(s.segs) != 3 || v.Err() != nil {
				t.Fatalf("before: %d segments, %v", len(s.segs), v.Err())
			}
			c.spoil(t, s)
			v := verified(t, s.dir)
			if err := v.Err(); !errors.Is(err, arrowfile.ErrCorrupt) {
				t.Fatalf("error %v, findings %+v", err, v.Findings)
			}
			for _, f := range v.Findings {
				if !f.Note && strings.Contains(f.Text, c.want) {
					return
				}
			}
			t.Errorf("findings %+v, want %q", v.Findings, c.want)
		})
	}
}

func edit(t testing.TB, dir string, change func(*Manifest)) {
	t.Helper()
	m, _, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	if err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
}

func anchor(m *Manifest, scenario string, change func(*scoring.Task)) {
	k := m.Tasks[scenario]
	change(&k)
	m.Tasks[scenario] = k
}

// Retention takes segments with their labels, and people write manifests of their own:
// what cannot be told is a note, and what agrees to 1e-12 is no finding.
func TestVerifyOfAnchorsNotes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(dir string, segs []string)
		notes  []string
	}{
		"retention": {func(_ string, segs []string) {
			remove(t, segs[0])
			remove(t, labelsOf(segs[0]))
		}, []string{"gone with its segment", "segments 1 to 1 of this recorder are not here"}},
		"not listed": {func(dir string, _ []string) { edit(t, dir, func(m *Manifest) { m.Labels = nil }) }, []string{"it lists no label files"}},
		"rounding": {func(dir string, _ []string) {
			edit(t, dir, func(m *Manifest) { anchor(m, "fraud", func(k *scoring.Task) { k.Baseline -= 1e-13 }) })
		}, nil},
		"left open": {func(dir string, _ []string) {
			edit(t, dir, func(m *Manifest) { anchor(m, "fraud", func(k *scoring.Task) { k.Top = scoring.Number(math.NaN()) }) })
		}, nil},
	} {
		dir := two(t)
		label(t, dir)
		tc.change(dir, segmentsOf(t, dir))
		v := verified(t, dir)
		if v.Err() != nil || len(v.Findings) != len(tc.notes) {
			t.Errorf("%s: %v, %+v", name, v.Err(), v.Findings)
			continue
		}
		for i, want := range tc.notes {
			if f := v.Findings[i]; !f.Note || !strings.Contains(f.Text, want) {
				t.Errorf("%s: finding %+v, want the note %q", name, f, want)
			}
		}
	}
}

func labelsOf(segment string) string { return strings.TrimSuffix(segment, arrowfile.Ext) + labelExt }

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func flip(t testing.TB, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	write(t, path, string(data))
}

// What is missing before the first and after the last segment is a note: retention
// removes the one, and a recorder that was killed never wrote the other.
func TestVerifyNotes(t *testing.T) {
	for _, gone := range []int{0, 1} {
		dir := two(t)
		segs := segmentsOf(t, dir)
		remove(t, segs[gone])
		v := verified(t, dir)
		if v.Err() != nil || len(v.Findings) != 1 || !v.Findings[0].Note {
			t.Errorf("without segment %d: %v, %+v", gone, v.Err(), v.Findings)
		}
	}
}

// A recorder's own count must agree with what its segments account for.
func TestVerifyTotalLedger(t *testing.T) {
	dir := t.TempDir()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(row(0, nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 2, Written: 1, Dropped: map[string]uint64{"queue-full": 1}}); err != nil {
		t.Fatal(err)
	}
	v := verified(t, dir)
	if v.Err() == nil || !strings.Contains(v.Findings[0].Text, "the recorder counted offered 2, written 1, sampled out 0, dropped 1 (queue-full)") {
		t.Errorf("%+v", v.Findings)
	}
}

// So must its count of requests, where there is one.
func TestVerifyTotalRequests(t *testing.T) {
	for requests, ok := range map[uint64]bool{0: true, 2: true, 1: false} {
		dir := t.TempDir()
		w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot1"})
		if err != nil {
			t.Fatal(err)
		}
		total := snapshot.Ledger{Offered: 4, Written: 4}
		if requests > 0 {
			total.Requests = &snapshot.Counts{Offered: requests, Written: requests}
		}
		for n := range 4 { // of two requests
			if err := w.Append(row(n, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(snapshot.Ledger{}, total); err != nil {
			t.Fatal(err)
		}
		v := verified(t, dir)
		if v.Ledger.Requests == nil || v.Ledger.Requests.Written != 2 {
			t.Errorf("sum %+v", v.Ledger.Requests)
		}
		if ok != (v.Err() == nil) || !ok && !strings.Contains(v.Findings[0].Text, "in requests offered 1, written 1, sampled out 0") {
			t.Errorf("%d requests: %+v", requests, v.Findings)
		}
	}
}
