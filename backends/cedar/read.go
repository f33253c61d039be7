package cedar

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// maxActions bounds the list of actions, each of which is a question to Cedar.
const maxActions = 20_000

// action is one action that may be chosen, or the fallback.
type action struct {
	label, params string
	pos           decision.Position
	uid           cedar.EntityUID
	policies      policies
}

// file is a mapping with its policies.
type file struct {
	name, version string
	scenarios     []string
	policyFile    string
	round         bool
	actions       []action
	// fallback has no label when the file has none.
	fallback action
	policies []*policy
	// reads are the attributes that the policies name; open: they may read others.
	reads []string
	open  bool
}

// read reads a mapping; what is wrong is in the problems.
func read(name string, data []byte) (*file, *document.File) {
	doc, root, err := document.Parse(name, data)
	if err != nil {
		return nil, doc
	}
	f := &file{}
	m := root.Map("cedar", "version", "description", "scenarios", "policies", "doubles", "actions", "fallback")
	if !root.IsMap() {
		return f, doc
	}
	f.head(m)
	if v := m.Need("policies"); v != nil {
		f.policyFile = policyFile(v)
	}
	if v := m.Get("doubles"); v != nil {
		s, _ := v.Text()
		if f.round = s == "round"; s != "round" && s != "exact" {
			v.Errorf("write exact (leave out what is no decimal of four digits) or round", "doubles is exact or round")
		}
	}
	if v := m.Need("actions"); v != nil {
		f.list(v)
	}
	if v := m.Get("fallback"); v != nil {
		f.fallback = readAction(v)
	}
	return f, doc
}

func (f *file) head(m *document.Map) {
	if v := m.Need("cedar"); v != nil {
		f.name, _ = v.Text()
	}
	f.version = f.name
	if v := m.Get("version"); v != nil {
		f.version, _ = v.Text()
	}
	if v := m.Get("description"); v != nil {
		v.Text()
	}
	if v := m.Get("scenarios"); v != nil {
		f.scenarios = v.SomeTexts("leave the field out to decide any scenario")
	}
}

// policyFile reads the name of the policy file, which stands beside the mapping or below.
func policyFile(n *document.Node) string {
	name, ok := n.Text()
	if ok && (name == "" || !filepath.IsLocal(filepath.FromSlash(name)) || strings.HasPrefix(name, "/")) {
		n.Errorf("policies stand beside their mapping: write the file's name", "policies %q leads out of the mapping's directory", document.Short(name))
	}
	return name
}

func (f *file) list(n *document.Node) {
	nodes := n.List()
	switch {
	case !n.IsList():
	case len(nodes) == 0:
		n.Errorf("list the actions in order of preference", "actions is empty")
	case len(nodes) > maxActions:
		nodes[maxActions].Errorf("", "the file has %d actions, the limit is %d", len(nodes), maxActions)
		return
	}
	seen := map[string]int{}
	for _, x := range nodes {
		a := readAction(x)
		if line, dup := seen[a.label]; dup && a.label != "" {
			x.Errorf("", "action %q stands twice (first in line %d)", document.Short(a.label), line)
		}
		seen[a.label] = a.pos.Line
		f.actions = append(f.actions, a)
	}
}

// readAction reads a label, or a map of action and params.
func readAction(n *document.Node) action {
	a := action{pos: n.Pos()}
	label := n
	if n.IsMap() {
		m := n.Map("action", "params")
		label = m.Need("action")
		if v := m.Get("params"); v != nil {
			a.params, _ = v.Object()
		}
	}
	if label != nil {
		a.label, _ = label.Label()
	}
	a.uid = cedar.NewEntityUID(actionType, cedar.String(a.label))
	return a
}

// link gives each action the policies that may apply to it, and looks for those that say
// nothing about any.
func (f *file) link(doc *document.File, list []*policy) {
	f.policies = list
	known := make([]string, len(f.actions))
	for i := range f.actions {
		a := &f.actions[i]
		known[i] = a.label
		permits := false
		for _, p := range list {
			if p.applies(a.uid) {
				a.policies = append(a.policies, p)
				permits = permits || p.p.Effect() == cedar.Permit
			}
		}
		if !permits {
			doc.Warnf(a.pos, "Cedar denies what nothing permits", "no policy permits %s, so it is never chosen", a.uid)
		}
	}
	policyDoc := &document.File{Name: f.policyFile}
	for _, p := range list {
		f.read(p)
		for _, uid := range p.named() {
			if !slices.ContainsFunc(f.actions, func(a action) bool { return a.uid == uid }) {
				hint := ""
				if c := document.Closest(string(uid.ID), known); c != "" {
					hint = fmt.Sprintf("did you mean %s::%q?", actionType, c)
				}
				policyDoc.Warnf(p.pos, hint, "policy %q names %s, which the mapping does not list", document.Short(p.id), uid)
			}
		}
	}
	doc.Problems = append(doc.Problems, policyDoc.Problems...)
}

func (f *file) read(p *policy) {
	names, open := p.reads()
	f.open = f.open || open
	for _, n := range names {
		if attribute.OpenRoot(n) {
			f.open = true
		} else if !slices.Contains(f.reads, n) {
			f.reads = append(f.reads, n)
		}
	}
}

// both reads the two files, as far as possible.
func both(name string, data []byte, policyName string, policyData []byte) (*file, *document.File) {
	f, doc := read(name, data)
	policyDoc := &document.File{Name: policyName}
	list := readPolicies(policyDoc, policyData)
	ok := doc.Problems.Errors()+policyDoc.Problems.Errors() == 0
	doc.Problems = append(doc.Problems, policyDoc.Problems...)
	if ok {
		f.policyFile = policyName
		f.link(doc, list)
	}
	return f, doc
}

// PoliciesOf returns the policy file that a mapping names, relative to the mapping. The
// error is a document.Problems.
func PoliciesOf(name string, data []byte) (string, error) {
	f, doc := read(name, data)
	if err := doc.Err(); err != nil {
		return "", err
	}
	return f.policyFile, nil
}

// Check returns everything that is wrong (errors) or doubtful (warnings) in a mapping and
// its policies, those of the mapping first.
func Check(name string, data []byte, policyName string, policyData []byte) document.Problems {
	_, doc := both(name, data, policyName, policyData)
	return doc.Problems
}
