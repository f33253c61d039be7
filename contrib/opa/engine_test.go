package opa

import (
	"context"
	"errors"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

const edge = `package clef.edge

default decision := {"action": "origin", "rule": "default"}

decision := {"action": "block", "rule": "bots", "params": {"ttl_seconds": 60, "why": "a<b"}} if {
	contains(input.headers["user-agent"], "bot")
	input.metrics.error_rate > 0.05
} else := {"action": "regional", "rule": "busy"} if {
	input.edge.load > 0.9
} else := "cache" if {
	input.tries < 3
	not input.trusted
}
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
	e, err := Compile("p.rego", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func full() map[string]any {
	return map[string]any{"headers.user-agent": "curl", "metrics.error_rate": 0.01, "edge.load": 0.2, "tries": 5, "trusted": false}
}

func decide(t testing.TB, e *Engine, req *decision.Request) decision.Decision {
	t.Helper()
	var out decision.Response
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0]
}

func TestDecide(t *testing.T) {
	e := compile(t, edge)
	for _, tc := range []struct {
		change               map[string]any
		without              string
		action, rule, params string
	}{
		{action: "origin", rule: "default"},
		{change: map[string]any{"headers.user-agent": "a bot", "metrics.error_rate": 0.06}, action: "block", rule: "bots", params: `{"ttl_seconds":60,"why":"a<b"}`},
		{change: map[string]any{"edge.load": 0.91}, action: "regional", rule: "busy"},
		{change: map[string]any{"tries": 2}, action: "cache"},
		{change: map[string]any{"tries": 2}, without: "trusted", action: "cache"}, // not of undefined is true
		{without: "edge.load", action: "origin", rule: "default"},                 // undefined
		{change: map[string]any{"edge.load": math.Inf(1)}, action: "origin", rule: "default"},
		{change: map[string]any{"edge.load": math.NaN()}, action: "origin", rule: "default"},
	} {
		attrs := full()
		for k, v := range tc.change {
			attrs[k] = v
		}
		delete(attrs, tc.without)
		d := decide(t, e, request(t, attrs))
		if want := (decision.Reason{Kind: decision.ReasonMatch, Rule: tc.rule}); d.Status != decision.OK || d.Action != tc.action || d.Reason != want || d.Params != tc.params {
			t.Errorf("%v without %q: %+v", tc.change, tc.without, d)
		}
	}
}

func TestDecisionDocuments(t *testing.T) {
	for value, want := range map[string]decision.Decision{
		`"x"`: {Status: decision.OK, Action: "x", Reason: decision.Reason{Kind: decision.ReasonMatch}},
		`{"action": "x", "rule": "r", "extra": [1]}`: {Status: decision.OK, Action: "x", Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "r"}},
		`3`:                              {Status: decision.Error, ErrorCode: CodeDecision},
		`""`:                             {Status: decision.Error, ErrorCode: CodeDecision},
		`{"rule": "r"}`:                  {Status: decision.Error, ErrorCode: CodeDecision},
		`{"action": 3}`:                  {Status: decision.Error, ErrorCode: CodeDecision},
		`{"action": "x", "params": [1]}`: {Status: decision.Error, ErrorCode: CodeDecision},
		`"x" if input.none`:              {Status: decision.Abstain},
		`"x"` + "\ndecision := \"y\"":    {Status: decision.Error, ErrorCode: CodeRego},
	} {
		d := decide(t, compile(t, "package p\ndecision := "+value+"\n"), request(t, full()))
		d.Error = ""
		if want.Status == decision.Error {
			want.Reason.Kind = decision.ReasonError
		}
		if d.Candidates = nil; !reflect.DeepEqual(d, want) {
			t.Errorf("%s: %+v, want %+v", value, d, want)
		}
	}
}

// Clock and randomness are the request's.
func TestClockAndSeed(t *testing.T) {
	e := compile(t, "package p\ndecision := sprintf(\"%d %d %s\", [time.now_ns(), rand.intn(\"a\", 1000000), uuid.rfc4122(\"b\")])\n")
	req := request(t, full())
	req.Now, req.Seed = time.Unix(7, 5), 3
	first := decide(t, e, req).Action
	if again := decide(t, e, req).Action; !strings.HasPrefix(first, "7000000005 ") || again != first {
		t.Errorf("%q, then %q", first, again)
	}
	req.Seed = 4
	if other := decide(t, e, req).Action; other == first {
		t.Errorf("seed 4 gives %q as well", other)
	}
}

func TestExplain(t *testing.T) {
	e := compile(t, edge)
	for line, change := range map[int]map[string]any{3: nil, 5: {"headers.user-agent": "bot", "metrics.error_rate": 1.0}, 8: {"edge.load": 1.0}, 10: {"tries": 1}} {
		attrs := full()
		for k, v := range change {
			attrs[k] = v
		}
		x, err := e.Explain(context.Background(), request(t, attrs))
		if err != nil || x.Position.File != "p.rego" || x.Position.Line != line {
			t.Errorf("%v: %+v, %v, want line %d", change, x, err, line)
		}
	}
}

func TestAttributes(t *testing.T) {
	for text, want := range map[string][]string{
		`input.a == 1; input.b["c-d"] == 2; x := input.e; x > 1`: {"a", "b.c-d", "e"},
		`input.headers[k] == "1"; k != "x"`:                      nil,
		`count(input) > 1`:                                       nil,
		`object.get(input, ["a"], 1) == 1`:                       nil,
	} {
		e := compile(t, "package p\ndecision := \"y\" if { "+text+" }\n")
		if got := e.Info().Attributes; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	e := compile(t, "package p\ndecision := \"y\" if { some k, v in input.headers; startswith(k, \"x-\"); v == \"1\" }\n")
	if d := decide(t, e, request(t, map[string]any{"headers.x-a": "1"})); d.Action != "y" {
		t.Errorf("%+v", d)
	}
}

func TestCanceledWhileEvaluating(t *testing.T) {
	e := compile(t, "package p\ndecision := \"y\" if { some i in numbers.range(1, 4000); some j in numbers.range(1, 4000); i + j < 0 }\n")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	var out decision.Response
	if err := e.Decide(ctx, request(t, full()), &out); !errors.Is(err, context.DeadlineExceeded) || out.Decisions[0].ErrorCode != CodeRego {
		t.Errorf("%v, %+v", err, out.Decisions)
	}
}

func TestKind(t *testing.T) {
	k := Kind()
	for stages, ok := range map[string]bool{"": true, "on": true, "off": true, "yes": false} {
		b, err := k.Open(context.Background(), backends.Source{Path: "p.rego", Data: []byte(edge), Options: url.Values{"stages": {stages}}})
		if (err == nil) != ok {
			t.Fatalf("%q: %v", stages, err)
		}
		if !ok {
			continue
		}
		var out decision.Response
		if err := b.Decide(context.Background(), request(t, full()), &out); err != nil || out.Stages.Rules.Set != (stages == "on") || out.Stages.Features.Set != (stages == "on") {
			t.Errorf("%q: %+v, %v", stages, out.Stages, err)
		}
	}
}

func TestBackend(t *testing.T) {
	c := backendtest.Cases{File: true}
	for i, change := range []map[string]any{nil, {"headers.user-agent": "bot", "metrics.error_rate": 1.0}, {"edge.load": 1.0}, {"tries": 1}} {
		attrs := full()
		for k, v := range change {
			attrs[k] = v
		}
		req := request(t, attrs)
		req.Now = time.Unix(1e9, 0)
		req.Questions[0].Candidates = []string{"block", "regional", "origin", "cache"}
		if i == 1 {
			req.Questions = append(req.Questions, decision.Question{ID: "b"})
		}
		c.Requests = append(c.Requests, req)
	}
	backendtest.Run(t, func(t *testing.T) decision.Backend { return compile(t, edge) }, c)
}
