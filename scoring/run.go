package scoring

import (
	"fmt"
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
	return categoryStats()[slices.Index(cats[:], pick(&s))]
}

// categoryStats are the statistics of the categories, in their order.
func categoryStats() [4]stat { return [4]stat{statAccuracy, statLatency, statCost, statAudit} }

// addRunTerms adds what the floors ask for.
func (res *laneResult) addRunTerms(iv *intervals) {
	cats := &res.score.Categories
	nan := math.NaN()
	dec, att := res.run[statDecision], res.run[statAttainment]
	cats.Accuracy.Terms = append(cats.Accuracy.Terms, iv.term("A_dec", nan, statDecision, dec, naIf(dec, orElse(cats.Accuracy.NA, "no decision signal"))))
	cats.Latency.Terms = append(cats.Latency.Terms, iv.term("attainment", nan, statAttainment, att, naIf(att, orElse(cats.Latency.NA, "latency was not measured"))))
}

// series are the replicates of every statistic.
type series [statCount][]float64

func newSeries() *series {
	var s series
	for i := range s {
		s[i] = make([]float64, stats.Replicates)
	}
	return &s
}

func (s *series) set(i int, v *values) {
	for k := range v {
		s[k][i] = v[k]
	}
}

// ensemble is a lane over its scenarios, laid out over common groups.
type ensemble struct {
	models       []*model
	names        []string
	layout       *stats.Layout
	fine, coarse []*stats.Frame
	profile      *Profile
}

// weigher is what scenarios are averaged with for a statistic.
func weigher(s stat) stat {
	switch s {
	case statRight:
		return statRightOf
	case statAgree:
		return statRecorded
	case statPrice:
		return statAnswered
	}
	return statOffered
}

// combined lists the statistics of a run that are means of those of its scenarios.
func combined() []stat {
	return []stat{
		statUtility, statDecision, statAccuracy, statAttainment, statLatency, statPrice, statCost,
		statQ1, statQ2, statQ3, statQ4, statQ5, statQ6, statAudit, statRight, statAgree,
	}
}

// run combines the values of scenarios into those of the run.
func (e *ensemble) run(each []values) values {
	if len(each) == 1 {
		return each[0]
	}
	var v values
	for i := range v {
		v[i] = math.NaN()
	}
	xs, ws := make([]float64, len(each)), make([]float64, len(each))
	decisions := make([]float64, len(each))
	for i := range each {
		decisions[i] = each[i][statOffered]
	}
	shares := scenarioShares(e.profile, e.names, decisions)
	for _, s := range combined() {
		by := weigher(s)
		for i := range each {
			xs[i], ws[i] = each[i][s], shares[i]
			if by != statOffered {
				ws[i] = each[i][by]
			}
		}
		v[s], _ = mean(xs, ws)
	}
	v[statTotal] = totalScore(v.categories(), e.profile.Weights)
	return v
}

// scenarioShares are the weights of scenarios in a run, summing to 1: those that the
// profile sets, and the rest of the weight by decisions.
func scenarioShares(p *Profile, names []string, decisions []float64) []float64 {
	out := make([]float64, len(names))
	set, free := 0.0, 0.0
	for i, n := range names {
		if w, ok := p.ScenarioWeights[n]; ok {
			set += w
		} else {
			free += decisions[i]
		}
	}
	rest := max(0, 1-set)
	sum := 0.0
	for i, n := range names {
		if w, ok := p.ScenarioWeights[n]; ok {
			out[i] = w
		} else if free > 0 {
			out[i] = rest * (decisions[i] / free)
		}
		sum += out[i]
	}
	for i := range out {
		if sum > 0 {
			out[i] /= sum
		}
	}
	return out
}

// resample evaluates the ensemble on every replicate of its groups. With latency the
// groups are the coarse ones, in which all four categories and so the total are known.
func (e *ensemble) resample(r *stats.Resampler, latency bool) *series {
	frames := e.fine
	if latency {
		frames = e.coarse
	}
	out := newSeries()
	if len(frames) == 0 || frames[0].Groups == 0 {
		return out
	}
	quantiles := make([]*stats.Quantiles, len(frames))
	sums := make([][]float64, len(frames))
	for i, f := range frames {
		if latency {
			quantiles[i] = stats.NewQuantiles(f)
		}
		e.models[i].certainty(f)
		sums[i] = make([]float64, len(f.Cols))
	}
	uniforms := r.Uniforms()
	each := make([]values, len(frames))
	for b, counts := range r.Counts(frames[0].Groups) {
		for i, f := range frames {
			var q func(float64) float64
			if latency {
				q = func(p float64) float64 { return quantiles[i].At(counts, p) }
			}
			f.Resample(counts, sums[i])
			each[i] = e.models[i].evaluate(sums[i], q, uniforms[b])
		}
		v := e.run(each)
		out.set(b, &v)
	}
	return out
}

// newEnsemble lays a lane's tallies out over the groups of the run.
func newEnsemble(models []*model, names []string, p *Profile) *ensemble {
	tables := make([]*stats.Groups, len(models))
	for i, m := range models {
		tables[i] = m.tally.groups
	}
	e := &ensemble{models: models, names: names, profile: p, layout: stats.NewLayout(tables...)}
	e.fine, e.coarse = e.layout.Frames(tables...)
	return e
}

// intervals are the replicates of an ensemble: fine for statistics without latency,
// coarse for those with.
type intervals struct {
	ensemble     *ensemble
	fine, coarse *series
}

func (e *ensemble) intervals(r *stats.Resampler) *intervals {
	iv := &intervals{ensemble: e, coarse: e.resample(r, true)}
	iv.fine = iv.coarse
	if !e.layout.Exact() {
		iv.fine = e.resample(r, false)
	}
	return iv
}
