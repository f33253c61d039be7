package scoring

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/clefbench/clefbench/internal/stats"
)

// scorecard evaluates everything that was collected.
func (c *Collection) scorecard(dataset DatasetInfo, run RunInfo) *Scorecard {
	r := stats.NewResampler(c.profile.Seed)
	card := &Scorecard{
		ScoreVersion: Version, Profile: c.profile, Dataset: dataset, Run: run,
		Backends: []BackendScore{}, Pairs: []Pair{}, Ties: [][]string{}, Warnings: []Warning{},
	}
	var results []*laneResult
	for _, l := range c.lanes {
		res := c.laneResult(l, r, dataset.Intact)
		results = append(results, res)
		card.Backends = append(card.Backends, res.score)
	}
	card.Pairs = c.comparePairs(r, results, dataset.Intact)
	card.Ties = ties(card)
	card.Warnings = c.warnings(results, card)
	return card
}

func (c *Collection) laneResult(l *laneState, r *stats.Resampler, intact bool) *laneResult {
	res := &laneResult{lane: l, names: l.scenarios()}
	res.score = BackendScore{Name: l.lane.Name, Kind: l.lane.Kind, Scenarios: map[string]ScenarioScore{}}
	worst := math.Inf(1)
	for i, name := range res.names {
		m := newModel(l.tallies[name], &l.meters, c.profile, intact)
		res.models, res.point = append(res.models, m), append(res.point, m.point())
		res.intervals = newEnsemble(res.models[i:], res.names[i:i+1], c.profile).intervals(r)
		s := c.scenario(res.intervals, res.point[i], &l.meters)
		res.score.Scenarios[name] = s
		if total := float64(s.Total.Value); total < worst {
			worst, res.score.Worst = total, name
		}
	}
	// The intervals of a single scenario are those of the run.
	if len(res.names) != 1 {
		res.intervals = newEnsemble(res.models, res.names, c.profile).intervals(r)
	}
	c.runResult(res)
	return res
}

// runResult combines a lane's scenarios into its score over the run.
func (c *Collection) runResult(res *laneResult) {
	iv := res.intervals
	res.run = iv.ensemble.run(res.point)
	s := &res.score.Result
	shares := iv.ensemble.shares(res.point)
	of := func(pick func(*ScenarioScore) *Category) Category { return res.combine(iv, shares, pick) }
	s.Categories = Categories{
		Accuracy:     of(func(s *ScenarioScore) *Category { return &s.Categories.Accuracy }),
		Latency:      of(func(s *ScenarioScore) *Category { return &s.Categories.Latency }),
		Cost:         of(func(s *ScenarioScore) *Category { return &s.Categories.Cost }),
		Auditability: of(func(s *ScenarioScore) *Category { return &s.Categories.Auditability }),
	}
	res.addRunTerms(iv)
	var all stats.Histogram
	var clusters stats.Distinct
	for i, m := range res.models {
		all.Merge(m.histogram)
		clusters.Merge(&m.tally.clusters)
		n := res.score.Scenarios[res.names[i]].Counts
		s.Counts.combine(&n, 1)
		for code, k := range n.Reasons {
			if s.Counts.Reasons == nil {
				s.Counts.Reasons = map[string]int64{}
			}
			s.Counts.Reasons[code] += k
		}
	}
	s.Counts.Clusters, _ = clusters.Count()
	s.LatencyNs = Quantiles{P50: quantileOf(&all, 0.5), P95: quantileOf(&all, 0.95), P99: quantileOf(&all, 0.99), Cold: Number(math.NaN())}
	if cold := res.lane.cold; cold.any && cold.timed {
		s.LatencyNs.Cold = Number(cold.latency)
	}
	s.Distribution = distribution(&all)
	c.finish(s, iv, &res.run)
	s.Ineligible = floors(c.profile, &s.Categories)
	if len(res.names) == 0 {
		s.Ineligible = []string{"no decisions"}
	}
	s.Eligible = len(s.Ineligible) == 0
}

func (e *ensemble) shares(each []values) []float64 {
	decisions := make([]float64, len(each))
	for i := range each {
		decisions[i] = each[i][statOffered]
	}
	return scenarioShares(e.profile, e.names, decisions)
}

// combine makes a category of the run from those of its scenarios; its terms are the
// scenarios with their shares.
func (res *laneResult) combine(iv *intervals, shares []float64, pick func(*ScenarioScore) *Category) Category {
	cat := Category{}
	values := make([]float64, len(res.names))
	why := "no decisions"
	left := 0
	var first ScenarioScore
	for i, name := range res.names {
		s := res.score.Scenarios[name]
		if i == 0 {
			first = s
		}
		part := pick(&s)
		values[i] = float64(part.Value)
		cat.Terms = append(cat.Terms, Term{Name: name, Weight: Number(shares[i]), Estimate: part.Estimate})
		if part.NA != "" {
			if left == 0 {
				why = part.NA
			}
			left++
		}
	}
	value, missing := mean(values, shares)
	na := ""
	if math.IsNaN(value) {
		na = why
		if left < len(res.names) {
			na = fmt.Sprintf("%s (%s of the decisions)", why, percent(missing))
		}
	}
	cat.Estimate = iv.estimate(res.statOf(pick), value, na)
	cat.Evidence = fmt.Sprintf("mean of %d scenarios", len(res.names)-left)
	if len(res.names) == 1 {
		cat.Evidence = pick(&first).Evidence
	}
	return cat
}

// statOf tells which category a picker picks.
func (res *laneResult) statOf(pick func(*ScenarioScore) *Category) stat {
	var s ScenarioScore
	_, cats := s.Categories.list()
	return [4]stat{statAccuracy, statLatency, statCost, statAudit}[slices.Index(cats[:], pick(&s))]
}

// addRunTerms adds what the floors ask for.
func (res *laneResult) addRunTerms(iv *intervals) {
	cats := &res.score.Categories
	nan := math.NaN()
	dec, att := res.run[statDecision], res.run[statAttainment]
	cats.Accuracy.Terms = append(cats.Accuracy.Terms, iv.term("A_dec", nan, statDecision, dec, naIf(dec, orElse(cats.Accuracy.NA, "no decision signal"))))
	cats.Latency.Terms = append(cats.Latency.Terms, iv.term("attainment", nan, statAttainment, att, naIf(att, orElse(cats.Latency.NA, "latency was not measured"))))
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
