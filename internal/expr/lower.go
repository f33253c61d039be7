package expr

import (
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/clefbench/clefbench/decision"
)

// code is a lowered expression: exactly one function is set, by type. The second result
// of the value functions is false for CEL's error.
type code struct {
	typ decision.Type // null is a value of a type known at run time only
	b   func(*Row) Truth
	i   func(*Row) (int64, bool)
	d   func(*Row) (float64, bool)
	s   func(*Row) (string, bool)
	v   func(*Row) (decision.Value, bool)
	// lit is the value of a literal, attr the attribute of a plain read.
	lit  *decision.Value
	attr *Attr
	// late: it reads what is computed on demand, so it is evaluated last.
	late bool
}

// lowerer turns a checked expression into closures. What it does not know is left to
// cel-go as a whole, so it may be as small as the rules that people write.
type lowerer struct {
	ast   *celast.AST
	scope *Scope
}

// lower returns the code of an expression, or false when some part is not lowered.
func (l *lowerer) lower(e celast.Expr) (code, bool) {
	switch e.Kind() {
	case celast.LiteralKind:
		return literal(e)
	case celast.CallKind:
		return l.call(e.AsCall())
	}
	return code{}, false
}

func literal(e celast.Expr) (code, bool) {
	switch x := e.AsLiteral().(type) {
	case types.Bool:
		t, v := truthOf(bool(x)), decision.BoolValue(bool(x))
		return code{typ: decision.Bool, lit: &v, b: func(*Row) Truth { return t }}, true
	case types.Int:
		i, v := int64(x), decision.IntValue(int64(x))
		return code{typ: decision.Int, lit: &v, i: func(*Row) (int64, bool) { return i, true }}, true
	case types.Double:
		d, v := float64(x), decision.DoubleValue(float64(x))
		return code{typ: decision.Double, lit: &v, d: func(*Row) (float64, bool) { return d, true }}, true
	case types.String:
		s, v := string(x), decision.StringValue(string(x))
		return code{typ: decision.String, lit: &v, s: func(*Row) (string, bool) { return s, true }}, true
	}
	return code{}, false
}

func (l *lowerer) call(c celast.CallExpr) (code, bool) {
	switch fn := c.FunctionName(); fn {
	case fnBool, fnInt, fnDouble, fnString, fnDyn:
		return read(l.slot(c)), true
	case fnHas:
		a := l.slot(c)
		return code{typ: decision.Bool, late: a.Late, b: func(r *Row) Truth { return truthOf(r.Get(&a) != nil) }}, true
	case operators.LogicalAnd, operators.LogicalOr:
		return l.logical(c)
	case operators.In:
		return l.in(c)
	default:
		args, ok := l.args(c)
		if !ok {
			return code{}, false
		}
		out, ok := apply(fn, args)
		for _, a := range args {
			out.late = out.late || a.late
		}
		return out, ok
	}
}

func (l *lowerer) slot(c celast.CallExpr) Attr {
	return l.scope.Attr(int(c.Args()[1].AsLiteral().(types.Int)))
}

// args lowers the target, if any, and the arguments.
func (l *lowerer) args(c celast.CallExpr) ([]code, bool) {
	exprs := c.Args()
	if c.IsMemberFunction() {
		exprs = append([]celast.Expr{c.Target()}, exprs...)
	}
	out := make([]code, len(exprs))
	for i, e := range exprs {
		var ok bool
		if out[i], ok = l.lower(e); !ok {
			return nil, false
		}
	}
	return out, true
}

// apply lowers a function of lowered arguments.
func apply(fn string, args []code) (code, bool) {
	switch fn {
	case operators.LogicalNot:
		return not(args[0]), true
	case operators.Equals, operators.NotEquals:
		return equality(args[0], args[1], fn == operators.NotEquals), true
	case operators.Less:
		return ordering(args[0], args[1], below), true
	case operators.LessEquals:
		return ordering(args[0], args[1], below|same), true
	case operators.Greater:
		return ordering(args[0], args[1], above), true
	case operators.GreaterEquals:
		return ordering(args[0], args[1], above|same), true
	case operators.Conditional:
		return conditional(args[0], args[1], args[2]), true
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return arithmetic(fn, args[0], args[1])
	case operators.Negate:
		return negate(args[0])
	case overloads.Contains, overloads.StartsWith, overloads.EndsWith:
		return textTest(fn, args[0], args[1])
	case overloads.Matches:
		return matches(args[0], args[1])
	case overloads.Size:
		return size(args)
	case overloads.TypeConvertDouble:
		return toDouble(args[0])
	case "confidence":
		return confidence(args[0])
	}
	return code{}, false
}

// read is the code of an attribute.
func read(a Attr) code {
	c := code{typ: a.Type, attr: &a, late: a.Late}
	switch a.Type {
	case decision.Bool:
		c.b = func(r *Row) Truth {
			if v := r.Get(&a); v != nil && v.Type() == decision.Bool {
				return truthOf(v.Bool())
			}
			return Unknown
		}
	case decision.Int:
		c.i = func(r *Row) (int64, bool) {
			v, ok := r.typed(&a)
			return v.Int(), ok
		}
	case decision.Double:
		c.d = func(r *Row) (float64, bool) { return r.double(&a) }
	case decision.String:
		c.s = func(r *Row) (string, bool) {
			if v := r.Get(&a); v != nil && v.Type() == decision.String {
				return v.Str(), true
			}
			return "", false
		}
	default:
		c.v = func(r *Row) (decision.Value, bool) { return r.typed(&a) }
	}
	return c
}

// truth is the code as a condition.
func (c code) truth() func(*Row) Truth {
	if c.b != nil {
		return c.b
	}
	v := c.value()
	return func(r *Row) Truth {
		if x, ok := v(r); ok && x.Type() == decision.Bool {
			return truthOf(x.Bool())
		}
		return Unknown
	}
}

// texts is the code as text, or nil when it can never be one.
func (c code) texts() func(*Row) (string, bool) {
	if c.v == nil {
		return c.s
	}
	return func(r *Row) (string, bool) {
		v, ok := c.v(r)
		return v.Str(), ok && v.Type() == decision.String
	}
}

// value is the code as a value of any type.
func (c code) value() func(*Row) (decision.Value, bool) {
	switch {
	case c.v != nil:
		return c.v
	case c.i != nil:
		return func(r *Row) (decision.Value, bool) {
			x, ok := c.i(r)
			return decision.IntValue(x), ok
		}
	case c.d != nil:
		return func(r *Row) (decision.Value, bool) {
			x, ok := c.d(r)
			return decision.DoubleValue(x), ok
		}
	case c.s != nil:
		return func(r *Row) (decision.Value, bool) {
			x, ok := c.s(r)
			return decision.StringValue(x), ok
		}
	}
	return func(r *Row) (decision.Value, bool) {
		x := c.b(r)
		return decision.BoolValue(x == True), x != Unknown
	}
}
