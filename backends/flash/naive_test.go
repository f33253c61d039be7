package flash

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// naive decides straight from the matrix JSON, as slowly and plainly as it can be
// written: an independent reading of the same file.
func naive(file map[string]any, values map[string]float64) string {
	cell := any(file["matrix"])
	for _, d := range file["dimensions"].([]any) {
		dim := d.(map[string]any)
		x, have := values[dim["name"].(string)]
		found := ""
		for text, v := range dim["mapping"].(map[string]any) {
			var lo, hi float64
			if n, _ := fmt.Sscanf(strings.Replace(text, "-", " ", 1), "%f %f", &lo, &hi); n == 1 {
				hi = math.Inf(1)
			}
			if have && x >= lo && x < hi {
				found = v.(string)
			}
		}
		at := -1
		for i, v := range dim["values"].([]any) {
			if v == found {
				at = i
			}
		}
		if at < 0 {
			return ""
		}
		cell = cell.([]any)[at]
	}
	for _, a := range file["actions"].([]any) {
		if a.(map[string]any)["id"] == cell {
			return a.(map[string]any)["type"].(string)
		}
	}
	return "no such id"
}

// randomMatrix returns a matrix file of numeric dimensions with gaps at their ends.
func randomMatrix(rng *rand.Rand) (map[string]any, []string) {
	var dims []any
	var names []string
	sizes := []int{}
	for i := range 1 + rng.IntN(4) {
		name, size := fmt.Sprint("d", i), 1+rng.IntN(5)
		var values []any
		mapping, edge := map[string]any{}, rng.Float64()
		for k := range size {
			v, next := fmt.Sprint("v", k), edge+0.1+rng.Float64()
			values = append(values, v)
			mapping[fmt.Sprintf("%.6f-%.6f", edge, next)] = v
			edge, _ = json.Number(fmt.Sprintf("%.6f", next)).Float64()
		}
		if rng.IntN(2) == 0 {
			mapping[fmt.Sprintf("%.6f+", edge)] = "v0"
		}
		dims = append(dims, map[string]any{"name": name, "values": values, "mapping": mapping})
		names, sizes = append(names, name), append(sizes, size)
	}
	var build func(d int) any
	build = func(d int) any {
		if d == len(sizes) {
			return float64(rng.IntN(300))
		}
		list := make([]any, sizes[d])
		for i := range list {
			list[i] = build(d + 1)
		}
		return list
	}
	var actions []any
	for i := range 300 { // more than 256: two bytes a cell
		actions = append(actions, map[string]any{"id": float64(i), "type": fmt.Sprint("a", i)})
	}
	return map[string]any{"dimensions": dims, "actions": actions, "matrix": build(0)}, names
}

func TestSameAsNaiveReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hits, misses := 0, 0
	for range 40 {
		file, names := randomMatrix(rng)
		data, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		cfb, err := CompileMatrix("r.json", data)
		if err != nil {
			t.Fatal(err)
		}
		tab, err := Open("r.cfb", cfb)
		if err != nil {
			t.Fatal(err)
		}
		var fields []decision.Field
		for _, n := range names {
			fields = append(fields, decision.Field{Name: n, Type: decision.Double})
		}
		schema, err := decision.NewSchema(fields...)
		if err != nil {
			t.Fatal(err)
		}
		out := new(decision.Response)
		for range 100 {
			values := map[string]float64{}
			req := &decision.Request{Attrs: decision.Attrs{Schema: schema}, Questions: make([]decision.Question, 1)}
			for _, n := range names {
				v := decision.Value{}
				if rng.IntN(20) > 0 {
					values[n] = rng.Float64() * 4
					v = decision.DoubleValue(values[n])
				}
				req.Attrs.Values = append(req.Attrs.Values, v)
			}
			if err := tab.Decide(context.Background(), req, out); err != nil {
				t.Fatal(err)
			}
			if want := naive(file, values); out.Decisions[0].Action != want {
				t.Fatalf("%v: got %q, want %q\n%s", values, out.Decisions[0].Action, want, data)
			} else if want != "" {
				hits++
			} else {
				misses++
			}
		}
	}
	if hits < 500 || misses < 500 {
		t.Errorf("%d hits and %d misses do not test much", hits, misses)
	}
}
