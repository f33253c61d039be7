package stats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func key(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func align(tables ...*Groups) (fine, coarse []*Frame) {
	return NewLayout(tables...).Frames(tables...)
}

func TestLayoutsOfTheSameClustersAreEqual(t *testing.T) {
	table := func(from, to, clusters int) *Groups {
		g := NewGroups(2)
		fill(g, upTo(to)[from:], clusters)
		return g
	}
	small, shifted, big := table(0, 100, 50), table(25, 125, 50), table(0, 5000, 5000)
	for _, tc := range []struct {
		a, b *Layout
		want bool
	}{
		{NewLayout(small), NewLayout(shifted), true},
		{NewLayout(small), NewLayout(small, nil, shifted), true},
		{NewLayout(small), NewLayout(table(0, 49, 50)), false},
		{NewLayout(small), NewLayout(big), false},
		{NewLayout(big), NewLayout(small, big), true},
		{NewLayout(), NewLayout(nil), true},
	} {
		if got := tc.a.Equal(tc.b); got != tc.want {
			t.Errorf("%d and %d clusters are equal: %v", len(tc.a.index), len(tc.b.index), got)
		}
	}
}

func TestHashSpreadsAndStays(t *testing.T) {
	// Golden values: printed intervals depend on them. The first is the first number of
	// splitmix64 from seed 0, as published.
	for _, tc := range []struct {
		seed uint64
		key  string
		want uint64
	}{
		{0, "", 0xe220a8397b1dcdaf},
		{0, "a", 0xdd1652a9d257e8d3},
		{42, "0123456789abcdef", 0x1bbb9cd5affc4de9},
	} {
		if got := Hash(tc.seed, []byte(tc.key)); got != tc.want {
			t.Errorf("Hash(%d, %q) = %#x, want %#x", tc.seed, tc.key, got, tc.want)
		}
	}
	seen := map[uint64]bool{}
	filled := make([]float64, FineGroups)
	const n = 100 * FineGroups
	for i := range n {
		h := Hash(7, key(i))
		seen[h] = true
		filled[fineGroup(h)]++
	}
	if len(seen) != n {
		t.Errorf("%d keys have %d hashes", n, len(seen))
	}
	chi2 := 0.0
	for _, f := range filled {
		chi2 += (f - 100) * (f - 100) / 100
	}
	// Chi-square with 1,023 degrees of freedom: mean 1,023, standard deviation 45.
	if chi2 < 1023-5*45 || chi2 > 1023+5*45 {
		t.Errorf("groups are filled unevenly: chi-square %v", chi2)
	}
	for _, other := range []string{"a", "a\x00", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaa\x00"} {
		if other != "a" && Hash(0, []byte(other)) == Hash(0, []byte("a")) {
			t.Errorf("%q collides with a", other)
		}
	}
	if Hash(0, key(1)) == Hash(1, key(1)) {
		t.Error("the seed does not count")
	}
}

func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 1000, DistinctExact, DistinctExact + 1, 5 * DistinctExact} {
		var whole Distinct
		parts := make([]Distinct, 3)
		for i := range n {
			h := Hash(1, key(i))
			whole.Add(h)
			whole.Add(h)
			parts[i%3].Add(h)
		}
		got, exact := whole.Count()
		if exact != (n <= DistinctExact) {
			t.Errorf("%d distinct: exact is %v", n, exact)
		}
		if exact && got != int64(n) {
			t.Errorf("%d distinct are counted as %d", n, got)
		}
		// Four standard errors of 1/sqrt(65,536).
		if math.Abs(float64(got)-float64(n)) > float64(n)*4/256 {
			t.Errorf("%d distinct are estimated as %d", n, got)
		}
		parts[2].Merge(&parts[0])
		parts[2].Merge(&parts[1])
		if merged, _ := parts[2].Count(); merged != got {
			t.Errorf("%d distinct: %d in one pass, %d merged", n, got, merged)
		}
	}
}

