package model

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// Files that are not what they should be: one error, with its line.
func TestLightGBMErrors(t *testing.T) {
	for _, tc := range []struct{ old, new, want, hint string }{
		{"tree\nversion", "Tree\nversion", "trees:1:1: not a LightGBM text model", "save_model"},
		{smallLightGBM, `{"name": "tree"}`, "trees:1:1: not a LightGBM text model", "dump_model"},
		{smallLightGBM, "", "not a LightGBM text model", ""},
		{"v4", "v9", "trees:2:9: unknown version", "v3"},
		{"num_class=1", "num_class=x", "trees:3:11: num_class must be", ""},
		{"binary sigmoid:2", "binary sigmoid:-1", "trees:7:11: sigmoid", ""},
		{"binary sigmoid:2", "regression", `trees:7:11: objective "regression" predicts no class`, "binary"},
		{"binary sigmoid:2", "multiclassova num_class:3", "a probability of its own", "multiclass"},
		{"binary sigmoid:2", "multiclass num_class:1", "multiclass with num_class 1", ""},
		{"objective=binary sigmoid:2\n", "", "names no objective", ""},
		{"=metrics.load unused", "=unused unused", "stands twice", ""},
		{"=metrics.load unused", "=unused", "2 feature_names for 3 features", ""},
		{"num_leaves=3", "num_leaves=4", "trees:14:15: split_feature has 2 numbers, want 3", ""},
		{"split_feature=0 2", "split_feature=0 3", "trees:14:15: node 1 splits on feature 3 of 3", ""},
		{"threshold=0.5 0", "threshold=0.5 x", `trees:16:15: threshold: "x" is not a number`, ""},
		{"threshold=0.5 0", "threshold=inf 0", `"inf" is not a number`, ""},
		{"threshold=0.5 0", "threshold=0.5 1", "node 1 has category set 1 of 1", ""},
		{"decision_type=10 1", "decision_type=14 1", "whose missing type is unknown", ""},
		{"left_child=-1 -2", "left_child=-1 -4", `left_child: "-4"`, ""},
		{"left_child=-1 -2", "left_child=0 -2", "tree 0: node 0 is reached twice", ""},
		{"right_child=1 -3", "right_child=1 1", "reached twice", ""},
		{"cat_boundaries=0 2", "cat_boundaries=0 3", "trees:24:16: cat_boundaries must rise", ""},
		{"cat_boundaries=0 2\n", "", "trees:11:1: cat_boundaries must rise", ""},
		{"cat_threshold=2 2", "cat_threshold=2 -2", `"-2"`, ""},
		{"is_linear=0", "is_linear=1", "linear models are not supported", "linear_tree"},
		{"leaf_value=0.25", "leaf_value=NaN", `"NaN"`, ""},
		{"Tree=1", "Tree=2", "expected Tree=1", ""},
		{"categorical:null", "categorical:{}", "trees:44:1: pandas_categorical is no list", ""},
		{"end of trees", "", "the file ends in tree 1", "cut off"},
		{smallLightGBM[strings.Index(smallLightGBM, "\n\nTree=1"):], "", "the file ends in tree 0", "cut off"},
	} {
		file := strings.Replace(smallLightGBM, tc.old, tc.new, 1)
		if file == smallLightGBM {
			t.Fatalf("%q is not in the file", tc.old)
		}
		_, err := compileTrees(lightgbm, []byte(file), 2, "")
		checkProblem(t, err, tc.want, tc.hint)
	}
}

