package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// RetentionName is the file of a data set that was made of another one by [Retain] or
// [Compact]. It says what was done, the latest last.
const RetentionName = "retention.json"

const (
	// retentionVersion is the version of retention.json: a higher one is refused. Version 2
	// has compactions among its entries; without any, version 1 is written.
	retentionVersion = 2
	// maxRetentionLog bounds retention.json: 16 MiB, some thousand retentions.
	maxRetentionLog = 16 << 20
)

// Retention is the record of one retention: who ran which policy when, over what, and what
// became of it.
type Retention struct {
	Ran      time.Time        `json:"ran_at"`
	By       string           `json:"by,omitempty"`
	Tool     string           `json:"tool,omitempty"`
	Policy   RetentionPolicy  `json:"policy"`
	Now      time.Time        `json:"now"`
	Seed     uint64           `json:"seed"`
	Source   RewriteSource    `json:"source"`
	Strata   []StratumCount   `json:"strata"`
	Criteria map[string]int64 `json:"criteria"`
	// Labels holds the SHA-256 of each new label file.
	Labels   map[string]string `json:"labels,omitempty"`
	Warnings []scoring.Warning `json:"warnings,omitempty"`
}

// RewriteSource is the data set that another one was made of. Its ledger tells what the recorder
// had offered, sampled out and dropped before.
type RewriteSource struct {
	Digest    string          `json:"digest"`
	Snapshots int64           `json:"snapshots"`
	Ledger    snapshot.Ledger `json:"ledger"`
	// Heads are the last segments of its chains: what a checkpoint of it signs.
	Heads []checkpoint.Head `json:"heads,omitempty"`
}

// Rows returns how many rows were read and how many stayed.
func (r *Retention) Rows() (read, kept int64) {
	for _, s := range r.Strata {
		read, kept = read+s.RowsRead, kept+s.RowsKept
	}
	return read, kept
}

// ledgers accounts for a retention, in rows and requests: what it left out, and all.
func (r *Retention) ledgers() (lost, total snapshot.Ledger) {
	var q snapshot.Counts
	for _, s := range r.Strata {
		total.Offered, total.Written = total.Offered+uint64(s.RowsRead), total.Written+uint64(s.RowsKept)
		q.Offered, q.Written = q.Offered+uint64(s.RequestsRead), q.Written+uint64(s.RequestsKept)
	}
	total.SampledOut, q.SampledOut = total.Offered-total.Written, q.Offered-q.Written
	total.Requests = &q
	lost = snapshot.Ledger{Offered: total.SampledOut, SampledOut: total.SampledOut,
		Requests: &snapshot.Counts{Offered: q.SampledOut, SampledOut: q.SampledOut}}
	return lost, total
}

// entry is a retention or a compaction as it stands in the file: what a newer program of
// the same version added is carried on.
type entry = json.RawMessage

// compactionKind marks entries that are no retention.
const compactionKind = "compaction"

// rewrite is what all entries tell.
type rewrite struct {
	Kind   string            `json:"kind"`
	Source RewriteSource     `json:"source"`
	Labels map[string]string `json:"labels"`
}

type retentionLog struct {
	Version    int     `json:"version"`
	Retentions []entry `json:"retentions"`
}

// ReadRetentions returns the retentions of which retention.json of a data set tells, oldest
// first; nothing where there is no such file. A damaged file is an error that wraps
// arrowfile.ErrCorrupt.
func ReadRetentions(dir string) ([]Retention, error) {
	return readLog[Retention](dir, func(kind string) bool { return kind == "" })
}

// ReadCompactions returns the compactions, as [ReadRetentions] the retentions.
func ReadCompactions(dir string) ([]Compaction, error) {
	return readLog[Compaction](dir, func(kind string) bool { return kind == compactionKind })
}

func readRewrites(dir string) ([]rewrite, error) {
	return readLog[rewrite](dir, func(string) bool { return true })
}

// readLog reads the entries of the kinds that are wanted.
func readLog[E any](dir string, want func(kind string) bool) ([]E, error) {
	entries, err := readEntries(dir)
	if err != nil {
		return nil, err
	}
	out := make([]E, 0, len(entries))
	for i, e := range entries {
		var head struct {
			Kind string `json:"kind"`
		}
		var full E
		err := json.Unmarshal(e, &head)
		if err == nil && want(head.Kind) {
			err = json.Unmarshal(e, &full)
			out = append(out, full)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: entry %d: %w", filepath.Join(dir, RetentionName), arrowfile.ErrCorrupt, i+1, err)
		}
	}
	return out, nil
}

func readEntries(dir string) ([]entry, error) {
	path := filepath.Join(dir, RetentionName)
	data, err := readBounded(path, maxRetentionLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseEntries(path, data)
}

func parseEntries(name string, data []byte) ([]entry, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var l retentionLog
	err := dec.Decode(&l)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err == nil && (l.Version < 1 || l.Version > retentionVersion) {
		err = fmt.Errorf("version %d, this program reads 1 to %d", l.Version, retentionVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:+%d: %w: %w", name, dec.InputOffset(), arrowfile.ErrCorrupt, err)
	}
	return l.Retentions, nil
}

// writeEntries writes the earlier entries and a new one.
func writeEntries(dir string, earlier []entry, done any) error {
	last, err := json.Marshal(done)
	if err != nil {
		return err
	}
	log := retentionLog{1, append(slices.Clone(earlier), last)}
	for _, e := range log.Retentions {
		var head rewrite
		if err := json.Unmarshal(e, &head); err != nil {
			return err
		}
		if head.Kind != "" {
			log.Version = retentionVersion
		}
	}
	data, err := json.MarshalIndent(log, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, RetentionName), append(data, '\n'))
}
