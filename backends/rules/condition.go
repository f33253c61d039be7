package rules

import (
	"math"
	"regexp"
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

// condition is one comparison of an attribute. It is data, not a closure, so that a
// validator and an index can look into it.
type condition struct {
	attr expr.Attr
	op   operator
	// value is the right-hand side; for exists, whether the attribute must be there.
	value decision.Value
	list  []decision.Value // of in
	set   map[string]bool  // of in over texts
	re    *regexp.Regexp   // of matches
}

// holds evaluates the condition for a row.
func (c *condition) holds(row *expr.Row) expr.Truth {
	v := row.Get(&c.attr)
	if c.op == opExists {
		return truth((v != nil) == c.value.Bool())
	}
	if v == nil {
		return expr.Unknown
	}
	switch c.op {
	case opContains, opPrefix, opSuffix, opMatches:
		return c.text(v)
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

func (c *condition) text(v *decision.Value) expr.Truth {
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

// cause says why the condition was Unknown for a row, or "".
func (c *condition) cause(row *expr.Row) string {
	v := row.Get(&c.attr)
	switch {
	case c.holds(row) != expr.Unknown:
		return ""
	case v == nil:
		return "missing " + c.attr.Name
	case math.IsNaN(v.Double()):
		return c.attr.Name + " is NaN"
	}
	return c.attr.Name + " is " + v.Type().String() + ", which the condition cannot compare"
}
