package document

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"indentation": {
			"rules:\n- id:   a\n  conditions:\n        - {field: path,operator:  eq ,value: \"/\" }\n  action:\n    type: x\n",
			"rules:\n  - id: a\n    conditions:\n      - {field: path, operator: eq, value: \"/\"}\n    action:\n      type: x\n",
		},
		"comments": {
			"# head\nversion: 1   #  the version\n\n\n\n  # about rules\nrules:   # list\n- id: a # first\n  # inside\n  action: x\n  # last\n# before b\n- id: b\n  action: y\n    # odd\n# end\n",
			"# head\nversion: 1 #  the version\n\n# about rules\nrules: # list\n  - id: a # first\n    # inside\n    action: x\n    # last\n  # before b\n  - id: b\n    action: y\n    # odd\n# end\n",
		},
		"block text": {
			"a:\n    b: |-   # why\n        one\n          two\n\n        three\n    c: >+\n      x\n\n\nd: |2\n    y\n",
			"a:\n  b: |- # why\n    one\n      two\n\n    three\n  c: >+\n    x\n\n\nd: |2\n    y\n",
		},
		"several lines": {
			"a:\n- b: one\n     two\n  c: \"x\n\n     y\"\n  d: [1,\n      2,  # two\n      3]\n  e: {\n    x: 1\n  }\n",
			"a:\n  - b: one\n       two\n    c: \"x\n\n       y\"\n    d: [1,\n        2,  # two\n        3]\n    e: {\n      x: 1\n    }\n",
		},
		"values below": {
			"a:\n        b\nc:\n\n  # why\n  d: 1\ne:\n   - - 1\n     -   2\n   -\n       f:   g\nh:\ni: ''\n",
			"a:\n  b\nc:\n\n  # why\n  d: 1\ne:\n  - - 1\n    - 2\n  -\n    f: g\nh:\ni: ''\n",
		},
		"flow": {
			"a: [ ]\nb: { }\nc: [ 'it''s' , x, {y: [1,2]}]\nd: {\"e\":1}\nf: {g: , h: 1}\ni: [a b, c#d] # e\n",
			"a: []\nb: {}\nc: ['it''s', x, {y: [1, 2]}]\nd: {\"e\": 1}\nf: {g: , h: 1}\ni: [a b, c#d] # e\n",
		},
		"marker":   {"--- \n\n# x\na: 1\n", "---\n\n# x\na: 1\n"},
		"crlf":     {"a: 1\r\nb:\r\n- c\r\n", "a: 1\nb:\n  - c\n"},
		"no break": {"a: 1", "a: 1\n"},
		"bom":      {"\ufeffa:  1\n", "a: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Format("f.yaml", []byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if again, err := Format("f.yaml", got); err != nil || !bytes.Equal(again, got) {
				t.Errorf("again: %v\n%s", err, again)
			}
		})
	}
}

func TestFormatRefuses(t *testing.T) {
	if _, err := Format("f.json", []byte(`{"a": 1}`)); !errors.Is(err, ErrJSON) {
		t.Errorf("JSON: %v", err)
	}
	for in, want := range map[string]string{
		"a: 1\na: 2\n":   "f.yaml:2:1: field \"a\" stands twice",
		"? a\n: b\n":     "f.yaml:1:3: cannot format this",
		"a: !!str 5\n":   "f.yaml:1:4: cannot format a value with a tag",
		"--- {a: 1}\n":   "the file is JSON",
		"a: 1\n--- x\n":  "second document",
		"--- \n- a\n- b": "",
	} {
		_, err := Format("f.yaml", []byte(in))
		if got := ""; err != nil {
			if got = err.Error(); !strings.Contains(got, want) || want == "" {
				t.Errorf("%q: %s", in, got)
			}
		} else if want != "" {
			t.Errorf("%q is formatted", in)
		}
	}
}

// sources are the files that people write, from the packages that read them.
func sources(t testing.TB) []string {
	names, err := filepath.Glob("../../backends/*/testdata/*/*.yaml")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	return names
}

// What our own files hold is formatted, not refused.
func TestFormatOfOurOwnFiles(t *testing.T) {
	done := 0
	for _, name := range sources(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Parse(name, data); err != nil {
			continue
		}
		if _, err := Format(name, data); err != nil && !errors.Is(err, ErrJSON) {
			t.Errorf("%s: %v", name, err)
		}
		done++
	}
	if done < 20 {
		t.Errorf("%d files", done)
	}
}

// Formatting changes nothing that a file says, and nothing at all a second time.
func FuzzFormat(f *testing.F) {
	for _, name := range sources(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{"- |+\n   \n", "a: 1\rb: 2\n", "a: x\u0085y\n", "a:\n- |+\n  x\n\n- >2\n    y\n  # c\n", "a: 'x\n\n  y'\nb: [1, # c\n 2]\n", "- a\n-\n - b # c\n\n\n# d\n", "a:\n  b:\n  # c\n  d: e\n # f\ng: h i\n   j\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		once, err := Format("f.yaml", data)
		if err != nil {
			return
		}
		if _, ok := sameContent("f.yaml", bytes.TrimPrefix(data, []byte("\ufeff")), once); !ok {
			t.Fatalf("another content:\n%s", once)
		}
		twice, err := Format("f.yaml", once)
		if err != nil {
			t.Fatalf("refused the second time: %v\n%s", err, once)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("first\n%q\nthen\n%q", once, twice)
		}
	})
}
