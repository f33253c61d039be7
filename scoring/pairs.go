package scoring

import (
	"maps"
	"math"
	"slices"

	"github.com/clefbench/clefbench/internal/stats"
)

// The verdicts of a pair.
const (
	VerdictBetter        = "better"
	VerdictWorse         = "worse"
	VerdictNoDifference  = "no difference shown"
	VerdictNotComparable = "not comparable"
)

// The measures of a pair.
const (
	MeasureTotal   = "total"
	MeasureUtility = "utility"
)

// power80 is z(0.975) + z(0.80): the difference that a two-sided test at 5 % finds in
// 80 % of the cases, in standard errors.
const power80 = 2.8

// bestCase80 is the mean of the Poisson law that reaches six with 80 % probability:
// six discordant pairs, all of one side, are the least that McNemar's exact test finds
// at 5 %. It stands in where no discordant pair was seen and the standard error is 0.
const bestCase80 = 7.906

// comparePairs compares every two lanes on what both can replay.
func (c *Collection) comparePairs(r *stats.Resampler, results []*laneResult, intact bool) []Pair {
	out := []Pair{}
	for _, p := range c.pairs {
		d := c.newDuel(p, intact)
		if !d.reduced {
			d.own = [2]*intervals{results[p.base].intervals, results[p.new].intervals}
		}
		out = append(out, d.total(r), d.utility(r, ""))
		if len(d.names) > 1 {
			for _, name := range d.names {
				out = append(out, d.utility(r, name))
			}
		}
	}
	return out
}

// duel is one pair prepared: for both sides, the models of the rows in common.
type duel struct {
	c      *Collection
	pair   *pairState
	names  []string
	models [2][]*model
	// reduced says that some rows were left out; otherwise own are the replicates of the
	// two lanes, which need not be made again.
	reduced bool
	own     [2]*intervals
}

func (c *Collection) newDuel(p *pairState, intact bool) *duel {
	d := &duel{c: c, pair: p}
	for _, name := range slices.Sorted(maps.Keys(p.scenarios)) {
		t := p.scenarios[name]
		d.reduced = d.reduced || t.leftRows > 0
		if t.common == 0 {
			continue
		}
		d.names = append(d.names, name)
		for side, lane := range [2]int{p.base, p.new} {
			l := c.lanes[lane]
			own := l.tallies[name]
			if t.left[side] != nil {
				own = own.without(t.left[side])
			}
			d.models[side] = append(d.models[side], newModel(own, &l.meters, c.profile, intact))
		}
	}
	return d
}

// start fills what all measures of a pair share.
func (d *duel) start(measure, scenario string) Pair {
	nan := Number(math.NaN())
	p := Pair{
		Base: d.c.lanes[d.pair.base].lane.Name, New: d.c.lanes[d.pair.new].lane.Name,
		Scenario: scenario, Measure: measure,
		Diff: nan, Lo: nan, Hi: nan, P: nan, MDE: nan, Verdict: VerdictNotComparable,
	}
	for name, t := range d.pair.scenarios {
		if scenario == "" || name == scenario {
			p.Left += t.leftRows
			p.N += t.common
			p.OnlyBase += t.onlyBase
			p.OnlyNew += t.onlyNew
		}
	}
	return p
}

// ensembles lays both sides out over common groups, so that one draw resamples both.
func (d *duel) ensembles(models [2][]*model, names []string) (out [2]*ensemble) {
	var tables []*stats.Groups
	for _, side := range models {
		for _, m := range side {
			tables = append(tables, m.tally.groups)
		}
	}
	layout := stats.NewLayout(tables...)
	fine, coarse := layout.Frames(tables...)
	n := len(names)
	for side := range out {
		out[side] = &ensemble{
			models: models[side], names: names, profile: d.c.profile, layout: layout,
			fine: fine[side*n : (side+1)*n], coarse: coarse[side*n : (side+1)*n],
		}
	}
	return out
}

// totals returns the replicates of both totals, from common draws, and the groups that
// they rest on.
func (d *duel) totals(r *stats.Resampler) (base, next []float64, groups int) {
	if a, b := d.own[0], d.own[1]; a != nil && a.ensemble.layout.Equal(b.ensemble.layout) {
		return a.coarse[statTotal], b.coarse[statTotal], min(a.groups(statTotal), b.groups(statTotal))
	}
	es := d.ensembles(d.models, d.names)
	groups = min((&intervals{ensemble: es[0]}).groups(statTotal), (&intervals{ensemble: es[1]}).groups(statTotal))
	return es[0].resample(r, true)[statTotal], es[1].resample(r, true)[statTotal], groups
}

