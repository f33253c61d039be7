package rules

import (
	"regexp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

// maxRules bounds a file.
const maxRules = 100_000

// rule is one compiled rule.
type rule struct {
	id         string
	pos        decision.Position
	conditions []condition
	action     *expr.Action
	fallback   *expr.Action
}

// file is a compiled rules file.
type file struct {
	version   string
	scenarios []string
	rules     []rule
	fallback  *expr.Action
	scope     *expr.Scope
}

// reader walks a file and adds to its problems.
type reader struct {
	doc  *document.File
	data []byte
	out  *file
	// strict also refuses what is harmless in a decision but surely a mistake.
	strict bool
}

// read compiles the file as far as possible; what is wrong is in the problems.
func read(name string, data []byte, schema *decision.Schema, strict bool) (*file, document.Problems) {
	doc, root, err := document.Parse(name, data)
	if err != nil {
		return nil, doc.Problems
	}
	r := &reader{doc: doc, data: data, out: &file{scope: expr.NewScope(schema)}, strict: strict}
	if m := root.Map("version", "description", "scenarios", "attributes", "rules", "fallback"); root.IsMap() {
		r.file(m)
	}
	doc.Problems.Sort()
	return r.out, doc.Problems
}

func (r *reader) file(m *document.Map) {
	if v := m.Need("version"); v != nil {
		r.out.version, _ = v.Text()
	}
	if d := m.Get("description"); d != nil {
		d.Text()
	}
	if s := m.Get("scenarios"); s != nil {
		r.out.scenarios = s.SomeTexts("leave the field out to decide any scenario")
	}
	if a := m.Get("attributes"); a != nil {
		r.out.scope.Declare(a)
		if r.strict {
			r.out.scope.CheckDeclared(a)
		}
	}
	if list := m.Need("rules"); list != nil {
		r.rules(list.List())
	}
	if f := m.Get("fallback"); f != nil {
		r.out.fallback = r.action(f, true)
	} else {
		r.doc.Warnf(decision.Position{File: r.doc.Name, Line: 1, Column: 1},
			"add a fallback action, if there is a safe one", "no fallback: what no rule matches is answered with abstain")
	}
}

func (r *reader) action(n *document.Node, fixed bool) *expr.Action {
	return expr.ReadAction(n, nil, r.out.scope, expr.ActionOptions{Data: r.data, Fixed: fixed})
}

func (r *reader) rules(nodes []*document.Node) {
	if len(nodes) > maxRules {
		nodes[maxRules].Errorf("", "the file has %d rules, the limit is %d", len(nodes), maxRules)
		return
	}
	seen := map[string]int{}
	for _, n := range nodes {
		r.rule(n, seen)
	}
	r.unreachable()
}

func (r *reader) rule(n *document.Node, seen map[string]int) {
	m := n.Map("id", "description", "conditions", "action", "fallback")
	if !n.IsMap() {
		return
	}
	out := rule{pos: n.Pos()}
	if id := m.Need("id"); id != nil {
		out.id, _ = id.Text()
		if line, dup := seen[out.id]; dup {
			id.Errorf("give each rule an id of its own", "rule id %q stands twice (first in line %d)", out.id, line)
		}
		seen[out.id] = id.Pos().Line
	}
	if d := m.Get("description"); d != nil {
		d.Text()
	}
	if list := m.Need("conditions"); list != nil {
		for _, c := range list.List() {
			out.conditions = append(out.conditions, r.condition(c))
		}
	}
	if a := m.Need("action"); a != nil {
		out.action = r.action(a, false)
	}
	if f := m.Get("fallback"); f != nil {
		out.fallback = r.action(f, true)
		r.uselessFallback(f, out.action)
	}
	r.out.rules = append(r.out.rules, out)
}

func (r *reader) uselessFallback(n *document.Node, a *expr.Action) {
	if a != nil && !a.Templated() {
		r.doc.Warnf(n.Pos(), "remove it", "this fallback is never used: the rule's action has no template that can fail")
	}
}

// condition reads one condition; one that is wrong is in the problems, and what is
// returned then is not used.
func (r *reader) condition(n *document.Node) condition {
	m := n.Map("field", "operator", "value")
	var c condition
	field := m.Need("field")
	known := field != nil && r.field(field, &c)
	op := m.Need("operator")
	if op == nil || !r.operator(op, &c) || !known {
		return c
	}
	value := m.Get("value")
	switch {
	case c.op == opExists && value == nil:
		c.value = decision.BoolValue(true)
	case value == nil:
		m.Need("value")
	case c.op == opIn:
		r.list(value, &c)
	default:
		if v, ok := value.Value(); ok {
			r.value(value, v, &c)
		}
	}
	return c
}

func (r *reader) field(n *document.Node, c *condition) bool {
	name, ok := n.Text()
	if !ok {
		return false
	}
	a, err := r.out.scope.Use(name)
	if err != nil {
		n.Errorf(expr.HintOf(err), "%v", err)
		return false
	}
	r.out.scope.WarnUnrecorded(r.doc, n.Pos(), a)
	c.attr = a
	return true
}

func (r *reader) operator(n *document.Node, c *condition) bool {
	name, ok := n.Text()
	if !ok {
		return false
	}
	for i, o := range operators() {
		if o == name {
			c.op = operator(i)
			return true
		}
	}
	n.Errorf(expr.Suggest(operatorAlias(name), operators()), "unknown operator %q", document.Short(name))
	return false
}

// operatorAlias maps what people write in other languages to ours, for the hint.
func operatorAlias(name string) string {
	switch name {
	case "==", "=", "equals", "is":
		return "eq"
	case "!=", "<>", "not_equals":
		return "ne"
	case ">", "greater_than":
		return "gt"
	case ">=", "gte":
		return "ge"
	case "<", "less_than":
		return "lt"
	case "<=", "lte":
		return "le"
	case "starts_with", "startsWith":
		return "prefix"
	case "ends_with", "endsWith":
		return "suffix"
	case "regex", "regexp", "=~":
		return "matches"
	}
	return name
}

// value checks the right-hand side against the operator and the field's type.
func (r *reader) value(n *document.Node, v decision.Value, c *condition) {
	c.value = v
	switch c.op {
	case opExists:
		if v.Type() != decision.Bool {
			n.Errorf("write true or false, or leave it out", "value of exists must be true or false, got %v", v.Type())
		}
	case opContains, opPrefix, opSuffix, opMatches:
		r.textValue(n, c)
	case opGt, opGe, opLt, opLe:
		r.number(n, c)
	default:
		c.value = r.comparable(n, v, c.attr)
	}
}

func (r *reader) textValue(n *document.Node, c *condition) {
	if t := c.attr.Type; t != decision.String && t != decision.Null {
		n.Errorf("compare it with eq, gt, ...", "%s needs a text, but %s is %v", operators()[c.op], c.attr.Name, t)
		return
	}
	if c.value.Type() != decision.String {
		n.Errorf("quote it", "value of %s must be text, got %v", operators()[c.op], c.value.Type())
		return
	}
	if c.op != opMatches {
		return
	}
	if err := expr.CheckPattern(c.value.Str()); err != nil {
		n.Errorf("patterns are RE2", "%v", err)
		return
	}
	re, err := regexp.Compile(c.value.Str())
	if err != nil {
		n.Errorf("patterns are RE2", "%v", err)
		return
	}
	c.re = re
}

func (r *reader) number(n *document.Node, c *condition) {
	if t := c.attr.Type; t == decision.String || t == decision.Bool {
		n.Errorf("texts compare with eq, prefix, in, ...", "%s needs a number, but %s is %v", operators()[c.op], c.attr.Name, t)
		return
	}
	if _, ok := c.value.Number(); !ok {
		n.Errorf("", "value of %s must be a number, got %v", operators()[c.op], c.value.Type())
	}
}

// comparable checks that a value can equal the attribute at all.
func (r *reader) comparable(n *document.Node, v decision.Value, a expr.Attr) decision.Value {
	if a.Type == decision.Null {
		return v
	}
	w, ok := v.Convert(a.Type)
	if !ok {
		hint := ""
		switch {
		case a.Type == decision.String:
			hint = "quote it"
		case v.Type() == decision.String:
			hint = "write it without quotes"
		}
		n.Errorf(hint, "%s is %v, the value %s is %v: they are never equal", a.Name, a.Type, document.Short(v.String()), v.Type())
	}
	return w
}

func (r *reader) list(n *document.Node, c *condition) {
	nodes := n.List()
	if n.IsList() && len(nodes) == 0 {
		n.Errorf("", "the list of in is empty: the condition never holds")
	}
	texts := true
	for _, e := range nodes {
		v, ok := e.Value()
		if !ok {
			continue
		}
		v = r.comparable(e, v, c.attr)
		texts = texts && v.Type() == decision.String
		c.list = append(c.list, v)
	}
	if texts {
		c.set = make(map[string]bool, len(c.list))
		for _, v := range c.list {
			c.set[v.Str()] = true
		}
	}
}
