package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The golden hash pins the bits of the generator: a change of it changes every published
// number of the scenario.
func TestEdgeRoutingGolden(t *testing.T) {
	h := sha256.New()
	for ex := range EdgeRouting(7, 0, 500) {
		fmt.Fprintln(h, ex.SourceID, ex.Path, ex.Attrs.Values, ex.Label.Action, ex.Label.Utilities, ex.Train)
	}
	const want = "72e8d36533594d95d4d30664eea3f6cd59a569462107df4b3c50783bec85fd88"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestEdgeRowsDoNotDependOnOrder(t *testing.T) {
	var all []*Example
	for ex := range EdgeRouting(3, 0, 40) {
		all = append(all, ex)
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(40) {
		for ex := range EdgeRouting(3, i, 1) {
			if ex.SourceID != all[i].SourceID || !slices.Equal(ex.Attrs.Values, all[i].Attrs.Values) || !slices.Equal(ex.Label.Utilities, all[i].Label.Utilities) {
				t.Errorf("row %d differs when generated alone", i)
			}
		}
	}
	for ex := range EdgeRouting(4, 0, 1) {
		if slices.Equal(ex.Attrs.Values, all[0].Attrs.Values) {
			t.Error("another seed gives the same row")
		}
	}
}

// The ceiling is exact: the sampled actions agree with it within sampling error, and so
// do the sampled utilities with the expected ones.
func TestEdgeCeilingAgainstSamples(t *testing.T) {
	const n = 60000
	var bayes, variance, hits, wantU, gotU, varU float64
	for ex, truth := range EdgeRouting(42, 0, n) {
		p := slices.Max(truth.Best)
		bayes += p
		variance += p * (1 - p)
		if ex.Label.Action == ex.Candidates[slices.Index(truth.Best, p)] {
			hits++
		}
		e := slices.Max(truth.Expected)
		u := ex.Label.Utilities[slices.Index(truth.Expected, e)].Utility
		wantU += e
		gotU += u
		varU += (u - e) * (u - e)
	}
	if z := (hits - bayes) / math.Sqrt(variance); math.Abs(z) > 4 {
		t.Errorf("accuracy %.4f, exact %.4f: %.1f standard errors apart", hits/n, bayes/n, z)
	}
	if z := (gotU - wantU) / math.Sqrt(varU); math.Abs(z) > 4 {
		t.Errorf("utility %.4f, exact %.4f: %.1f standard errors apart", gotU/n, wantU/n, z)
	}
	t.Logf("Bayes accuracy %.4f exact, %.4f sampled; utility %.4f exact, %.4f sampled", bayes/n, hits/n, wantU/n, gotU/n)
}

// truth against Monte Carlo: rates are drawn from the prior and weighted by the Poisson
// likelihood of the count that was seen, which uses nothing of the closed form.
func TestEdgePosteriorAgainstMonteCarlo(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	classes := edgeClasses()
	for _, o := range []edgeObject{
		{class: classes[0], count: 0, kb: 30, horizon: 1800},
		{class: classes[1], count: 7, kb: 120, horizon: 1800},
		{class: classes[2], count: 2, kb: 4000, horizon: 900},
		{class: classes[3], count: 30, kb: 5, horizon: 60},
	} {
		got := o.truth()
		var weight, weight2, reuse float64
		var best, expected [3]float64
		for range 400000 {
			rate := gamma(r, o.class.shape) / o.class.rate
			m := rate * edgeWindow
			w := math.Exp(float64(o.count)*math.Log(m/max(float64(o.count), 1)) - m + float64(o.count))
			demand := poisson(r, rate*o.horizon)
			u, b := edgeUtilities(o.kb, demand)
			weight += w
			weight2 += w * w
			best[b] += w
			if demand > 0 {
				reuse += w
			}
			for i := range u {
				expected[i] += w * u[i]
			}
		}
		tol := 4 * 0.5 / math.Sqrt(weight*weight/weight2)
		check := func(what string, got, mc float64) {
			t.Helper()
			if math.Abs(got-mc) > tol {
				t.Errorf("%s count %d: %s %.4f, Monte Carlo %.4f (+-%.4f)", o.class.name, o.count, what, got, mc, tol)
			}
		}
		check("reuse", got.Reuse, reuse/weight)
		for i := range best {
			check("best", got.Best[i], best[i]/weight)
			check("expected", got.Expected[i], expected[i]/weight)
		}
	}
}

// The formula of the class comment, written as it stands there, and a sum to one.
func TestEdgeReuseClosedForm(t *testing.T) {
	for _, truth := range collectTruths(2000) {
		sum := truth.Best[0] + truth.Best[1] + truth.Best[2]
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the candidates' probabilities sum to %v", sum)
		}
		if truth.Reuse < 1-truth.Best[2]-1e-12 {
			t.Fatalf("origin is cheapest with no request at all, but P(reuse) %v < %v", truth.Reuse, 1-truth.Best[2])
		}
	}
	o := edgeObject{class: edgeClasses()[1], count: 3, kb: 50, horizon: 1000}
	b, T, tau, a, c := 100.0, 3600.0, 1000.0, 0.6, 3.0
	want := 1 - math.Pow((b+T)/(b+T+tau), a+c)
	if got := o.truth().Reuse; math.Abs(got-want) > 1e-12 {
		t.Errorf("reuse %v, closed form %v", got, want)
	}
}

func collectTruths(n int) (out []*EdgeTruth) {
	for _, truth := range EdgeRouting(5, 0, n) {
		out = append(out, truth)
	}
	return out
}

// Means and variances of the samplers against their distributions.
func TestSamplers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const n = 200000
	for _, c := range []struct {
		name           string
		mean, variance float64
		draw           func() float64
	}{
		{"normal", 0, 1, func() float64 { return normal(r) }},
		{"gamma 0.4", 0.4, 0.4, func() float64 { return gamma(r, 0.4) }},
		{"gamma 3", 3, 3, func() float64 { return gamma(r, 3) }},
		{"poisson 0.2", 0.2, 0.2, func() float64 { return float64(poisson(r, 0.2)) }},
		{"poisson 75", 75, 75, func() float64 { return float64(poisson(r, 75)) }},
	} {
		var sum, sum2 float64
		for range n {
			x := c.draw() - c.mean
			sum += x
			sum2 += x * x
		}
		if z := sum / n / math.Sqrt(c.variance/n); math.Abs(z) > 4.5 {
			t.Errorf("%s: mean is off by %v (%.1f se)", c.name, sum/n, z)
		}
		if v := sum2 / n; math.Abs(v/c.variance-1) > 0.05 {
			t.Errorf("%s: variance %v, want %v", c.name, v, c.variance)
		}
	}
}

func BenchmarkEdgeRouting(b *testing.B) {
	row := 0
	for b.Loop() {
		for range EdgeRouting(1, row, 1) {
			row++
		}
	}
}
