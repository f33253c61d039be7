package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/internal/document"
)

func fileSchema(t testing.TB, kind string) *jsonschema.Resolved {
	t.Helper()
	data, err := schemas.ReadFile("schemas/" + kind + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readerOf(kind string, data []byte) document.Problems {
	switch kind {
	case "rules":
		return rules.Check("f", data, nil)
	case "strategy":
		return strategy.Check("f", data, nil)
	case "matrix":
		return flash.Check("f", data, nil)
	}
	return model.Check("f", data, nil)
}

// instance is a file as a value for a validator: numbers are float64.
func instance(t testing.TB, name string, data []byte) any {
	t.Helper()
	_, root, err := document.Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, encoded(t, root.JSON()))
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded(t testing.TB, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func validFiles(t testing.TB, kind string) []string {
	t.Helper()
	pattern := map[string]string{"rules": "rules/testdata/valid/*", "strategy": "strategy/testdata/valid/*",
		"matrix": "flash/testdata/edge.json"}[kind] // the model there reads names of a data set
	own := filepath.Join("testdata", "schema", kind+".json")
	if pattern == "" {
		return []string{own}
	}
	names, err := filepath.Glob(filepath.Join("..", "..", "backends", pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files of kind %s: %v", len(names), kind, err)
	}
	return append(names, own)
}

// structural are the findings about a file's form, which a schema must have, too.
var structural = regexp.MustCompile(`^unknown field|^missing field| must be (a map|a list|text|true or false|a finite number|a whole number)`)

// The schema and the reader agree on every valid file, and on each of its neighbours: with
// a field less, a field more, or another value in some place. What the schema refuses the
// reader refuses; what the reader refuses for its form the schema refuses.
func TestSchemasAgreeWithReaders(t *testing.T) {
	for _, kind := range schemaKinds() {
		t.Run(kind, func(t *testing.T) {
			schema, refused, forms := fileSchema(t, kind), 0, 0
			for _, name := range validFiles(t, kind) {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if ps := readerOf(kind, data); ps.Errors() > 0 {
					t.Fatalf("%s: %v", name, ps)
				}
				root := instance(t, name, data)
				if err := schema.Validate(root); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				neighbours(root, func(place string) {
					text := encoded(t, root)
					ps, bad := readerOf(kind, text), schema.Validate(decoded(t, text))
					if bad != nil {
						refused++
						if ps.Errors() == 0 {
							t.Errorf("%s, %s: the schema alone says %v", name, place, bad)
						}
					}
					if why := form(ps); why != "" {
						forms++
						if bad == nil {
							t.Errorf("%s, %s: the reader alone says %s", name, place, why)
						}
					}
				})
			}
			t.Logf("%d neighbours refused by the schema, %d by the reader for their form", refused, forms)
			if refused < 50 || forms < 50 {
				t.Error("the test says too little")
			}
		})
	}
}

// The same for the files with mistakes that people make.
func TestSchemasOnBrokenFiles(t *testing.T) {
	names, refused := []string{}, 0
	for _, pattern := range []string{"testdata/broken/*", "../../backends/rules/testdata/invalid/*", "../../backends/strategy/testdata/invalid/*"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		names = append(names, more...)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, root, err := document.Parse(name, data)
		kind := kindOfFile(root)
		if err != nil || kind == "" {
			continue // no schema is asked about what is no YAML
		}
		bad, ps := fileSchema(t, kind).Validate(instance(t, name, data)), readerOf(kind, data)
		if bad != nil {
			refused++
		}
		if why := form(ps); bad != nil && ps.Errors() == 0 || bad == nil && why != "" {
			t.Errorf("%s: the schema says %v, the reader %q", name, bad, why)
		}
	}
	if refused < 20 {
		t.Errorf("%d files refused", refused)
	}
}

// A model of trees needs its tree file to be read; its form is that of the format's page.
func TestSchemaOfTrees(t *testing.T) {
	schema := fileSchema(t, "model")
	for text, want := range map[string]bool{
		`{"model": "lightgbm", "name": "n", "version": "1", "file": "f.txt", "features": {"a": "metrics.a", "c": {"categories": ["DE"]}}, "classes": ["x", "y"]}`: true,
		`{"model": "xgboost", "file": "x.json", "feature_names": ["a"], "classes": ["x", "y"], "sha256": "00"}`:                                                   true,
		`{"model": "xgboost", "classes": ["x", "y"]}`:                                     false,
		`{"model": "xgboost", "file": "x.json", "classes": ["x", "y"], "otherwise": "z"}`: false,
		`{"model": "lightgbm", "file": "x.txt", "classes": [{"action": "x"}]}`:            false,
		`{"model": "bayes", "file": "x.txt", "classes": ["x"]}`:                           false,
	} {
		if err := schema.Validate(decoded(t, []byte(text))); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// form returns the first finding about the form of a file. How deep a matrix is nested
// depends on its dimensions, which a schema cannot say.
func form(ps document.Problems) string {
	for _, p := range ps {
		if p.Severity == document.SevError && structural.MatchString(p.Message) && !strings.HasPrefix(p.Message, "matrix[") {
			return p.Message
		}
	}
	return ""
}

// neighbours changes a document in one place, calls f, and changes it back.
func neighbours(v any, f func(place string)) {
	swap := func(place string, old any, set func(any)) {
		for _, other := range []any{nil, "text", 5.0, -1.0, 2.5, true, []any{}, map[string]any{}, []any{1.0}, map[string]any{"a": 1.0}} {
			set(other)
			f(place + " is " + string(mustJSON(other)))
		}
		set(old)
	}
	var walk func(v any, place string)
	walk = func(v any, place string) {
		switch v := v.(type) {
		case map[string]any:
			v["zzz"] = 1.0
			f(place + " with zzz")
			delete(v, "zzz")
			for _, key := range keysOf(v) {
				old := v[key]
				delete(v, key)
				f(place + " without " + key)
				swap(place+"."+key, old, func(x any) { v[key] = x })
				walk(old, place+"."+key)
			}
		case []any:
			for i, old := range v {
				swap(place+"["+strconv.Itoa(i)+"]", old, func(x any) { v[i] = x })
				walk(old, place+"["+strconv.Itoa(i)+"]")
			}
		}
	}
	walk(v, "")
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func keysOf(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}
