// Package arch holds the test that keeps the import direction of DESIGN.md.
package arch

import (
	"bytes"
	"fmt"
	"os/exec"
	"sort"
	"strings"
	"testing"
)

const module = "github.com/clefbench/clefbench"

// layers lists every package, lowest layer first; an import may only point to a
// strictly lower layer.
var layers = [][]string{
	{"decision", "internal/wholefile", "internal/stats", "internal/term", "internal/secret"},
	{"snapshot", "snapshot/checkpoint", "internal/document", "decision/backendtest", "internal/prefilter", "window"},
	{"internal/attribute"},
	{"internal/expr"},
	{"internal/predicate"},
	{"backends", "backends/rules", "backends/flash", "backends/model", "backends/remote", "backends/systemone", "backends/cel", "backends/cedar"},
	{"backends/strategy", "backends/model/fit", "snapshot/arrowfile", "recorder", "replay", "scoring"},
	{"datasets/runs"},
	{"datasets", "reports", "spool", "recorder/proxy", "recorder/metrics"},
	{"recorder/prometheus"},
	{"cmd/clefbench", "datasets/demo/train"},
}

// thirdParty names the modules that a package may import directly; a package that is
// not listed may import none.
var thirdParty = map[string][]string{
	"backends/cedar":      {"github.com/cedar-policy/cedar-go"},
	"backends/cel":        {"cel.dev/cel-go"},
	"internal/document":   {"go.yaml.in/yaml/v4"},
	"internal/expr":       {"cel.dev/cel-go"},
	"internal/stats":      {"gonum.org/v1/gonum"},
	"backends/model/fit":  {"gonum.org/v1/gonum"},
	"internal/term":       {"golang.org/x/term"},
	"recorder/prometheus": {"github.com/prometheus/client_golang"},
	"snapshot/arrowfile":  {"github.com/apache/arrow/go/v17", "github.com/klauspost/compress", "github.com/google/flatbuffers", "golang.org/x/sys"},
	"replay":              {"golang.org/x/sys"},
	"spool":               {"gocloud.dev", "github.com/aws/aws-sdk-go-v2", "golang.org/x/sys"},
	"datasets":            {"github.com/klauspost/compress"},
	"reports":             {"github.com/olekukonko/tablewriter"},
	"cmd/clefbench":       {"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/rogpeppe/go-internal", "golang.org/x/sys"},
}

type pkg struct {
	path    string
	imports []string
}

// check returns one line a finding.
func check(pkgs []pkg, layers [][]string, thirdParty map[string][]string) []string {
	level := map[string]int{}
	for i, l := range layers {
		for _, p := range l {
			level[p] = i
		}
	}
	var out []string
	for _, p := range pkgs {
		from, ok := level[p.path]
		if !ok {
			out = append(out, p.path+" is in no layer")
			continue
		}
		for _, imp := range p.imports {
			if rel, ours := strings.CutPrefix(imp, module+"/"); ours {
				if to, ok := level[rel]; ok && to >= from {
					out = append(out, fmt.Sprintf("%s (layer %d) imports %s (layer %d)", p.path, from, rel, to))
				}
			} else if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") && !allowed(imp, thirdParty[p.path]) {
				out = append(out, p.path+" imports "+imp)
			}
		}
	}
	sort.Strings(out)
	return out
}

func allowed(imp string, modules []string) bool {
	for _, m := range modules {
		if imp == m || strings.HasPrefix(imp, m+"/") {
			return true
		}
	}
	return false
}

func list(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	return out
}

func TestImportDirection(t *testing.T) {
	var pkgs []pkg
	for line := range strings.Lines(string(list(t, "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "./..."))) {
		f := strings.Fields(line)
		path := strings.TrimPrefix(f[0], module+"/")
		if path == "internal/arch" || path == module || strings.HasPrefix(path, "examples/") {
			continue
		}
		pkgs = append(pkgs, pkg{path, f[1:]})
	}
	if len(pkgs) < 4 {
		t.Fatalf("go list found %d packages", len(pkgs))
	}
	for _, f := range check(pkgs, layers, thirdParty) {
		t.Error(f)
	}
}

func TestImportDirectionCanFail(t *testing.T) {
	got := check([]pkg{
		{"a", nil},
		{"b", []string{module + "/a", "fmt"}},
		{"c", []string{module + "/b"}},
		{"a2", []string{module + "/b"}},
		{"stray", nil},
		{"b2", []string{"example.com/x", "example.com/xy"}},
	}, [][]string{{"a", "a2"}, {"b", "b2", "c"}}, map[string][]string{"b2": {"example.com/x"}})
	want := []string{
		"a2 (layer 0) imports b (layer 1)",
		"b2 imports example.com/xy",
		"c (layer 1) imports b (layer 1)",
		"stray is in no layer",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A service that imports the recorder alone must link neither Arrow nor CEL nor cobra.
func TestRecorderLinksNothingHeavy(t *testing.T) {
	for line := range strings.Lines(string(list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./recorder"))) {
		dep := strings.TrimSpace(line)
		if dep != "" && !strings.HasPrefix(dep, module+"/") {
			t.Errorf("recorder links %s", dep)
		}
		for _, bad := range []string{"/replay", "/scoring", "/reports", "/snapshot/arrowfile", "/backends"} {
			if strings.HasPrefix(dep, module+bad) {
				t.Errorf("recorder links %s", dep)
			}
		}
	}
}
