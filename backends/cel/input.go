package cel

import (
	"sync/atomic"

	"cel.dev/cel-go/cel"

	"github.com/clefbench/clefbench/decision"
)

// input is a request as CEL sees it. It is reused; clear empties it, so that no text of a
// request is kept.
type input struct {
	texts   [env + 1]map[string]string
	metrics map[string]float64
	dyn     [2]map[string]any // local and state
	vars    map[string]any
	act     cel.Activation
}

func newInput() (*input, error) {
	in := &input{metrics: map[string]float64{}, vars: map[string]any{}}
	for r := range in.texts {
		in.texts[r] = map[string]string{}
	}
	for i := range in.dyn {
		in.dyn[i] = map[string]any{}
	}
	in.roots()
	var err error
	in.act, err = cel.NewActivation(in.vars)
	return in, err
}

func (in *input) roots() {
	for r := range in.texts {
		in.vars[rootNames[r]] = in.texts[r]
	}
	in.vars[rootNames[metrics]] = in.metrics
	in.vars[rootNames[local]], in.vars[rootNames[state]] = in.dyn[0], in.dyn[1]
}

func (in *input) clear() {
	for r := range in.texts {
		clear(in.texts[r])
	}
	clear(in.metrics)
	clear(in.dyn[0])
	clear(in.dyn[1])
	clear(in.vars)
	in.roots()
}

// fill puts the values of a request in. A value that is absent, or not of the type that
// CEL was told, is left out: reading it is an error there.
func (in *input) fill(fields []field, attrs *decision.Attrs) {
	for i := range fields {
		f := &fields[i]
		v := attrs.At(f.at)
		if v.IsNull() {
			continue
		}
		if f.wants != decision.Null {
			var ok bool
			if v, ok = v.Convert(f.wants); !ok {
				continue
			}
		}
		switch f.root {
		case headers, query, env:
			in.texts[f.root][f.key] = v.Str()
		case metrics:
			in.metrics[f.key] = v.Double()
		case local, state:
			in.dyn[f.root-local][f.key] = v.Any()
		default:
			in.vars[f.key] = v.Any()
		}
	}
}

// field is where an attribute of a schema goes.
type field struct {
	at    int
	root  root
	key   string
	wants decision.Type
}

// plan keeps the fields of the last schema, as [decision.Binder] does.
type plan struct {
	file *file
	last atomic.Pointer[bound]
}

type bound struct {
	schema *decision.Schema
	fields []field
}

func (p *plan) of(s *decision.Schema) []field {
	if l := p.last.Load(); l != nil && l.schema == s {
		return l.fields
	}
	b := &bound{schema: s}
	for i, f := range s.Fields() {
		if !p.file.reads.has(f.Name) {
			continue
		}
		x := field{at: i, key: f.Name, wants: p.file.names.variables[f.Name]}
		if r, key := split(f.Name); r != noRoot {
			x.key, x.wants = key, r.wants()
			x.root = r
		} else {
			x.root = noRoot
		}
		b.fields = append(b.fields, x)
	}
	p.last.Store(b)
	return b.fields
}
