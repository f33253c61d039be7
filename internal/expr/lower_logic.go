package expr

import (
	"regexp"
	"sort"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"

	"github.com/clefbench/clefbench/decision"
)

// logical lowers a chain of && or ||. The operators are commutative in CEL, errors
// included, so what asks a model is put last.
func (l *lowerer) logical(c celast.CallExpr) (code, bool) {
	var terms []code
	if !l.flatten(c, &terms) {
		return code{}, false
	}
	sort.SliceStable(terms, func(i, j int) bool { return !terms[i].late && terms[j].late })
	fns := make([]func(*Row) Truth, len(terms))
	for i, t := range terms {
		fns[i] = t.truth()
	}
	out := code{typ: decision.Bool, late: terms[len(terms)-1].late}
	if c.FunctionName() == operators.LogicalAnd {
		out.b = and(fns)
	} else {
		out.b = or(fns)
	}
	return out, true
}

// flatten collects the operands of nested calls of one operator.
func (l *lowerer) flatten(c celast.CallExpr, terms *[]code) bool {
	for _, e := range c.Args() {
		if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == c.FunctionName() {
			if !l.flatten(e.AsCall(), terms) {
				return false
			}
			continue
		}
		t, ok := l.lower(e)
		if !ok {
			return false
		}
		*terms = append(*terms, t)
	}
	return true
}

// and is False when any operand is, else Unordered (false too), else Unknown.
func and(fns []func(*Row) Truth) func(*Row) Truth {
	if len(fns) == 2 {
		a, b := fns[0], fns[1]
		return func(r *Row) Truth {
			x := a(r)
			if x == False {
				return False
			}
			if x == True {
				return b(r)
			}
			return andWeak(x, b(r))
		}
	}
	return func(r *Row) Truth {
		out := True
		for _, f := range fns {
			x := f(r)
			if x == False {
				return False
			}
			out = andWeak(out, x)
		}
		return out
	}
}

func andWeak(a, b Truth) Truth {
	switch {
	case a == False || b == False:
		return False
	case a == Unordered || b == Unordered:
		return Unordered
	case a == Unknown || b == Unknown:
		return Unknown
	}
	return True
}

// or is True when any operand is, else Unknown, else Unordered.
func or(fns []func(*Row) Truth) func(*Row) Truth {
	return func(r *Row) Truth {
		out := False
		for _, f := range fns {
			switch f(r) {
			case True:
				return True
			case Unknown:
				out = Unknown
			case Unordered:
				if out == False {
					out = Unordered
				}
			}
		}
		return out
	}
}

func not(a code) code {
	f := a.truth()
	return code{typ: decision.Bool, b: func(r *Row) Truth {
		switch f(r) {
		case True:
			return False
		case Unknown:
			return Unknown
		}
		return True
	}}
}

// conditional evaluates one branch only, as CEL does.
func conditional(c, a, b code) code {
	if a.typ != b.typ {
		a, b = code{v: a.value()}, code{v: b.value()}
	}
	cond, out := c.truth(), code{typ: a.typ}
	switch a.typ {
	case decision.Bool:
		out.b = func(r *Row) Truth {
			switch cond(r) {
			case True:
				return a.b(r)
			case Unknown:
				return Unknown
			}
			return b.b(r)
		}
	case decision.Int:
		out.i = choose(cond, a.i, b.i)
	case decision.Double:
		out.d = choose(cond, a.d, b.d)
	case decision.String:
		out.s = choose(cond, a.s, b.s)
	default:
		out.v = choose(cond, a.v, b.v)
	}
	return out
}

func choose[T any](cond func(*Row) Truth, a, b func(*Row) (T, bool)) func(*Row) (T, bool) {
	return func(r *Row) (T, bool) {
		switch cond(r) {
		case True:
			return a(r)
		case Unknown:
			var zero T
			return zero, false
		}
		return b(r)
	}
}

func textTest(fn string, a, b code) (code, bool) {
	left, right := a.texts(), b.texts()
	if left == nil || right == nil {
		return code{}, false
	}
	test := strings.Contains
	switch fn {
	case overloads.StartsWith:
		test = strings.HasPrefix
	case overloads.EndsWith:
		test = strings.HasSuffix
	}
	return code{typ: decision.Bool, b: func(r *Row) Truth {
		x, ok := left(r)
		y, ok2 := right(r)
		if !ok || !ok2 {
			return Unknown
		}
		return truthOf(test(x, y))
	}}, true
}

func matches(a, pattern code) (code, bool) {
	get := a.texts()
	if get == nil || pattern.lit == nil {
		return code{}, false
	}
	re, err := regexp.Compile(pattern.lit.Str())
	if err != nil {
		return code{}, false
	}
	return code{typ: decision.Bool, b: func(r *Row) Truth {
		x, ok := get(r)
		if !ok {
			return Unknown
		}
		return truthOf(re.MatchString(x))
	}}, true
}

// in lowers membership in a list of literals.
func (l *lowerer) in(c celast.CallExpr) (code, bool) {
	x, ok := l.lower(c.Args()[0])
	if !ok || c.Args()[1].Kind() != celast.ListKind {
		return code{}, false
	}
	var values []decision.Value
	for _, e := range c.Args()[1].AsList().Elements() {
		v, ok := l.lower(e)
		if !ok || v.lit == nil {
			return code{}, false
		}
		values = append(values, *v.lit)
	}
	if x.s != nil && allText(values) {
		return code{typ: decision.Bool, late: x.late, b: inTexts(x.s, values)}, true
	}
	get := x.value()
	return code{typ: decision.Bool, late: x.late, b: func(r *Row) Truth {
		v, ok := get(r)
		if !ok {
			return Unknown
		}
		out := False
		for _, w := range values {
			if t := equal(v, w); t == True {
				return True
			} else if t == Unordered {
				out = Unordered
			}
		}
		return out
	}}, true
}

func allText(values []decision.Value) bool {
	for _, v := range values {
		if v.Type() != decision.String {
			return false
		}
	}
	return true
}

func inTexts(get func(*Row) (string, bool), values []decision.Value) func(*Row) Truth {
	set := make(map[string]bool, len(values))
	for _, v := range values {
		set[v.Str()] = true
	}
	return func(r *Row) Truth {
		s, ok := get(r)
		if !ok {
			return Unknown
		}
		return truthOf(set[s])
	}
}
