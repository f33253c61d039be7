package expr

import (
	"math"
	"unicode/utf8"

	"cel.dev/cel-go/common/operators"

	"github.com/clefbench/clefbench/decision"
)

// A set of outcomes of a comparison.
const (
	below uint8 = 1 << iota
	same
	above
)

// double reads an attribute as a number; ints count up to 2^53.
func (r *Row) double(a *Attr) (float64, bool) {
	v := r.Get(a)
	if v == nil {
		return 0, false
	}
	if v.Type() == decision.Double {
		return v.Double(), true
	}
	x, ok := v.Convert(decision.Double)
	return x.Double(), ok && x.Type() == decision.Double
}

// equal is CEL's == at run time: values of different types differ, numbers compare
// across int and double.
func equal(a, b decision.Value) Truth {
	cmp, nan, ok := Order(a, b)
	switch {
	case nan:
		return Unordered
	case !ok:
		return False
	}
	return truthOf(cmp == 0)
}

func equality(a, b code, negated bool) code {
	if a.lit != nil {
		a, b = b, a
	}
	test := equalTest(a, b)
	if !negated {
		return code{typ: decision.Bool, b: test}
	}
	return not(code{typ: decision.Bool, b: test})
}

func equalTest(a, b code) func(*Row) Truth {
	switch {
	case a.s != nil && b.lit != nil && b.s != nil:
		want := b.lit.Str()
		return func(r *Row) Truth {
			x, ok := a.s(r)
			if !ok {
				return Unknown
			}
			return truthOf(x == want)
		}
	case a.s != nil && b.s != nil:
		return compareWith(a.s, b.s, compareStrings, same)
	case a.i != nil && b.i != nil:
		return compareWith(a.i, b.i, compareOrdered[int64], same)
	case a.d != nil && b.d != nil:
		return compareDoubles(a, b, same)
	}
	x, y := a.value(), b.value()
	return func(r *Row) Truth {
		v, ok := x(r)
		w, ok2 := y(r)
		if !ok || !ok2 {
			return Unknown
		}
		return equal(v, w)
	}
}

// ordering lowers <, <=, > and >=.
func ordering(a, b code, want uint8) code {
	out := code{typ: decision.Bool}
	if a.d != nil {
		b = asDouble(b)
	}
	switch {
	case a.s != nil && b.s != nil:
		out.b = compareWith(a.s, b.s, compareStrings, want)
	case a.i != nil && b.i != nil:
		out.b = compareWith(a.i, b.i, compareOrdered[int64], want)
	case a.d != nil && b.d != nil:
		out.b = compareDoubles(a, b, want)
	default:
		x, y := a.value(), b.value()
		out.b = func(r *Row) Truth {
			v, ok := x(r)
			w, ok2 := y(r)
			if !ok || !ok2 {
				return Unknown
			}
			return orderingOf(v, w, want)
		}
	}
	return out
}

// asDouble turns a whole literal into the double that it compares as.
func asDouble(c code) code {
	if c.lit == nil || c.i == nil {
		return c
	}
	v, ok := c.lit.Convert(decision.Double)
	if !ok {
		return c
	}
	d := v.Double()
	return code{typ: decision.Double, lit: &v, d: func(*Row) (float64, bool) { return d, true }}
}

func orderingOf(v, w decision.Value, want uint8) Truth {
	cmp, nan, ok := Order(v, w)
	switch {
	case nan || isNaN(v, w): // cel-go looks for NaN before it looks at the types
		return Unordered
	case !ok:
		return Unknown
	}
	return truthOf(want&outcome(cmp) != 0)
}

func isNaN(v, w decision.Value) bool { return math.IsNaN(v.Double()) || math.IsNaN(w.Double()) }

func outcome(cmp int) uint8 {
	switch {
	case cmp < 0:
		return below
	case cmp > 0:
		return above
	}
	return same
}

func compareWith[T any](a, b func(*Row) (T, bool), compare func(x, y T) int, want uint8) func(*Row) Truth {
	return func(r *Row) Truth {
		x, ok := a(r)
		y, ok2 := b(r)
		if !ok || !ok2 {
			return Unknown
		}
		return truthOf(want&outcome(compare(x, y)) != 0)
	}
}

// compareDoubles has a path of its own for the usual case, an attribute against a
// constant.
func compareDoubles(a, b code, want uint8) func(*Row) Truth {
	if a.attr != nil && b.lit != nil {
		attr, limit := a.attr, b.lit.Double()
		return func(r *Row) Truth {
			x, ok := r.double(attr)
			if !ok {
				return Unknown
			}
			return doubleTruth(x, limit, want)
		}
	}
	return func(r *Row) Truth {
		x, ok := a.d(r)
		y, ok2 := b.d(r)
		if !ok || !ok2 {
			return Unknown
		}
		return doubleTruth(x, y, want)
	}
}

func doubleTruth(x, y float64, want uint8) Truth {
	switch {
	case x < y:
		return truthOf(want&below != 0)
	case x > y:
		return truthOf(want&above != 0)
	case x == y:
		return truthOf(want&same != 0)
	}
	return Unordered
}

