package datasets

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// ErrPolicy reports a retention that would leave data which no weight can repair, or a
// policy that means nothing.
var ErrPolicy = errors.New("retention refused")

// minKeepProb is the least keep_prob that scoring takes: a row may stand for 2^24 others.
const minKeepProb = 1.0 / (1 << 24)

// RetentionPolicy says which requests stay when a data set is thinned out.
type RetentionPolicy struct {
	// After is the age from which requests may go; younger ones all stay.
	After time.Duration `json:"after_ns"`
	// Keep is the probability in (0,1] with which an ordinary older request stays.
	Keep float64 `json:"keep"`
	// LowConfidence makes rows of a confidence below it anomalies; 0 makes none.
	LowConfidence float64 `json:"low_confidence,omitempty"`
	// Rare makes rows anomalies whose action has a smaller share of its scenario's weight;
	// 0 makes none.
	Rare float64 `json:"rare,omitempty"`
	// Rules makes rows anomalies that one of these rules decided.
	Rules []string `json:"rules,omitempty"`
}

// Check refuses a policy with an error that wraps [ErrPolicy].
func (p *RetentionPolicy) Check() error {
	switch {
	case p.Keep == 0:
		return fmt.Errorf("%w: with keep 0 no ordinary request is left, and no weight brings back a stratum of which nothing is left: "+
			"all that is estimated later would be about anomalies only", ErrPolicy)
	case !(p.Keep > 0 && p.Keep <= 1):
		return fmt.Errorf("%w: keep %v is not in (0,1]", ErrPolicy, p.Keep)
	case p.Keep < minKeepProb:
		return fmt.Errorf("%w: keep %v is below 2^-24, which scoring does not take", ErrPolicy, p.Keep)
	case p.After < 0:
		return fmt.Errorf("%w: after %v is negative", ErrPolicy, p.After)
	case !(p.LowConfidence >= 0 && p.LowConfidence <= 1):
		return fmt.Errorf("%w: low confidence %v is not in [0,1]", ErrPolicy, p.LowConfidence)
	case !(p.Rare >= 0 && p.Rare < 1):
		return fmt.Errorf("%w: rare %v is not in [0,1)", ErrPolicy, p.Rare)
	case slices.Contains(p.Rules, ""):
		return fmt.Errorf("%w: a rule without a name", ErrPolicy)
	}
	return nil
}

// RetainOptions configures [Retain].
type RetainOptions struct {
	Policy RetentionPolicy
	// Now is the time that ages are counted from; Ran is when the retention ran.
	Now, Ran time.Time
	// Seed draws other requests; the same seed over the same data draws the same ones.
	Seed uint64
	// By and Tool say who ran it, with what.
	By, Tool string
	// DryRun counts and writes nothing.
	DryRun bool
}

// Retain writes a thinned-out copy of the data set in dir to out, which must not exist, and
// returns what it did. dir is never changed, and out appears when it is complete.
//
// Requests stay or go as a whole. One stays for certain when it is younger than the
// policy says, or when any of its rows is an anomaly; any other with probability Keep.
// That probability is multiplied into keep_prob, so that weighted estimates over the copy
// are those over the original, but for the noise. Labels and artefacts come along, and
// dataset.yaml with the anchors as they are: those are facts of all the data. The file
// retention.json tells what was done, also by earlier retentions.
//
// Errors wrap [ErrPolicy] for what is refused, [ErrEmpty] where nothing would be left,
// arrowfile.ErrUnsealed where a segment is not sealed, and fs.ErrExist for out.
func Retain(dir, out string, o RetainOptions) (*Retention, error) {
	if err := o.Policy.Check(); err != nil {
		return nil, err
	}
	r, err := newRetainer(dir, &o)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		return r.count()
	}
	err = r.copyTo(out, r.writeRows, r.writeLabels, r.writeFacts, r.writeArtefacts, r.writeLog)
	if errors.Is(err, ErrPlace) {
		err = fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	if err != nil {
		return nil, err
	}
	return r.done, nil
}

