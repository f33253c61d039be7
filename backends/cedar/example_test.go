package cedar_test

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/backends/cedar"
	"github.com/clefbench/clefbench/decision"
)

func ExampleCompile() {
	engine, err := cedar.Compile("edge.yaml", []byte(`cedar: edge
policies: edge.cedar
actions: [block, cache]
fallback: origin
`), "edge.cedar", []byte(`@id("bots")
permit(principal, action == Action::"block", resource)
when { context.headers["user-agent"] like "*bot*" };

@id("calm")
permit(principal, action == Action::"cache", resource)
when { context.metrics.load.lessThan(decimal("0.5")) };
`), cedar.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.load", Type: decision.Double})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &decision.Request{
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(0.25)}},
		Questions: []decision.Question{{Type: decision.QuestionAction}},
	}
	var out decision.Response
	if err := engine.Decide(context.Background(), req, &out); err != nil {
		fmt.Println(err)
		return
	}
	d := out.Decisions[0]
	fmt.Println(d.Status, d.Action, d.Reason.Kind, d.Reason.Rule, d.Reason.Skipped)
	// Output:
	// ok cache match calm 1
}
