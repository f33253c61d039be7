package cedar

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

const edgeMapping = `cedar: edge
version: "3"
scenarios: [edge]
policies: edge.cedar
actions:
  - block
  - {action: regional, params: {ttl_seconds: 60, why: "a<b"}}
  - cache
fallback: {action: origin, params: {ttl_seconds: 5}}
`

const edgePolicies = `@id("bots")
permit(principal, action == Action::"block", resource)
when { context.headers["user-agent"] like "*bot*" && context.metrics.error_rate.greaterThan(decimal("0.05")) };

@id("busy")
permit(principal, action in [Action::"regional", Action::"cache"], resource)
when { context.edge.load.greaterThan(decimal("0.9")) };

@id("cacheable")
permit(principal, action == Action::"cache", resource)
when { context.tries < 3 && !context.trusted };

@id("no-api")
forbid(principal, action == Action::"cache", resource == Scenario::"edge")
when { context.path like "/api/*" };
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
	return &decision.Request{Scenario: "edge", Attrs: decision.Attrs{Schema: s, Values: values}, Questions: []decision.Question{{Type: decision.QuestionAction}}}
}

func compile(t testing.TB, mapping, policies string) *Engine {
	t.Helper()
	e, err := Compile("m.yaml", []byte(mapping), "p.cedar", []byte(policies), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func full() map[string]any {
	return map[string]any{"headers.user-agent": "curl", "metrics.error_rate": 0.01, "edge.load": 0.2, "tries": 5, "trusted": false, "path": "/"}
}

func decide(t testing.TB, e *Engine, attrs map[string]any, candidates ...string) decision.Decision {
	t.Helper()
	var out decision.Response
	req := request(t, attrs)
	req.Questions[0].Candidates = candidates
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0]
}

func TestDecide(t *testing.T) {
	e := compile(t, edgeMapping, edgePolicies)
	for _, tc := range []struct {
		change       map[string]any
		without      string
		action, rule string
		skipped      uint16
	}{
		{action: "origin"},
		{change: map[string]any{"headers.user-agent": "a bot", "metrics.error_rate": 0.0501}, action: "block", rule: "bots"},
		{change: map[string]any{"edge.load": 0.91}, action: "regional", rule: "busy"},
		{change: map[string]any{"tries": 1}, action: "cache", rule: "cacheable"},
		{change: map[string]any{"tries": 1, "path": "/api/x"}, action: "origin"}, // forbidden
		{change: map[string]any{"edge.load": 0.91, "headers.user-agent": "bot", "metrics.error_rate": 1.0}, action: "block", rule: "bots"},
		// Errors: what is missing, of another type, or no decimal.
		{without: "headers.user-agent", action: "origin", skipped: 1},
		{without: "path", change: map[string]any{"tries": 1}, action: "cache", rule: "cacheable", skipped: 1},
		{change: map[string]any{"edge.load": 0.91234}, action: "origin", skipped: 1},
		{change: map[string]any{"edge.load": math.NaN()}, action: "origin", skipped: 1},
		{change: map[string]any{"edge.load": 1e300}, action: "origin", skipped: 1},
		{change: map[string]any{"edge.load": 1}, action: "origin", skipped: 1},                         // a long is no decimal
		{change: map[string]any{"tries": "1", "edge.load": "x"}, action: "origin", skipped: 2},         // busy is an error for two actions, and counts once
		{without: "trusted", change: map[string]any{"tries": 1}, action: "origin", skipped: 1},         //
		{without: "trusted", change: map[string]any{"tries": 7}, action: "origin", skipped: 0},         // && absorbs it
		{without: "tries", change: map[string]any{"edge.load": 2.0}, action: "regional", rule: "busy"}, // decided before cache is asked for
	} {
		attrs := full()
		for k, v := range tc.change {
			attrs[k] = v
		}
		delete(attrs, tc.without)
		want := decision.Reason{Kind: decision.ReasonMatch, Rule: tc.rule, Skipped: tc.skipped}
		if tc.rule == "" {
			want.Kind = decision.ReasonFallback
		}
		if d := decide(t, e, attrs); d.Status != decision.OK || d.Action != tc.action || d.Reason != want {
			t.Errorf("%v without %q: %+v, want %s %+v", tc.change, tc.without, d, tc.action, want)
		}
	}
	if d := decide(t, e, map[string]any{"edge.load": 1.0}); d.Params != `{"ttl_seconds":60,"why":"a<b"}` {
		t.Errorf("params %s", d.Params)
	}
}

// Actions that are no candidates are not asked for.
func TestCandidates(t *testing.T) {
	e := compile(t, edgeMapping, edgePolicies)
	attrs := full()
	attrs["edge.load"] = 1.0
	if d := decide(t, e, attrs, "cache", "block"); d.Action != "cache" || d.Reason.Rule != "busy" {
		t.Errorf("%+v", d)
	}
}

func TestWithoutFallback(t *testing.T) {
	mapping := strings.Split(edgeMapping, "fallback:")[0]
	e := compile(t, mapping, edgePolicies)
	attrs := full()
	if d := decide(t, e, attrs); d.Status != decision.Denied || d.Action != "" || d.Reason != (decision.Reason{}) {
		t.Errorf("%+v", d)
	}
	attrs["path"] = "/api/x"
	if d := decide(t, e, attrs); d.Status != decision.Denied || d.Reason != (decision.Reason{Kind: decision.ReasonMatch, Rule: "no-api"}) {
		t.Errorf("%+v", d)
	}
}

// The reference is the shortest decimal text of a double.
func TestDecimalIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := math.Float64frombits(r.Uint64())
		switch r.IntN(3) {
		case 0:
			x = float64(r.Int64N(1<<50)-1<<49) / 1e4
		case 1:
			x = math.Nextafter(float64(r.IntN(100_000))/1e4, 0)
		}
		text := strconv.FormatFloat(x, 'f', -1, 64)
		_, after, _ := strings.Cut(text, ".")
		want := len(after) <= 4 && math.Abs(x) < 1<<53/1e4
		d, ok := decimal(x, false)
		if ok != want {
			t.Fatalf("%s: ok %v, want %v", text, ok, want)
		}
		if ok && d.Float() != x {
			t.Fatalf("%s is %v", text, d)
		}
	}
}

func TestDecimalRounds(t *testing.T) {
	for x, want := range map[float64]string{0.12345: "0.1235", 0.5: "0.5", -0.00004: "0.0", 0.99999: "1.0", -1.23456: "-1.2346", 900_000_000_000: "900000000000.0"} {
		if d, ok := decimal(x, true); !ok || d.String() != want {
			t.Errorf("%v is %v %v, want %s", x, d, ok, want)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e13} {
		if d, ok := decimal(x, true); ok {
			t.Errorf("%v is %v", x, d)
		}
	}
	e := compile(t, edgeMapping+"doubles: round\n", edgePolicies)
	if d := decide(t, e, map[string]any{"edge.load": 0.91234}); d.Action != "regional" {
		t.Errorf("%+v", d)
	}
}

func TestExplain(t *testing.T) {
	e := compile(t, edgeMapping, edgePolicies)
	attrs := full()
	attrs["tries"], attrs["edge.load"] = 1, 0.123456
	delete(attrs, "headers.user-agent")
	x, err := e.Explain(context.Background(), request(t, attrs))
	if err != nil {
		t.Fatal(err)
	}
	if x.Reason != (decision.Reason{Kind: decision.ReasonMatch, Rule: "cacheable", Skipped: 2}) || x.Position != (decision.Position{File: "p.cedar", Line: 9, Column: 1}) || x.Text != "policy cacheable permits cache" {
		t.Fatalf("%+v", x)
	}
	if s := x.Skipped[0]; s.Rule != "bots" || !reflect.DeepEqual(s.Missing, []string{"headers.user-agent"}) {
		t.Errorf("%+v", s)
	}
	if s := x.Skipped[1]; s.Rule != "busy" || s.Missing != nil || !strings.HasSuffix(s.Cause, "no decimals of four digits: edge.load") {
		t.Errorf("%+v", s)
	}
	if !reflect.DeepEqual(x.Cited, []string{"tries", "trusted"}) {
		t.Errorf("cited %v", x.Cited)
	}
}

func TestAttributes(t *testing.T) {
	const mapping = "cedar: s\npolicies: p\nactions: [x]\n"
	for text, want := range map[string][]string{
		`context.a == 1 && context has b && context.headers has "x-y" && context["c"]["d.e"] == "f"`: {"a", "b", "headers.x-y", "c.d.e"},
		`context == {a: 1}`:         nil,
		`context.headers == {a: 1}`: nil,
		`{a: 1}.a == 1`:             {},
	} {
		e := compile(t, mapping, "permit(principal, action, resource) when { "+text+" };")
		if got := e.Info().Attributes; len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) || (want == nil) != e.file.open {
			t.Errorf("%s: %v, open %v, want %v", text, got, e.file.open, want)
		}
	}
	e := compile(t, mapping, `permit(principal, action, resource) when { context == {headers: {a: "1"}, query: {}, metrics: {}, env: {}, local: {}, state: {}, n: 1, edge: {"b.c": true}} };`)
	if d := decide(t, e, map[string]any{"headers.a": "1", "n": 1, "edge.b.c": true}); d.Status != decision.OK {
		t.Errorf("%+v", d)
	}
}

func TestStages(t *testing.T) {
	e, err := Compile("m.yaml", []byte(edgeMapping), "p.cedar", []byte(edgePolicies), Options{Stages: true})
	if err != nil {
		t.Fatal(err)
	}
	var out decision.Response
	if err := e.Decide(context.Background(), request(t, full()), &out); err != nil || !out.Stages.Features.Set || out.Stages.Rules.V <= 0 {
		t.Errorf("%+v, %v", out.Stages, err)
	}
}

func TestBackend(t *testing.T) {
	c := backendtest.Cases{File: true}
	for i, change := range []map[string]any{nil, {"headers.user-agent": "bot", "metrics.error_rate": 1.0}, {"edge.load": 1.0}, {"tries": 1}, {"tries": 1, "path": "/api/"}} {
		attrs := full()
		for k, v := range change {
			attrs[k] = v
		}
		req := request(t, attrs)
		req.Questions[0].Candidates = []string{"block", "regional", "origin", "cache"}
		if i == 1 {
			req.Questions = append(req.Questions, decision.Question{ID: "b", Candidates: []string{"regional", "cache", "origin"}})
		}
		c.Requests = append(c.Requests, req)
	}
	for name, mapping := range map[string]string{"fallback": edgeMapping, "denied": strings.Split(edgeMapping, "fallback:")[0]} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, func(t *testing.T) decision.Backend { return compile(t, mapping, edgePolicies) }, c)
		})
	}
}

func TestLabels(t *testing.T) {
	l := compile(t, edgeMapping, edgePolicies).Labels()
	if got, want := fmt.Sprint(l.Rules, l.Actions, len(l.Artefacts)), "[bots busy cacheable no-api] [block regional cache origin] 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What leaves policies out by their scope must not change an answer: the reference asks
// with all of them.
func TestScopesAreNotDecidedTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	scopes := []string{`action`, `action == Action::"a"`, `action in Action::"b"`, `action in [Action::"a", Action::"c"]`, `action == Other::"a"`}
	for range 300 {
		var b strings.Builder
		for i := range 6 {
			effect := "permit"
			if r.IntN(3) == 0 {
				effect = "forbid"
			}
			fmt.Fprintf(&b, "@id(\"p%d\") %s(principal, %s, resource) when { context.x < %d };\n", i, effect, scopes[r.IntN(len(scopes))], r.IntN(5))
		}
		e := compile(t, "cedar: s\npolicies: p\nactions: [a, b, c]\n", b.String())
		naive := compile(t, "cedar: s\npolicies: p\nactions: [a, b, c]\n", b.String())
		for i := range naive.file.actions {
			naive.file.actions[i].policies = naive.file.policies
		}
		for x := range 5 {
			if got, want := decide(t, e, map[string]any{"x": x}), decide(t, naive, map[string]any{"x": x}); !reflect.DeepEqual(got, want) {
				t.Fatalf("x = %d: %+v, want %+v\n%s", x, got, want, b.String())
			}
		}
	}
}
