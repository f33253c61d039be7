package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Wilson returns the 95 % score interval of a rate seen in n trials; n need not be
// whole (an effective sample size). NaN when n is not positive.
func Wilson(rate, n float64) (lo, hi float64) {
	if !(n > 0) || !(rate >= 0 && rate <= 1) {
		return math.NaN(), math.NaN()
	}
	z := NormalQuantile(0.975)
	z2 := z * z
	centre := (rate + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(rate*(1-rate)/n+z2/(4*n*n))
	lo, hi = max(0, centre-half), min(1, centre+half)
	// At the ends one bound is the rate itself; rounding must not move it inside.
	if rate == 0 {
		lo = 0
	}
	if rate == 1 {
		hi = 1
	}
	return lo, hi
}

// ClopperPearson returns the exact two-sided interval of k successes in n trials at the
// given confidence; neither needs to be whole (an effective sample size).
func ClopperPearson(k, n, confidence float64) (lo, hi float64) {
	if !(n > 0) || !(k >= 0 && k <= n) {
		return math.NaN(), math.NaN()
	}
	alpha := (1 - confidence) / 2
	lo, hi = 0, 1
	if k > 0 {
		lo = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(alpha)
	}
	if k < n {
		hi = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - alpha)
	}
	return lo, hi
}

// McNemar returns the exact two-sided p-value of b against c discordant pairs, which
// under no difference are binomial with probability 1/2.
func McNemar(b, c int64) float64 {
	n := float64(b + c)
	if n == 0 {
		return 1
	}
	// P(X <= k) = I_{1/2}(n-k, k+1): the binomial tail as a regularised beta function.
	k := float64(min(b, c))
	tail := distuv.Beta{Alpha: n - k, Beta: k + 1}.CDF(0.5)
	return min(1, 2*tail)
}

// MinSamples is the smallest sample in which the largest value bounds the q-quantile
// from above with that confidence, whatever the distribution: 59 for p95, 299 for p99.
func MinSamples(q, confidence float64) int64 {
	n := math.Ceil(math.Log(1-confidence) / math.Log(q))
	// The logarithms may land a hair on the wrong side of a whole number.
	if n > 1 && math.Pow(q, n-1) <= 1-confidence {
		n--
	}
	return int64(n)
}

// QuantileRanks returns the order statistics (from 1) that enclose the q-quantile of n
// independent values with at least that confidence, whatever the distribution; 0 or
// n+1 means that the sample does not bound it on that side.
func QuantileRanks(q float64, n int64, confidence float64) (lo, hi int64) {
	alpha := (1 - confidence) / 2
	b := distuv.Binomial{N: float64(n), P: q}
	// The k-th smallest value lies above the quantile exactly when fewer than k values
	// lie below it.
	lo = searchRank(n, func(k int64) bool { return b.CDF(float64(k-1)) > alpha }) - 1
	hi = searchRank(n, func(k int64) bool { return b.CDF(float64(k-1)) >= 1-alpha })
	return lo, hi
}

// searchRank returns the smallest k in [1, n] for which the monotone f holds, or n+1.
func searchRank(n int64, f func(int64) bool) int64 {
	lo, hi := int64(1), n+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if f(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
