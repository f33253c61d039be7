package cel

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

// Each file ends with the findings that it must give, one a comment line.
func TestInvalidFiles(t *testing.T) {
	for _, name := range files(t, "invalid") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(data), "# findings:\n")
			ps := Check(filepath.Base(name), []byte(text), nil)
			if got := findings(ps); *update {
				if err := os.WriteFile(name, []byte(text+"# findings:\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if len(ps) == 0 {
				t.Error("nothing is found")
			}
			if _, err := Compile(name, []byte(text), nil, Options{}); (err != nil) != (ps.Errors() > 0) {
				t.Errorf("check finds %d errors, compile says %v", ps.Errors(), err)
			}
		})
	}
}

func TestValidFiles(t *testing.T) {
	for _, name := range files(t, "valid") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if ps := Check(name, data, nil); len(ps) > 0 {
			t.Errorf("%s:\n%s", name, findings(ps))
		}
	}
}

// What the data set at hand has outside the namespaces are variables, too; what it
// contradicts is an error.
func TestCheckAgainstADataSet(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "amount", Type: decision.Double}, decision.Field{Name: "edge.load", Type: decision.Double})
	if err != nil {
		t.Fatal(err)
	}
	const ok = "cel: s\nrules:\n  - {id: a, if: amount > edge.load, action: x}\nfallback: {action: y}\n"
	if ps := Check("s.yaml", []byte(ok), schema); len(ps) > 0 {
		t.Errorf("findings\n%s", findings(ps))
	}
	if ps := Check("s.yaml", []byte(ok), nil); ps.Errors() != 2 {
		t.Errorf("without the data set\n%s", findings(ps))
	}
	const other = "cel: s\nattributes: {amount: string}\nrules: []\nfallback: {action: y}\n"
	want := "# 2:22 error: amount is declared string, but the data set has double (declare it as double)\n"
	if got := findings(Check("s.yaml", []byte(other), schema)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTooManyRules(t *testing.T) {
	text := "cel: s\nfallback: {action: y}\nrules:\n" + strings.Repeat("- {}\n", maxRules+1)
	want := fmt.Sprintf("# %d:3 error: the file has %d rules, the limit is %d\n", maxRules+4, maxRules+1, maxRules)
	if got := findings(Check("s.yaml", []byte(text), nil)); got != want {
		t.Errorf("got %s", got)
	}
}