// fill adds rows of the given clusters, deterministic in the row's number.
func fill(g *Groups, rows []int, clusters int) {
	for _, i := range rows {
		slot := g.Slot(Hash(1, key(i%clusters)))
		row := g.Row(slot)
		row[0].Add(1)
		row[1].AddProduct(uint64(i), 1<<40)
		g.Histogram(slot).Add(uint64(i*i), uint64(1+i%3))
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func sameFrames(t *testing.T, what string, a, b *Groups) {
	t.Helper()
	fineA, coarseA := align(a)
	fineB, coarseB := align(b)
	// Not go-cmp: it takes minutes for tables of this size.
	if !reflect.DeepEqual(fineA, fineB) || !reflect.DeepEqual(coarseA, coarseB) {
		t.Errorf("%s: frames differ", what)
	}
}

func TestGroupsAreTheSameInAnyPartition(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, clusters := range []int{1, 50, ExactClusters, ExactClusters + 1, 3000} {
		rows := upTo(4000)
		whole := NewGroups(2)
		fill(whole, rows, clusters)
		if whole.Exact() != (clusters <= ExactClusters) {
			t.Errorf("%d clusters: exact is %v", clusters, whole.Exact())
		}
		for _, k := range []int{1, 2, 7, 64} {
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			merged := NewGroups(2)
			for p := range k {
				part := NewGroups(2)
				fill(part, rows[p*len(rows)/k:(p+1)*len(rows)/k], clusters)
				merged.Merge(part)
			}
			sameFrames(t, "merged", whole, merged)
		}
	}
}

func TestGroupsSub(t *testing.T) {
	for _, clusters := range []int{10, 3000} {
		for _, cut := range []int{0, 5, 1000, 4000} {
			whole, left, rest := NewGroups(2), NewGroups(2), NewGroups(2)
			fill(whole, upTo(4000), clusters)
			fill(left, upTo(4000)[:cut], clusters)
			fill(rest, upTo(4000)[cut:], clusters)
			before := whole.Totals()
			c := whole.Clone()
			c.Sub(left)
			if d := cmp.Diff(rest.Totals(), c.Totals()); d != "" {
				t.Errorf("%d clusters less %d rows: %s", clusters, cut, d)
			}
			if d := cmp.Diff(rest.Histograms(), c.Histograms(), cmp.AllowUnexported(Histogram{})); d != "" {
				t.Errorf("%d clusters less %d rows: %.300s", clusters, cut, d)
			}
			if d := cmp.Diff(before, whole.Totals()); d != "" {
				t.Errorf("the original changed: %s", d)
			}
		}
	}
}

func TestLayoutSharesGroups(t *testing.T) {
	a, b := NewGroups(2), NewGroups(2)
	fill(a, []int{0, 1, 2}, 100)
	fill(b, []int{2, 3, 102}, 100)
	fine, coarse := align(a, b, nil)
	if fine[0].Groups != 4 || coarse[1] != fine[1] || len(fine[2].Cols) != 0 {
		t.Fatalf("groups %d, %+v", fine[0].Groups, fine[2])
	}
	shared := 0
	for g := range 4 {
		if fine[0].Cols[0][g] > 0 && fine[1].Cols[0][g] > 0 {
			shared++
			if fine[1].Cols[0][g] != 2 {
				t.Errorf("the shared cluster has %v rows of b", fine[1].Cols[0][g])
			}
		}
	}
	if shared != 1 {
		t.Errorf("%d groups are shared, want one", shared)
	}
	// Two exact tables that have too many clusters together are hashed together.
	c, d := NewGroups(2), NewGroups(2)
	fill(c, upTo(150), 1000)
	fill(d, upTo(300)[150:], 1000)
	fine, coarse = align(c, d)
	if fine[0].Groups != FineGroups || coarse[1].Groups != CoarseGroups || !c.Exact() {
		t.Errorf("groups %d and %d, first still exact: %v", fine[0].Groups, coarse[1].Groups, c.Exact())
	}
}

func TestCoarseGroupsAreUnionsOfFineOnes(t *testing.T) {
	g := NewGroups(2)
	fill(g, upTo(5000), 5000)
	fine, coarse := align(g)
	for c := range 2 {
		for k := range CoarseGroups {
			sum := 0.0
			for j := range FineGroups / CoarseGroups {
				sum += fine[0].Cols[c][k*FineGroups/CoarseGroups+j]
			}
			if sum != coarse[0].Cols[c][k] {
				t.Fatalf("coarse group %d of column %d is %v, its parts sum to %v", k, c, coarse[0].Cols[c][k], sum)
			}
		}
	}
	rows := 0.0
	for k, h := range coarse[0].Hists {
		n := 0.0
		for c := range h.Cells() {
			n += float64(c.Weight)
		}
		rows += coarse[0].Cols[0][k]
		if n < coarse[0].Cols[0][k] || n > 3*coarse[0].Cols[0][k] {
			t.Errorf("group %d has %v rows and histogram weight %v", k, coarse[0].Cols[0][k], n)
		}
	}
	if rows != 5000 || fine[0].Filled(0) < 900 || fine[0].Filled(7) != 0 {
		t.Errorf("%v rows in %d filled groups", rows, fine[0].Filled(0))
	}
}

func TestQuantilesOfResamplesAgainstMergedHistograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	g := NewGroups(1)
	for i := range 1500 {
		h := g.Histogram(g.Slot(Hash(1, key(i))))
		if i%20 == 0 {
			h.AddInf(3)
		} else {
			h.Add(uint64(math.Exp(15*rng.Float64())), uint64(1+rng.IntN(3)))
		}
	}
	_, coarse := align(g)
	q := NewQuantiles(coarse[0])
	for range 50 {
		counts := make([]float64, CoarseGroups)
		var merged Histogram
		for range CoarseGroups {
			k := rng.IntN(CoarseGroups)
			counts[k]++
			merged.Merge(coarse[0].Hists[k])
		}
		for _, p := range []float64{0.001, 0.5, 0.93, 0.95, 0.99} {
			if got, want := q.At(counts, p), merged.Quantile(p); got != want {
				t.Fatalf("%v-quantile of a resample is %v, want %v", p, got, want)
			}
		}
	}
	if got := q.At(make([]float64, CoarseGroups), 0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing is %v", got)
	}
}

func TestDot(t *testing.T) {
	for n := range 20 {
		a, b, want := make([]float64, n), make([]float64, n), 0.0
		for i := range a {
			a[i], b[i] = float64(i+1), float64(2*i-5)
			want += a[i] * b[i]
		}
		if got := Dot(a, b); got != want {
			t.Errorf("inner product of %d numbers is %v, want %v", n, got, want)
		}
	}
}

func BenchmarkDot(b *testing.B) {
	x, y := make([]float64, FineGroups), make([]float64, FineGroups)
	for i := range x {
		x[i], y[i] = float64(i), 1/float64(i+1)
	}
	b.Run("four", func(b *testing.B) {
		for b.Loop() {
			Dot(x, y)
		}
	})
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			sum := 0.0
			for i := range x {
				sum += x[i] * y[i]
			}
			if sum < 0 {
				b.Fatal(sum)
			}
		}
	})
}
