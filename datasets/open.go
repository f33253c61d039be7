package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// ErrEmpty reports a data set, or a selection of one, or a run, without rows.
var ErrEmpty = errors.New("nothing to read")

// labelExt is the extension of a segment's label file.
const labelExt = ".labels" + arrowfile.Ext

// Dataset is an opened set of sealed segments, read in the order of their names. It
// holds no file open between iterations.
type Dataset struct {
	segments []segment
	schema   *decision.Schema
	name     string
	preset   string
	tasks    map[string]scoring.Task
	warnings []scoring.Warning
	digest   string
	// whole: no segment is missing or unsealed, and every ledger closes.
	whole bool
}

// segment is one sealed file and the label file beside it, if any.
type segment struct {
	path, labels string
	meta         arrowfile.Meta
	schema       *decision.Schema
	labelled     int64
}

// Open opens data sets: each pattern is a directory, a segment, or a glob of either.
// Every byte of every segment and label file is verified. The error wraps
// arrowfile.ErrCorrupt where a file is damaged, and [ErrEmpty] where there is no row. Of
// a segment that its writer left unsealed the complete batches are read, with a warning.
// A malformed dataset.yaml is a document.Problems.
func Open(patterns ...string) (*Dataset, error) {
	files, err := find(patterns)
	if err != nil {
		return nil, err
	}
	d := &Dataset{tasks: map[string]scoring.Task{}, whole: true}
	for _, p := range files {
		if err := d.add(p); err != nil {
			return nil, err
		}
	}
	if d.rows() == 0 {
		return nil, fmt.Errorf("%w: no snapshot in %s", ErrEmpty, strings.Join(patterns, ", "))
	}
	if err := d.unite(); err != nil {
		return nil, err
	}
	if err := d.manifests(); err != nil {
		return nil, err
	}
	d.gaps()
	if keys := entityKeys(d.segments); len(keys) > 1 {
		d.warn("entity-keys", "%s", keysText(keys))
	}
	return d, nil
}

func (d *Dataset) warn(code, format string, args ...any) {
	d.warnings = append(d.warnings, scoring.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

// find expands the patterns to segment files, by name of segment, the sealed one first.
// A file that is found twice is taken once.
func find(patterns []string) ([]string, error) {
	seen := map[string]string{} // by absolute path
	for _, p := range patterns {
		paths := []string{p}
		if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
			if paths, err = filepath.Glob(p); err != nil {
				return nil, fmt.Errorf("%s: %w", p, err)
			}
			if len(paths) == 0 {
				return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
			}
		} else if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if err := expand(path, seen); err != nil {
				return nil, err
			}
		}
	}
	byName := func(a, b string) int {
		return strings.Compare(arrowfile.SegmentOf(a)+"\x00"+a, arrowfile.SegmentOf(b)+"\x00"+b)
	}
	return slices.SortedFunc(maps.Values(seen), byName), nil
}

