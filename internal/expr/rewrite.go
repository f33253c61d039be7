package expr

import (
	"fmt"
	"regexp/syntax"
	"unicode"

	"cel.dev/cel-go/common"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
)

// Names of the functions that references are rewritten to. The @ keeps them out of
// reach of an expression's text.
const (
	fnBool    = "@bool"
	fnInt     = "@int"
	fnDouble  = "@double"
	fnString  = "@string"
	fnDyn     = "@dyn"
	fnHas     = "@has"
	fnPresent = "@present"
	varRow    = "@row"
)

// finding is a problem inside an expression's text.
type finding struct {
	offset  int
	message string
	hint    string
}

// rewriter replaces references to attributes, in place, by typed reads of a slot, and
// collects what is wrong with them.
type rewriter struct {
	scope    *Scope
	text     []rune
	fac      celast.ExprFactory
	info     *celast.SourceInfo
	nextID   int64
	locals   map[string]int // comprehension variables in scope
	reads    map[int]Attr   // by slot
	first    map[int]int    // where each is first named, by slot
	findings []finding
}

func newRewriter(scope *Scope, text string, ast *celast.AST) *rewriter {
	return &rewriter{
		scope: scope, text: []rune(text), fac: celast.NewExprFactory(), info: ast.SourceInfo(), nextID: celast.MaxID(ast),
		locals: map[string]int{}, reads: map[int]Attr{}, first: map[int]int{},
	}
}

func (w *rewriter) offset(id int64) int {
	r, _ := w.info.GetOffsetRange(id)
	return int(r.Start)
}

func (w *rewriter) report(id int64, hint, format string, args ...any) {
	w.findings = append(w.findings, finding{w.offset(id), fmt.Sprintf(format, args...), hint})
}

// walk visits an expression.
func (w *rewriter) walk(e celast.Expr) {
	if root, name, ok := w.chain(e); ok {
		w.reference(e, root, name, false)
		return
	}
	switch e.Kind() {
	case celast.SelectKind:
		w.walk(e.AsSelect().Operand())
	case celast.CallKind:
		w.call(e)
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			w.walk(x)
		}
	case celast.MapKind:
		for _, x := range e.AsMap().Entries() {
			w.walk(x.AsMapEntry().Key())
			w.walk(x.AsMapEntry().Value())
		}
	case celast.StructKind:
		w.report(e.ID(), "compare attributes with literals", "messages are not supported")
	case celast.ComprehensionKind:
		w.comprehension(e.AsComprehension())
	}
}

// chain reads a path of names, a.b["c"], down to the identifier that it starts with.
func (w *rewriter) chain(e celast.Expr) (root celast.Expr, name string, ok bool) {
	switch e.Kind() {
	case celast.IdentKind:
		id := e.AsIdent()
		return e, id, w.locals[id] == 0
	case celast.SelectKind:
		s := e.AsSelect()
		if root, name, ok = w.chain(s.Operand()); ok {
			return root, name + "." + s.FieldName(), true
		}
	case celast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index || len(c.Args()) != 2 {
			break
		}
		key, text := literalString(c.Args()[1])
		if root, name, ok = w.chain(c.Args()[0]); ok && text {
			return root, name + "." + key, true
		}
	}
	return nil, "", false
}

