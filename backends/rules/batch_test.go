package rules

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// refSchema is the schema of the reference's attributes, with one that no rule reads.
func refSchema(t testing.TB) *decision.Schema {
	t.Helper()
	s, err := decision.NewSchema(
		decision.Field{Name: "metrics.n", Type: decision.Double}, decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "other", Type: decision.Int}, decision.Field{Name: "headers.h", Type: decision.String},
		decision.Field{Name: "metrics.m", Type: decision.Double}, decision.Field{Name: "query.q", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valuesOf(t testing.TB, s *decision.Schema, attrs map[string]any) []decision.Value {
	t.Helper()
	out := make([]decision.Value, s.Len())
	for i, f := range s.Fields() {
		if x, ok := attrs[f.Name]; ok {
			v, err := decision.ValueOf(x)
			if err != nil {
				t.Fatal(err)
			}
			out[i] = v
		}
	}
	return out
}

func TestBatchAnswersAreThoseOfDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	schema := refSchema(t)
	for _, n := range []int{1, 5, 40, 300} {
		e, err := Compile("r.json", refFile(t, randomRules(r, n)), nil)
		if err != nil {
			t.Fatal(err)
		}
		in := decision.NewBatch(schema)
		var reqs []*decision.Request
		for range 2000 {
			req := &decision.Request{Attrs: decision.Attrs{Schema: schema, Values: valuesOf(t, schema, randomAttrs(r))}, Questions: make([]decision.Question, 1)}
			if r.IntN(2) == 0 {
				req.Now = time.Unix(1e9+int64(r.IntN(150)), 0)
			}
			if err := in.Append(req.Attrs.Values, req.Now); err != nil {
				t.Fatal(err)
			}
			reqs = append(reqs, req)
		}
		sameAsDecide(t, e, in, reqs)
	}
}

func sameAsDecide(t *testing.T, e *Engine, in *decision.Batch, reqs []*decision.Request) {
	t.Helper()
	var out decision.Answers
	if err := e.DecideBatch(context.Background(), in, &out); err != nil || len(out.Rows) != len(reqs) {
		t.Fatalf("%d rows: %v", len(out.Rows), err)
	}
	for i, req := range reqs {
		want, _ := decideOne(t, e, req)
		got := out.At(i)
		if got.Status != want.Status || got.Action != want.Action || got.Reason != want.Reason {
			t.Fatalf("row %d, %v: batch says %+v, decide %+v", i, req.Attrs.Values, got, want)
		}
	}
}

// Templates decide whether a rule can answer, types of columns need not be those that the
// file was compiled for, and columns may be missing altogether.
func TestBatchOfOtherTypes(t *testing.T) {
	const text = `version: 1
attributes: {risk: double}
rules:
  - {id: a, conditions: [{field: risk, operator: ge, value: 2}], action: {type: x, key: "{{ risk }}-{{ headers.k }}"}}
  - {id: b, conditions: [{field: risk, operator: ge, value: 1}], action: {type: y, key: "{{ headers.k }}"}, fallback: z}
  - {id: c, conditions: [{field: local.flag, operator: eq, value: true}], action: w}
`
	e := compile(t, text)
	for _, types := range [][]decision.Type{{decision.Double, decision.Bool}, {decision.Int, decision.Int}, {decision.String, decision.String}} {
		schema, err := decision.NewSchema(decision.Field{Name: "risk", Type: types[0]}, decision.Field{Name: "local.flag", Type: types[1]},
			decision.Field{Name: "headers.k", Type: decision.String})
		if err != nil {
			t.Fatal(err)
		}
		in := decision.NewBatch(schema)
		var reqs []*decision.Request
		for i := range 48 {
			values := []decision.Value{some(types[0], i%4), some(types[1], i/4%3), some(decision.String, i/12%2)}
			if i%6 == 5 {
				values = values[:2]
			}
			reqs = append(reqs, &decision.Request{Attrs: decision.Attrs{Schema: schema, Values: values}, Questions: make([]decision.Question, 1)})
			if err := in.Append(values, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		sameAsDecide(t, e, in, reqs)
	}
	empty := decision.NewBatch(nil)
	if err := empty.Append(nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	sameAsDecide(t, e, empty, []*decision.Request{{Questions: make([]decision.Question, 1)}})
}

func some(typ decision.Type, n int) decision.Value {
	switch {
	case n == 0:
		return decision.Value{}
	case typ == decision.Double:
		return decision.DoubleValue(float64(n))
	case typ == decision.Bool:
		return decision.BoolValue(n > 1)
	case typ == decision.Int:
		return decision.IntValue(int64(n))
	}
	return decision.StringValue(fmt.Sprint(n))
}

func TestBatchStopsWithItsContext(t *testing.T) {
	in := decision.NewBatch(nil)
	if err := in.Append(nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out decision.Answers
	if err := compile(t, edge).DecideBatch(ctx, in, &out); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

// 65,536 rows of 1,500 user agents; ns/row is the figure.
func BenchmarkDecideBatch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	fields := []decision.Field{{Name: "headers.user-agent", Type: decision.String}}
	for i := range 16 {
		fields = append(fields, decision.Field{Name: fmt.Sprintf("metrics.m%d", i), Type: decision.Double})
	}
	schema, err := decision.NewSchema(fields...)
	if err != nil {
		b.Fatal(err)
	}
	in := decision.NewBatch(schema)
	for range 1 << 16 {
		ua := fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) token%d/%d", r.IntN(1500), r.IntN(2))
		values := []decision.Value{decision.StringValue(ua)}
		for range 16 {
			values = append(values, decision.DoubleValue(r.Float64()*5))
		}
		if err := in.Append(values, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	for _, n := range []int{2, 100, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			e := compile(b, strings.ReplaceAll(generated(n), "}\n      - {field: metrics", "/}\n      - {field: metrics"))
			var out decision.Answers
			for b.Loop() {
				if err := e.DecideBatch(context.Background(), in, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/row")
		})
	}
}
