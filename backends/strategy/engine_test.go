package strategy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

const guarded = `strategy: checkout
version: "3"
scenarios: [fraud]
attributes:
  amount: double
rules:
  - id: china
    if: env.country == "CN" && path.startsWith("/api/v1")
    action: block
  - id: unsure
    if: amount > 100.0 && confidence(model.score) < 0.6
    action: {type: manual_review}
    params: {queue: "q-{{ headers.x-shop }}", ttl_seconds: 60}
fallback:
  model: model.json
  timeout_ms: 15
  action: approve
`

// fakeModel answers each question with a fixed decision and counts its calls.
type fakeModel struct {
	answer decision.Decision
	err    error
	sleep  time.Duration
	calls  atomic.Int32
	closed int
	// stall delays the first call only.
	stall   time.Duration
	network bool
}

func (m *fakeModel) Info() decision.Info {
	return decision.Info{Name: "logit", Kind: "model", Attributes: []string{"amount", "income"},
		Artefact: decision.Artefact{StrategyVersion: "m1"}, Capabilities: decision.Capabilities{Deterministic: true, Confidence: true, Network: m.network}}
}
func (m *fakeModel) Close(context.Context) error { m.closed++; return nil }
func (m *fakeModel) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	if m.calls.Add(1) == 1 {
		time.Sleep(m.stall)
	}
	time.Sleep(m.sleep)
	if m.err != nil {
		return m.err
	}
	out.Reset(len(req.Questions))
	for i := range out.Decisions {
		candidates := append(out.Decisions[i].Candidates, m.answer.Candidates...)
		out.Decisions[i] = m.answer
		out.Decisions[i].Candidates = candidates
	}
	out.Usage.TokensIn = decision.Some[int64](7)
	return nil
}

func sure(action string, p float64) decision.Decision {
	return decision.Decision{Status: decision.OK, Action: action, Confidence: decision.Some(p), ConfidenceDef: "peak",
		Reason:     decision.Reason{Kind: decision.ReasonModel, Rule: "inner"},
		Candidates: []decision.Candidate{{Action: action, Probability: decision.Some(p)}, {Action: "other", Probability: decision.Some(1 - p)}}}
}

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

