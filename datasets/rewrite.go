package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// ErrPlace reports a new directory that is inside the data set which it is made of.
var ErrPlace = errors.New("the new directory is inside the data set, which is not changed")

// rewriter makes a new data set of one that is never changed. It is built in a hidden
// directory beside its place, so that it is there as a whole or not at all.
type rewriter struct {
	dir string
	d   *Dataset
	// rows yields what goes over, the same each time.
	rows func() iter.Seq2[pair, error]
	// level is that of the new files.
	level arrowfile.Level
	log   []entry
}

func newRewriter(dir string) (*rewriter, error) {
	if err := allSealed(dir); err != nil {
		return nil, err
	}
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	log, err := readEntries(dir)
	return &rewriter{dir: dir, d: d, level: arrowfile.LevelFastest, log: log}, err
}

// allSealed refuses segments that a recorder still writes or left behind: rows that are
// neither kept nor counted would be lost with the old directory.
func allSealed(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), arrowfile.Ext+arrowfile.OpenExt) {
			return fmt.Errorf("%s: %w: its rows would be neither kept nor counted", filepath.Join(dir, e.Name()), arrowfile.ErrUnsealed)
		}
	}
	return nil
}

// source describes the data set for the record of what was made of it.
func (r *rewriter) source() RewriteSource {
	out := RewriteSource{Digest: r.d.digest, Snapshots: r.d.rows(), Heads: newChain(r.d.segments, nil).listHeads()}
	for i := range r.d.segments {
		out.Ledger.Add(r.d.segments[i].meta.Ledger)
	}
	return out
}

// boot names the new segments: by time, as those of recorders, and by what they are of.
func (r *rewriter) boot(now time.Time) string {
	return fmt.Sprintf("%012x%s", max(now.UnixMilli(), 0), r.d.digest[:8])
}

// copyTo builds the new data set step by step, and puts it into its place.
func (r *rewriter) copyTo(out string, steps ...func(staging string) error) (err error) {
	out = filepath.Clean(out)
	if err := r.free(out); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(staging))
		}
	}()
	for _, step := range steps {
		if err := step(staging); err != nil {
			return err
		}
	}
	if err := forget(staging); err != nil {
		return err
	}
	if err := os.Chmod(staging, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	if err := r.free(out); err != nil {
		return err
	}
	if err := os.Rename(staging, out); err != nil {
		return err
	}
	return wholefile.SyncDir(filepath.Dir(out))
}

// forget removes what a recorder would go on from: nobody goes on with this chain.
func forget(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, ".chain-*"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// free refuses a place that is taken, or inside the data set.
func (r *rewriter) free(out string) error {
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("%s: %w", out, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.Stat(r.dir)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	for up := filepath.Dir(abs); ; up = filepath.Dir(up) {
		if info, err := os.Stat(up); err == nil && os.SameFile(info, dir) {
			return fmt.Errorf("%s: %w", out, ErrPlace)
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

// featureSets joins what the segments say of their features.
func (r *rewriter) featureSets() (map[string][]string, error) {
	all := map[string][]string{}
	for i := range r.d.segments {
		for name, features := range r.d.segments[i].meta.FeatureSets {
			if old, ok := all[name]; ok && !slices.Equal(old, features) {
				return nil, fmt.Errorf("%s: feature set %q has other features than in earlier segments", r.d.segments[i].path, name)
			}
			all[name] = features
		}
	}
	return all, nil
}

// writeLabels goes through the rows once more, beside the new segments.
func (r *rewriter) writeLabels(staging string) error {
	if !slices.ContainsFunc(r.d.segments, func(s segment) bool { return s.labelled > 0 }) {
		return nil
	}
	next, stop := iter.Pull2(r.rows())
	defer stop()
	var failed error
	_, err := attachLabels(staging, r.level, func(s *snapshot.Snapshot) *snapshot.Label {
		p, err, ok := next()
		switch {
		case failed != nil || err != nil:
			failed = errors.Join(failed, err)
			return nil
		case !ok || p.row.ID != s.ID:
			failed = fmt.Errorf("%s row %d: %v stands where another row was copied", s.Ref.Segment, s.Ref.Row, s.ID)
			return nil
		}
		return p.label
	})
	return errors.Join(err, failed)
}

func (r *rewriter) writeArtefacts(staging string) error {
	dir := filepath.Join(r.dir, ArtefactDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name()[0] == '.' {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := readBounded(path, maxArtefact)
		if err != nil {
			return err
		}
		if err := checkArtefact(path, data); err != nil {
			return err
		}
		if err := StoreArtefact(staging, data); err != nil {
			return err
		}
	}
	return nil
}
