package strategy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// Each file under testdata/invalid ends with the findings that it must give, one a
// comment line.
func TestInvalidFiles(t *testing.T) {
	for _, name := range files(t, "invalid") {
		t.Run(filepath.Base(name), func(t *testing.T) {
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
				return
			}
			if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			_, err = Compile(name, []byte(text), nil, &fakeModel{})
			if (err != nil) != (ps.Errors() > 0) {
				t.Errorf("check finds %d errors, compile says %v", ps.Errors(), err)
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