func TestXGBoostErrors(t *testing.T) {
	for _, tc := range []struct{ old, new, want, hint string }{
		{smallXGBoost, "{L\x00\x00\x00\x00\x00\x00\x00\x07learner{", "trees:1:1: the file is UBJSON", "model.json"},
		{smallXGBoost, "{i\x07learner{", "the file is UBJSON", "model.json"},
		{smallXGBoost, "binf\x00", "not a JSON object", ""},
		{smallXGBoost, "{}", `missing field "learner"`, "save_model"},
		{`"feature_names": ["a", "b"]`, `"feature_names": []`, "no feature_names", "feature_names"},
		{`"feature_names": ["a", "b"]`, `"feature_names": ["a"]`, "1 feature_names for 2 features", ""},
		{`"feature_names": ["a", "b"]`, `"feature_names": ["a", "a"]`, `trees:1:31: the feature name "a" stands twice`, ""},
		{`"name": "gbtree"`, `"model": {}, "name": "gbtree"`, `trees:5:136: learner.gradient_booster: field "model" stands twice`, ""},
		{`"name": "gbtree"`, `"name": "gblinear"`, `booster "gblinear" has no trees`, "gbtree"},
		{`"name": "gbtree"`, `"name": "dart"`, "booster dart with 0 tree weights", ""},
		{"binary:logistic", "reg:squarederror", "predicts no class", "binary:logistic"},
		{"binary:logistic", "multi:softprob", "objective multi:softprob with num_class 0", ""},
		{"[2.5E-1]", "[2.5E-1", "trees:6:25: base_score", ""},
		{"[2.5E-1]", "1.5", "must be a probability", ""},
		{"[2.5E-1]", "[1E-1,1E-1]", "2 numbers for 1 groups", ""},
		{`"num_target": "1"`, `"num_target": "2"`, "several targets", ""},
		{`"tree_info": [0]`, `"tree_info": [1]`, "tree_info[0] is 1", ""},
		{`"tree_info": [0]`, `"tree_info": []`, "0 entries for 1 trees", ""},
		{`"left_children": [1, -1, 3, -1, -1]`, `"left_children": [0, -1, 3, -1, -1]`, "reached twice", ""},
		{`"left_children": [1, -1, 3, -1, -1]`, `"left_children": [1, -1, 9, -1, -1]`, "node 9 of 5", ""},
		{`"left_children": [1, -1, 3, -1, -1]`, `"left_children": [1, -1, -3, -1, -1]`, "trees:3:3: trees[0]: node 2: a child", ""},
		{`"split_indices": [0, 0, 1, 0, 0]`, `"split_indices": [0, 0, 7, 0, 0]`, "splits on feature 7 of 2", ""},
		{`"split_conditions": [0.1,`, `"split_conditions": [NaN,`, "node 0: split_conditions is NaN", ""},
		{`"sum_hessian": [4,`, `"sum_hessian": [NaN,`, "a JSON string cannot stand here", ""},
		{`"split_conditions": [0.1,`, `"split_conditions": [1e99,`, "trees:3:3: trees[0]: a JSON number 1e99 cannot", ""},
		{`"split_type": [0, 0, 1`, `"split_type": [1, 0, 1`, "disagree", ""},
		{`"split_type": [0, 0, 1`, `"split_type": [0, 0, 0`, "node 2: split_conditions is NaN", ""},
		{`"categories": [1]`, `"categories": [70000]`, "category 70000 is outside", ""},
		{`"categories_sizes": [1]`, `"categories_sizes": [2]`, "lead out of categories", ""},
		{`"default_left": [false`, `"default_left": [2`, "cannot stand here", ""},
		{`"default_left": [false, `, `"default_left": [`, "differ in length", ""},
		{`"version": [3, 1, 0]}`, `"version": [3, 1, 0]`, "the file ends too early", "cut off"},
		{`"version": [3, 1, 0]}`, `"version": [3, 1, 0]} x`, "trees:7:67: text after the end", ""},
		{`"categories": [1],`, `"categories": [1];`, "trees:5:21: trees[0]: invalid character ';'", ""},
	} {
		file := strings.Replace(smallXGBoost, tc.old, tc.new, 1)
		if file == smallXGBoost {
			t.Fatalf("%q is not in the file", tc.old)
		}
		_, err := compileTrees(xgboost, []byte(file), 2, "")
		checkProblem(t, err, tc.want, tc.hint)
	}
}

// The model file may name what the training did not.
func TestXGBoostFeatureNames(t *testing.T) {
	file := []byte(strings.Replace(smallXGBoost, `["a", "b"]`, "[]", 1))
	m := treeModel(t, xgboost, file, 2, `, "feature_names": ["x", "y"], "features": {"x": "metrics.x"}`)
	if got := strings.Join(m.Info().Attributes, " "); got != "metrics.x y" {
		t.Errorf("attributes %s", got)
	}
}

// A file of hostile numbers gives an error or a model, in bounded memory and time.
func FuzzLightGBM(f *testing.F) {
	f.Add([]byte(smallLightGBM))
	f.Add([]byte(strings.Replace(smallLightGBM, "categorical:null", `categorical:[["x", 1, true, null], []]`, 1)))
	s := &forestSpec{features: 4, classes: 3, categorical: true}
	r := rand.New(rand.NewPCG(5, 6))
	f.Add(lightGBMFile(s, []*plain{randomTree(r, s, 3), randomTree(r, s, 2), randomTree(r, s, 1)}, "multiclass num_class:3"))
	fuzzTrees(f, lightgbm)
}

func FuzzXGBoost(f *testing.F) {
	f.Add([]byte(smallXGBoost))
	f.Add([]byte(strings.Replace(smallXGBoost, `"tree_info"`, `"cats": {"enc": [{}]}, "tree_info"`, 1)))
	s := &forestSpec{features: 4, classes: 3, categorical: true}
	r := rand.New(rand.NewPCG(5, 6))
	f.Add(xgBoostFile(s, []*plain{randomTree(r, s, 3), randomTree(r, s, 2), randomTree(r, s, 1)}, "multi:softprob", "[1E0,2E0,3E0]"))
	fuzzTrees(f, xgboost)
}

func fuzzTrees(f *testing.F, kind string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		for _, classes := range []int{2, 3} {
			m, err := compileTrees(kind, data, classes, "")
			if err != nil {
				if !strings.Contains(err.Error(), "trees") && !strings.Contains(err.Error(), "model.json") {
					t.Errorf("an error without a place: %v", err)
				}
				continue
			}
			for _, x := range []float64{-1, 0, 0.3, 1e9} {
				var pairs []any
				for _, name := range m.info.Attributes {
					pairs = append(pairs, name, x)
				}
				decide(t, m, request(t, pairs...))
			}
		}
		if !bytes.Equal(before, data) {
			t.Error("the input was changed")
		}
	})
}
