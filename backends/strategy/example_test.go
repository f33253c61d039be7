package strategy_test

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/decision"
)

func ExampleCompile() {
	engine, err := strategy.Compile("fraud.yaml", []byte(`strategy: fraud
attributes: {amount: double, age: int}
rules:
  - id: large
    if: amount > 1000.0 && !has(env.trusted)
    action: manual_review
    params: {queue: "age-{{ age }}"}
fallback: {action: approve}
`), nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := decision.NewSchema(decision.Field{Name: "amount", Type: decision.Double}, decision.Field{Name: "age", Type: decision.Int})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &decision.Request{
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(1500), decision.IntValue(30)}},
		Questions: []decision.Question{{Type: decision.QuestionAction}},
	}
	var out decision.Response
	if err := engine.Decide(context.Background(), req, &out); err != nil {
		fmt.Println(err)
		return
	}
	d := out.Decisions[0]
	fmt.Println(d.Status, d.Action, d.Params, d.Reason.Kind, d.Reason.Rule)
	// Output:
	// ok manual_review {"queue":"age-30"} match large
}

func ExampleCheck() {
	for _, p := range strategy.Check("fraud.yaml", []byte(`strategy: fraud
rules:
  - id: bots
    if: |
      env.country == "CN" &&
      headers.user-agent.contains("bot")
    action: block
fallback: {action: approve}
`), nil) {
		fmt.Println(p)
		fmt.Println("hint:", p.Hint)
	}
	// Output:
	// fraud.yaml:6:7: headers.user-agent is a subtraction
	// hint: write headers["user-agent"]
}