func expand(path string, seen map[string]string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return remember(path, seen)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && segmentLike(e.Name()) {
			if err := remember(filepath.Join(path, e.Name()), seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// segmentLike holds for the names of snapshot segments, sealed or not.
func segmentLike(name string) bool {
	sealed := strings.TrimSuffix(name, arrowfile.OpenExt)
	return strings.HasSuffix(sealed, arrowfile.Ext) && !strings.HasSuffix(sealed, labelExt) && name[0] != '.'
}

// remember takes a file, but no label file: a glob of everything meets those too, and
// they go with their segments.
func remember(path string, seen map[string]string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, ok := seen[abs]; !ok && !strings.HasSuffix(path, labelExt) {
		seen[abs] = path
	}
	return nil
}

// add verifies a segment and its labels.
func (d *Dataset) add(path string) error {
	s := segment{path: path}
	open := strings.HasSuffix(path, arrowfile.OpenExt)
	if n := len(d.segments); n > 0 && d.segments[n-1].name() == s.name() {
		if open {
			d.warn("unsealed", "%s is left out: the segment was sealed under the same name", path)
			return nil
		}
		return fmt.Errorf("segment %s stands twice, in %s and %s: rows could not be told apart", s.name(), d.segments[n-1].path, path)
	}
	err := visit(path, arrowfile.KindSnapshot, func(f *arrowfile.File) error {
		s.meta, s.schema = f.Meta(), f.Schema()
		return nil
	})
	if open && s.meta.Sealed { // its writer sealed it after the directory was listed
		s.path, open = strings.TrimSuffix(path, arrowfile.OpenExt), false
	}
	if open {
		d.whole = false
		if err != nil {
			d.warn("unsealed", "%s was not sealed and holds no complete batch: %v", path, err)
			return nil
		}
		d.warn("unsealed", "%s was not sealed: its writer still runs, or was killed; the %d rows of its complete batches are read", path, s.meta.Rows)
	}
	if err != nil {
		return err
	}
	if err := s.meta.Ledger.Check(); err != nil {
		d.whole = false
		d.warn("ledger", "%s: %v", path, err)
	}
	if err := s.openLabels(); err != nil {
		return err
	}
	d.segments = append(d.segments, s)
	return nil
}

// openLabels verifies the label file, if there is one.
func (s *segment) openLabels() error {
	path := s.labelPath()
	err := visit(path, arrowfile.KindLabel, func(f *arrowfile.File) error {
		// A segment that was unsealed when it was labelled may have grown since.
		if n := f.Meta().Rows; n != s.meta.Rows && (s.meta.Sealed || n > s.meta.Rows) {
			return fmt.Errorf("%s: %w: %d labels for %d snapshots", path, arrowfile.ErrCorrupt, n, s.meta.Rows)
		}
		s.labels = path
		for l, err := range f.Labels("id") {
			if err != nil {
				return err
			}
			if l != nil {
				s.labelled++
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *segment) labelPath() string {
	return filepath.Join(filepath.Dir(s.path), s.name()+labelExt)
}

func (s *segment) name() string { return arrowfile.SegmentOf(s.path) }

// openFile opens a file, under its final name when its writer has sealed it in between.
func openFile(path string) (*arrowfile.File, error) {
	f, err := arrowfile.Open(path)
	if sealed, isOpen := strings.CutSuffix(path, arrowfile.OpenExt); isOpen && errors.Is(err, fs.ErrNotExist) {
		return arrowfile.Open(sealed)
	}
	return f, err
}

// visit opens a file of the given kind for the time of the call.
func visit(path string, kind arrowfile.Kind, use func(*arrowfile.File) error) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	if f.Kind() != kind {
		err = fmt.Errorf("%s: %w: it holds %ss, not %ss", path, arrowfile.ErrSchema, f.Kind(), kind)
	} else {
		err = use(f)
	}
	return errors.Join(err, f.Close())
}

func (d *Dataset) rows() int64 {
	n := int64(0)
	for _, s := range d.segments {
		n += s.meta.Rows
	}
	return n
}

// unite makes the union of the segments' schemas.
func (d *Dataset) unite() error {
	var schemas []*decision.Schema
	for _, s := range d.segments {
		schemas = append(schemas, s.schema)
	}
	u, err := decision.Union(schemas...)
	if err != nil {
		return fmt.Errorf("the segments do not fit together: %w", err)
	}
	d.schema = u
	return nil
}

// manifests merges the dataset.yaml of every directory, and digests the data set: the
// digests of segments and label files, each with its name, then the manifests.
func (d *Dataset) manifests() error {
	h := sha256.New()
	for _, s := range d.segments {
		digest := s.meta.Digest
		if digest == "" { // unsealed
			var err error
			if digest, err = wholefile.Digest(s.path); err != nil {
				return err
			}
		}
		fmt.Fprintf(h, "%s %s\n", s.name(), digest)
		if s.labels != "" {
			sum, err := wholefile.Digest(s.labels)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s labels %s\n", s.name(), sum)
		}
	}
	for _, dir := range d.dirs() {
		m, data, err := readManifest(dir)
		if err != nil {
			return err
		}
		if data == nil {
			continue
		}
		fmt.Fprintf(h, "%s %d\n%s", ManifestName, len(data), data)
		if err := d.merge(dir, m); err != nil {
			return err
		}
	}
	d.digest = hex.EncodeToString(h.Sum(nil))
	return nil
}

// dirs returns the directories of the segments, each once.
func (d *Dataset) dirs() []string {
	var dirs []string
	for _, s := range d.segments {
		if dir := filepath.Dir(s.path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// merge takes over another directory's manifest. Two that disagree about a scenario's
// candidates or utilities do not belong together; baselines and ceilings are facts of
// one directory's rows, so where they differ they are left open.
func (d *Dataset) merge(dir string, m *Manifest) error {
	if d.name == "" {
		d.name = m.Name
	}
	if d.preset != "" && m.Preset != "" && d.preset != m.Preset {
		d.warn("preset", "%s names the preset %s, another directory %s, which is used", dir, m.Preset, d.preset)
	} else if m.Preset != "" {
		d.preset = m.Preset
	}
	for name, t := range m.Tasks {
		old, ok := d.tasks[name]
		if !ok {
			d.tasks[name] = t
			continue
		}
		merged, same := mergeTask(old, t)
		if merged == nil {
			return fmt.Errorf("%s: the task of scenario %q is another one than in the other directories", filepath.Join(dir, ManifestName), name)
		}
		if !same {
			d.warn("anchors", "scenario %s has another baseline in %s than elsewhere: it is computed from the run's labels", name, dir)
		}
		d.tasks[name] = *merged
	}
	return nil
}

// gaps warns of segments that are missing inside a boot, or that are not those which were
// there when the next one was begun.
func (d *Dataset) gaps() {
	for i := 1; i < len(d.segments); i++ {
		a, b := d.segments[i-1].meta, d.segments[i].meta
		if a.Host == b.Host && a.Boot == b.Boot && b.Sequence != a.Sequence+1 {
			d.whole = false
			d.warn("gap", "segments %d to %d of %s-%s are missing", a.Sequence+1, b.Sequence-1, a.Host, a.Boot)
		}
	}
	c := newChain(d.segments, nil)
	for i := range d.segments {
		s := &d.segments[i]
		if l := s.meta.Previous; l != nil && c.byName[l.Segment] != nil && c.before(s) == nil {
			d.whole = false
			d.warn("chain", "segment %s is not the one that %s was written after: it was changed and sealed again, or replaced", l.Segment, s.name())
		}
	}
}

// Schema returns the union of the segments' attributes.
func (d *Dataset) Schema() *decision.Schema { return d.schema }

// Tasks returns what dataset.yaml says of each scenario.
func (d *Dataset) Tasks() map[string]scoring.Task { return d.tasks }

// Preset returns the scoring profile that dataset.yaml names, or "".
func (d *Dataset) Preset() string { return d.preset }

// Warnings returns what was found on opening that does not prevent reading.
func (d *Dataset) Warnings() []scoring.Warning { return d.warnings }

// Close lets go of the data set. It is there for symmetry: nothing is held open.
func (d *Dataset) Close() error { return nil }
