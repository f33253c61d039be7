package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"syntax", "a: [1,\nb: 2\n", "f.yaml:3"},
		{"tab", "a:\n\t- b\n", "f.yaml:2:1: a tab cannot indent"},
		{"tag", "if: !has(x)\n", "f.yaml:1:5: !has(x) is read as a YAML tag"},
		{"second document", "a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document in the file"},
		{"repeated key", "a: 1\na: 2\n", `f.yaml:2:1: field "a" stands twice (first in line 1)`},
		{"alias", "a: &x 1\nb: *x\n", "f.yaml:2:4: aliases are not supported"},
		{"template", "a: {{ x }}\n", "f.yaml:1:5: a key that is not text"},
		{"empty", "", "f.yaml:1:1: file is empty"},
		{"comment only", "# nothing\n", "file is empty"},
		{"deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested more than 100 deep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := Parse("f.yaml", []byte(tc.in))
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("error is %T %v, want Problems", err, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %q\nwant %q", err, tc.want)
			}
		})
	}
}

// What the parser says about the commonest slips is put into plain words.
func TestSyntaxInPlainWords(t *testing.T) {
	for _, tc := range []struct{ in, want, hint string }{
		{"a: [\n", "f.yaml:2:1: the file ends too early", "not closed"},
		{`{"a": [1, 2`, "f.yaml:2:1: the file ends too early", "not closed"},
		{`{"a": 1`, "f.yaml:2:1: the file ends too early", "not closed"},
		{`{"a": "b`, "f.yaml:1:9: a quoted text is not closed", "closing quote"},
		{`{"a": 1} x`, "f.yaml:1:10: text after the end of the document", "bracket"},
		{`{"a": 1}}`, "f.yaml:1:9: text after the end of the document", "bracket"},
		{`{"a": 1,, "b": 2}`, "f.yaml:1:9: a value is missing before \",\"", "comma"},
		{`{"a": 1 "b": 2}`, "f.yaml:1:12: expected , or }", "comma"},
		{"{\"a\": [1, 2}\n", "f.yaml:1:12: expected , or ]", "comma"},
		{"a: 1\n\tb: 2\n", "f.yaml:2:1: a tab cannot indent", "spaces"},
		{"a: @b\n", "f.yaml:1:4: text cannot begin with \"@\"", "quote"},
		{"a: *\n", "f.yaml:1:5: text cannot begin with * or &", "quote"},
		{"é: !has(h[\"x\"])\n", "f.yaml:1:4: text that begins with ! is read as a YAML tag", "quote"},
		{"a: b: c\n", `f.yaml:1:5: unexpected ": "`, "quote"},
		{"a: \"b\" c\n", "f.yaml:1:8: expected a field", "indent"},
		{"a: 1\n- b\n", "f.yaml:2:1: expected a field", "indent"},
		{"a:\n - b\n c: 1\n", "f.yaml:3:2: expected a list item", "indent"},
		{`a: "\q"`, "f.yaml:1:5: unknown escape", "backslash"},
		{"a: | x\n b\n", "f.yaml:1:6: text after | or >", "next line"},
	} {
		_, _, err := Parse("f.yaml", []byte(tc.in))
		var ps Problems
		if !errors.As(err, &ps) || !strings.HasPrefix(err.Error(), tc.want) || !strings.Contains(ps.Hint(), tc.hint) {
			t.Errorf("%q: got %v (%s)\nwant %s (%s)", tc.in, err, ps.Hint(), tc.want, tc.hint)
		}
	}
}

