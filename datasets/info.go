package datasets

import (
	"cmp"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/datasets/runs"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// Info describes a data set.
type Info struct {
	Name   string `json:"name,omitempty"`
	Preset string `json:"preset,omitempty"`
	scoring.DatasetInfo
	Labelled   int64          `json:"labelled"`
	From       time.Time      `json:"from"`
	To         time.Time      `json:"to"`
	Scenarios  []ScenarioInfo `json:"scenarios"`
	Strategies []StrategyInfo `json:"strategies"`
	Segments   []SegmentInfo  `json:"segments"`
	// CaptureLists counts the distinct capture lists that the segments were recorded under,
	// those without a digest of the list told apart by their attributes alone.
	CaptureLists int             `json:"capture_lists"`
	Attributes   []AttributeInfo `json:"attributes"`
	// EntityKeys are the ids of the keys under which entities are hashed; Redaction is what
	// was done about secrets in bodies (secrets, raw-bodies). Segments may not say.
	EntityKeys []string          `json:"entity_keys,omitempty"`
	Redaction  []string          `json:"redaction,omitempty"`
	Warnings   []scoring.Warning `json:"warnings"`
}

// ScenarioInfo counts one scenario, in rows and requests.
type ScenarioInfo struct {
	Name      string `json:"name"`
	Snapshots int64  `json:"snapshots"`
	Requests  int64  `json:"requests"`
	Labelled  int64  `json:"labelled"`
	// Actions counts what was recorded; rows without an action are under their status.
	Actions map[string]int64 `json:"actions"`
	// Task is what dataset.yaml says; nil when it says nothing.
	Task *scoring.Task `json:"task,omitempty"`
}

// StrategyInfo counts the rows that one strategy decided.
type StrategyInfo struct {
	Backend   string `json:"backend"`
	Version   string `json:"version"`
	Digest    string `json:"digest,omitempty"`
	Snapshots int64  `json:"snapshots"`
}

// SegmentInfo describes a file.
type SegmentInfo struct {
	Path     string `json:"path"`
	Rows     int64  `json:"rows"`
	Labelled int64  `json:"labelled"`
	Sealed   bool   `json:"sealed"`
	Digest   string `json:"digest,omitempty"`
	// CaptureList is the digest of the list that it was recorded under, where it was told.
	CaptureList string `json:"capture_list,omitempty"`
	// Sampling says how its rows were chosen when they were recorded, where that was told.
	Sampling string `json:"sampling,omitempty"`
}

// AttributeInfo describes an attribute and counts the rows that have a value.
type AttributeInfo struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Values int64  `json:"values"`
}

// scenario returns the counts of a scenario, new ones for a new name.
func (i *Info) scenario(name string) *ScenarioInfo {
	for k := range i.Scenarios {
		if i.Scenarios[k].Name == name {
			return &i.Scenarios[k]
		}
	}
	i.Scenarios = append(i.Scenarios, ScenarioInfo{Name: strings.Clone(name), Actions: map[string]int64{}})
	return &i.Scenarios[len(i.Scenarios)-1]
}

