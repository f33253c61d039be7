package scoring

import (
	"math"

	"github.com/clefbench/clefbench/internal/stats"
)

// stat numbers the statistics that are evaluated together, once on the data and once a
// replicate.
type stat int

const (
	statUtility stat = iota
	statDecision
	statSkill
	statAccuracy
	statAttainment
	statP50
	statP95
	statP99
	statLatency
	statPrice
	statCost
	statQ1 // q1 to q6
	statQ2
	statQ3
	statQ4
	statQ5
	statQ6
	statAudit
	statTotal
	statRight
	statAgree
	// The weights that the statistics of scenarios are averaged with.
	statOffered
	statRightOf
	statRecorded
	statAnswered
	statCount
)

// values holds one evaluation; NaN is unmeasured.
type values [statCount]float64

// rate is a statistic that is a quotient of two columns.
type rate struct {
	stat     stat
	num, den int
	shift    int // bits after the point of num beyond those of den
	// certain is 1 when the rate is 1, -1 when it is 0, in every group: resampling says
	// nothing then, and stats.CertainRate stands in; groups is what it rests on.
	certain, groups int
}

// model evaluates one lane in one scenario from sums of columns.
type model struct {
	tally     *tally
	profile   *Profile
	anchors   anchors
	rates     []rate
	terms     []quantile
	prices    []float64
	scale     float64 // imputes failed calls without usage
	intact    float64
	na        [4]string // reasons, by category; empty when measured
	noSkill   string    // why there is no bonus
	sums      []float64 // of the data
	histogram *stats.Histogram
}

const (
	catAccuracy = iota
	catLatency
	catCost
	catAudit
)

// newModel prepares a tally: the anchors, which parts are measured, and why not.
func newModel(t *tally, m *meters, p *Profile, intact bool) *model {
	md := &model{tally: t, profile: p, scale: 1, sums: t.groups.Totals(), histogram: t.groups.Histograms()}
	if intact {
		md.intact = 1
	}
	for _, e := range m.list {
		md.prices = append(md.prices, e.price)
	}
	md.anchors = t.truths.anchors(t.task, md.sums[colTruth])
	md.rates = []rate{
		{stat: statUtility, num: colUtility, den: colTruth, shift: utilityBits},
		{stat: statAttainment, num: colInTime, den: colTimed},
		{stat: statRight, num: colRight, den: colRightOf},
		{stat: statAgree, num: colAgreed, den: colRecorded},
	}
	for i, q := range auditColumns() {
		md.rates = append(md.rates, rate{stat: statQ1 + stat(q), num: colAudit + 2*i + 1, den: colAudit + 2*i})
	}
	md.na[catAccuracy] = md.accuracyNA()
	md.noSkill = md.skillNA()
	md.na[catLatency] = md.latencyNA()
	md.na[catCost] = md.costNA(m)
	return md
}

func (m *model) accuracyNA() string {
	t := m.tally
	switch {
	case m.sums[colOffered] == 0:
		return "no decisions"
	case t.truths.overflow:
		return "more different actions than can be counted"
	case m.sums[colTruth] == 0 && t.rewards > 0:
		return "labels tell the reward of the recorded action only"
	case m.sums[colTruth] == 0 && t.unknownTruth > 0:
		return "the utility matrix knows none of the labels"
	case m.sums[colTruth] == 0:
		return "no labels"
	case !(m.anchors.top-m.anchors.base >= minSignal):
		return "no decision signal"
	}
	return ""
}

func (m *model) skillNA() string {
	switch {
	case m.sums[colForecast] == 0:
		return "no probabilities"
	case m.tally.noForecast > 0:
		return "probabilities for a part of the answers only"
	case !(m.anchors.brier > 0):
		return "only one right action"
	}
	return ""
}

func (m *model) latencyNA() string {
	t := m.tally
	untimed, timed := t.untimed.Float(), t.timed.Float()
	switch {
	case t.requests == 0:
		return "no requests"
	case untimed > 0 && timed == 0:
		return "latency was not measured"
	case untimed > maxMissing*(untimed+timed):
		return "latency is missing for " + percent(untimed/(untimed+timed)) + " of the answered requests"
	}
	m.terms = latencyQuantiles(t.requests)
	if len(m.terms) == 0 {
		return "too few requests"
	}
	return ""
}

func (m *model) costNA(ms *meters) string {
	t := m.tally
	asked, failed := t.asked.Float(), t.failedUncharged.Float()
	switch {
	case ms.na != "":
		return ms.na
	case m.sums[colAnswered] == 0:
		return "no answered decisions"
	case !t.uncharged.IsZero():
		return t.unchargedWhy
	case failed > maxMissing*asked:
		return "unknown usage of " + percent(failed/asked) + " of the calls, which failed"
	}
	// Failed calls without usage are taken to cost what the others cost.
	if failed > 0 {
		m.scale = asked / (asked - failed)
	}
	return ""
}

