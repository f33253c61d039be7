package scoring

import (
	"maps"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
)

// The columns of a tally's group table. Weights are in fixed point (28 bits); values
// are weight times utility (28+44 bits).
const (
	colOffered   = iota
	colAnswered  // ok, denied, abstain
	colTimed     // rows whose latency is known, or that were missed
	colInTime    // answered within the deadline
	colTruth     // rows with a usable truth
	colUtility   // weight times utility
	colRightOf   // rows with a right action
	colRight     // of them, rightly chosen
	colForecast  // answered rows with probabilities for all candidates
	colBrier     // weight times half the Brier score
	colRecorded  // rows with a recorded action
	colAgreed    // of them, with the same action
	colAudit     // four pairs: asked, held; in the order of auditColumns
	colAuditEnd  = colAudit + 2*4
	colMeters    = colAuditEnd // the lane's meters follow
	maxConfusion = 1 << 16
	maxReasons   = 1000
)

// tally is everything that is kept about one lane in one scenario: sums of integers
// only, so that tallies of parts merge to the tally of the whole, bit for bit.
type tally struct {
	task   *task
	groups *stats.Groups
	truths *truths
	counts Counts
	// clusters counts distinct clusters; requests are those offered.
	clusters stats.Distinct
	requests int64
	// all counts the rows behind clusters, which pairs do not reduce.
	all int64

	// squares of weights, for effective sample sizes: of all rows, and of the audited
	// rows by question.
	squares      stats.Sum
	auditSquares [4]stats.Sum
	audited      int64
	// auditClusters counts the clusters of the audit sample.
	auditClusters stats.Distinct
	// weighted: a row had a weight other than 1. plain: every usable truth was 0/1.
	weighted, graded bool
	unknownTruth     int64
	rewards          int64
	noForecast       int64 // answered rows with a right action, without probabilities

	// untimed is the weight of answered requests without a latency.
	untimed, timed stats.Sum
	// asked is the weight of calls (first rows of requests) that were really made, and
	// failedUncharged that of the failed ones that could not be priced; uncharged is the
	// weight of answered rows that could not.
	asked, uncharged, failedUncharged stats.Sum
	unchargedWhy                      string

	confusion map[[2]string]stats.Sum
	overflow  bool
	reasons   map[string]int64
}

func newTally(t *task, meters int) *tally {
	return &tally{
		task: t, groups: stats.NewGroups(colMeters + meters), truths: newTruths(),
		confusion: map[[2]string]stats.Sum{}, reasons: map[string]int64{},
	}
}

// observation is one row of one lane, read once and added to every tally that it
// belongs to: the lane's own, and those of pairs.
type observation struct {
	row     *Row
	cluster uint64
	weight  uint64
	status  decision.Status
	choice  string
	chosen  string // for the confusion of actions
	truth   truth
	utility uint64
	right   bool
	// forecast: the row has probabilities for all candidates; brier is half its score.
	forecast bool
	brier    uint64

	first    bool // first row of its request
	latency  int64
	timed    bool // the latency is known
	inTime   bool
	charge   charge
	recorded bool
	agreed   bool
	reason   string
}

func (t *tally) add(o *observation) {
	slot := t.groups.Slot(o.cluster)
	row := t.groups.Row(slot)
	row[colOffered].Add(o.weight)
	t.squares.AddProduct(o.weight, o.weight)
	t.weighted = t.weighted || o.weight != 1<<weightBits
	t.clusters.Add(o.cluster)
	t.all++
	t.count(o)
	answered := o.status.Answered()
	if answered {
		row[colAnswered].Add(o.weight)
	}
	if o.recorded {
		row[colRecorded].Add(o.weight)
		if o.agreed {
			row[colAgreed].Add(o.weight)
		}
	}
	t.addTruth(row, o)
	t.addLatency(row, t.groups.Histogram(slot), o)
	t.addCharge(row, o)
}

func (t *tally) count(o *observation) {
	c := &t.counts
	c.Offered++
	switch o.status {
	case decision.Timeout:
		c.Timeouts++
	case decision.NotReplayable:
		c.NotReplayable++
	case decision.OK, decision.Denied, decision.Abstain:
		c.Answered++
		if o.status == decision.Denied {
			c.Denied++
		}
		if o.status == decision.Abstain {
			c.Abstained++
		}
	default:
		c.Errors++
	}
	if o.reason != "" {
		t.addReason(o.reason, 1)
	}
	if o.row.Label != nil {
		c.Labelled++
	}
	if o.first {
		t.requests++
	}
}

// otherReasons stands for error codes in excess of maxReasons.
const otherReasons = "(other)"

// addReason counts error codes; a flood of different ones becomes one, whatever the
// order they came in.
func (t *tally) addReason(code string, n int64) {
	_, flooded := t.reasons[otherReasons]
	_, known := t.reasons[code]
	switch {
	case known:
	case flooded:
		code = otherReasons
	case code == otherReasons || len(t.reasons) >= maxReasons:
		for _, v := range t.reasons {
			n += v
		}
		clear(t.reasons)
		code = otherReasons
	default:
		code = strings.Clone(code)
	}
	t.reasons[code] += n
}

