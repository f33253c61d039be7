package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBucketsTileTheIntegers(t *testing.T) {
	last := Bucket(math.MaxUint64)
	next := uint64(0)
	for b := uint16(0); b <= last; b++ {
		lo, hi := BucketBounds(b)
		if lo != next {
			t.Fatalf("bucket %d starts at %d, the one before ends at %d", b, lo, next)
		}
		if Bucket(lo) != b || Bucket(hi-1) != b {
			t.Fatalf("bucket %d is [%d,%d), but its ends are in %d and %d", b, lo, hi, Bucket(lo), Bucket(hi-1))
		}
		if v := BucketValue(b); b != last && (v < float64(lo) || v >= float64(hi)) {
			t.Fatalf("bucket %d [%d,%d) is represented by %v", b, lo, hi, v)
		}
		if width := hi - lo; lo >= 256 && float64(width) > float64(lo)/subBuckets {
			t.Fatalf("bucket %d at %d is %d wide", b, lo, width)
		}
		next = hi
	}
	if next != math.MaxUint64 {
		t.Errorf("the last bucket ends at %d", next)
	}
	for v := range uint64(256) {
		if BucketValue(Bucket(v)) != float64(v) {
			t.Errorf("%d ns is kept as %v", v, BucketValue(Bucket(v)))
		}
	}
}

// bruteQuantile is the definition: the smallest value at or below which the share q of
// the weight lies.
func bruteQuantile(values, weights []uint64, inf uint64, q float64) float64 {
	idx := make([]int, len(values))
	total := inf
	for i := range idx {
		idx[i] = i
		total += weights[i]
	}
	slices.SortFunc(idx, func(a, b int) int { return int(int64(values[a]) - int64(values[b])) })
	sum := uint64(0)
	for _, i := range idx {
		if sum += weights[i]; float64(sum) >= q*float64(total) {
			return float64(values[i])
		}
	}
	return math.Inf(1)
}

func TestQuantileAgainstSortedValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		var h Histogram
		n := 1 + rng.IntN(200)
		values, weights := make([]uint64, n), make([]uint64, n)
		for i := range values {
			values[i] = uint64(math.Exp(20 * rng.Float64()))
			weights[i] = 1 + uint64(rng.IntN(5))
			h.Add(values[i], weights[i])
		}
		inf := uint64(rng.IntN(20))
		h.AddInf(inf)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.95, 0.99, 1} {
			got, want := h.Quantile(q), bruteQuantile(values, weights, inf, q)
			if math.IsInf(want, 1) != math.IsInf(got, 1) || math.Abs(got-want) > want/subBuckets {
				t.Fatalf("%v-quantile of %d values is %v, want %v", q, n, got, want)
			}
		}
	}
}

func TestQuantileOfWholeRanks(t *testing.T) {
	var h Histogram
	for v := uint64(1); v <= 100; v++ {
		h.Add(v, 1)
	}
	// The 95th of 100 values is at or below which 95 % lie, whatever 0.95*100 rounds to.
	for _, tc := range []struct{ q, want float64 }{{0.5, 50}, {0.95, 95}, {0.99, 99}, {0.07, 7}, {0.29, 29}} {
		if got := h.Quantile(tc.q); got != tc.want {
			t.Errorf("%v-quantile of 1..100 is %v, want %v", tc.q, got, tc.want)
		}
	}
	if got := (&Histogram{}).Quantile(0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing is %v", got)
	}
}

func TestHistogramMergesInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var whole Histogram
	parts := make([]Histogram, 7)
	for range 5000 {
		v, w, p := rng.Uint64()>>rng.IntN(64), uint64(rng.IntN(9)+1), rng.IntN(len(parts))
		if rng.IntN(10) == 0 {
			whole.AddInf(w)
			parts[p].AddInf(w)
			continue
		}
		whole.Add(v, w)
		parts[p].Add(v, w)
	}
	for range 5 {
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var merged Histogram
		for i := range parts {
			merged.Merge(&parts[i])
		}
		if d := cmp.Diff(whole, merged, cmp.AllowUnexported(Histogram{})); d != "" {
			t.Fatal(d)
		}
		merged.Sub(&parts[0])
		var rest Histogram
		for i := range parts[1:] {
			rest.Merge(&parts[i+1])
		}
		if d := cmp.Diff(rest, merged, cmp.AllowUnexported(Histogram{})); d != "" {
			t.Fatal(d)
		}
	}
}

func TestHistogramSaturates(t *testing.T) {
	var h Histogram
	h.Add(5, math.MaxUint64-1)
	h.Add(5, 7)
	h.AddInf(9)
	if h.Total() != math.MaxUint64 || h.weight(5) != math.MaxUint64 || h.Inf() != 9 {
		t.Errorf("total %d, weight %d", h.Total(), h.weight(5))
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	vs := make([]uint64, 4096)
	for i := range vs {
		vs[i] = uint64(1e5 * math.Exp(rng.NormFloat64()))
	}
	var h Histogram
	i := 0
	for b.Loop() {
		h.Add(vs[i&4095], 1<<16)
		i++
	}
}
