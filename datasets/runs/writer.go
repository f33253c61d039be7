package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// The files of a run directory.
const (
	ManifestName  = "manifest.json"
	labelsName    = "labels.arrow"
	scorecardName = "scorecard.json"
	// version 2 has requests in the ledger.
	version = 2
)

// ErrExists reports a directory that a run must not replace, because it holds other
// files.
var ErrExists = errors.New("the directory is in use")

// Manifest is manifest.json: what was replayed, how, and the digest of every file. It
// is written last, so a directory that has one is complete.
type Manifest struct {
	Version int `json:"version"`
	// Tool is the version of clefbench that replayed.
	Tool    string    `json:"tool"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Partial marks a replay that was interrupted.
	Partial bool    `json:"partial"`
	Seed    uint64  `json:"seed"`
	Plan    Plan    `json:"plan"`
	Dataset Dataset `json:"dataset"`
	Lanes   []Lane  `json:"lanes"`
	Machine Machine `json:"machine"`
	Files   []File  `json:"files"`
}

// Plan is how the replay was run.
type Plan struct {
	Scenarios []string      `json:"scenarios,omitempty"`
	Block     int           `json:"block"`
	Warmup    int           `json:"warmup"`
	Timeout   time.Duration `json:"timeout_ns"`
	Audit     int           `json:"audit"`
	Repeats   int           `json:"repeats"`
}

// Dataset says what was replayed, with the facts of dataset.yaml as they stood then.
type Dataset struct {
	Paths []string `json:"paths"`
	scoring.DatasetInfo
	Preset   string                  `json:"preset,omitempty"`
	Tasks    map[string]scoring.Task `json:"tasks,omitempty"`
	Warnings []scoring.Warning       `json:"warnings,omitempty"`
}

// Lane is one backend of the replay.
type Lane struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Spec is the backend specification as it was given; it never holds a secret.
	Spec string `json:"spec,omitempty"`
	// Engine, Strategy and Digest are the versions and the content hash (hex) of what
	// decided, where one artefact decides for the whole lane.
	Engine   string `json:"engine,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Digest   string `json:"digest,omitempty"`
	// File is the lane's file name inside outcomes/, cold/ and audit/; Create sets it.
	File string `json:"file"`
}

// Machine is where the replay ran: what latencies depend on.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	// Model is the processor's name where the system tells it.
	Model string `json:"model,omitempty"`
}

// File is a sealed file of the run.
type File struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range bytes.Lines(info) {
			if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == "model name" {
				m.Model = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

// Writer writes a run. It works in a hidden directory beside the final one, which
// takes its place on [Writer.Close]; until then an older run stays readable. It is
// not safe for concurrent use.
type Writer struct {
	dir, staging string
	manifest     Manifest
	lanes        map[string]string // name to file
	outcomes     map[string]*outcomeFile
	labels       *arrowfile.LabelWriter
	labelRows    int64
}

type outcomeFile struct {
	w    *arrowfile.OutcomeWriter
	rows int64
}

// Create starts a run in dir, which must not exist, be empty, or hold an older run
// and nothing else; otherwise the error wraps [ErrExists]. Of the manifest, Version,
// Partial, Files and the lanes' File are set by the writer.
func Create(dir string, m Manifest) (*Writer, error) {
	dir = filepath.Clean(dir)
	if err := replaceable(dir); err != nil {
		return nil, err
	}
	files, err := laneFiles(m.Lanes)
	if err != nil {
		return nil, err
	}
	m.Version, m.Lanes = version, slices.Clone(m.Lanes)
	for i := range m.Lanes {
		m.Lanes[i].File = files[m.Lanes[i].Name]
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return nil, err
	}
	return &Writer{dir: dir, staging: staging, manifest: m, lanes: files, outcomes: map[string]*outcomeFile{}}, nil
}

// replaceable refuses a directory that holds what no run wrote: it would be lost.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case ManifestName, labelsName, scorecardName, "outcomes", "cold", "audit":
		default:
			return fmt.Errorf("%w: %s holds %s, which no replay wrote", ErrExists, dir, e.Name())
		}
	}
	return nil
}

