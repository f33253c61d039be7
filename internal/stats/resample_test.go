package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCountsDrawGroupsWithReplacement(t *testing.T) {
	r := NewResampler(5)
	const n = 50
	sum, square := 0.0, 0.0
	for _, counts := range r.Counts(n) {
		total := 0.0
		for _, c := range counts {
			total += c
			sum += c
			square += c * c
		}
		if total != n {
			t.Fatalf("a replicate draws %v of %d groups", total, n)
		}
	}
	const cells = n * Replicates
	near(t, "mean count", sum/cells, 1, 1e-12)
	// Binomial(50, 1/50): variance 0.98; the standard error over 100,000 counts is 0.006.
	near(t, "variance of counts", square/cells-1, 0.98, 0.03)
}

func TestResamplerDependsOnSeedAndSizeAlone(t *testing.T) {
	a, b := NewResampler(1), NewResampler(1)
	b.Counts(7)
	b.Uniforms()
	if !slices.EqualFunc(a.Counts(30), b.Counts(30), slices.Equal) || !slices.Equal(a.Uniforms(), b.Uniforms()) {
		t.Error("what was asked before changes the draws")
	}
	if slices.EqualFunc(a.Counts(30), NewResampler(2).Counts(30), slices.Equal) {
		t.Error("the seed does not count")
	}
}

func TestUniformsAreEvenlySpread(t *testing.T) {
	u := NewResampler(1).Uniforms()
	if slices.IsSorted(u) {
		t.Error("draws are in order: they would go along with the replicates' number")
	}
	slices.Sort(u)
	for i, v := range u {
		near(t, "uniform", v, (float64(i)+0.5)/Replicates, 1e-12)
	}
}

// The lower quantile of the draws for a rate that was always 1 is the Clopper-Pearson
// bound.
func TestCertainRateIsClopperPearson(t *testing.T) {
	for _, n := range []int{20, 100, 400} {
		draws := NewResampler(3).Uniforms()
		for i, u := range draws {
			draws[i] = CertainRate(u, n)
		}
		slices.Sort(draws)
		lo, _ := ClopperPearson(float64(n), float64(n), 0.95)
		near(t, "bound", percentile(draws, 0.025), lo, 5e-3*(1-lo))
	}
}

func TestStudentAgainstTables(t *testing.T) {
	for _, tc := range []struct{ p, df, want float64 }{
		{0.975, 1, 12.706}, {0.975, 10, 2.228}, {0.975, 19, 2.093}, {0.975, 127, 1.979}, {0.975, 1023, 1.962}, {0.95, 5, 2.015},
	} {
		near(t, "t quantile", StudentQuantile(tc.p, tc.df), tc.want, 1e-3)
	}
	near(t, "normal quantile", NormalQuantile(0.975), 1.959964, 1e-6)
	near(t, "p of t = 2.228 with 10 degrees of freedom", StudentP(2.228, 1, 11), 0.05, 1e-4)
	if p := StudentP(0, 0, 50); p != 1 {
		t.Errorf("no difference without spread has p %v", p)
	}
	if p := StudentP(1, 0, 50); p != 0 {
		t.Errorf("a difference without spread has p %v", p)
	}
	if p := StudentP(math.NaN(), 1, 50); !math.IsNaN(p) {
		t.Errorf("p of nothing is %v", p)
	}
}

func TestIntervalOfNormalReplicates(t *testing.T) {
	reps := make([]float64, Replicates)
	for i := range reps {
		reps[i] = 10 + 2*NormalQuantile((float64(i)+0.5)/Replicates)
	}
	for _, groups := range []int{20, 200, 100_000} {
		lo, hi, ok := Interval(10, reps, groups)
		g := float64(groups)
		half := 2 * StudentQuantile(0.975, g-1) * math.Sqrt(g/(g-1))
		if !ok {
			t.Fatal("no interval")
		}
		near(t, "lower bound", lo, 10-half, 0.02)
		near(t, "upper bound", hi, 10+half, 0.02)
	}
	near(t, "standard error", StandardError(reps, 100_000), 2, 0.01)
	near(t, "standard error of 20 groups", StandardError(reps, 20), 2*math.Sqrt(20.0/19), 0.01)
}

