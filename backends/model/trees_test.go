package model

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
	"github.com/clefbench/clefbench/internal/document"
)

// smallLightGBM has two trees: metrics.load at most 0.5 gives -1, else country in {1, 33}
// gives 2, else 0.5; and a tree of one leaf, 0.25. Leaves were seen by 60, 30 and 10 rows.
const smallLightGBM = `tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=binary sigmoid:2
feature_names=metrics.load unused country
feature_infos=[0:1] none 0:1:33

Tree=0
num_leaves=3
num_cat=1
split_feature=0 2
split_gain=3 2
threshold=0.5 0
decision_type=10 1
left_child=-1 -2
right_child=1 -3
leaf_value=-1 2 0.5
leaf_count=60 30 10
internal_value=0 0
internal_count=100 40
cat_boundaries=0 2
cat_threshold=2 2
is_linear=0
shrinkage=0.1


Tree=1
num_leaves=1
num_cat=0
split_feature=
threshold=
decision_type=
left_child=
right_child=
leaf_value=0.25
shrinkage=1


end of trees

pandas_categorical:null
`

const smallModel = `{"model": "lightgbm", "name": "edge-trees", "version": "7", "file": "trees.txt",
 "features": {"country": {"categories": ["DE", "FR"]}},
 "classes": ["allow", "block"]}`

