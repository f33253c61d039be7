package decision

import (
	"fmt"
	"sync/atomic"
)

// Field names and types one attribute: "headers.user-agent" string,
// "metrics.edge_error_rate_1m" double.
type Field struct {
	Name string
	Type Type
}

// Schema is an immutable, ordered set of attributes. Requests of one source share one
// Schema by pointer; a nil *Schema is the empty one.
type Schema struct {
	fields []Field
	index  map[string]int
}

// NewSchema returns the schema of the fields, in their order. A name may stand only
// once, and needs a type other than null.
func NewSchema(fields ...Field) (*Schema, error) {
	s := &Schema{fields: append([]Field(nil), fields...), index: make(map[string]int, len(fields))}
	for i, f := range fields {
		if f.Name == "" || f.Type == Null || f.Type > String {
			return nil, fmt.Errorf("attribute %d: name %q with type %v", i, f.Name, f.Type)
		}
		if _, dup := s.index[f.Name]; dup {
			return nil, fmt.Errorf("attribute %q is declared twice", f.Name)
		}
		s.index[f.Name] = i
	}
	return s, nil
}

// Union returns the attributes of all schemas in order of first appearance. A name
// with two types is an error: a data set has one type for each attribute.
func Union(schemas ...*Schema) (*Schema, error) {
	var fields []Field
	seen := map[string]Type{}
	for _, s := range schemas {
		for _, f := range s.Fields() {
			t, ok := seen[f.Name]
			if ok && t != f.Type {
				return nil, fmt.Errorf("attribute %q is %v in one place and %v in another", f.Name, t, f.Type)
			}
			if !ok {
				seen[f.Name] = f.Type
				fields = append(fields, f)
			}
		}
	}
	return NewSchema(fields...)
}

// Len returns the number of attributes.
func (s *Schema) Len() int {
	if s == nil {
		return 0
	}
	return len(s.fields)
}

// Fields returns the attributes in order; the slice must not be changed.
func (s *Schema) Fields() []Field {
	if s == nil {
		return nil
	}
	return s.fields
}

// Index returns the position of a name, or -1.
func (s *Schema) Index(name string) int {
	if s != nil {
		if i, ok := s.index[name]; ok {
			return i
		}
	}
	return -1
}

// Attrs is one row of attribute values. Values runs parallel to the schema's fields
// and may be shorter: what is missing at its end is null.
type Attrs struct {
	Schema *Schema
	Values []Value
}

// Get returns the value of a name; absent is null.
func (a Attrs) Get(name string) Value { return a.At(a.Schema.Index(name)) }

// At returns the value at a position of the schema; out of range is null.
func (a Attrs) At(i int) Value {
	if i < 0 || i >= len(a.Values) {
		return Value{}
	}
	return a.Values[i]
}

// Binder resolves a fixed list of names against whichever schema a request carries.
// The last schema's positions are cached, so that the usual case (one schema for all
// requests) costs one pointer comparison. It is safe for concurrent use.
type Binder struct {
	names []string
	last  atomic.Pointer[binding]
}

type binding struct {
	schema *Schema
	at     []int
}

// NewBinder returns a Binder for the names.
func NewBinder(names ...string) *Binder { return &Binder{names: names} }

// Bind returns, for each name, its position in s, or -1. The slice is shared: it must
// not be changed.
func (b *Binder) Bind(s *Schema) []int {
	if l := b.last.Load(); l != nil && l.schema == s {
		return l.at
	}
	at := make([]int, len(b.names))
	for i, n := range b.names {
		at[i] = s.Index(n)
	}
	b.last.Store(&binding{s, at})
	return at
}
