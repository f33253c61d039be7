package rules

import (
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/predicate"
)

// contradictory warns of a rule that never matches, and of alternatives below any that
// never hold.
func (r *reader) contradictory(x *rule, when *predicate.Formula) bool {
	if a, b := predicate.Contradiction(certain(when, nil)); a != nil {
		r.never(x.pos, "rule "+quoted(decision.StringValue(x.id))+" never matches", a, b)
		return true
	}
	if len(predicate.Branches(when)) == 0 {
		r.doc.Warnf(x.pos, "all conditions of a rule must hold: split the rule",
			"rule %q never matches: each alternative of any contradicts another condition", x.id)
		return true
	}
	r.deadAlternatives(x.conditions)
	return false
}

// certain lists the facts that hold in every alternative: those at the top and inside all,
// and below not those of its any.
func certain(f *predicate.Formula, out []predicate.Predicate) []predicate.Predicate {
	switch f.Form {
	case predicate.Leaf:
		return append(out, *f.Leaf)
	case predicate.All:
		for i := range f.Kids {
			out = certain(&f.Kids[i], out)
		}
	case predicate.Not:
		if kid := &f.Kids[0]; kid.Form == predicate.Leaf {
			p := *kid.Leaf
			p.Not = !p.Not
			return append(out, p)
		} else if kid.Form == predicate.Any {
			for i := range kid.Kids {
				out = certain(&predicate.Formula{Form: predicate.Not, Kids: kid.Kids[i : i+1]}, out)
			}
		}
	}
	return out
}

// deadAlternatives warns of an all inside any whose own conditions exclude each other.
func (r *reader) deadAlternatives(nodes []node) {
	for i := range nodes {
		n := &nodes[i]
		switch n.form {
		case formAny:
			for j := range n.kids {
				f := n.kids[j].formula()
				if a, b := predicate.Contradiction(certain(&f, nil)); a != nil {
					r.never(n.kids[j].pos, "this alternative never holds", a, b)
				}
			}
			r.deadAlternatives(n.kids)
		case formAll:
			r.deadAlternatives(n.kids)
		}
	}
}

// never warns of two facts that exclude each other, or of one that the others leave no
// value for, when it is given twice.
func (r *reader) never(pos decision.Position, what string, a, b *predicate.Predicate) {
	name := strings.TrimPrefix(a.Name, computed)
	switch {
	case a == b:
		r.doc.Warnf(pos, "all conditions of a rule must hold: split the rule", "%s: the other conditions on %s leave no value of %s", what, name, wording(a))
	case a.Op == predicate.Eq && b.Op == predicate.Eq && !a.Not && !b.Not:
		r.doc.Warnf(pos, "split the rule, or use in", "%s: %s cannot be both %s and %s", what, name, a.Value, b.Value)
	default:
		r.doc.Warnf(pos, "all conditions of a rule must hold: split the rule", "%s: %s cannot be both %s and %s", what, name, wording(a), wording(b))
	}
}

// wording is a predicate without its left-hand side.
func wording(p *predicate.Predicate) string {
	text := operators()[p.Op] + " " + p.Value.String()
	switch p.Op {
	case predicate.In:
		list := make([]string, len(p.List))
		for i, v := range p.List {
			list[i] = v.String()
		}
		text = "in [" + strings.Join(list, ", ") + "]"
	case predicate.Exists:
		text = map[bool]string{true: "there", false: "absent"}[p.Value.Bool()]
	}
	if p.Not {
		text = "not " + text
	}
	return text
}
