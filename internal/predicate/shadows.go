package predicate

// Rule is one of a list in which the first that matches decides.
type Rule struct {
	// When is what must be true for the rule to match.
	When Formula
	// Sure: nothing else can keep it from deciding once it matches.
	Sure bool
	// Covers restricts which later rules it can shadow, given the later rule's place; nil is
	// no restriction.
	Covers func(later int) bool
}

// maxCompared bounds the pairs of rules that are compared beyond what the index finds, so
// that a file of 100,000 rules is checked in seconds.
const maxCompared = 2_000_000

// Shadows finds rules that can never decide. Rules are asked about and added in order.
type Shadows struct {
	rules []Rule
	// byText finds the rules that a text must equal one of, byPrefix those that it must begin
	// with, byName those that say something else of a name first, rest all others.
	byText   map[textKey][]int
	byPrefix map[textKey][]int
	byName   map[string][]int
	rest     []int
	compared int
}

type textKey struct{ name, text string }

// NewShadows returns an empty list.
func NewShadows() *Shadows {
	return &Shadows{byText: map[textKey][]int{}, byPrefix: map[textKey][]int{}, byName: map[string][]int{}}
}

// Add appends a rule.
func (s *Shadows) Add(r Rule) {
	at := len(s.rules)
	s.rules = append(s.rules, r)
	if !r.Sure {
		return
	}
	var first *Predicate
	for _, p := range must(&r.When, nil) {
		if p.class() == opaque || first != nil && first.class() == text {
			continue
		}
		if in, _ := p.points(); first == nil || in != nil && p.class() == text {
			first = p
		}
	}
	if first == nil {
		s.rest = append(s.rest, at)
		return
	}
	in, _ := first.points()
	if first.Op == Prefix && !first.Not && first.Value.Str() != "" {
		k := textKey{first.Name, first.Value.Str()}
		s.byPrefix[k] = append(s.byPrefix[k], at)
		return
	}
	if in == nil || first.class() != text {
		s.byName[first.Name] = append(s.byName[first.Name], at)
		return
	}
	for _, v := range in {
		k := textKey{first.Name, v.Str()}
		s.byText[k] = append(s.byText[k], at)
	}
}

// must lists the leaves that stand alone or in All, and so must be true.
func must(f *Formula, out []*Predicate) []*Predicate {
	switch f.Form {
	case Leaf:
		return append(out, f.Leaf)
	case All:
		for i := range f.Kids {
			out = must(&f.Kids[i], out)
		}
	}
	return out
}

// Before returns the place of the first rule so far that matches whenever one with this
// formula would, given the place that it will have; false when there is none, or none that
// is found.
func (s *Shadows) Before(when *Formula) (first int, found bool) {
	branches := Branches(when)
	if len(branches) == 0 {
		return 0, false // it never matches, which is another finding
	}
	at := len(s.rules)
	first = at
	for _, list := range s.candidates(branches[0]) {
		for _, i := range list {
			if i >= first || s.compared > maxCompared {
				break
			}
			s.compared++
			if r := &s.rules[i]; (r.Covers == nil || r.Covers(at)) && allFollow(branches, &r.When) {
				first = i
			}
		}
	}
	return first, first < at
}

// candidates lists the rules that may follow from some facts: a rule follows only if its
// first condition does, a text is known to equal one of some only from facts that name
// texts, too, and to begin with another only from those and from longer beginnings.
func (s *Shadows) candidates(facts []Predicate) [][]int {
	out := [][]int{s.rest}
	seen := map[string]bool{}
	for i := range facts {
		p := &facts[i]
		if in, _ := p.points(); in != nil && p.class() == text {
			if rest := left(facts, p, in); len(rest) > 0 {
				out = append(out, s.byText[textKey{p.Name, rest[0].Str()}])
				out = s.beginnings(p.Name, rest[0].Str(), out)
			}
		} else if p.Op == Prefix && !p.Not {
			out = s.beginnings(p.Name, p.Value.Str(), out)
		}
		if !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, s.byName[p.Name])
		}
	}
	return out
}

// beginnings adds the rules that ask for a beginning of a text.
func (s *Shadows) beginnings(name, whole string, out [][]int) [][]int {
	for n := range len(whole) {
		if list := s.byPrefix[textKey{name, whole[:n+1]}]; list != nil {
			out = append(out, list)
		}
	}
	return out
}

func allFollow(branches [][]Predicate, f *Formula) bool {
	for _, facts := range branches {
		if !Follows(facts, f, true) {
			return false
		}
	}
	return true
}

// Complete reports whether every pair of rules was compared that could matter.
func (s *Shadows) Complete() bool { return s.compared <= maxCompared }
