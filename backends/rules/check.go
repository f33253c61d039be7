package rules

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

// Check returns everything that is wrong (errors) or doubtful (warnings) in a rules
// file, ordered by position. Schema holds the attributes of the data set at hand and
// may be nil; with it, an attribute that the data set does not record is a warning.
// Check is stricter than [Compile]: declarations in vain are errors here only.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	_, problems := read(name, data, schema, true)
	return problems
}

// unreachable warns of rules behind one that always matches, of rules that repeat the
// conditions of an earlier one, and of rules that contradict themselves.
func (r *reader) unreachable() {
	always := -1
	for i := range r.out.rules {
		x := &r.out.rules[i]
		if always >= 0 {
			r.doc.Warnf(x.pos, "move it up, or remove it", "rule %q is never reached: rule %q in line %d always matches",
				x.id, r.out.rules[always].id, r.out.rules[always].pos.Line)
			continue
		}
		if a, b := contradiction(conjuncts(x.conditions)); a != nil {
			r.contradicts(x, a, b)
		}
		if len(x.conditions) == 0 && x.tags == nil && !x.off && !x.active.bounded() && !(x.action != nil && x.action.Templated()) {
			always = i
		}
	}
}

func (r *reader) contradicts(x *rule, a, b *condition) {
	if a.op == opEq && b.op == opEq {
		r.doc.Warnf(x.pos, "split the rule, or use in", "rule %q never matches: %s cannot be both %s and %s", x.id, a.name(), a.value, b.value)
		return
	}
	r.doc.Warnf(x.pos, "all conditions of a rule must hold: split the rule", "rule %q never matches: %s cannot be both %s %s and %s %s",
		x.id, a.name(), operators()[a.op], a.value, operators()[b.op], b.value)
}

// contradiction returns two conditions of which at most one can hold.
func contradiction(cs []*condition) (a, b *condition) {
	for i := range cs {
		for j := range cs[:i] {
			if a, b := cs[j], cs[i]; a.name() == b.name() && (a.excludes(b) || b.excludes(a)) {
				return a, b
			}
		}
	}
	return nil, nil
}

// excludes reports whether c demands another value than o, or more than o lets through.
func (c *condition) excludes(o *condition) bool {
	if c.op == opEq && o.op == opEq {
		return c.value != o.value
	}
	cmp, _, ok := expr.Order(c.value, o.value)
	if !ok {
		return false
	}
	switch {
	case c.op == opEq && o.op == opNe:
		return cmp == 0
	case !(c.op == opGt || c.op == opGe || c.op == opEq) || !(o.op == opLt || o.op == opLe || o.op == opEq):
		return false
	}
	return cmp > 0 || cmp == 0 && (c.op == opGt || o.op == opLt)
}
