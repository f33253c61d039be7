package flash

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// holds is what a range means, which cuts must agree with.
func (s span) holds(x float64) bool {
	return x >= s.lo && (x < s.hi || math.IsInf(s.hi, 1))
}

func TestParseRange(t *testing.T) {
	inf := math.Inf(1)
	for in, want := range map[string]span{
		"0.0-0.03": {lo: 0, hi: 0.03}, "0.1+": {lo: 0.1, hi: inf}, "<0.03": {lo: -inf, hi: 0.03}, ">=5": {lo: 5, hi: inf}, "-1--0.5": {lo: -1, hi: -0.5},
		"-1-1": {lo: -1, hi: 1}, "1e-3-1e-2": {lo: 1e-3, hi: 1e-2}, " <  2": {}, "1 - 2": {lo: 1, hi: 2}, "< 2": {lo: -inf, hi: 2}, "-5+": {lo: -5, hi: inf}, ".5-1.": {lo: 0.5, hi: 1},
		"1e400-2": {}, "1": {}, "low": {}, "": {}, "-": {}, "1-": {}, "1-2-3": {}, "1-x": {}, "10-20 ms": {}, "<": {}, "<missing>": {}, "0x1-2": {}, "en-us": {}, "inf-1": {}, "1++": {},
	} {
		got, ok := parseRange(in)
		if wantOK := want != (span{}); ok != wantOK || ok && got != want {
			t.Errorf("parseRange(%q) = %v, %v, want %v", in, got, ok, want)
		}
		if ok {
			if again, ok := parseRange(got.String()); !ok || again != got {
				t.Errorf("%q prints as %q, which reads as %v", in, got.String(), again)
			}
		}
	}
}

func TestSpanHoldsItsLowEdgeOnly(t *testing.T) {
	mid, open, low := span{lo: 0.03, hi: 0.1}, span{lo: 0.1, hi: math.Inf(1)}, span{lo: math.Inf(-1), hi: 0.03}
	for _, tc := range []struct {
		s    span
		x    float64
		want bool
	}{
		{mid, 0.03, true}, {mid, math.Nextafter(0.03, 0), false}, {mid, math.Nextafter(0.1, 0), true}, {mid, 0.1, false},
		{open, 0.1, true}, {open, math.Inf(1), true}, {low, math.Inf(-1), true}, {low, 0.03, false}, {mid, math.NaN(), false}, {open, math.NaN(), false},
	} {
		if got := tc.s.holds(tc.x); got != tc.want {
			t.Errorf("%v holds %v = %v", tc.s, tc.x, got)
		}
	}
}

// Ranges that touch, that leave gaps, that are open at either end, few and many.
func TestCutsAreTheRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		d := &dimension{kind: kindRanges, missing: noDigit, other: uint16(r.IntN(3)) + noDigit - 2}
		at := float64(r.IntN(3))
		if r.IntN(3) == 0 {
			at = math.Inf(-1)
		}
		for i := range 1 + r.IntN(20) {
			s := span{lo: at, hi: max(at, 0) + 1 + float64(r.IntN(2)), digit: uint16(i)}
			d.spans = append(d.spans, s)
			at = s.hi + float64(r.IntN(2))
		}
		if last := &d.spans[len(d.spans)-1]; r.IntN(3) == 0 {
			last.hi = math.Inf(1)
		}
		a := newAxis(d, 1)
		for _, x := range []float64{math.Inf(-1), math.Inf(1), -1e300, 1e300} {
			checkCut(t, &a, x)
		}
		for x := -1.0; x < 60; x += 0.5 {
			checkCut(t, &a, x)
			checkCut(t, &a, math.Nextafter(x, math.Inf(-1)))
		}
	}
}

func checkCut(t *testing.T, a *axis, x float64) {
	t.Helper()
	want := a.other
	for _, s := range a.spans {
		if s.holds(x) {
			want = s.digit
		}
	}
	v := decision.DoubleValue(x)
	if got := a.inRange(&v); got != want {
		t.Fatalf("%v is in %d, want %d of %v", x, got, want, a.spans)
	}
}