// A file that is no text has a place, too.
func TestNotText(t *testing.T) {
	for in, want := range map[string]string{
		"\x89CFB\r\n\x1a\n\x01\x00":  "f.yaml:1:1: the file is not text",
		"\x1f\x8b\x08\x00\x00":       "f.yaml:1:1: the file is not text",
		"\xff\xfe\x00odds":           "f.yaml:1:1: the file is not text",
		"a: 1\nb: \x00\n":            "f.yaml:1:1: the file is not text",
		"a: 1\nb: caf\xe9 au lait\n": "f.yaml:2:7: byte 0xe9 is not UTF-8",
		"a: 1\nb: x\x01\n":           "f.yaml:2:5: control character 0x01",
	} {
		_, _, err := Parse("f.yaml", []byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
	_, _, err := Parse("f.cfb", []byte("\x89CFB\r\n\x1a\n"))
	var ps Problems
	if errors.As(err, &ps); !strings.Contains(ps.Hint(), ".cfb") {
		t.Errorf("hint %q", ps.Hint())
	}
}

// Messages quote a value, not a whole file, and stay on one line.
func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("é", 500)
	for _, in := range []string{long, "a: " + long, "? " + long + "\n: 1\n", "!" + strings.Repeat("x", 500) + " y", "x: 1." + strings.Repeat("0", 500)} {
		f, n, err := Parse("f.yaml", []byte(in))
		if err == nil {
			m := n.Map("a", "x")
			if v := m.Get("a"); v != nil {
				v.Float()
			}
			if v := m.Get("x"); v != nil {
				v.Int(0, 1)
			}
			err = f.Err()
		}
		if got := fmt.Sprint(err); err == nil || len(got) > 200 || !strings.Contains(got, "...") {
			t.Errorf("%.20q: %d bytes: %.300s", in, len(got), got)
		}
	}
	f := &File{Name: "f"}
	f.Errorf(decision.Position{File: "f"}, "", "a\nb\r\nc")
	if got := f.Problems[0].Message; got != "a b c" {
		t.Errorf("message %q", got)
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc": "abc", strings.Repeat("é", 40): strings.Repeat("é", 40), strings.Repeat("é", 41): strings.Repeat("é", 40) + "...",
	} {
		if got := Short(in); got != want {
			t.Errorf("Short(%q) = %q", in, got)
		}
	}
}

func TestTrailingComment(t *testing.T) {
	for in, want := range map[string]string{
		"if: a == 'b' #&& c\n":      "#&& c",
		"if: 'a' # c\n":             "",
		"if: \"a\" # c\n":           "",
		"if: a#b\n":                 "",
		"if: a\n# c\n":              "",
		"# c\nif: a\n":              "",
		"if: |  # c\n  a\n":         "",
		"if: a # c\nother: 1 # d\n": "# c",
	} {
		_, n, err := Parse("f.yaml", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Map().Get("if").TrailingComment(); got != want {
			t.Errorf("%q: comment %q, want %q", in, got, want)
		}
	}
}

func TestSomeTexts(t *testing.T) {
	f, n, err := Parse("f.yaml", []byte("a: [x, y]\nb: []\nc: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := n.Map()
	if got := m.Get("a").SomeTexts("remove it"); len(got) != 2 {
		t.Errorf("a: %v", got)
	}
	m.Get("b").SomeTexts("remove it")
	m.Get("c").SomeTexts("remove it")
	if got := f.Err().Error(); got != "f.yaml:2:4: b is empty\nf.yaml:3:4: c must be a list, got int 1" {
		t.Errorf("got %s", got)
	}
	if got := f.Problems.Hint(); got != "remove it" {
		t.Errorf("hint %q", got)
	}
}

func TestTypedReadersKeepWhatIsWritten(t *testing.T) {
	f, n, err := Parse("f.yaml", []byte("version: 1.10\nname: 010\ncountry: NO\nttl: 15\nrate: 0.5\nok: true\nlist: [a, b]\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := n.Map("version", "name", "country", "ttl", "rate", "ok", "list")
	for key, want := range map[string]string{"version": "1.10", "name": "010", "country": "NO"} {
		if got, ok := m.Need(key).Text(); !ok || got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if i, ok := m.Need("ttl").Int(0, 100); !ok || i != 15 {
		t.Errorf("ttl = %d", i)
	}
	if x, ok := m.Need("rate").Float(); !ok || x != 0.5 {
		t.Errorf("rate = %v", x)
	}
	if b, ok := m.Need("ok").Bool(); !ok || !b {
		t.Errorf("ok = %v", b)
	}
	if got := m.Need("list").Texts(); len(got) != 2 || got[1] != "b" {
		t.Errorf("list = %v", got)
	}
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestTypedReadersRefuse(t *testing.T) {
	f, n, err := Parse("f.yaml", []byte("ttl: 15.7\nrate: .nan\nok: on\nnote: [1]\nextra: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := n.Map("ttl", "rate", "ok", "note", "extras")
	m.Need("ttl").Int(0, 100)
	m.Need("rate").Float()
	m.Need("ok").Bool()
	m.Need("note").Text()
	m.Need("gone")
	want := []string{
		"f.yaml:1:1: missing field \"gone\"",
		"f.yaml:1:6: ttl must be a whole number from 0 to 100, got float 15.7",
		"f.yaml:2:7: rate must be a finite number, got float .nan",
		"f.yaml:3:5: ok must be true or false",
		"f.yaml:4:7: note must be text, got a list",
		"f.yaml:5:1: unknown field \"extra\"",
	}
	lines := strings.Split(f.Err().Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("problems:\n%s", strings.Join(lines, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("line %d: got %q, want %q", i, lines[i], want[i])
		}
	}
	var ps Problems
	errors.As(f.Err(), &ps)
	if got := ps[len(ps)-1].Hint; got != `did you mean "extras"?` {
		t.Errorf("hint %q", got)
	}
}

func TestClosest(t *testing.T) {
	known := []string{"path", "headers", "metrics", "method"}
	for in, want := range map[string]string{"pathh": "path", "haeders": "headers", "zzzz": "", "metric": "metrics"} {
		if got := Closest(in, known); got != want {
			t.Errorf("Closest(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1", "{\"a\": [1, 2.5, null]}", "if: !has(x)", "a: &x 1\nb: *x", "- - - -", "? [a]\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, n, err := Parse("f", data)
		if err == nil {
			n.JSON()
		}
	})
}
