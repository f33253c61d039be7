package model

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clefbench/clefbench/decision"
)

// goldenRow is a row of a file that testdata/xgboost/golden.py wrote.
type goldenRow struct{ x, margin, p, contribs []float64 }

func golden(t testing.TB, name string) []goldenRow {
	t.Helper()
	data, err := os.ReadFile("testdata/xgboost/" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	var out []goldenRow
	for line := range strings.Lines(string(data)) {
		var parts [4][]float64
		for i, part := range strings.Split(line, "|") {
			for _, w := range strings.Fields(part) {
				v, err := strconv.ParseFloat(w, 64)
				if err != nil {
					t.Fatal(err)
				}
				parts[i] = append(parts[i], v)
			}
		}
		out = append(out, goldenRow{parts[0], parts[1], parts[2], parts[3]})
	}
	return out
}

// treeModel compiles a model of trees; extra are further fields of the model file.
func treeModel(t testing.TB, kind string, file []byte, classes int, extra string) *Model {
	t.Helper()
	m, err := compileTrees(kind, file, classes, extra)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compileTrees(kind string, file []byte, classes int, extra string) (*Model, error) {
	var names []string
	for k := range classes {
		names = append(names, fmt.Sprintf(`"c%d"`, k))
	}
	text := fmt.Sprintf(`{"model": %q, "file": "trees", "classes": [%s]%s}`, kind, strings.Join(names, ", "), extra)
	return CompileIn(fstest.MapFS{"trees": {Data: file}}, "model.json", []byte(text), nil)
}

// rowRequest names the values; NaN is left out.
func rowRequest(t testing.TB, names []string, x []float64) *decision.Request {
	var pairs []any
	for i, v := range x {
		if math.IsNaN(v) {
			pairs = append(pairs, names[i], nil)
		} else {
			pairs = append(pairs, names[i], v)
		}
	}
	return request(t, pairs...)
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The margins and probabilities are those that XGBoost 1.7.4 itself gave, with missing
// values, ties with thresholds, dropped trees, parallel trees, categories that training
// never saw: margins to the last bit of float32.
func TestXGBoostGolden(t *testing.T) {
	numbers, mixed := []string{"a", "b", "c", "d", "e", "f"}, []string{"few", "many", "number"}
	for _, tc := range []struct {
		name    string
		classes int
		names   []string
	}{{"binary", 2, numbers}, {"dart", 2, numbers}, {"forest", 2, numbers}, {"softprob", 3, numbers}, {"categories", 2, mixed}} {
		m := treeModel(t, xgboost, readTestdata(t, "xgboost/"+tc.name+".json"), tc.classes, "")
		worst, worstP, rows := 0.0, 0.0, golden(t, tc.name)
		for _, row := range rows {
			req := rowRequest(t, tc.names, row.x)
			var s probabilities
			m.score(req.Attrs, &s)
			for k, want := range row.margin {
				worst = max(worst, math.Abs(s.logit[k+tc.classes-max(2, len(row.margin))+b2i(len(row.margin) == 1)]-want))
			}
			for k, want := range row.p {
				worstP = max(worstP, math.Abs(s.p[k+b2i(len(row.p) == 1)]-want))
			}
		}
		t.Logf("%s: %d rows, margins differ by at most %.3g, probabilities by %.3g", tc.name, len(rows), worst, worstP)
		if worst > 0 || worstP > 1.5e-7 || len(rows) < 80 {
			t.Errorf("%s: margins differ by %v, probabilities by %v", tc.name, worst, worstP)
		}
	}
}

func b2i(b bool) int { return int(unit(b)) }

// XGBoost's approx_contribs is the path attribution with means weighted by Hessians.
func TestXGBoostContributionsGolden(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	m := treeModel(t, xgboost, readTestdata(t, "xgboost/binary.json"), 2, "")
	worst := 0.0
	for _, row := range golden(t, "binary") {
		req := rowRequest(t, names, row.x)
		sum := 0.0
		got := map[string]float64{}
		for _, c := range m.forest.contributions(req.Attrs, m.bind.Bind(req.Attrs.Schema), 1, 0) {
			got[c.label] = c.by
			sum += c.by
		}
		for i, want := range row.contribs {
			worst = max(worst, math.Abs(got[append(names, "base value")[i]]-want))
		}
		if math.Abs(sum-row.margin[0]) > 1e-5 {
			t.Errorf("the contributions sum to %v, the margin is %v", sum, row.margin[0])
		}
	}
	t.Logf("contributions differ by at most %.3g", worst)
	if worst > 2e-6 {
		t.Errorf("contributions differ by %v", worst)
	}
}

func BenchmarkXGBoost100Trees(b *testing.B) {
	m := treeModel(b, xgboost, manyTrees(b, 100, 44), 2, "")
	benchmark(b, m, randomRequests(b, 44, 256))
}

func benchmark(b *testing.B, m *Model, reqs []*decision.Request) {
	var out decision.Response
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := m.Decide(context.Background(), reqs[i%len(reqs)], &out); err != nil {
			b.Fatal(err)
		}
	}
}