// total compares the totals of the run.
func (d *duel) total(r *stats.Resampler) Pair {
	p := d.start(MeasureTotal, "")
	if len(d.names) == 0 {
		return p
	}
	var points [2]values
	for side := range points {
		points[side] = (&ensemble{models: d.models[side], names: d.names, profile: d.c.profile}).point()
	}
	p.Diff = Number(points[1][statTotal] - points[0][statTotal])
	if math.IsNaN(float64(p.Diff)) {
		return p
	}
	base, next, groups := d.totals(r)
	p.judge(difference(base, next), groups)
	return p
}

// point evaluates the ensemble on the data themselves.
func (e *ensemble) point() values {
	each := make([]values, len(e.models))
	for i, m := range e.models {
		each[i] = m.point()
	}
	return e.run(each)
}

func difference(base, next []float64) []float64 {
	out := make([]float64, len(base))
	for i := range out {
		out[i] = next[i] - base[i]
	}
	return out
}

// judge sets interval, p-value, detectable effect and verdict from the replicates of
// the difference.
func (p *Pair) judge(replicates []float64, groups int) {
	lo, hi, ok := stats.Interval(float64(p.Diff), replicates, groups)
	if !ok {
		return
	}
	// Where few decisions differ, the percentiles are too narrow: of four differences, all
	// of one side, 1.8 % of the replicates draw none, so that the 2.5 % percentile excludes
	// 0. The normal interval of the same replicates, whose p-value is printed, does not; the
	// wider of the two stands, and verdict and p-value agree.
	se := stats.StandardError(replicates, groups)
	half := stats.StudentQuantile(0.975, float64(groups-1)) * se
	lo, hi = min(lo, float64(p.Diff)-half), max(hi, float64(p.Diff)+half)
	p.Lo, p.Hi = Number(lo), Number(hi)
	p.P = Number(stats.StudentP(float64(p.Diff), se, groups))
	if se > 0 {
		p.MDE = Number(power80 * se)
	}
	p.Verdict = verdict(lo, hi, float64(p.P))
}

// exact gives a count of right and wrong decisions McNemar's exact p-value, and widens
// the interval to the exact one for the odds of the discordant decisions, which excludes
// 0 just where that p-value is at most 5 %: of five differences all of one side, the
// normal interval excludes 0, and the exact test (6.25 %) does not.
func (p *Pair) exact(decisions int64) {
	p.P = Number(stats.McNemar(p.OnlyBase, p.OnlyNew))
	if m := float64(p.OnlyBase + p.OnlyNew); m > 0 {
		lo, hi := stats.ClopperPearson(float64(p.OnlyNew), m, 0.95)
		scale := m / float64(decisions)
		p.Lo, p.Hi = min(p.Lo, Number((2*lo-1)*scale)), max(p.Hi, Number((2*hi-1)*scale))
	}
	p.Verdict = verdict(float64(p.Lo), float64(p.Hi), float64(p.P))
}

// significant is the level of a verdict.
const significant = 0.05

// verdict reads an interval of new - base, NaN bounds being none, and the p-value: both
// must speak for a difference.
func verdict(lo, hi, p float64) string {
	switch {
	case math.IsNaN(lo) || math.IsNaN(hi):
		return VerdictNotComparable
	case !(p <= significant):
		return VerdictNoDifference
	case lo > 0:
		return VerdictBetter
	case hi < 0:
		return VerdictWorse
	}
	return VerdictNoDifference
}

// utility compares mean utilities on labelled decisions, over the run or in a scenario.
func (d *duel) utility(r *stats.Resampler, scenario string) Pair {
	p := d.start(MeasureUtility, scenario)
	models, names := d.labelled(scenario)
	p.N = 0
	for _, m := range models[0] {
		p.N += m.tally.usableLabels()
	}
	if p.N == 0 {
		return p
	}
	es := d.ensembles(models, names)
	u := newUtilityDuel(es, d.c.profile)
	p.Diff = Number(u.diff(u.totals()))
	groups := (&intervals{ensemble: es[0]}).groups(statUtility)
	replicates := make([]float64, stats.Replicates)
	for b, counts := range r.Counts(es[0].fine[0].Groups) {
		replicates[b] = u.diff(u.resample(counts))
	}
	p.judge(replicates, groups)
	if p.Verdict == VerdictNotComparable {
		return p
	}
	if math.IsNaN(float64(p.MDE)) {
		clusters := 0
		for _, m := range models[0] {
			clusters += m.clustersOf(colTruth)
		}
		p.MDE = Number(min(1, bestCase80/float64(max(clusters, groups))))
	}
	if exactPairs(models) {
		p.exact(p.N)
	}
	return p
}

