package rules

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// operator is what a condition does with its field.
type operator uint8

const (
	opEq operator = iota
	opNe
	opGt
	opGe
	opLt
	opLe
	opContains
	opPrefix
	opSuffix
	opIn
	opMatches
	opExists
)

// operators are the names in a file, by operator.
func operators() []string {
	return []string{"eq", "ne", "gt", "ge", "lt", "le", "contains", "prefix", "suffix", "in", "matches", "exists"}
}

// textual reports whether the operator compares texts only.
func (o operator) textual() bool {
	return o == opContains || o == opPrefix || o == opSuffix || o == opMatches
}

// condition is one comparison of an attribute or of a number computed from several. It is
// data, not a closure, so that a validator and an index can look into it.
type condition struct {
	attr expr.Attr
	// calc stands for attr when set; left is its text.
	calc *expr.Calculation
	left string
	op   operator
	// value is the right-hand side; for exists, whether the attribute must be there.
	value decision.Value
	list  []decision.Value // of in
	set   map[string]bool  // of in over texts
	re    *regexp.Regexp   // of matches
}

// holds evaluates the condition for a row.
func (c *condition) holds(row *expr.Row) expr.Truth {
	if c.calc != nil {
		v, ok := c.calc.Value(row)
		if !ok {
			return expr.Unknown
		}
		return c.test(&v)
	}
	v := row.Get(&c.attr)
	if c.op == opExists {
		return truth((v != nil) == c.value.Bool())
	}
	if v == nil {
		return expr.Unknown
	}
	return c.test(v)
}

// test compares a value that is there.
func (c *condition) test(v *decision.Value) expr.Truth {
	switch c.op {
	case opContains, opPrefix, opSuffix, opMatches:
		return c.textual(v)
	case opIn:
		return c.member(v)
	}
	return c.compare(v)
}

func truth(b bool) expr.Truth {
	if b {
		return expr.True
	}
	return expr.False
}

func (c *condition) textual(v *decision.Value) expr.Truth {
	if v.Type() != decision.String {
		return expr.Unknown
	}
	switch c.op {
	case opContains:
		return truth(strings.Contains(v.Str(), c.value.Str()))
	case opPrefix:
		return truth(strings.HasPrefix(v.Str(), c.value.Str()))
	case opSuffix:
		return truth(strings.HasSuffix(v.Str(), c.value.Str()))
	}
	return truth(c.re.MatchString(v.Str()))
}

// compare is Unknown for NaN and for values of different types, equality included: a
// text can never equal a number, and saying false would hide the mistake.
func (c *condition) compare(v *decision.Value) expr.Truth {
	if v.Type() == decision.String && c.value.Type() == decision.String {
		return truth((v.Str() == c.value.Str()) == (c.op == opEq))
	}
	cmp, _, ok := expr.Order(*v, c.value)
	if !ok {
		return expr.Unknown
	}
	switch c.op {
	case opEq:
		return truth(cmp == 0)
	case opNe:
		return truth(cmp != 0)
	case opGt:
		return truth(cmp > 0)
	case opGe:
		return truth(cmp >= 0)
	case opLt:
		return truth(cmp < 0)
	}
	return truth(cmp <= 0)
}

func (c *condition) member(v *decision.Value) expr.Truth {
	if c.set != nil {
		if v.Type() != decision.String {
			return expr.Unknown
		}
		return truth(c.set[v.Str()])
	}
	out := expr.Unknown
	for _, w := range c.list {
		cmp, _, ok := expr.Order(*v, w)
		if ok && cmp == 0 {
			return expr.True
		}
		if ok {
			out = expr.False
		}
	}
	return out
}

// cause says why the condition was Unknown for a row, or "", and which attributes were
// absent.
func (c *condition) cause(row *expr.Row) (missing []string, cause string) {
	if c.holds(row) != expr.Unknown {
		return nil, ""
	}
	if c.calc != nil {
		return c.calcCause(row)
	}
	switch v := row.Get(&c.attr); {
	case v == nil:
		return []string{c.attr.Name}, "missing " + c.attr.Name
	case math.IsNaN(v.Double()):
		return nil, c.attr.Name + " is NaN"
	default:
		return nil, c.attr.Name + " is " + v.Type().String() + ", which the condition cannot compare"
	}
}

func (c *condition) calcCause(row *expr.Row) (missing []string, cause string) {
	missing, cause = c.calc.Explain(row)
	switch {
	case len(missing) > 0:
		return missing, "missing " + strings.Join(missing, ", ")
	case cause != "":
		return nil, c.left + ": " + cause
	}
	return nil, c.left + " is NaN"
}

// name is the left-hand side as the file has it.
func (c *condition) name() string {
	if c.calc != nil {
		return c.left
	}
	return c.attr.Name
}

// text is the condition in one line.
func (c *condition) text() string {
	switch {
	case c.op == opExists && c.value.Bool():
		return c.name() + " exists"
	case c.op == opExists:
		return c.name() + " does not exist"
	case c.op == opIn:
		var list []string
		for _, v := range c.list {
			list = append(list, quoted(v))
		}
		return c.name() + " in [" + strings.Join(list, ", ") + "]"
	}
	return c.name() + " " + operators()[c.op] + " " + quoted(c.value)
}

func quoted(v decision.Value) string {
	if v.Type() == decision.String {
		return strconv.Quote(v.Str())
	}
	return v.String()
}

// reads lists the attributes that the condition reads.
func (c *condition) reads() []expr.Attr {
	if c.calc != nil {
		return c.calc.Reads()
	}
	return []expr.Attr{c.attr}
}
