package decision

import (
	"math"
	"testing"
)

func TestValueReadsOnlyItsType(t *testing.T) {
	for _, tc := range []struct {
		v    Value
		typ  Type
		any  any
		text string
	}{
		{Value{}, Null, nil, "null"},
		{BoolValue(true), Bool, true, "true"},
		{BoolValue(false), Bool, false, "false"},
		{IntValue(-7), Int, int64(-7), "-7"},
		{DoubleValue(0.5), Double, 0.5, "0.5"},
		{StringValue(""), String, "", ""},
		{StringValue("1"), String, "1", "1"},
	} {
		if tc.v.Type() != tc.typ || tc.v.Any() != tc.any || tc.v.String() != tc.text || tc.v.IsNull() != (tc.typ == Null) {
			t.Errorf("%v: type %v, any %v, text %q", tc, tc.v.Type(), tc.v.Any(), tc.v.String())
		}
		if tc.typ != Bool && tc.v.Bool() || tc.typ != Int && tc.v.Int() != 0 || tc.typ != Double && tc.v.Double() != 0 || tc.typ != String && tc.v.Str() != "" {
			t.Errorf("%v %v reads as another type", tc.typ, tc.v)
		}
		if _, ok := tc.v.Number(); ok != (tc.typ == Int || tc.typ == Double) {
			t.Errorf("%v %v: number %v", tc.typ, tc.v, ok)
		}
	}
	if nan := DoubleValue(math.NaN()); nan != DoubleValue(math.NaN()) || nan == (Value{}) {
		t.Error("NaN must equal itself as a stored value, and is not null")
	}
}

func TestConvertLosesNothing(t *testing.T) {
	for _, tc := range []struct {
		v    Value
		to   Type
		want Value
		ok   bool
	}{
		{IntValue(3), Double, DoubleValue(3), true},
		{IntValue(1 << 53), Double, DoubleValue(1 << 53), true},
		{IntValue(1<<53 + 1), Double, Value{}, false},
		{DoubleValue(3), Int, IntValue(3), true},
		{DoubleValue(3.5), Int, Value{}, false},
		{DoubleValue(math.NaN()), Int, Value{}, false},
		{DoubleValue(math.Inf(1)), Int, Value{}, false},
		{StringValue("3"), Int, Value{}, false},
		{BoolValue(true), Int, Value{}, false},
		{Value{}, Int, Value{}, true},
		{StringValue("x"), String, StringValue("x"), true},
	} {
		got, ok := tc.v.Convert(tc.to)
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("%v %v to %v: %v, %v", tc.v.Type(), tc.v, tc.to, got, ok)
		}
	}
}

func TestValueOf(t *testing.T) {
	for want, x := range map[Value]any{
		{}: nil, BoolValue(true): true, IntValue(1): 1, IntValue(2): int32(2), IntValue(3): int64(3), DoubleValue(0.5): float32(0.5), DoubleValue(2): 2.0, StringValue("s"): "s",
	} {
		if got, err := ValueOf(x); err != nil || got != want {
			t.Errorf("ValueOf(%T %v) = %v, %v", x, x, got, err)
		}
	}
	for _, x := range []any{uint64(1), []byte("x"), struct{}{}} {
		if _, err := ValueOf(x); err == nil {
			t.Errorf("ValueOf(%T) has no error", x)
		}
	}
}

func TestTypeNames(t *testing.T) {
	for typ := Bool; typ <= String; typ++ {
		if got, err := ParseType(typ.String()); err != nil || got != typ {
			t.Errorf("%v reads as %v, %v", typ, got, err)
		}
	}
	for _, s := range []string{"null", "", "float", "Int"} {
		if _, err := ParseType(s); err == nil {
			t.Errorf("ParseType(%q) has no error", s)
		}
	}
	if got := Type(9).String(); got != "type(9)" {
		t.Errorf("%q", got)
	}
}
