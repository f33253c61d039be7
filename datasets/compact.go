package datasets

import (
	"errors"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// CompactOptions configures [Compact].
type CompactOptions struct {
	// Level is how hard the new files are compressed; LevelBetter by default.
	Level arrowfile.Level
	// Ran is when the compaction ran; By and Tool say who ran it, with what.
	Ran      time.Time
	By, Tool string
}

// Compaction is the record of one compaction.
type Compaction struct {
	Kind   string          `json:"kind"`
	Ran    time.Time       `json:"ran_at"`
	By     string          `json:"by,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Level  arrowfile.Level `json:"level"`
	Source RewriteSource   `json:"source"`
	// Before and After are the files of rows and labels.
	Before Files `json:"before"`
	After  Files `json:"after"`
	// Labels holds the SHA-256 of each new label file.
	Labels map[string]string `json:"labels,omitempty"`
	// Mended is the number of values that had been mended when they were recorded; the new
	// segments do not count them again.
	Mended int64 `json:"mended,omitempty"`
}

// Files counts segments, label files and the bytes of both.
type Files struct {
	Segments int   `json:"segments"`
	Labels   int   `json:"labels"`
	Bytes    int64 `json:"bytes"`
}

// Compact writes the rows of the data set in dir to out, which must not exist, in full
// segments of full batches, compressed harder than a recorder can afford, and returns what
// it did. dir is never changed, and out appears when it is complete.
//
// Nothing is lost: the rows are the same in the same order, and so are the sums of the
// ledgers; labels, dataset.yaml and artefacts come along. The new segments have other
// names, and begin a chain of their own that refers to the digest of dir. Runs hold all
// that they need, and never look for the segments that they were made of.
//
// dir is verified first, and out before it appears: what is damaged is not made to look
// sound. Errors wrap fs.ErrExist and [ErrPlace] for out, arrowfile.ErrUnsealed where a segment is not
// sealed, and arrowfile.ErrCorrupt.
func Compact(dir, out string, o CompactOptions) (*Compaction, error) {
	if o.Level == "" {
		o.Level = arrowfile.LevelBetter
	}
	w, err := newRewriter(dir)
	if err != nil {
		return nil, err
	}
	if err := sound(dir); err != nil {
		return nil, err
	}
	c := &compactor{rewriter: *w, opts: &o}
	c.rows, c.level = c.all, o.Level
	err = c.copyTo(out, c.writeRows, c.writeLabels, c.writeFacts, c.writeArtefacts, c.writeLog, sound)
	if err != nil {
		return nil, err
	}
	return c.done, nil
}

// sound verifies a data set.
func sound(dir string) error {
	v, err := Verify(dir)
	if err != nil {
		return err
	}
	return v.Err()
}

// compactor is one run of Compact.
type compactor struct {
	rewriter
	opts *CompactOptions
	done *Compaction
}

// all yields every row.
func (c *compactor) all() iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		for i := range c.d.segments {
			for p, err := range c.d.segments[i].pairs() {
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}

// writeRows writes the segments. Those that were recorded under another configuration of
// the capture list get a writer of their own, because its digest stands in the segments.
func (c *compactor) writeRows(staging string) error {
	rest := c.d.segments
	for boot := 0; len(rest) > 0; boot++ {
		n := 1
		for n < len(rest) && rest[n].meta.CaptureList == rest[0].meta.CaptureList {
			n++
		}
		if err := c.merge(staging, boot, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// merge writes segments as those of one recorder.
func (c *compactor) merge(staging string, boot int, segments []segment) error {
	o, err := c.options(boot, segments)
	if err != nil {
		return err
	}
	w, err := arrowfile.Create(staging, *o)
	if err != nil {
		return err
	}
	account := account{}
	for i := range segments {
		account.sum.Add(segments[i].meta.Ledger)
		for p, err := range segments[i].pairs() {
			if err == nil {
				account.row(p.row)
				err = w.Append(p.row)
			}
			if err != nil {
				return errors.Join(err, w.Close(snapshot.Ledger{}, snapshot.Ledger{}))
			}
		}
	}
	return w.Close(account.ledgers())
}

// options are those of a writer. The clock stands still, so that age ends no segment and
// the same data give the same bytes.
func (c *compactor) options(boot int, segments []segment) (*arrowfile.Options, error) {
	features, err := c.featureSets()
	if err != nil {
		return nil, err
	}
	now := c.opts.Ran.Add(time.Duration(boot) * time.Millisecond)
	o := &arrowfile.Options{Host: "compacted", Boot: c.boot(now), Schema: segments[0].schema, FeatureSets: features,
		CaptureDigest: segments[0].meta.CaptureList, Level: c.opts.Level, Now: func() time.Time { return now }}
	*o = originOptions(segments, *o)
	if boot == 0 {
		o.Replaces = c.d.digest
	}
	o.Seed, err = seeds(segments)
	return o, err
}

// seeds lists the labels of all dictionaries: each label that is not known at the beginning
// would end a segment.
func seeds(segments []segment) (map[string][]string, error) {
	out := map[string][]string{}
	for i := range segments {
		err := visit(segments[i].path, arrowfile.KindSnapshot, func(f *arrowfile.File) error {
			for name, labels := range f.Dictionaries() {
				for _, l := range labels {
					if at, known := slices.BinarySearch(out[name], l); !known {
						out[name] = slices.Insert(out[name], at, l)
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// account adds up what segments account for, beside what the writer counts itself.
type account struct {
	sum     snapshot.Ledger
	rows    uint64
	begun   uint64
	request [16]byte
}

func (a *account) row(s *snapshot.Snapshot) {
	a.rows++
	if s.RequestID != a.request {
		a.request = s.RequestID
		a.begun++
	}
}

// ledgers returns the losses, and all. Requests of which the first row was cut off, with
// the batch that counted them, count as written by the rows that are there.
func (a *account) ledgers() (lost, total snapshot.Ledger) {
	lost = a.sum.Clone()
	lost.Offered, lost.Written = lost.Offered-lost.Written, 0
	if q := lost.Requests; q != nil {
		q.Offered, q.Written = q.Offered-q.Written, 0
	}
	total = snapshot.Ledger{Offered: a.rows, Written: a.rows, Requests: &snapshot.Counts{Offered: a.begun, Written: a.begun}}
	total.Add(lost)
	return lost, total
}

// writeFacts copies dataset.yaml, with the new label files in the place of the old ones
// where it lists them.
func (c *compactor) writeFacts(staging string) error {
	fresh, written, err := readManifest(staging)
	if err != nil {
		return err
	}
	m, data, err := readManifest(c.dir)
	if err != nil {
		return err
	}
	if err := c.describe(staging, fresh.Labels); err != nil {
		return err
	}
	switch {
	case data != nil:
		if len(m.Labels) > 0 {
			m.Labels = maps.Clone(fresh.Labels)
		}
		return WriteManifest(staging, m)
	case written != nil: // attaching the labels made one
		return os.Remove(filepath.Join(staging, ManifestName))
	}
	return nil
}

// describe makes the record of what was done.
func (c *compactor) describe(staging string, labels map[string]string) (err error) {
	c.done = &Compaction{Kind: compactionKind, Ran: c.opts.Ran.UTC(), By: c.opts.By, Tool: c.opts.Tool, Level: c.opts.Level,
		Source: c.source(), Labels: labels}
	for i := range c.d.segments {
		c.done.Mended += c.d.segments[i].meta.Mended
	}
	if c.done.Before, err = filesOf(c.dir); err == nil {
		c.done.After, err = filesOf(staging)
	}
	return err
}

// filesOf counts the files of a data set.
func filesOf(dir string) (Files, error) {
	l, err := listing(dir)
	if err != nil {
		return Files{}, err
	}
	return Files{Segments: l.Segments, Labels: l.Labels, Bytes: l.Bytes}, nil
}

func (c *compactor) writeLog(staging string) error { return writeEntries(staging, c.log, c.done) }
