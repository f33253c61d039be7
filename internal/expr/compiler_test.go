package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// testSchema is the data set that the tests of this package speak about.
func testSchema(t testing.TB) *decision.Schema {
	t.Helper()
	s, err := decision.NewSchema(
		decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "headers.user-agent", Type: decision.String},
		decision.Field{Name: "env.country", Type: decision.String},
		decision.Field{Name: "metrics.rate", Type: decision.Double},
		decision.Field{Name: "metrics.load", Type: decision.Double},
		decision.Field{Name: "count", Type: decision.Int},
		decision.Field{Name: "limit", Type: decision.Int},
		decision.Field{Name: "score", Type: decision.Double},
		decision.Field{Name: "flag", Type: decision.Bool},
		decision.Field{Name: "edge.error_rate_1m", Type: decision.Double},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bind returns a row with the named values; the rest is absent.
func bind(t testing.TB, scope *Scope, schema *decision.Schema, values map[string]any) *Row {
	t.Helper()
	vs := make([]decision.Value, schema.Len())
	for name, x := range values {
		i := schema.Index(name)
		if i < 0 {
			t.Fatalf("no attribute %q", name)
		}
		v, err := decision.ValueOf(x)
		if err != nil {
			t.Fatal(err)
		}
		vs[i] = v
	}
	return &Row{Values: vs, At: decision.NewBinder(scope.Names()...).Bind(schema)}
}

func compileText(t testing.TB, scope *Scope, text string) *Program {
	t.Helper()
	c, err := NewCompiler(scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, findings := c.compile(text)
	for _, f := range findings {
		t.Errorf("%s: at %d: %s (%s)", text, f.offset, f.message, f.hint)
	}
	if p == nil {
		t.FailNow()
	}
	return p
}

func TestEval(t *testing.T) {
	values := map[string]any{
		"path": "/api/v1/users", "headers.user-agent": "curl/8", "env.country": "CN",
		"metrics.rate": 0.05, "count": 7, "score": 0.7, "flag": true,
	}
	for _, tc := range []struct {
		text    string
		want    Truth
		lowered bool
	}{
		{`env.country == "CN" && path.startsWith("/api/v1")`, True, true},
		{`confidence(score) < 0.6`, False, true},
		{`confidence(score) == 0.7`, True, true},
		{`edge.error_rate_1m > 0.05`, Unknown, true},
		{`edge.error_rate_1m > 0.05 || flag`, True, true},
		{`flag || edge.error_rate_1m > 0.05`, True, true},
		{`edge.error_rate_1m > 0.05 && !flag`, False, true},
		{`edge.error_rate_1m > 0.05 && flag`, Unknown, true},
		{`!(edge.error_rate_1m > 0.05)`, Unknown, true},
		{`has(headers["user-agent"]) && has(score) && !has(metrics.load) && !has(query.debug)`, True, true},
		{`has(edge.error_rate_1m)`, False, true},
		{`headers["user-agent"].contains("curl")`, True, true},
		{"headers.`user-agent`.contains(\"curl\")", True, true},
		{`headers["User-Agent"].matches("^curl/[0-9]+$")`, True, true},
		{`env.country in ["CN", "RU"]`, True, true},
		{`count in [1, 7]`, True, true},
		{`count > 6 && count <= 7 && count != 8 && count % 2 == 1`, True, true},
		{`count + 9223372036854775807 > 0`, Unknown, true},
		{`count / 0 > 1`, Unknown, true},
		{`score / 0.0 > 1.0`, True, true},
		{`metrics.rate > 0`, True, true},
		{`0.0 / (score - 0.7) == 1.0`, Unordered, true},
		{`0.0 / (score - 0.7) != 1.0`, True, true},
		{`size(path) == 13`, True, true},
		{`(flag ? "a" : "b") == "a"`, True, true},
		{`double(count) * 0.5 >= 3.5`, True, true},
		{`-count < -6 && -score < 0.0`, True, true},
		{`path + "x" == "/api/v1/usersx"`, True, true},
		{`["/api", "/v2"].exists(p, path.startsWith(p))`, True, false},
		{`["/api", "/v2"].all(path, path.startsWith("/"))`, True, false},
		{`local.mode == "slow"`, Unknown, true},
		{`local.mode == "slow" || path.endsWith("users")`, True, true},
		{`type(count) == int`, True, false},
		{`string(count) == "7"`, True, false},
		{`metrics.rate - score < 0.0`, True, true},
		{`true`, True, true},
	} {
		t.Run(tc.text, func(t *testing.T) {
			schema := testSchema(t)
			scope := NewScope(schema)
			p := compileText(t, scope, tc.text)
			row := bind(t, scope, schema, values)
			if got := p.Eval(row); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if p.Lowered() != tc.lowered {
				t.Errorf("lowered is %v", p.Lowered())
			}
			got, _ := p.evalCEL(row)
			if want := tc.want; got != want && !(want == Unordered && got == False) {
				t.Errorf("cel-go gives %d, want %d", got, want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, tc := range []struct{ text, want, hint string }{
		{`request.path == "/"`, `0: unknown attribute "request.path"`, `did you mean "path"?`},
		{`flag && patth == "/"`, `8: unknown attribute "patth"`, `did you mean "path"?`},
		{`flag &&
   patth == "/"`, `11: unknown attribute "patth"`, `did you mean "path"?`},
		{`request.headers.user_agent == ""`, `0: unknown attribute`, `did you mean "headers.user_agent"?`},
		{`header.accept == ""`, `0: unknown attribute`, `did you mean "headers.accept"?`},
		{`foo > 1`, `0: unknown attribute "foo"`, `declare it in the attributes: block, as in foo: double`},
		{`headers == "x"`, `0: unknown attribute "headers"`, `name one value of it, as in headers.x`},
		{`headers.x-query-hash == "a"`, `0: headers.x-query-hash is a subtraction`, `write headers["x-query-hash"]`},
		{`flag && headers.user-agent.contains("x")`, `8: headers.user-agent is a subtraction`, `write headers["user-agent"]`},
		{`metrics.load-factor > 1.0`, `0: metrics.load-factor is a subtraction`, `write metrics["load-factor"]`},
		{`metrics.a - metrcs.b > 1.0`, `12: unknown attribute "metrcs.b"`, `did you mean "metrics.b"?`},
		{`metrics.a - metrcs.b-c > 1.0`, `12: unknown attribute "metrcs.b"`, `did you mean "metrics.b"?`},
		{`metrics.a -b > 1.0`, `11: unknown attribute "b"`, "declare it in the attributes: block, as in b: double"},
		{`metrics.b-c - metrcs.d > 1.0`, `0: metrics.b-c is a subtraction`, `write metrics["b-c"]`},
		{`score == 1`, `6: found no matching overload for '_==_' applied to '(double, int)'`, `compare a double with a double: write 1.0, not 1`},
		{`path.startWith("/api")`, `14: undeclared reference to 'startWith'`, `did you mean startsWith?`},
		{`env.country = "CN"`, `12: syntax error`, `compare with ==`},
		{`path == `, `8: syntax error: the expression ends too early`, ``},
		{`flag ? 1`, `8: syntax error: the expression ends too early`, ``},
		{`(flag`, `5: syntax error: the expression ends too early: ')' is missing`, ``},
		{`flag && !`, `9: syntax error: the expression ends too early`, ``},
		{`path == "x" and flag`, `12: syntax error: unexpected "and"`, `write && for and`},
		{`path == "x" OR flag`, `12: syntax error: unexpected "OR"`, `write || for or`},
		{`not flag`, `4: syntax error: unexpected "flag"`, `write ! for not`},
		{`flag & flag`, `5: syntax error: unexpected "&"`, `write && for and`},
		{`flag | flag`, `5: syntax error: unexpected "|"`, `write || for or`},
		{`path <> "x"`, `6: syntax error: unexpected ">"`, ``},
		{`{{ path }} == "x"`, `8: syntax error: unexpected "}", want ':'`, ``},
		{`path in ["a" "b"]`, `13: syntax error: unexpected "\"b\""`, ``},
		{`a..b`, `2: syntax error: unexpected ".."`, ``},
		{`path == “x”`, `8: syntax error: unexpected "“"`, `write straight quotes`},
		{"path == 'a\nb'", `8: syntax error: a text is not closed on its line`, `close the quote`},
		{`path == "\q"`, `8: syntax error: unknown escape in a text`, `write \\ for a backslash`},
		{`score + 1.0`, `0: the condition gives double, not true or false`, `compare it with something`},
		{`path.matches(env.country)`, `13: the pattern of matches() must be a literal text`, ``},
		{`path.matches("(")`, `13: malformed pattern`, ``},
		{`path.matches("((a{100}){100}){10}")`, `13: `, ``},
		{``, `0: the condition is empty`, `write true for a rule that always holds`},
		{strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), ``, ``},
		{strings.Repeat("true && ", 2000) + "true", ``, ``},
		{`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))`, `0: the condition may cost`, `avoid nested loops`},
	} {
		t.Run(fmt.Sprintf("%.40s", tc.text), func(t *testing.T) {
			c, err := NewCompiler(NewScope(testSchema(t)), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, findings := c.compile(tc.text)
			if len(findings) == 0 {
				t.Fatal("compiles")
			}
			f := findings[0]
			if got := fmt.Sprintf("%d: %s", f.offset, f.message); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if tc.hint != "" && f.hint != tc.hint {
				t.Errorf("hint %q, want %q", f.hint, tc.hint)
			}
		})
	}
}

func parse(t testing.TB, text string) (*document.File, *document.Node) {
	t.Helper()
	f, n, err := document.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f, n
}

// Positions of findings in a file, through each way of writing a condition.
func TestBoolFindsThePlace(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"if: flag && patth == 'x'\n", `f.yaml:1:13: unknown attribute "patth"`},
		{"a:\n  if: 'flag && patth == \"x\"'\n", ``},
		{"if: |\n  flag &&\n    patth == 'x'\n", `f.yaml:3:5: unknown attribute "patth"`},
		{"if: >\n  flag &&\n  patth == 'x'\n", `f.yaml:3:3: unknown attribute "patth"`},
		{"if: \"env.country == \\\"é\\\" && patth == 'x'\"\n", `f.yaml:1:30: unknown attribute "patth"`},
		{"if: score == 1\n", `f.yaml:1:11: found no matching overload`},
		{"if: |\n  flag &&\n  score =\n  1.0\n", `f.yaml:3:9: syntax error`},
		{"if: flag &&\n", `f.yaml:1:12: syntax error`},
		{"if: [flag]\n", `f.yaml:1:5: if must be text, got a list`},
		{"if: path.matches('[')\n", `f.yaml:1:18: malformed pattern`},
		{"if: size(path)\n", `f.yaml:1:5: the condition gives int`},
	} {
		t.Run(tc.file, func(t *testing.T) {
			f, n := parse(t, tc.file)
			if v := n.Map().Get("a"); v != nil {
				n, tc.want = v, `f.yaml:2:16: unknown attribute "patth"`
			}
			c, err := NewCompiler(NewScope(testSchema(t)), []byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if p := c.Bool(n.Map().Get("if")); p != nil {
				t.Fatal("compiles")
			}
			if got := f.Err().Error(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Doubts about a condition that compiles.
func TestBoolWarns(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"if: path == '/x' #&& flag\n", `1:5 the rest of the line is a comment: "#&& flag" (quote the expression)`},
		{"if: 'path == \"/x\"' # admins\n", ``},
		{"if: flag && metrics.laod > 0.5 && metrics.laod < 0.9\n", `1:13 the data set does not record metrics.laod (did you mean "metrics.load"?)`},
		{"if: >\n  flag &&\n  has(metrics.laod)\n", `3:7 the data set does not record metrics.laod (did you mean "metrics.load"?)`},
	} {
		f, n := parse(t, tc.file)
		c, err := NewCompiler(NewScope(testSchema(t)), []byte(tc.file))
		if err != nil {
			t.Fatal(err)
		}
		if p := c.Bool(n.Map().Get("if")); p == nil {
			t.Fatalf("%q: %v", tc.file, f.Err())
		}
		got := ""
		for _, p := range f.Problems {
			got += fmt.Sprintf("%d:%d %s (%s)", p.Pos.Line, p.Pos.Column, p.Message, p.Hint)
		}
		if got != tc.want {
			t.Errorf("%q: got  %s\nwant %s", tc.file, got, tc.want)
		}
	}
}

func TestAlways(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "false": false, "flag": false, "true || flag": false} {
		if got := compileText(t, NewScope(testSchema(t)), text).Always(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestReads(t *testing.T) {
	scope := NewScope(testSchema(t))
	compileText(t, scope, `flag`)
	p := compileText(t, scope, `path == "x" || has(headers.b) || [1].exists(count, count > 0) || path == "y"`)
	if got := fmt.Sprint(p.Names()); got != "[path headers.b]" {
		t.Errorf("reads %s", got)
	}
}

func TestCheckPattern(t *testing.T) {
	for text, want := range map[string]string{
		"^/api/v[0-9]+$": "", "(?i)bot|crawl": "", "(": "malformed pattern", "(?=a)": "malformed pattern", `\1`: "malformed pattern",
		"(abc){800}": "pattern compiles to 4002 instructions, the limit is 2000", "a{1001}": "malformed pattern",
	} {
		err := CheckPattern(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Any text compiles or has findings inside it, and what compiles gives the same answer
// lowered and not.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{
		`env.country == "CN" && path.startsWith("/api/v1")`, `confidence(model.score) < 0.6`, `headers.x-y == "a"`, `has(flag) && !has(headers["a-b"])`,
		`path.matches("a+")`, `[1, 2].exists(x, x > count)`, `{"a": 1}.a == 1`, `score in [1.0, 2.0]`, "headers.`a-b` == 'x'", `type(flag) == bool`, `flag ? 1 : 2`, `a.b[c].d - e`, `has(a.b().c)`,
		`[[1]].map(x, x.filter(y, y > 0)) == []`, `duration("1s") > duration("0s")`, `b"a" == b"b"`, `1u < 2u`, `null == local.x`, `"\u00e9" == path`,
	} {
		f.Add(s)
	}
	schema := testSchema(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 {
			return
		}
		scope := NewScope(schema)
		c, err := NewCompiler(scope, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, findings := c.compile(text)
		for _, x := range findings {
			if n := len([]rune(text)); x.offset < 0 || x.offset > n || x.message == "" {
				t.Fatalf("finding %+v in %d runes", x, n)
			}
		}
		if (p == nil) != (len(findings) > 0) {
			t.Fatalf("program %v with findings %v", p, findings)
		}
		if p == nil {
			return
		}
		for _, values := range []map[string]any{nil, {"path": "/a", "flag": true, "score": 0.5, "count": 7, "env.country": "CN", "headers.user-agent": "x"}} {
			row := bind(t, scope, schema, values)
			got := p.Eval(row)
			want, _ := p.evalCEL(row)
			if got != want && !(got == Unordered && want == False) {
				t.Fatalf("%s: lowered %v gives %d, cel-go %d", text, p.Lowered(), got, want)
			}
		}
	})
}
