package rules

import (
	"regexp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

// conditions reads a list of conditions.
func (r *reader) conditions(list *document.Node) []node {
	var out []node
	for _, c := range list.List() {
		out = append(out, r.node(c))
	}
	return out
}

// node reads a condition, or a map of all, any or not. The file's nesting is bounded by
// document.MaxDepth.
func (r *reader) node(n *document.Node) node {
	out := node{pos: n.Pos()}
	if !n.IsMap() {
		n.Errorf("write {field: ..., operator: ..., value: ...}, or all, any or not", "%s must be a condition", n.Path())
		return out.failed()
	}
	m := n.Map()
	for _, f := range []struct {
		key  string
		form form
	}{{"all", formAll}, {"any", formAny}, {"not", formNot}} {
		kid := m.Get(f.key)
		if kid == nil {
			continue
		}
		n.Map(f.key)
		out.form = f.form
		if f.form == formNot {
			out.kids = []node{r.node(kid)}
			return out
		}
		if out.kids = r.conditions(kid); kid.IsList() && len(out.kids) == 0 {
			kid.Errorf("add a condition, or remove it", "%s has no conditions", kid.Path())
		}
		return out
	}
	c := r.condition(n)
	out.leaf = &c
	return out
}

// failed makes a node that is never evaluated safe to walk.
func (n node) failed() node {
	n.form, n.kids = formAll, nil
	return n
}

// condition reads one condition; one that is wrong is in the problems, and what is
// returned then is not used.
func (r *reader) condition(n *document.Node) condition {
	m := n.Map("field", "compute", "operator", "value")
	var c condition
	known := r.left(n, m, &c)
	op := m.Need("operator")
	if op == nil || !r.operator(op, &c) || !known {
		return c
	}
	value := m.Get("value")
	switch {
	case c.calc != nil && (c.op == opExists || c.op.textual()):
		op.Errorf("compare it with a number", "%s has no meaning for a computed number", operators()[c.op])
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

// left reads the left-hand side: an attribute, or a number computed from several.
func (r *reader) left(n *document.Node, m *document.Map, c *condition) bool {
	field, compute := m.Get("field"), m.Get("compute")
	switch {
	case field != nil && compute != nil:
		n.Errorf("keep one of them", "a condition has field or compute, not both")
		return false
	case field != nil:
		return r.field(field, c)
	case compute != nil:
		return r.compute(compute, c)
	}
	m.Need("field")
	return false
}

func (r *reader) compute(n *document.Node, c *condition) bool {
	if r.cel == nil {
		var err error
		if r.cel, err = expr.NewCompiler(r.out.scope, r.data); err != nil {
			n.Errorf("", "%v", err)
			return false
		}
	}
	if c.calc = r.cel.Number(n); c.calc == nil {
		return false
	}
	c.left, _ = n.Text()
	return true
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
		c.value = r.comparable(n, v, c)
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
	if t := c.attr.Type; c.calc == nil && (t == decision.String || t == decision.Bool) {
		n.Errorf("texts compare with eq, prefix, in, ...", "%s needs a number, but %s is %v", operators()[c.op], c.attr.Name, t)
		return
	}
	if _, ok := c.value.Number(); !ok {
		n.Errorf("write a number without quotes; texts compare with eq, prefix, in, ...", "value of %s must be a number, got %v", operators()[c.op], c.value.Type())
	}
}

// comparable checks that a value can equal the left-hand side at all.
func (r *reader) comparable(n *document.Node, v decision.Value, c *condition) decision.Value {
	if c.calc != nil {
		if _, ok := v.Number(); !ok {
			n.Errorf("write a number", "%s is a number, the value %s is %v: they are never equal", document.Short(c.left), document.Short(v.String()), v.Type())
		}
		return v
	}
	a := c.attr
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
		n.Errorf("list at least one value", "the list of in is empty: the condition never holds")
	}
	texts := true
	for _, e := range nodes {
		v, ok := e.Value()
		if !ok {
			continue
		}
		v = r.comparable(e, v, c)
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
