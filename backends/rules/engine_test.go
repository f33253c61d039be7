package rules

import (
	"context"
	"crypto/sha256"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
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

func requests(t testing.TB) []*decision.Request {
	var out []*decision.Request
	for _, attrs := range []map[string]any{
		{"headers.user-agent": "python-requests/2", "path": "/", "metrics.edge_error_rate_1m": 0.0, "risk": 0.0, "headers.x-pop": "fra"},
		{"headers.user-agent": "x", "path": "/api/a", "metrics.edge_error_rate_1m": 0.2, "risk": 0.0, "headers.x-pop": "fra"},
		{"headers.user-agent": "x", "path": "/", "metrics.edge_error_rate_1m": 0.2, "risk": 2.0},
		{"headers.user-agent": "x", "path": "/", "metrics.edge_error_rate_1m": 0.0, "risk": 0.0},
		{},
	} {
		out = append(out, request(t, attrs))
	}
	return out
}

func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) decision.Backend { return compile(t, edge) }, backendtest.Cases{Requests: requests(t), File: true})
}

func TestWithoutFallbackItAbstains(t *testing.T) {
	e := compile(t, "version: 1\nrules: []\n")
	var out decision.Response
	if err := e.Decide(context.Background(), request(t, nil), &out); err != nil {
		t.Fatal(err)
	}
	if d := out.Decisions[0]; d.Status != decision.Abstain || d.Action != "" || d.Reason != (decision.Reason{}) {
		t.Errorf("%+v", d)
	}
}

