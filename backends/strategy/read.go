package strategy

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

const (
	maxRules       = 20_000
	defaultTimeout = 15 * time.Millisecond
)

// rule is one compiled rule.
type rule struct {
	id     string
	at     int32 // its place among the rules
	pos    decision.Position
	cond   *expr.Program
	action *expr.Action
	// text is the condition as written.
	text string
}

// fallback is what answers when no rule does.
type fallback struct {
	pos      decision.Position
	model    string // file name, or empty
	modelPos decision.Position
	timeout  time.Duration
	action   *expr.Action
}

// file is a compiled strategy.
type file struct {
	name, version string
	scenarios     []string
	rules         []rule
	fallback      fallback
	scope         *expr.Scope
	// asks: some rule reads the model.
	asks bool
}

// reader walks a file and adds to its problems.
type reader struct {
	doc  *document.File
	data []byte
	cel  *expr.Compiler
	out  *file
	// strict also refuses what is harmless in a decision but surely a mistake.
	strict bool
	// modelled: the fallback names a model.
	modelled bool
}

// read compiles the file as far as possible; what is wrong is in the problems.
func read(name string, data []byte, schema *decision.Schema, strict bool) (*file, *document.File) {
	return new(reader).read(name, data, schema, strict)
}

func (r *reader) read(name string, data []byte, schema *decision.Schema, strict bool) (*file, *document.File) {
	doc, root, err := document.Parse(name, data)
	if err != nil {
		return nil, doc
	}
	scope := expr.NewScope(schema)
	cel, err := expr.NewCompiler(scope, data)
	if err != nil {
		root.Errorf("", "%v", err)
		return nil, doc
	}
	*r = reader{doc: doc, data: data, cel: cel, out: &file{scope: scope}, strict: strict}
	if m := root.Map("strategy", "version", "description", "scenarios", "attributes", "rules", "fallback"); root.IsMap() {
		r.file(m)
	}
	return r.out, doc
}

func (r *reader) file(m *document.Map) {
	if v := m.Need("strategy"); v != nil {
		name, ok := v.Text()
		if r.out.name = name; ok && name == "" && r.strict {
			v.Errorf("give the strategy a name", "strategy is empty")
		}
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
	if v := m.Get("attributes"); v != nil {
		r.out.scope.Declare(v)
		if r.strict {
			r.out.scope.CheckDeclared(v)
		}
	}
	// The fallback comes first: with a model, model.score is asked for; without one, only
	// the data set could have it.
	if v := m.Get("fallback"); v != nil {
		r.fallback(v)
	} else {
		r.doc.Warnf(decision.Position{File: r.doc.Name, Line: 1, Column: 1},
			"add a fallback with a model or an action", "no fallback: what no rule matches is answered with abstain")
	}
	if !r.modelled {
		r.out.scope.NoModel()
	}
	if v := m.Need("rules"); v != nil {
		r.rules(v.List())
	}
}

func (r *reader) fallback(n *document.Node) {
	m := n.Map("model", "timeout_ms", "action", "params")
	f := &r.out.fallback
	f.pos, f.timeout = n.Pos(), defaultTimeout
	if v := m.Get("model"); v != nil {
		r.model(v)
	}
	if v := m.Get("timeout_ms"); v != nil {
		ms, _ := v.Int(1, 600_000)
		f.timeout = time.Duration(ms) * time.Millisecond
		if f.model == "" {
			r.doc.Warnf(v.Pos(), "remove it", "timeout_ms without a model has no effect")
		}
	}
	f.action = r.action(m, true)
	if n.IsMap() && f.model == "" && m.Get("action") == nil {
		n.Errorf("name a model, an action, or both", "the fallback has neither a model nor an action")
	}
}

// model reads the name of the model's file.
func (r *reader) model(n *document.Node) {
	f := &r.out.fallback
	f.model, _ = n.Text()
	f.modelPos, r.modelled = n.Pos(), true
	r.out.scope.AskModel()
	local := filepath.Clean(filepath.FromSlash(f.model))
	switch {
	case f.model == "":
		n.Errorf("name the model's file, or remove the field", "fallback.model is empty")
	case !r.strict:
	case local == filepath.Base(r.doc.Name):
		n.Errorf("name a model file, as in model.json", "fallback.model is the strategy itself")
	case !filepath.IsLocal(local) || local == "." || strings.HasPrefix(f.model, "/"):
		n.Errorf("a model stands beside its strategy: write its file name", "fallback.model %q leads out of the strategy's directory", document.Short(f.model))
	}
}

// action reads the fields action and params of a rule or of the fallback.
func (r *reader) action(m *document.Map, fixed bool) *expr.Action {
	a, params := m.Get("action"), m.Get("params")
	switch {
	case a != nil:
		return expr.ReadAction(a, params, r.out.scope, expr.ActionOptions{Data: r.data, Fixed: fixed})
	case params != nil:
		params.Errorf("add the action, or remove params", "params without an action")
	}
	return nil
}

func (r *reader) rules(nodes []*document.Node) {
	if len(nodes) > maxRules {
		nodes[maxRules].Errorf("split the file by scenario", "the file has %d rules, the limit is %d", len(nodes), maxRules)
		return
	}
	seen := map[string]int{}
	for i, n := range nodes {
		r.rule(n, i, seen)
	}
	if r.strict {
		r.doubtful()
	}
}

func (r *reader) rule(n *document.Node, i int, seen map[string]int) {
	m := n.Map("id", "description", "if", "action", "params")
	if !n.IsMap() {
		return
	}
	out := rule{pos: n.Pos()}
	if id := m.Get("id"); id != nil {
		out.id, _ = id.Text()
	} else {
		out.id = fmt.Sprintf("rule-%d", i+1)
		r.doc.Warnf(out.pos, "reports and explanations name rules by id", "the rule has no id; it is called %s", out.id)
	}
	if line, dup := seen[out.id]; dup {
		n.Errorf("give each rule an id of its own", "rule id %q stands twice (first in line %d)", out.id, line)
	}
	seen[out.id] = out.pos.Line
	if d := m.Get("description"); d != nil {
		d.Text()
	}
	if cond := m.Need("if"); cond != nil {
		out.cond = r.condition(cond)
		if out.cond != nil {
			out.text, _ = cond.Text()
		}
	}
	if m.Need("action") != nil {
		out.action = r.action(m, false)
	}
	out.at = int32(len(r.out.rules))
	r.out.rules = append(r.out.rules, out)
}

func (r *reader) condition(n *document.Node) *expr.Program {
	p := r.cel.Bool(n)
	if p == nil {
		return nil
	}
	for _, a := range p.Reads() {
		r.out.asks = r.out.asks || a.Late
	}
	return p
}

// ModelOf returns the model that the strategy's fallback names, a file name relative to
// the strategy file, or "" when it names none. The error is a document.Problems.
func ModelOf(name string, data []byte) (string, error) {
	doc, root, err := document.Parse(name, data)
	if err != nil {
		return "", err
	}
	model := ""
	if f := root.Map().Get("fallback"); f != nil && f.IsMap() {
		if v := f.Map().Get("model"); v != nil {
			model, _ = v.Text()
		}
	}
	return model, doc.Err()
}
