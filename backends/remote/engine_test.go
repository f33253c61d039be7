package remote_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
)

// engine is a small engine behind the handler. hook, when set, sees each request.
type engine struct {
	hook func(ctx context.Context, req *decision.Request, out *decision.Response) error
	down error
}

func (e *engine) Info() decision.Info {
	return decision.Info{Name: "engine", Kind: "test", Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked}}
}

func (e *engine) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = decision.Artefact{EngineVersion: "e-1", StrategyVersion: "1.10", StrategyDigest: [32]byte{31: 9}, ModelResolved: "m-1"}
	for i := range out.Decisions {
		d := &out.Decisions[i]
		rate := req.Attrs.Get("metrics.rate")
		x, ok := rate.Number()
		if !ok || math.IsNaN(x) {
			d.Status, d.Reason = decision.Abstain, decision.Reason{Kind: decision.ReasonFallback, Skipped: 1}
			continue
		}
		d.Status, d.Action, d.Reason = decision.OK, "allow", decision.Reason{Kind: decision.ReasonMatch, Rule: "low"}
		if x > 0.5 {
			d.Action, d.Reason.Rule, d.Params = "block", "high", `{"ttl_seconds": 60, "note": "a<b>&\u2028"}`
		}
		d.Confidence, d.ConfidenceDef = decision.Some(0.75), "peak"
		d.Candidates = append(d.Candidates,
			decision.Candidate{Action: "allow", Probability: decision.Some(0.25)},
			decision.Candidate{Action: "block", Score: decision.Some(float32(0.1)), Probability: decision.Some(0.75)})
	}
	if e.hook != nil {
		return e.hook(ctx, req, out)
	}
	return nil
}

func (e *engine) Ready(context.Context) error { return e.down }

func (e *engine) Close(context.Context) error { return nil }

func request(t testing.TB, rate any) *decision.Request {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.rate", Type: decision.Double}, decision.Field{Name: "headers.user-agent", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	v, err := decision.ValueOf(rate)
	if err != nil {
		t.Fatal(err)
	}
	return &decision.Request{
		ID: decision.NewID(time.Unix(1e9, 0)), Scenario: "api-abuse", Now: time.Unix(1e9, 5), Seed: math.MaxUint64,
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{v, decision.StringValue("Mozilla <&>")}},
		Questions: []decision.Question{{Type: decision.QuestionAction, Candidates: []string{"allow", "block"}}},
	}
}

// serve runs a server for the length of the test.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t testing.TB, o remote.ClientOptions) *remote.Client {
	t.Helper()
	c, err := remote.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func ask(t testing.TB, c *remote.Client, req *decision.Request) *decision.Response {
	t.Helper()
	out := new(decision.Response)
	if err := c.Decide(context.Background(), req, out); err != nil {
		t.Fatal(err)
	}
	return out
}
