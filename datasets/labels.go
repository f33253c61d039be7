package datasets

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// LabelReport counts what [AttachLabels] did, in rows.
type LabelReport struct {
	// Snapshots is the number of rows that were looked at; Labelled of them have a label
	// now, of which Added had none before and Changed had another one.
	Snapshots, Labelled, Added, Changed int64
}

// AttachLabels asks label for the truth of every row of the data set in dir, writes the
// label files and freezes each scenario's baseline, majority and top in dataset.yaml. A
// row for which label returns nil keeps the label that it has; Ref and ID of a label are
// set here. Doing it again with the same labels changes no byte.
//
// Segments are never changed, and a label file is replaced as a whole: a reader sees the
// old labels or the new ones.
func AttachLabels(dir string, label func(*snapshot.Snapshot) *snapshot.Label) (*LabelReport, error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	r := &LabelReport{}
	anchors := map[string]*anchors{}
	for i := range d.segments {
		if err := r.segment(d, &d.segments[i], label, anchors); err != nil {
			return nil, err
		}
	}
	m, _, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	for name, a := range anchors {
		m.Tasks[name] = a.freeze()
	}
	return r, WriteManifest(dir, m)
}

// segment writes the label file of one segment, where there is any label to write.
func (r *LabelReport) segment(d *Dataset, s *segment, label func(*snapshot.Snapshot) *snapshot.Label, all map[string]*anchors) error {
	// The target's own name inside the hidden one keeps two segments apart.
	target := s.labelPath()
	temp := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+arrowfile.Ext)
	if err := removeStale(temp); err != nil {
		return err
	}
	w, err := arrowfile.CreateLabels(temp, labelOptions(s))
	if err != nil {
		return err
	}
	before := r.Labelled
	err = r.rows(d, s, label, func(row *snapshot.Snapshot, l *snapshot.Label) error {
		if l != nil {
			a := all[row.Scenario]
			if a == nil {
				a = newAnchors(d.tasks, row.Scenario)
				all[row.Scenario] = a
			}
			a.add(l, row.Weight())
		}
		return w.Append(l)
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, removeStale(temp))
	}
	if r.Labelled == before {
		return os.Remove(temp) // nothing is labelled, and nothing was
	}
	return os.Rename(temp, target)
}

// labelOptions names the file after its segment and stops the clock, so that the same
// labels give the same bytes.
func labelOptions(s *segment) arrowfile.Options {
	return arrowfile.Options{Host: "labels", Boot: "0", Now: func() time.Time { return time.Unix(0, 0).UTC() }}
}

