package cel_test

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/backends/cel"
	"github.com/clefbench/clefbench/decision"
)

func ExampleCompile() {
	engine, err := cel.Compile("edge.yaml", []byte(`cel: edge
attributes: {amount: double}
rules:
  - id: bots
    if: headers["user-agent"].contains("bot")
    action: block
  - id: large
    if: amount > 1000.0
    action: review
fallback: {action: allow}
`), nil, cel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := decision.NewSchema(decision.Field{Name: "amount", Type: decision.Double})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &decision.Request{
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(1500)}},
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
	// ok review match large 1
}