func small(t testing.TB) *Model {
	t.Helper()
	m, err := CompileIn(fstest.MapFS{"trees.txt": {Data: []byte(smallLightGBM)}}, "model.json", []byte(smallModel), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// decision_type 10 is missing type NaN with default left; sigmoid 2 doubles the sum.
func TestLightGBMByHand(t *testing.T) {
	m := small(t)
	for _, tc := range []struct {
		load, country any
		sum           float64
	}{
		{0.5, "FR", -1}, {math.Nextafter(0.5, 1), "FR", 2}, {0.9, "DE", 0.5}, {0.9, "XX", 0.5}, {0.9, nil, 0.5},
		{nil, "FR", -1}, {math.NaN(), "FR", -1}, {true, "FR", 2}, {int64(1), "FR", 2}, {"0.9", "FR", -1}, {math.Inf(1), "DE", 0.5},
	} {
		d := decide(t, m, request(t, "metrics.load", tc.load, "country", tc.country))
		want := 1 / (1 + math.Exp(-2*(tc.sum+0.25)))
		if got := d.Candidates[1].Probability.V; d.Status != decision.OK || !near(got, want) {
			t.Errorf("%v, %v: P(block) = %v, want %v", tc.load, tc.country, got, want)
		}
	}
}

// smallXGBoost: a < 0.1 in float32 gives 0.5, else category b in {1} gives -1, else 2;
// base_score 0.25 has the logit ln(1/3).
const smallXGBoost = `{"learner": {"feature_names": ["a", "b"], "feature_types": ["float", "c"],
 "gradient_booster": {"model": {"tree_info": [0], "trees": [
  {"left_children": [1, -1, 3, -1, -1], "right_children": [2, -1, 4, -1, -1], "split_indices": [0, 0, 1, 0, 0],
   "split_conditions": [0.1, 0.5, NaN, 2, -1], "default_left": [false, false, true, false, false], "split_type": [0, 0, 1, 0, 0],
   "categories": [1], "categories_nodes": [2], "categories_segments": [0], "categories_sizes": [1], "sum_hessian": [4, 1, 3, 2, 1]}]}, "name": "gbtree"},
 "learner_model_param": {"base_score": "[2.5E-1]", "num_class": "0", "num_feature": "2", "num_target": "1"},
 "objective": {"name": "binary:logistic"}}, "version": [3, 1, 0]}`

func TestXGBoostByHand(t *testing.T) {
	m := treeModel(t, xgboost, []byte(smallXGBoost), 2, "")
	tenth := float64(float32(0.1)) // above 0.1, which rounds to it: not less, in float32
	for _, tc := range []struct {
		a, b any
		leaf float64
	}{
		{0.1, 0.0, 2}, {tenth, 1.0, -1}, {math.Nextafter(tenth, 0), 1.0, -1}, {float64(math.Nextafter32(0.1, 0)), 1.0, 0.5},
		{nil, 1.0, -1}, {nil, 7.0, 2}, {5.0, nil, 2}, {5.0, -1.0, 2}, {5.0, 1.9, -1}, {-5.0, nil, 0.5},
	} {
		d := decide(t, m, request(t, "a", tc.a, "b", tc.b))
		want := 1 / (1 + 3*math.Exp(-tc.leaf))
		if got := d.Candidates[1].Probability.V; math.Abs(got-want) > 1e-7 {
			t.Errorf("%v, %v: P = %v, want %v", tc.a, tc.b, got, want)
		}
	}
}

// A class has a base score of its own from XGBoost 3.1 on: with leaves of 0 the
// probabilities are those of ln 1, ln 2 and ln 5.
func TestXGBoostBaseScores(t *testing.T) {
	s := &forestSpec{features: 1, classes: 3}
	zero := &plain{left: &plain{}, right: &plain{}}
	file := xgBoostFile(s, []*plain{zero, zero, zero}, "multi:softprob", fmt.Sprintf("[0E0,%v,%v]", math.Log(2), math.Log(5)))
	d := decide(t, treeModel(t, xgboost, file, 3, ""), request(t, "f0", 1.0))
	for k, want := range []float64{0.125, 0.25, 0.625} {
		if got := d.Candidates[k].Probability.V; math.Abs(got-want) > 1e-7 {
			t.Errorf("P(%d) = %v, want %v", k, got, want)
		}
	}
}

// What the trees say of a request without any of their features is a constant: no answer.
func TestTreesAbstainWithoutAnyFeature(t *testing.T) {
	m := small(t)
	req := request(t, "metrics.laod", 0.9, "country", nil)
	if d := decide(t, m, req); d.Status != decision.Abstain || d.Reason.Skipped != 2 {
		t.Errorf("%+v", d)
	}
	e, err := m.Explain(context.Background(), req)
	if err != nil || e.Text != "none of the 2 features has a value" || len(e.Skipped) != 2 {
		t.Errorf("%+v, %v", e, err)
	}
}

// Means of leaves by hand: (60*-1 + 30*2 + 10*0.5)/100 = 0.05, (30*2 + 10*0.5)/40 = 1.625.
// For block over allow all is doubled: base 2*(0.05+0.25), load 2*(1.625-0.05), country
// 2*(2-1.625).
func TestTreesExplain(t *testing.T) {
	e, err := small(t).Explain(context.Background(), request(t, "metrics.load", 0.9, "country", "FR"))
	if err != nil {
		t.Fatal(err)
	}
	want := "block: P(block) = 0.989, P(allow) = 0.01099; for block over allow, by path attribution (Saabas): metrics.load +3.15, country +0.75, base value +0.6"
	if e.Text != want || e.Position.String() != "model.json:3:23" || len(e.Skipped) != 0 || !slices.Equal(e.Cited, []string{"metrics.load", "country"}) {
		t.Errorf("got  %s\nwant %s\n%+v", e.Text, want, e)
	}
	e, _ = small(t).Explain(context.Background(), request(t, "metrics.load", math.NaN(), "country", "XX"))
	if len(e.Skipped) != 2 || !strings.HasPrefix(e.Skipped[0].Cause, "NaN: the splits") || !strings.HasPrefix(e.Skipped[1].Cause, "the value is none of the categories") {
		t.Errorf("%+v", e.Skipped)
	}
}

// Where training made codes of categories, a number is not its own code: the model file
// must list them, as the file of trees has them.
func TestEncodedCategories(t *testing.T) {
	pandas := strings.Replace(smallLightGBM, "pandas_categorical:null", `pandas_categorical:[["x"], ["DE", "F\u0052"], [10, 20.0]]`, 1)
	with := func(features string) (*Model, error) {
		text := strings.Replace(smallModel, `{"country": {"categories": ["DE", "FR"]}}`, features, 1)
		return CompileIn(fstest.MapFS{"trees.txt": {Data: []byte(pandas)}}, "model.json", []byte(text), nil)
	}
	for features, want := range map[string]string{
		`{}`:                         "model.json:1:69: feature country: its categories were made codes of in training (pandas_categorical)",
		`{"country": "env.country"}`: "model.json:2:26: feature country",
		`{"country": {"categories": ["FR", "DE"]}}`:                "is none of the lists in the file's pandas_categorical",
		`{"country": {"categories": ["DE", 20]}}`:                  "mixes texts and numbers",
		`{"country": {"categories": [20, 20]}}`:                    "20 stands twice",
		`{"country": {"categories": [true]}}`:                      "must be text or a number",
		`{"country": {"categories": []}}`:                          "is empty",
		`{"country": {"categories": ["DE", "FR"]}, "unused": "x"}`: "",
	} {
		if _, err := with(features); want != "" {
			checkProblem(t, err, want, "")
		} else if err != nil {
			t.Error(err)
		}
	}
	m, err := with(`{"country": {"categories": [10, 20]}}`) // code 1 is in the set
	if err != nil {
		t.Fatal(err)
	}
	for country, sum := range map[any]float64{20: 2, 10: 0.5, 1: 0.5, "20": 0.5} {
		d := decide(t, m, request(t, "metrics.load", 0.9, "country", country))
		if want := 1 / (1 + math.Exp(-2*(sum+0.25))); !near(d.Candidates[1].Probability.V, want) {
			t.Errorf("%v: P(block) = %v, want %v", country, d.Candidates[1].Probability.V, want)
		}
	}
	cats := strings.Replace(smallXGBoost, `"tree_info"`, `"cats": {"enc": [{"type": "string"}]}, "tree_info"`, 1)
	_, err = compileTrees(xgboost, []byte(cats), 2, "")
	checkProblem(t, err, "feature b: its categories were made codes of in training (cats)", "categories")
	if _, err := compileTrees(xgboost, []byte(cats), 2, `, "features": {"b": {"categories": ["u", "v"]}}`); err != nil {
		t.Error(err)
	}
}

// The artefact names both files: the digest is of one after the other.
func TestTreesInfo(t *testing.T) {
	i := small(t).Info()
	if want := sha256.Sum256([]byte(smallModel + smallLightGBM)); i.Artefact.StrategyDigest != want {
		t.Errorf("digest %x", i.Artefact.StrategyDigest)
	}
	if i.Artefact.EngineVersion != "lightgbm/1" || i.Artefact.StrategyVersion != "7" || !strings.HasPrefix(i.Artefact.ModelResolved, "trees.txt@") {
		t.Errorf("%+v", i.Artefact)
	}
}

func TestTreesKeepTheContract(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) decision.Backend { return small(t) }, backendtest.Cases{File: true, Requests: []*decision.Request{
		request(t, "metrics.load", 0.9, "country", "FR"), request(t, "metrics.load", nil, "country", "XX"), request(t),
	}})
}

