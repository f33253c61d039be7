package document

import (
	"errors"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"syntax", "a: [1,\nb: 2\n", "f.yaml:3"},
		{"tab", "a:\n\t- b\n", "f.yaml:2:1: found character that cannot start any token"},
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
