package rules

import (
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

// maxRules bounds a file.
const maxRules = 100_000

// rule is one compiled rule.
type rule struct {
	id         string
	pos        decision.Position
	conditions []node // all must hold
	// tags are what a rule that is not terminal adds; its action is nil then.
	tags     []string
	action   *expr.Action
	fallback *expr.Action
	// off: the file itself switches the rule off.
	off    bool
	active period
	// broken: something in the rule could not be read.
	broken bool
}

// file is a compiled rules file.
type file struct {
	version   string
	scenarios []string
	rules     []rule
	fallback  *expr.Action
	scope     *expr.Scope
	tests     []test
}

// reader walks a file and adds to its problems.
type reader struct {
	doc  *document.File
	data []byte
	out  *file
	// strict also refuses what is harmless in a decision but surely a mistake.
	strict bool
	// tagged: some rule of the file is not terminal.
	tagged bool
	// cel compiles the file's calculations; nil until there is one.
	cel *expr.Compiler
}

// read compiles the file as far as possible; what is wrong is in the problems.
func read(name string, data []byte, schema *decision.Schema, strict bool) (*file, document.Problems) {
	doc, root, err := document.Parse(name, data)
	if err != nil {
		return nil, doc.Problems
	}
	r := &reader{doc: doc, data: data, out: &file{scope: expr.NewScope(schema)}, strict: strict}
	if m := root.Map("version", "description", "scenarios", "attributes", "rules", "fallback", "tests"); root.IsMap() {
		r.file(m)
	}
	doc.Problems.Sort()
	return r.out, doc.Problems
}

func (r *reader) file(m *document.Map) {
	if v := m.Need("version"); v != nil {
		r.out.version, _ = v.Text()
	}
	if d := m.Get("description"); d != nil {
		d.Text()
	}
	if s := m.Get("scenarios"); s != nil {
		r.out.scenarios = s.SomeTexts("leave the field out to decide any scenario")
	}
	if a := m.Get("attributes"); a != nil {
		r.out.scope.Declare(a)
		if r.strict {
			r.out.scope.CheckDeclared(a)
		}
	}
	if list := m.Need("rules"); list != nil {
		nodes := list.List()
		r.tagged = slices.ContainsFunc(nodes, isTagger)
		r.rules(nodes)
	}
	if f := m.Get("fallback"); f != nil {
		r.out.fallback = r.action(f, true)
	} else {
		r.doc.Warnf(decision.Position{File: r.doc.Name, Line: 1, Column: 1},
			"add a fallback action, if there is a safe one", "no fallback: what no rule matches is answered with abstain")
	}
	if t := m.Get("tests"); t != nil {
		r.tests(t.List())
	}
}

// isTagger looks ahead for a rule that is not terminal: the actions before it have to
// leave room for its tags.
func isTagger(n *document.Node) bool {
	if !n.IsMap() {
		return false
	}
	t := n.Map().Get("terminal")
	if t == nil {
		return false
	}
	text, ok := "", t.IsScalar() && !t.IsNull()
	if ok {
		text, _ = t.Text()
	}
	return text == "false"
}

func (r *reader) action(n *document.Node, fixed bool) *expr.Action {
	return expr.ReadAction(n, nil, r.out.scope, expr.ActionOptions{Data: r.data, Fixed: fixed, Tags: r.tagged})
}

func (r *reader) rules(nodes []*document.Node) {
	if len(nodes) > maxRules {
		nodes[maxRules].Errorf("split the file by scenario", "the file has %d rules, the limit is %d", len(nodes), maxRules)
		return
	}
	seen := map[string]int{}
	for _, n := range nodes {
		r.rule(n, seen)
	}
	if r.strict {
		r.doubtful()
	}
}

func (r *reader) rule(n *document.Node, seen map[string]int) {
	m := n.Map("id", "description", "enabled", "active", "conditions", "action", "fallback", "terminal", "tags")
	if !n.IsMap() {
		return
	}
	before := r.doc.Problems.Errors()
	out := rule{pos: n.Pos()}
	if id := m.Need("id"); id != nil {
		out.id = r.id(id, seen)
	}
	if d := m.Get("description"); d != nil {
		d.Text()
	}
	if e := m.Get("enabled"); e != nil {
		on, ok := e.Bool()
		out.off = ok && !on
	}
	if a := m.Get("active"); a != nil {
		out.active = r.period(a)
	}
	if list := m.Need("conditions"); list != nil {
		out.conditions = r.conditions(list)
	}
	if t := m.Get("terminal"); t != nil {
		t.Bool()
	}
	if isTagger(n) {
		r.tagger(n, m, &out)
	} else {
		r.answer(m, &out)
	}
	out.broken = r.doc.Problems.Errors() > before
	r.out.rules = append(r.out.rules, out)
}

func (r *reader) id(n *document.Node, seen map[string]int) string {
	id, _ := n.Text()
	switch line, dup := seen[id]; {
	case dup:
		n.Errorf("give each rule an id of its own", "rule id %q stands twice (first in line %d)", id, line)
	case id == everyRule || strings.ContainsAny(id, "\r\n"):
		n.Errorf("an id is one line of text, and * stands for all rules", "%q cannot be a rule's id", document.Short(id))
	}
	seen[id] = n.Pos().Line
	return id
}

// answer reads what a terminal rule answers.
func (r *reader) answer(m *document.Map, out *rule) {
	if t := m.Get("tags"); t != nil {
		t.Errorf("write terminal: false, or leave tags out", "a rule that decides has no tags")
	}
	if a := m.Need("action"); a != nil {
		out.action = r.action(a, false)
	}
	if f := m.Get("fallback"); f != nil {
		out.fallback = r.action(f, true)
		r.uselessFallback(f, out.action)
	}
}

// tagger reads what a rule that is not terminal adds to the answer of the rule that
// decides.
func (r *reader) tagger(n *document.Node, m *document.Map, out *rule) {
	for _, name := range []string{"action", "fallback"} {
		if x := m.Get(name); x != nil {
			x.Errorf("leave it out, or leave terminal out", "a rule with terminal: false decides nothing, so it has no %s", name)
		}
	}
	t := m.Get("tags")
	if t == nil {
		n.Errorf("name what it marks, as in tags: [suspicious]", "a rule with terminal: false needs tags")
		return
	}
	out.tags = t.SomeTexts("name what the rule marks, as in tags: [suspicious]")
}

func (r *reader) uselessFallback(n *document.Node, a *expr.Action) {
	if a != nil && !a.Templated() {
		r.doc.Warnf(n.Pos(), "remove it", "this fallback is never used: the rule's action has no template that can fail")
	}
}
