package stats

import (
	"fmt"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Newcombe (1998), Statistics in Medicine 17, table I: methods 3 (Wilson) and 5
// (Clopper-Pearson).
func TestIntervalsAgainstNewcombe(t *testing.T) {
	for _, tc := range []struct {
		k, n               float64
		wLo, wHi, cLo, cHi float64
	}{
		{81, 263, 0.2553, 0.3662, 0.2527, 0.3676},
		{15, 148, 0.0624, 0.1605, 0.0578, 0.1617},
		{0, 20, 0.0000, 0.1611, 0.0000, 0.1684},
		{1, 29, 0.0061, 0.1718, 0.0009, 0.1776},
	} {
		name := fmt.Sprintf("%v of %v", tc.k, tc.n)
		lo, hi := Wilson(tc.k/tc.n, tc.n)
		near(t, "Wilson lower of "+name, lo, tc.wLo, 5e-5)
		near(t, "Wilson upper of "+name, hi, tc.wHi, 5e-5)
		lo, hi = ClopperPearson(tc.k, tc.n, 0.95)
		near(t, "Clopper-Pearson lower of "+name, lo, tc.cLo, 5e-5)
		near(t, "Clopper-Pearson upper of "+name, hi, tc.cHi, 5e-5)
	}
}

func TestIntervalEnds(t *testing.T) {
	for _, n := range []float64{1, 20, 400, 1e6} {
		if lo, hi := Wilson(1, n); hi != 1 || !(lo < 1) {
			t.Errorf("Wilson of %v in %v: [%v,%v]", n, n, lo, hi)
		}
		if lo, hi := Wilson(0, n); lo != 0 || !(hi > 0) {
			t.Errorf("Wilson of 0 in %v: [%v,%v]", n, lo, hi)
		}
		// Closed form for no success: 1 - (alpha/2)^(1/n).
		_, hi := ClopperPearson(0, n, 0.95)
		near(t, "upper bound", hi, 1-math.Pow(0.025, 1/n), 1e-9)
	}
	// "0 errors in 20 only shows < 13.9 %", "< 2 % needs 149": one-sided at 95 %.
	_, hi := ClopperPearson(0, 20, 0.90)
	near(t, "0 of 20", hi, 0.139, 5e-4)
	if _, hi := ClopperPearson(0, 149, 0.90); hi >= 0.02 {
		t.Errorf("0 of 149 is bounded by %v", hi)
	}
	if _, hi := ClopperPearson(0, 148, 0.90); hi < 0.02 {
		t.Errorf("0 of 148 is bounded by %v", hi)
	}
	for _, bad := range [][2]float64{{0, 0}, {-1, 5}, {6, 5}, {math.NaN(), 5}} {
		if lo, hi := ClopperPearson(bad[0], bad[1], 0.95); !math.IsNaN(lo) || !math.IsNaN(hi) {
			t.Errorf("Clopper-Pearson of %v: [%v,%v]", bad, lo, hi)
		}
		if lo, hi := Wilson(bad[0]/bad[1], bad[1]); !math.IsNaN(lo) || !math.IsNaN(hi) {
			t.Errorf("Wilson of %v: [%v,%v]", bad, lo, hi)
		}
	}
}

// choose is exact for the sizes used here.
func choose(n, k int64) float64 {
	c := 1.0
	for i := int64(1); i <= k; i++ {
		c = c * float64(n-k+i) / float64(i)
	}
	return c
}

func TestMcNemarAgainstTheSum(t *testing.T) {
	for b := int64(0); b <= 30; b++ {
		for c := int64(0); c <= 30; c++ {
			sum := 0.0
			for k := int64(0); k <= min(b, c); k++ {
				sum += choose(b+c, k)
			}
			want := min(1, 2*sum*math.Pow(2, -float64(b+c)))
			near(t, fmt.Sprintf("McNemar %d:%d", b, c), McNemar(b, c), want, 1e-12)
		}
	}
	// Six discordant pairs of one side are the least that is significant at 5 %.
	if p := McNemar(0, 5); p < 0.05 {
		t.Errorf("0:5 has p %v", p)
	}
	if p := McNemar(0, 6); p >= 0.05 {
		t.Errorf("0:6 has p %v", p)
	}
}

func TestMinSamples(t *testing.T) {
	for _, tc := range []struct {
		q    float64
		want int64
	}{{0.5, 5}, {0.9, 29}, {0.95, 59}, {0.99, 299}, {0.999, 2995}} {
		n := MinSamples(tc.q, 0.95)
		if n != tc.want {
			t.Errorf("p%v needs %d, want %d", 100*tc.q, n, tc.want)
		}
		if math.Pow(tc.q, float64(n)) > 0.05 || math.Pow(tc.q, float64(n-1)) <= 0.05 {
			t.Errorf("p%v: %d is not the smallest", 100*tc.q, n)
		}
	}
	if n := MinSamples(0.5, 0.5); n != 1 {
		t.Errorf("a value bounds the median from above with confidence 1/2, got %d", n)
	}
}

func TestQuantileRanksAgainstTheSum(t *testing.T) {
	for _, n := range []int64{1, 5, 10, 59, 299, 500} {
		for _, q := range []float64{0.5, 0.95, 0.99} {
			cdf := func(k int64) float64 { // P(fewer than or k values lie below)
				sum := 0.0
				for i := int64(0); i <= k; i++ {
					sum += choose(n, i) * math.Pow(q, float64(i)) * math.Pow(1-q, float64(n-i))
				}
				return sum
			}
			lo, hi := QuantileRanks(q, n, 0.95)
			name := fmt.Sprintf("rank of p%v in %d", 100*q, n)
			if lo > 0 && cdf(lo-1) > 0.025 {
				t.Errorf("lower %s: %d covers too little", name, lo)
			}
			if cdf(lo) <= 0.025 {
				t.Errorf("lower %s: %d could be higher", name, lo)
			}
			if hi <= n && cdf(hi-1) < 0.975-1e-12 {
				t.Errorf("upper %s: %d covers too little", name, hi)
			}
			if hi > 1 && cdf(hi-2) >= 0.975 {
				t.Errorf("upper %s: %d could be lower", name, hi)
			}
		}
	}
}