func TestRuleFallbackAnswersForAMissingValue(t *testing.T) {
	e := compile(t, `version: 1
rules:
  - id: keyed
    conditions: []
    action: {type: cache, key: "{{ headers.x-query-hash }}"}
    fallback: {type: origin, ttl_seconds: 0}
fallback: never
`)
	req := request(t, nil)
	var out decision.Response
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	want := decision.Reason{Kind: decision.ReasonFallback, Rule: "keyed"}
	if d := out.Decisions[0]; d.Action != "origin" || d.Params != `{"ttl_seconds":0}` || d.Reason != want {
		t.Errorf("%+v", d)
	}
	x, err := e.Explain(context.Background(), req)
	if err != nil || x.Text != "rule keyed matches, but its action lacks headers.x-query-hash; its fallback answers origin" {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestEachQuestionGetsTheAnswer(t *testing.T) {
	req := requests(t)[0]
	req.Questions = []decision.Question{{ID: "a"}, {ID: "b", Candidates: []string{"allow"}}}
	var out decision.Response
	if err := compile(t, edge).Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	out.Check(req)
	if a, b := out.Decisions[0], out.Decisions[1]; a.Action != "block" || b.Status != decision.Error || b.ErrorCode != decision.CodeActionNotAllowed {
		t.Errorf("%+v", out.Decisions)
	}
}

func TestExplain(t *testing.T) {
	e := compile(t, edge)
	for _, tc := range []struct {
		name  string
		attrs map[string]any
		want  decision.Explanation
	}{
		{"match", map[string]any{"headers.user-agent": "x", "path": "/api", "metrics.edge_error_rate_1m": 0.2, "headers.x-pop": "fra"}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "shed"}, Position: decision.Position{File: "edge.yaml", Line: 11, Column: 5},
			Text: "rule shed matches and answers reroute", Conditions: []decision.Condition{
				{Text: "metrics.edge_error_rate_1m gt 0.05", Value: "0.2", Position: decision.Position{File: "edge.yaml", Line: 13, Column: 9}, Truth: "true"},
				{Text: `path prefix "/api"`, Value: `"/api"`, Position: decision.Position{File: "edge.yaml", Line: 16, Column: 9}, Truth: "true"}},
			Cited: []string{"metrics.edge_error_rate_1m", "path", "headers.x-pop"}}},
		{"skipped", map[string]any{"path": "/api", "metrics.edge_error_rate_1m": math.NaN(), "risk": "high"}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonFallback, Skipped: 3}, Position: decision.Position{File: "edge.yaml", Line: 21, Column: 11},
			Text: "no rule matches; the file's fallback answers origin",
			Skipped: []decision.SkippedRule{
				{Rule: "block-scrapers", Missing: []string{"headers.user-agent"}, Cause: "missing headers.user-agent"},
				{Rule: "shed", Cause: "metrics.edge_error_rate_1m is NaN"},
				{Rule: "risky", Cause: "risk is string, which the condition cannot compare"},
			}}},
		{"template", map[string]any{"headers.user-agent": "x", "path": "/api", "metrics.edge_error_rate_1m": 1.0, "risk": 5.0}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "risky", Skipped: 1}, Position: decision.Position{File: "edge.yaml", Line: 18, Column: 5},
			Text: "rule risky matches and answers block", Cited: []string{"risk"},
			Conditions: []decision.Condition{{Text: "risk ge 1", Value: "5", Position: decision.Position{File: "edge.yaml", Line: 19, Column: 18}, Truth: "true"}},
			Skipped:    []decision.SkippedRule{{Rule: "shed", Missing: []string{"headers.x-pop"}, Cause: "its action lacks headers.x-pop"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := e.Explain(context.Background(), request(t, tc.attrs))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", *got, tc.want)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	info := compile(t, edge).Info()
	if info.Kind != "rules" || info.Artefact.StrategyVersion != "1.10" || info.Artefact.StrategyDigest != sha256.Sum256([]byte(edge)) {
		t.Errorf("%+v", info)
	}
	if !reflect.DeepEqual(info.Scenarios, []string{"edge-routing"}) ||
		!reflect.DeepEqual(info.Attributes, []string{"headers.user-agent", "metrics.edge_error_rate_1m", "path", "headers.x-pop", "risk"}) {
		t.Errorf("%v %v", info.Scenarios, info.Attributes)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	e := compile(t, edge)
	var out decision.Response
	for i, r := range requests(t) {
		if i == 1 {
			continue // it renders a template
		}
		if n := testing.AllocsPerRun(200, func() { _ = e.Decide(context.Background(), r, &out) }); n != 0 {
			t.Errorf("request %d: %v allocations", i, n)
		}
	}
}

// Every operator against a reference in plain Go, over values of each type.
func TestOperators(t *testing.T) {
	values := []any{nil, "", "bot", "a bot b", "botany", "robot", 0, 1, 7, 0.5, 1.0, math.NaN(), true, false}
	type test struct {
		op, value string
		want      func(x any) (holds, known bool)
	}
	text := func(f func(s string) bool) func(any) (bool, bool) {
		return func(x any) (bool, bool) { s, ok := x.(string); return ok && f(s), ok }
	}
	number := func(f func(v float64) bool) func(any) (bool, bool) {
		return func(x any) (bool, bool) {
			switch v := x.(type) {
			case int:
				return f(float64(v)), true
			case float64:
				return v == v && f(v), v == v
			}
			return false, false
		}
	}
	for _, tc := range []test{
		{"eq", "bot", text(func(s string) bool { return s == "bot" })},
		{"ne", "bot", text(func(s string) bool { return s != "bot" })},
		{"contains", "bot", text(func(s string) bool { return strings.Contains(s, "bot") })},
		{"prefix", "bot", text(func(s string) bool { return strings.HasPrefix(s, "bot") })},
		{"suffix", "bot", text(func(s string) bool { return strings.HasSuffix(s, "bot") })},
		{"matches", "^.?bot", text(func(s string) bool { return s == "bot" || s == "botany" })},
		{"in", "[bot, robot]", text(func(s string) bool { return s == "bot" || s == "robot" })},
		{"in", "[1, 0.5]", number(func(v float64) bool { return v == 1 || v == 0.5 })},
		{"eq", "1", number(func(v float64) bool { return v == 1 })},
		{"ne", "1", number(func(v float64) bool { return v != 1 })},
		{"gt", "0.5", number(func(v float64) bool { return v > 0.5 })},
		{"ge", "0.5", number(func(v float64) bool { return v >= 0.5 })},
		{"lt", "0.5", number(func(v float64) bool { return v < 0.5 })},
		{"le", "0.5", number(func(v float64) bool { return v <= 0.5 })},
		{"eq", "true", func(x any) (bool, bool) { b, ok := x.(bool); return b, ok }},
		{"exists", "true", func(x any) (bool, bool) { return x != nil, true }},
		{"exists", "false", func(x any) (bool, bool) { return x == nil, true }},
	} {
		e := compile(t, "version: 1\nrules:\n- {id: r, conditions: [{field: local.x, operator: "+tc.op+", value: "+tc.value+"}], action: yes}\nfallback: no\n")
		for _, x := range values {
			attrs := map[string]any{}
			if x != nil {
				attrs["local.x"] = x
			}
			var out decision.Response
			if err := e.Decide(context.Background(), request(t, attrs), &out); err != nil {
				t.Fatal(err)
			}
			holds, known := tc.want(x)
			if d := out.Decisions[0]; (d.Action == "yes") != holds || (d.Reason.Skipped == 0) != known {
				t.Errorf("%v %s %s: %s with %d skipped", x, tc.op, tc.value, d.Action, d.Reason.Skipped)
			}
		}
	}
}
