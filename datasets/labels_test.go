package datasets

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// truthOf labels 13 of the 20 rows of two: all but every third.
func truthOf(s *snapshot.Snapshot) *snapshot.Label {
	var n int
	if _, err := fmt.Sscanf(s.SourceID, "row/%d", &n); err != nil || n%3 == 0 {
		return nil
	}
	return &snapshot.Label{Action: []string{"allow", "block"}[n/4%2], Source: s.Scenario, Time: time.Unix(5, 0).UTC()}
}

func label(t testing.TB, dir string) *LabelReport {
	t.Helper()
	r, err := AttachLabels(dir, truthOf)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents is every file of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestAttachLabels(t *testing.T) {
	dir := two(t)
	before := contents(t, dir)
	if r := label(t, dir); *r != (LabelReport{Snapshots: 20, Labelled: 13, Added: 13}) {
		t.Errorf("report %+v", *r)
	}
	after := contents(t, dir)
	for name, data := range before {
		if after[name] != data {
			t.Errorf("%s was changed", name)
		}
	}
	if len(after) != len(before)+3 {
		t.Errorf("files %q", slices.Sorted(keys(after)))
	}
	// In the order of the rows, with their ids.
	d := opened(t, dir)
	var want []decision.ID
	for s, err := range d.Snapshots(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if truthOf(s) != nil {
			want = append(want, s.ID)
		}
	}
	var got []decision.ID
	for l, err := range d.Labels(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// The same labels again change no byte; nil keeps a label, another one replaces it.
func TestAttachLabelsIsIdempotent(t *testing.T) {
	dir := two(t)
	label(t, dir)
	first, digest := contents(t, dir), opened(t, dir).digest
	if r := label(t, dir); r.Added != 0 || r.Changed != 0 || r.Labelled != 13 {
		t.Errorf("again: %+v", *r)
	}
	if !same(first, contents(t, dir)) {
		t.Error("the same labels again change a file")
	}
	r, err := AttachLabels(dir, func(s *snapshot.Snapshot) *snapshot.Label {
		if s.SourceID == "row/0" || s.SourceID == "row/1" {
			return &snapshot.Label{Action: "late"}
		}
		return nil
	})
	if err != nil || *r != (LabelReport{Snapshots: 20, Labelled: 14, Added: 1, Changed: 1}) {
		t.Errorf("late labels: %+v, %v", r, err)
	}
	if opened(t, dir).digest == digest {
		t.Error("the digest of the data set does not cover its labels")
	}
}

func TestAttachLabelsErrors(t *testing.T) {
	dir := two(t)
	label(t, dir)
	before := contents(t, dir)
	for name, l := range map[string]*snapshot.Label{
		"without truth":    {},
		"utility above 1":  {Utilities: []snapshot.ActionUtility{{Action: "a", Utility: 2}}},
		"reward not in it": {Reward: decision.Some(-1.0)},
	} {
		if _, err := AttachLabels(dir, func(*snapshot.Snapshot) *snapshot.Label { return l }); !errors.Is(err, snapshot.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !same(before, contents(t, dir)) {
		t.Error("refused labels left something behind")
	}
	if r, err := AttachLabels(two(t), func(*snapshot.Snapshot) *snapshot.Label { return nil }); err != nil || r.Labelled != 0 {
		t.Errorf("no labels: %+v, %v", r, err)
	}
}

// A label file that stands beside another segment than its own is corruption.
func TestLabelsOfAnotherSegment(t *testing.T) {
	dir := two(t)
	label(t, dir)
	segs := segmentsOf(t, dir)
	wrong := filepath.Join(dir, arrowfile.SegmentOf(segs[0])+labelExt)
	copyFile(t, filepath.Join(dir, arrowfile.SegmentOf(segs[1])+labelExt), wrong)
	if _, err := Open(dir); !errors.Is(err, arrowfile.ErrCorrupt) {
		t.Errorf("12 rows with 8 labels: %v", err)
	}
	// As many labels as rows, but of other decisions.
	other := t.TempDir()
	record(t, other, "boot2", 40, 52, func(int) *decision.Schema { return nil })
	label(t, other)
	copyFile(t, filepath.Join(other, arrowfile.SegmentOf(segmentsOf(t, other)[0])+labelExt), wrong)
	d := opened(t, dir)
	for _, err := range d.Labels(Filter{}) {
		if errors.Is(err, arrowfile.ErrCorrupt) {
			return
		}
	}
	t.Error("labels of other decisions are yielded")
}

// AttachLabels freezes what it computed and keeps what only people know.
func TestAttachLabelsFreezesTheTask(t *testing.T) {
	dir := two(t)
	task := scoring.NewTask()
	task.Candidates, task.Ceiling, task.LabelStrength = []string{"allow", "block"}, 0.9, "made up"
	abuse := scoring.NewTask()
	abuse.Candidates = []string{"allow", "block"}
	abuse.Utility = map[string]map[string]float64{
		"allow": {"allow": 0.5, "allow{log=true}": 0.9, "abstain": 0.95}, "block": {"block": 1, "allow{log=true}": 0.8, "abstain": 0.95},
	}
	if err := WriteManifest(dir, &Manifest{Name: "x", Preset: "fraud", Tasks: map[string]scoring.Task{"fraud": task, "abuse": abuse}}); err != nil {
		t.Fatal(err)
	}
	label(t, dir)
	d := opened(t, dir)
	got := d.Tasks()["fraud"]
	// Under 0/1 utility the baseline is the majority.
	counts, n := map[string]float64{}, 0.0
	for l, err := range d.Labels(Filter{Scenarios: []string{"fraud"}}) {
		if err != nil {
			t.Fatal(err)
		}
		counts[l.Action]++
		n++
	}
	action, most := "allow", counts["allow"]
	if counts["block"] > most {
		action, most = "block", counts["block"]
	}
	if got.BaselineAction != action || math.Abs(float64(got.Baseline)-most/n) > 1e-12 || got.Majority != got.Baseline || got.Top != 1 {
		t.Errorf("task %+v, labels %v", got, counts)
	}
	if got.Ceiling != 0.9 || got.LabelStrength != "made up" || d.Preset() != "fraud" {
		t.Errorf("task %+v, preset %q", got, d.Preset())
	}
	// Parameters of a candidate and not to choose are constants too.
	if got := d.Tasks()["abuse"]; math.Abs(float64(got.Baseline)-0.95) > 1e-12 || got.BaselineAction != "abstain" || got.Top <= 0.95 {
		t.Errorf("abuse %+v", got)
	}
	plain := two(t)
	label(t, plain)
	if got, ok := opened(t, plain).Tasks()["abuse"]; !ok || got.BaselineAction == "" {
		t.Errorf("a scenario without a task got %+v from its labels", got)
	}
}
