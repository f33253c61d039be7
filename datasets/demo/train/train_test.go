package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
)

func trained(t *testing.T, name string, examples iter.Seq2[*datasets.Example, error]) map[string][]byte {
	t.Helper()
	files, err := train(name, examples)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The committed files are what the trainer makes. Numbers may differ in the last digit
// kept on a processor that rounds otherwise, texts and cells may not.
func TestCommittedFilesAreTheTrainers(t *testing.T) {
	for _, name := range datasets.DemoScenarios() {
		for file, got := range trained(t, name, datasets.Demo(name)) {
			want, err := fs.ReadFile(datasets.DemoFiles(), "backends/"+name+"/"+file)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if err := json.Unmarshal(got, &a); err != nil {
				t.Fatalf("%s/%s: %v", name, file, err)
			}
			if err := json.Unmarshal(want, &b); err != nil {
				t.Fatalf("%s/%s: %v", name, file, err)
			}
			if !alike(a, b) {
				t.Errorf("%s/%s is not what the trainer makes: run go generate ./datasets", name, file)
			}
		}
	}
}

func alike(a, b any) bool {
	switch a := a.(type) {
	case float64:
		x, ok := b.(float64)
		return ok && math.Abs(a-x) <= 1.5e-6
	case []any:
		x, ok := b.([]any)
		return ok && slices.EqualFunc(a, x, alike)
	case map[string]any:
		x, ok := b.(map[string]any)
		if !ok || len(a) != len(x) {
			return false
		}
		for k, v := range a {
			if w, ok := x[k]; !ok || !alike(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}

// Nothing of the test rows goes in: other test rows, in another order, with other
// labels, give the same bytes; a changed training row does not.
func TestTrainingIgnoresTestRows(t *testing.T) {
	for _, name := range datasets.DemoScenarios() {
		want := trained(t, name, datasets.Demo(name))
		for file, got := range trained(t, name, perturbed(name, false)) {
			if !bytes.Equal(got, want[file]) {
				t.Errorf("%s/%s depends on the test rows", name, file)
			}
		}
	}
	got := trained(t, datasets.Fraud, perturbed(datasets.Fraud, true))
	if want := trained(t, datasets.Fraud, datasets.Demo(datasets.Fraud)); bytes.Equal(got["model.json"], want["model.json"]) {
		t.Error("the test cannot fail: changed training rows change nothing")
	}
}

// perturbed spoils one side of the split: wrong labels, no attributes, each row twice.
func perturbed(name string, train bool) iter.Seq2[*datasets.Example, error] {
	return func(yield func(*datasets.Example, error) bool) {
		for ex, err := range datasets.Demo(name) {
			if err == nil && ex.Train == train {
				ex.Label.Action = ex.Candidates[0]
				ex.Label.Utilities = nil
				ex.Attrs = decision.Attrs{Schema: ex.Attrs.Schema, Values: slices.Clone(ex.Attrs.Values[:len(ex.Attrs.Values)-1])}
				if !yield(ex, nil) {
					return
				}
			}
			if !yield(ex, err) {
				return
			}
		}
	}
}

func TestRunWritesTheFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range datasets.DemoScenarios() {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	if err := run([]string{"-o", dir}, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, name := range datasets.DemoScenarios() {
		for _, file := range []string{"matrix.json", "model.json"} {
			if info, err := os.Stat(filepath.Join(dir, name, file)); err != nil || info.Size() == 0 {
				t.Errorf("%s/%s: %v", name, file, err)
			}
		}
	}
	if err := run([]string{"-x"}, &stderr); err == nil {
		t.Error("an unknown flag is no error")
	}
	if err := run([]string{"-o", filepath.Join(dir, "absent")}, &stderr); err == nil {
		t.Error("a directory that is not there is no error")
	}
}

// The engine and the trainer read features alike: the committed model gives on test rows
// the probabilities that the trainer's own columns give.
func TestModelReadsFeaturesAsTheTrainerDoes(t *testing.T) {
	for _, name := range datasets.DemoScenarios() {
		rows, err := trainingRows(datasets.Demo(name))
		if err != nil {
			t.Fatal(err)
		}
		s, err := setUp(name, rows)
		if err != nil {
			t.Fatal(err)
		}
		s.standardise(rows)
		data, err := fs.ReadFile(datasets.DemoFiles(), "backends/"+name+"/model.json")
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Compile("model.json", data)
		if err != nil {
			t.Fatal(err)
		}
		w := committedWeights(t, data)
		for ex := range datasets.Demo(name) {
			if !ex.Train {
				compareProbabilities(t, s, m, w, ex)
			}
		}
	}
}

func committedWeights(t *testing.T, data []byte) []float64 {
	t.Helper()
	var file struct {
		Classes []struct {
			Bias    float64   `json:"bias"`
			Weights []float64 `json:"weights"`
		} `json:"classes"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var w []float64
	for _, c := range file.Classes {
		w = append(append(w, c.Bias), c.Weights...)
	}
	return w
}

func compareProbabilities(t *testing.T, s *scenario, m *model.Model, w []float64, ex *datasets.Example) {
	t.Helper()
	var out decision.Response
	if err := m.Decide(context.Background(), request(ex), &out); err != nil {
		t.Fatal(err)
	}
	p := softmax(s.design(ex), w, len(s.classes()))
	for _, c := range out.Decisions[0].Candidates {
		i := slices.Index(s.classes(), c.Action)
		if i < 0 || !c.Probability.Set {
			continue // an action that is never right has no class
		}
		if math.Abs(c.Probability.V-p[i]) > 1e-9 {
			t.Fatalf("%s: the model gives %s %v, the trainer %v", ex.SourceID, c.Action, c.Probability.V, p[i])
		}
	}
}

// With one binary feature and next to no penalty the fit is the log odds of the table.
func TestFitAgainstClosedForm(t *testing.T) {
	var x [][]float64
	var y []int
	add := func(n int, on float64, class int) {
		for range n {
			x, y = append(x, []float64{1, on}), append(y, class)
		}
	}
	add(30, 0, 0)
	add(10, 0, 1)
	add(5, 1, 0)
	add(20, 1, 1)
	w, err := fit(x, y, 2, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	base, slope := w[1][0]-w[0][0], w[1][1]-w[0][1]
	if want := math.Log(10.0 / 30); math.Abs(base-want) > 1e-4 {
		t.Errorf("base %v, want %v", base, want)
	}
	if want := math.Log(20.0/5) - math.Log(10.0/30); math.Abs(slope-want) > 1e-4 {
		t.Errorf("slope %v, want %v", slope, want)
	}
}

// At the optimum no small step improves the penalised likelihood, which is computed here
// from its definition.
func TestFitIsAnOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x [][]float64
	var y []int
	for range 300 {
		row := []float64{1, r.NormFloat64(), r.NormFloat64(), float64(r.IntN(2))}
		x, y = append(x, row), append(y, (int(row[3])+r.IntN(3)+int(math.Abs(row[1])))%3)
	}
	const l2 = 2.0
	w, err := fit(x, y, 3, l2)
	if err != nil {
		t.Fatal(err)
	}
	flat := slices.Concat(w...)
	best := likelihood(x, y, flat, l2)
	for i := range flat {
		for _, step := range []float64{1e-3, -1e-3} {
			moved := slices.Clone(flat)
			moved[i] += step
			if likelihood(x, y, moved, l2) >= best {
				t.Errorf("a step of %v in weight %d improves the likelihood", step, i)
			}
		}
	}
}

func likelihood(x [][]float64, y []int, w []float64, l2 float64) float64 {
	sum := 0.0
	for i, row := range x {
		sum += math.Log(softmax(row, w, 3)[y[i]])
	}
	for i, v := range w {
		penalty := l2
		if i%len(x[0]) == 0 {
			penalty /= 1000
		}
		sum -= penalty / 2 * v * v
	}
	return sum
}

func TestFitRefusesWhatIsNotFinite(t *testing.T) {
	if _, err := fit([][]float64{{1, math.NaN()}, {1, 1}}, []int{0, 1}, 2, 1); err == nil {
		t.Error("no error for NaN")
	}
}
