package scoring

import (
	"fmt"
	"math"
	"strings"

	"github.com/clefbench/clefbench/internal/stats"
)

// The formulas of score version 1. Score and Recompute both go through these functions,
// so that a published number comes out of its published terms to the last bit.

// minSignal is the smallest U_top - U_base in which accuracy can be told apart.
const minSignal = 0.02

// maxMissing is the share that may be missing (scenarios without a category, requests
// without a latency, failed calls without usage) before the number is NA.
const maxMissing = 0.20

// bonus is the share of the headroom above A_dec that perfect probabilities earn.
const bonus = 0.15

func clamp01(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x < 0:
		return 0
	case x > 1:
		return 1
	}
	return x
}

// decisionScore is A_dec: 0 for the best constant action, 100 for the oracle.
func decisionScore(u, base, top float64) float64 {
	return 100 * clamp01((u-base)/(top-base))
}

// accuracyScore adds the bonus for honest probabilities; bss is NaN without them. A
// bonus on the headroom, not a mix: a mix would punish revealing probabilities.
func accuracyScore(dec, bss float64) float64 {
	if math.IsNaN(bss) {
		return dec
	}
	return dec + bonus*clamp01(bss)*(100-dec)
}

// latencyCurve is s(t): 1 at good and below, 0 at bad and above, a straight line in
// the logarithm between them, because a factor is what users feel. A miss is +Inf: 0.
func latencyCurve(t float64, a LatencyAnchors) float64 {
	if math.IsInf(t, 1) {
		return 0
	}
	return clamp01(math.Log(float64(a.Bad)/t) / math.Log(float64(a.Bad)/float64(a.Good)))
}

// quantile is a latency quantile of the score: its level, its share, and the number of
// requests from which on it is used.
type quantile struct {
	name   string
	p      float64
	weight float64
	need   int64
}

// latencyQuantiles gives the terms for a number of requests. Below the need of p99 (or
// p95) the distribution-free upper bound does not exist: the term is dropped and the
// others take its weight in proportion. Requests that were missed count, so the terms
// are the same for all backends that were offered the same requests.
func latencyQuantiles(requests int64) []quantile {
	all := []quantile{
		{"p50", 0.50, 0.25, stats.MinSamples(0.50, 0.95)},
		{"p95", 0.95, 0.35, stats.MinSamples(0.95, 0.95)},
		{"p99", 0.99, 0.40, stats.MinSamples(0.99, 0.95)},
	}
	sum, n := 0.0, 0
	for n < len(all) && requests >= all[n].need {
		sum += all[n].weight
		n++
	}
	for i := range n {
		all[i].weight /= sum
	}
	return all[:n]
}

// latencyScore is L; t and the weights run parallel.
func latencyScore(attainment float64, t []float64, weights []float64, a LatencyAnchors) float64 {
	sum := 0.0
	for i := range t {
		sum += weights[i] * latencyCurve(t[i], a)
	}
	return 100 * clamp01(attainment) * clamp01(sum)
}

// costScore is C, from the price of 1,000 answered decisions.
func costScore(c float64, a CostAnchors) float64 {
	if c <= 0 {
		return 100
	}
	return 100 * clamp01(math.Log(a.Bad/c)/math.Log(a.Bad/a.Good))
}

// question is one of the six measured fractions of auditability.
type question struct {
	name   string
	weight float64
}

func auditQuestions() [6]question {
	return [6]question{
		{"q1 identified", 0.15}, {"q2 reproducible", 0.25}, {"q3 explained", 0.10},
		{"q4 faithful", 0.20}, {"q5 complete", 0.15}, {"q6 intact", 0.15},
	}
}

// auditScore is Q over the measured fractions, with weights rescaled; NaN fractions are
// unmeasured. Below half of the weight Q is NaN.
func auditScore(q, weights []float64) float64 {
	sum, measured := 0.0, 0.0
	for i := range q {
		if !math.IsNaN(q[i]) {
			sum += weights[i] * q[i]
			measured += weights[i]
		}
	}
	// Half of the weight is enough; the weights are decimal fractions, hence the hair.
	if measured < 0.5-1e-9 {
		return math.NaN()
	}
	return 100 * clamp01(sum/measured)
}

