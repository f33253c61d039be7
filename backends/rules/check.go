package rules

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// Check returns everything that is wrong (errors) or doubtful (warnings) in a rules
// file, ordered by position. Schema holds the attributes of the data set at hand and
// may be nil.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	_, problems := read(name, data, schema)
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
		if a, b := contradiction(x.conditions); a != nil {
			r.doc.Warnf(x.pos, "split the rule, or use in", "rule %q never matches: %s cannot be both %s and %s", x.id, a.attr.Name, a.value, b.value)
		}
		if len(x.conditions) == 0 && !(x.action != nil && x.action.Templated()) {
			always = i
		}
	}
}

// contradiction returns two conditions that demand different values of one attribute.
func contradiction(cs []condition) (a, b *condition) {
	for i := range cs {
		for j := range cs[:i] {
			a, b := &cs[j], &cs[i]
			if a.op == opEq && b.op == opEq && a.attr.Name == b.attr.Name && a.value != b.value {
				return a, b
			}
		}
	}
	return nil, nil
}
