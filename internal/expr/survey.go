package expr

import (
	"fmt"
	"strconv"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"

	"github.com/clefbench/clefbench/decision"
)

// Survey is what a validator wants to know of a condition besides what is wrong with it.
type Survey struct {
	Condition Condition
	// Cost is cel-go's estimate for the worst input, as bounded by [MaxCost].
	Cost uint64
	// Patterns counts the calls of matches().
	Patterns int
}

// Condition is a condition in parts: Op is "&&", "||", "!" over Kids; a comparison of an
// attribute with literals, "==", "!=", "<", "<=", ">", ">=", "in", "contains",
// "startsWith", "endsWith", "matches" or "has"; or "" for what is neither. Every comparison
// is true only when the attribute is there and has the type that it was compiled for.
type Condition struct {
	Op     string
	Kids   []Condition
	Attr   Attr
	Values []decision.Value
	// Text identifies what has no Op: the same text is the same condition.
	Text string
}

// Survey looks into a condition; false when it does not compile.
func (c *Compiler) Survey(text string) (Survey, bool) {
	checked, _, findings := c.check(text)
	if len(findings) > 0 {
		return Survey{}, false
	}
	est, err := c.env.EstimateCost(checked, sizes{})
	if err != nil {
		return Survey{}, false
	}
	s := surveyor{lowerer: c.lowerer(checked)}
	return Survey{Condition: s.condition(checked.NativeRep().Expr()), Cost: est.Max, Patterns: s.patterns(checked.NativeRep().Expr())}, true
}

type surveyor struct{ *lowerer }

func (s surveyor) condition(e celast.Expr) Condition {
	if e.Kind() == celast.CallKind {
		c := e.AsCall()
		switch fn := c.FunctionName(); fn {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
			out := Condition{Op: map[string]string{operators.LogicalAnd: "&&", operators.LogicalOr: "||", operators.LogicalNot: "!"}[fn]}
			for _, arg := range c.Args() {
				out.Kids = append(out.Kids, s.condition(arg))
			}
			return out
		case fnHas:
			return Condition{Op: "has", Attr: s.slot(c)}
		case fnBool:
			return Condition{Op: "==", Attr: s.slot(c), Values: []decision.Value{decision.BoolValue(true)}}
		}
		if out, ok := s.comparison(c); ok {
			return out
		}
	}
	return Condition{Text: canonical(e)}
}

// comparison reads a comparison of an attribute of a known type with literals.
func (s surveyor) comparison(c celast.CallExpr) (Condition, bool) {
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]celast.Expr{c.Target()}, args...)
	}
	if len(args) != 2 {
		return Condition{}, false
	}
	op, mirrored := comparisonOp(c.FunctionName())
	if args[0].Kind() == celast.LiteralKind && mirrored != "" {
		args, op = []celast.Expr{args[1], args[0]}, mirrored
	}
	attr, ok := s.attr(args[0])
	if op == "" || !ok {
		return Condition{}, false
	}
	out := Condition{Op: op, Attr: attr}
	list := args[1:]
	if op == "in" {
		if args[1].Kind() != celast.ListKind {
			return out, false
		}
		list = args[1].AsList().Elements()
	}
	for _, e := range list {
		if e.Kind() != celast.LiteralKind {
			return out, false
		}
		lit, ok := literal(e)
		if !ok {
			return out, false
		}
		out.Values = append(out.Values, *lit.lit)
	}
	return out, len(out.Values) > 0
}

func (s surveyor) attr(e celast.Expr) (Attr, bool) {
	if e.Kind() != celast.CallKind {
		return Attr{}, false
	}
	switch e.AsCall().FunctionName() {
	case fnBool, fnInt, fnDouble, fnString:
		return s.slot(e.AsCall()), true
	}
	return Attr{}, false
}

// comparisonOp names a comparison, and the one with its sides exchanged.
func comparisonOp(fn string) (op, mirrored string) {
	switch fn {
	case operators.Equals:
		return "==", "=="
	case operators.NotEquals:
		return "!=", "!="
	case operators.Less:
		return "<", ">"
	case operators.LessEquals:
		return "<=", ">="
	case operators.Greater:
		return ">", "<"
	case operators.GreaterEquals:
		return ">=", "<="
	case operators.In:
		return "in", ""
	case overloads.Contains, overloads.StartsWith, overloads.EndsWith, overloads.Matches:
		return fn, ""
	}
	return "", ""
}

func (s surveyor) patterns(e celast.Expr) int {
	n := 0
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(x celast.Expr) {
		if x.Kind() == celast.CallKind && x.AsCall().FunctionName() == overloads.Matches {
			n++
		}
	}))
	return n
}

// canonical writes an expression without blanks and comments. What it does not know gets
// a text of its own, so that it equals nothing.
func canonical(e celast.Expr) string {
	join := func(list []celast.Expr) string {
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = canonical(x)
		}
		return "(" + strings.Join(parts, ",") + ")"
	}
	switch e.Kind() {
	case celast.IdentKind:
		return e.AsIdent()
	case celast.LiteralKind:
		return fmt.Sprintf("%s:%s", e.AsLiteral().Type().TypeName(), strconv.Quote(fmt.Sprint(e.AsLiteral().Value())))
	case celast.ListKind:
		return "list" + join(e.AsList().Elements())
	case celast.SelectKind:
		return fmt.Sprintf("%s.%s?%v", canonical(e.AsSelect().Operand()), strconv.Quote(e.AsSelect().FieldName()), e.AsSelect().IsTestOnly())
	case celast.CallKind:
		c := e.AsCall()
		args := c.Args()
		if c.IsMemberFunction() {
			return canonical(c.Target()) + "." + c.FunctionName() + join(args)
		}
		return c.FunctionName() + join(args)
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		return fmt.Sprintf("fold %s %s %s", strconv.Quote(c.IterVar()), strconv.Quote(c.IterVar2()), strconv.Quote(c.AccuVar())) +
			join([]celast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()})
	}
	return fmt.Sprintf("%p", e)
}
