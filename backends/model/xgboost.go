package model

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/internal/document"
)

// xgBoost reads a model in XGBoost's JSON format and stops at the first error.
type xgBoost struct {
	*jsonReader
	e          ensemble
	booster    string
	objective  string
	hasLearner bool
	// classes, features and baseScore are those of learner_model_param.
	classes, features int
	baseScore         []float64
	groups            []int
	weights           []float32
	// total counts nodes, words those of category sets.
	total, words int
}

// readXGBoost returns the ensemble; the error is a [document.Problems] of one. names, when
// not nil, stand for feature_names that the file lacks.
func readXGBoost(name string, data []byte, names []string) (*ensemble, error) {
	r := &xgBoost{jsonReader: newJSONReader(name, data)}
	r.e = ensemble{engine: "xgboost/1", single: true, scale: 1}
	if err := r.notJSON(); err != nil {
		return nil, err
	}
	if err := r.file(); err != nil {
		return nil, err
	}
	if r.e.names == nil {
		r.e.names = names
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return &r.e, nil
}

// notJSON tells the binary formats: UBJSON begins as JSON does, but its keys have a type
// byte and a length before them.
func (r *xgBoost) notJSON() error {
	head := r.data[:min(len(r.data), 64)]
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(text) > 1 && text[0] == '{' && strings.IndexByte("\" \t\r\n}", text[1]) < 0 || bytes.HasPrefix(text, []byte("{L\x00")):
		return r.errorf(0, "save the model with save_model(\"model.json\"): the name's ending chooses the format", "the file is UBJSON")
	case len(text) == 0 || text[0] != '{':
		return r.errorf(0, "save the model with save_model(\"model.json\")", "the file is not a JSON object")
	}
	return nil
}

func (r *xgBoost) file() error {
	err := r.object("the file", func(key string) error {
		if key != "learner" {
			return r.skip(key)
		}
		r.hasLearner = true
		return r.object("learner", r.learner)
	})
	if err == nil && int(r.here()) < len(r.data) {
		return r.errorf(r.here(), "", "text after the end of the document")
	}
	return err
}

func (r *xgBoost) learner(key string) error {
	switch key {
	case "feature_names":
		at := r.here()
		if err := r.value("learner.feature_names", &r.e.names); err != nil {
			return err
		}
		if len(r.e.names) == 0 {
			r.e.names = nil
		} else if i := firstDouble(r.e.names); i >= 0 {
			return r.errorf(at, "", "the feature name %q stands twice", document.Short(r.e.names[i]))
		}
		return nil
	case "objective":
		var o struct {
			Name string `json:"name"`
		}
		at := r.here()
		if err := r.value("learner.objective", &o); err != nil {
			return err
		}
		r.objective = o.Name
		if err := checkObjective(o.Name); err != "" {
			return r.errorf(at, "train with objective binary:logistic or multi:softprob", "%s", err)
		}
		return nil
	case "learner_model_param":
		return r.params()
	case "gradient_booster":
		return r.object("learner.gradient_booster", r.gradientBooster)
	}
	return r.skip("learner." + document.Short(key))
}

func checkObjective(name string) string {
	switch name {
	case "binary:logistic", "multi:softprob", "multi:softmax":
		return ""
	case "":
		return "learner.objective has no name: it is not known what the sums mean"
	}
	return "objective " + strconv.Quote(document.Short(name)) + " predicts no class with a probability"
}

// params reads learner_model_param, whose numbers are texts.
func (r *xgBoost) params() error {
	at := r.here()
	var p struct {
		Base    string `json:"base_score"`
		Classes string `json:"num_class"`
		Feature string `json:"num_feature"`
		Target  string `json:"num_target"`
	}
	if err := r.value("learner.learner_model_param", &p); err != nil {
		return err
	}
	if p.Target != "" && p.Target != "1" && p.Target != "0" {
		return r.errorf(at, "", "num_target is %s: one model for several targets is not supported", document.Short(p.Target))
	}
	var ok bool
	if r.classes, ok = count(p.Classes, maxClasses); !ok {
		return r.errorf(at, "", "num_class %q must be a whole number from 0 to %d", document.Short(p.Classes), maxClasses)
	}
	if r.features, ok = count(p.Feature, maxColumns); !ok {
		return r.errorf(at, "", "num_feature %q must be a whole number from 0 to %d", document.Short(p.Feature), maxColumns)
	}
	if r.baseScore, ok = baseScore(p.Base); !ok {
		return r.errorf(at, "", "base_score %q is not a finite number, or a list of them in brackets", document.Short(p.Base))
	}
	return nil
}

func count(s string, limit int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n <= limit
}

// baseScore reads "5E-1", or "[5E-1]" and "[1E0,2E0]" as versions from 3.1 on write it.
func baseScore(s string) ([]float64, bool) {
	inner, list := strings.CutPrefix(s, "[")
	if list {
		if inner, list = strings.CutSuffix(inner, "]"); !list {
			return nil, false
		}
	}
	var out []float64
	for part := range strings.SplitSeq(inner, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || len(out) > maxClasses {
			return nil, false
		}
		out = append(out, x)
	}
	return out, true
}

