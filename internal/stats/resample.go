package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Replicates is the number of resamples behind an interval.
const Replicates = 2000

// MinGroups is the smallest number of groups that gets an interval.
const MinGroups = 20

// Resampler draws group counts: each replicate draws as many groups as there are, with
// replacement. The draws depend on the seed and the number of groups alone, so that
// statistics over the same groups are resampled together, and no statistic moves
// because another one was asked for.
type Resampler struct {
	seed   uint64
	counts map[int][][]float64
}

// NewResampler returns a resampler. It is not safe for concurrent use.
func NewResampler(seed uint64) *Resampler {
	return &Resampler{seed: seed, counts: map[int][][]float64{}}
}

// Counts returns, for every replicate, how often each of n groups was drawn. The
// slices are shared: do not change them.
func (r *Resampler) Counts(n int) [][]float64 {
	if c, ok := r.counts[n]; ok {
		return c
	}
	rng := rand.New(rand.NewPCG(r.seed, uint64(n)))
	flat := make([]float64, n*Replicates)
	all := make([][]float64, Replicates)
	for i := range all {
		all[i] = flat[i*n : (i+1)*n]
		for range n {
			all[i][rng.IntN(n)]++
		}
	}
	r.counts[n] = all
	return all
}

// Uniforms returns one number in (0,1) for every replicate, for draws that are not
// resamples: see [CertainRate].
func (r *Resampler) Uniforms() []float64 {
	rng := rand.New(rand.NewPCG(r.seed, 1<<63))
	u := make([]float64, Replicates)
	for i := range u {
		u[i] = (float64(i) + 0.5) / Replicates
	}
	rng.Shuffle(len(u), func(i, j int) { u[i], u[j] = u[j], u[i] })
	return u
}

// CertainRate is the replicate of a rate of 1 in n groups, which resampling alone would
// call certain: u^(1/n), whose lower quantile is the exact binomial (Clopper-Pearson)
// bound of n successes in n. A rate of 0 is 1 minus it.
func CertainRate(u float64, n int) float64 { return math.Pow(u, 1/float64(n)) }

// Interval returns the 95 % interval of a value from its replicates: their 2.5 % and
// 97.5 % percentiles, each stretched away from the value by what Student's t with
// groups-1 degrees of freedom and the small-sample variance add over the normal. NaN
// replicates are left out; with more than 5 % of them, or fewer than [MinGroups]
// groups, there is no interval. The interval contains the value.
func Interval(value float64, replicates []float64, groups int) (lo, hi float64, ok bool) {
	if groups < MinGroups || math.IsNaN(value) {
		return math.NaN(), math.NaN(), false
	}
	reps := make([]float64, 0, len(replicates))
	for _, r := range replicates {
		if !math.IsNaN(r) {
			reps = append(reps, r)
		}
	}
	if len(reps) == 0 || 20*(len(replicates)-len(reps)) > len(replicates) {
		return math.NaN(), math.NaN(), false
	}
	slices.Sort(reps)
	k := stretch(groups)
	lo = value - k*(value-percentile(reps, 0.025))
	hi = value + k*(percentile(reps, 0.975)-value)
	return min(lo, value), max(hi, value), true
}

// stretch is how much wider t with groups-1 degrees of freedom is than the normal,
// with the factor that makes the resampled variance unbiased.
func stretch(groups int) float64 {
	g := float64(groups)
	return StudentQuantile(0.975, g-1) / NormalQuantile(0.975) * math.Sqrt(g/(g-1))
}

// percentile interpolates between order statistics of a sorted sample (type 7).
func percentile(sorted []float64, p float64) float64 {
	h := p * float64(len(sorted)-1)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	if sorted[i] == sorted[i+1] {
		return sorted[i] // also infinities, which do not interpolate
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}

// StandardError is the standard deviation of the replicates, made unbiased for that
// many groups; NaN replicates are left out.
func StandardError(replicates []float64, groups int) float64 {
	var n, sum float64
	for _, r := range replicates {
		if !math.IsNaN(r) {
			n++
			sum += r
		}
	}
	if n < 2 || groups < 2 {
		return math.NaN()
	}
	mean, ss := sum/n, 0.0
	for _, r := range replicates {
		if !math.IsNaN(r) {
			ss += (r - mean) * (r - mean)
		}
	}
	return math.Sqrt(ss / (n - 1) * float64(groups) / float64(groups-1))
}

// StudentQuantile returns the p-quantile of Student's t.
func StudentQuantile(p, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// NormalQuantile returns the p-quantile of the standard normal distribution.
func NormalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

// StudentP returns the two-sided p-value of an estimate whose standard error rests on
// that many groups; 1 when both are 0.
func StudentP(estimate, se float64, groups int) float64 {
	switch {
	case math.IsNaN(estimate) || math.IsNaN(se) || groups < 2:
		return math.NaN()
	case estimate == 0:
		return 1
	case se == 0:
		return 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(groups - 1)}
	return 2 * t.CDF(-math.Abs(estimate/se))
}

// Concentration tells how many equal pieces unequal ones are worth, (sum w)^2 / sum w^2
// (Kish 1965), and the share of the whole that the largest hundredth of them, at least
// one, carries. Pieces without weight are none; NaN where there is no weight at all.
func Concentration(weights []float64) (effective, top float64) {
	var filled []float64
	sum, squares := 0.0, 0.0
	for _, w := range weights {
		if w > 0 {
			filled = append(filled, w)
			sum += w
			squares += w * w
		}
	}
	if len(filled) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(filled)
	for _, w := range filled[len(filled)-(len(filled)+99)/100:] {
		top += w
	}
	return sum * sum / squares, top / sum
}