// Info reads the whole data set once and describes it.
func (d *Dataset) Info() (*Info, error) {
	i := &Info{Name: d.name, Preset: d.preset, Warnings: d.warnings}
	i.Digest, i.Intact = d.digest, d.whole
	i.EntityKeys, i.Redaction = entityKeys(d.segments), origins(d.segments, redactionOf)
	for _, f := range d.schema.Fields() {
		i.Attributes = append(i.Attributes, AttributeInfo{Name: f.Name, Type: f.Type.String()})
	}
	strategies := map[StrategyInfo]int64{}
	lists := map[[2]string]bool{}
	var last decision.ID
	for k := range d.segments {
		s := &d.segments[k]
		i.Ledger.Add(s.meta.Ledger)
		lists[[2]string{s.meta.CaptureDigest, s.meta.CaptureList}] = true
		i.Segments = append(i.Segments, SegmentInfo{s.path, s.meta.Rows, s.labelled, s.meta.Sealed, s.meta.Digest, s.meta.CaptureList, s.meta.Sampling})
		at := positions(s.schema, d.schema)
		for p, err := range s.pairs() {
			if err != nil {
				return nil, err
			}
			i.count(p, at, p.row.RequestID != last)
			strategies[strategyOf(p.row)]++
			last = p.row.RequestID
		}
	}
	i.CaptureLists = len(lists)
	for _, key := range slices.SortedFunc(maps.Keys(strategies), compareStrategies) {
		n := strategies[key]
		key.Snapshots = n
		i.Strategies = append(i.Strategies, key)
	}
	slices.SortFunc(i.Scenarios, func(a, b ScenarioInfo) int { return cmp.Compare(a.Name, b.Name) })
	for k := range i.Scenarios {
		if t, ok := d.tasks[i.Scenarios[k].Name]; ok {
			i.Scenarios[k].Task = &t
		}
	}
	return i, nil
}

// count takes one row in.
func (i *Info) count(p pair, at []int, first bool) {
	row := p.row
	s := i.scenario(row.Scenario)
	i.Snapshots++
	s.Snapshots++
	if first {
		i.Requests++
		s.Requests++
	}
	if p.label != nil {
		i.Labelled++
		s.Labelled++
	}
	if row.Action != "" {
		s.Actions[row.Action]++
	} else {
		s.Actions["("+row.Status.String()+")"]++
	}
	if i.From.IsZero() || row.Time.Before(i.From) {
		i.From = row.Time
	}
	if row.Time.After(i.To) {
		i.To = row.Time
	}
	for k, v := range row.Attrs.Values {
		if !v.IsNull() && k < len(at) {
			i.Attributes[at[k]].Values++
		}
	}
}

func strategyOf(row *snapshot.Snapshot) StrategyInfo {
	s := StrategyInfo{Backend: row.Backend, Version: row.Artefact.StrategyVersion}
	if d := row.Artefact.StrategyDigest; d != [32]byte{} {
		s.Digest = hex.EncodeToString(d[:])
	}
	return s
}

func compareStrategies(a, b StrategyInfo) int {
	return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Digest, b.Digest))
}

// Describe opens data sets and describes them.
func Describe(patterns ...string) (*Info, error) {
	d, err := Open(patterns...)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Info()
}

// Listing is one data set found by [List].
type Listing struct {
	Path     string `json:"path"`
	Name     string `json:"name,omitempty"`
	Segments int    `json:"segments"`
	// Unsealed counts segments that were not sealed, Labels label files.
	Unsealed int   `json:"unsealed"`
	Labels   int   `json:"labels"`
	Bytes    int64 `json:"bytes"`
	// Problem says why dataset.yaml could not be read; the segments are not opened.
	Problem string `json:"problem,omitempty"`
}

// List finds the data sets at and below root: directories that hold segments. It looks
// at names and sizes only; run directories are left out.
func List(root string) ([]Listing, error) {
	var out []Listing
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case path != root && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, runs.ManifestName)); err == nil {
			return fs.SkipDir
		}
		l, err := listing(path)
		if err == nil && l.Segments+l.Unsealed > 0 {
			out = append(out, *l)
		}
		return err
	})
	return out, err
}

func listing(dir string) (*Listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Listing{Path: dir}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		switch name := e.Name(); {
		case strings.HasSuffix(name, labelExt) && name[0] != '.':
			l.Labels++
		case !segmentLike(name):
			continue
		case strings.HasSuffix(name, arrowfile.OpenExt):
			l.Unsealed++
		default:
			l.Segments++
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // sealed or deleted while we looked
		}
		if err != nil {
			return nil, err
		}
		l.Bytes += info.Size()
	}
	m, _, err := readManifest(dir)
	if err != nil {
		l.Problem = err.Error()
		return l, nil
	}
	l.Name = m.Name
	return l, nil
}
