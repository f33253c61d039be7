package decision_test

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/decision"
)

// ceiling blocks what is above a limit: a whole backend.
type ceiling struct {
	limit float64
	bind  *decision.Binder
}

func (c *ceiling) Info() decision.Info {
	return decision.Info{Name: "ceiling", Kind: "example", Attributes: []string{"metrics.rate"},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked}}
}

func (c *ceiling) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	rate, ok := req.Attrs.At(c.bind.Bind(req.Attrs.Schema)[0]).Number()
	for i := range out.Decisions {
		d := &out.Decisions[i]
		switch {
		case !ok: // missing is not zero
			d.Status, d.Reason = decision.Abstain, decision.Reason{Kind: decision.ReasonFallback, Skipped: 1}
		case rate > c.limit:
			d.Status, d.Action, d.Reason = decision.OK, "block", decision.Reason{Kind: decision.ReasonMatch, Rule: "too-fast"}
		default:
			d.Status, d.Action, d.Reason = decision.OK, "allow", decision.Reason{Kind: decision.ReasonFallback}
		}
	}
	return nil
}

func (c *ceiling) Close(context.Context) error { return nil }

func Example() {
	var backend decision.Backend = &ceiling{limit: 10, bind: decision.NewBinder("metrics.rate")}
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.rate", Type: decision.Double})
	if err != nil {
		panic(err)
	}
	req := &decision.Request{
		Scenario:  "api-abuse",
		Attrs:     decision.Attrs{Schema: schema},
		Questions: []decision.Question{{Type: decision.QuestionAction, Candidates: []string{"allow", "block"}}},
	}
	var out decision.Response // reused from call to call
	for _, rate := range []decision.Value{decision.DoubleValue(3), decision.DoubleValue(30), {}} {
		req.Attrs.Values = []decision.Value{rate}
		if err := backend.Decide(context.Background(), req, &out); err != nil {
			panic(err)
		}
		out.Check(req)
		d := out.Decisions[0]
		fmt.Printf("%v: %v %q\n", rate, d.Status, d.Action)
	}
	// Output:
	// 3: ok "allow"
	// 30: ok "block"
	// null: abstain ""
}

func ExampleResponse_Check() {
	req := &decision.Request{Questions: []decision.Question{{Candidates: []string{"allow", "block"}}}}
	out := decision.Response{Decisions: []decision.Decision{{Status: decision.OK, Action: "quarantine"}}}
	out.Check(req)
	fmt.Println(out.Decisions[0].Status, out.Decisions[0].ErrorCode)
	// Output: error action-not-allowed
}
