package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/secret"
)

// segment is literal text, or a reference to an attribute when attr is set, or the place
// of an action's tags.
type segment struct {
	text string
	attr *Attr
	tags tagPlace
}

// parseTemplate cuts text with `{{ name }}` references into segments, or says what is
// wrong. References may name headers.*, path, and attributes that the file or the data
// set declares outside the other built-in namespaces: what a template can read ends up
// in answers and logs, so the environment and credentials cannot be read.
func parseTemplate(text string, scope *Scope) ([]segment, *finding) {
	var out []segment
	rest, offset := text, 0
	for {
		before, after, found := strings.Cut(rest, "{{")
		if before != "" {
			out = append(out, segment{text: before})
		}
		if !found {
			return out, nil
		}
		offset += utf8.RuneCountInString(before)
		inner, tail, closed := strings.Cut(after, "}}")
		if !closed {
			return nil, &finding{offset, "{{ without }}", "write {{ name }}"}
		}
		name := strings.TrimSpace(inner)
		at := offset + 2 + utf8.RuneCountInString(inner[:strings.Index(inner, name)])
		a, err := templateAttr(name, scope)
		if err != nil {
			return nil, &finding{at, err.Error(), HintOf(err)}
		}
		out = append(out, segment{attr: &a})
		rest = tail
		offset += utf8.RuneCountInString(inner) + 4
	}
}

func templateAttr(name string, scope *Scope) (Attr, error) {
	if name == "" {
		return Attr{}, errors.New("{{ }} without a name")
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) }); i >= 0 {
		return Attr{}, fmt.Errorf("%q is not the name of an attribute", name)
	}
	canonical, _, ok := scope.Lookup(name)
	if ok && !scope.Declared(canonical) && !readable(canonical) {
		return Attr{}, fmt.Errorf("a template cannot read %s", canonical)
	}
	if ok && secret.Attribute(canonical) {
		return Attr{}, fmt.Errorf("%s holds a credential and cannot be copied into an answer", canonical)
	}
	return scope.Use(name)
}

func nameRune(r rune) bool {
	return r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func readable(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	return root == "headers" || root != "method" && !attribute.OpenRoot(root)
}

// value returns what a reference renders as; false when the attribute is absent or NaN,
// which no key and no body should hold.
func (s *segment) value(row *Row) (string, bool) {
	v := row.Get(s.attr)
	switch {
	case v == nil:
		return "", false
	case v.Type() == decision.String:
		return v.Str(), true
	case v.Double() != v.Double():
		return "", false
	}
	return v.String(), true
}
