package cel

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Limits on one condition. Cost is cel-go's static estimate for the worst input, with
// texts of up to MaxText bytes and maps of up to MaxEntries: it is bounded at load, because
// watching it at run time makes evaluation three to four times dearer.
const (
	MaxExpression = 8192 // code points
	MaxNesting    = 60
	MaxNodes      = 5000
	MaxCost       = 1_000_000
	MaxText       = 8192
	MaxEntries    = 256
)

// environment compiles the conditions of one file.
type environment struct {
	env   *cel.Env
	names *names
}

// finding is a problem inside an expression's text.
type finding struct {
	offset        int
	message, hint string
}

func newEnvironment(n *names) (*environment, error) {
	env, err := cel.NewEnv(append([]cel.EnvOption{
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ParserRecursionLimit(MaxNesting),
		cel.ExpressionNodeLimit(MaxNodes),
	}, n.options()...)...)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return &environment{env, n}, nil
}

// compile parses, checks and plans a condition.
func (e *environment) compile(text string) (cel.Program, reads, []finding) {
	if strings.TrimSpace(text) == "" {
		return nil, reads{}, []finding{{message: "the condition is empty", hint: "write true for a rule that always holds"}}
	}
	src := common.NewTextSource(text)
	checked, iss := e.env.CompileSource(src)
	if iss.Err() != nil {
		return nil, reads{}, issuesOf(src, iss)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && t.Kind() != cel.DynKind {
		return nil, reads{}, []finding{{message: fmt.Sprintf("the condition gives %s, not true or false", t), hint: "compare it with something"}}
	}
	if f := e.tooDear(checked); f != nil {
		return nil, reads{}, []finding{*f}
	}
	prog, err := e.env.Program(checked, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, reads{}, []finding{{message: fmt.Sprintf("plan: %v", err)}}
	}
	return prog, e.readsOf(checked.NativeRep()), nil
}

func (e *environment) tooDear(checked *cel.Ast) *finding {
	est, err := e.env.EstimateCost(checked, sizes{})
	if err != nil {
		return &finding{message: fmt.Sprintf("cannot bound the cost: %v", err)}
	}
	if est.Max > MaxCost {
		return &finding{message: fmt.Sprintf("the condition may cost %d steps, the limit is %d", est.Max, uint64(MaxCost)), hint: "avoid nested loops"}
	}
	return nil
}

// sizes tells the cost estimator how large a value may be.
type sizes struct{}

func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	switch n.Type().Kind() {
	case types.MapKind, types.ListKind:
		return &cost.SizeEstimate{Max: MaxEntries}
	case types.StringKind, types.BytesKind, types.DynKind:
		return &cost.SizeEstimate{Max: MaxText}
	}
	return nil
}

func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// issuesOf converts cel-go's issues. Only the first syntax error is kept: what a parser
// says after it has lost its way misleads.
func issuesOf(src common.Source, iss *cel.Issues) []finding {
	var out []finding
	for _, x := range iss.Errors() {
		offset, _ := src.LocationOffset(x.Location)
		message, syntax := strings.CutPrefix(x.Message, "Syntax error: ")
		if syntax {
			return append(out, finding{int(offset), "syntax error: " + message, ""})
		}
		out = append(out, withHint(finding{offset: int(offset), message: message}))
	}
	return out
}

// withHint takes cel-go's own suggestion out of the message, or says what cel-go does not.
func withHint(f finding) finding {
	if message, own, ok := strings.Cut(f.message, " (did you mean '"); ok {
		name, _, _ := strings.Cut(own, "'")
		return finding{f.offset, message, "did you mean " + name + "?"}
	}
	f.hint = hint(f.message)
	return f
}

func hint(message string) string {
	switch {
	case strings.Contains(message, "undeclared reference"):
		return "declare it in the attributes: block, as in x: double"
	case strings.Contains(message, "no matching overload for '_-_'"):
		return `a name with dashes is written headers["user-agent"]`
	case strings.Contains(message, "(double, int)"), strings.Contains(message, "(int, double)"):
		return "compare a double with a double: write 1.0, not 1"
	}
	return ""
}

// reads are the attributes that an expression names.
type reads struct {
	names []string
	// whole are the namespaces of which any value may be read.
	whole [noRoot]bool
}

func (r *reads) add(o reads) {
	for _, n := range o.names {
		if !slices.Contains(r.names, n) {
			r.names = append(r.names, n)
		}
	}
	for i := range r.whole {
		r.whole[i] = r.whole[i] || o.whole[i]
	}
}

func (r *reads) has(name string) bool {
	ns, _ := split(name)
	return ns != noRoot && r.whole[ns] || slices.Contains(r.names, name)
}

// open reports whether some attribute may be read that names does not list.
func (r *reads) open() bool { return slices.Contains(r.whole[:], true) }

func (e *environment) readsOf(a *ast.AST) reads {
	var out reads
	for _, x := range ast.MatchDescendants(ast.NavigateAST(a), ast.AllMatcher()) {
		if x.Kind() != ast.IdentKind && x.Kind() != ast.SelectKind {
			continue
		}
		name := ""
		if ref, ok := a.ReferenceMap()[x.ID()]; ok {
			name = ref.Name
		}
		if _, ok := e.names.variables[name]; ok {
			out.add(reads{names: []string{name}})
		}
		if i := slices.Index(rootNames[:], name); i >= 0 && x.Kind() == ast.IdentKind {
			out.add(below(x, root(i)))
		}
	}
	return out
}

// below says what of a namespace is read where it stands: one key of it that is written
// out, or any.
func below(x ast.NavigableExpr, r root) reads {
	if p, ok := x.Parent(); ok {
		if key, ok := keyOf(p, x.ID()); ok {
			return reads{names: []string{rootNames[r] + "." + key}}
		}
	}
	var out reads
	out.whole[r] = true
	return out
}

// keyOf reads ns.key, has(ns.key), ns["key"] and "key" in ns.
func keyOf(p ast.NavigableExpr, id int64) (string, bool) {
	switch p.Kind() {
	case ast.SelectKind:
		return p.AsSelect().FieldName(), true
	case ast.CallKind:
		args := p.AsCall().Args()
		if len(args) != 2 {
			return "", false
		}
		var key ast.Expr
		switch f := p.AsCall().FunctionName(); {
		case (f == operators.Index || f == operators.OptIndex) && args[0].ID() == id:
			key = args[1]
		case f == operators.In && args[1].ID() == id:
			key = args[0]
		default:
			return "", false
		}
		if key.Kind() != ast.LiteralKind {
			return "", false
		}
		s, ok := key.AsLiteral().(types.String)
		return string(s), ok
	}
	return "", false
}
