package opa

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

// Each file ends with the findings that it must give, one a comment line.
func TestInvalidFiles(t *testing.T) {
	for _, name := range files(t, "invalid") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(data), "# findings:\n")
			ps := Check(filepath.Base(name), []byte(text))
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
			if _, err := Compile(name, []byte(text), Options{}); (err != nil) != (ps.Errors() > 0) {
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
		if ps := Check(name, data); len(ps) > 0 {
			t.Errorf("%s:\n%s", name, findings(ps))
		}
	}
}

func TestTooLarge(t *testing.T) {
	text := "package p\n" + strings.Repeat("#\n", MaxSize/2)
	want := fmt.Sprintf("# 0:0 error: file has %d bytes, the limit is %d\n", len(text), MaxSize)
	if got := findings(Check("p.rego", []byte(text))); got != want {
		t.Errorf("got %s", got)
	}
}

// OPA bounds the nesting itself.
func TestDeepPoliciesAreRefused(t *testing.T) {
	for _, unit := range []string{"(", "[", "{", "-", "not ", "f(", "{1 | "} {
		text := "package p\ndecision := " + strings.Repeat(unit, (MaxSize-100)/len(unit))
		if ps := Check("p.rego", []byte(text)); ps.Errors() == 0 {
			t.Errorf("%q is accepted", unit)
		}
	}
}