func (t *tally) addTruth(row []stats.Sum, o *observation) {
	switch o.truth {
	case truthNone:
		return
	case truthReward:
		t.rewards++
		return
	case truthUnknown:
		t.unknownTruth++
		return
	case truthUtilities:
		t.graded = true
	}
	l := o.row.Label
	t.truths.add(t.task, l, o.weight)
	row[colTruth].Add(o.weight)
	row[colUtility].AddProduct(o.weight, o.utility)
	if l.Action == "" {
		return
	}
	row[colRightOf].Add(o.weight)
	if o.right {
		row[colRight].Add(o.weight)
	}
	t.addForecast(row, o)
	t.addConfusion(l.Action, o.chosen, o.weight)
}

func (t *tally) addForecast(row []stats.Sum, o *observation) {
	if o.forecast {
		row[colForecast].Add(o.weight)
		row[colBrier].AddProduct(o.weight, o.brier)
	} else if o.status == decision.OK || o.status == decision.Denied {
		t.noForecast++
	}
}

func (t *tally) addConfusion(truth, chosen string, w uint64) {
	key := [2]string{truth, chosen}
	s, ok := t.confusion[key]
	if !ok {
		if len(t.confusion) == maxConfusion {
			t.overflow = true
			return
		}
		key = [2]string{strings.Clone(truth), strings.Clone(chosen)}
	}
	s.Add(w)
	t.confusion[key] = s
}

// histBits is the resolution of weights in latency histograms.
const histBits = 16

func (t *tally) addLatency(row []stats.Sum, hist *stats.Histogram, o *observation) {
	answered := o.status.Answered()
	if answered && !o.timed {
		if o.first {
			t.untimed.Add(o.weight)
		}
		return
	}
	row[colTimed].Add(o.weight)
	if o.inTime {
		row[colInTime].Add(o.weight)
	}
	if !o.first {
		return // the latency is the request's: counted once
	}
	w := o.weight >> (weightBits - histBits)
	if answered {
		t.timed.Add(o.weight)
		hist.Add(uint64(max(o.latency, 0)), w)
	} else {
		hist.AddInf(w)
	}
}

func (t *tally) addCharge(row []stats.Sum, o *observation) {
	if o.status == decision.NotReplayable {
		return // never asked, so nothing was spent
	}
	if o.first {
		t.asked.Add(o.weight)
	}
	for _, r := range o.charge.readings[:o.charge.n] {
		row[colMeters+r.meter].AddProduct(o.weight, r.quantity)
	}
	switch {
	case o.charge.unknown == "":
	case o.status.Answered():
		t.uncharged.Add(o.weight)
		// The smallest text, so that the order of rows does not show.
		if t.unchargedWhy == "" || o.charge.unknown < t.unchargedWhy {
			t.unchargedWhy = strings.Clone(o.charge.unknown)
		}
	case o.first:
		t.failedUncharged.Add(o.weight)
	}
}

// merge adds the tally of other rows.
func (t *tally) merge(o *tally) {
	t.groups.Merge(o.groups)
	t.clusters.Merge(&o.clusters)
	t.auditClusters.Merge(&o.auditClusters)
	t.combine(o, false)
	t.weighted = t.weighted || o.weighted
	t.graded = t.graded || o.graded
	t.audited += o.audited
	t.all += o.all
	if t.unchargedWhy == "" || (o.unchargedWhy != "" && o.unchargedWhy < t.unchargedWhy) {
		t.unchargedWhy = o.unchargedWhy
	}
	for code, n := range o.reasons {
		t.addReason(code, n)
	}
	for k, v := range o.confusion {
		s, ok := t.confusion[k]
		if !ok && len(t.confusion) == maxConfusion {
			t.overflow = true
			continue
		}
		s.AddSum(v)
		t.confusion[k] = s
	}
	t.overflow = t.overflow || o.overflow
}

// without returns the tally less some of its rows. What pairs do not ask for (clusters,
// reasons, confusion, audit) stays that of all rows.
func (t *tally) without(o *tally) *tally {
	c := *t
	c.groups = t.groups.Clone()
	c.groups.Sub(o.groups)
	c.truths = t.truths.clone()
	c.counts = t.counts
	c.combine(o, true)
	return &c
}

// combine adds or takes away what subtracts.
func (t *tally) combine(o *tally, minus bool) {
	t.truths.combine(o.truths, minus)
	sign := int64(1)
	if minus {
		sign = -1
	}
	t.counts.combine(&o.counts, sign)
	t.requests += sign * o.requests
	t.unknownTruth += sign * o.unknownTruth
	t.rewards += sign * o.rewards
	t.noForecast += sign * o.noForecast
	addSum(&t.squares, o.squares, minus)
	for i := range t.auditSquares {
		addSum(&t.auditSquares[i], o.auditSquares[i], minus)
	}
	addSum(&t.untimed, o.untimed, minus)
	addSum(&t.timed, o.timed, minus)
	addSum(&t.asked, o.asked, minus)
	addSum(&t.uncharged, o.uncharged, minus)
	addSum(&t.failedUncharged, o.failedUncharged, minus)
}

func (c *Counts) combine(o *Counts, sign int64) {
	c.Offered += sign * o.Offered
	c.Answered += sign * o.Answered
	c.Abstained += sign * o.Abstained
	c.Denied += sign * o.Denied
	c.Timeouts += sign * o.Timeouts
	c.Errors += sign * o.Errors
	c.NotReplayable += sign * o.NotReplayable
	c.Labelled += sign * o.Labelled
}

func (a *truths) clone() *truths {
	c := *a
	c.byAction, c.right, c.excess = maps.Clone(a.byAction), maps.Clone(a.right), maps.Clone(a.excess)
	return &c
}
