package predicate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// truth is a naive evaluation of a predicate for a value, null being absent.
func truth(p *Predicate, v decision.Value) expr.Truth {
	known := false
	switch p.Op {
	case Exists:
		return not(p, (v.Type() != decision.Null) == p.Value.Bool())
	case Contains, Prefix, Suffix, Matches:
		known = v.Type() == decision.String
	case In:
		for _, w := range p.List {
			_, _, ok := expr.Order(v, w)
			known = known || ok
		}
	default:
		_, _, known = expr.Order(v, p.Value)
	}
	if !known || v.IsNull() {
		return expr.Unknown
	}
	return not(p, p.test(v))
}

func not(p *Predicate, b bool) expr.Truth {
	if b != p.Not {
		return expr.True
	}
	return expr.False
}

func eval(f *Formula, attrs map[string]decision.Value) expr.Truth {
	switch f.Form {
	case Leaf:
		return truth(f.Leaf, attrs[f.Leaf.Name])
	case Not:
		return [...]expr.Truth{expr.True, expr.False, expr.Unknown}[eval(&f.Kids[0], attrs)]
	}
	stop := expr.False
	if f.Form == Any {
		stop = expr.True
	}
	out := [...]expr.Truth{expr.True, expr.False}[stop]
	for i := range f.Kids {
		switch t := eval(&f.Kids[i], attrs); t {
		case stop:
			return stop
		case expr.Unknown:
			out = t
		}
	}
	return out
}

var words = []string{"", "a", "b", "ab", "ba", "abb", "bab"}

func word(r *rand.Rand) decision.Value { return decision.StringValue(words[r.IntN(len(words))]) }

func num(r *rand.Rand) decision.Value {
	switch r.IntN(8) {
	case 0:
		return decision.IntValue(1<<53 + int64(r.IntN(3)) - 1)
	case 1:
		return decision.DoubleValue(1 << 53)
	case 2, 3:
		return decision.DoubleValue(float64(r.IntN(5)) / 2)
	}
	return decision.IntValue(int64(r.IntN(3)))
}

func randomPredicate(r *rand.Rand) *Predicate {
	p := &Predicate{Name: []string{"x", "y"}[r.IntN(2)], Not: r.IntN(4) == 0}
	switch p.Op = Op(r.IntN(int(Opaque))); p.Op {
	case Exists:
		p.Value = decision.BoolValue(r.IntN(2) == 0)
	case Contains, Prefix, Suffix:
		p.Value = word(r)
	case Matches:
		pattern := []string{"^a", "b$", "ab*", "^$", ""}[r.IntN(5)]
		p.Value, p.Match = decision.StringValue(pattern), regexp.MustCompile(pattern).MatchString
	case In:
		for range 1 + r.IntN(3) {
			p.List = append(p.List, constant(r, r.IntN(8)))
		}
	case Eq, Ne:
		p.Value = constant(r, r.IntN(8))
	default:
		p.Value = num(r)
	}
	return p
}

func constant(r *rand.Rand, k int) decision.Value {
	switch {
	case k == 0:
		return decision.BoolValue(r.IntN(2) == 0)
	case k < 4:
		return num(r)
	}
	return word(r)
}

func randomFormula(r *rand.Rand, depth int) Formula {
	form := Form(r.IntN(6))
	if depth == 0 || form > Not {
		return Formula{Leaf: randomPredicate(r)}
	}
	f := Formula{Form: form}
	switch form {
	case Leaf:
		f.Leaf = randomPredicate(r)
	case Not:
		f.Kids = []Formula{randomFormula(r, depth-1)}
	default:
		for range 1 + r.IntN(3) {
			f.Kids = append(f.Kids, randomFormula(r, depth-1))
		}
	}
	return f
}

// domain holds values on both sides of every constant above, of every type.
func domain() []decision.Value {
	out := []decision.Value{{}, decision.BoolValue(false), decision.BoolValue(true), decision.DoubleValue(math.NaN()),
		decision.DoubleValue(math.Inf(1)), decision.DoubleValue(math.Inf(-1))}
	for i := int64(-1); i <= 3; i++ {
		out = append(out, decision.IntValue(i), decision.IntValue(1<<53+i-1), decision.DoubleValue(float64(i)), decision.DoubleValue(float64(i)+0.5),
			decision.DoubleValue(float64(i)+0.25), decision.DoubleValue(1<<53+2*float64(i)))
	}
	for _, a := range words {
		for _, b := range words {
			out = append(out, decision.StringValue(a+b), decision.StringValue(a+"c"+b))
		}
	}
	return out
}