// retainer is one run of Retain.
type retainer struct {
	rewriter
	opts *RetainOptions
	sort sorter
	done *Retention
}

func newRetainer(dir string, o *RetainOptions) (*retainer, error) {
	w, err := newRewriter(dir)
	if err != nil {
		return nil, err
	}
	// Once rewritten, what verify would have said of the source cannot be told any more.
	if err := sound(dir); err != nil {
		return nil, err
	}
	r := &retainer{rewriter: *w, opts: o, sort: newSorter(o, w.d.digest)}
	r.rows = r.kept
	if o.Policy.Rare > 0 {
		if err := r.sort.weigh(r.d.Snapshots(Filter{})); err != nil {
			return nil, err
		}
	}
	return r, r.sort.gather(r.d)
}

// kept yields the rows that stay, with their new keep_prob, and counts all.
func (r *retainer) kept() iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		count := newTally(r.opts)
		for request, err := range r.d.requests() {
			if err != nil {
				yield(pair{}, err)
				return
			}
			kind, criteria := r.sort.stratum(request)
			prob := 1.0
			if kind == StratumOrdinary {
				prob = r.opts.Policy.Keep
			}
			stays := r.sort.draw(request[0].row.RequestID, prob)
			count.read(kind, criteria, request)
			if !stays {
				continue
			}
			for _, p := range request {
				if p.row.KeepProb *= prob; p.row.KeepProb < minKeepProb {
					yield(pair{}, fmt.Errorf("%w: keep_prob of %v would be %v, below 2^-24, which scoring does not take", ErrPolicy, p.row.ID, p.row.KeepProb))
					return
				}
				if !yield(p, nil) {
					return
				}
			}
			count.kept(kind, request)
		}
		r.done = r.describe(count)
	}
}

// describe makes the record of what was done.
func (r *retainer) describe(count *tally) *Retention {
	return &Retention{Ran: r.opts.Ran.UTC(), By: r.opts.By, Tool: r.opts.Tool, Policy: r.opts.Policy, Now: r.opts.Now.UTC(), Seed: r.opts.Seed,
		Source: r.source(), Strata: count.list(), Criteria: count.criteria, Warnings: append(slices.Clone(r.d.warnings), count.warnings()...)}
}

// count is a dry run.
func (r *retainer) count() (*Retention, error) {
	for _, err := range r.kept() {
		if err != nil {
			return nil, err
		}
	}
	return r.done, nil
}

// writeRows writes the segments. The clock stands still, so that the same retention of
// the same data gives the same bytes.
func (r *retainer) writeRows(staging string) error {
	features, err := r.featureSets()
	if err != nil {
		return err
	}
	now := r.opts.Now
	w, err := arrowfile.Create(staging, originOptions(r.d.segments, arrowfile.Options{Host: "retained", Boot: r.boot(now),
		Schema: r.d.schema, FeatureSets: features, Replaces: r.d.digest, Now: func() time.Time { return now }}))
	if err != nil {
		return err
	}
	for p, err := range r.kept() {
		if err == nil {
			err = w.Append(p.row)
		}
		if err != nil {
			return errors.Join(err, w.Close(snapshot.Ledger{}, snapshot.Ledger{}))
		}
	}
	lost, total := r.done.ledgers()
	if err := w.Close(lost, total); err != nil {
		return err
	}
	if total.Written == 0 {
		return fmt.Errorf("%w: no request of %s would be left", ErrEmpty, r.dir)
	}
	return nil
}

// writeFacts copies dataset.yaml with its anchors. It lists no label files: those that
// the anchors rest on stay behind, and retention.json lists the new ones.
func (r *retainer) writeFacts(staging string) error {
	fresh, _, err := readManifest(staging)
	if err != nil {
		return err
	}
	r.done.Labels = maps.Clone(fresh.Labels)
	m, data, err := readManifest(r.dir)
	if err != nil || data == nil {
		return err
	}
	m.Labels = nil
	return WriteManifest(staging, m)
}

func (r *retainer) writeLog(staging string) error { return writeEntries(staging, r.log, r.done) }
