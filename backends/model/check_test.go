package model

import (
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// Weights that have nothing to belong to are one mistake, not one more for each class.
func TestNoFeaturesIsOneFinding(t *testing.T) {
	ps := Check("m.json", []byte(`{"model": "logistic", "features": [], "classes": [{"action": "a", "bias": 0, "weights": [1]}, {"action": "b", "bias": 0, "weights": [2]}]}`), nil)
	if len(ps) != 1 || ps.Error() != "m.json:1:35: features is empty" {
		t.Errorf("got %v", ps)
	}
}

// Check knows the attributes' names and types; Compile does not, since it knows no data
// set.
func TestCheckKnowsAttributes(t *testing.T) {
	schema, err := decision.NewSchema(
		decision.Field{Name: "metrics.fail_rate", Type: decision.Double}, decision.Field{Name: "risk", Type: decision.Double},
		decision.Field{Name: "tier", Type: decision.String}, decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "query.n", Type: decision.Int}, decision.Field{Name: "ok", Type: decision.Bool})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		feature       string
		alone, within string // without and with the data set
	}{
		{`"name": "request.path", "equals": "/"`, `1:45: unknown attribute "request.path" (did you mean "path"?)`, `unknown attribute "request.path" (did you mean "path"?)`},
		{`"name": "rsik"`, `unknown attribute "rsik" (a name outside`, `unknown attribute "rsik" (did you mean "risk"?)`},
		{`"name": "risk", "transform": "log1p"`, `unknown attribute "risk"`, ""},
		{`"name": "ok"`, `unknown attribute "ok"`, ""},
		{`"name": "tier"`, `unknown attribute "tier"`, "1:45: the feature needs a number, but tier is string"},
		{`"name": "path", "bins": [1]`, "the feature needs a number, but path is string", "the feature needs a number, but path is string"},
		{`"name": "query.n", "transform": "log1p"`, "the feature needs a number, but query.n is string", ""},
		{`"name": "metrics.fail_rate", "contains": "a"`, "contains needs a text, but metrics.fail_rate is double", "contains needs a text, but metrics.fail_rate is double"},
		{`"name": "path", "equals": 7`, "1:63: path is string, the value 7 is int: they are never equal", "path is string, the value 7 is int: they are never equal"},
		{`"name": "metrics.fail_rate", "equals": 1`, "", ""},
		{`"name": "local.x", "equals": 1`, "", "1:45: the data set does not record local.x"},
		{`"name": "headers.Accept", "present": true`, "header names are recorded in lower case", "header names are recorded in lower case"},
		{`"name": "metrics.fial_rate"`, "", `the data set does not record metrics.fial_rate (did you mean "metrics.fail_rate"?)`},
	} {
		columns := "[1]"
		if strings.Contains(tc.feature, "bins") {
			columns = "[1, 1]"
		}
		in := []byte(`{"model": "logistic", "features": [{` + tc.feature + `}], "classes": [{"action": "a", "bias": 0, "weights": ` + columns + `}], "otherwise": "b"}`)
		if _, err := Compile("m.json", in); err != nil {
			t.Errorf("%s: compile says %v", tc.feature, err)
		}
		for i, want := range []string{tc.alone, tc.within} {
			got := ""
			for _, p := range Check("m.json", in, []*decision.Schema{nil, schema}[i]) {
				got += p.Error() + " (" + p.Hint + ")"
			}
			if !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s, %d: got %q\nwant %q", tc.feature, i, got, want)
			}
		}
	}
}
