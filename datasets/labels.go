package datasets

import (
	"errors"
	"fmt"
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
	anchors := map[string]*scoring.Anchors{}
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
		m.Tasks[name] = a.Freeze()
	}
	return r, WriteManifest(dir, m)
}

// segment writes the label file of one segment, where there is any label to write.
func (r *LabelReport) segment(d *Dataset, s *segment, label func(*snapshot.Snapshot) *snapshot.Label, all map[string]*scoring.Anchors) error {
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
				all[strings.Clone(row.Scenario)] = a
			}
			a.Add(l, row.KeepProb)
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

func newAnchors(tasks map[string]scoring.Task, scenario string) *scoring.Anchors {
	t, ok := tasks[scenario]
	if !ok {
		t = scoring.NewTask()
	}
	return scoring.NewAnchors(t)
}

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
