package strategy

import (
	"regexp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/predicate"
)

// Check returns everything that is wrong (errors) or doubtful (warnings) in a strategy
// file, ordered by position. Schema holds the attributes of the data set at hand and
// may be nil; with it, an attribute that the data set does not record is a warning. The
// model is not looked for. Check is stricter than [Compile]: declarations in vain, an
// empty name, and a model that does not stand beside its strategy are errors here only.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	_, doc := read(name, data, schema, true)
	doc.Problems.Sort()
	return doc.Problems
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
		if x.sure() && x.cond.Always() {
			always = i
		}
		when := predicate.Formula{}
		survey, ok := r.survey(x)
		if ok {
			when = formula(&survey.Condition)
			r.never(x, shadows, &when)
		}
		shadows.Add(predicate.Rule{When: when, Sure: ok && x.sure()})
	}
	if !shadows.Complete() {
		r.doc.Warnf(decision.Position{File: r.doc.Name, Line: 1, Column: 1}, "split the file by scenario",
			"the file has too many rules to compare all of them: some that are never reached may not be listed")
	}
}

// sure reports whether the rule decides whenever its condition holds.
func (r *rule) sure() bool { return r.cond != nil && r.action != nil && !r.action.Templated() }

func (r *reader) survey(x *rule) (expr.Survey, bool) {
	if x.cond == nil {
		return expr.Survey{}, false
	}
	return r.cel.Survey(x.text)
}

func (r *reader) never(x *rule, shadows *predicate.Shadows, when *predicate.Formula) {
	if len(predicate.Branches(when)) == 0 {
		r.doc.Warnf(x.pos, "what && joins must hold together: split the rule", "rule %q never matches: its condition contradicts itself", x.id)
	} else if at, found := shadows.Before(when); found {
		first := &r.out.rules[at]
		r.doc.Warnf(x.pos, "move it up, narrow the earlier rule, or remove this one",
			"rule %q is never reached: rule %q in line %d already matches whatever it matches", x.id, first.id, first.pos.Line)
	}
}

// formula turns a condition into what internal/predicate reasons about.
func formula(c *expr.Condition) predicate.Formula {
	switch c.Op {
	case "&&", "||", "!":
		if c.Op == "!" && !decided(&c.Kids[0]) {
			return opaque("!", c)
		}
		f := predicate.Formula{Form: map[string]predicate.Form{"&&": predicate.All, "||": predicate.Any, "!": predicate.Not}[c.Op]}
		for i := range c.Kids {
			f.Kids = append(f.Kids, formula(&c.Kids[i]))
		}
		return f
	case "":
		return opaque(c.Text, nil)
	}
	return predicate.Formula{Leaf: leaf(c)}
}

// decided reports whether a condition that is false is false for certain. A comparison of
// numbers is not: in CEL it is false of NaN, too.
func decided(c *expr.Condition) bool {
	for i := range c.Kids {
		if !decided(&c.Kids[i]) {
			return false
		}
	}
	return len(c.Kids) > 0 || c.Op == "has" || c.Op != "" && (c.Attr.Type == decision.String || c.Attr.Type == decision.Bool)
}

func opaque(text string, c *expr.Condition) predicate.Formula {
	if c != nil {
		text += spelled(c)
	}
	return predicate.Formula{Leaf: &predicate.Predicate{Name: text, Op: predicate.Opaque}}
}

// spelled is a text that only the same condition has.
func spelled(c *expr.Condition) string {
	text := c.Op + "(" + c.Attr.Name + "\x00" + c.Text
	for _, v := range c.Values {
		text += "\x00" + v.Type().String() + v.String()
	}
	for i := range c.Kids {
		text += "\x00" + spelled(&c.Kids[i])
	}
	return text + ")"
}

func leaf(c *expr.Condition) *predicate.Predicate {
	p := &predicate.Predicate{Name: c.Attr.Name}
	if len(c.Values) > 0 {
		p.Value = c.Values[0]
	}
	switch c.Op {
	case "==":
		p.Op = predicate.Eq
	case "!=":
		p.Op = predicate.Ne
	case ">":
		p.Op = predicate.Gt
	case ">=":
		p.Op = predicate.Ge
	case "<":
		p.Op = predicate.Lt
	case "<=":
		p.Op = predicate.Le
	case "in":
		p.Op, p.List, p.Value = predicate.In, c.Values, decision.Value{}
	case "contains":
		p.Op = predicate.Contains
	case "startsWith":
		p.Op = predicate.Prefix
	case "endsWith":
		p.Op = predicate.Suffix
	case "matches":
		p.Op = predicate.Matches
		if re, err := regexp.Compile(p.Value.Str()); err == nil {
			p.Match = re.MatchString
		}
	case "has":
		p.Op, p.Value = predicate.Exists, decision.BoolValue(true)
	}
	return p
}
