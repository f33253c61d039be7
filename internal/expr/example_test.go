package expr_test

import (
	"fmt"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

func ExampleCompiler_Bool() {
	data := []byte("if: confidence(score) < 0.6 && headers[\"user-agent\"].contains(\"bot\")\n" +
		"action: {type: review, queue: \"{{ headers.user-agent }}\"}\n")
	file, root, err := document.Parse("rule.yaml", data)
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := decision.NewSchema(
		decision.Field{Name: "score", Type: decision.Double},
		decision.Field{Name: "headers.user-agent", Type: decision.String},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	scope := expr.NewScope(schema)
	compiler, err := expr.NewCompiler(scope, data)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := root.Map("if", "action")
	cond := compiler.Bool(m.Need("if"))
	action := expr.ReadAction(m.Need("action"), nil, scope, expr.ActionOptions{Data: data})
	if err := file.Err(); err != nil {
		fmt.Println(err)
		return
	}
	at := decision.NewBinder(scope.Names()...).Bind(schema)
	for _, values := range [][]decision.Value{
		{decision.DoubleValue(0.55), decision.StringValue("a bot")},
		{decision.DoubleValue(0.95)},
		{decision.DoubleValue(0.55)},
	} {
		row := &expr.Row{Values: values, At: at}
		switch cond.Eval(row) {
		case expr.True:
			params, _ := action.Params(row)
			fmt.Println(action.Label, params)
		case expr.Unknown:
			missing, _ := cond.Explain(row)
			fmt.Println("unknown without", missing)
		default:
			fmt.Println("does not hold")
		}
	}
	// Output:
	// review {"queue":"a bot"}
	// does not hold
	// unknown without [headers.user-agent]
}