func TestIntervalRefuses(t *testing.T) {
	reps := make([]float64, 100)
	if _, _, ok := Interval(0, reps, MinGroups-1); ok {
		t.Error("an interval of 19 groups")
	}
	if _, _, ok := Interval(math.NaN(), reps, 100); ok {
		t.Error("an interval of nothing")
	}
	for i := range 6 {
		reps[i] = math.NaN()
	}
	if _, _, ok := Interval(0, reps, 100); ok {
		t.Error("an interval although 6 % of the replicates have no value")
	}
	reps[0] = 0
	if _, _, ok := Interval(0, reps, 100); !ok {
		t.Error("no interval although 95 % of the replicates have a value")
	}
	for i := range reps {
		reps[i] = 3
	}
	if lo, hi, ok := Interval(2, reps, 100); !ok || lo > 2 || hi < 3 {
		t.Errorf("the interval [%v,%v] leaves out its value", lo, hi)
	}
	reps = []float64{1, 2, math.Inf(1), math.Inf(1), math.Inf(1)}
	if lo, hi, ok := Interval(2, reps, 100); !ok || math.IsNaN(lo) || !math.IsInf(hi, 1) {
		t.Errorf("an unbounded replicate gives [%v,%v]", lo, hi)
	}
}

// coverage counts in how many simulations the interval holds the truth. draw fills a
// table with one simulated data set; statistic evaluates one resample.
func coverage(t *testing.T, sims int, truth float64, draw func(*rand.Rand, *Groups), groups func(*Frame) int, statistic func(*Frame) func([]float64) float64) float64 {
	t.Helper()
	r := NewResampler(77)
	covered := 0
	for s := range sims {
		rng := rand.New(rand.NewPCG(uint64(s), 12345))
		g := NewGroups(2)
		draw(rng, g)
		_, coarse := align(g)
		f := coarse[0]
		stat := statistic(f)
		ones := make([]float64, f.Groups)
		for i := range ones {
			ones[i] = 1
		}
		reps := make([]float64, 0, Replicates)
		for _, counts := range r.Counts(f.Groups) {
			reps = append(reps, stat(counts))
		}
		lo, hi, ok := Interval(stat(ones), reps, groups(f))
		if ok && lo <= truth && truth <= hi {
			covered++
		}
	}
	return float64(covered) / float64(sims)
}

func rateOf(f *Frame) func([]float64) float64 {
	return func(counts []float64) float64 { return Dot(counts, f.Cols[1]) / Dot(counts, f.Cols[0]) }
}

func filled(f *Frame) int { return f.Filled(0) }

// 400 simulations: the standard error of a coverage of 95 % is 1.1 points, so the band
// of [0.915, 0.985] is about three of them wide on either side.
const (
	coverageSims = 400
	coverageLow  = 0.915
	coverageHigh = 0.985
)

func TestCoverageOfRates(t *testing.T) {
	for _, tc := range []struct {
		name           string
		clusters, size int
		spread         float64
	}{
		{"independent, 100 clusters", 100, 1, 0},
		{"independent, hashed", 1500, 1, 0},
		{"clusters of ten, 60", 60, 10, 1.5},
		{"clusters of ten, hashed", 500, 10, 1.5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			truth := meanLogistic(1, tc.spread)
			got := coverage(t, coverageSims, truth, func(rng *rand.Rand, g *Groups) {
				for c := range tc.clusters {
					p := 1 / (1 + math.Exp(-1-tc.spread*rng.NormFloat64()))
					row := g.Row(g.Slot(Hash(rng.Uint64(), key(c))))
					for range tc.size {
						row[0].Add(1)
						if rng.Float64() < p {
							row[1].Add(1)
						}
					}
				}
			}, filled, rateOf)
			t.Logf("coverage %.3f", got)
			if got < coverageLow || got > coverageHigh {
				t.Errorf("the 95 %% interval covers %.3f", got)
			}
		})
	}
}

