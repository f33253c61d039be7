package expr

import (
	"math"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/clefbench/clefbench/decision"
)

func celValue(v decision.Value) ref.Val {
	return types.DefaultTypeAdapter.NativeToValue(v.Any())
}

func orderValues() []decision.Value {
	var out []decision.Value
	for _, f := range []float64{0, math.Copysign(0, -1), 0.5, -0.5, 1, 7, 1 << 53, 1<<53 + 2, math.MaxInt64, math.MinInt64, 1e300, -1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
		out = append(out, decision.DoubleValue(f))
	}
	for _, i := range []int64{0, 1, -1, 7, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64} {
		out = append(out, decision.IntValue(i))
	}
	for _, s := range []string{"", "a", "ab", "b", "é", "\xff"} {
		out = append(out, decision.StringValue(s))
	}
	return append(out, decision.BoolValue(true), decision.BoolValue(false))
}

// Order and equal against cel-go's own values, each pair.
func TestOrderIsThatOfCEL(t *testing.T) {
	for _, a := range orderValues() {
		for _, b := range orderValues() {
			x, y := celValue(a), celValue(b)
			cmp, nan, ok := Order(a, b)
			want := x.(traits.Comparer).Compare(y)
			if i, isInt := want.(types.Int); isInt != ok || isInt && int(i) != cmp {
				t.Errorf("order of %v and %v: %d, %v; cel-go %v", a, b, cmp, ok, want)
			}
			if nan && !math.IsNaN(a.Double()) && !math.IsNaN(b.Double()) {
				t.Errorf("%v and %v are called NaN", a, b)
			}
			if got, want := equal(a, b) == True, x.Equal(y) == types.True; got != want {
				t.Errorf("%v == %v is %v, cel-go says %v", a, b, got, want)
			}
		}
	}
}

func TestRow(t *testing.T) {
	schema := testSchema(t)
	scope := NewScope(schema)
	score, _ := scope.Use("score")
	gone, _ := scope.Use("headers.gone")
	path, _ := scope.Use("path")
	row := bind(t, scope, schema, map[string]any{"score": 3})
	if v := row.Get(&score); v == nil || v.Int() != 3 {
		t.Errorf("score is %v", v)
	}
	if v := row.Get(&gone); v != nil {
		t.Errorf("an attribute outside the schema is %v", v)
	}
	if v := row.Get(&path); v != nil {
		t.Errorf("a null is %v", v)
	}
	if v, ok := row.typed(&score); !ok || v.Double() != 3 || v.Type() != decision.Double {
		t.Errorf("an int read as double is %v, %v", v, ok)
	}
	row.Values = row.Values[:1]
	if v := row.Get(&score); v != nil {
		t.Errorf("a value beyond a short row is %v", v)
	}
}

// The truth tables. NaN's false, Unordered, must behave as false under each operator,
// and keep its mark exactly when the result is false because of it.
func TestTruthTables(t *testing.T) {
	const F, T, U, N = False, True, Unknown, Unordered
	all := []Truth{F, T, U, N}
	wantAnd := [4][4]Truth{F: {F, F, F, F}, T: {F, T, U, N}, U: {F, U, U, N}, N: {F, N, N, N}}
	wantOr := [4][4]Truth{F: {F, T, U, N}, T: {T, T, T, T}, U: {U, T, U, U}, N: {N, T, U, N}}
	wantNot := [4]Truth{F: T, T: F, U: U, N: T}
	constant := func(x Truth) func(*Row) Truth { return func(*Row) Truth { return x } }
	for _, a := range all {
		if got := not(code{b: constant(a)}).b(nil); got != wantNot[a] {
			t.Errorf("!%d = %d", a, got)
		}
		for _, b := range all {
			if got := and([]func(*Row) Truth{constant(a), constant(b)})(nil); got != wantAnd[a][b] {
				t.Errorf("%d && %d = %d, want %d", a, b, got, wantAnd[a][b])
			}
			if got := or([]func(*Row) Truth{constant(a), constant(b)})(nil); got != wantOr[a][b] {
				t.Errorf("%d || %d = %d, want %d", a, b, got, wantOr[a][b])
			}
			for _, c := range all {
				fns := []func(*Row) Truth{constant(a), constant(b), constant(c)}
				if got, want := and(fns)(nil), wantAnd[wantAnd[a][b]][c]; got != want {
					t.Errorf("%d && %d && %d = %d, want %d", a, b, c, got, want)
				}
				if got, want := or(fns)(nil), wantOr[wantOr[a][b]][c]; got != want {
					t.Errorf("%d || %d || %d = %d, want %d", a, b, c, got, want)
				}
			}
		}
	}
}

func TestConfidence(t *testing.T) {
	for p, want := range map[float64]float64{0: 1, 1: 1, 0.5: 0.5, 0.25: 0.75, 0.9: 0.9} {
		if got, ok := Confidence(p); !ok || got != want {
			t.Errorf("confidence(%v) = %v, %v", p, got, ok)
		}
	}
	for _, p := range []float64{-0.1, 1.1, math.Inf(1), math.Inf(-1)} {
		if got, ok := Confidence(p); ok {
			t.Errorf("confidence(%v) = %v", p, got)
		}
	}
	if got, ok := Confidence(math.NaN()); !ok || !math.IsNaN(got) {
		t.Errorf("confidence(NaN) = %v, %v", got, ok)
	}
}
