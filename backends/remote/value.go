package remote

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
)

// errNotEncodable reports a request or an answer that JSON cannot carry unchanged.
var errNotEncodable = errors.New("JSON cannot carry this unchanged")

// Keys of the objects that stand for values which JSON has no form for.
const (
	keyDouble = "$double"
	keyBytes  = "$bytes"
)

// appendText writes a JSON string. Text that is not UTF-8 is an error: replacing bytes
// would change what is decided on.
func appendText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return b, fmt.Errorf("%q is not UTF-8: %w", s, errNotEncodable)
	}
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}

// appendDouble writes a finite number so that it reads as a double again.
func appendDouble(b []byte, x float64, bits int) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, x, 'g', -1, bits)
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, '.', '0')
}

// appendValue writes an attribute value; the reader gets the same type and bits, save
// that every NaN is one NaN.
func appendValue(b []byte, v decision.Value) []byte {
	switch v.Type() {
	case decision.Bool:
		return strconv.AppendBool(b, v.Bool())
	case decision.Int:
		return strconv.AppendInt(b, v.Int(), 10)
	case decision.Double:
		x := v.Double()
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return append(append(append(b, `{"$double":"`...), strconv.FormatFloat(x, 'g', -1, 64)...), `"}`...)
		}
		return appendDouble(b, x, 64)
	case decision.String:
		if out, err := appendText(b, v.Str()); err == nil {
			return out
		}
		b = append(b, `{"$bytes":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(v.Str()))
		return append(b, `"}`...)
	}
	return append(b, "null"...)
}

// float reads a number rounded to 32 or 64 bits; one that is too large is refused, not
// infinite.
func (s *scanner) float(bits int) (float64, error) {
	s.peek()
	at := s.i
	literal, _, err := s.number()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(literal, bits)
	if err != nil {
		return 0, s.errorAt(at, "the number %.40s is out of range", literal)
	}
	return x, nil
}

// attribute reads a value of the context. An object is either one of the two special
// forms or a group, whose members go to member under their dotted name.
func (s *scanner) attribute(name string, member func(name string, v decision.Value, at int) error) error {
	c := s.peek()
	at := s.i
	var v decision.Value
	switch c {
	case '{':
		return s.group(name, member)
	case '[':
		return s.errorAt(at, "attribute %q is a list; an attribute is text, a number, true, false or null", name)
	case '"':
		text, err := s.text()
		if err != nil {
			return err
		}
		v = decision.StringValue(text)
	case 't', 'f':
		if err := s.word(strconv.FormatBool(c == 't')); err != nil {
			return err
		}
		v = decision.BoolValue(c == 't')
	case 'n':
		if err := s.word("null"); err != nil {
			return err
		}
	default:
		var err error
		if v, err = s.numeric(); err != nil {
			return err
		}
	}
	return member(name, v, at)
}

// numeric reads an int, or a double when it has a point or an exponent.
func (s *scanner) numeric() (decision.Value, error) {
	s.peek()
	at := s.i
	literal, whole, err := s.number()
	if err != nil {
		return decision.Value{}, err
	}
	if !whole {
		s.i = at
		x, err := s.float(64)
		return decision.DoubleValue(x), err
	}
	i, err := strconv.ParseInt(literal, 10, 64)
	if err != nil {
		return decision.Value{}, s.errorAt(at, "the number %.40s is no 64-bit integer; write a point for a double", literal)
	}
	return decision.IntValue(i), nil
}

func (s *scanner) group(name string, member func(name string, v decision.Value, at int) error) error {
	at, first := s.i, true
	return s.object(func(key string, keyAt int) error {
		if key != keyDouble && key != keyBytes {
			first = false
			return s.attribute(name+"."+key, member)
		}
		v, err := s.special(key)
		switch {
		case err != nil:
			return err
		case !first || s.peek() != '}':
			return s.errorAt(keyAt, "%s stands alone in its object", key)
		}
		return member(name, v, at)
	})
}

// special reads what a special form stands for.
func (s *scanner) special(key string) (decision.Value, error) {
	s.peek()
	at := s.i
	text, err := s.text()
	if err != nil {
		return decision.Value{}, err
	}
	if key == keyBytes {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return decision.Value{}, s.errorAt(at, "%s is not base64", keyBytes)
		}
		return decision.StringValue(string(raw)), nil
	}
	switch text {
	case "NaN":
		return decision.DoubleValue(math.NaN()), nil
	case "+Inf":
		return decision.DoubleValue(math.Inf(1)), nil
	case "-Inf":
		return decision.DoubleValue(math.Inf(-1)), nil
	}
	return decision.Value{}, s.errorAt(at, `%s must be "NaN", "+Inf" or "-Inf"`, keyDouble)
}
