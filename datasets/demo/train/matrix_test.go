package main

import (
	"math"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// toy is a scenario of two dimensions and two actions.
func toy(t *testing.T) (*scenario, func(color string, size int64, right string) *datasets.Example) {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "local.color", Type: decision.String}, decision.Field{Name: "local.size", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{
		name: "toy", version: "1", prior: 3,
		task: scoring.Task{
			Candidates: []string{"keep", "drop"},
			Utility:    map[string]map[string]float64{"keep": {"keep": 1, "drop": 0}, "drop": {"keep": 0, "drop": 1}},
		},
		dims: []dim{words("color", "local.color", "red", "blue"), ranges("size", "local.size", true, "10", "20")},
	}
	return s, func(color string, size int64, right string) *datasets.Example {
		values := []decision.Value{decision.StringValue(color), decision.IntValue(size)}
		if color == "" {
			values[0] = decision.Value{}
		}
		if size < 0 {
			values[1] = decision.Value{}
		}
		return &datasets.Example{
			Scenario: "toy", Candidates: s.task.Candidates, Train: true,
			Attrs: decision.Attrs{Schema: schema, Values: values}, Label: snapshot.Label{Action: right},
		}
	}
}

func times(n int, ex *datasets.Example) []*datasets.Example {
	var out []*datasets.Example
	for range n {
		out = append(out, ex)
	}
	return out
}

func TestCutsOfDimensions(t *testing.T) {
	r := ranges("size", "local.size", true, "10", "20")
	if got := strings.Join(r.values, " "); got != "<10 10-20 20+ missing" {
		t.Errorf("ranges %q", got)
	}
	w := words("color", "local.color", "red", "blue")
	if got := strings.Join(w.values, " "); got != "red blue other" || len(w.mapping) != 4 {
		t.Errorf("words %q, %v", got, w.mapping)
	}
	if n := cells([]dim{r, w}); n != 12 {
		t.Errorf("%d cells, want 12", n)
	}
}

// Each cell has the best action of its own rows, drawn to the wider cell; a cell without
// rows has that of the wider one. The expectations are worked out by hand.
func TestTrainMatrixByHand(t *testing.T) {
	s, ex := toy(t)
	var rows []*datasets.Example
	add := func(n int, e *datasets.Example) { rows = append(rows, times(n, e)...) }
	add(8, ex("red", 5, "keep"))   // red: 8 keep, 2 drop
	add(2, ex("red", 15, "drop"))  // 2 rows against a prior of 3 at about 0.75 keep: 2.25 of 5
	add(9, ex("blue", 15, "drop")) // blue: 9 drop, 1 keep
	add(1, ex("blue", -1, "keep"))
	add(4, ex("green", 25, "drop"))
	data, err := trainMatrix(s, rows)
	if err != nil {
		t.Fatal(err)
	}
	table := compiled(t, data)
	for _, c := range []struct {
		color string
		size  int64
		want  string
	}{
		{"red", 5, "keep"},
		{"red", 15, "drop"},
		{"red", 25, "keep"},  // no rows: as red
		{"blue", 5, "drop"},  // no rows: as blue
		{"blue", -1, "drop"}, // one row of keep is too few against blue
		{"green", 25, "drop"},
		{"", 5, "drop"}, // absent counts as other
	} {
		if got := decide(t, table, ex(c.color, c.size, "keep")); got != c.want {
			t.Errorf("%q %d: %s, want %s\n%s", c.color, c.size, got, c.want, data)
		}
	}
}

func TestTrainMatrixRefusesRowsWithoutACell(t *testing.T) {
	s, ex := toy(t)
	s.dims[1] = ranges("size", "local.size", false, "10")
	if _, err := trainMatrix(s, times(2, ex("red", -1, "keep"))); err == nil || !strings.Contains(err.Error(), "falls into no cell") {
		t.Errorf("error %v", err)
	}
	s.dims[1] = ranges("size", "local.size", false, "20", "10")
	if _, err := trainMatrix(s, times(2, ex("red", 1, "keep"))); err == nil {
		t.Error("no error for edges out of order")
	}
}

func compiled(t *testing.T, data []byte) *flash.Table {
	t.Helper()
	cfb, err := flash.CompileMatrix("m.json", data)
	if err != nil {
		t.Fatal(err)
	}
	table, err := flash.Open("m.cfb", cfb)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func decide(t *testing.T, b decision.Backend, ex *datasets.Example) string {
	t.Helper()
	var out decision.Response
	if err := b.Decide(t.Context(), request(ex), &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0].Action
}

func TestFeatureColumns(t *testing.T) {
	text, number, null := decision.StringValue("Go-http-CLIENT"), decision.IntValue(7), decision.Value{}
	for _, c := range []struct {
		f    feature
		v    decision.Value
		want []float64
	}{
		{feature{contains: "client"}, text, []float64{1}},
		{feature{contains: "python"}, text, []float64{0}},
		{feature{contains: "client"}, null, []float64{0}},
		{feature{equals: "Go-http-CLIENT"}, text, []float64{1}},
		{feature{equals: "go-http-client"}, text, []float64{0}},
		{feature{equalsTrue: true}, decision.BoolValue(true), []float64{1}},
		{feature{equalsTrue: true}, decision.BoolValue(false), []float64{0}},
		{feature{present: true}, number, []float64{1}},
		{feature{present: true}, null, []float64{0}},
		{feature{bins: []float64{5, 7, 9}}, number, []float64{0, 0, 1, 0}}, // [7,9) holds 7
		{feature{bins: []float64{5, 7, 9}}, decision.DoubleValue(6.9), []float64{0, 1, 0, 0}},
		{feature{bins: []float64{5, 7, 9}}, decision.IntValue(100), []float64{0, 0, 0, 1}},
		{feature{bins: []float64{5, 7, 9}}, null, []float64{1, 0, 0, 0}},
		{feature{log: true, mean: 1, scale: 2}, number, []float64{(math.Log(8) - 1) / 2}},
	} {
		got := make([]float64, c.f.width())
		c.f.columns(c.v, got)
		for i := range got {
			if len(got) != len(c.want) || math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%+v of %v: %v, want %v", c.f, c.v, got, c.want)
				break
			}
		}
	}
}

// Under a matrix an example has the utilities of its label; its own go first.
func TestUtilities(t *testing.T) {
	s, ex := toy(t)
	e := ex("red", 1, "drop")
	if u := s.utilities(e); u[0] != 0 || u[1] != 1 {
		t.Errorf("by the matrix %v", u)
	}
	e.Label.Utilities = []snapshot.ActionUtility{{Action: "keep", Utility: 0.3}}
	if u := s.utilities(e); u[0] != 0.3 || u[1] != 1 {
		t.Errorf("with utilities of its own %v", u)
	}
	other := ex("red", 1, "keep")
	other.Label.Utilities = []snapshot.ActionUtility{{Action: "keep", Utility: 1}, {Action: "drop", Utility: 0.2}}
	e.Label.Utilities = []snapshot.ActionUtility{{Action: "keep", Utility: 0.3}, {Action: "drop", Utility: 1}}
	third := ex("red", 1, "drop")
	third.Label.Utilities = []snapshot.ActionUtility{{Action: "keep", Utility: 0.5}, {Action: "drop", Utility: 1}}
	m := s.meanUtility([]*datasets.Example{e, other, third})
	if m["drop"]["keep"] != 0.4 || m["drop"]["drop"] != 1 || m["keep"]["drop"] != 0.2 {
		t.Errorf("means %v", m)
	}
}

func TestSetUpOfUnknownScenario(t *testing.T) {
	if _, err := setUp("frod", nil); err == nil {
		t.Error("no error")
	}
	if _, err := train("frod", datasets.Demo("frod")); err == nil {
		t.Error("no error")
	}
}

func TestSolve(t *testing.T) {
	a := [][]float64{{4, 2, 0}, {2, 5, 1}, {0, 1, 3}}
	want := []float64{1, -2, 3}
	b := make([]float64, 3)
	for i := range a {
		for j := range a {
			b[i] += a[i][j] * want[j]
		}
	}
	x, err := solve(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if math.Abs(x[i]-want[i]) > 1e-12 {
			t.Errorf("x[%d] = %v, want %v", i, x[i], want[i])
		}
	}
	if _, err := solve([][]float64{{1, 2}, {2, 1}}, []float64{1, 1}); err == nil {
		t.Error("no error for a matrix that is not positive definite")
	}
}
