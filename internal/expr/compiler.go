package expr

import (
	"cmp"
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
	p := compileNode(c, n, c.compile)
	if p != nil {
		c.warnUnrecorded(n, &p.reading)
	}
	return p
}

// Number compiles an expression that gives a number, as Bool does a condition.
func (c *Compiler) Number(n *document.Node) *Calculation {
	p := compileNode(c, n, c.number)
	if p != nil {
		c.warnUnrecorded(n, &p.reading)
	}
	return p
}

// compileNode compiles the text of a node and reports what is wrong at its place in the file.
func compileNode[T any](c *Compiler, n *document.Node, compile func(string) (*T, []finding)) *T {
	text, ok := n.Text()
	if !ok {
		return nil
	}
	if comment := n.TrailingComment(); comment != "" {
		n.File().Warnf(n.Pos(), "quote the expression", "the rest of the line is a comment: %q", document.Short(comment))
	}
	p, findings := compile(text)
	for _, f := range findings {
		n.File().Errorf(document.Locate(c.data, n, text, f.offset), f.hint, "%s", f.message)
	}
	return p
}

func (c *Compiler) warnUnrecorded(n *document.Node, r *reading) {
	text, _ := n.Text()
	for i, a := range r.reads {
		c.scope.WarnUnrecorded(n.File(), document.Locate(c.data, n, text, r.offsets[i]), a)
	}
}