func literalString(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// reference rewrites e, which names an attribute, into a read or a presence test.
func (w *rewriter) reference(e, root celast.Expr, name string, test bool) {
	a, err := w.scope.Use(name)
	if err != nil {
		if typeName(name) {
			return // int and the like are values in CEL: type(x) == int
		}
		hint := ""
		if u, ok := err.(*UnknownError); ok {
			hint = u.Hint
		}
		w.report(root.ID(), hint, "%v", err)
		return
	}
	fn := fnHas
	if !test {
		fn = readFunction(a)
	}
	w.reads[a.Slot] = a
	if at, seen := w.first[a.Slot]; !seen || w.offset(root.ID()) < at {
		w.first[a.Slot] = w.offset(root.ID())
	}
	at, _ := w.info.GetOffsetRange(root.ID())
	id := func() int64 {
		w.nextID++
		w.info.SetOffsetRange(w.nextID, at)
		return w.nextID
	}
	call := w.fac.NewCall(e.ID(), fn, w.fac.NewIdent(id(), varRow), w.fac.NewLiteral(id(), types.Int(a.Slot)))
	w.info.SetOffsetRange(e.ID(), at)
	e.SetKindCase(call)
}

func readFunction(a Attr) string {
	return [...]string{fnDyn, fnBool, fnInt, fnDouble, fnString}[a.Type]
}

func typeName(s string) bool {
	switch s {
	case "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type":
		return true
	}
	return false
}

func (w *rewriter) call(e celast.Expr) {
	c := e.AsCall()
	switch c.FunctionName() {
	case fnPresent:
		arg := c.Args()[0]
		if root, name, ok := w.chain(arg); ok {
			w.reference(e, root, name, true)
			return
		}
		w.report(leading(arg).ID(), `as in has(headers["x-a"])`, "has() takes the name of an attribute")
		return
	case operators.Subtract:
		if w.dashedName(e) {
			return
		}
	case overloads.Matches:
		w.pattern(c)
	}
	if c.IsMemberFunction() {
		w.walk(c.Target())
	}
	for _, x := range c.Args() {
		w.walk(x)
	}
}

// dashedName finds a name with dashes that was written as if CEL allowed it:
// headers.user-agent is headers.user minus agent. With blanks around it a minus is meant
// as one.
func (w *rewriter) dashedName(e celast.Expr) bool {
	tail, resolves := "", true
	for e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.Subtract {
		if w.spaced(e) {
			return false
		}
		args := e.AsCall().Args()
		lead := leading(args[1])
		if lead.Kind() != celast.IdentKind {
			return false
		}
		tail = "-" + lead.AsIdent() + tail
		resolves = resolves && w.numeric(args[1])
		e = args[0]
	}
	root, name, ok := w.chain(e)
	if !ok || e.Kind() != celast.SelectKind || !attribute.OpenRoot(root.AsIdent()) || resolves && w.numeric(e) {
		return false
	}
	key := name[len(root.AsIdent())+1:] + tail
	w.report(root.ID(), fmt.Sprintf("write %s[%q]", root.AsIdent(), key), "%s%s is a subtraction", name, tail)
	return true
}

// spaced reports whether the operator of a call stands beside a blank.
func (w *rewriter) spaced(e celast.Expr) bool {
	at := w.offset(e.ID())
	blank := func(i int) bool { return i >= 0 && i < len(w.text) && unicode.IsSpace(w.text[i]) }
	return blank(at-1) || blank(at+1)
}

// leading returns the expression that e starts with: a in a.b.contains(c).
func leading(e celast.Expr) celast.Expr {
	for {
		switch {
		case e.Kind() == celast.SelectKind:
			e = e.AsSelect().Operand()
		case e.Kind() == celast.CallKind && e.AsCall().IsMemberFunction():
			e = e.AsCall().Target()
		case e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.Index:
			e = e.AsCall().Args()[0]
		default:
			return e
		}
	}
}

// numeric reports whether an expression names an attribute that may be a number.
func (w *rewriter) numeric(e celast.Expr) bool {
	_, name, ok := w.chain(e)
	if !ok {
		return false
	}
	_, t, known := w.scope.Lookup(name)
	return known && t != decision.String && t != decision.Bool
}

// pattern checks a regular expression: it must be written out, so that its size is
// bounded at load and nobody's request can choose it.
func (w *rewriter) pattern(c celast.CallExpr) {
	arg := c.Args()[len(c.Args())-1]
	text, ok := literalString(arg)
	if !ok {
		w.report(leading(arg).ID(), "write the pattern out", "the pattern of matches() must be a literal text")
		return
	}
	if err := CheckPattern(text); err != nil {
		w.report(arg.ID(), "patterns are RE2", "%v", err)
	}
}

// MaxPatternProgram bounds the compiled size of a regular expression, in instructions.
const MaxPatternProgram = 2000

// CheckPattern returns an error for a regular expression (RE2 syntax) that is malformed
// or too large.
func CheckPattern(text string) error {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("malformed pattern: %w", err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return fmt.Errorf("malformed pattern: %w", err)
	}
	if len(prog.Inst) > MaxPatternProgram {
		return fmt.Errorf("pattern compiles to %d instructions, the limit is %d", len(prog.Inst), MaxPatternProgram)
	}
	return nil
}

func (w *rewriter) comprehension(c celast.ComprehensionExpr) {
	w.walk(c.IterRange())
	w.walk(c.AccuInit())
	names := []string{c.AccuVar(), c.IterVar()}
	if c.HasIterVar2() {
		names = append(names, c.IterVar2())
	}
	for _, n := range names {
		w.locals[n]++
	}
	w.walk(c.LoopCondition())
	w.walk(c.LoopStep())
	w.walk(c.Result())
	for _, n := range names {
		w.locals[n]--
	}
}

// errorOffset returns the offset of a cel-go error in runes.
func errorOffset(src common.Source, err *common.Error) int {
	lines := src.LineOffsets()
	line := err.Location.Line()
	if line < 1 || line-1 > len(lines) {
		return 0
	}
	start := 0
	if line > 1 {
		start = int(lines[line-2])
	}
	return start + max(0, err.Location.Column())
}
