package cel

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

const edge = `cel: edge
version: "3"
scenarios: [edge]
attributes: {amount: double, tries: int, edge.load: double, trusted: bool}
rules:
  - id: bot
    if: headers["user-agent"].contains("bot") && metrics.error_rate > 0.05
    action: block
    params: {ttl_seconds: 60, why: "a<b"}
  - id: busy
    if: edge.load > 0.9 || (has(state.mode) && state.mode == "slow")
    action: regional
  - id: large
    if: amount > 100.0 && tries >= 3 && !trusted
    action: review
  - id: country
    if: env.country in ["CN", "KP"] && path.startsWith("/api")
    action: origin
fallback: {action: cache, params: {ttl_seconds: 5}}
`

func request(t testing.TB, attrs map[string]any) *decision.Request {
	t.Helper()
	var fields []decision.Field
	var values []decision.Value
	for name, x := range attrs {
		v, err := decision.ValueOf(x)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, decision.Field{Name: name, Type: v.Type()})
		values = append(values, v)
	}
	s, err := decision.NewSchema(fields...)
	if err != nil {
		t.Fatal(err)
	}
	return &decision.Request{Attrs: decision.Attrs{Schema: s, Values: values}, Questions: []decision.Question{{Type: decision.QuestionAction}}}
}