// compile is Bool without a file.
func (c *Compiler) compile(text string) (*Program, []finding) {
	checked, r, findings := c.check(text)
	if len(findings) > 0 {
		return nil, findings
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && t.Kind() != cel.DynKind {
		return nil, []finding{{message: fmt.Sprintf("the condition gives %s, not true or false", t), hint: "compare it with something"}}
	}
	p := &Program{reading: *r}
	if low, ok := c.lower(checked); ok {
		p.eval = low.truth()
		p.necessary = c.lowerer(checked).necessary(checked.NativeRep().Expr(), nil)
		p.always = low.lit != nil && low.lit.Bool()
	}
	return p, nil
}

// number is Number without a file.
func (c *Compiler) number(text string) (*Calculation, []finding) {
	checked, r, findings := c.check(text)
	if len(findings) > 0 {
		return nil, findings
	}
	switch t := checked.OutputType(); {
	case !t.IsExactType(cel.IntType) && !t.IsExactType(cel.DoubleType) && t.Kind() != cel.DynKind:
		return nil, []finding{{message: fmt.Sprintf("the expression gives %s, not a number", t), hint: "conditions compare numbers: write the comparison as operator and value"}}
	case len(r.reads) == 0:
		return nil, []finding{{message: "the expression reads no attribute", hint: "write the number as the value of a comparison"}}
	}
	p := &Calculation{reading: *r}
	if low, ok := c.lower(checked); ok {
		p.eval = low.value()
	}
	return p, nil
}

func (c *Compiler) lowerer(checked *cel.Ast) *lowerer {
	return &lowerer{ast: checked.NativeRep(), scope: c.scope}
}

func (c *Compiler) lower(checked *cel.Ast) (code, bool) {
	return c.lowerer(checked).lower(checked.NativeRep().Expr())
}

// check parses, type-checks and plans an expression.
func (c *Compiler) check(text string) (*cel.Ast, *reading, []finding) {
	if strings.TrimSpace(text) == "" {
		return nil, nil, []finding{{message: "the condition is empty", hint: "write true for a rule that always holds"}}
	}
	src := common.NewTextSource(text)
	parsed, iss := c.env.ParseSource(src)
	if iss.Err() != nil {
		return nil, nil, c.findings(src, text, iss)
	}
	w := newRewriter(c.scope, text, parsed.NativeRep())
	w.walk(parsed.NativeRep().Expr())
	if len(w.findings) > 0 {
		return nil, nil, w.findings
	}
	checked, iss := c.env.Check(parsed)
	if iss.Err() != nil {
		return nil, nil, c.findings(src, text, iss)
	}
	if f := c.tooDear(checked); f != nil {
		return nil, nil, []finding{*f}
	}
	prog, err := c.env.Program(checked)
	if err != nil {
		return nil, nil, []finding{{message: fmt.Sprintf("plan: %v", err)}}
	}
	return checked, w.reading(prog), nil
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

// reading is what the rewriter found, with the plan of the program.
func (w *rewriter) reading(prog cel.Program) *reading {
	r := &reading{cel: prog}
	for _, a := range w.reads {
		r.reads = append(r.reads, a)
	}
	sort.Slice(r.reads, func(i, j int) bool { return r.reads[i].Slot < r.reads[j].Slot })
	for _, a := range r.reads {
		r.offsets = append(r.offsets, w.first[a.Slot])
	}
	return r
}

// findings converts cel-go's issues. Only the first syntax error is kept: what a parser
// says after it has lost its way misleads.
func (c *Compiler) findings(src common.Source, text string, iss *cel.Issues) []finding {
	var out []finding
	for _, e := range iss.Errors() {
		offset := errorOffset(src, e)
		message, syntax := strings.CutPrefix(e.Message, "Syntax error: ")
		hint := ""
		if syntax {
			message, hint = plainSyntax(message, before(text, offset))
		}
		if before, after, found := strings.Cut(message, " (did you mean '"); found {
			message, hint = before, "did you mean "+strings.TrimSuffix(after, "'?)")+"?"
		}
		out = append(out, finding{offset, message, cmp.Or(hint, hintFor(text, message))})
		if syntax {
			break
		}
	}
	return out
}

// before returns the first n code points of a text.
func before(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// plainSyntax puts a message of the parser (ANTLR's words) into plain ones: its lists of
// thirteen possible tokens help nobody. lead is the expression up to the place.
func plainSyntax(message, lead string) (plain, hint string) {
	_, rest, _ := strings.Cut(message, "'")
	token, want := rest, ""
	if i := strings.LastIndex(rest, "' expecting "); i >= 0 {
		token, want = rest[:i], rest[i+len("' expecting "):]
	} else {
		token = strings.TrimSuffix(rest, "'")
	}
	switch {
	case strings.HasPrefix(message, "missing "):
		missing, at, _ := strings.Cut(strings.TrimPrefix(message, "missing "), " at ")
		if at == "'<EOF>'" {
			return "syntax error: the expression ends too early: " + missing + " is missing", "close what is open"
		}
		return "syntax error: " + missing + " is missing", "check the brackets and quotes before this place"
	case token == "<EOF>":
		return "syntax error: the expression ends too early", "the right-hand side of the last operator is missing"
	case strings.HasPrefix(message, "token recognition"):
		return badToken(strings.TrimSpace(token))
	}
	words := strings.Fields(lead)
	if hint = wordOperator(token); hint == "" && len(words) > 0 {
		hint = wordOperator(words[len(words)-1])
	}
	plain = fmt.Sprintf("syntax error: unexpected %q", document.Short(token))
	if hint == "" && strings.Contains(lead+token, "{{") {
		hint = "write the name alone: {{ }} is for actions"
	}
	if want != "" && want != "<EOF>" && !strings.HasPrefix(want, "{") {
		plain += ", want " + want
	}
	return plain, hint
}

// badToken says what is wrong with text that is no token at all.
func badToken(token string) (plain, hint string) {
	switch {
	case strings.HasPrefix(token, `"`) || strings.HasPrefix(token, "'"):
		if strings.Contains(token, `\`) {
			return "syntax error: unknown escape in a text", `write \\ for a backslash`
		}
		return "syntax error: a text is not closed on its line", "close the quote"
	case strings.HasPrefix(token, "&"):
		hint = "write && for and"
	case strings.HasPrefix(token, "|"):
		hint = "write || for or"
	case strings.ContainsAny(token, "\u201c\u201d\u2018\u2019"):
		hint = "write straight quotes"
	}
	return fmt.Sprintf("syntax error: unexpected %q", document.Short(token)), hint
}

// wordOperator translates the operators of other languages that are words.
func wordOperator(word string) string {
	switch strings.ToLower(word) {
	case "and":
		return "write && for and"
	case "or":
		return "write || for or"
	case "not":
		return "write ! for not"
	}
	return ""
}

// hintFor knows the mistakes that CEL's own message does not explain.
func hintFor(text, message string) string {
	switch {
	case strings.Contains(message, "syntax error") && singleEquals(text):
		return "compare with =="
	case strings.Contains(message, "no matching overload") && numbersMixed(message):
		return "compare a double with a double: write 1.0, not 1"
	case strings.Contains(message, "no matching overload for '_-_'") && dashed(text):
		return `a name with dashes is written headers["user-agent"]`
	case strings.Contains(message, "no matching overload"):
		return "the types do not go together: declare another type in attributes:, or convert one side"
	case strings.Contains(message, "undeclared reference"):
		return "functions are contains, startsWith, endsWith, matches, size, has and confidence, and those of CEL"
	case strings.Contains(message, "syntax error"):
		return "is an operator, a quote or a bracket missing before this place?"
	}
	return ""
}

// dashed reports whether some minus stands without blanks, as in a name.
func dashed(text string) bool {
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "-")
		if !found {
			return false
		}
		if before != "" && after != "" && !strings.HasSuffix(before, " ") && !strings.HasPrefix(after, " ") {
			return true
		}
		rest = after
	}
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