// meanLogistic is E[logistic(a + s*Z)], by the midpoint rule.
func meanLogistic(a, s float64) float64 {
	const n = 20_000
	sum := 0.0
	for i := range n {
		sum += 1 / (1 + math.Exp(-a-s*NormalQuantile((float64(i)+0.5)/n)))
	}
	return sum / n
}

// The naive interval over rows of clustered data covers far less than it says: this is
// why rows are grouped at all.
func TestRowsAsGroupsCoverTooLittle(t *testing.T) {
	const sims, clusters, size, spread = 400, 60, 10, 1.5
	truth := meanLogistic(1, spread)
	covered := 0
	for s := range sims {
		rng := rand.New(rand.NewPCG(uint64(s), 999))
		k := 0.0
		for range clusters {
			p := 1 / (1 + math.Exp(-1-spread*rng.NormFloat64()))
			for range size {
				if rng.Float64() < p {
					k++
				}
			}
		}
		lo, hi := Wilson(k/(clusters*size), clusters*size)
		if lo <= truth && truth <= hi {
			covered++
		}
	}
	if got := float64(covered) / sims; got > 0.85 {
		t.Errorf("the interval over rows covers %.3f: clustering does not bite in this test", got)
	}
}

func TestCoverageOfQuantiles(t *testing.T) {
	sims := coverageSims
	if testing.Short() {
		sims = 60
	}
	// Log-normal latencies with an effect of the cluster: the quantile of the mixture is
	// that of a normal with both variances.
	const between, within = 0.5, 0.8
	truth := 1e5 * math.Exp(math.Hypot(between, within)*NormalQuantile(0.95))
	got := coverage(t, sims, truth, func(rng *rand.Rand, g *Groups) {
		for c := range 600 {
			shift := between * rng.NormFloat64()
			h := g.Histogram(g.Slot(Hash(rng.Uint64(), key(c))))
			for range 5 {
				h.Add(uint64(1e5*math.Exp(shift+within*rng.NormFloat64())), 1)
			}
		}
	}, func(f *Frame) int { return f.Groups }, func(f *Frame) func([]float64) float64 {
		q := NewQuantiles(f)
		return func(counts []float64) float64 { return q.At(counts, 0.95) }
	})
	t.Logf("coverage %.3f", got)
	// Seen with other seeds: 89 to 96 %.
	if got < 0.87 {
		t.Errorf("the 95 %% interval of p95 covers %.3f", got)
	}
}

func TestConcentration(t *testing.T) {
	equal := make([]float64, 300)
	heavy := make([]float64, 300)
	for i := range equal {
		equal[i], heavy[i] = 3, 1
	}
	heavy[7], heavy[100] = 500, 400
	for name, tc := range map[string]struct {
		weights        []float64
		effective, top float64
	}{
		"equal":        {equal, 300, 0.01},
		"heavy":        {heavy, 1198.0 * 1198 / (298 + 250000 + 160000), 901.0 / 1198}, // three of 300
		"one":          {[]float64{0, 5, 0}, 1, 1},
		"two":          {[]float64{1, 3}, 16.0 / 10, 0.75},
		"hundred, one": {append(make([]float64, 50), heavy[:50]...), 549.0 * 549 / (49 + 250000), 500.0 / 549},
	} {
		effective, top := Concentration(tc.weights)
		if math.Abs(effective-tc.effective) > 1e-9*tc.effective || math.Abs(top-tc.top) > 1e-12 {
			t.Errorf("%s: %v and %v, want %v and %v", name, effective, top, tc.effective, tc.top)
		}
	}
	if effective, top := Concentration(nil); !math.IsNaN(effective) || !math.IsNaN(top) {
		t.Errorf("of nothing: %v, %v", effective, top)
	}
}