// gradientBooster reads gbtree; dart wraps one and weighs its trees.
func (r *xgBoost) gradientBooster(key string) error {
	switch key {
	case "name":
		at := r.here()
		if err := r.value("gradient_booster.name", &r.booster); err != nil {
			return err
		}
		if r.booster != "gbtree" && r.booster != "dart" {
			return r.errorf(at, "train with booster gbtree or dart", "booster %q has no trees", document.Short(r.booster))
		}
		return nil
	case "gbtree":
		return r.object("gradient_booster.gbtree", func(key string) error {
			if key == "model" {
				return r.object("gbtree.model", r.model)
			}
			return r.skip(key)
		})
	case "model":
		return r.object("gradient_booster.model", r.model)
	case "weight_drop":
		return r.value("gradient_booster.weight_drop", &r.weights)
	}
	return r.skip("gradient_booster." + document.Short(key))
}

func (r *xgBoost) model(key string) error {
	switch key {
	case "tree_info":
		return r.value("model.tree_info", &r.groups)
	case "cats":
		var c struct {
			Enc []json.RawMessage `json:"enc"`
		}
		if err := r.value("model.cats", &c); err != nil {
			return err
		}
		if len(c.Enc) > 0 {
			r.e.encoded = "cats"
		}
		return nil
	case "trees":
		return r.array("model.trees", func() error {
			t, err := r.tree(len(r.e.trees))
			r.e.trees = append(r.e.trees, tree{nodes: t})
			return err
		})
	}
	return r.skip("model." + document.Short(key))
}

// finish checks what belongs together and applies base score and weights.
func (r *xgBoost) finish() error {
	end := int64(0)
	switch {
	case !r.hasLearner:
		return r.errorf(end, "save the model with save_model, not with dump_model", `missing field "learner"`)
	case r.booster == "":
		return r.errorf(end, "", "learner.gradient_booster has no name")
	case r.objective == "":
		return r.errorf(end, "", "learner has no objective: it is not known what the sums mean")
	case r.baseScore == nil:
		return r.errorf(end, "", "learner has no learner_model_param")
	case len(r.e.trees) == 0:
		return r.errorf(end, "", "the model has no tree")
	case len(r.groups) != len(r.e.trees):
		return r.errorf(end, "", "tree_info has %d entries for %d trees", len(r.groups), len(r.e.trees))
	case len(r.e.names) == 0:
		return r.errorf(end, `name them in "feature_names" of the model file, in the order of the training columns, or train with named columns`, "the file has no feature_names")
	case len(r.e.names) != r.features:
		return r.errorf(end, "", "%d feature_names for %d features", len(r.e.names), r.features)
	case (r.booster == "dart") != (r.weights != nil) || r.weights != nil && len(r.weights) != len(r.e.trees):
		return r.errorf(end, "", "booster %s with %d tree weights for %d trees", r.booster, len(r.weights), len(r.e.trees))
	}
	if err := r.base(); err != nil {
		return err
	}
	for i := range r.e.trees {
		t := &r.e.trees[i]
		if t.group = r.groups[i]; t.group < 0 || t.group >= r.e.groups {
			return r.errorf(end, "", "tree_info[%d] is %d, the model has %d groups", i, t.group, r.e.groups)
		}
		for k := range t.nodes {
			if n := &t.nodes[k]; n.isLeaf() && r.weights != nil {
				n.value = float64(float32(n.value) * r.weights[i])
			}
			if n := &t.nodes[k]; !n.isLeaf() && int(n.feature) >= r.features {
				return r.errorf(end, "", "tree %d splits on feature %d of %d", i, n.feature, r.features)
			}
		}
	}
	return nil
}

// base turns base_score into what the sums begin with. For binary:logistic it is a
// probability; the classes' sums take it as it is.
func (r *xgBoost) base() error {
	r.e.groups = max(1, r.classes)
	binary := r.objective == "binary:logistic"
	switch n := len(r.baseScore); {
	case binary && r.classes > 1 || !binary && r.classes < 2:
		return r.errorf(0, "", "objective %s with num_class %d", r.objective, r.classes)
	case n != 1 && n != r.e.groups:
		return r.errorf(0, "", "base_score has %d numbers for %d groups", n, r.e.groups)
	}
	r.e.base = make([]float64, r.e.groups)
	for k := range r.e.base {
		b := float32(r.baseScore[min(k, len(r.baseScore)-1)])
		if binary {
			if !(b > 0 && b < 1) {
				return r.errorf(0, "", "base_score %v must be a probability above 0 and below 1", b)
			}
			b = float32(-math.Log(float64(1/b - 1)))
		}
		r.e.base[k] = float64(b)
	}
	return nil
}
