package attribute

import (
	"errors"
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
	// cause is set where the name is well known, but has nothing to stand for.
	cause string
}

// Error says that the attribute is unknown.
func (e *UnknownError) Error() string {
	if e.cause != "" {
		return fmt.Sprintf("%s: %s", document.Short(e.Name), e.cause)
	}
	return fmt.Sprintf("unknown attribute %q", document.Short(e.Name))
}

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
	noModel  bool
	closed   bool // the file kind has no attributes: block
	warned   map[string]bool
}

// NewScope returns the environment over a data set's attributes; schema may be nil.
func NewScope(schema *decision.Schema) *Scope {
	return &Scope{schema: schema, declared: map[string]decision.Type{}, slots: map[string]int{}, warned: map[string]bool{}}
}

// NewClosedScope returns the environment of a file that has no `attributes:` block:
// beside the built-in names it knows only the data set's attributes.
func NewClosedScope(schema *decision.Schema) *Scope {
	s := NewScope(schema)
	s.closed = true
	return s
}

// AskModel makes every name below `model.` late: it is answered by [Row.Late] instead
// of by the request.
func (s *Scope) AskModel() { s.late = true }

// NoModel makes every name below `model.` unknown that the data set does not record,
// declared or not: nothing else could answer it.
func (s *Scope) NoModel() { s.noModel = true }

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

// CheckDeclared adds what an `attributes:` block declares in vain: another type for a
// built-in name that has one, and names below `model.`, which the model answers.
func (s *Scope) CheckDeclared(n *document.Node) {
	for _, e := range n.Map().Entries() {
		t, err := decision.ParseType(scalarText(e.Value))
		if err != nil || s.schema.Index(e.Key) >= 0 {
			continue // Declare has its say
		}
		switch {
		case strings.HasPrefix(e.Key, "model."):
			n.File().Errorf(e.KeyPos, "remove it", "%s is answered by the model and cannot be declared", document.Short(e.Key))
		case (e.Key == "path" || e.Key == "method") && t != decision.String:
			e.Value.Errorf("remove it: built-in names need no declaration", "%s is built in as string, it cannot be %v", e.Key, t)
		}
	}
}

// scalarText is the text of a scalar, and "" for anything else, without a problem.
func scalarText(n *document.Node) string {
	if !n.IsScalar() || n.IsNull() {
		return ""
	}
	s, _ := n.Text()
	return s
}

// WarnUnrecorded warns, once for each name, of an attribute that the data set at hand
// does not record and the file does not declare: it is missing in every request, and a
// typo below a built-in root looks just like that.
func (s *Scope) WarnUnrecorded(f *document.File, pos decision.Position, a Attr) {
	if _, known := s.known(a.Name); known || s.schema == nil || a.Late || s.warned[a.Name] {
		return
	}
	s.warned[a.Name] = true
	hint := "it will be missing in every request"
	if c := s.recorded(a.Name); c != "" {
		hint = didYouMean(c)
	}
	f.Warnf(pos, hint, "the data set does not record %s", document.Short(a.Name))
}

// recorded returns the attribute of the data set that a name was probably meant as: one
// below the same root, or the same name below another root. The roots are left out of
// the comparison, or their length would make any two names alike.
func (s *Scope) recorded(name string) string {
	root, rest, _ := strings.Cut(name, ".")
	var same []string
	other := ""
	for _, f := range s.schema.Fields() {
		switch r, x, _ := strings.Cut(f.Name, "."); {
		case r == root && x != "":
			same = append(same, x)
		case rest != "" && x == rest, f.Name == rest:
			other = f.Name
		}
	}
	if c := document.Closest(rest, same); c != "" {
		return root + "." + c
	}
	return other
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
	case OpenRoot(name):
		return "it is a built-in namespace: declare names below it, as in " + name + ".x"
	}
	return ""
}

// OpenRoot reports whether the name is a built-in namespace.
func OpenRoot(name string) bool {
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
	name, t, ok := s.Lookup(name)
	if !ok {
		return Attr{}, s.unknown(name)
	}
	slot, ok := s.slots[name]
	if !ok {
		slot = len(s.attrs)
		s.slots[name] = slot
		s.attrs = append(s.attrs, Attr{Name: name, Slot: slot, Type: t, Late: s.late && strings.HasPrefix(name, "model.")})
	}
	return s.attrs[slot], nil
}

// unanswered reports the names below `model.` that [Scope.NoModel] speaks of.
func (s *Scope) unanswered(name string) bool {
	return s.noModel && strings.HasPrefix(name, "model.") && s.schema.Index(name) < 0
}

func (s *Scope) unknown(name string) error {
	if s.unanswered(name) {
		return &UnknownError{Name: name, Hint: "name a model in fallback.model", cause: "the file names no model that could answer it"}
	}
	return &UnknownError{Name: name, Hint: s.hint(name)}
}

// Lookup returns the canonical name and its type, and whether there is such an attribute;
// it gives no slot.
func (s *Scope) Lookup(name string) (string, decision.Type, bool) {
	name = s.canonical(name)
	if s.unanswered(name) {
		return name, decision.Null, false
	}
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
	if root := strings.TrimRight(name, "."); OpenRoot(root) {
		return "name one value of it, as in " + root + ".x"
	}
	for rest := name; ; {
		_, after, dotted := strings.Cut(rest, ".")
		if !dotted {
			break
		}
		if _, _, ok := s.Lookup(after); ok {
			return didYouMean(after)
		}
		rest = after
	}
	if c := document.Closest(name, s.candidates()); c != "" {
		return didYouMean(c)
	}
	if root, rest, dotted := strings.Cut(name, "."); dotted {
		if c := document.Closest(root, roots()); c != "" && badName(c+"."+rest) == "" {
			return didYouMean(c + "." + rest)
		}
	}
	switch bad := badName(name); {
	case bad != "":
		return bad
	case s.closed:
		return "a name outside the built-in roots must be recorded: check the file against a data set that has it"
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

// Declared reports whether the file itself declares the canonical name.
func (s *Scope) Declared(name string) bool {
	_, ok := s.declared[name]
	return ok
}

// HintOf returns the hint of an [*UnknownError], or a general one for templates.
func HintOf(err error) string {
	var u *UnknownError
	if errors.As(err, &u) {
		return u.Hint
	}
	return "templates read headers.name, path and declared attributes"
}

// Suggest returns a did-you-mean, or the list of what is known.
func Suggest(s string, known []string) string {
	if c := document.Closest(s, known); c != "" {
		return didYouMean(c)
	}
	return "known: " + strings.Join(known, ", ")
}
