package cel

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// root is a namespace of attributes, a map in CEL.
type root uint8

const (
	headers root = iota
	query
	env
	metrics
	local
	state
	noRoot
)

var rootNames = [noRoot]string{"headers", "query", "env", "metrics", "local", "state"}

// element is the type of a namespace's values: what comes over the wire is text, metrics
// are measurements, and what a service keeps is known at run time only.
func (r root) element() *cel.Type {
	switch r {
	case metrics:
		return cel.DoubleType
	case local, state:
		return cel.DynType
	}
	return cel.StringType
}

// wants is the attribute type of a namespace's values, null for any.
func (r root) wants() decision.Type {
	switch r {
	case metrics:
		return decision.Double
	case local, state:
		return decision.Null
	}
	return decision.String
}

// split cuts a name below a namespace into the two.
func split(name string) (root, string) {
	first, key, dotted := strings.Cut(name, ".")
	if i := slices.Index(rootNames[:], first); dotted && i >= 0 {
		return root(i), key
	}
	return noRoot, ""
}

// names are the variables of a file: path and method, what it declares, and what the data
// set at hand has outside the namespaces.
type names struct {
	schema    *decision.Schema
	variables map[string]decision.Type
}

func newNames(schema *decision.Schema) *names {
	n := &names{schema: schema, variables: map[string]decision.Type{"path": decision.String, "method": decision.String}}
	for _, f := range schema.Fields() {
		if r, _ := split(f.Name); r == noRoot && reachable(f.Name) {
			n.variables[f.Name] = f.Type
		}
	}
	return n
}

// reachable reports whether CEL can name a variable: dotted identifiers that are no words
// of the language, nor a namespace.
func reachable(name string) bool {
	if !identifiers().MatchString(name) || slices.Contains(rootNames[:], name) {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if slices.Contains(reserved(), part) {
			return false
		}
	}
	return true
}

func identifiers() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
}

// reserved are CEL's words (langdef.md, Syntax).
func reserved() []string {
	return []string{"false", "in", "null", "true", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
		"let", "loop", "package", "namespace", "return", "var", "void", "while"}
}

// declare reads an attributes: block. Names below a namespace have its type and are not
// declared.
func (n *names) declare(block *document.Node) {
	attribute.NewScope(n.schema).Declare(block) // names, types, and what the data set says of them
	for _, e := range block.Map().Entries() {
		r, _ := split(e.Key)
		switch {
		case r != noRoot:
			block.File().Errorf(e.KeyPos, "remove it", "%s: the values of %s are %v in CEL and cannot be declared", document.Short(e.Key), rootNames[r], r.element())
			continue
		case slices.Contains(rootNames[:], e.Key):
			continue // Declare has its say
		case !reachable(e.Key):
			block.File().Errorf(e.KeyPos, "a name has letters, digits, underscores and dots", "%q cannot be a variable of CEL", document.Short(e.Key))
			continue
		}
		if e.Value.IsScalar() && !e.Value.IsNull() {
			text, _ := e.Value.Text()
			if t, err := decision.ParseType(text); err == nil {
				n.variables[e.Key] = t
			}
		}
	}
}

// celType is the type of a variable.
func celType(t decision.Type) *cel.Type {
	switch t {
	case decision.Bool:
		return cel.BoolType
	case decision.Int:
		return cel.IntType
	case decision.Double:
		return cel.DoubleType
	}
	return cel.StringType
}

// options declares the namespaces and variables, in a fixed order so that messages are.
func (n *names) options() []cel.EnvOption {
	var out []cel.EnvOption
	for r := headers; r < noRoot; r++ {
		out = append(out, cel.Variable(rootNames[r], cel.MapType(cel.StringType, r.element())))
	}
	for _, name := range slices.Sorted(maps.Keys(n.variables)) {
		out = append(out, cel.Variable(name, celType(n.variables[name])))
	}
	return out
}