// Whatever follows is so for every value: brute force over both names.
func TestWhatFollowsIsSo(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := domain()
	followed, refuted, never, witnessed := 0, 0, 0, 0
	for range 6000 {
		a, b := randomFormula(r, 2), randomFormula(r, 2)
		branches := Branches(&b)
		follows := allFollow(branches, &a)
		always, possible := true, false
		attrs := map[string]decision.Value{}
		for range 400 {
			attrs["x"], attrs["y"] = values[r.IntN(len(values))], values[r.IntN(len(values))]
			if eval(&b, attrs) != expr.True {
				continue
			}
			possible = true
			if eval(&a, attrs) != expr.True {
				always = false
			}
			if follows && !always {
				t.Fatalf("%v: %s is true and %s is not", attrs, show(&b), show(&a))
			}
		}
		if possible && len(branches) == 0 {
			t.Fatalf("%s is true for some value", show(&b))
		}
		for _, facts := range branches {
			if w, ok := Witness(facts); ok && len(branches) == 1 {
				witnessed++
				if len(branches) <= maxBranches && eval(&b, w) != expr.True && exact(&b) {
					t.Fatalf("%v is no witness of %s", w, show(&b))
				}
			}
		}
		switch {
		case len(branches) == 0:
			never++
		case follows:
			followed++
		case always && possible:
			refuted++ // true of all values tried, and not found
		}
	}
	t.Logf("%d follow, %d look so and are not found, %d contradict themselves, %d witnesses", followed, refuted, never, witnessed)
	if followed < 100 || never < 100 || witnessed < 500 {
		t.Error("the test says too little")
	}
}

// exact reports whether the facts of the only branch say all that the formula says.
func exact(f *Formula) bool {
	return f.Form == Leaf || f.Form == All && len(f.Kids) == 1 && exact(&f.Kids[0])
}

func show(f *Formula) string {
	if f.Form == Leaf {
		return fmt.Sprintf("{%v %s %d %v %v}", f.Leaf.Not, f.Leaf.Name, f.Leaf.Op, f.Leaf.Value, f.Leaf.List)
	}
	s := fmt.Sprintf("%d(", f.Form)
	for i := range f.Kids {
		s += show(&f.Kids[i]) + " "
	}
	return s + ")"
}

func leaf(name string, op Op, v decision.Value) Formula {
	return Formula{Leaf: &Predicate{Name: name, Op: op, Value: v}}
}

// What people write is found.
func TestWhatPeopleWriteIsFound(t *testing.T) {
	s, f := decision.StringValue, decision.DoubleValue
	list := func(texts ...string) Formula {
		p := &Predicate{Name: "p", Op: In}
		for _, x := range texts {
			p.List = append(p.List, s(x))
		}
		return Formula{Leaf: p}
	}
	all := func(kids ...Formula) Formula { return Formula{Form: All, Kids: kids} }
	either := func(kids ...Formula) Formula { return Formula{Form: Any, Kids: kids} }
	for i, tc := range []struct {
		earlier, later Formula
		want           bool
	}{
		{leaf("p", Prefix, s("/api")), leaf("p", Prefix, s("/api/v1")), true},
		{leaf("p", Prefix, s("/api/v1")), leaf("p", Prefix, s("/api")), false},
		{leaf("x", Gt, f(0.8)), leaf("x", Gt, f(0.9)), true},
		{leaf("x", Gt, f(0.8)), leaf("x", Ge, f(0.8)), false},
		{leaf("x", Ge, f(0.8)), leaf("x", Gt, f(0.8)), true},
		{leaf("x", Lt, f(0.8)), leaf("x", Gt, f(0.9)), false},
		{list("/a", "/b"), leaf("p", Eq, s("/a")), true},
		{list("/a", "/b"), list("/b"), true},
		{list("/a"), list("/a", "/b"), false},
		{leaf("p", Contains, s("curl")), leaf("p", Prefix, s("curl/8")), true},
		{leaf("p", Ne, s("/")), leaf("p", Prefix, s("/a")), true},
		{leaf("p", Exists, decision.BoolValue(true)), leaf("p", Eq, s("x")), true},
		{leaf("p", Prefix, s("/a")), all(leaf("p", Prefix, s("/a")), leaf("x", Gt, f(1))), true},
		{all(leaf("p", Prefix, s("/a")), leaf("y", Gt, f(1))), leaf("p", Prefix, s("/a")), false},
		{either(leaf("p", Prefix, s("/a")), leaf("p", Prefix, s("/b"))), leaf("p", Eq, s("/b/c")), true},
		{leaf("p", Prefix, s("/a")), either(leaf("p", Eq, s("/a1")), leaf("p", Eq, s("/a2"))), true},
		{Formula{Form: Not, Kids: []Formula{leaf("p", Prefix, s("/a"))}}, leaf("p", Eq, s("/b")), true},
		{Formula{Form: Not, Kids: []Formula{leaf("q", Prefix, s("/a"))}}, leaf("p", Eq, s("/b")), false},
		{all(), leaf("p", Eq, s("/b")), true},
	} {
		sh := NewShadows()
		sh.Add(Rule{When: tc.earlier, Sure: true})
		if _, got := sh.Before(&tc.later); got != tc.want {
			t.Errorf("case %d: found %v", i, got)
		}
	}
}

// The index loses nothing that a comparison of every pair would find.
func TestIndexLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	found := 0
	for range 100 {
		sh := NewShadows()
		var all []Formula
		for range 30 {
			f := Formula{Form: All, Kids: []Formula{randomFormula(r, 1), randomFormula(r, 1)}}
			want := -1
			if b := Branches(&f); len(b) > 0 {
				for i := range all {
					if want < 0 && allFollow(b, &all[i]) {
						want = i
					}
				}
			}
			got, ok := sh.Before(&f)
			if ok != (want >= 0) || ok && got != want {
				t.Fatalf("got %d %v, want %d for %s", got, ok, want, show(&f))
			}
			if ok {
				found++
			}
			sh.Add(Rule{When: f, Sure: true})
			all = append(all, f)
		}
	}
	if found < 50 {
		t.Errorf("%d found", found)
	}
}