// clustersOf is about how many clusters have something in a column; hashed groups tell
// only how many of them are filled.
func (m *model) clustersOf(col int) int {
	if col >= colAudit && col < colAuditEnd {
		n, _ := m.tally.auditClusters.Count()
		return int(n)
	}
	n, _ := m.tally.clusters.Count()
	share := m.sums[col] / m.sums[colOffered]
	share *= float64(m.tally.counts.Offered) / float64(m.tally.all)
	return int(float64(n) * min(share, 1))
}

// certainty finds the rates that no group contradicts.
func (m *model) certainty(f *stats.Frame) {
	for i := range m.rates {
		r := &m.rates[i]
		r.groups = max(f.Filled(r.den), m.clustersOf(r.den))
		num, den := m.sums[r.num], math.Ldexp(m.sums[r.den], r.shift)
		switch {
		case den > 0 && num == den:
			r.certain = 1
		case den > 0 && num == 0:
			r.certain = -1
		default:
			r.certain = 0
		}
	}
}

// point evaluates the data themselves.
func (m *model) point() values {
	return m.evaluate(m.sums, m.histogram.Quantile, math.NaN())
}

// evaluate computes every statistic from sums of columns; quantile is nil where
// latencies are not resampled; u is the draw for rates that are certain, NaN on the
// data themselves.
func (m *model) evaluate(sums []float64, quantile func(float64) float64, u float64) values {
	var v values
	for i := range v {
		v[i] = math.NaN()
	}
	for i := range m.rates {
		v[m.rates[i].stat] = m.rates[i].value(sums, u)
	}
	v[statOffered] = math.Ldexp(sums[colOffered], -weightBits)
	v[statRightOf] = math.Ldexp(sums[colRightOf], -weightBits)
	v[statRecorded] = math.Ldexp(sums[colRecorded], -weightBits)
	v[statAnswered] = math.Ldexp(sums[colAnswered], -weightBits)
	m.evaluateAccuracy(&v, sums)
	m.evaluateLatency(&v, quantile)
	m.evaluateCost(&v, sums)
	v[statQ6] = m.intact
	v[statAudit] = m.audit(&v)
	v[statTotal] = totalScore(v.categories(), m.profile.Weights)
	return v
}

func (r *rate) value(sums []float64, u float64) float64 {
	num, den := sums[r.num], sums[r.den]
	if den == 0 {
		return math.NaN()
	}
	if r.certain != 0 && !math.IsNaN(u) {
		c := stats.CertainRate(u, r.groups)
		if r.certain < 0 {
			return 1 - c
		}
		return c
	}
	return math.Ldexp(num/den, -r.shift)
}

func (m *model) evaluateAccuracy(v *values, sums []float64) {
	if m.na[catAccuracy] != "" {
		return
	}
	if m.noSkill == "" && sums[colForecast] > 0 {
		v[statSkill] = skill(sums, m.anchors.brier)
	}
	v[statDecision] = decisionScore(v[statUtility], m.anchors.base, m.anchors.top)
	v[statAccuracy] = accuracyScore(v[statDecision], v[statSkill])
}

// skill is the Brier skill against base rates over all rows with a right action: what
// was not answered is charged the base rates' own score, so it earns no skill.
func skill(sums []float64, base float64) float64 {
	brier := 2 * math.Ldexp(sums[colBrier]/sums[colForecast], -utilityBits)
	return sums[colForecast] / sums[colRightOf] * (1 - brier/base)
}

func (m *model) evaluateLatency(v *values, quantile func(float64) float64) {
	if m.na[catLatency] != "" || quantile == nil {
		return
	}
	var t, w [3]float64
	for i, q := range m.terms {
		t[i], w[i] = quantile(q.p), q.weight
		v[statP50+stat(i)] = t[i]
	}
	n := len(m.terms)
	v[statLatency] = latencyScore(v[statAttainment], t[:n], w[:n], m.profile.Latency)
}

func (m *model) evaluateCost(v *values, sums []float64) {
	if m.na[catCost] != "" || sums[colAnswered] == 0 {
		return
	}
	v[statPrice] = m.price(sums)
	v[statCost] = costScore(v[statPrice], m.profile.Cost)
}

// price is the price of 1,000 answered decisions.
func (m *model) price(sums []float64) float64 {
	total := 0.0
	for i := range m.prices {
		total += m.meterPrice(sums, i)
	}
	return total
}

// meterPrice is what one meter adds to the price of 1,000 answered decisions.
func (m *model) meterPrice(sums []float64, i int) float64 {
	return float64(1000 * m.scale * m.prices[i] * (sums[colMeters+i] / sums[colAnswered]))
}

func (m *model) audit(v *values) float64 {
	var q, w [6]float64
	for i, question := range auditQuestions() {
		q[i], w[i] = v[statQ1+stat(i)], question.weight
	}
	return auditScore(q[:], w[:])
}

func (v *values) categories() [4]float64 {
	return [4]float64{v[statAccuracy], v[statLatency], v[statCost], v[statAudit]}
}
