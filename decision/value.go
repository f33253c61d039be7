package decision

import (
	"fmt"
	"math"
	"strconv"
)

// Type is the type of an attribute value.
type Type uint8

// The attribute types. Null is the zero value: an absent attribute.
const (
	Null Type = iota
	Bool
	Int
	Double
	String
)

var typeNames = [...]string{Null: "null", Bool: "bool", Int: "int", Double: "double", String: "string"}

// String returns null, bool, int, double or string.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type(" + strconv.Itoa(int(t)) + ")"
}

// ParseType reads the name of an attribute type; null is not accepted.
func ParseType(s string) (Type, error) {
	for t := Bool; t <= String; t++ {
		if typeNames[t] == s {
			return t, nil
		}
	}
	return Null, fmt.Errorf("unknown attribute type %q (want bool, int, double or string)", s)
}

// Value is one attribute value, 32 bytes, without a pointer other than a string's.
// The zero Value is null. Values of a type are compared with ==, save that NaN,
// which is stored by its bits, equals itself there.
type Value struct {
	typ Type
	num uint64
	str string
}

// BoolValue returns a bool value.
func BoolValue(b bool) Value {
	v := Value{typ: Bool}
	if b {
		v.num = 1
	}
	return v
}

// IntValue returns an int value.
func IntValue(i int64) Value { return Value{typ: Int, num: uint64(i)} }

// DoubleValue returns a double value; NaN and infinities are kept as given.
func DoubleValue(f float64) Value { return Value{typ: Double, num: math.Float64bits(f)} }

// StringValue returns a string value; the empty string is a value, not null.
func StringValue(s string) Value { return Value{typ: String, str: s} }

// Type returns the value's type.
func (v Value) Type() Type { return v.typ }

// IsNull reports whether the value is absent.
func (v Value) IsNull() bool { return v.typ == Null }

// Bool returns a bool value, or false for any other type.
func (v Value) Bool() bool { return v.typ == Bool && v.num != 0 }

// Int returns an int value, or 0 for any other type.
func (v Value) Int() int64 {
	if v.typ != Int {
		return 0
	}
	return int64(v.num)
}

// Double returns a double value, or 0 for any other type. Use [Value.Number] to read
// an int as a float64.
func (v Value) Double() float64 {
	if v.typ != Double {
		return 0
	}
	return math.Float64frombits(v.num)
}

// Number returns an int or double as a float64, and false for any other type.
func (v Value) Number() (float64, bool) {
	switch v.typ {
	case Int:
		return float64(int64(v.num)), true
	case Double:
		return math.Float64frombits(v.num), true
	}
	return 0, false
}

// Str returns a string value, or "" for any other type.
func (v Value) Str() string { return v.str }

// Any returns the value as nil, bool, int64, float64 or string.
func (v Value) Any() any {
	switch v.typ {
	case Bool:
		return v.Bool()
	case Int:
		return v.Int()
	case Double:
		return v.Double()
	case String:
		return v.str
	}
	return nil
}

// ValueOf converts nil, bool, any Go integer, float32, float64 or string.
func ValueOf(x any) (Value, error) {
	switch x := x.(type) {
	case nil:
		return Value{}, nil
	case bool:
		return BoolValue(x), nil
	case int:
		return IntValue(int64(x)), nil
	case int32:
		return IntValue(int64(x)), nil
	case int64:
		return IntValue(x), nil
	case float32:
		return DoubleValue(float64(x)), nil
	case float64:
		return DoubleValue(x), nil
	case string:
		return StringValue(x), nil
	}
	return Value{}, fmt.Errorf("no attribute type holds a Go %T", x)
}

// Convert returns the value as type t where nothing is lost: an int as double (up to
// 2^53), a double without fraction as int; a null stays null. Anything else is false.
func (v Value) Convert(t Type) (Value, bool) {
	switch {
	case v.typ == t || v.typ == Null:
		return v, true
	case v.typ == Int && t == Double:
		i := v.Int() // not the double: 2^53+1 rounds to 2^53
		return DoubleValue(float64(i)), -1<<53 <= i && i <= 1<<53
	case v.typ == Double && t == Int:
		f := v.Double()
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return Value{}, false
		}
		return IntValue(int64(f)), true
	}
	return Value{}, false
}

// String prints the value for people: null, true, 12, 0.5 or the bare string.
func (v Value) String() string {
	switch v.typ {
	case Bool:
		return strconv.FormatBool(v.Bool())
	case Int:
		return strconv.FormatInt(v.Int(), 10)
	case Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case String:
		return v.str
	}
	return "null"
}
