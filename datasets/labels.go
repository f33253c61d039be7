package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/wholefile"
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
// label files and freezes each scenario's baseline, majority and top in dataset.yaml,
// with the SHA-256 of every label file. A row for which label returns nil keeps the label
// that it has; Ref and ID of a label are set here. Doing it again with the same labels
// changes no byte.
//
// Segments are never changed, and an error in a label leaves everything as it was. The
// anchors are never those of other labels: they are taken out of dataset.yaml before the
// first label file is replaced, each as a whole, and the new ones come in after the last.
// What was cut off in between is completed by attaching the labels again.
func AttachLabels(dir string, label func(*snapshot.Snapshot) *snapshot.Label) (*LabelReport, error) {
	return attachLabels(dir, arrowfile.LevelFastest, label)
}

func attachLabels(dir string, level arrowfile.Level, label func(*snapshot.Snapshot) *snapshot.Label) (*LabelReport, error) {
	x, err := stageLabels(dir, level, label)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{x.retract, x.install, x.freeze} {
		if err := step(); err != nil {
			return nil, errors.Join(err, x.discard())
		}
	}
	return &x.report, nil
}

// relabelling holds the labels of a data set written, and not yet in their places.
type relabelling struct {
	dir     string
	level   arrowfile.Level
	report  LabelReport
	anchors map[string]*scoring.Anchors
	files   []staged
	// manifest is what dataset.yaml will say, but for anchors and label files.
	manifest *Manifest
}

// staged is one label file: temp is to be renamed to target; empty when target stands
// already as it shall be.
type staged struct{ temp, target, digest string }

// stageLabels writes all label files beside those that are there.
func stageLabels(dir string, level arrowfile.Level, label func(*snapshot.Snapshot) *snapshot.Label) (*relabelling, error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	x := &relabelling{dir: dir, level: level, anchors: map[string]*scoring.Anchors{}}
	if x.manifest, _, err = readManifest(dir); err != nil {
		return nil, err
	}
	for i := range d.segments {
		if err := x.stage(d, &d.segments[i], label); err != nil {
			return nil, errors.Join(err, x.discard())
		}
	}
	return x, nil
}

// stage writes the label file of one segment, where there is any label to write.
func (x *relabelling) stage(d *Dataset, s *segment, label func(*snapshot.Snapshot) *snapshot.Label) error {
	// The target's own name inside the hidden one keeps two segments apart.
	target := s.labelPath()
	temp := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+arrowfile.Ext)
	if err := removeStale(temp); err != nil {
		return err
	}
	w, err := arrowfile.CreateLabels(temp, labelOptions(x.level))
	if err != nil {
		return err
	}
	before := x.report.Labelled
	err = x.report.rows(s, label, func(row *snapshot.Snapshot, l *snapshot.Label) error {
		if l != nil {
			addAnchor(x.anchors, d.tasks, row, l)
		}
		return w.Append(l)
	})
	x.files = append(x.files, staged{temp: temp, target: target})
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return x.files[len(x.files)-1].settle(x.report.Labelled > before)
}

// settle drops a new file that says what the old one says, or nothing at all.
func (f *staged) settle(labelled bool) error {
	old, err := wholefile.Digest(f.target)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = "", nil
	}
	if err != nil {
		return err
	}
	f.digest = old
	if labelled {
		if f.digest, err = wholefile.Digest(f.temp); err != nil {
			return err
		}
	}
	if f.digest == old {
		err, f.temp = os.Remove(f.temp), ""
	}
	return err
}

// addAnchor counts a label for the anchors of its row's scenario.
func addAnchor(all map[string]*scoring.Anchors, tasks map[string]scoring.Task, row *snapshot.Snapshot, l *snapshot.Label) {
	a := all[row.Scenario]
	if a == nil {
		t, ok := tasks[row.Scenario]
		if !ok {
			t = scoring.NewTask()
		}
		a = scoring.NewAnchors(t)
		all[strings.Clone(row.Scenario)] = a // rows are valid until the next step only
	}
	a.Add(l, row.KeepProb)
}

// retract takes the anchors out of dataset.yaml that new label files would belie.
func (x *relabelling) retract() error {
	if !slices.ContainsFunc(x.files, func(f staged) bool { return f.temp != "" }) {
		return nil
	}
	m := *x.manifest
	m.Labels, m.Tasks = nil, maps.Clone(m.Tasks)
	for name := range x.anchors {
		if t, ok := m.Tasks[name]; ok {
			nan := scoring.Number(math.NaN())
			t.Baseline, t.BaselineAction, t.Top, t.Majority = nan, "", nan, nan
			m.Tasks[name] = t
		}
	}
	return WriteManifest(x.dir, &m)
}

// install puts the label files in their places.
func (x *relabelling) install() error {
	for i := range x.files {
		f := &x.files[i]
		if f.temp == "" {
			continue
		}
		if err := os.Rename(f.temp, f.target); err != nil {
			return err
		}
		f.temp = ""
	}
	return wholefile.SyncDir(x.dir)
}

// freeze writes the anchors of the labels that are there now.
func (x *relabelling) freeze() error {
	m := *x.manifest
	m.Labels = map[string]string{}
	for _, f := range x.files {
		if f.digest != "" {
			m.Labels[filepath.Base(f.target)] = f.digest
		}
	}
	for name, a := range x.anchors {
		m.Tasks[name] = a.Freeze()
	}
	return WriteManifest(x.dir, &m)
}

// discard removes what was written and did not come to its place.
func (x *relabelling) discard() error {
	var errs []error
	for _, f := range x.files {
		if f.temp != "" {
			errs = append(errs, removeStale(f.temp))
		}
	}
	return errors.Join(errs...)
}

// labelOptions stops the clock, so that the same labels give the same bytes.
func labelOptions(level arrowfile.Level) arrowfile.Options {
	return arrowfile.Options{Host: "labels", Boot: "0", Level: level, Now: func() time.Time { return time.Unix(0, 0).UTC() }}
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
func (r *LabelReport) rows(s *segment, label func(*snapshot.Snapshot) *snapshot.Label, write func(*snapshot.Snapshot, *snapshot.Label) error) error {
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