// laneFiles gives each lane a file name: the lane's name where it is one on every
// system, else with the odd characters as %XX, and a number where two names differ in
// case only.
func laneFiles(lanes []Lane) (map[string]string, error) {
	files, taken := map[string]string{}, map[string]bool{}
	for _, l := range lanes {
		if _, dup := files[l.Name]; dup || l.Name == "" {
			return nil, fmt.Errorf("lane name %q is empty or stands twice", l.Name)
		}
		base := fileName(l.Name)
		name := base
		for n := 2; taken[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[strings.ToLower(name)] = true
		files[l.Name] = name + ".arrow"
	}
	return files, nil
}

func fileName(lane string) string {
	var b strings.Builder
	for i := range len(lane) {
		c := lane[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if s := b.String(); len(s) <= 100 {
		return s
	}
	sum := sha256.Sum256([]byte(lane))
	return b.String()[:80] + "-" + hex.EncodeToString(sum[:8])
}

// Append writes an outcome to the file of its lane and phase. Outcomes of a lane and
// phase come in the order of replay.
func (w *Writer) Append(o *snapshot.Outcome) error {
	file, ok := w.lanes[o.Backend]
	if !ok {
		return fmt.Errorf("outcome of %q, which is no lane of the run", o.Backend)
	}
	sub := ""
	switch o.Phase {
	case snapshot.PhaseMeasured:
		sub = "outcomes"
	case snapshot.PhaseCold, snapshot.PhaseAudit:
		sub = string(o.Phase)
	default:
		return fmt.Errorf("outcome of phase %q", o.Phase)
	}
	name := sub + "/" + file
	f := w.outcomes[name]
	if f == nil {
		if err := os.MkdirAll(filepath.Join(w.staging, sub), 0o755); err != nil {
			return err
		}
		aw, err := arrowfile.CreateOutcomes(filepath.Join(w.staging, sub, file), arrowfile.Options{})
		if err != nil {
			return err
		}
		f = &outcomeFile{w: aw}
		w.outcomes[name] = f
	}
	f.rows++
	return f.w.Append(o)
}

// AppendLabel writes the label of a replayed row; labels come in the order of their Ref.
func (w *Writer) AppendLabel(l *snapshot.Label) error {
	if w.labels == nil {
		lw, err := arrowfile.CreateLabels(filepath.Join(w.staging, labelsName), arrowfile.Options{})
		if err != nil {
			return err
		}
		w.labels = lw
	}
	w.labelRows++
	return w.labels.Append(l)
}

// Close seals the files, writes the manifest and puts the run in its place. Partial
// marks a replay that was interrupted. After an error nothing is left behind but the
// older run.
func (w *Writer) Close(partial bool) error {
	err := w.seal(partial)
	if err == nil {
		err = w.publish()
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(w.staging))
	}
	return nil
}

// Abort drops the run.
func (w *Writer) Abort() error {
	return errors.Join(w.closeFiles(), os.RemoveAll(w.staging))
}

func (w *Writer) closeFiles() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.outcomes)) {
		errs = append(errs, w.outcomes[name].w.Close())
	}
	if w.labels != nil {
		errs = append(errs, w.labels.Close())
	}
	return errors.Join(errs...)
}

func (w *Writer) seal(partial bool) error {
	if err := w.closeFiles(); err != nil {
		return err
	}
	rows := map[string]int64{}
	for name, f := range w.outcomes {
		rows[name] = f.rows
	}
	if w.labels != nil {
		rows[labelsName] = w.labelRows
	}
	m := w.manifest
	m.Partial, m.Files = partial, []File{}
	if m.Ended.IsZero() {
		m.Ended = time.Now().UTC()
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		sum, err := wholefile.Digest(filepath.Join(w.staging, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		m.Files = append(m.Files, File{Name: name, Rows: rows[name], SHA256: sum})
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(w.staging, ManifestName), append(data, '\n'))
}

// publish moves an older run aside, the new one in, and only then removes the older.
func (w *Writer) publish() error {
	if err := replaceable(w.dir); err != nil {
		return err
	}
	if err := os.Chmod(w.staging, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	old := w.staging + ".old"
	err := os.Rename(w.dir, old)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(w.staging, w.dir)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(w.staging, w.dir); err != nil {
		return errors.Join(err, os.Rename(old, w.dir))
	}
	return os.RemoveAll(old)
}
