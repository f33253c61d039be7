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

	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// RetentionName is the file of a thinned-out data set that says what was done to it.
const RetentionName = "retention.json"

const (
	// retentionVersion is the version of retention.json: a higher one is refused.
	retentionVersion = 1
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
	Source   RetentionSource  `json:"source"`
	Strata   []StratumCount   `json:"strata"`
	Criteria map[string]int64 `json:"criteria"`
	// Labels holds the SHA-256 of each new label file.
	Labels   map[string]string `json:"labels,omitempty"`
	Warnings []scoring.Warning `json:"warnings,omitempty"`
}

// RetentionSource is the data set that was thinned out. Its ledger tells what the recorder
// had offered, sampled out and dropped before.
type RetentionSource struct {
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

// entry is a retention as it stands in the file: what a newer program of the same version
// added is carried on.
type entry = json.RawMessage

type retentionLog struct {
	Version    int     `json:"version"`
	Retentions []entry `json:"retentions"`
}

// ReadRetentions returns what retention.json of a data set tells, oldest first; nothing
// where there is no such file. A damaged file is an error that wraps arrowfile.ErrCorrupt.
func ReadRetentions(dir string) ([]Retention, error) {
	entries, err := readEntries(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Retention, len(entries))
	for i, e := range entries {
		if err := json.Unmarshal(e, &out[i]); err != nil {
			return nil, fmt.Errorf("%s: %w: retention %d: %w", filepath.Join(dir, RetentionName), arrowfile.ErrCorrupt, i+1, err)
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
func writeEntries(dir string, earlier []entry, done *Retention) error {
	last, err := json.Marshal(done)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(retentionLog{retentionVersion, append(slices.Clone(earlier), last)}, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, RetentionName), append(data, '\n'))
}
