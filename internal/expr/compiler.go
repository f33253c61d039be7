package expr

import (
	"fmt"
	"sort"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/parser"

	"github.com/clefbench/clefbench/internal/document"
)

// Limits on one condition. Cost is cel-go's static estimate for the worst input, with
// texts of up to MaxText bytes: it is bounded at load, because watching it at run time
// makes evaluation three to four times dearer.
const (
	MaxExpression = 8192 // code points
	MaxNesting    = 60
	MaxNodes      = 5000
	MaxCost       = 200_000
	MaxText       = 8192
)

// Compiler turns the conditions of one file into programs. It is not safe for
// concurrent use; the programs are.
type Compiler struct {
	scope *Scope
	data  []byte
	env   *cel.Env
}

// NewCompiler returns a compiler over a scope; data is the file's raw text, for exact
// positions.
func NewCompiler(scope *Scope, data []byte) (*Compiler, error) {
	macros := append([]cel.Macro{hasMacro()}, withoutHas(cel.StandardMacros)...)
	opts := append([]cel.EnvOption{
		cel.ClearMacros(),
		cel.Macros(macros...),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ParserRecursionLimit(MaxNesting),
		cel.ExpressionNodeLimit(MaxNodes),
	}, rowOptions(scope)...)
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return &Compiler{scope: scope, data: data, env: env}, nil
}

func withoutHas(macros []cel.Macro) []cel.Macro {
	var out []cel.Macro
	for _, m := range macros {
		if m.Function() != "has" {
			out = append(out, m)
		}
	}
	return out
}

// hasMacro is CEL's has(), which also takes a plain name and an index: attributes are
// flat, so has(score) and has(headers["user-agent"]) mean what they say.
func hasMacro() cel.Macro {
	return parser.NewGlobalMacro("has", 1, func(eh parser.ExprHelper, _ celast.Expr, args []celast.Expr) (celast.Expr, *common.Error) {
		return eh.NewCall(fnPresent, args[0]), nil
	})
}

// Bool compiles a condition. What is wrong goes to the file of n, and the result is nil.
func (c *Compiler) Bool(n *document.Node) *Program {
	text, ok := n.Text()
	if !ok {
		return nil
	}
	p, findings := c.compile(text)
	for _, f := range findings {
		n.File().Errorf(locate(c.data, n, text, f.offset), f.hint, "%s", f.message)
	}
	return p
}

// compile is Bool without a file.
func (c *Compiler) compile(text string) (*Program, []finding) {
	if strings.TrimSpace(text) == "" {
		return nil, []finding{{message: "the condition is empty", hint: "write true for a rule that always holds"}}
	}
	src := common.NewTextSource(text)
	parsed, iss := c.env.ParseSource(src)
	if iss.Err() != nil {
		return nil, c.findings(src, text, iss)
	}
	w := newRewriter(c.scope, parsed.NativeRep())
	w.walk(parsed.NativeRep().Expr())
	if len(w.findings) > 0 {
		return nil, w.findings
	}
	checked, iss := c.env.Check(parsed)
	if iss.Err() != nil {
		return nil, c.findings(src, text, iss)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && t.Kind() != cel.DynKind {
		return nil, []finding{{message: fmt.Sprintf("the condition gives %s, not true or false", t), hint: "compare it with something"}}
	}
	if f := c.tooDear(checked); f != nil {
		return nil, []finding{*f}
	}
	return c.program(checked, w.reads)
}

func (c *Compiler) tooDear(checked *cel.Ast) *finding {
	est, err := c.env.EstimateCost(checked, sizes{})
	if err != nil {
		return &finding{message: fmt.Sprintf("cannot bound the cost: %v", err)}
	}
	if est.Max > MaxCost {
		return &finding{message: fmt.Sprintf("the condition may cost %d steps, the limit is %d", est.Max, uint64(MaxCost)), hint: "avoid nested loops"}
	}
	return nil
}

func (c *Compiler) program(checked *cel.Ast, reads map[int]Attr) (*Program, []finding) {
	prog, err := c.env.Program(checked)
	if err != nil {
		return nil, []finding{{message: fmt.Sprintf("plan: %v", err)}}
	}
	p := &Program{cel: prog}
	for _, a := range reads {
		p.reads = append(p.reads, a)
	}
	sort.Slice(p.reads, func(i, j int) bool { return p.reads[i].Slot < p.reads[j].Slot })
	l := &lowerer{ast: checked.NativeRep(), scope: c.scope}
	if low, ok := l.lower(checked.NativeRep().Expr()); ok {
		p.eval = low.truth()
		p.always = low.lit != nil && low.lit.Bool()
	}
	return p, nil
}

// findings converts cel-go's issues. Only the first syntax error is kept: what a parser
// says after it has lost its way misleads.
func (c *Compiler) findings(src common.Source, text string, iss *cel.Issues) []finding {
	var out []finding
	for _, e := range iss.Errors() {
		message, syntax := strings.CutPrefix(e.Message, "Syntax error: ")
		if syntax {
			message = "syntax error: " + message
		}
		out = append(out, finding{errorOffset(src, e), message, hintFor(text, message)})
		if syntax {
			break
		}
	}
	return out
}

// hintFor knows the mistakes that CEL's own message does not explain.
func hintFor(text, message string) string {
	switch {
	case strings.Contains(message, "syntax error") && singleEquals(text):
		return "compare with =="
	case strings.Contains(message, "no matching overload") && numbersMixed(message):
		return "compare a double with a double: write 1.0, not 1"
	case strings.Contains(message, "no matching overload for '_-_'"):
		return `a name with dashes is written headers["user-agent"]`
	}
	return ""
}

func numbersMixed(message string) bool {
	return strings.Contains(message, "(double, int)") || strings.Contains(message, "(int, double)") ||
		strings.Contains(message, "(double, list(int))")
}

func singleEquals(text string) bool {
	for _, two := range []string{"==", "!=", "<=", ">="} {
		text = strings.ReplaceAll(text, two, "")
	}
	return strings.Contains(text, "=")
}

// sizes tells the cost estimator how long a text may be.
type sizes struct{}

func (sizes) EstimateCallCost(function, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	if !strings.HasPrefix(function, "@") || function == "@in" || function == "@not_strictly_false" {
		return nil
	}
	return &cost.CallEstimate{
		CostEstimate: cost.FixedCostEstimate(1),
		ResultSize:   &cost.SizeEstimate{Min: 0, Max: MaxText},
	}
}

func (sizes) EstimateSize(cost.AstNode) *cost.SizeEstimate { return nil }