func arithmetic(fn string, a, b code) (code, bool) {
	switch {
	case a.v != nil || b.v != nil:
		return dynamic(fn, a.value(), b.value()), true
	case a.d != nil && b.d != nil:
		return doubles(fn, a.d, b.d)
	case a.i != nil && b.i != nil:
		op := intOperator(fn)
		return code{typ: decision.Int, i: func(r *Row) (int64, bool) {
			x, ok := a.i(r)
			y, ok2 := b.i(r)
			if !ok || !ok2 {
				return 0, false
			}
			return op(x, y)
		}}, true
	case a.s != nil && b.s != nil && fn == operators.Add:
		return code{typ: decision.String, s: func(r *Row) (string, bool) {
			x, ok := a.s(r)
			y, ok2 := b.s(r)
			return x + y, ok && ok2
		}}, true
	}
	return code{}, false
}

// dynamic is arithmetic on values whose types show at run time: they must be the same.
func dynamic(fn string, a, b func(*Row) (decision.Value, bool)) code {
	ints, doubles := intOperator(fn), doubleOperator(fn)
	return code{v: func(r *Row) (decision.Value, bool) {
		x, ok := a(r)
		y, ok2 := b(r)
		switch {
		case !ok || !ok2 || x.Type() != y.Type():
			return decision.Value{}, false
		case x.Type() == decision.Int:
			i, ok := ints(x.Int(), y.Int())
			return decision.IntValue(i), ok
		case x.Type() == decision.Double && doubles != nil:
			return decision.DoubleValue(doubles(x.Double(), y.Double())), true
		case x.Type() == decision.String && fn == operators.Add:
			return decision.StringValue(x.Str() + y.Str()), true
		}
		return decision.Value{}, false
	}}
}

// doubleOperator returns IEEE arithmetic, or nil: CEL has no remainder of doubles.
func doubleOperator(fn string) func(x, y float64) float64 {
	switch fn {
	case operators.Add:
		return func(x, y float64) float64 { return x + y }
	case operators.Subtract:
		return func(x, y float64) float64 { return x - y }
	case operators.Multiply:
		return func(x, y float64) float64 { return x * y }
	case operators.Divide:
		return func(x, y float64) float64 { return x / y }
	}
	return nil
}

func doubles(fn string, a, b func(*Row) (float64, bool)) (code, bool) {
	op := doubleOperator(fn)
	if op == nil {
		return code{}, false
	}
	return code{typ: decision.Double, d: func(r *Row) (float64, bool) {
		x, ok := a(r)
		y, ok2 := b(r)
		return op(x, y), ok && ok2
	}}, true
}

// intOperator returns 64-bit arithmetic that is false on overflow and division by zero.
func intOperator(fn string) func(x, y int64) (int64, bool) {
	switch fn {
	case operators.Add:
		return func(x, y int64) (int64, bool) { s := x + y; return s, (s > x) == (y > 0) }
	case operators.Subtract:
		return func(x, y int64) (int64, bool) { s := x - y; return s, (s < x) == (y > 0) }
	case operators.Multiply:
		return multiply
	case operators.Divide:
		return func(x, y int64) (int64, bool) {
			if y == 0 || x == math.MinInt64 && y == -1 {
				return 0, false
			}
			return x / y, true
		}
	}
	return func(x, y int64) (int64, bool) {
		if y == 0 || x == math.MinInt64 && y == -1 {
			return 0, false
		}
		return x % y, true
	}
}

func multiply(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, (p < 0) == ((x < 0) != (y < 0)) && p/y == x && !(x == -1 && y == math.MinInt64)
}

func negate(a code) (code, bool) {
	switch {
	case a.d != nil:
		return code{typ: decision.Double, d: func(r *Row) (float64, bool) {
			x, ok := a.d(r)
			return -x, ok
		}}, true
	case a.i != nil:
		return code{typ: decision.Int, i: func(r *Row) (int64, bool) {
			x, ok := a.i(r)
			return -x, ok && x != math.MinInt64
		}}, true
	}
	return code{}, false
}

// size counts code points, as CEL does.
func size(args []code) (code, bool) {
	get := args[0].texts()
	if len(args) != 1 || get == nil {
		return code{}, false
	}
	return code{typ: decision.Int, i: func(r *Row) (int64, bool) {
		s, ok := get(r)
		return int64(utf8.RuneCountInString(s)), ok
	}}, true
}

func toDouble(a code) (code, bool) {
	switch {
	case a.d != nil:
		return a, true
	case a.i != nil:
		return code{typ: decision.Double, d: func(r *Row) (float64, bool) {
			x, ok := a.i(r)
			return float64(x), ok
		}}, true
	}
	return code{}, false
}

func confidence(a code) (code, bool) {
	get := a.d
	if a.v != nil {
		get = func(r *Row) (float64, bool) {
			v, ok := a.v(r)
			return v.Double(), ok && v.Type() == decision.Double
		}
	}
	if get == nil {
		return code{}, false
	}
	return code{typ: decision.Double, d: func(r *Row) (float64, bool) {
		p, ok := get(r)
		if !ok {
			return 0, false
		}
		return Confidence(p)
	}}, true
}
