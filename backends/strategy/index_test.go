package strategy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// With the index an engine answers as without it: action, rule and the number of rules
// that could not be evaluated, over rows that lack values or hold NaN.
func TestIndexedAnswersAreThoseOfAWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	conds := []string{`path.startsWith("/%s")`, `headers.h == "%s"`, `"%s" == headers.h`, `headers.h in ["%s", "b"]`, `path.contains("%s")`,
		`path.endsWith("%s")`, `metrics.m > 1.5`, `!(metrics.m > 1.5)`, `(path == "%s" || metrics.m < 2.0)`, `headers.h != "%s"`}
	text := strings.Builder{}
	text.WriteString("strategy: s\nrules:\n")
	for i := range 60 {
		var parts []string
		for range 2 + r.IntN(2) {
			c := conds[r.IntN(len(conds))]
			if strings.Contains(c, "%s") {
				c = fmt.Sprintf(c, []string{"a", "ab", "b", "", "ba"}[r.IntN(5)])
			}
			parts = append(parts, c)
		}
		fmt.Fprintf(&text, "  - {id: r%d, if: '%s', action: a%d}\n", i, strings.Join(parts, " && "), i%7)
	}
	text.WriteString("fallback: {action: none}\n")
	e := compile(t, text.String(), nil)
	if e.index == nil {
		t.Fatal("no index")
	}
	walked := compile(t, text.String(), nil)
	walked.index = nil
	matched := 0
	for range 3000 {
		attrs := map[string]any{}
		for _, name := range []string{"path", "headers.h"} {
			if r.IntN(6) > 0 {
				attrs[name] = []string{"", "a", "/a", "/ab", "/b", "b", "ab"}[r.IntN(7)]
			}
		}
		switch r.IntN(4) {
		case 0:
			attrs["metrics.m"] = math.NaN()
		case 1, 2:
			attrs["metrics.m"] = float64(r.IntN(4))
		}
		req := request(t, attrs)
		var got, want decision.Response
		if err := e.Decide(t.Context(), req, &got); err != nil {
			t.Fatal(err)
		}
		if err := walked.Decide(t.Context(), req, &want); err != nil {
			t.Fatal(err)
		}
		g, w := got.Decisions[0], want.Decisions[0]
		if g.Action != w.Action || g.Reason != w.Reason {
			t.Fatalf("%v: got %s by %+v, want %s by %+v", attrs, g.Action, g.Reason, w.Action, w.Reason)
		}
		if w.Reason.Kind == decision.ReasonMatch {
			matched++
		}
	}
	if matched < 500 || matched > 2900 {
		t.Errorf("%d of 3000 matched a rule", matched)
	}
}

// With the model as the last word, and with few rules, where nothing is indexed.
func TestBatchAnswersAreThoseOfDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	m := &fakeModel{answer: decision.Decision{Status: decision.OK, Action: "approve", Candidates: []decision.Candidate{
		{Action: "approve", Probability: decision.Some(0.55)}}}}
	abstains := &fakeModel{answer: decision.Decision{Status: decision.Abstain}}
	for _, e := range []*Engine{compile(t, guarded, m), compile(t, guarded, abstains), compile(t, generated(40), nil)} {
		schema, err := decision.NewSchema(decision.Field{Name: "env.country", Type: decision.String}, decision.Field{Name: "path", Type: decision.String},
			decision.Field{Name: "amount", Type: decision.Double}, decision.Field{Name: "headers.x-shop", Type: decision.String},
			decision.Field{Name: "headers.user-agent", Type: decision.String}, decision.Field{Name: "metrics.m3", Type: decision.Double})
		if err != nil {
			t.Fatal(err)
		}
		in := decision.NewBatch(schema)
		var reqs []*decision.Request
		for range 500 {
			values := make([]decision.Value, schema.Len())
			for i, v := range []decision.Value{decision.StringValue([]string{"CN", "DE"}[r.IntN(2)]), decision.StringValue([]string{"/api/v1/x", "/"}[r.IntN(2)]),
				decision.DoubleValue(float64(r.IntN(300))), decision.StringValue("s"), decision.StringValue(fmt.Sprintf("x token%d", r.IntN(60))), decision.DoubleValue(float64(r.IntN(9)))} {
				if r.IntN(5) > 0 {
					values[i] = v
				}
			}
			reqs = append(reqs, &decision.Request{Attrs: decision.Attrs{Schema: schema, Values: values}, Questions: make([]decision.Question, 1)})
			if err := in.Append(values, reqs[0].Now); err != nil {
				t.Fatal(err)
			}
		}
		var out decision.Answers
		if err := e.DecideBatch(t.Context(), in, &out); err != nil {
			t.Fatal(err)
		}
		rules := map[string]int{}
		for i, req := range reqs {
			var resp decision.Response
			if err := e.Decide(t.Context(), req, &resp); err != nil {
				t.Fatal(err)
			}
			got, want := out.At(i), resp.Decisions[0]
			if got.Status != want.Status || got.Action != want.Action || got.Reason != want.Reason {
				t.Fatalf("row %d: batch %+v, decide %+v", i, got, want)
			}
			rules[want.Reason.Rule]++
		}
		if len(rules) < 2 {
			t.Errorf("only %v", rules)
		}
	}
}