func compile(t testing.TB, text string) *Engine {
	t.Helper()
	e, err := Compile("s.yaml", []byte(text), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decide(t testing.TB, e *Engine, attrs map[string]any) decision.Decision {
	t.Helper()
	var out decision.Response
	if err := e.Decide(context.Background(), request(t, attrs), &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0]
}

func full() map[string]any {
	return map[string]any{"headers.user-agent": "curl", "metrics.error_rate": 0.01, "edge.load": 0.2, "state.mode": "fast",
		"amount": 5.0, "tries": 1, "trusted": false, "env.country": "DE", "path": "/"}
}

func TestDecide(t *testing.T) {
	e := compile(t, edge)
	for _, tc := range []struct {
		change         map[string]any
		action, rule   string
		skipped        uint16
		kind           decision.ReasonKind
		without, param string
	}{
		{change: nil, action: "cache", kind: decision.ReasonFallback, param: `{"ttl_seconds":5}`},
		{change: map[string]any{"headers.user-agent": "a bot", "metrics.error_rate": 0.06}, action: "block", rule: "bot", param: `{"ttl_seconds":60,"why":"a<b"}`},
		{change: map[string]any{"edge.load": 0.95}, action: "regional", rule: "busy"},
		{change: map[string]any{"state.mode": "slow"}, action: "regional", rule: "busy"},
		{change: map[string]any{"amount": 101.0, "tries": 3}, action: "review", rule: "large"},
		{change: map[string]any{"amount": 101, "tries": 3.0}, action: "review", rule: "large"}, // nothing is lost
		{change: map[string]any{"env.country": "CN", "path": "/api/x"}, action: "origin", rule: "country"},
		{without: "headers.user-agent", action: "cache", kind: decision.ReasonFallback}, // && absorbs it
		// Errors: a missing key, a missing variable, a value of another type.
		{without: "headers.user-agent", change: map[string]any{"metrics.error_rate": 0.06}, action: "cache", kind: decision.ReasonFallback, skipped: 1},
		{without: "edge.load", action: "cache", kind: decision.ReasonFallback, skipped: 1},
		{without: "edge.load", change: map[string]any{"state.mode": "slow"}, action: "regional", rule: "busy"}, // || absorbs it
		{without: "state.mode", action: "cache", kind: decision.ReasonFallback},                                // has() asks first
		{change: map[string]any{"metrics.error_rate": "high", "headers.user-agent": "bot"}, action: "cache", kind: decision.ReasonFallback, skipped: 1},
		{change: map[string]any{"amount": 101.0, "tries": 3.5}, action: "cache", kind: decision.ReasonFallback, skipped: 1},
		// NaN is a number in CEL, and every comparison with it is false.
		{change: map[string]any{"edge.load": math.NaN()}, action: "cache", kind: decision.ReasonFallback},
	} {
		attrs := full()
		for k, v := range tc.change {
			attrs[k] = v
		}
		delete(attrs, tc.without)
		if tc.kind == 0 {
			tc.kind = decision.ReasonMatch
		}
		d := decide(t, e, attrs)
		if want := (decision.Reason{Kind: tc.kind, Rule: tc.rule, Skipped: tc.skipped}); d.Action != tc.action || d.Reason != want || tc.param != "" && d.Params != tc.param {
			t.Errorf("%v without %q: %+v, want %s %+v", tc.change, tc.without, d, tc.action, want)
		}
	}
}

func TestWithoutFallback(t *testing.T) {
	d := decide(t, compile(t, "cel: s\nrules: [{id: a, if: amount > 1.0, action: x}]\nattributes: {amount: double}\n"), nil)
	if d.Status != decision.Abstain || d.Reason != (decision.Reason{Skipped: 1}) {
		t.Errorf("%+v", d)
	}
}

// A namespace that is read as a whole is converted as a whole, and what is read is not
// known beforehand.
func TestWholeNamespace(t *testing.T) {
	e := compile(t, "cel: s\nrules: [{id: a, if: 'headers.exists(k, k.startsWith(\"x-\") && headers[k] == \"1\")', action: x}]\nfallback: {action: y}\n")
	if e.Info().Attributes != nil {
		t.Errorf("attributes %v", e.Info().Attributes)
	}
	if d := decide(t, e, map[string]any{"headers.x-b": "1", "headers.a": "1"}); d.Action != "x" {
		t.Errorf("%+v", d)
	}
	if d := decide(t, e, map[string]any{"headers.x-b": "2", "headers.a": "1"}); d.Action != "y" {
		t.Errorf("%+v", d)
	}
}

func TestAttributes(t *testing.T) {
	e := compile(t, edge+"# more\n")
	want := []string{"headers.user-agent", "metrics.error_rate", "edge.load", "state.mode", "amount", "tries", "trusted", "env.country", "path"}
	got := e.Info().Attributes
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, n := range want {
		if !e.file.reads.has(n) {
			t.Errorf("%s is not among %v", n, got)
		}
	}
	e = compile(t, `{cel: s, fallback: {action: y}, rules: [{id: a, action: x, if: '"a" in headers && has(query.b) && local.c == 1 && metrics["d"] > 1.0'}]}`)
	if got, want := e.Info().Attributes, []string{"headers.a", "query.b", "local.c", "metrics.d"}; !sameSet(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func sameSet(a, b []string) bool {
	m := map[string]bool{}
	for _, x := range a {
		m[x] = true
	}
	for _, x := range b {
		if !m[x] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestExplain(t *testing.T) {
	e := compile(t, edge)
	attrs := full()
	attrs["env.country"], attrs["path"] = "KP", "/api"
	delete(attrs, "headers.user-agent")
	delete(attrs, "trusted")
	attrs["amount"], attrs["tries"], attrs["metrics.error_rate"] = 500.0, 9, 0.06
	x, err := e.Explain(context.Background(), request(t, attrs))
	if err != nil {
		t.Fatal(err)
	}
	if x.Reason.Rule != "country" || x.Position != (decision.Position{File: "s.yaml", Line: 16, Column: 5}) || len(x.Skipped) != 2 || x.Reason.Skipped != 2 {
		t.Fatalf("%+v", x)
	}
	if s := x.Skipped[0]; s.Rule != "bot" || !reflect.DeepEqual(s.Missing, []string{"headers.user-agent"}) || !strings.Contains(s.Cause, "no such key: user-agent") {
		t.Errorf("%+v", s)
	}
	if s := x.Skipped[1]; s.Rule != "large" || !reflect.DeepEqual(s.Missing, []string{"trusted"}) || !strings.Contains(s.Cause, "no such attribute") {
		t.Errorf("%+v", s)
	}
}

func TestStages(t *testing.T) {
	e, err := Compile("s.yaml", []byte(edge), nil, Options{Stages: true})
	if err != nil {
		t.Fatal(err)
	}
	var out decision.Response
	if err := e.Decide(context.Background(), request(t, full()), &out); err != nil {
		t.Fatal(err)
	}
	if s := out.Stages; !s.Features.Set || !s.Rules.Set || s.Rules.V <= 0 {
		t.Errorf("%+v", s)
	}
	if err := compile(t, edge).Decide(context.Background(), request(t, full()), &out); err != nil || out.Stages.Rules.Set {
		t.Errorf("%+v, %v", out.Stages, err)
	}
}

func TestBackend(t *testing.T) {
	var c backendtest.Cases
	c.File = true
	for i, change := range []map[string]any{nil, {"headers.user-agent": "bot", "metrics.error_rate": 1.0}, {"edge.load": 1.0}, {"amount": 1e9, "tries": 7}, {"env.country": "CN", "path": "/api"}} {
		attrs := full()
		for k, v := range change {
			attrs[k] = v
		}
		req := request(t, attrs)
		req.Scenario = "edge"
		req.Questions[0].Candidates = []string{"block", "regional", "review", "origin", "cache"}
		if i == 1 {
			req.Questions = append(req.Questions, decision.Question{ID: "b"})
		}
		c.Requests = append(c.Requests, req)
	}
	backendtest.Run(t, func(t *testing.T) decision.Backend { return compile(t, edge) }, c)
	backendtest.Run(t, func(t *testing.T) decision.Backend {
		e, err := Compile("s.yaml", []byte(edge), nil, Options{Stages: true})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}, c)
}

func TestLabels(t *testing.T) {
	l := compile(t, edge).Labels()
	if got, want := fmt.Sprint(l.Rules, l.Actions, len(l.Artefacts)), "[bot busy large country] [block regional review origin cache] 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
