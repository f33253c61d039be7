package strategy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

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
			r.emptyTexts(x, &when)
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

// emptyTexts warns of parameters that render as empty text for some request that the rule
// matches: an absent attribute keeps an action from being rendered, an empty one does not.
func (r *reader) emptyTexts(x *rule, when *predicate.Formula) {
	if x.action == nil {
		return
	}
	for _, b := range x.action.Bare() {
		if !slices.ContainsFunc(b.Attrs, func(a expr.Attr) bool { return filled(a, when) }) {
			r.doc.Warnf(b.Pos, fmt.Sprintf(`add && %s != "" to the condition`, reference(b.Attrs[0].Name)), "this renders as empty text when %s is empty", b.Attrs[0].Name)
		}
	}
}

// filled reports whether an attribute renders as some text whenever the rule matches. A
// path is never empty: HTTP has none.
func filled(a expr.Attr, when *predicate.Formula) bool {
	return a.Name == "path" || a.Type != decision.String && a.Type != decision.Null || !predicate.MayBeEmpty(when, a.Name)
}

// reference is a name as a condition has it.
func reference(name string) string {
	if root, rest, dotted := strings.Cut(name, "."); dotted && strings.Contains(rest, "-") {
		return fmt.Sprintf("%s[%q]", root, rest)
	}
	return name
}

// Cost bounds the work of one decision by what stands in the file.
type Cost struct {
	// Rules counts the conditions, Patterns the regular expressions in them; Steps is the
	// sum of cel-go's static estimates for the worst input. A rule behind one that always
	// matches does not count.
	Rules, Patterns int
	Steps           uint64
}

// WorstCase returns the cost of a file. The error is a document.Problems.
func WorstCase(name string, data []byte, schema *decision.Schema) (Cost, error) {
	var c Cost
	r := reader{}
	f, doc := r.read(name, data, schema, false)
	if err := doc.Err(); err != nil {
		return c, err
	}
	for i := range f.rules {
		x := &f.rules[i]
		s, _ := r.survey(x)
		c.Rules, c.Patterns, c.Steps = c.Rules+1, c.Patterns+s.Patterns, c.Steps+s.Cost
		if x.sure() && x.cond.Always() {
			break
		}
	}
	return c, nil
}

// Actions returns where each action of a file stands, the fallback's included, by label.
// The error is a document.Problems.
func Actions(name string, data []byte, schema *decision.Schema) (map[string][]decision.Position, error) {
	f, doc := read(name, data, schema, false)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	out := map[string][]decision.Position{}
	for _, x := range f.rules {
		out[x.action.Label] = append(out[x.action.Label], x.action.Pos)
	}
	if a := f.fallback.action; a != nil {
		out[a.Label] = append(out[a.Label], a.Pos)
	}
	return out, nil
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