func compile(t testing.TB, text string, m decision.Backend) *Engine {
	t.Helper()
	e, err := Compile("s.yaml", []byte(text), nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decide(t testing.TB, e *Engine, attrs map[string]any) (decision.Decision, *decision.Response) {
	t.Helper()
	var out decision.Response
	req := request(t, attrs)
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	out.Check(req)
	return out.Decisions[0], &out
}

func TestRulesFirst(t *testing.T) {
	m := &fakeModel{answer: sure("approve", 0.9)}
	e := compile(t, guarded, m)
	d, _ := decide(t, e, map[string]any{"env.country": "CN", "path": "/api/v1/x", "amount": 500.0})
	want := decision.Reason{Kind: decision.ReasonMatch, Rule: "china"}
	if d.Status != decision.OK || d.Action != "block" || d.Reason != want || m.calls.Load() != 0 {
		t.Errorf("%+v after %d calls", d, m.calls.Load())
	}
}

func TestModelIsAskedOnce(t *testing.T) {
	m := &fakeModel{answer: sure("approve", 0.9)}
	e := compile(t, guarded, m)
	d, out := decide(t, e, map[string]any{"env.country": "DE", "path": "/", "amount": 500.0})
	want := decision.Decision{Status: decision.OK, Action: "approve", Confidence: decision.Some(0.9), ConfidenceDef: "peak",
		Reason: decision.Reason{Kind: decision.ReasonModel, Rule: "logit"}, Candidates: m.answer.Candidates}
	if !reflect.DeepEqual(d, want) || m.calls.Load() != 1 {
		t.Errorf("%+v after %d calls", d, m.calls.Load())
	}
	if !out.Stages.Model.Set || out.Usage.TokensIn.V != 7 {
		t.Errorf("stages %+v usage %+v", out.Stages, out.Usage)
	}
}

func TestModelIsNotAskedForADecidedCondition(t *testing.T) {
	m := &fakeModel{answer: sure("approve", 0.5)}
	// The model stands first in the text, yet the amount decides.
	e := compile(t, "strategy: s\nattributes: {amount: double}\nrules:\n- {id: a, if: confidence(model.score) < 0.6 && amount > 100.0, action: x}\n- {id: b, if: 'true', action: y}\nfallback: {model: m.json}\n", m)
	if d, _ := decide(t, e, map[string]any{"amount": 1.0}); d.Action != "y" || m.calls.Load() != 0 {
		t.Errorf("%+v after %d calls", d, m.calls.Load())
	}
	if d, _ := decide(t, e, map[string]any{"amount": 101.0}); d.Action != "x" || m.calls.Load() != 1 {
		t.Errorf("%+v after %d calls", d, m.calls.Load())
	}
}

func TestUnsureModelGoesToReview(t *testing.T) {
	m := &fakeModel{answer: sure("approve", 0.55)}
	e := compile(t, guarded, m)
	attrs := map[string]any{"env.country": "DE", "path": "/", "amount": 500.0, "headers.x-shop": "7"}
	d, _ := decide(t, e, attrs)
	if d.Action != "manual_review" || d.Params != `{"queue":"q-7","ttl_seconds":60}` || d.Reason.Rule != "unsure" || m.calls.Load() != 1 {
		t.Errorf("%+v after %d calls", d, m.calls.Load())
	}
}

func TestModelFails(t *testing.T) {
	withoutAction := "strategy: s\nrules: []\nfallback: {model: m.json, timeout_ms: 15}\n"
	for _, tc := range []struct {
		name   string
		model  *fakeModel
		file   string
		status decision.Status
		action string
		code   string
		reason decision.Reason
	}{
		{"error, action", &fakeModel{err: errors.New("boom")}, guarded, decision.OK, "approve", "", decision.Reason{Kind: decision.ReasonFallback, Rule: CodeModelError, Skipped: 2}},
		{"error", &fakeModel{err: errors.New("boom")}, withoutAction, decision.Error, "", CodeModelError, decision.Reason{Kind: decision.ReasonError}},
		{"late, action", &fakeModel{answer: sure("x", 0.9), sleep: 30 * time.Millisecond}, guarded, decision.OK, "approve", "", decision.Reason{Kind: decision.ReasonFallback, Rule: CodeModelTimeout, Skipped: 2}},
		{"late", &fakeModel{answer: sure("x", 0.9), sleep: 30 * time.Millisecond}, withoutAction, decision.Timeout, "", CodeModelTimeout, decision.Reason{Kind: decision.ReasonTimeout}},
		{"abstains, action", &fakeModel{answer: decision.Decision{Status: decision.Abstain}}, guarded, decision.OK, "approve", "", decision.Reason{Kind: decision.ReasonFallback, Rule: "abstain", Skipped: 2}},
		{"abstains", &fakeModel{answer: decision.Decision{Status: decision.Abstain}}, withoutAction, decision.Abstain, "", "", decision.Reason{Kind: decision.ReasonModel, Rule: "logit"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := compile(t, tc.file, tc.model)
			d, _ := decide(t, e, map[string]any{"amount": 500.0})
			if d.Status != tc.status || d.Action != tc.action || d.ErrorCode != tc.code || d.Reason != tc.reason {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A call that the scheduler held up is not a slow model; a network's delay is.
func TestAStallIsNoTimeout(t *testing.T) {
	for _, network := range []bool{false, true} {
		m := &fakeModel{answer: sure("x", 0.9), stall: 40 * time.Millisecond, network: network}
		e := compile(t, "strategy: s\nrules: []\nfallback: {model: m.json, timeout_ms: 20}\n", m)
		d, out := decide(t, e, nil)
		if timedOut := d.Status == decision.Timeout; timedOut != network || out.Stages.Model.V < 40*time.Millisecond {
			t.Errorf("network %v: %+v in %v", network, d, out.Stages.Model.V)
		}
	}
}

func TestQuestionsGetTheirOwnModelAnswer(t *testing.T) {
	m := &fakeModel{answer: sure("approve", 0.9)}
	e := compile(t, guarded, m)
	req := request(t, map[string]any{"env.country": "DE", "amount": 500.0})
	req.Questions = append(req.Questions, decision.Question{ID: "b"})
	var out decision.Response
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Decisions) != 2 || out.Decisions[1].Action != "approve" || m.calls.Load() != 1 {
		t.Errorf("%+v after %d calls", out.Decisions, m.calls.Load())
	}
}

func TestCompileWantsTheModel(t *testing.T) {
	_, err := Compile("s.yaml", []byte(guarded), nil, nil)
	if err == nil || err.Error() != `s.yaml:15:10: the fallback model "model.json" is not loaded` {
		t.Errorf("%v", err)
	}
	if name, err := ModelOf("s.yaml", []byte(guarded)); name != "model.json" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := ModelOf("s.yaml", []byte("strategy: s\nrules: []\n")); name != "" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

func TestBackend(t *testing.T) {
	var reqs []*decision.Request
	for _, attrs := range []map[string]any{
		{"env.country": "CN", "path": "/api/v1/x", "amount": 500.0, "headers.x-shop": "7"},
		{"env.country": "DE", "path": "/", "amount": 500.0, "headers.x-shop": "7"},
		{"env.country": "DE", "path": "/", "amount": 5.0},
		{"amount": math.NaN()},
		{},
	} {
		reqs = append(reqs, request(t, attrs))
	}
	for _, p := range []float64{0.55, 0.9} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			backendtest.Run(t, func(t *testing.T) decision.Backend {
				// The suite's own load must not look like a slow model.
				return compile(t, strings.Replace(guarded, "timeout_ms: 15", "timeout_ms: 10000", 1), &fakeModel{answer: sure("approve", p)})
			}, backendtest.Cases{Requests: reqs, File: true})
		})
	}
}

func TestNaNIsCountedAsSkipped(t *testing.T) {
	e := compile(t, "strategy: s\nattributes: {amount: double}\nrules: [{id: a, if: amount > 1.0, action: x}, {id: b, if: '!(amount > 1.0) && env.c == \"x\"', action: y}]\nfallback: {action: z}\n", nil)
	d, _ := decide(t, e, map[string]any{"amount": math.NaN(), "env.c": "y"})
	if d.Action != "z" || d.Reason.Skipped != 1 {
		t.Errorf("%+v", d)
	}
	x, err := e.Explain(context.Background(), request(t, map[string]any{"amount": math.NaN(), "env.c": "y"}))
	want := []decision.SkippedRule{{Rule: "a", Cause: "amount is NaN"}}
	if err != nil || !reflect.DeepEqual(x.Skipped, want) {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestExplain(t *testing.T) {
	slow := decision.Decision{Status: decision.Abstain}
	for _, tc := range []struct {
		name   string
		answer decision.Decision
		attrs  map[string]any
		want   decision.Explanation
	}{
		{"rule", sure("approve", 0.9), map[string]any{"env.country": "CN", "path": "/api/v1"}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "china"}, Position: decision.Position{File: "s.yaml", Line: 7, Column: 5},
			Text: "rule china matches and answers block", Cited: []string{"env.country", "path"}}},
		{"model", sure("approve", 0.9), map[string]any{"env.country": "CN", "amount": 5.0}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonModel, Rule: "logit", Skipped: 1}, Position: decision.Position{File: "s.yaml", Line: 15, Column: 3},
			Text: "no rule matches; model logit answers ok approve", Cited: []string{"amount", "income"},
			Skipped: []decision.SkippedRule{{Rule: "china", Missing: []string{"path"}, Cause: "no such attribute: path"}}}},
		{"template", sure("approve", 0.5), map[string]any{"env.country": "DE", "amount": 500.0}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonModel, Rule: "logit", Skipped: 1}, Position: decision.Position{File: "s.yaml", Line: 15, Column: 3},
			Text: "no rule matches; model logit answers ok approve", Cited: []string{"amount", "income"},
			Skipped: []decision.SkippedRule{{Rule: "unsure", Missing: []string{"headers.x-shop"}, Cause: "its action cannot be rendered"}}}},
		{"fallback", slow, map[string]any{"env.country": "DE", "amount": 5.0}, decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonFallback, Rule: "abstain"}, Position: decision.Position{File: "s.yaml", Line: 15, Column: 3},
			Text: "no rule matches, and model logit gives abstain; the fallback answers approve"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := compile(t, guarded, &fakeModel{answer: tc.answer})
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

func TestExplainWithoutModel(t *testing.T) {
	for file, want := range map[string]string{
		"strategy: s\nrules: []\n":                                       "no rule matches and the file has no fallback",
		"strategy: s\nrules: []\nfallback: {action: a}\n":                "no rule matches; the fallback answers a",
		"strategy: s\nrules: [{id: r, if: 'true', action: {type: b}}]\n": "rule r matches and answers b",
	} {
		x, err := compile(t, file, nil).Explain(context.Background(), request(t, nil))
		if err != nil || x.Text != want {
			t.Errorf("%+v, %v", x, err)
		}
	}
}

func TestInfoOfTheModelShows(t *testing.T) {
	m := &fakeModel{}
	e := compile(t, guarded, m)
	info := e.Info()
	if info.Kind != "strategy" || info.Artefact.StrategyVersion != "3" || !strings.HasPrefix(info.Artefact.ModelRequested, "model.json@") || info.Artefact.ModelResolved != info.Artefact.ModelRequested || !info.Capabilities.Confidence {
		t.Errorf("%+v", info)
	}
	if want := []string{"env.country", "path", "amount", "headers.x-shop", "income"}; !reflect.DeepEqual(info.Attributes, want) {
		t.Errorf("%v", info.Attributes)
	}
	if err := e.Close(context.Background()); err != nil || m.closed != 1 {
		t.Errorf("%v, closed %d", err, m.closed)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	e := compile(t, guarded, &fakeModel{answer: sure("approve", 0.9)})
	for i, attrs := range []map[string]any{
		{"env.country": "CN", "path": "/api/v1/x", "amount": 500.0},
		{"env.country": "DE", "path": "/", "amount": 500.0},
		{},
	} {
		req := request(t, attrs)
		var out decision.Response
		if n := testing.AllocsPerRun(200, func() { _ = e.Decide(context.Background(), req, &out) }); n != 0 && !raceEnabled {
			t.Errorf("request %d: %v allocations", i, n)
		}
	}
}
