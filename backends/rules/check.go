package rules

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/predicate"
)

// Check returns everything that is wrong (errors) or doubtful (warnings) in a rules
// file, ordered by position. Schema holds the attributes of the data set at hand and
// may be nil; with it, an attribute that the data set does not record is a warning.
// Check is stricter than [Compile]: declarations in vain are errors here only.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	_, problems := read(name, data, schema, true)
	return problems
}

// doubtful warns of rules that can never decide: those behind one that always matches,
// those that an earlier one always beats, and those that contradict themselves.
func (r *reader) doubtful() {
	always, shadows := -1, predicate.NewShadows()
	for i := range r.out.rules {
		x := &r.out.rules[i]
		if always >= 0 {
			r.doc.Warnf(x.pos, "move it up, or remove it", "rule %q is never reached: rule %q in line %d always matches",
				x.id, r.out.rules[always].id, r.out.rules[always].pos.Line)
			continue
		}
		if x.always() {
			always = i
		}
		when := predicate.Formula{}
		if !x.broken { // a condition that could not be read says nothing
			when = formula(x.conditions)
			if !r.contradictory(x, &when) && !x.off {
				r.shadowed(x, shadows, &when)
			}
			r.emptyTexts(x, &when)
		}
		shadows.Add(predicate.Rule{When: when, Sure: x.sure() && !x.broken, Covers: r.covers(i)})
	}
	if !shadows.Complete() {
		r.doc.Warnf(decision.Position{File: r.doc.Name, Line: 1, Column: 1}, "split the file by scenario",
			"the file has too many rules to compare all of them: some that are never reached may not be listed")
	}
}

// sure reports whether the rule decides whenever its conditions hold and it is in force.
func (r *rule) sure() bool {
	return r.action != nil && !r.off && (!r.action.Templated() || r.fallback != nil)
}

// always reports whether no rule after this one is reached. An action that could not be
// read is taken for one without templates: the mistake in it is another finding.
func (r *rule) always() bool {
	return len(r.conditions) == 0 && r.tags == nil && !r.off && !r.active.bounded() && (r.action == nil || r.sure())
}

// covers tells whether rule i is in force whenever a later one is.
func (r *reader) covers(i int) func(later int) bool {
	if !r.out.rules[i].active.bounded() {
		return nil
	}
	return func(later int) bool {
		if later >= len(r.out.rules) {
			return false
		}
		a, b := &r.out.rules[i].active, &r.out.rules[later].active
		return b.bounded() && !a.from.After(b.from) && (a.until.IsZero() || !b.until.IsZero() && !b.until.After(a.until))
	}
}

func (r *reader) shadowed(x *rule, shadows *predicate.Shadows, when *predicate.Formula) {
	if at, found := shadows.Before(when); found {
		first := &r.out.rules[at]
		r.doc.Warnf(x.pos, "move it up, narrow the earlier rule, or remove this one",
			"rule %q is never reached: rule %q in line %d already matches whatever it matches", x.id, first.id, first.pos.Line)
	}
}

// formula turns conditions into what internal/predicate reasons about.
func formula(nodes []node) predicate.Formula {
	f := predicate.Formula{Form: predicate.All, Kids: make([]predicate.Formula, len(nodes))}
	for i := range nodes {
		f.Kids[i] = nodes[i].formula()
	}
	return f
}

func (n *node) formula() predicate.Formula {
	if n.form == formLeaf {
		return predicate.Formula{Leaf: n.leaf.predicate()}
	}
	f := formula(n.kids)
	f.Form = [...]predicate.Form{formAll: predicate.All, formAny: predicate.Any, formNot: predicate.Not}[n.form]
	return f
}

// computed keeps the text of a calculation apart from the attribute of that name, which
// need not be a number.
const computed = "="

func (c *condition) predicate() *predicate.Predicate {
	p := &predicate.Predicate{Name: c.name(), Op: predicateOp(c.op), Value: c.value, List: c.list}
	if c.calc != nil {
		p.Name = computed + c.left
	}
	if c.re != nil {
		p.Match = c.re.MatchString
	}
	return p
}

func predicateOp(o operator) predicate.Op {
	return [...]predicate.Op{opEq: predicate.Eq, opNe: predicate.Ne, opGt: predicate.Gt, opGe: predicate.Ge, opLt: predicate.Lt,
		opLe: predicate.Le, opContains: predicate.Contains, opPrefix: predicate.Prefix, opSuffix: predicate.Suffix, opIn: predicate.In,
		opMatches: predicate.Matches, opExists: predicate.Exists}[o]
}
