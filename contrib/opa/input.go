package opa

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/clefbench/clefbench/decision"
)

// namespaces are objects of the input in any case.
func namespaces() []string {
	return []string{"headers", "query", "metrics", "env", "local", "state"}
}

// group is the attributes of a schema with one first part; those without a dot stand in
// the first group, which has no name.
type group struct {
	name   *ast.Term
	first  string
	fields []field
}

type field struct {
	at  int
	key *ast.Term
}

// plan keeps the groups of the last schema, as [decision.Binder] does.
type plan struct {
	policy *policy
	last   atomic.Pointer[bound]
}

type bound struct {
	schema *decision.Schema
	groups []group
}

func (p *plan) of(s *decision.Schema) []group {
	if l := p.last.Load(); l != nil && l.schema == s {
		return l.groups
	}
	b := &bound{schema: s, groups: []group{{}}}
	for _, n := range namespaces() {
		b.groups = append(b.groups, group{name: ast.StringTerm(n), first: n})
	}
	for i, f := range s.Fields() {
		if !p.policy.has(f.Name) {
			continue
		}
		first, key, dotted := strings.Cut(f.Name, ".")
		if !dotted {
			first, key = "", f.Name
		}
		at := slices.IndexFunc(b.groups, func(g group) bool { return g.first == first })
		if at < 0 {
			at = len(b.groups)
			b.groups = append(b.groups, group{name: ast.StringTerm(first), first: first})
		}
		b.groups[at].fields = append(b.groups[at].fields, field{i, ast.StringTerm(key)})
	}
	p.last.Store(b)
	return b.groups
}

// input builds the input document in OPA's own values, which saves the way through Go maps
// that costs as much as a small policy. A name without a dot that is also a first part
// gives way to the object.
func (p *plan) input(attrs *decision.Attrs) ast.Value {
	groups := p.of(attrs.Schema)
	top := make([][2]*ast.Term, 0, len(groups)+len(groups[0].fields))
	top = terms(top, groups[0].fields, attrs)
	for i := range groups[1:] {
		g := &groups[i+1]
		fields := terms(make([][2]*ast.Term, 0, len(g.fields)), g.fields, attrs)
		top = append(top, ast.Item(g.name, ast.NewTerm(ast.NewObject(fields...))))
	}
	return ast.NewObject(top...)
}

func terms(dst [][2]*ast.Term, fields []field, attrs *decision.Attrs) [][2]*ast.Term {
	for _, f := range fields {
		if t := term(attrs.At(f.at)); t != nil {
			dst = append(dst, ast.Item(f.key, t))
		}
	}
	return dst
}

// term converts a value; nil leaves it out: Rego's numbers are JSON's, without NaN and
// infinities.
func term(v decision.Value) *ast.Term {
	switch v.Type() {
	case decision.Bool:
		return ast.InternedTerm(v.Bool())
	case decision.Int:
		return ast.NumberTerm(json.Number(strconv.FormatInt(v.Int(), 10)))
	case decision.Double:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return ast.FloatNumberTerm(f)
		}
	case decision.String:
		return ast.StringTerm(strings.Clone(v.Str())) // terms may outlive the request in OPA's caches
	}
	return nil
}

// objectText writes an object as JSON with sorted keys.
func objectText(m map[string]any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(m)
	return strings.TrimSuffix(b.String(), "\n"), err
}
