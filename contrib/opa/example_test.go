package opa_test

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/contrib/opa"
	"github.com/clefbench/clefbench/decision"
)

func ExampleCompile() {
	engine, err := opa.Compile("edge.rego", []byte(`package edge

default decision := "origin"

decision := {"action": "block", "rule": "bots"} if contains(input.headers["user-agent"], "bot")
`), opa.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := decision.NewSchema(decision.Field{Name: "headers.user-agent", Type: decision.String})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &decision.Request{
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("a bot")}},
		Questions: []decision.Question{{Type: decision.QuestionAction}},
	}
	var out decision.Response
	if err := engine.Decide(context.Background(), req, &out); err != nil {
		fmt.Println(err)
		return
	}
	d := out.Decisions[0]
	fmt.Println(d.Status, d.Action, d.Reason.Kind, d.Reason.Rule)
	// Output:
	// ok block match bots
}
