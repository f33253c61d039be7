package rules

import (
	"context"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

const edge = `version: 1.10
scenarios: [edge-routing]
attributes:
  risk: double
rules:
  - id: block-scrapers
    description: known tools
    conditions:
      - {field: headers.user-agent, operator: contains, value: python-requests}
    action: {type: block, response: {status: 403, body: "no <b>"}}
  - id: shed
    conditions:
      - field: metrics.edge_error_rate_1m
        operator: gt
        value: 0.05
      - {field: path, operator: prefix, value: /api}
    action: {type: route, name: reroute, upstream: "backup-{{ headers.x-pop }}", ttl_seconds: 30}
  - id: risky
    conditions: [{field: risk, operator: ge, value: 1}]
    action: block
fallback: {type: origin}
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
	e, err := Compile("edge.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDecide(t *testing.T) {
	e := compile(t, edge)
	for _, tc := range []struct {
		name  string
		attrs map[string]any
		want  decision.Decision
	}{
		{"first rule", map[string]any{"headers.user-agent": "python-requests/2"}, decision.Decision{Status: decision.OK, Action: "block",
			Params: `{"response":{"body":"no <b>","status":403}}`, Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "block-scrapers"}}},
		{"template", map[string]any{"headers.user-agent": "x", "metrics.edge_error_rate_1m": 0.2, "path": "/api/x", "headers.x-pop": `a"b`},
			decision.Decision{Status: decision.OK, Action: "reroute", Params: `{"ttl_seconds":30,"type":"route","upstream":"backup-a\"b"}`,
				Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "shed"}}},
		{"template without its value", map[string]any{"headers.user-agent": "x", "metrics.edge_error_rate_1m": 0.2, "path": "/api/x", "risk": 0},
			decision.Decision{Status: decision.OK, Action: "origin", Reason: decision.Reason{Kind: decision.ReasonFallback, Skipped: 1}}},
		{"missing is skipped", map[string]any{"path": "/api"}, decision.Decision{Status: decision.OK, Action: "origin",
			Reason: decision.Reason{Kind: decision.ReasonFallback, Skipped: 3}}},
		{"a certain false is not skipped", map[string]any{"path": "/", "risk": 1}, decision.Decision{Status: decision.OK, Action: "block",
			Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "risky", Skipped: 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out decision.Response
			if err := e.Decide(context.Background(), request(t, tc.attrs), &out); err != nil {
				t.Fatal(err)
			}
			got := out.Decisions[0]
			if got.Status != tc.want.Status || got.Action != tc.want.Action || got.Params != tc.want.Params || got.Reason != tc.want.Reason {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}