func TestTreesAllocateNothing(t *testing.T) {
	for _, m := range []*Model{small(t), treeModel(t, xgboost, manyTrees(t, 20, 200), 2, "")} {
		req, out := request(t, "metrics.load", 0.9, "country", "FR", "f1", 2.0), decision.Response{}
		run := func() {
			if err := m.Decide(context.Background(), req, &out); err != nil || out.Decisions[0].Status != decision.OK {
				t.Fatal(err, out.Decisions[0])
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", m.engine, n)
		}
	}
}

// Mistakes in the model file, or between it and the trees.
func TestTreeModelErrors(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(smallModel, old, new, 1) }
	for _, tc := range []struct{ model, want, hint string }{
		{with("lightgbm", "lightgmb"), `model.json:1:11: unknown model "lightgmb"`, "lightgbm"},
		{with(`"file": "trees.txt",`, ""), `missing field "file"`, ""},
		{with("trees.txt", "../trees.txt"), `model.json:1:69: file "../trees.txt" leads out`, "file name"},
		{with("trees.txt", "/trees.txt"), `file "/trees.txt" leads out`, ""},
		{with("trees.txt", `a\\b`), "leads out", ""},
		{with("trees.txt", "."), "leads out", ""},
		{with("trees.txt", "no.txt"), "no.txt", "beside"},
		{with("trees.txt", "dir"), "dir is not a regular file", ""},
		{with(`"classes": [`, `"classes": ["x", `), "model.json:3:13: 3 classes, the trees have 2", "label 0"},
		{with(`"block"`, `"allow"`), `class "allow" stands twice`, ""},
		{with(`"country": {`, `"contry": {`), `model.json:2:15: features: the tree file has no feature "contry"`, "country"},
		{with(`"FR"`, `"DE"`), `features.country.categories: DE stands twice`, ""},
		{with(`{"categories": ["DE", "FR"]}`, `{"category": []}`), `unknown field "category"`, "categories"},
		{with(`"version": "7"`, `"sha256": "00"`), "the SHA-256 of trees.txt is ", ""},
		{with(`"version": "7"`, `"otherwise": "b"`), `unknown field "otherwise"`, ""},
		{with(`"version": "7"`, `"feature_names": ["a"]`), "names its features itself", "remove"},
		{strings.Replace(smallModel, "lightgbm", "xgboost", 1), "trees.txt:1:1: the file is not a JSON object", "save_model"},
	} {
		dir := fstest.MapFS{"trees.txt": {Data: []byte(smallLightGBM)}, "dir/x": {}}
		_, err := CompileIn(dir, "model.json", []byte(tc.model), nil)
		checkProblem(t, err, tc.want, tc.hint)
	}
	_, err := Compile("model.json", []byte(smallModel))
	checkProblem(t, err, "can only be read where the model is a file", "")
}

