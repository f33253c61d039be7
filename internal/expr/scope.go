package expr

import (
	"fmt"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// Attr is an attribute that a file reads.
type Attr struct {
	Name string
	// Slot is the position of the name in [Scope.Names].
	Slot int
	// Type is null when it is known at run time only.
	Type decision.Type
	// Late: the value comes from [Row.Late], not from the request.
	Late bool
}

// UnknownError reports a name that is no attribute.
type UnknownError struct {
	Name string
	// Hint says what to write instead.
	Hint string
}

// Error says that the attribute is unknown.
func (e *UnknownError) Error() string { return fmt.Sprintf("unknown attribute %q", e.Name) }

// Scope is the attribute environment of one file: the built-in roots, the file's own
// declarations and the attributes of the data set at hand. It gives a slot to each name
// that is used.
type Scope struct {
	schema   *decision.Schema
	declared map[string]decision.Type
	order    []string // declared names in file order
	slots    map[string]int
	attrs    []Attr
	late     bool
}

// NewScope returns the environment over a data set's attributes; schema may be nil.
func NewScope(schema *decision.Schema) *Scope {
	return &Scope{schema: schema, declared: map[string]decision.Type{}, slots: map[string]int{}}
}

// AskModel makes every name below `model.` late: it is answered by [Row.Late] instead
// of by the request.
func (s *Scope) AskModel() { s.late = true }

// Names returns the names in use, in slot order, for [decision.NewBinder].
func (s *Scope) Names() []string {
	names := make([]string, len(s.attrs))
	for i, a := range s.attrs {
		names[i] = a.Name
	}
	return names
}

// Attr returns the attribute of a slot.
func (s *Scope) Attr(slot int) Attr { return s.attrs[slot] }

// Declare reads an `attributes:` block, a map of name to type (bool, int, double or
// string). A declaration may give a type to a name below a built-in root. A type that
// the data set contradicts is a problem, save that its ints may be read as double.
func (s *Scope) Declare(n *document.Node) {
	for _, e := range n.Map().Entries() {
		text, ok := e.Value.Text()
		if !ok {
			continue
		}
		t, err := decision.ParseType(text)
		if err != nil {
			e.Value.Errorf(typeHint(text), "%v", err)
			continue
		}
		if hint := badName(e.Key); hint != "" {
			e.Value.File().Errorf(e.KeyPos, hint, "%q is no attribute name", e.Key)
			continue
		}
		name := s.canonical(e.Key)
		if i := s.schema.Index(name); i >= 0 {
			have := s.schema.Fields()[i].Type
			if have != t && !(have == decision.Int && t == decision.Double) {
				e.Value.Errorf("declare it as "+have.String(), "%s is declared %v, but the data set has %v", e.Key, t, have)
				continue
			}
		}
		s.declared[name] = t
		s.order = append(s.order, name)
	}
}

// typeHint translates the type names of other languages.
func typeHint(name string) string {
	switch strings.ToLower(name) {
	case "float", "float32", "float64", "number", "decimal":
		return didYouMean("double")
	case "integer", "int64", "int32", "long":
		return didYouMean("int")
	case "str", "text":
		return didYouMean("string")
	case "boolean":
		return didYouMean("bool")
	}
	return ""
}

// badName returns a hint for a name that could never be read, or "".
func badName(name string) string {
	switch {
	case name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return "a name has no empty part"
	case strings.ContainsAny(name, " \t\r\n\"'{}[]()"):
		return "a name has letters, digits, dots, dashes and underscores"
	case openRoot(name):
		return "it is a built-in namespace: declare names below it, as in " + name + ".x"
	}
	return ""
}

// openRoot reports whether the name is a built-in namespace.
func openRoot(name string) bool {
	_, ok := rootType(name)
	return ok
}

// rootType returns the type of the undeclared names below a built-in namespace. Headers,
// query parameters and environment are text on the wire; metrics are measurements; what
// the service keeps itself (local, state) and what a model answers is known only at run
// time.
func rootType(root string) (decision.Type, bool) {
	switch root {
	case "headers", "query", "env":
		return decision.String, true
	case "metrics":
		return decision.Double, true
	case "local", "state", "model":
		return decision.Null, true
	}
	return decision.Null, false
}

func roots() []string {
	return []string{"headers", "query", "metrics", "env", "local", "state", "model"}
}

// Use resolves a name and gives it a slot. Names below headers are read in lower case,
// as HTTP has them. The error is an [*UnknownError].
func (s *Scope) Use(name string) (Attr, error) {
	name, t, ok := s.lookup(name)
	if !ok {
		return Attr{}, &UnknownError{Name: name, Hint: s.hint(name)}
	}
	slot, ok := s.slots[name]
	if !ok {
		slot = len(s.attrs)
		s.slots[name] = slot
		s.attrs = append(s.attrs, Attr{Name: name, Slot: slot, Type: t, Late: s.late && strings.HasPrefix(name, "model.")})
	}
	return s.attrs[slot], nil
}

// lookup returns the canonical name and its type.
func (s *Scope) lookup(name string) (string, decision.Type, bool) {
	name = s.canonical(name)
	if t, ok := s.known(name); ok {
		return name, t, true
	}
	root, _, dotted := strings.Cut(name, ".")
	switch name {
	case "method", "path", "model.action":
		return name, decision.String, true
	case "model.score", "model.confidence":
		return name, decision.Double, true
	}
	if strings.HasPrefix(name, "model.probability.") {
		return name, decision.Double, true
	}
	t, ok := rootType(root)
	return name, t, ok && dotted && badName(name) == ""
}

// canonical returns the name of a header in lower case, unless the data set has it as it
// is written.
func (s *Scope) canonical(name string) string {
	if rest, ok := strings.CutPrefix(name, "headers."); ok && s.schema.Index(name) < 0 {
		return "headers." + strings.ToLower(rest)
	}
	return name
}

// known looks a name up among the declarations and the data set's attributes.
func (s *Scope) known(name string) (decision.Type, bool) {
	if t, ok := s.declared[name]; ok {
		return t, true
	}
	if i := s.schema.Index(name); i >= 0 {
		return s.schema.Fields()[i].Type, true
	}
	return decision.Null, false
}

// hint proposes an attribute for a name that is none: the name without leading parts
// (request.path is path), the nearest known name, or the nearest root.
func (s *Scope) hint(name string) string {
	if openRoot(name) {
		return "name one value of it, as in " + name + ".x"
	}
	for rest := name; ; {
		_, after, dotted := strings.Cut(rest, ".")
		if !dotted {
			break
		}
		if _, _, ok := s.lookup(after); ok {
			return didYouMean(after)
		}
		rest = after
	}
	if c := document.Closest(name, s.candidates()); c != "" {
		return didYouMean(c)
	}
	if root, rest, dotted := strings.Cut(name, "."); dotted {
		if c := document.Closest(root, roots()); c != "" {
			return didYouMean(c + "." + rest)
		}
	}
	return "declare it in the attributes: block, as in " + name + ": double"
}

func (s *Scope) candidates() []string {
	names := append([]string{"method", "path"}, s.order...)
	for _, f := range s.schema.Fields() {
		names = append(names, f.Name)
	}
	return names
}

func didYouMean(s string) string { return fmt.Sprintf("did you mean %q?", s) }

// Suggest returns a did-you-mean, or the list of what is known.
func Suggest(s string, known []string) string {
	if c := document.Closest(s, known); c != "" {
		return didYouMean(c)
	}
	return "known: " + strings.Join(known, ", ")
}
