package flash

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

var update = flag.Bool("update", false, "rewrite the golden .cfb file")

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func compileEdge(t testing.TB) []byte {
	t.Helper()
	cfb, err := CompileMatrix("some/where/edge.json", readFile(t, "testdata/edge.json"))
	if err != nil {
		t.Fatal(err)
	}
	return cfb
}

// The golden file pins the format: other programs can read it, and a change of a byte
// needs a new version.
func TestGoldenBytes(t *testing.T) {
	got := compileEdge(t)
	if *update {
		if err := os.WriteFile("testdata/edge.cfb", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := readFile(t, "testdata/edge.cfb"); !bytes.Equal(got, want) {
		t.Errorf("the bytes differ from testdata/edge.cfb (%d and %d)", len(got), len(want))
	}
	if again := compileEdge(t); !bytes.Equal(got, again) {
		t.Error("compiling twice gives different bytes")
	}
	if ps := Check("edge.json", readFile(t, "testdata/edge.json"), nil); len(ps) != 0 {
		t.Errorf("findings in a sound file: %v", ps)
	}
}

// dims is a matrix file with these dimensions, one action, and a matrix of the shape.
func dims(dimensions, matrix string) string {
	return `{"dimensions": [` + dimensions + `],
"actions": [{"id": 1, "type": "a"}],
"matrix": ` + matrix + `}`
}

func TestCompileRefuses(t *testing.T) {
	two := `{"name": "x", "values": ["a", "b"]}`
	for _, tc := range []struct{ name, in, want string }{
		{"no JSON", `{"dimensions": [}`, "m.json:1:"},
		{"list", `[1]`, "m.json:1:1: the file must be a map, got a list"},
		{"unknown field", `{"dimension": []}`, `m.json:1:2: unknown field "dimension"`},
		{"missing fields", `{}`, `m.json:1:1: missing field "dimensions"`},
		{"no dimensions", dims("", "1"), "m.json:1:16: 0 dimensions, want 1 to 16"},
		{"no values", dims(`{"name": "x"}`, "[1]"), `m.json:1:17: missing field "values"`},
		{"empty values", dims(`{"name": "x", "values": []}`, "[1]"), "dimensions[0].values is empty"},
		{"value twice", dims(`{"name": "x", "values": ["a", "a"]}`, "[1, 1]"), `m.json:1:47: value "a" stands twice`},
		{"dimension twice", dims(two+", "+two, "[[1, 1], [1, 1]]"), `dimension "x" stands twice`},
		{"missing cell", dims(two, "[1]"), `m.json:3:11: matrix has 1 entries, dimension "x" has 2 values: a, b`},
		{"missing inner cell", dims(two+`, {"name": "y", "values": ["c", "d"]}`, "[[1, 1],\n[1]]"), `m.json:4:1: matrix[1] has 1 entries, dimension "y" has 2 values: c, d`},
		{"null cell", dims(two, "[1, null]"), "m.json:3:15: matrix[1] must be a whole number"},
		{"cell too deep", dims(two, "[1, [1]]"), "m.json:3:15: matrix[1] must be a whole number"},
		{"cell too shallow", dims(two+`, {"name": "y", "values": ["c"]}`, "[[1], 1]"), "m.json:3:17: matrix[1] must be a list, got int 1"},
		{"unknown id", dims(two, "[1, 9]"), "m.json:3:15: matrix[1]: no action has the id 9"},
		{"text id", dims(two, `[1, "1"]`), `m.json:3:15: matrix[1] must be a whole number`},
		{"fallback", strings.Replace(dims(two, "[1, 1]"), `"matrix"`, `"fallback": 3, "matrix"`, 1), "m.json:3:13: fallback: no action has the id 3"},
		{"id twice", strings.Replace(dims(two, "[1, 1]"), `"actions": [`, `"actions": [{"id": 1, "type": "b"}, `, 1), "m.json:2:44: action id 1 stands twice (first in line 2)"},
		{"no id", strings.Replace(dims(two, "[1, 1]"), `"id": 1, `, "", 1), `m.json:2:13: missing field "id"`},
		{"no label", strings.Replace(dims(two, "[1, 1]"), `"type"`, `"ttl"`, 1), "actions[0] has neither name nor type"},
		{"empty label", strings.Replace(dims(two, "[1, 1]"), `"a"}]`, `""}]`, 1), "actions[0].type must not be empty"},
		{"mapping to nothing", dims(`{"name": "x", "values": ["low"], "mapping": {"0-1": "lo"}}`, "[1]"), `m.json:1:69: dimensions[0].mapping.0-1: "lo" is not among the values`},
		{"overlap", dims(`{"name": "x", "values": ["a", "b"], "mapping": {"0-2": "a", "1-3": "b"}}`, "[1, 1]"), `range "1-3" overlaps "0-2" of line 1`},
		{"empty range", dims(`{"name": "x", "values": ["a"], "mapping": {"2-1": "a"}}`, "[1]"), `m.json:1:60: range "2-1" is empty`},
		{"mixed mapping", dims(`{"name": "x", "values": ["a"], "mapping": {"2-3": "a", "b": "a"}}`, "[1]"), "mixes ranges with words"},
		{"classifier", dims(`{"name": "x", "values": ["a"], "classify": "browser"}`, "[1]"), `unknown classifier "browser"`},
		{"class", dims(`{"name": "x", "values": ["phone"], "classify": "device"}`, "[1]"), `value "phone" is no class of the classifier, which gives desktop, mobile, tablet`},
		{"class in mapping", dims(`{"name": "x", "values": ["a"], "classify": "present", "mapping": {"maybe": "a"}}`, "[1]"), `key "maybe" is no class`},
		{"missing of present", dims(`{"name": "x", "values": ["a"], "classify": "present", "mapping": {"<missing>": "a"}}`, "[1]"), "gives no for what is missing"},
		{"same number", dims(`{"name": "x", "values": ["1", "1.0"]}`, "[1, 1]"), `"1" and "1.0" are the same number`},
		{"long text", dims(`{"name": "`+strings.Repeat("x", maxText+1)+`", "values": ["a"]}`, "[1]"), "the limit is 4096"},
		{"second document", dims(two, "[1, 1]") + "\n---\n{}", "a second document"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfb, err := CompileMatrix("m.json", []byte(tc.in))
			var ps document.Problems
			if cfb != nil || !errors.As(err, &ps) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

// big is a table of 1-value-per-name dimensions with the given sizes.
func big(sizes ...int) string {
	var ds []string
	matrix := "1"
	for i := len(sizes) - 1; i >= 0; i-- {
		var values []string
		for k := range sizes[i] {
			values = append(values, fmt.Sprintf("%q", fmt.Sprint("v", k)))
		}
		ds = append([]string{fmt.Sprintf(`{"name": "d%d", "values": [%s]}`, i, strings.Join(values, ","))}, ds...)
		matrix = "[" + strings.TrimSuffix(strings.Repeat(matrix+",", sizes[i]), ",") + "]"
	}
	return dims(strings.Join(ds, ","), matrix)
}

func TestSizeLimit(t *testing.T) {
	if _, err := CompileMatrix("m.json", []byte(big(230, 250))); err != nil {
		t.Errorf("57,500 cells fit: %v", err)
	}
	for in, want := range map[string]string{
		big(254, 256):   "the table takes",
		big(300, 300):   "more than 65536 cells",
		big(64, 64, 64): "more than 65536 cells",
	} {
		if _, err := CompileMatrix("m.json", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	long := strings.ReplaceAll(big(200, 200), `"v1`, `"`+strings.Repeat("w", 200))
	if _, err := CompileMatrix("m.json", []byte(long)); err == nil || !strings.Contains(err.Error(), "the names of all 40000 cells take") {
		t.Errorf("got %v", err)
	}
}

func TestCheckWarns(t *testing.T) {
	in := `{"dimensions": [{"name": "x", "from": "metrics.x", "values": ["a", "b", "never"], "mapping": {"0-1": "a", "2-3": "b"}},
{"name": "path", "values": ["m"], "mapping": {"missing": "m"}}],
"actions": [{"id": 1, "type": "a"}, {"id": 2, "type": "idle"}],
"matrix": [[1], [1], [1]]}`
	want := []string{
		`m.json:1:73: nothing maps to the value "never", so its cells are never used`,
		`m.json:1:107: nothing covers the numbers from "0-1" to "2-3"`,
		`m.json:2:47: "missing" is taken as the text "missing"`,
		`m.json:3:37: no cell names the action 2 (idle)`,
	}
	ps := Check("m.json", []byte(in), nil)
	if len(ps) != len(want) || ps.Errors() != 0 {
		t.Fatalf("findings: %v", ps)
	}
	for i, p := range ps {
		if p.Error() != want[i] {
			t.Errorf("got  %s\nwant %s", p.Error(), want[i])
		}
	}
}

// Check knows the attributes' names; compiling does not, since it knows no data set.
func TestCheckKnowsAttributes(t *testing.T) {
	schema, err := decision.NewSchema(
		decision.Field{Name: "metrics.fail_rate", Type: decision.Double}, decision.Field{Name: "risk", Type: decision.Double},
		decision.Field{Name: "tier", Type: decision.String}, decision.Field{Name: "headers.content-length", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	const ranges = `"values": ["a"], "mapping": {"0+": "a"}`
	const words = `"values": ["a"]`
	for _, tc := range []struct {
		from, values  string
		alone, within string // without and with the data set
	}{
		{"request.path", words, `1:39: unknown attribute "request.path" (did you mean "path"?)`, `1:39: unknown attribute "request.path" (did you mean "path"?)`},
		{"rsik", ranges, `1:39: unknown attribute "rsik" (a name outside`, `1:39: unknown attribute "rsik" (did you mean "risk"?)`},
		{"risk", ranges, `1:39: unknown attribute "risk"`, ""},
		{"path", ranges, `1:39: dimension "d" has ranges of numbers, but path is string`, `1:39: dimension "d" has ranges of numbers, but path is string`},
		{"query.n", ranges, "has ranges of numbers, but query.n is string", "has ranges of numbers, but query.n is string"},
		{"headers.content-length", ranges, "has ranges of numbers, but headers.content-length is string", ""},
		{"headers.Accept", words, "1:39: header names are recorded in lower case", "1:39: header names are recorded in lower case"},
		{"tier", ranges, "unknown attribute", "has ranges of numbers, but tier is string"},
		{"tier", words, "unknown attribute", ""},
		{"local.x", ranges, "", "1:39: the data set does not record local.x"},
		{"metrics.fial_rate", ranges, "", `1:39: the data set does not record metrics.fial_rate (did you mean "metrics.fail_rate"?)`},
	} {
		in := []byte(dims(`{"name": "d", "from": "`+tc.from+`", `+tc.values+`}`, "[1]"))
		if _, err := CompileMatrix("m.json", in); err != nil {
			t.Errorf("%s: compile says %v", tc.from, err)
		}
		for i, ps := range []document.Problems{Check("m.json", in, nil), Check("m.json", in, schema)} {
			got := ""
			for _, p := range ps {
				got += p.Error() + " (" + p.Hint + ")"
			}
			if want := []string{tc.alone, tc.within}[i]; !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s, %d: got %q\nwant %q", tc.from, i, got, want)
			}
		}
	}
	ps := Check("m.json", []byte(dims(`{"name": "pth", "values": ["a"]}`, "[1]")), nil)
	if got := ps.Error(); got != `m.json:1:26: unknown attribute "pth"` {
		t.Errorf("a name without from: %s", got)
	}
}

func TestLabelsWithoutBlanks(t *testing.T) {
	in := strings.Replace(dims(`{"name": "path", "values": ["a"]}`, "[1]"), `"type": "a"`, `"type": " a"`, 1)
	if _, err := CompileMatrix("m.json", []byte(in)); err == nil || !strings.Contains(err.Error(), "m.json:2:31: an action's label must be text without blanks around it") {
		t.Errorf("got %v", err)
	}
}

func FuzzCompileMatrix(f *testing.F) {
	f.Add(readFile(f, "testdata/edge.json"))
	f.Add([]byte(dims(`{"name": "x", "values": [1, 2.5, true], "mapping": {"-1--0.5": 1, "<-1": 2.5, "<other>": true}}`, "[1, 1, 1]")))
	f.Add([]byte("dimensions: [{name: x, values: [a]}]\nactions: [{id: 1, type: a}]\nmatrix: [1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfb, err := CompileMatrix("m.json", data)
		if err != nil {
			return
		}
		if _, err := Open("m.cfb", cfb); err != nil {
			t.Fatalf("the compiled table does not open: %v", err)
		}
	})
}
