package expr

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// Necessary returns tests of one text each without which the condition is false for
// certain: the operands of its outermost && that compare an attribute with literal texts.
// False decides an && even beside an error, so a row that fails one of them need not be
// evaluated at all. An attribute that is absent makes such a test an error, not false.
// Conditions that run in cel-go have none: there a NaN beside a false test could not be
// told from one that decides, and the answer must not depend on who asks.
func (p *Program) Necessary() []prefilter.Test { return p.necessary }

// Walk begins a walk through the rules that may hold for a row. attrs are those of the
// index's filters, in order. One that is absent or no text leaves all rules of its filter
// in: their conditions are unknown, and that counts.
func Walk(w *prefilter.Walk, ix *prefilter.Index, attrs []Attr, row *Row) {
	for i := range ix.Filters {
		if v := row.Get(&attrs[i]); v != nil && v.Type() == decision.String {
			w.Add(ix.Filters[i].Rules(v.Str()), true)
		} else {
			w.Add(ix.Filters[i].All(), false)
		}
	}
	w.Add(ix.Rest, false)
}

func (l *lowerer) necessary(e celast.Expr, out []prefilter.Test) []prefilter.Test {
	if e.Kind() != celast.CallKind {
		return out
	}
	c := e.AsCall()
	if c.FunctionName() == operators.LogicalAnd {
		for _, arg := range c.Args() {
			out = l.necessary(arg, out)
		}
		return out
	}
	if t, ok := l.test(c); ok {
		out = append(out, t)
	}
	return out
}

// test reads x == "a", "a" == x, x in ["a", "b"], and x.contains("a") with its like.
func (l *lowerer) test(c celast.CallExpr) (t prefilter.Test, ok bool) {
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]celast.Expr{c.Target()}, args...)
	}
	if len(args) != 2 {
		return t, false
	}
	switch c.FunctionName() {
	case operators.Equals:
		if _, literal := literalString(args[0]); literal {
			args[0], args[1] = args[1], args[0]
		}
	case operators.In:
		return l.member(args)
	case overloads.Contains:
		t.Op = prefilter.Contains
	case overloads.StartsWith:
		t.Op = prefilter.Prefix
	case overloads.EndsWith:
		t.Op = prefilter.Suffix
	default:
		return t, false
	}
	text, literal := literalString(args[1])
	t.Texts = []string{text}
	t.Slot, ok = l.textSlot(args[0])
	return t, ok && literal
}

func (l *lowerer) member(args []celast.Expr) (t prefilter.Test, ok bool) {
	if args[1].Kind() != celast.ListKind {
		return t, false
	}
	for _, e := range args[1].AsList().Elements() {
		text, literal := literalString(e)
		if !literal {
			return t, false
		}
		t.Texts = append(t.Texts, text)
	}
	t.Slot, ok = l.textSlot(args[0])
	return t, ok
}

// textSlot is the slot of an attribute that is text whenever it is there.
func (l *lowerer) textSlot(e celast.Expr) (int, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != fnString {
		return 0, false
	}
	a := l.slot(e.AsCall())
	return a.Slot, a.Type == decision.String && !a.Late
}
