package stats

import (
	"math"
	"math/bits"
)

// Sum is a signed 128-bit integer accumulator; the zero Sum is 0. Additions commute
// exactly, which floats do not. It wraps beyond 2^127: with weights below 2^52 and
// values of at most 2^44 (what scoring uses), that is 2^31 rows at the largest weight.
type Sum struct{ hi, lo uint64 }

// Add adds n.
func (s *Sum) Add(n uint64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, n, 0)
	s.hi += carry
}

// AddProduct adds a*b without loss.
func (s *Sum) AddProduct(a, b uint64) {
	hi, lo := bits.Mul64(a, b)
	s.AddSum(Sum{hi, lo})
}

// AddSum adds another sum.
func (s *Sum) AddSum(o Sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
}

// SubSum subtracts another sum.
func (s *Sum) SubSum(o Sum) {
	var borrow uint64
	s.lo, borrow = bits.Sub64(s.lo, o.lo, 0)
	s.hi, _ = bits.Sub64(s.hi, o.hi, borrow)
}

// IsZero reports whether the sum is 0.
func (s Sum) IsZero() bool { return s == Sum{} }

// Float returns the float64 next to the sum (within one unit in the last place).
func (s Sum) Float() float64 {
	if int64(s.hi) < 0 {
		var n Sum
		n.SubSum(s)
		return -n.magnitude()
	}
	return s.magnitude()
}

func (s Sum) magnitude() float64 {
	return math.Ldexp(float64(s.hi), 64) + float64(s.lo)
}
