package rules_test

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/decision"
)

const file = `version: "2026-11"
rules:
  - id: scrapers
    conditions:
      - {field: headers.user-agent, operator: contains, value: python-requests}
    action: {type: block, response: {status: 403}}
  - id: overload
    conditions:
      - {field: metrics.edge_error_rate_1m, operator: gt, value: 0.05}
    action: {type: cache, key: "{{ path }}", ttl_seconds: 60}
fallback: {type: origin}
`

func ExampleCompile() {
	engine, err := rules.Compile("edge.yaml", []byte(file), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := decision.NewSchema(
		decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "metrics.edge_error_rate_1m", Type: decision.Double},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &decision.Request{
		Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{
			decision.StringValue("/index.html"), decision.DoubleValue(0.2),
		}},
		Questions: []decision.Question{{Type: decision.QuestionAction}},
	}
	var out decision.Response
	if err := engine.Decide(context.Background(), req, &out); err != nil {
		fmt.Println(err)
		return
	}
	d := out.Decisions[0]
	fmt.Println(d.Status, d.Action, d.Params)
	fmt.Println(d.Reason.Kind, d.Reason.Rule, "skipped", d.Reason.Skipped)

	why, err := engine.Explain(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(why.Position, why.Text)
	fmt.Println(why.Skipped[0].Rule, why.Skipped[0].Cause)
	// Output:
	// ok cache {"key":"/index.html","ttl_seconds":60}
	// match overload skipped 1
	// edge.yaml:7:5 rule overload matches and answers cache
	// scrapers missing headers.user-agent
}

func ExampleCheck() {
	for _, p := range rules.Check("edge.yaml", []byte(`version: 1
rules:
  - id: api
    conditions:
      - {field: request.path, operator: prefix, value: /api}
    action: block
fallback: allow
`), nil) {
		fmt.Println(p)
		fmt.Println("hint:", p.Hint)
	}
	// Output:
	// edge.yaml:5:17: unknown attribute "request.path"
	// hint: did you mean "path"?
}