// labelled picks the scenarios that have labels.
func (d *duel) labelled(scenario string) (models [2][]*model, names []string) {
	for i, name := range d.names {
		if (scenario != "" && name != scenario) || d.models[0][i].sums[colTruth] == 0 {
			continue
		}
		names = append(names, name)
		for side := range models {
			models[side] = append(models[side], d.models[side][i])
		}
	}
	return models, names
}

// exactPairs reports whether McNemar's test applies: right or wrong, every decision a
// cluster of its own, all of one weight.
func exactPairs(models [2][]*model) bool {
	for _, side := range models {
		if len(side) != 1 {
			return false // a mean of scenarios is not a count of rows
		}
		t := side[0].tally
		n, exact := t.clusters.Count()
		if !exact || n != t.all || t.weighted || t.graded || t.task.utility != nil || t.task.worst != 0 {
			return false
		}
	}
	return true
}

// utilityDuel evaluates the difference of mean utilities from the group sums alone.
type utilityDuel struct {
	es      [2]*ensemble
	profile *Profile
	weights []float64
	diffs   []float64
	sums    []pairSums
}

// pairSums are one scenario's sums: offered, with a truth, and weight times utility.
type pairSums struct{ offered, truth, base, next float64 }

func newUtilityDuel(es [2]*ensemble, p *Profile) *utilityDuel {
	n := len(es[0].names)
	return &utilityDuel{es: es, profile: p, weights: make([]float64, n), diffs: make([]float64, n), sums: make([]pairSums, n)}
}

// totals are the sums of the data themselves.
func (u *utilityDuel) totals() []pairSums {
	for i, m := range u.es[0].models {
		u.sums[i] = pairSums{m.sums[colOffered], m.sums[colTruth], m.sums[colUtility], u.es[1].models[i].sums[colUtility]}
	}
	return u.sums
}

func (u *utilityDuel) resample(counts []float64) []pairSums {
	for i, f := range u.es[0].fine {
		g := u.es[1].fine[i]
		u.sums[i] = pairSums{
			stats.Dot(counts, f.Cols[colOffered]), stats.Dot(counts, f.Cols[colTruth]),
			stats.Dot(counts, f.Cols[colUtility]), stats.Dot(counts, g.Cols[colUtility]),
		}
	}
	return u.sums
}

// diff is the mean difference over scenarios, weighted as categories are.
func (u *utilityDuel) diff(sums []pairSums) float64 {
	for i, s := range sums {
		u.weights[i] = s.offered
		u.diffs[i] = math.Ldexp((s.next-s.base)/s.truth, -utilityBits)
	}
	shares := scenarioShares(u.profile, u.es[0].names, u.weights)
	sum, have := 0.0, 0.0
	for i, w := range shares {
		if !math.IsNaN(u.diffs[i]) {
			sum += float64(w * u.diffs[i])
			have += w
		}
	}
	return sum / have
}

// ties groups the backends that have a total, best first: those that the paired
// interval cannot tell from the leader of a set belong to the set.
func ties(card *Scorecard) [][]string {
	verdicts := map[[2]string]string{}
	for _, p := range card.Pairs {
		if p.Measure == MeasureTotal {
			verdicts[[2]string{p.Base, p.New}] = p.Verdict
			verdicts[[2]string{p.New, p.Base}] = p.Verdict
		}
	}
	var rest []*BackendScore
	for i := range card.Backends {
		if card.Backends[i].Total.NA == "" {
			rest = append(rest, &card.Backends[i])
		}
	}
	slices.SortStableFunc(rest, func(a, b *BackendScore) int {
		switch {
		case a.Total.Value > b.Total.Value:
			return -1
		case a.Total.Value < b.Total.Value:
			return 1
		}
		return 0
	})
	out := [][]string{}
	for len(rest) > 0 {
		leader := rest[0]
		set, others := []string{leader.Name}, []*BackendScore(nil)
		for _, b := range rest[1:] {
			// What cannot be compared cannot be told apart either.
			if v := verdicts[[2]string{leader.Name, b.Name}]; v == VerdictBetter || v == VerdictWorse {
				others = append(others, b)
			} else {
				set = append(set, b.Name)
			}
		}
		out, rest = append(out, set), others
	}
	return out
}
