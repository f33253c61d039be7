package attribute

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func TestScope(t *testing.T) {
	f, n := parse(t, "risk: double\nheaders.content-length: string\ncount: double\nscore: int\nmetrics: double\n\"a b\": int\nx: float\n")
	scope := NewScope(testSchema(t))
	scope.Declare(n)
	got := fmt.Sprint(f.Err())
	for _, want := range []string{
		"f.yaml:4:8: score is declared int, but the data set has double",
		`f.yaml:5:1: "metrics" is no attribute name`,
		`f.yaml:6:1: "a b" is no attribute name`,
		`f.yaml:7:4: unknown attribute type "float"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for name, want := range map[string]decision.Type{
		"risk": decision.Double, "count": decision.Double, "path": decision.String, "method": decision.String, "headers.X-A": decision.String,
		"query.q": decision.String, "env.country": decision.String, "metrics.x": decision.Double, "local.x": decision.Null, "state.x": decision.Null,
		"model.score": decision.Double, "model.action": decision.String, "model.x": decision.Null, "flag": decision.Bool,
	} {
		a, err := scope.Use(name)
		if err != nil || a.Type != want {
			t.Errorf("%s is %v, %v", name, a.Type, err)
		}
	}
	for _, name := range []string{"", "x.y", "headers", "headers.", "headers..a", "cookies.a", "Path"} {
		if a, err := scope.Use(name); err == nil {
			t.Errorf("%q is %+v", name, a)
		}
	}
	if a, _ := scope.Use("headers.X-A"); a.Name != "headers.x-a" {
		t.Errorf("headers keep their case: %q", a.Name)
	}
}

func TestHints(t *testing.T) {
	_, n := parse(t, "amount: double\ncustomer.age: int\n")
	scope := NewScope(testSchema(t))
	scope.Declare(n)
	for name, want := range map[string]string{
		"request.path":           `did you mean "path"?`,
		"req.headers.user-agent": `did you mean "headers.user-agent"?`,
		"request.method":         `did you mean "method"?`,
		"pth":                    `did you mean "path"?`,
		"amuont":                 `did you mean "amount"?`,
		"customer.agee":          `did you mean "customer.age"?`,
		"edge.error_rate":        `did you mean "edge.error_rate_1m"?`,
		"header.accept":          `did you mean "headers.accept"?`,
		"metric.p99":             `did you mean "metrics.p99"?`,
		"headers":                "name one value of it, as in headers.x",
		"headers.":               "name one value of it, as in headers.x",
		"headers..a":             "a name has no empty part",
		"header.":                "a name has no empty part",
		"nothing_like_it":        "declare it in the attributes: block, as in nothing_like_it: double",
	} {
		_, err := scope.Use(name)
		var u *UnknownError
		if !errors.As(err, &u) || u.Hint != want || HintOf(err) != want || u.Error() != fmt.Sprintf("unknown attribute %q", name) {
			t.Errorf("%s: %v, hint %q", name, err, HintOf(err))
		}
	}
	if got := HintOf(errors.New("other")); !strings.Contains(got, "templates") {
		t.Errorf("hint %q", got)
	}
}

func TestSlotsAreStable(t *testing.T) {
	scope := NewScope(nil)
	for _, name := range []string{"path", "headers.A", "path", "headers.a", "metrics.x", "headers.A"} {
		if _, err := scope.Use(name); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"path", "headers.a", "metrics.x"}; !reflect.DeepEqual(scope.Names(), want) {
		t.Errorf("names %v", scope.Names())
	}
	if a := scope.Attr(2); a.Name != "metrics.x" || a.Slot != 2 || a.Type != decision.Double || a.Late {
		t.Errorf("%+v", a)
	}
}

// HTTP has header names in lower case; a data set that recorded another case keeps it.
func TestHeaderCase(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "headers.X-Odd", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	_, n := parse(t, "headers.X-Len: int\n")
	scope := NewScope(schema)
	scope.Declare(n)
	for name, want := range map[string]Attr{
		"headers.X-Odd": {Name: "headers.X-Odd", Type: decision.Int},
		"headers.x-odd": {Name: "headers.x-odd", Type: decision.String},
		"headers.X-LEN": {Name: "headers.x-len", Type: decision.Int},
		"query.X":       {Name: "query.X", Type: decision.String},
	} {
		a, err := scope.Use(name)
		if err != nil || a.Name != want.Name || a.Type != want.Type {
			t.Errorf("%s is %+v, %v", name, a, err)
		}
	}
}

func TestTypeHints(t *testing.T) {
	for name, want := range map[string]string{"float": `did you mean "double"?`, "Integer": `did you mean "int"?`, "str": `did you mean "string"?`, "boolean": `did you mean "bool"?`, "uuid": ""} {
		if got := typeHint(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Without a model, what only a model can answer is unknown, unless it was recorded.
func TestNoModel(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "model.score", Type: decision.Double})
	if err != nil {
		t.Fatal(err)
	}
	_, n := parse(t, "model.x: double\n")
	scope := NewScope(schema)
	scope.Declare(n)
	scope.NoModel()
	if a, err := scope.Use("model.score"); err != nil || a.Late {
		t.Errorf("recorded: %+v, %v", a, err)
	}
	for _, name := range []string{"model.action", "model.x", "model.probability.block"} {
		_, err := scope.Use(name)
		if err == nil || err.Error() != name+": the file names no model that could answer it" || HintOf(err) != "name a model in fallback.model" {
			t.Errorf("%s: %v (%s)", name, err, HintOf(err))
		}
	}
	if _, err := scope.Use("metrics.x"); err != nil {
		t.Error(err)
	}
}

func TestClosedScope(t *testing.T) {
	scope := NewClosedScope(testSchema(t))
	for _, name := range []string{"path", "headers.a", "edge.error_rate_1m"} {
		if _, err := scope.Use(name); err != nil {
			t.Error(err)
		}
	}
	_, err := scope.Use("nothing_like_it")
	if err == nil || !strings.Contains(HintOf(err), "check the file against a data set") {
		t.Errorf("%v (%s)", err, HintOf(err))
	}
}

func TestCheckDeclared(t *testing.T) {
	f, n := parse(t, "path: int\nmethod: string\nmodel.score: double\nheaders.content-length: int\nrisk: double\nx: [int]\n")
	NewScope(nil).CheckDeclared(n)
	want := "f.yaml:1:7: path is built in as string, it cannot be int\nf.yaml:3:1: model.score is answered by the model and cannot be declared"
	if got := fmt.Sprint(f.Err()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWarnUnrecorded(t *testing.T) {
	schema, err := decision.NewSchema(
		decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "metrics.fail_rate", Type: decision.Double},
		decision.Field{Name: "metrics.p99", Type: decision.Double}, decision.Field{Name: "country", Type: decision.String},
		decision.Field{Name: "local.tier", Type: decision.String}, decision.Field{Name: "headers.user-agent", Type: decision.String},
	)
	if err != nil {
		t.Fatal(err)
	}
	f, n := parse(t, "metrics.mine: double\n")
	scope := NewScope(schema)
	scope.AskModel()
	scope.Declare(n)
	warn := func(s *Scope, name string) {
		a, err := s.Use(name)
		if err != nil {
			t.Fatal(err)
		}
		s.WarnUnrecorded(f, n.Pos(), a)
	}
	for _, name := range []string{
		"metrics.fial_rate", "metrics.fial_rate", "metrics.fail_rate", "metrics.mine", "path", "method", "model.score",
		"env.country", "state.tier", "metrics.rps", "headers.User-Agent", "headers.user_agent",
	} {
		warn(scope, name)
	}
	warn(NewScope(nil), "metrics.anything")
	var got []string
	for _, p := range f.Problems {
		got = append(got, fmt.Sprintf("%s (%s)", strings.TrimPrefix(p.Message, "the data set does not record "), p.Hint))
	}
	want := []string{
		`metrics.fial_rate (did you mean "metrics.fail_rate"?)`, "method (it will be missing in every request)", `env.country (did you mean "country"?)`,
		`state.tier (did you mean "local.tier"?)`, "metrics.rps (it will be missing in every request)", `headers.user_agent (did you mean "headers.user-agent"?)`,
	}
	if !reflect.DeepEqual(got, want) || f.Problems.Errors() > 0 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
