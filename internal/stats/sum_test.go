package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func (s Sum) big() *big.Int {
	n := new(big.Int).SetUint64(s.hi)
	n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(s.lo))
	if int64(s.hi) < 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return n
}

func TestSumAgainstBigIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s, other Sum
	want, wantOther := new(big.Int), new(big.Int)
	for range 10_000 {
		a, b := rng.Uint64()>>rng.IntN(64), rng.Uint64()>>(4+rng.IntN(60))
		switch rng.IntN(4) {
		case 0:
			s.Add(a)
			want.Add(want, new(big.Int).SetUint64(a))
		case 1:
			a >>= 20 // keeps 10,000 products below 2^127
			s.AddProduct(a, b)
			want.Add(want, new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)))
		case 2:
			other.AddProduct(a>>20, b)
			wantOther.Add(wantOther, new(big.Int).Mul(new(big.Int).SetUint64(a>>20), new(big.Int).SetUint64(b)))
			s.AddSum(other)
			want.Add(want, wantOther)
		default:
			s.SubSum(other)
			want.Sub(want, wantOther)
		}
		if s.big().Cmp(want) != 0 {
			t.Fatalf("sum is %v, want %v", s.big(), want)
		}
		f, _ := new(big.Float).SetInt(want).Float64()
		if got := s.Float(); math.Abs(got-f) > math.Abs(f)*0x1p-51 {
			t.Fatalf("float is %v, want %v", got, f)
		}
	}
}

func TestSumOfNothingIsZero(t *testing.T) {
	var s Sum
	s.AddProduct(math.MaxUint64, 1<<60)
	minus := s
	s.SubSum(minus)
	if !s.IsZero() || s.Float() != 0 {
		t.Errorf("x-x = %v", s)
	}
}
