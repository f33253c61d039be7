package rules

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
			if _, err := Compile(name, []byte(text), nil); (err != nil) != refused {
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
			if _, err := Compile(name, []byte(text), nil); err != nil {
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
			if _, err := Compile(name, data, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A typo below a built-in root is no error, for the service may fill the name in later;
// what the data set at hand records tells it.
func TestCheckAgainstADataSet(t *testing.T) {
	schema, err := decision.NewSchema(
		decision.Field{Name: "metrics.fail_rate", Type: decision.Double}, decision.Field{Name: "path", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	text := `version: 1
attributes: {metrics.own: double}
rules:
  - id: a
    conditions:
      - {field: metrics.fial_rate, operator: gt, value: 0.5}
      - {field: metrics.own, operator: gt, value: 0.5}
      - {field: path, operator: prefix, value: /a}
    action: {type: x, key: "id {{ headers.x-id }}"}
fallback: x
`
	want := `# 6:17 warning: the data set does not record metrics.fial_rate (did you mean "metrics.fail_rate"?)
# 9:28 warning: the data set does not record headers.x-id (it will be missing in every request)
`
	if got := findings(Check("r.yaml", []byte(text), schema)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if ps := Check("r.yaml", []byte(text), nil); len(ps) > 0 {
		t.Errorf("without a data set:\n%s", findings(ps))
	}
	if _, err := Compile("r.yaml", []byte(text), schema); err != nil {
		t.Error(err)
	}
}
