package expr

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/internal/document"
)

func readAction(t testing.TB, scope *Scope, text string, fixed bool) (*Action, *document.File) {
	t.Helper()
	f, n := parse(t, text)
	return ReadAction(n, nil, scope, ActionOptions{Data: []byte(text), Fixed: fixed}), f
}

func TestAction(t *testing.T) {
	schema := testSchema(t)
	values := map[string]any{"path": "/a\"b\\\n", "headers.user-agent": "<é>", "score": 0.25, "count": 7, "flag": true, "metrics.load": math.NaN()}
	for _, tc := range []struct{ name, text, label, params, missing string }{
		{"label", `block`, "block", "", ""},
		{"number as label", `403`, "403", "", ""},
		{"type", `{type: block}`, "block", "", ""},
		{"name before type", `{type: route, name: edge-a}`, "edge-a", `{"type":"route"}`, ""},
		{"keys are sorted, nested too", `{type: x, ttl_seconds: 5, b: {z: 1, a: [1, 2.5, true, null, "s"]}, a: .5}`, "x", `{"a":0.5,"b":{"a":[1,2.5,true,null,"s"],"z":1},"ttl_seconds":5}`, ""},
		{"versions stay text", `{type: x, v: "1.10", w: 010}`, "x", `{"v":"1.10","w":8}`, ""},
		{"template", `{type: x, key: "p{{path}}-{{ headers.user-agent }}"}`, "x", `{"key":"p/a\"b\\\n-<é>"}`, ""},
		{"template of numbers", `{type: x, key: "{{score}}/{{count}}/{{flag}}"}`, "x", `{"key":"0.25/7/true"}`, ""},
		{"braces that are no template", `{type: x, body: "{\"a\":{\"b\":1}}"}`, "x", `{"body":"{\"a\":{\"b\":1}}"}`, ""},
		{"missing", `{type: x, key: "{{ headers.nope }}"}`, "x", "", "headers.nope"},
		{"missing twice", `{type: x, a: "{{edge.error_rate_1m}}", key: ["{{ headers.nope }}"]}`, "x", "", "edge.error_rate_1m headers.nope"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			scope := NewScope(schema)
			a, f := readAction(t, scope, tc.text, false)
			if a == nil {
				t.Fatal(f.Err())
			}
			row := bind(t, scope, schema, values)
			params, ok := a.Params(row)
			if a.Label != tc.label || params != tc.params || ok != (tc.missing == "") {
				t.Errorf("label %q params %s, %v", a.Label, params, ok)
			}
			if got := strings.Join(a.Missing(row), " "); got != tc.missing {
				t.Errorf("missing %q", got)
			}
			if params != "" && !json.Valid([]byte(params)) {
				t.Errorf("%s is not JSON", params)
			}
		})
	}
}

func TestTemplateOfNaNIsMissing(t *testing.T) {
	scope := NewScope(nil)
	_, n := parse(t, "metrics.load: double")
	scope.Declare(n)
	a, f := readAction(t, scope, `{type: x, key: "{{ metrics.load }}"}`, false)
	if a == nil {
		t.Fatal(f.Err())
	}
	schema := testSchema(t)
	if s, ok := a.Params(bind(t, scope, schema, map[string]any{"metrics.load": math.NaN()})); ok {
		t.Errorf("renders %s", s)
	}
}

func TestActionRefuses(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`[a]`, "f.yaml:1:1: the action must be a label or a map"},
		{`{ttl_seconds: 5}`, "f.yaml:1:1: the action has neither name nor type, so no label"},
		{`{type: " x"}`, "f.yaml:1:8: an action's label must be text without blanks around it"},
		{`{type: "{{ path }}"}`, "f.yaml:1:8: an action's label cannot be a template"},
		{`{type: x, ttl_seconds: -1}`, "f.yaml:1:24: ttl_seconds must be a whole number from 0 to 2147483647, got int -1"},
		{`{type: x, ttl_seconds: 1.5}`, "f.yaml:1:24: ttl_seconds must be a whole number"},
		{`{type: x, key: "a{{ path"}`, "f.yaml:1:18: {{ without }}"},
		{`{type: x, key: "a{{ }}"}`, "f.yaml:1:20: {{ }} without a name"},
		{`{type: x, key: "é{{ request.path }}"}`, `f.yaml:1:21: unknown attribute "request.path"`},
		{`{type: x, key: "{{ path }}{{ headers.a b }}"}`, `f.yaml:1:30: "headers.a b" is not the name of an attribute`},
		{`{type: x, key: "{{ env.secret }}"}`, "f.yaml:1:20: a template cannot read env.secret"},
		{`{type: x, key: "{{ metrics.other }}"}`, "f.yaml:1:20: a template cannot read metrics.other"},
		{`{type: x, key: "{{ headers.Authorization }}"}`, "f.yaml:1:20: headers.authorization holds a credential"},
		{`{type: x, "{{ path }}": 1}`, "f.yaml:1:25: a parameter's name cannot be a template"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			a, f := readAction(t, NewScope(testSchema(t)), tc.text, false)
			if a != nil || f.Err() == nil || !strings.HasPrefix(f.Err().Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", f.Err(), tc.want)
			}
		})
	}
}

func TestFallbackCannotHoldATemplate(t *testing.T) {
	a, f := readAction(t, NewScope(nil), `{type: x, key: "{{ path }}"}`, true)
	if a != nil || !strings.Contains(fmt.Sprint(f.Err()), "f.yaml:1:16: a fallback cannot hold a template") {
		t.Errorf("%v", f.Err())
	}
}

func TestActionWarnsOfNearMisses(t *testing.T) {
	a, f := readAction(t, NewScope(nil), `{type: x, upstrem: b, ttl_secs: 5, shard: 2}`, false)
	if a == nil || len(f.Problems) != 2 {
		t.Fatalf("%v", f.Problems)
	}
	for i, hint := range []string{`did you mean "upstream"?`, `did you mean "ttl_seconds"?`} {
		if p := f.Problems[i]; p.Severity != document.SevWarning || p.Hint != hint {
			t.Errorf("%v (%s)", p, p.Hint)
		}
	}
}

// A template never fails at run time but by a missing value, and always gives JSON.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"a{{ path }}b", "{{headers.x-query-hash}}", "{{", "}}", "{{{{path}}}}", "{{ a.b-c }}", "\xff{{path}}\x00", "{{ path }", "{\"a\":{}}"} {
		f.Add(s, "v\"\\\n\xff\u2028")
	}
	schema := testSchema(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		scope := NewScope(schema)
		segments, bad := parseTemplate(text, scope)
		if bad != nil {
			if n := len([]rune(text)); bad.offset < 0 || bad.offset > n {
				t.Fatalf("error at %d of %d", bad.offset, n)
			}
			return
		}
		var literal strings.Builder
		a := &Action{parts: []segment{{text: `{"k":"`}}}
		for _, s := range segments {
			if s.attr == nil {
				literal.WriteString(s.text)
				s = segment{text: string(appendEscaped(nil, s.text))}
			}
			a.parts = append(a.parts, s)
		}
		a.parts = append(a.parts, segment{text: `"}`})
		if !strings.Contains(text, "{{") && literal.String() != text {
			t.Fatalf("%q becomes %q", text, literal.String())
		}
		out, ok := a.Tagged(bind(t, scope, schema, map[string]any{"path": value}), nil)
		if ok && !json.Valid([]byte(out)) {
			t.Fatalf("%q with %q gives %s", text, value, out)
		}
	})
}
