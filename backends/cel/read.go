package cel

import (
	"fmt"

	"cel.dev/cel-go/cel"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

const maxRules = 20_000

// rule is one compiled rule.
type rule struct {
	id     string
	pos    decision.Position
	prog   cel.Program
	reads  reads
	action action
}

// action is what a rule answers.
type action struct{ label, params string }

// file is a compiled file.
type file struct {
	name, version string
	scenarios     []string
	rules         []rule
	// fallback has no label when the file has none.
	fallback    action
	fallbackPos decision.Position
	reads       reads
	names       *names
}

// reader walks a file and adds to its problems.
type reader struct {
	doc  *document.File
	data []byte
	env  *environment
	out  *file
}

// read compiles the file as far as possible; what is wrong is in the problems.
func read(name string, data []byte, schema *decision.Schema) (*file, *document.File) {
	doc, root, err := document.Parse(name, data)
	if err != nil {
		return nil, doc
	}
	r := &reader{doc: doc, data: data, out: &file{}}
	if m := root.Map("cel", "version", "description", "scenarios", "attributes", "rules", "fallback"); root.IsMap() {
		r.file(root, m, schema)
	}
	return r.out, doc
}

func (r *reader) file(root *document.Node, m *document.Map, schema *decision.Schema) {
	if v := m.Need("cel"); v != nil {
		r.out.name, _ = v.Text()
	}
	r.out.version = r.out.name
	if v := m.Get("version"); v != nil {
		r.out.version, _ = v.Text()
	}
	if v := m.Get("description"); v != nil {
		v.Text()
	}
	if v := m.Get("scenarios"); v != nil {
		r.out.scenarios = v.SomeTexts("leave the field out to decide any scenario")
	}
	names := newNames(schema)
	if v := m.Get("attributes"); v != nil {
		names.declare(v)
	}
	env, err := newEnvironment(names)
	if err != nil {
		root.Errorf("", "%v", err)
		return
	}
	r.env, r.out.names = env, names
	if v := m.Need("rules"); v != nil {
		r.rules(v.List())
	}
	if v := m.Get("fallback"); v != nil {
		f := v.Map("action", "params")
		r.out.fallbackPos, r.out.fallback = v.Pos(), r.action(f)
	} else {
		r.doc.Warnf(root.Pos(), "add fallback: {action: ...}", "no fallback: what no rule matches is answered with abstain")
	}
}

// action reads the fields action and params of a map.
func (r *reader) action(m *document.Map) action {
	var a action
	if v := m.Need("action"); v != nil {
		a.label, _ = v.Label()
	}
	if v := m.Get("params"); v != nil {
		a.params, _ = v.Object()
	}
	return a
}

func (r *reader) rules(nodes []*document.Node) {
	if len(nodes) > maxRules {
		nodes[maxRules].Errorf("", "the file has %d rules, the limit is %d", len(nodes), maxRules)
		return
	}
	seen := map[string]int{}
	for i, n := range nodes {
		r.rule(n, i, seen)
	}
}

func (r *reader) rule(n *document.Node, i int, seen map[string]int) {
	m := n.Map("id", "description", "if", "action", "params")
	if !n.IsMap() {
		return
	}
	out := rule{id: fmt.Sprintf("rule-%d", i+1), pos: n.Pos(), action: r.action(m)}
	if id := m.Get("id"); id != nil {
		out.id, _ = id.Text()
	} else {
		r.doc.Warnf(out.pos, "reports and explanations name rules by id", "the rule has no id; it is called %s", out.id)
	}
	if line, dup := seen[out.id]; dup {
		n.Errorf("give each rule an id of its own", "rule id %q stands twice (first in line %d)", document.Short(out.id), line)
	}
	seen[out.id] = out.pos.Line
	if d := m.Get("description"); d != nil {
		d.Text()
	}
	if c := m.Need("if"); c != nil {
		out.prog, out.reads = r.condition(c)
	}
	r.out.reads.add(out.reads)
	r.out.rules = append(r.out.rules, out)
}

// condition compiles the text of a node and reports what is wrong at its place in the file.
func (r *reader) condition(n *document.Node) (cel.Program, reads) {
	text, ok := n.Text()
	if !ok {
		return nil, reads{}
	}
	if comment := n.TrailingComment(); comment != "" {
		r.doc.Warnf(n.Pos(), "quote the expression", "the rest of the line is a comment: %q", document.Short(comment))
	}
	prog, reads, findings := r.env.compile(text)
	for _, f := range findings {
		r.doc.Errorf(document.Locate(r.data, n, text, f.offset), f.hint, "%s", f.message)
	}
	return prog, reads
}

// Check returns everything that is wrong (errors) or doubtful (warnings) in a file,
// ordered by position. Schema holds the attributes of the data set at hand and may be nil.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	_, doc := read(name, data, schema)
	doc.Problems.Sort()
	return doc.Problems
}
