package predicate

import "github.com/clefbench/clefbench/decision"

// Form is what a formula does with its kids.
type Form uint8

// The forms.
const (
	Leaf Form = iota
	All
	Any
	Not
)

// Formula is a condition: a predicate, or formulas joined in Kleene's logic.
type Formula struct {
	Form Form
	Leaf *Predicate // of Leaf
	Kids []Formula  // of the others; Not has one
}

// maxBranches bounds the alternatives that are told apart; where there are more, what
// they have in common with the rest is still used.
const maxBranches = 16

// Branches returns the facts of each alternative in which the formula is true: the
// formula is true only if all facts of one of them are. Alternatives that contradict
// themselves are left out, so no branch at all means that the formula is never true.
func Branches(f *Formula) [][]Predicate {
	var out [][]Predicate
	for _, b := range expand(f, true, [][]Predicate{nil}) {
		if a, _ := Contradiction(b); a == nil {
			out = append(out, b)
		}
	}
	return out
}

// expand adds to each branch what f being want says.
func expand(f *Formula, want bool, branches [][]Predicate) [][]Predicate {
	switch {
	case f.Form == Leaf:
		p := *f.Leaf
		p.Not = f.Leaf.Not == want
		out := make([][]Predicate, len(branches))
		for i, b := range branches {
			out[i] = append(b[:len(b):len(b)], p)
		}
		return out
	case f.Form == Not:
		return expand(&f.Kids[0], !want, branches)
	case (f.Form == All) == want:
		for i := range f.Kids {
			branches = expand(&f.Kids[i], want, branches)
		}
		return branches
	}
	var out [][]Predicate
	for i := range f.Kids {
		out = append(out, expand(&f.Kids[i], want, branches)...)
		if len(out) > maxBranches {
			return branches // say nothing of this alternative
		}
	}
	return out
}

// Follows reports whether the formula comes out as want whenever all facts are the case.
// Facts that contradict each other may give either answer.
func Follows(facts []Predicate, f *Formula, want bool) bool {
	switch {
	case f.Form == Leaf:
		goal := *f.Leaf
		if !want {
			goal.Not = !goal.Not
		}
		return proves(facts, &goal)
	case f.Form == Not:
		return Follows(facts, &f.Kids[0], !want)
	case (f.Form == All) == want:
		for i := range f.Kids {
			if !Follows(facts, &f.Kids[i], want) {
				return false
			}
		}
		return true
	}
	for i := range f.Kids {
		if Follows(facts, &f.Kids[i], want) {
			return true
		}
	}
	return false
}

// proves reports whether one fact implies the goal, or all facts together leave only
// values for which it is the case.
func proves(facts []Predicate, goal *Predicate) bool {
	for i := range facts {
		if facts[i].implies(goal) {
			return true
		}
	}
	for i := range facts {
		p := &facts[i]
		in, _ := p.points()
		if in == nil || p.Name != goal.Name || p.class() == opaque || p.class() != goal.class() {
			continue
		}
		if rest := left(facts, p, in); len(rest) > 0 && goal.follows(p, rest) {
			return true
		}
	}
	return false
}

// left returns the values of in that the other facts about the same value let through.
func left(facts []Predicate, p *Predicate, in []decision.Value) []decision.Value {
	var out []decision.Value
	for _, v := range in {
		ok := p.holds(v)
		for i := range facts {
			q := &facts[i]
			ok = ok && (q.Name != p.Name || q.class() != p.class() || q.holds(v))
		}
		if ok {
			out = append(out, v)
		}
	}
	return out
}

// Contradiction returns two facts that are never the case together, or nil. When it takes
// more than two facts, one of them is returned twice: the one whose every value the others
// keep out.
func Contradiction(facts []Predicate) (a, b *Predicate) {
	for i := range facts {
		for j := range i {
			if p, q := &facts[j], &facts[i]; p.Name == q.Name && p.excludes(q) {
				return p, q
			}
		}
	}
	for i := range facts {
		p := &facts[i]
		if in, _ := p.points(); in != nil && p.class() != opaque && len(left(facts, p, in)) == 0 {
			return p, p
		}
	}
	return nil, nil
}

// excludes reports whether at most one of two facts about one value is the case.
func (p *Predicate) excludes(q *Predicate) bool {
	pc, qc := p.class(), q.class()
	if pc != qc && pc != opaque && qc != opaque && pc != presence && qc != presence {
		return true // one needs another type of value than the other
	}
	no := *q
	no.Not = !no.Not
	if p.implies(&no) {
		return true
	}
	no = *p
	no.Not = !no.Not
	return q.implies(&no)
}

// MayBeEmpty reports whether some value of a name can be the empty text while the formula
// is true.
func MayBeEmpty(f *Formula, name string) bool {
	empty := Predicate{Name: name, Op: Eq, Value: decision.StringValue("")}
	for _, facts := range Branches(f) {
		if a, _ := Contradiction(append(facts[:len(facts):len(facts)], empty)); a == nil {
			return true
		}
	}
	return false
}
