package scoring

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/internal/stats"
)

const (
	tooFewClusters = "too few clusters"
	termSkill      = "Brier skill"
	termPrice      = "per 1000 answered"
)

// laneResult is a lane fully evaluated.
type laneResult struct {
	lane   *laneState
	models []*model // by scenario, in the order of names
	names  []string
	point  []values
	run    values
	score  BackendScore
	// intervals are those of the run.
	intervals *intervals
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// column is what a statistic's groups are counted by.
func column(s stat) int {
	switch s {
	case statUtility, statDecision, statSkill, statAccuracy:
		return colTruth
	case statAttainment:
		return colTimed
	case statPrice, statCost:
		return colAnswered
	case statRight:
		return colRightOf
	case statAgree:
		return colRecorded
	case statAudit:
		return colAudit
	}
	for i, q := range auditColumns() {
		if s == statQ1+stat(q) {
			return colAudit + 2*i
		}
	}
	return colOffered
}

func needsLatency(s stat) bool {
	return s == statP50 || s == statP95 || s == statP99 || s == statLatency || s == statTotal
}

// groups is the number of groups that a statistic rests on: those of any scenario. A
// total rests on no more than its weakest category does.
func (iv *intervals) groups(s stat) int {
	if s == statTotal {
		return iv.totalGroups()
	}
	if needsLatency(s) {
		return iv.groupsOf(iv.ensemble.coarse, s)
	}
	return iv.groupsOf(iv.ensemble.fine, s)
}

// totalGroups counts in the coarse frames: the replicates of the total come from them.
func (iv *intervals) totalGroups() int {
	n := math.MaxInt
	for i, weight := range iv.ensemble.profile.Weights.list() {
		if weight > 0 {
			n = min(n, iv.groupsOf(iv.ensemble.coarse, categoryStats()[i]))
		}
	}
	return n
}

func (iv *intervals) groupsOf(frames []*stats.Frame, s stat) int {
	if s == statAudit {
		return max(iv.filled(frames, colAudit), iv.filled(frames, colAudit+2), iv.filled(frames, colAudit+4), iv.filled(frames, colAudit+6))
	}
	return iv.filled(frames, column(s))
}

func (iv *intervals) filled(frames []*stats.Frame, col int) int {
	if len(frames) == 1 {
		return frames[0].Filled(col)
	}
	n := 0
	for g := range frameGroups(frames) {
		for _, f := range frames {
			if f.Cols[col][g] != 0 {
				n++
				break
			}
		}
	}
	return n
}

func frameGroups(frames []*stats.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	return frames[0].Groups
}

// estimate gives a statistic its interval; na is why it has no value.
func (iv *intervals) estimate(s stat, value float64, na string) Estimate {
	nan := Number(math.NaN())
	if na != "" || math.IsNaN(value) {
		if na == "" {
			na = "not measured"
		}
		return Estimate{Value: nan, Lo: nan, Hi: nan, NA: na}
	}
	if math.IsInf(value, 0) {
		return Estimate{Value: nan, Lo: nan, Hi: nan, NA: "beyond every answer"}
	}
	reps := iv.fine[s]
	if needsLatency(s) {
		reps = iv.coarse[s]
	}
	lo, hi, ok := stats.Interval(value, reps, iv.groups(s))
	if !ok {
		return Estimate{Value: Number(value), Lo: nan, Hi: nan, NoInterval: tooFewClusters}
	}
	if top := ceiling(s); !math.IsNaN(top) {
		lo, hi = max(0, lo), min(top, hi)
	}
	return Estimate{Value: Number(value), Lo: Number(lo), Hi: Number(hi)}
}

// ceiling bounds a statistic from above; 0 bounds it from below.
func ceiling(s stat) float64 {
	switch s {
	case statDecision, statAccuracy, statLatency, statCost, statAudit, statTotal:
		return 100
	case statPrice, statP50, statP95, statP99:
		return math.MaxFloat64
	case statSkill:
		return math.NaN()
	}
	return 1
}

// fixed is a term without an interval, because it is no estimate.
func fixed(name string, value float64) Term {
	nan := Number(math.NaN())
	t := Term{Name: name, Weight: nan, Estimate: Estimate{Value: Number(value), Lo: nan, Hi: nan, NoInterval: "an anchor"}}
	if math.IsNaN(value) {
		t.NA, t.NoInterval = "unknown", ""
	}
	return t
}

func (iv *intervals) term(name string, weight float64, s stat, value float64, na string) Term {
	return Term{Name: name, Weight: Number(weight), Estimate: iv.estimate(s, value, na)}
}

// scenario builds a lane's score in one scenario.
func (c *Collection) scenario(iv *intervals, v values, ms *meters) ScenarioScore {
	m := iv.ensemble.models[0]
	t := m.tally
	s := ScenarioScore{
		MajorityAction: m.anchors.majority, Majority: known(t.task.Majority, m.anchors.majorityShare), Ceiling: t.task.Ceiling,
		BaseUtility: Number(m.anchors.base), TopUtility: Number(m.anchors.top),
	}
	s.Categories = Categories{
		Accuracy: m.accuracyCategory(iv, &v), Latency: m.latencyCategory(iv, &v),
		Cost: m.costCategory(iv, &v, ms), Auditability: m.auditCategory(iv, &v),
	}
	s.LatencyNs = Quantiles{P50: quantileOf(m.histogram, 0.5), P95: quantileOf(m.histogram, 0.95), P99: quantileOf(m.histogram, 0.99), Cold: Number(math.NaN())}
	s.Distribution = distribution(m.histogram)
	s.Confusion = t.confusionTable()
	s.Counts = t.finalCounts()
	c.finish(&s.Result, iv, &v)
	s.Ineligible = floors(c.profile, &s.Categories)
	s.Eligible = len(s.Ineligible) == 0
	return s
}

func known(frozen Number, computed float64) Number {
	if math.IsNaN(float64(frozen)) {
		return Number(computed)
	}
	return frozen
}

// finish fills what scenarios and runs have in common.
func (c *Collection) finish(s *Result, iv *intervals, v *values) {
	s.Total = iv.estimate(statTotal, v[statTotal], totalNA(&s.Categories, c.profile.Weights))
	s.Geometric = Number(math.NaN())
	if s.Total.NA == "" {
		s.Geometric = Number(geometricScore(v.categories(), c.profile.Weights))
	}
	s.ActionAccuracy = iv.estimate(statRight, v[statRight], naIf(v[statRight], "no labels with a right action"))
	s.Agreement = iv.estimate(statAgree, v[statAgree], naIf(v[statAgree], "no recorded action"))
	s.CostPer1000 = iv.estimate(statPrice, v[statPrice], naIf(v[statPrice], s.Categories.Cost.NA))
}

func naIf(v float64, reason string) string {
	if math.IsNaN(v) {
		return reason
	}
	return ""
}

// list returns the categories in their order, with their names.
func (c *Categories) list() (names [4]string, cats [4]*Category) {
	return [4]string{"accuracy", "latency", "cost", "auditability"},
		[4]*Category{&c.Accuracy, &c.Latency, &c.Cost, &c.Auditability}
}

func (m *model) accuracyCategory(iv *intervals, v *values) Category {
	na := m.na[catAccuracy]
	cat := Category{Estimate: iv.estimate(statAccuracy, v[statAccuracy], na)}
	kind := "0/1 utility"
	if m.tally.task.utility != nil {
		kind = "utility matrix"
	}
	if m.tally.graded {
		kind = "utilities of each label"
	}
	if m.sums[colTruth] > 0 {
		cat.Evidence = fmt.Sprintf("L1 labels: %d of %d decisions, %s", m.tally.usableLabels(), m.tally.counts.Offered, kind)
	} else {
		cat.Evidence = "none"
	}
	u := naIf(v[statUtility], "no labels")
	cat.Terms = []Term{
		iv.term("U", math.NaN(), statUtility, v[statUtility], u),
		fixed("U_base", m.anchors.base), fixed("U_top", m.anchors.top),
		iv.term("A_dec", math.NaN(), statDecision, v[statDecision], naIf(v[statDecision], na)),
		iv.term(termSkill, bonus, statSkill, v[statSkill], naIf(v[statSkill], orElse(na, m.noSkill))),
	}
	return cat
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (t *tally) usableLabels() int64 { return t.counts.Labelled - t.unknownTruth - t.rewards }

func (m *model) latencyCategory(iv *intervals, v *values) Category {
	na := m.na[catLatency]
	cat := Category{Estimate: iv.estimate(statLatency, v[statLatency], na)}
	a := m.profile.Latency
	cat.Evidence = fmt.Sprintf("%d requests, deadline %v, scale %v to %v", m.tally.requests, a.Deadline, a.Good, a.Bad)
	cat.Terms = []Term{iv.term("attainment", math.NaN(), statAttainment, v[statAttainment], na)}
	for i, q := range m.terms {
		s := statP50 + stat(i)
		cat.Terms = append(cat.Terms, iv.term(q.name, q.weight, s, v[s], ""))
	}
	return cat
}

func (m *model) costCategory(iv *intervals, v *values, ms *meters) Category {
	na := m.na[catCost]
	cat := Category{Estimate: iv.estimate(statCost, v[statCost], na), Evidence: ms.evidence(m.profile.Prices)}
	if cat.Evidence == "" {
		cat.Evidence = "none"
	}
	if na != "" {
		return cat
	}
	cat.Terms = []Term{iv.term(termPrice, math.NaN(), statPrice, v[statPrice], "")}
	for i, e := range ms.list {
		if p := m.meterPrice(m.sums, i); p > 0 || (i > 0 && e.price == 0) {
			name := e.unit
			if e.model != "" {
				name += " of " + e.model
			}
			t := fixed(name, p)
			t.NoInterval = "part of the price"
			cat.Terms = append(cat.Terms, t)
		}
	}
	return cat
}

func (m *model) auditCategory(iv *intervals, v *values) Category {
	var unmeasured []string
	var terms []Term
	for i, q := range auditQuestions() {
		s := statQ1 + stat(i)
		t := Term{Name: q.name, Weight: Number(q.weight), Estimate: iv.estimate(s, v[s], naIf(v[s], m.unmeasured(i)))}
		if t.NA != "" {
			unmeasured = append(unmeasured, q.name)
		} else {
			m.wilson(i, &t)
		}
		terms = append(terms, t)
	}
	na := ""
	if math.IsNaN(v[statAudit]) {
		na = "less than half of the weight is measured"
		if m.tally.audited == 0 {
			na = "no audit sample"
		}
	}
	cat := Category{Estimate: iv.estimate(statAudit, v[statAudit], na), Terms: terms}
	cat.Evidence = fmt.Sprintf("%d audited decisions", m.tally.audited)
	if len(unmeasured) > 0 {
		cat.Evidence += "; unmeasured: " + strings.Join(unmeasured, ", ")
	}
	return cat
}

func (m *model) unmeasured(i int) string {
	switch {
	case i == 3:
		return "not measured in this version"
	case m.tally.audited == 0:
		return "no audit sample"
	case i == 1:
		return "no decision was executed twice"
	}
	return "the replay reports nothing on it"
}

// wilson gives a fraction its Wilson interval, over the effective number of audited
// decisions when weights differ.
func (m *model) wilson(i int, t *Term) {
	cols := auditColumns()
	k := slices.Index(cols[:], i)
	if k < 0 { // q6: a fact of the data set
		t.Lo, t.Hi, t.NoInterval = Number(math.NaN()), Number(math.NaN()), "a fact of the data set"
		return
	}
	w := m.sums[colAudit+2*k]
	lo, hi := stats.Wilson(float64(t.Value), w*w/m.tally.auditSquares[k].Float())
	t.Lo, t.Hi, t.NoInterval = Number(lo), Number(hi), ""
}

// term returns a category's term by name; a missing one is NA.
func (c *Category) term(name string) *Term {
	for i := range c.Terms {
		if c.Terms[i].Name == name {
			return &c.Terms[i]
		}
	}
	t := fixed(name, math.NaN())
	return &t
}

func quantileOf(h *stats.Histogram, q float64) Number {
	v := h.Quantile(q)
	if math.IsInf(v, 0) {
		v = math.NaN()
	}
	return Number(v)
}

// chartMerge is how many neighbouring histogram buckets make one of the chart: eight
// buckets to an octave.
const chartMerge = 16

// distribution thins a histogram for charts; weights are decisions.
func distribution(h *stats.Histogram) []Bucket {
	var out []Bucket
	last := -1
	for c := range h.Cells() {
		group := int(c.Bucket) / chartMerge
		if group != last {
			lo, _ := stats.BucketBounds(uint16(group * chartMerge))
			_, hi := stats.BucketBounds(uint16(group*chartMerge + chartMerge - 1))
			out = append(out, Bucket{LoNs: int64(min(lo, math.MaxInt64)), HiNs: int64(min(hi, math.MaxInt64))})
			last = group
		}
		out[len(out)-1].Weight += Number(math.Ldexp(float64(c.Weight), -histBits))
	}
	return out
}

// confusionTable returns the confusion of actions, sorted; none when there are too many
// different ones to be a table.
func (t *tally) confusionTable() []Confusion {
	if t.overflow {
		return nil
	}
	var out []Confusion
	for k, w := range t.confusion {
		out = append(out, Confusion{Truth: k[0], Chosen: k[1], Weight: Number(math.Ldexp(w.Float(), -weightBits))})
	}
	slices.SortFunc(out, func(a, b Confusion) int {
		return cmp.Or(cmp.Compare(a.Truth, b.Truth), cmp.Compare(a.Chosen, b.Chosen))
	})
	return out
}

func (t *tally) finalCounts() Counts {
	c := t.counts
	c.Clusters, _ = t.clusters.Count()
	if len(t.reasons) > 0 {
		c.Reasons = maps.Clone(t.reasons)
	}
	return c
}
