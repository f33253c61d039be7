package predicate

import (
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// Op is what a predicate says of its value.
type Op uint8

// The operators. Opaque is a condition that is compared by its text alone.
const (
	Eq Op = iota
	Ne
	Gt
	Ge
	Lt
	Le
	Contains
	Prefix
	Suffix
	In
	Matches
	Exists
	Opaque
)

// Predicate is a condition that came out true, or false for certain when Not is set.
type Predicate struct {
	// Name is the left-hand side, and of an opaque one the whole condition.
	Name string
	Op   Op
	// Value is the right-hand side, List that of In.
	Value decision.Value
	List  []decision.Value
	// Match tests a text, for Matches; Value is the pattern.
	Match func(string) bool
	Not   bool
}

// class is the type of value that a predicate needs in order to be known.
type class uint8

const (
	opaque class = iota // compared with itself only
	text
	number
	boolean
	presence
)

// maxNumber bounds the constants that are reasoned about: from 2^53 on, an int that is
// compared with a double is rounded, and equality is no longer transitive.
const maxNumber = 1 << 53

func (p *Predicate) class() class {
	switch p.Op {
	case Opaque:
		return opaque
	case Exists:
		return presence
	case Matches:
		if p.Match == nil {
			return opaque
		}
		return text
	case Contains, Prefix, Suffix:
		return text
	case In:
		if len(p.List) == 0 {
			return opaque
		}
		first := classOf(p.List[0])
		for _, v := range p.List[1:] {
			if classOf(v) != first {
				return opaque
			}
		}
		return first
	}
	return classOf(p.Value)
}

func classOf(v decision.Value) class {
	switch v.Type() {
	case decision.String:
		return text
	case decision.Bool:
		return boolean
	}
	if x, ok := v.Number(); ok && math.Abs(x) < maxNumber {
		return number
	}
	return opaque
}

// same reports whether two predicates are one condition, whatever came out.
func (p *Predicate) same(q *Predicate) bool {
	return p.Name == q.Name && p.Op == q.Op && p.Value == q.Value && slices.Equal(p.List, q.List)
}

// holds reports whether the predicate, Not included, is the case for a value of its class.
func (p *Predicate) holds(v decision.Value) bool { return p.test(v) != p.Not }

func (p *Predicate) test(v decision.Value) bool {
	switch p.Op {
	case Contains:
		return strings.Contains(v.Str(), p.Value.Str())
	case Prefix:
		return strings.HasPrefix(v.Str(), p.Value.Str())
	case Suffix:
		return strings.HasSuffix(v.Str(), p.Value.Str())
	case Matches:
		return p.Match != nil && p.Match(v.Str())
	case In:
		return slices.ContainsFunc(p.List, func(w decision.Value) bool { return equal(v, w) })
	case Eq:
		return equal(v, p.Value)
	case Ne:
		return !equal(v, p.Value)
	}
	cmp, _, _ := expr.Order(v, p.Value)
	switch p.Op {
	case Gt:
		return cmp > 0
	case Ge:
		return cmp >= 0
	case Lt:
		return cmp < 0
	}
	return cmp <= 0
}

func equal(v, w decision.Value) bool {
	cmp, _, ok := expr.Order(v, w)
	return ok && cmp == 0
}

// points returns the values that the predicate lets through when it names them all, or
// the values that it keeps out when it names those.
func (p *Predicate) points() (in, out []decision.Value) {
	list := p.List
	switch {
	case p.Op == Eq || p.Op == Ne:
		list = []decision.Value{p.Value}
	case p.Op != In:
		return nil, nil
	}
	if (p.Op == Ne) != p.Not {
		return nil, list
	}
	return list, nil
}

// bound is a half-line of numbers: above (or below) x, x itself included when closed.
type bound struct {
	above, closed bool
	x             decision.Value
}

func (p *Predicate) bound() (b bound, ok bool) {
	b.x = p.Value
	switch p.Op {
	case Gt, Ge:
		b.above, b.closed = true, p.Op == Ge
	case Lt, Le:
		b.closed = p.Op == Le
	default:
		return b, false
	}
	if p.Not {
		b.above, b.closed = !b.above, !b.closed
	}
	return b, p.class() == number
}

// implies reports whether q is the case whenever p is.
func (p *Predicate) implies(q *Predicate) bool {
	if p.same(q) {
		return p.Not == q.Not
	}
	pc, qc := p.class(), q.class()
	switch {
	case p.Name != q.Name || pc == opaque || qc == opaque:
		return false
	case qc == presence:
		// What is known of a value says that there is one.
		return pc != presence && q.Value.Bool() != q.Not || pc == presence && present(p) == present(q)
	case pc != qc:
		return false
	case pc == boolean:
		return q.follows(p, []decision.Value{decision.BoolValue(false), decision.BoolValue(true)})
	}
	in, _ := p.points()
	if in != nil {
		return q.follows(p, in)
	}
	if _, out := q.points(); out != nil {
		return !slices.ContainsFunc(out, p.holds)
	}
	if pc == number {
		return p.within(q)
	}
	return p.impliesText(q)
}

func present(p *Predicate) bool { return p.Value.Bool() != p.Not }

// follows reports whether q is the case for each of some values for which p is.
func (q *Predicate) follows(p *Predicate, values []decision.Value) bool {
	for _, v := range values {
		if p.holds(v) && !q.holds(v) {
			return false
		}
	}
	return true
}

// within compares half-lines.
func (p *Predicate) within(q *Predicate) bool {
	a, ok := p.bound()
	b, ok2 := q.bound()
	if !ok || !ok2 || a.above != b.above {
		return false
	}
	cmp, _, _ := expr.Order(a.x, b.x)
	if !a.above {
		cmp = -cmp
	}
	return cmp > 0 || cmp == 0 && (b.closed || !a.closed)
}

// impliesText compares tests of a text's parts.
func (p *Predicate) impliesText(q *Predicate) bool {
	if q.part() && q.Value.Str() == "" {
		return !q.Not // every text has the empty part
	}
	if !p.part() || !q.part() {
		return false
	}
	a, b := p.Value.Str(), q.Value.Str()
	switch {
	case p.Not && q.Not: // the other way round: having q's part means having p's
		return partHas(q.Op, b, p.Op, a)
	case p.Not:
		return false
	case !q.Not:
		return partHas(p.Op, a, q.Op, b)
	case p.Op == Prefix && q.Op == Prefix:
		return !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a)
	case p.Op == Suffix && q.Op == Suffix:
		return !strings.HasSuffix(a, b) && !strings.HasSuffix(b, a)
	}
	return false
}

func (p *Predicate) part() bool { return p.Op == Contains || p.Op == Prefix || p.Op == Suffix }

// partHas reports whether any text with part a, which stands as op says, has the part b
// where want says.
func partHas(op Op, a string, want Op, b string) bool {
	switch want {
	case Contains:
		return strings.Contains(a, b)
	case Prefix:
		return op == Prefix && strings.HasPrefix(a, b)
	}
	return op == Suffix && strings.HasSuffix(a, b)
}
