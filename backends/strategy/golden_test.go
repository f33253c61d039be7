package strategy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

var update = flag.Bool("update", false, "rewrite the findings at the end of testdata/invalid")

// findings prints problems as the files under testdata/invalid list them.
func findings(ps document.Problems) string {
	var b strings.Builder
	for _, p := range ps {
		kind := "error"
		if p.Severity == document.SevWarning {
			kind = "warning"
		}
		fmt.Fprintf(&b, "# %d:%d %s: %s", p.Pos.Line, p.Pos.Column, kind, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " (%s)", p.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in testdata/%s: %v", dir, err)
	}
	return names
}

// golden checks a file that ends with the findings that it must give, one a comment
// line, and returns its text and whether one of them is an error.
func golden(t *testing.T, name string) (text string, refused bool) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text, want, _ := strings.Cut(string(data), "# findings:\n")
	ps := Check(filepath.Base(name), []byte(text), nil)
	got := findings(ps)
	if *update {
		if err := os.WriteFile(name, []byte(text+"# findings:\n"+got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	return text, ps.Errors() > 0
}

func TestInvalidFiles(t *testing.T) {
	for _, name := range files(t, "invalid") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, refused := golden(t, name)
			if _, err := Compile(name, []byte(text), nil, &fakeModel{}); (err != nil) != refused {
				t.Errorf("check refuses it: %v, compile says %v", refused, err)
			}
		})
	}
}

// What Check alone refuses.
func TestStrictFiles(t *testing.T) {
	for _, name := range files(t, "strict") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, refused := golden(t, name)
			if !refused {
				t.Error("check accepts it")
			}
			if _, err := Compile(name, []byte(text), nil, &fakeModel{}); err != nil {
				t.Errorf("compile says %v", err)
			}
		})
	}
}

func TestValidFiles(t *testing.T) {
	for _, name := range files(t, "valid") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if ps := Check(name, data, nil); len(ps) > 0 {
				t.Errorf("findings:\n%s", findings(ps))
			}
			if _, err := Compile(name, data, nil, &fakeModel{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckAgainstADataSet(t *testing.T) {
	schema, err := decision.NewSchema(
		decision.Field{Name: "metrics.fail_rate", Type: decision.Double}, decision.Field{Name: "model.score", Type: decision.Double})
	if err != nil {
		t.Fatal(err)
	}
	text := `strategy: s
rules:
  - {id: a, if: metrics.fail_rate > 0.5 && metrics.fial_rate > 0.5, action: x}
  - {id: b, if: model.score > 0.5, action: x}
fallback: {action: x}
`
	want := "# 3:44 warning: the data set does not record metrics.fial_rate (did you mean \"metrics.fail_rate\"?)\n"
	if got := findings(Check("s.yaml", []byte(text), schema)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := Compile("s.yaml", []byte(text), schema, nil); err != nil {
		t.Errorf("model.score was recorded, but: %v", err)
	}
}

// A model may stand in a directory below the strategy's, and the strategy may come from
// a path.
func TestModelBesideTheStrategy(t *testing.T) {
	for model, ok := range map[string]bool{
		"model.json": true, "models/m.json": true, "a/../m.json": true, "s.yaml.json": true,
		"s.yaml": false, "a/../s.yaml": false, "../m.json": false, "a/../../m.json": false, ".": false, "/m.json": false,
	} {
		text := "strategy: s\nrules: []\nfallback: {model: " + model + "}\n"
		if ps := Check("dir/s.yaml", []byte(text), nil); (ps.Errors() == 0) != ok {
			t.Errorf("%s: %s", model, findings(ps))
		}
	}
}
