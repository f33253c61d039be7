package datasets

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// flipped labels as truthOf does, with the other action.
func flipped(s *snapshot.Snapshot) *snapshot.Label {
	l := truthOf(s)
	if l != nil {
		l.Action = map[string]string{"allow": "block", "block": "deny"}[l.Action]
	}
	return l
}

// An invalid label in the second segment leaves the first segment's labels, the anchors
// and every other byte as they were.
func TestFailedRelabellingChangesNothing(t *testing.T) {
	dir := two(t)
	label(t, dir)
	before := contents(t, dir)
	seen := map[string]bool{}
	_, err := AttachLabels(dir, func(s *snapshot.Snapshot) *snapshot.Label {
		if seen[strings.Clone(s.Ref.Segment)] = true; len(seen) == 2 && s.Ref.Row == 3 {
			return &snapshot.Label{Action: "allow", Utilities: []snapshot.ActionUtility{{Action: "allow", Utility: 7}}}
		}
		return flipped(s)
	})
	if !errors.Is(err, snapshot.ErrInvalid) || len(seen) != 2 {
		t.Fatalf("error %v after %d segments", err, len(seen))
	}
	if !same(before, contents(t, dir)) {
		t.Error("a refused label changed something, or left a file behind")
	}
}

// staleAnchors returns the anchors in dataset.yaml that are not those of the labels that
// are there.
func staleAnchors(t *testing.T, dir string) (stale []string, frozen int) {
	t.Helper()
	m, _, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, task := range m.Tasks {
		a := scoring.NewAnchors(task)
		for l, err := range opened(t, dir).Labels(Filter{Scenarios: []string{name}}) {
			if err != nil {
				t.Fatal(err)
			}
			a.Add(l, 1)
		}
		want := a.Freeze()
		for what, v := range map[string][2]scoring.Number{"baseline": {task.Baseline, want.Baseline}, "top": {task.Top, want.Top}, "majority": {task.Majority, want.Majority}} {
			if math.IsNaN(float64(v[0])) {
				continue
			}
			if frozen++; v[0] != v[1] {
				stale = append(stale, fmt.Sprintf("%s of %s is %v, of the labels %v", what, name, v[0], v[1]))
			}
		}
	}
	return stale, frozen
}

// Killed after any step, a re-labelling leaves no anchors of other labels; done again, it
// is the whole one.
func TestKilledRelabelling(t *testing.T) {
	whole := two(t)
	label(t, whole)
	if _, err := AttachLabels(whole, flipped); err != nil {
		t.Fatal(err)
	}
	want := contents(t, whole)
	for name, steps := range map[string]func(x *relabelling) error{
		"staged":    func(*relabelling) error { return nil },
		"retracted": (*relabelling).retract,
		"first installed": func(x *relabelling) error {
			first := *x
			first.files = slices.Clone(x.files[:1])
			return errors.Join(x.retract(), first.install())
		},
		"installed": func(x *relabelling) error { return errors.Join(x.retract(), x.install()) },
		"frozen":    func(x *relabelling) error { return errors.Join(x.retract(), x.install(), x.freeze()) },
	} {
		dir := two(t)
		label(t, dir)
		x, err := stageLabels(dir, arrowfile.LevelFastest, flipped)
		if err != nil {
			t.Fatal(err)
		}
		if err := steps(x); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		stale, frozen := staleAnchors(t, dir)
		if len(stale) > 0 || (frozen > 0) != (name == "staged" || name == "frozen") {
			t.Errorf("%s: %d anchors, stale: %q", name, frozen, stale)
		}
		if v := verified(t, dir); v.Err() != nil {
			t.Errorf("%s: %v", name, v.Err())
		}
		if _, err := AttachLabels(dir, flipped); err != nil {
			t.Fatalf("%s: again: %v", name, err)
		}
		if got := contents(t, dir); !same(want, got) {
			t.Errorf("%s: done again it is not the whole: %q", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// What does not come to its place is removed again, and the anchors are gone.
func TestRelabellingThatCannotInstall(t *testing.T) {
	dir := two(t)
	label(t, dir)
	x, err := stageLabels(dir, arrowfile.LevelFastest, flipped)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, x.files[0].temp)
	if err := errors.Join(x.retract(), x.install()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := x.discard(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*arrow*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if stale, frozen := staleAnchors(t, dir); frozen != 0 {
		t.Errorf("anchors are left: %d, %q", frozen, stale)
	}
}
