package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// ErrEmpty reports a run without outcomes.
var ErrEmpty = errors.New("nothing to score")

// ErrNotRun reports a path that is no run directory.
var ErrNotRun = errors.New("not a run directory")

// maxManifest bounds manifest.json.
const maxManifest = 16 << 20

// Run is an opened run directory. Every file was checked against the manifest's digest
// when it was opened.
type Run struct {
	dir      string
	manifest *Manifest
	digest   string
	files    map[string]File
}

// Open opens a run directory and verifies it: every file that the manifest lists is
// there and has the digest that it states. The error wraps [ErrNotRun] where there is no
// manifest, arrowfile.ErrCorrupt where something is damaged, and [ErrEmpty] where the
// run holds no outcome.
func Open(dir string) (*Run, error) {
	path := filepath.Join(dir, ManifestName)
	data, err := wholefile.Read(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no %s", ErrNotRun, dir, ManifestName)
	}
	if errors.Is(err, wholefile.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", arrowfile.ErrCorrupt, err)
	}
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(path, data)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	r := &Run{dir: dir, manifest: m, digest: hex.EncodeToString(sum[:]), files: map[string]File{}}
	outcomes := int64(0)
	for _, f := range m.Files {
		if err := r.verify(f); err != nil {
			return nil, err
		}
		r.files[f.Name] = f
		if strings.HasPrefix(f.Name, "outcomes/") {
			outcomes += f.Rows
		}
	}
	if outcomes == 0 {
		return nil, fmt.Errorf("%w: run %s holds no outcome", ErrEmpty, dir)
	}
	return r, nil
}

func (r *Run) verify(f File) error {
	path := filepath.Join(r.dir, filepath.FromSlash(f.Name))
	sum, err := wholefile.Digest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: the manifest lists it, but it is not there", path, arrowfile.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		return fmt.Errorf("%s: %w: it has the SHA-256 %s, the manifest says %s", path, arrowfile.ErrCorrupt, sum, f.SHA256)
	}
	return nil
}

// ParseManifest reads manifest.json strictly: an unknown field, a newer version, a
// second value, or a file name that leaves the directory is an error that wraps
// arrowfile.ErrCorrupt and carries the byte offset where there is one.
func ParseManifest(name string, data []byte) (*Manifest, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var m Manifest
	bad := func(format string, args ...any) (*Manifest, error) {
		return nil, fmt.Errorf("%s:+%d: %w: %s", name, dec.InputOffset(), arrowfile.ErrCorrupt, fmt.Sprintf(format, args...))
	}
	if err := dec.Decode(&m); err != nil {
		return bad("%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad("something stands after the manifest")
	}
	if m.Version < 1 || m.Version > version {
		return bad("version %d, this clefbench reads 1 to %d", m.Version, version)
	}
	lanes := map[string]bool{}
	for _, l := range m.Lanes {
		if l.Name == "" || lanes[l.Name] || !plainFile(l.File) {
			return bad("lane %q with file %q", l.Name, l.File)
		}
		lanes[l.Name] = true
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if seen[f.Name] || f.Rows < 0 || !listedName(f.Name) {
			return bad("file %q with %d rows", f.Name, f.Rows)
		}
		seen[f.Name] = true
	}
	return &m, nil
}

// plainFile holds for a name without any path in it.
func plainFile(s string) bool {
	return strings.HasSuffix(s, ".arrow") && len(s) > len(".arrow") && !strings.ContainsAny(s, "/\\\x00") && s[0] != '.'
}

func listedName(s string) bool {
	if s == labelsName {
		return true
	}
	sub, file, ok := strings.Cut(s, "/")
	return ok && slices.Contains([]string{"outcomes", "cold", "audit"}, sub) && plainFile(file)
}

// Manifest returns manifest.json; it must not be changed.
func (r *Run) Manifest() *Manifest { return r.manifest }

// Digest is the SHA-256 of the manifest, in hex. The manifest has the digest of every
// file, so it stands for the whole run.
func (r *Run) Digest() string { return r.digest }

// Info names the run in a scorecard.
func (r *Run) Info() scoring.RunInfo {
	return scoring.RunInfo{Path: r.dir, Digest: r.digest, Seed: r.manifest.Seed, Partial: r.manifest.Partial}
}

// Lanes returns the lanes in the order of the replay.
func (r *Run) Lanes() []Lane { return r.manifest.Lanes }

// Outcomes yields a lane's measured outcomes in the order of their Ref; none for a lane
// that the run does not have. A yielded row is valid until the next step.
func (r *Run) Outcomes(lane string) iter.Seq2[*snapshot.Outcome, error] {
	return r.lane("outcomes", lane)
}

// Cold yields the cold outcomes of all lanes, lane after lane.
func (r *Run) Cold() iter.Seq2[*snapshot.Outcome, error] { return r.all("cold") }

// Audit yields the re-executions of all lanes, lane after lane.
func (r *Run) Audit() iter.Seq2[*snapshot.Outcome, error] { return r.all("audit") }

// Labels yields the labels of the replayed rows in the order of their Ref.
func (r *Run) Labels() iter.Seq2[*snapshot.Label, error] {
	return rowsOf(r.path(labelsName), (*arrowfile.File).Labels)
}

// Rows pairs the labels and the measured outcomes of all lanes, in the order of Lanes.
func (r *Run) Rows() iter.Seq2[*scoring.Row, error] {
	lanes := make([]iter.Seq2[*snapshot.Outcome, error], len(r.manifest.Lanes))
	for i, l := range r.manifest.Lanes {
		lanes[i] = r.Outcomes(l.Name)
	}
	return scoring.Merge(r.Labels(), lanes)
}

// path returns where a listed file stands, or "".
func (r *Run) path(name string) string {
	if _, ok := r.files[name]; !ok {
		return ""
	}
	return filepath.Join(r.dir, filepath.FromSlash(name))
}

func (r *Run) lane(sub, lane string) iter.Seq2[*snapshot.Outcome, error] {
	for _, l := range r.manifest.Lanes {
		if l.Name == lane {
			return rowsOf(r.path(sub+"/"+l.File), (*arrowfile.File).Outcomes)
		}
	}
	return rowsOf("", (*arrowfile.File).Outcomes)
}

func (r *Run) all(sub string) iter.Seq2[*snapshot.Outcome, error] {
	return func(yield func(*snapshot.Outcome, error) bool) {
		for _, l := range r.manifest.Lanes {
			for o, err := range r.lane(sub, l.Name) {
				if !yield(o, err) || err != nil {
					return
				}
			}
		}
	}
}

// rowsOf opens a file for the time of the iteration and yields its rows; none for the
// empty path.
func rowsOf[T any](path string, rows func(*arrowfile.File, ...string) iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if path == "" {
			return
		}
		f, err := arrowfile.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for row, err := range rows(f) {
			if !yield(row, err) {
				return
			}
		}
	}
}
