package expr

import "github.com/clefbench/clefbench/decision"

// Truth is the answer of a condition.
type Truth uint8

// The truth values. Unknown is CEL's error: a missing attribute, an overflow, a value of
// the wrong type. Unordered is false because of a NaN: CEL calls such a comparison
// false, and so does every caller here, but a rule that failed only for it is counted
// as skipped.
const (
	False Truth = iota
	True
	Unknown
	Unordered
)

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Late answers names that are computed on demand, as a model's score is. The pointer is
// valid until the next request; nil is absent.
type Late interface {
	Late(slot int) *decision.Value
}

// Row is the attributes of one request, bound to a scope.
type Row struct {
	// Values are the request's values; At gives the place of each slot in them, or -1.
	Values []decision.Value
	At     []int
	// Late answers the late slots; nil when there are none.
	Late Late
}

// at returns the value of a slot, or nil when it is absent.
func (r *Row) at(slot int) *decision.Value {
	i := r.At[slot]
	if i < 0 || i >= len(r.Values) || r.Values[i].IsNull() {
		return nil
	}
	return &r.Values[i]
}

// Get returns the value of an attribute, or nil when it is absent.
func (r *Row) Get(a *Attr) *decision.Value {
	if !a.Late {
		return r.at(a.Slot)
	}
	if r.Late == nil {
		return nil
	}
	if v := r.Late.Late(a.Slot); v != nil && !v.IsNull() {
		return v
	}
	return nil
}

// typed returns the value of an attribute as the type that it was compiled for; false
// when it is absent or cannot be that type without loss.
func (r *Row) typed(a *Attr) (decision.Value, bool) {
	v := r.Get(a)
	if v == nil {
		return decision.Value{}, false
	}
	if a.Type == decision.Null || v.Type() == a.Type {
		return *v, true
	}
	return v.Convert(a.Type)
}

// Order compares two values as CEL orders them at run time: numbers across int and
// double, strings by bytes, bools false first. The result is below, at or above 0; ok
// is false for values of different types and for NaN, which nan tells apart.
func Order(a, b decision.Value) (cmp int, nan, ok bool) {
	switch {
	case a.Type() == decision.String && b.Type() == decision.String:
		return compareStrings(a.Str(), b.Str()), false, true
	case a.Type() == decision.Int && b.Type() == decision.Int:
		return compareOrdered(a.Int(), b.Int()), false, true
	case a.Type() == decision.Bool && b.Type() == decision.Bool:
		return compareBools(a.Bool(), b.Bool()), false, true
	}
	x, xok := a.Number()
	y, yok := b.Number()
	switch {
	case !xok || !yok:
		return 0, false, false
	case x != x || y != y:
		return 0, true, false
	case a.Type() == decision.Double && b.Type() == decision.Int:
		return compareDoubleInt(x, b.Int()), false, true
	case a.Type() == decision.Int && b.Type() == decision.Double:
		return -compareDoubleInt(y, a.Int()), false, true
	}
	return compareOrdered(x, y), false, true
}

func compareOrdered[T int64 | float64](a, b T) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func compareStrings(a, b string) int {
	switch {
	case a == b:
		return 0
	case a < b:
		return -1
	}
	return 1
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareDoubleInt is cel-go's rule: the int is rounded to a double once the double is
// within the range of int.
func compareDoubleInt(d float64, i int64) int {
	const limit = 1 << 63
	if d < -limit {
		return -1
	}
	if d > limit {
		return 1
	}
	return compareOrdered(d, float64(i))
}
