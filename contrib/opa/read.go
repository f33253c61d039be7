package opa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// MaxSize bounds a policy file. OPA's parser itself bounds nesting.
const MaxSize = 1 << 20

// ruleName is the rule whose value is the decision.
const ruleName = "decision"

// policy is a prepared file.
type policy struct {
	name  string
	query rego.PreparedEvalQuery
	// pos is where the decision rule first stands.
	pos decision.Position
	// reads are the attributes that the policy names; open: it may read others.
	reads []string
	open  bool
}

// unsafeBuiltins are the functions whose answer is not a function of the request.
func unsafeBuiltins() map[string]struct{} {
	return map[string]struct{}{"http.send": {}, "net.lookup_ip_addr": {}, "opa.runtime": {}}
}

// read parses, compiles and prepares a policy; what is wrong is in the problems.
func read(name string, data []byte) (*policy, *document.File) {
	doc := &document.File{Name: name}
	if len(data) > MaxSize {
		doc.Errorf(decision.Position{File: name}, "", "file has %d bytes, the limit is %d", len(data), MaxSize)
		return nil, doc
	}
	module, err := ast.ParseModule(name, string(data))
	switch {
	case err != nil:
		report(doc, err)
		return nil, doc
	case module == nil: // OPA says so of a file without any statement
		doc.Errorf(decision.Position{File: name, Line: 1, Column: 1}, "", "file is empty")
		return nil, doc
	}
	p := &policy{name: strings.TrimPrefix(module.Package.Path.String(), "data.")}
	i := slices.IndexFunc(module.Rules, func(r *ast.Rule) bool { return r.Head.Ref().String() == ruleName })
	if i < 0 {
		doc.Errorf(position(module.Package.Location), `write decision := "action" if { ... }`, "the policy has no rule %q", ruleName)
		return nil, doc
	}
	p.pos = position(module.Rules[i].Location)
	p.references(module)
	p.query, err = rego.New(rego.ParsedModule(module), rego.Query(module.Package.Path.String()+"."+ruleName),
		rego.UnsafeBuiltins(unsafeBuiltins()), rego.Strict(true)).PrepareForEval(context.Background())
	if err != nil {
		report(doc, err)
		return nil, doc
	}
	return p, doc
}

// report adds OPA's errors with their places.
func report(doc *document.File, err error) {
	var list ast.Errors
	var many rego.Errors
	switch {
	case errors.As(err, &list):
		for _, e := range list {
			one(doc, e)
		}
	case errors.As(err, &many):
		for _, e := range many {
			report(doc, e)
		}
	default:
		var e *ast.Error
		if errors.As(err, &e) {
			one(doc, e)
			return
		}
		doc.Errorf(decision.Position{File: doc.Name, Line: 1, Column: 1}, "", "%v", err)
	}
}

func one(doc *document.File, e *ast.Error) {
	pos, hint := decision.Position{File: doc.Name, Line: 1, Column: 1}, ""
	if e.Location != nil {
		pos.Line, pos.Column = e.Location.Row, e.Location.Col
	}
	switch {
	case strings.Contains(e.Message, "unsafe built-in"):
		hint = "a decision depends on its request only"
	case strings.Contains(e.Message, "`if` keyword is required"):
		hint = "this is Rego v1: write decision := x if { ... }"
	}
	doc.Errorf(pos, hint, "%s", e.Message)
}

func position(l *ast.Location) decision.Position {
	return decision.Position{File: l.File, Line: l.Row, Column: l.Col}
}

// references collects what the policy reads below input: input.a and input.a.b.
func (p *policy) references(m *ast.Module) {
	ast.WalkRefs(m, func(r ast.Ref) bool {
		if !r.HasPrefix(ast.InputRootRef) {
			return false
		}
		var parts []string
		for _, t := range r[1:] {
			s, ok := t.Value.(ast.String)
			if !ok || len(parts) == 2 {
				break
			}
			parts = append(parts, string(s))
		}
		switch name := strings.Join(parts, "."); {
		case name == "" || len(parts) == 1 && slices.Contains(namespaces(), name):
			p.open = true
		case !slices.Contains(p.reads, name):
			p.reads = append(p.reads, name)
		}
		return false
	})
	// A bare `input` is a variable, not a reference.
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if v, ok := t.Value.(ast.Var); ok && v.Equal(ast.InputRootDocument.Value) {
			p.open = p.open || !p.rooted(m, t)
		}
		return false
	})
}

// rooted reports whether a term is the first of a reference that goes on.
func (p *policy) rooted(m *ast.Module, input *ast.Term) bool {
	found := false
	ast.WalkRefs(m, func(r ast.Ref) bool {
		found = found || len(r) > 1 && r[0] == input
		return found
	})
	return found
}

// has reports whether the policy may read an attribute.
func (p *policy) has(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return p.open || slices.Contains(p.reads, name) || slices.Contains(p.reads, first)
}

// Check returns everything that is wrong in a policy file.
func Check(name string, data []byte) document.Problems {
	_, doc := read(name, data)
	doc.Problems.Sort()
	return doc.Problems
}

// badDecision says what a decision document has wrong.
type badDecision struct{ what string }

func (e badDecision) Error() string { return e.what }

// answer is a decision document.
type answer struct{ action, params, rule string }

// answerOf reads the value of the decision rule.
func answerOf(v any) (answer, error) {
	switch v := v.(type) {
	case string:
		return answer{action: v}, checkAction(v)
	case map[string]any:
		return objectAnswer(v)
	}
	return answer{}, badDecision{fmt.Sprintf("the decision is %T, not a text or an object", v)}
}

func checkAction(s string) error {
	if s == "" {
		return badDecision{"the decision names no action"}
	}
	return nil
}

func objectAnswer(m map[string]any) (answer, error) {
	var a answer
	for key, dst := range map[string]*string{"action": &a.action, "rule": &a.rule} {
		v, ok := m[key]
		if s, text := v.(string); text {
			*dst = s
		} else if ok {
			return a, badDecision{fmt.Sprintf("%s is %T, not a text", key, v)}
		}
	}
	if err := checkAction(a.action); err != nil {
		return a, err
	}
	params, ok := m["params"]
	if !ok {
		return a, nil
	}
	object, ok := params.(map[string]any)
	if !ok {
		return a, badDecision{fmt.Sprintf("params is %T, not an object", params)}
	}
	var err error
	a.params, err = objectText(object)
	return a, err
}