// list returns the weights in the order of the categories.
func (w Weights) list() [4]float64 {
	return [4]float64{w.Accuracy, w.Latency, w.Cost, w.Auditability}
}

// totalScore is the weighted mean of the categories; NaN when one with a weight is.
func totalScore(c [4]float64, w Weights) float64 {
	sum := 0.0
	for i, weight := range w.list() {
		if weight > 0 {
			sum += float64(weight * c[i])
		}
	}
	return min(100, sum) // weights that sum to 1 + 1e-16 must not lift 100 over 100
}

// geometricScore is the weighted geometric mean, with categories floored at 1 so that
// one zero does not erase the rest.
func geometricScore(c [4]float64, w Weights) float64 {
	sum := 0.0
	for i, weight := range w.list() {
		if weight > 0 {
			sum += float64(weight * math.Log(max(1, c[i])))
		}
	}
	return math.Exp(sum)
}

// mean is a category of a run: the mean of its scenarios' values by weight, over those
// that have one, and the share of weight that has none.
func mean(values, weights []float64) (value, missing float64) {
	var sum, have, all float64
	for i, v := range values {
		all += weights[i]
		if !math.IsNaN(v) {
			sum += float64(weights[i] * v)
			have += weights[i]
		}
	}
	if have == 0 || all == 0 {
		return math.NaN(), 1
	}
	missing = (all - have) / all
	if missing > maxMissing+1e-9 {
		return math.NaN(), missing
	}
	return sum / have, missing
}

// Fixed point: weights have 28 bits after the point, utilities 44. A product has 72,
// and 128-bit sums of them neither overflow nor round.
const (
	weightBits  = 28
	utilityBits = 44
	// maxWeightLog bounds 1/keep_prob: 2^24.
	maxWeightLog = 24
)

func fixedWeight(keepProb float64) uint64 {
	return uint64(math.RoundToEven(math.Ldexp(1/keepProb, weightBits)))
}

func fixedUtility(u float64) uint64 {
	return uint64(math.RoundToEven(math.Ldexp(u, utilityBits)))
}

// totalNA names the categories that keep the total from having a value.
func totalNA(c *Categories, w Weights) string {
	var missing []string
	names, cats := c.list()
	for i, weight := range w.list() {
		if weight > 0 && cats[i].NA != "" {
			missing = append(missing, names[i]+": "+cats[i].NA)
		}
	}
	return strings.Join(missing, "; ")
}

// floors lists the eligibility floors that are not held; those of categories without
// weight do not apply.
func floors(p *Profile, cats *Categories) []string {
	f, w := p.Floors, p.Weights
	var out []string
	if w.Accuracy > 0 {
		switch dec := cats.Accuracy.term("A_dec"); {
		case cats.Accuracy.NA != "":
			out = append(out, "accuracy is NA: "+cats.Accuracy.NA)
		case dec.NoInterval != "":
			out = append(out, "no lower bound of accuracy: "+dec.NoInterval)
		case !(float64(dec.Lo) > f.Accuracy):
			out = append(out, fmt.Sprintf("lower bound of accuracy %.4g is not above %.4g", dec.Lo, f.Accuracy))
		}
	}
	if w.Latency > 0 {
		switch att := cats.Latency.term("attainment"); {
		case cats.Latency.NA != "":
			out = append(out, "latency is NA: "+cats.Latency.NA)
		case !(float64(att.Value) >= f.Attainment):
			out = append(out, fmt.Sprintf("attainment %.4g is below %.4g", att.Value, f.Attainment))
		}
	}
	if w.Auditability > 0 {
		switch a := &cats.Auditability; {
		case a.NA != "":
			out = append(out, "auditability is NA: "+a.NA)
		case !(float64(a.Value) >= f.Auditability):
			out = append(out, fmt.Sprintf("auditability %.4g is below %.4g", a.Value, f.Auditability))
		}
	}
	return out
}
