package models

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dmitryikh/leaves"

	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/decision"
)

// testdata returns the directory of leaves' test files.
func testdata(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dmitryikh/leaves").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata")
}

// numbers reads a file of rows of numbers.
func numbers(t testing.TB, file string) [][]float64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]float64
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var row []float64
		for _, w := range strings.Fields(line) {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			row = append(row, v)
		}
		out = append(out, row)
	}
	return out
}

// libsvm reads rows `label index:value ...`; what is not listed is 0, as it was when the
// file was written from a dense matrix.
func libsvm(t testing.TB, file string, features int) [][]float64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]float64
	for line := range strings.Lines(string(data)) {
		row := make([]float64, features)
		for _, w := range strings.Fields(line)[1:] {
			var i int
			var v float64
			if _, err := fmt.Sscanf(w, "%d:%g", &i, &v); err != nil {
				t.Fatal(err)
			}
			row[i] = v
		}
		out = append(out, row)
	}
	return out
}

func compile(t testing.TB, trees []byte, classes int) *model.Model {
	t.Helper()
	names := make([]string, classes)
	for i := range names {
		names[i] = strconv.Quote(fmt.Sprintf("c%d", i))
	}
	text := fmt.Sprintf(`{"model": "lightgbm", "file": "trees.txt", "classes": [%s]}`, strings.Join(names, ", "))
	m, err := model.CompileIn(fstest.MapFS{"trees.txt": {Data: trees}}, "model.json", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// schema has the features' names as the file of trees has them.
func schema(t testing.TB, trees []byte) *decision.Schema {
	t.Helper()
	_, names, _ := bytes.Cut(trees, []byte("\nfeature_names="))
	names, _, _ = bytes.Cut(names, []byte("\n"))
	var fields []decision.Field
	for n := range strings.FieldsSeq(string(names)) {
		fields = append(fields, decision.Field{Name: n, Type: decision.Double})
	}
	s, err := decision.NewSchema(fields...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(s *decision.Schema, row []float64) *decision.Request {
	values := make([]decision.Value, len(row))
	for i, x := range row {
		if !math.IsNaN(x) {
			values[i] = decision.DoubleValue(x)
		}
	}
	return &decision.Request{Attrs: decision.Attrs{Schema: s, Values: values}, Questions: make([]decision.Question, 1)}
}

func probabilities(t testing.TB, m *model.Model, req *decision.Request) []float64 {
	t.Helper()
	var out decision.Response
	if err := m.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	d := out.Decisions[0]
	if d.Status != decision.OK {
		t.Fatalf("%+v", d)
	}
	p := make([]float64, len(d.Candidates))
	for i, c := range d.Candidates {
		p[i] = c.Probability.V
	}
	return p
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// softmax turns raw scores into probabilities.
func softmax(raw []float64) []float64 {
	p, sum := make([]float64, len(raw)), 0.0
	for i, z := range raw {
		p[i] = math.Exp(z)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// The predictions were written by LightGBM; those of kddcup99, with 13 classes and splits
// on categories, are raw scores.
func TestAgainstLightGBM(t *testing.T) {
	dir := testdata(t)
	for _, tc := range []struct {
		model, rows, want string
		classes, skip     int // skip: the rows begin with the label
		raw               bool
	}{
		{"lg_dart_breast_cancer.model", "breast_cancer_test.tsv", "lg_dart_breast_cancer_true_predictions.txt", 2, 0, false},
		{"lgmulticlass.model", "multiclass_test.tsv", "lgmulticlass_true_predictions.txt", 5, 1, false},
		{"lg_kddcup99.model", "kddcup99_test.tsv", "lg_kddcup99_true_predictions.txt", 13, 0, true},
	} {
		trees := read(t, filepath.Join(dir, tc.model))
		m, s := compile(t, trees, tc.classes), schema(t, trees)
		rows := numbers(t, filepath.Join(dir, tc.rows))
		want := numbers(t, filepath.Join(dir, tc.want))
		if len(rows) != len(want) || len(rows) < 30 {
			t.Fatalf("%s: %d rows, %d predictions", tc.model, len(rows), len(want))
		}
		worst := 0.0
		for i, row := range rows {
			p := probabilities(t, m, request(s, row[tc.skip:]))
			if tc.raw {
				want[i] = softmax(want[i])
			}
			for k, x := range want[i] {
				worst = max(worst, math.Abs(p[len(p)-len(want[i])+k]-x))
			}
		}
		t.Logf("%s: %d rows, probabilities differ by at most %.2g", tc.model, len(rows), worst)
		if worst > 1e-14 {
			t.Errorf("%s: probabilities differ by %v", tc.model, worst)
		}
	}
}

// A random forest of version v2 is refused, since the releases that wrote it disagree on
// what its leaves are. Its average, which the release at hand predicted, is what a v3
// file has as logit.
func TestAgainstLightGBMForest(t *testing.T) {
	dir := testdata(t)
	trees := read(t, filepath.Join(dir, "lg_rf_iris.model"))
	text := []byte(`{"model": "lightgbm", "file": "t", "classes": ["a", "b"]}`)
	if _, err := model.CompileIn(fstest.MapFS{"t": {Data: trees}}, "model.json", text, nil); err == nil || !strings.Contains(err.Error(), "random forest") {
		t.Errorf("got %v", err)
	}
	trees = bytes.Replace(trees, []byte("version=v2"), []byte("version=v3"), 1)
	m, s := compile(t, trees, 2), schema(t, trees)
	want := numbers(t, filepath.Join(dir, "lg_rf_iris_true_predictions.txt"))
	for i, row := range libsvm(t, filepath.Join(dir, "iris_test.libsvm"), s.Len()) {
		p := probabilities(t, m, request(s, row))
		if got := math.Log(p[1] / p[0]); math.Abs(got-want[i][0]) > 1e-14 {
			t.Errorf("row %d: the average is %v, want %v", i, got, want[i][0])
		}
	}
}

// These three predict amounts, exp(sum), and are refused. With the objective of a binary
// model the sum is a logit, so that the categories and missing values in them count, too.
func TestAgainstLightGBMSums(t *testing.T) {
	dir := testdata(t)
	for _, name := range []string{"gamma_AvgClaimAmount", "poisson_Frequency", "tweedie_PurePremium"} {
		base := filepath.Join(dir, "genlin_fmtp_"+name)
		file := read(t, base+".model")
		text := []byte(`{"model": "lightgbm", "file": "t", "classes": ["a", "b"]}`)
		if _, err := model.CompileIn(fstest.MapFS{"t": {Data: file}}, "model.json", text, nil); err == nil || !strings.Contains(err.Error(), "predicts no class") {
			t.Errorf("%s: %v", name, err)
		}
		objective := "\nobjective=" + strings.SplitN(name, "_", 2)[0]
		trees := bytes.Replace(file, []byte(objective), []byte("\nobjective=binary sigmoid:1"), 1)
		m, s := compile(t, trees, 2), schema(t, trees)
		rows, want := numbers(t, base+"_features.tsv"), numbers(t, base+"_true_predictions.txt")
		worst := 0.0
		for i, row := range rows {
			p := probabilities(t, m, request(s, row))
			worst = max(worst, math.Abs(p[1]/p[0]/want[i][0]-1)) // odds are exp(logit)
		}
		t.Logf("%s: %d rows, predictions differ by at most %.2g of their value", name, len(rows), worst)
		if worst > 1e-12 || len(rows) != len(want) {
			t.Errorf("%s: %d rows, %d predictions, differ by %v", name, len(rows), len(want), worst)
		}
	}
}

// On a larger model without published predictions, leaves is the second opinion.
func TestAgainstLeaves(t *testing.T) {
	dir := testdata(t)
	file := filepath.Join(dir, "lg_breast_cancer.txt")
	trees := read(t, file)
	m, s := compile(t, trees, 2), schema(t, trees)
	peer, err := leaves.LGEnsembleFromFile(file, true)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for _, row := range numbers(t, filepath.Join(dir, "breast_cancer_test.tsv")) {
		worst = max(worst, math.Abs(probabilities(t, m, request(s, row))[1]-peer.PredictSingle(row, 0)))
	}
	t.Logf("probabilities differ by at most %.2g", worst)
	if worst > 1e-15 {
		t.Errorf("probabilities differ by %v", worst)
	}
}

// The same model, row by row, in both.
func BenchmarkBreastCancer39Trees(b *testing.B) {
	dir := testdata(b)
	file := filepath.Join(dir, "lg_breast_cancer.txt")
	trees, rows := read(b, file), numbers(b, filepath.Join(dir, "breast_cancer_test.tsv"))
	s := schema(b, trees)
	m := compile(b, trees, 2)
	peer, err := leaves.LGEnsembleFromFile(file, true)
	if err != nil {
		b.Fatal(err)
	}
	reqs := make([]*decision.Request, len(rows))
	for i, row := range rows {
		reqs[i] = request(s, row)
	}
	b.Run("model", func(b *testing.B) {
		var out decision.Response
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := m.Decide(context.Background(), reqs[i%len(reqs)], &out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("leaves", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			peer.PredictSingle(rows[i%len(rows)], 0)
		}
	})
}
