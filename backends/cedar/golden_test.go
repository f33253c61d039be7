package cedar

import (
	"bytes"
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
		fmt.Fprintf(&b, "# %s:%d:%d %s: %s", p.Pos.File, p.Pos.Line, p.Pos.Column, kind, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " (%s)", p.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// pair reads a test file: a mapping, a line "--- policies", and the policies.
func pair(t testing.TB, name string) (mapping, policies []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	mapping, policies, _ = bytes.Cut(data, []byte("--- policies\n"))
	return mapping, policies
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
			mapping, policies := pair(t, name)
			policies, want, _ := bytes.Cut(policies, []byte("# findings:\n"))
			ps := Check("m.yaml", mapping, "p.cedar", policies)
			if got := findings(ps); *update {
				text := string(mapping) + "--- policies\n" + string(policies) + "# findings:\n" + got
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if len(ps) == 0 {
				t.Error("nothing is found")
			}
			if _, err := Compile("m.yaml", mapping, "p.cedar", policies, Options{}); (err != nil) != (ps.Errors() > 0) {
				t.Errorf("check finds %d errors, compile says %v", ps.Errors(), err)
			}
		})
	}
}

func TestValidFiles(t *testing.T) {
	for _, name := range files(t, "valid") {
		mapping, policies := pair(t, name)
		if ps := Check(name, mapping, "p.cedar", policies); len(ps) > 0 {
			t.Errorf("%s:\n%s", name, findings(ps))
		}
	}
}

// cedar-go's parser overflows the stack, which nothing recovers from, at some million
// brackets: what may nest is bounded before it sees the file.
func TestDeepPoliciesAreRefused(t *testing.T) {
	const mapping = "cedar: s\npolicies: p.cedar\nactions: [x]\n"
	for _, unit := range []string{"(", "!", "[", "if true then 1 else ", `(";" == `, "(/*;*/", "(//;\n", `("\";" == `} {
		for n, want := range map[int]string{MaxPolicySize: "a policy has more than", 200: ""} {
			text := "\npermit(principal, action, resource) when { " + strings.Repeat(unit, n)
			got := findings(Check("m.yaml", []byte(mapping), "p.cedar", []byte(text)))
			if !strings.Contains(got, want) || got == "" {
				t.Errorf("%d times %q: %q", n, unit, got)
			}
		}
	}
	policy := "permit(principal, action, resource) when { context.a == \"" + strings.Repeat(";", 9000) + "\" };\n"
	if ps := Check("m.yaml", []byte(mapping), "p.cedar", []byte(strings.Repeat(policy, 3)+"// "+strings.Repeat("x", 9000))); len(ps) > 0 {
		t.Errorf("%s", findings(ps))
	}
}

func TestTooManyPolicies(t *testing.T) {
	const mapping = "cedar: s\npolicies: p.cedar\nactions: [x]\n"
	policies := strings.Repeat("permit(principal, action, resource);\n", MaxPolicies+1)
	want := fmt.Sprintf("# p.cedar:%d:1 error: the file has %d policies, the limit is %d\n", MaxPolicies+1, MaxPolicies+1, MaxPolicies)
	if got := findings(Check("m.yaml", []byte(mapping), "p.cedar", []byte(policies))); got != want {
		t.Errorf("got %s", got)
	}
}

func TestPoliciesOf(t *testing.T) {
	for text, want := range map[string]string{
		"cedar: s\npolicies: a/p.cedar\nactions: [x]\n": "a/p.cedar", "cedar: s\npolicies: ../p.cedar\nactions: [x]\n": "", "cedar: s\nactions: [x]\n": "",
	} {
		got, err := PoliciesOf("m.yaml", []byte(text))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