func checkProblem(t *testing.T, err error, want, hint string) {
	t.Helper()
	ps, ok := err.(document.Problems)
	if !ok || !strings.Contains(err.Error(), want) || !strings.Contains(ps.Hint(), hint) {
		t.Errorf("got  %v (%s)\nwant %s (%s)", err, ps.Hint(), want, hint)
	}
}

// With a data set at hand, a feature that no attribute can be is refused: its splits
// would go their default ways without a word.
func TestTreesKnowAttributes(t *testing.T) {
	fields := func(f ...decision.Field) *decision.Schema {
		s, err := decision.NewSchema(f...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	load, text, number := decision.Field{Name: "metrics.load", Type: decision.Double}, decision.Field{Name: "country", Type: decision.String}, decision.Field{Name: "country", Type: decision.Int}
	dir := fstest.MapFS{"trees.txt": {Data: []byte(smallLightGBM)}}
	without := strings.Replace(smallModel, `{"country": {"categories": ["DE", "FR"]}}`, "{}", 1)
	mapped := strings.Replace(smallModel, `{"country": {`, `{"metrics.load": "metrics.laod", "country": {"name": "contry", `, 1)
	for _, tc := range []struct {
		model  string
		schema *decision.Schema
		want   string // without a severity: an error
	}{
		{smallModel, fields(load, text), ""},
		{without, fields(load, number), ""},
		{without, fields(load, text), "feature country is a number, but country is string"},
		{smallModel, fields(load, number), "the categories are texts, but country is int"},
		{mapped, fields(load, text), `feature country: unknown attribute "contry"`},
		{smallModel, fields(text), "warning: the data set does not record metrics.load"},
	} {
		got := ""
		for _, p := range CheckIn(dir, "model.json", []byte(tc.model), tc.schema) {
			if p.Severity == document.SevWarning {
				got += "warning: "
			}
			got += p.Error() + "\n"
		}
		got = strings.ReplaceAll(got, "warning: model.json:1:69: ", "warning: ")
		if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("got %s\nwant %s", got, tc.want)
		}
		_, err := CompileIn(dir, "model.json", []byte(tc.model), tc.schema)
		if refused := tc.want != "" && !strings.HasPrefix(tc.want, "warning"); (err != nil) != refused {
			t.Errorf("%s: compile says %v", tc.want, err)
		}
	}
}
