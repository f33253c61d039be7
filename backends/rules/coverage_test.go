package rules

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

func TestCover(t *testing.T) {
	const text = `version: 1
rules:
  - id: mark
    terminal: false
    conditions: []
    tags: [seen]
  - id: shed
    conditions:
      - {field: metrics.load, operator: gt, value: 0.9}
      - {field: path, operator: prefix, value: /api}
    action: shed
  - id: never
    conditions:
      - any: [{field: method, operator: eq, value: PUT}, {field: method, operator: eq, value: POST}]
    action: x
  - {id: sleeping, enabled: false, conditions: [], action: x}
fallback: pass
`
	schema, err := decision.NewSchema(decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "metrics.load", Type: decision.Double},
		decision.Field{Name: "method", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	in, weights := decision.NewBatch(schema), []float64{1, 20, 20, 1, 1}
	for _, r := range []struct {
		path string
		load float64
	}{{"/api/a", 0.95}, {"/api/b", 0.5}, {"/api/b", 0.6}, {"/", 0.99}, {"/", 0.1}} {
		if err := in.Append([]decision.Value{decision.StringValue(r.path), decision.DoubleValue(r.load), {}}, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	e := compile(t, text)
	got, err := e.Cover(context.Background(), in, weights)
	if err != nil {
		t.Fatal(err)
	}
	at := func(line, col int) decision.Position {
		return decision.Position{File: "edge.yaml", Line: line, Column: col}
	}
	want := &Coverage{
		Rows: 5, Weight: 43,
		Rules:     []Hits{{Rule: "mark", Position: at(3, 5)}, {"shed", at(7, 5), true, Count{1, 1}}, {"never", at(12, 5), true, Count{}}},
		Uncovered: Count{4, 42}, Examined: 4,
		Missing: []Named{{Name: "method", Rows: 4}},
		Near:    []NearMiss{{"shed", "metrics.load gt 0.9", at(9, 9), 2}, {"shed", `path prefix "/api"`, at(10, 9), 1}},
		Common:  []Named{{"path", "/", 2}, {"path", "/api/b", 2}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, err := e.Cover(context.Background(), in, nil); err != nil || got.Weight != 5 {
		t.Errorf("%+v, %v", got, err)
	}
}
