package backendtest

import (
	"math"
	"slices"

	"github.com/clefbench/clefbench/decision"
)

// clone copies a request deeply, save for the schema, which is immutable.
func clone(req *decision.Request) *decision.Request {
	c := *req
	c.Attrs.Values = slices.Clone(req.Attrs.Values)
	c.Features = slices.Clone(req.Features)
	c.Body = slices.Clone(req.Body)
	c.Questions = slices.Clone(req.Questions)
	for i := range c.Questions {
		c.Questions[i].Candidates = slices.Clone(c.Questions[i].Candidates)
	}
	return &c
}

// overwrite gives dst the content of src in dst's own memory.
func overwrite(dst, src *decision.Request) {
	values, features, body, questions := dst.Attrs.Values[:0], dst.Features[:0], dst.Body[:0], dst.Questions[:0]
	*dst = *src
	dst.Attrs.Values = append(values, src.Attrs.Values...)
	dst.Questions = append(questions, clone(src).Questions...)
	if src.Features != nil {
		dst.Features = append(features, src.Features...)
	}
	if src.Body != nil {
		dst.Body = append(body, src.Body...)
	}
}

// withQuestions asks the first question n times, each under an id of its own.
func withQuestions(req *decision.Request, n int) *decision.Request {
	c := clone(req)
	first := decision.Question{Type: decision.QuestionAction}
	if len(req.Questions) > 0 {
		first = req.Questions[0]
	}
	c.Questions = nil
	for i := range n {
		q := first
		q.Candidates = slices.Clone(first.Candidates)
		if n > 1 {
			q.ID = string(rune('a' + i))
		}
		c.Questions = append(c.Questions, q)
	}
	return c
}

// variant is a request with something missing.
type variant struct {
	what string
	req  *decision.Request
}

// missingVariants leaves attributes out in every way that a recording can.
func missingVariants(req *decision.Request) []variant {
	bare := clone(req)
	bare.Attrs = decision.Attrs{}
	short := clone(req)
	short.Attrs.Values = nil
	out := []variant{{"no schema", bare}, {"no values", short}}
	for i, f := range req.Attrs.Schema.Fields() {
		out = append(out,
			variant{"null " + f.Name, withValue(req, i, decision.Value{})},
			variant{"schema without " + f.Name, without(req, i)},
			variant{"other type in " + f.Name, withValue(req, i, otherType(f.Type))})
		if f.Type == decision.Double {
			out = append(out,
				variant{"NaN " + f.Name, withValue(req, i, decision.DoubleValue(math.NaN()))},
				variant{"infinite " + f.Name, withValue(req, i, decision.DoubleValue(math.Inf(-1)))})
		}
		if f.Type == decision.String {
			out = append(out, variant{"empty " + f.Name, withValue(req, i, decision.StringValue(""))})
		}
	}
	return out
}

func otherType(t decision.Type) decision.Value {
	if t == decision.String {
		return decision.IntValue(7)
	}
	return decision.StringValue("seven")
}

// withValue puts v at position i; a value row that was too short grows.
func withValue(req *decision.Request, i int, v decision.Value) *decision.Request {
	c := clone(req)
	for len(c.Attrs.Values) <= i {
		c.Attrs.Values = append(c.Attrs.Values, decision.Value{})
	}
	c.Attrs.Values[i] = v
	return c
}

// rearranged gives the request a schema of its fields in the given order of positions.
func rearranged(req *decision.Request, order []int, extra ...decision.Field) *decision.Request {
	c := clone(req)
	fields := slices.Clone(extra)
	values := make([]decision.Value, len(extra))
	for _, i := range order {
		fields = append(fields, req.Attrs.Schema.Fields()[i])
		values = append(values, req.Attrs.At(i))
	}
	schema, err := decision.NewSchema(fields...)
	if err != nil {
		panic(err) // the names come from a schema, and extra's is no attribute's
	}
	c.Attrs = decision.Attrs{Schema: schema, Values: values}
	return c
}

func positions(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func without(req *decision.Request, i int) *decision.Request {
	return rearranged(req, slices.Delete(positions(req.Attrs.Schema.Len()), i, i+1))
}

func reversed(req *decision.Request) *decision.Request {
	order := positions(req.Attrs.Schema.Len())
	slices.Reverse(order)
	return rearranged(req, order)
}

// padded puts an attribute that is never set before all others.
func padded(req *decision.Request) *decision.Request {
	return rearranged(req, positions(req.Attrs.Schema.Len()), decision.Field{Name: "backendtest.padding", Type: decision.String})
}
