package document

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
)

func parse(t testing.TB, text string) *Node {
	t.Helper()
	_, n, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each text holds the mark @, and so does the file: Locate must find the one for the
// other. want "line only" where the two cannot be matched.
func TestLocateFindsTheMark(t *testing.T) {
	for _, tc := range []struct{ name, file string }{
		{"plain", "if: a && @b\n"},
		{"plain, indented", "x:\n  if:   a && @b # note\n"},
		{"flow map", "{id: é, if: a && @b}\n"},
		{"double quotes", "if: \"a && @b\"\n"},
		{"double quotes, escapes", `if: "a == \"é\\\" && \x41 \u00e9 \U0001F600 @b"` + "\n"},
		{"single quotes", "if: 'a == ''x'' && @b'\n"},
		{"literal", "if: |\n  a &&\n   @b\nx: 1\n"},
		{"literal, blank lines", "if: |\n\n  a &&\n\n  @b\n"},
		{"literal, stripped", "  if: |-\n      a\n      && @b\n"},
		{"folded", "if: >\n  a &&\n  @b\n"},
		{"folded, one line", "if: >-\n  a && @b\n"},
		{"plain over lines", "if: a &&\n   b &&\n   @c\n"},
		{"double quotes over lines", "if: \"a &&\n   b && @c\"\n"},
		{"windows lines", "if: |\r\n  a &&\r\n  @b\r\n"},
		{"not ASCII", "é: 1\nif: '\"é\" && @b'\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := parse(t, tc.file)
			n := root
			if v := root.Map().Get("x"); v != nil && v.IsMap() {
				n = v
			}
			n = n.Map().Get("if")
			text, _ := n.Text()
			before, _, ok := strings.Cut(text, "@")
			if !ok {
				t.Fatalf("no mark in %q", text)
			}
			raw, _, _ := strings.Cut(tc.file, "@")
			last := raw[strings.LastIndexByte(raw, '\n')+1:]
			want := decision.Position{File: "f.yaml", Line: 1 + strings.Count(raw, "\n"), Column: 1 + utf8.RuneCountInString(last)}
			if got := Locate([]byte(tc.file), n, text, utf8.RuneCountInString(before)); got != want {
				t.Errorf("got %v, want %v (text %q)", got, want, text)
			}
		})
	}
}

func TestLocateGivesNoColumnItCannotKnow(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		line       int
	}{
		{"escaped line end", "if: \"a && \\\n  @b\"\n", 1},
		{"folded with deeper lines", "if: >\n  a\n\n  b @\n", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := parse(t, tc.file)
			n := root.Map().Get("if")
			text, _ := n.Text()
			got := Locate([]byte(tc.file), n, text, strings.Index(text, "@"))
			if got.Column != 0 || got.Line < 1 || got.Line > 1+strings.Count(tc.file, "\n") {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestLocateWithoutData(t *testing.T) {
	root := parse(t, "if: a && b\n")
	if got := Locate(nil, root.Map().Get("if"), "a && b", 5); got.Line != 1 || got.Column != 0 {
		t.Errorf("got %v", got)
	}
}

func FuzzLocate(f *testing.F) {
	for _, s := range []string{"if: a && b", "if: |\n  a\n  b", "if: \"a\\\"b\"", "if: >\n  a\n  b", "if: 'a''b'"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, file string, offset int) {
		_, root, err := Parse("f.yaml", []byte(file))
		if err != nil || !root.IsMap() {
			return
		}
		for _, e := range root.Map().Entries() {
			if text, ok := "", e.Value.IsScalar() && !e.Value.IsNull(); ok {
				text, _ = e.Value.Text()
				got := Locate([]byte(file), e.Value, text, offset)
				if got.Line < 1 || got.Line > 1+strings.Count(file, "\n")+strings.Count(file, "\r")+strings.Count(file, "\u2028")+strings.Count(file, "\u2029")+strings.Count(file, "\u0085") {
					t.Errorf("line %d of %q", got.Line, file)
				}
			}
		}
	})
}