func removeStale(temp string) error {
	for _, p := range []string{temp, temp + arrowfile.OpenExt} {
		if err := os.Remove(p); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// rows calls write with each row and its label, old or new.
func (r *LabelReport) rows(d *Dataset, s *segment, label func(*snapshot.Snapshot) *snapshot.Label, write func(*snapshot.Snapshot, *snapshot.Label) error) error {
	for p, err := range s.pairs() {
		if err != nil {
			return err
		}
		r.Snapshots++
		l := p.label
		if fresh := label(p.row); fresh != nil {
			fresh = fresh.Clone()
			fresh.Ref, fresh.ID = p.row.Ref, p.row.ID
			switch {
			case l == nil:
				r.Added++
			case !sameLabel(l, fresh):
				r.Changed++
			}
			l = fresh
		}
		if l != nil {
			r.Labelled++
		}
		if err := write(p.row, l); err != nil {
			return fmt.Errorf("%s row %d: %w", s.name(), p.row.Ref.Row, err)
		}
	}
	return nil
}

func sameLabel(a, b *snapshot.Label) bool {
	return a.Action == b.Action && slices.Equal(a.Utilities, b.Utilities) && a.Reward == b.Reward &&
		a.Source == b.Source && a.Key == b.Key && a.Time.Equal(b.Time)
}

// anchors collects what a scenario's labels say about constant policies. It keeps sums
// only, so that its size does not grow with the rows.
type anchors struct {
	task scoring.Task
	// right: the weight of the rows by right action; byTruth: of those without utilities
	// of their own, from whose right action the utilities follow.
	right, byTruth map[string]float64
	// For rows with utilities of their own: the weighted sums of the least and of the
	// largest that an allowed action earns, and what each action earns above the least.
	least, most float64
	excess      map[string]float64
	weight      float64 // of all rows whose utilities are known
}

func newAnchors(tasks map[string]scoring.Task, scenario string) *anchors {
	t, ok := tasks[scenario]
	if !ok {
		t = scoring.NewTask()
	}
	return &anchors{task: t, right: map[string]float64{}, byTruth: map[string]float64{}, excess: map[string]float64{}}
}

// add takes a label in. The utilities are those of package scoring: the label's own
// before the task's matrix before 1 for the right action; they are unknown for a label
// that holds a reward only, or an action that the matrix does not know.
func (a *anchors) add(l *snapshot.Label, weight float64) {
	action := strings.Clone(l.Action) // the label is valid until the next row only
	if action != "" {
		a.right[action] += weight
	}
	switch {
	case len(l.Utilities) > 0:
		a.own(l.Utilities, weight)
	case action == "", a.task.Utility != nil && a.task.Utility[action] == nil:
		return
	default:
		a.byTruth[action] += weight
	}
	a.weight += weight
}

func (a *anchors) own(us []snapshot.ActionUtility, weight float64) {
	least, most := us[0].Utility, math.Inf(-1)
	for _, u := range us {
		least = min(least, u.Utility)
		if len(a.task.Candidates) == 0 || slices.Contains(a.task.Candidates, u.Action) {
			most = max(most, u.Utility)
		}
	}
	a.least += weight * least
	a.most += weight * max(most, least) // what is not listed earns the least
	for _, u := range us {
		a.excess[strings.Clone(u.Action)] += weight * (u.Utility - least)
	}
}

// value is what an action earns where another one is right.
func (a *anchors) value(truth, action string) float64 {
	switch {
	case a.task.Utility != nil:
		if u, ok := a.task.Utility[truth][action]; ok {
			return u
		}
		if a.task.Unanswered != nil {
			return *a.task.Unanswered
		}
	case truth == action:
		return 1
	}
	return 0
}

// constants lists what a constant policy may choose.
func (a *anchors) constants() []string {
	if len(a.task.Candidates) > 0 {
		return a.task.Candidates
	}
	set := map[string]bool{}
	for c := range a.excess {
		set[c] = true
	}
	for truth := range a.byTruth {
		if a.task.Utility == nil {
			set[truth] = true
		}
		for c := range a.task.Utility[truth] {
			set[c] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// freeze returns the task with its anchors.
func (a *anchors) freeze() scoring.Task {
	t := a.task
	nan := scoring.Number(math.NaN())
	t.Baseline, t.BaselineAction, t.Top, t.Majority = nan, "", nan, nan
	if a.weight > 0 {
		utilities, top := map[string]float64{}, a.most
		for _, truth := range slices.Sorted(maps.Keys(a.byTruth)) {
			best := 0.0
			for _, c := range a.constants() {
				best = max(best, a.value(truth, c))
				utilities[c] += a.byTruth[truth] * a.value(truth, c)
			}
			top += a.byTruth[truth] * best
		}
		for _, c := range a.constants() {
			utilities[c] += a.least + a.excess[c]
		}
		action, sum := largest(utilities)
		t.Baseline, t.BaselineAction = unitNumber(sum/a.weight), action
		t.Top = unitNumber(top / a.weight)
	}
	total := 0.0
	for _, action := range slices.Sorted(maps.Keys(a.right)) {
		total += a.right[action]
	}
	if total > 0 {
		_, w := largest(a.right)
		t.Majority = unitNumber(w / total)
	}
	return t
}

// largest returns the key of the largest value, the first in order among equals.
func largest(m map[string]float64) (key string, value float64) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if key == "" || m[k] > value {
			key, value = k, m[k]
		}
	}
	return key, value
}

// unitNumber takes off what summing may have added above 1.
func unitNumber(x float64) scoring.Number { return scoring.Number(min(max(x, 0), 1)) }

// mergeTask joins what two directories say of one scenario; nil when they disagree about
// what it is. Anchors on which they differ are left open, and same is false.
func mergeTask(a, b scoring.Task) (merged *scoring.Task, same bool) {
	if !slices.Equal(a.Candidates, b.Candidates) || !reflect.DeepEqual(a.Utility, b.Utility) || !reflect.DeepEqual(a.Unanswered, b.Unanswered) {
		return nil, false
	}
	same = true
	for _, f := range [][2]*scoring.Number{{&a.Baseline, &b.Baseline}, {&a.Top, &b.Top}, {&a.Majority, &b.Majority}, {&a.Ceiling, &b.Ceiling}} {
		if *f[0] != *f[1] && !(math.IsNaN(float64(*f[0])) && math.IsNaN(float64(*f[1]))) {
			*f[0], same = scoring.Number(math.NaN()), false
		}
	}
	if a.BaselineAction != b.BaselineAction {
		a.BaselineAction, a.Baseline, same = "", scoring.Number(math.NaN()), false
	}
	return &a, same
}
