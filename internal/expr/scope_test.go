package expr

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
