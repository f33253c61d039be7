package predicate

import (
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// Witness returns values, by name, for which all facts are the case; a name that must be
// absent is left out. It is false when it finds none, which proves nothing.
func Witness(facts []Predicate) (map[string]decision.Value, bool) {
	byName := map[string][]Predicate{}
	for _, p := range facts {
		if p.class() == opaque {
			return nil, false
		}
		byName[p.Name] = append(byName[p.Name], p)
	}
	out := map[string]decision.Value{}
	for name, ps := range byName {
		absent := func(p Predicate) bool { return p.class() == presence && !present(&p) }
		if slices.ContainsFunc(ps, absent) {
			if !slices.ContainsFunc(ps, func(p Predicate) bool { return !absent(p) }) {
				continue
			}
			return nil, false
		}
		v, ok := value(ps)
		if !ok {
			return nil, false
		}
		out[name] = v
	}
	return out, true
}

// value tries the constants of some facts about one value, and values made of them.
func value(ps []Predicate) (decision.Value, bool) {
	c := text
	for i := range ps {
		if k := ps[i].class(); k != presence {
			c = k
		}
	}
	var tries []decision.Value
	switch c {
	case boolean:
		tries = []decision.Value{decision.BoolValue(true), decision.BoolValue(false)}
	case number:
		tries = numbers(ps)
	default:
		tries = texts(ps)
	}
	for _, v := range tries {
		if !slices.ContainsFunc(ps, func(p Predicate) bool { return p.class() != presence && (p.class() != c || !p.holds(v)) }) {
			return v, true
		}
	}
	return decision.Value{}, false
}

func constants(ps []Predicate) []decision.Value {
	var out []decision.Value
	for i := range ps {
		if ps[i].class() != presence {
			out = append(append(out, ps[i].List...), ps[i].Value)
		}
	}
	return out
}

// numbers are the constants, and values between and beside them.
func numbers(ps []Predicate) []decision.Value {
	var xs []float64
	var out []decision.Value
	for _, v := range constants(ps) {
		if x, ok := v.Number(); ok {
			xs, out = append(xs, x), append(out, v)
		}
	}
	slices.Sort(xs)
	for i, x := range xs {
		out = append(out, decision.DoubleValue(x+1), decision.DoubleValue(x-1))
		if i > 0 {
			out = append(out, decision.DoubleValue((xs[i-1]+x)/2))
		}
	}
	return out
}

// texts are the constants, and the parts that must be there in one text.
func texts(ps []Predicate) []decision.Value {
	out := append(constants(ps), decision.StringValue("x"))
	prefix, middle, suffix := "", "", ""
	for i := range ps {
		part := ps[i].Value.Str()
		switch {
		case ps[i].Not:
		case ps[i].Op == Prefix && len(part) > len(prefix):
			prefix = part
		case ps[i].Op == Suffix && len(part) > len(suffix):
			suffix = part
		case ps[i].Op == Contains && !strings.Contains(middle, part):
			middle += part
		}
	}
	for _, s := range []string{prefix + suffix, prefix + middle, middle + suffix, prefix + middle + suffix, prefix + "x" + middle + suffix} {
		out = append(out, decision.StringValue(s))
	}
	return slices.DeleteFunc(out, func(v decision.Value) bool { return v.Type() != decision.String })
}
