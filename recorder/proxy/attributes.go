package proxy

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// attributes says where the attributes of a request stand. The recorder's list says which
// of them are kept, and how.
type attributes struct {
	schema *decision.Schema
	from   []source
}

// source is one attribute's place; an empty kind is left to the body.
type source struct{ kind, key string }

// newAttributes are those of the recorder's list, and the entity.
func newAttributes(list *decision.Schema, entity string) attributes {
	fields := append([]decision.Field(nil), list.Fields()...)
	if entity != "" && list.Index(entity) < 0 {
		fields = append(fields, decision.Field{Name: entity, Type: decision.String})
	}
	schema, err := decision.NewSchema(fields...)
	if err != nil {
		return attributes{} // cannot be: the list is a schema, and the entity is not on it
	}
	a := attributes{schema: schema, from: make([]source, len(fields))}
	for i, f := range fields {
		a.from[i] = sourceOf(f.Name)
	}
	return a
}

func sourceOf(name string) source {
	kind, key, _ := strings.Cut(name, ".")
	switch {
	case strings.EqualFold(name, "headers.host"):
		return source{kind: "host"}
	case kind == "headers":
		return source{kind, textproto.CanonicalMIMEHeaderKey(key)}
	case kind == "query", name == "method", name == "path":
		return source{kind, key}
	}
	return source{}
}

// read takes what the head of a request says.
func (a *attributes) read(r *http.Request) []decision.Value {
	if len(a.from) == 0 {
		return nil
	}
	values := make([]decision.Value, len(a.from))
	var query map[string][]string
	for i, s := range a.from {
		text, ok := "", true
		switch s.kind {
		case "host":
			text = r.Host
		case "method":
			text = r.Method
		case "path":
			text = r.URL.Path
		case "headers":
			vs := r.Header[s.key]
			text, ok = strings.Join(vs, ", "), len(vs) > 0
		case "query":
			if query == nil {
				query = r.URL.Query()
			}
			if ok = len(query[s.key]) > 0; ok {
				text = query[s.key][0]
			}
		default:
			ok = false
		}
		if ok {
			values[i] = decision.StringValue(text)
		}
	}
	return values
}

// join adds what a body says of the attributes that the head does not have.
func (a *attributes) join(values []decision.Value, body decision.Attrs) decision.Attrs {
	for i := range values {
		if a.from[i].kind == "" {
			values[i] = body.Get(a.schema.Fields()[i].Name)
		}
	}
	return decision.Attrs{Schema: a.schema, Values: values}
}
