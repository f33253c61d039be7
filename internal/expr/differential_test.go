package expr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// The oracle is plain cel-go on the text as written: namespaces are maps, and a missing
// attribute is a missing key or variable. It shares neither the rewriting of references
// nor the lowering with the code under test.
type oracle struct {
	env    *cel.Env
	schema *decision.Schema
	comp   *Compiler
	// tests counts the necessary tests, failedTests those that a row failed.
	tests, failedTests int
}

func newOracle(t testing.TB) *oracle {
	t.Helper()
	env, err := cel.NewEnv(
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("env", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("metrics", cel.MapType(cel.StringType, cel.DoubleType)),
		cel.Variable("local", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("path", cel.StringType),
		cel.Variable("count", cel.IntType), cel.Variable("limit", cel.IntType),
		cel.Variable("score", cel.DoubleType), cel.Variable("flag", cel.BoolType),
		cel.Function("confidence", cel.Overload("c_d", []*cel.Type{cel.DoubleType}, cel.DoubleType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			p := float64(v.(types.Double))
			if p < 0 || p > 1 {
				return types.NewErr("out of range")
			}
			return types.Double(math.Max(p, 1-p))
		}))),
	)
	if err != nil {
		t.Fatal(err)
	}
	schema := diffSchema(t)
	comp, err := NewCompiler(NewScope(schema), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &oracle{env: env, schema: schema, comp: comp}
}

// diffSchema leaves out what only the built-in roots give a type: headers.*, env.*.
func diffSchema(t testing.TB) *decision.Schema {
	t.Helper()
	s, err := decision.NewSchema(
		decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "count", Type: decision.Int},
		decision.Field{Name: "limit", Type: decision.Int},
		decision.Field{Name: "score", Type: decision.Double},
		decision.Field{Name: "flag", Type: decision.Bool},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// entropy turns fuzz bytes into choices; when they run out, every choice is the first.
type entropy struct{ data []byte }

func (e *entropy) pick(n int) int {
	if len(e.data) == 0 {
		return 0
	}
	b := e.data[0]
	e.data = e.data[1:]
	return int(b) % n
}

func pickOf[T any](e *entropy, xs ...T) T { return xs[e.pick(len(xs))] }

func (e *entropy) boolean(depth int) string {
	if depth <= 0 || len(e.data) == 0 {
		return pickOf(e, "flag", "true", "false", "local.a", "has(metrics.rate)", "has(headers.ua)", `has(local.b)`)
	}
	d := depth - 1
	switch e.pick(12) {
	case 0, 1:
		return "(" + e.boolean(d) + " && " + e.boolean(d) + ")"
	case 2, 3:
		return "(" + e.boolean(d) + " || " + e.boolean(d) + ")"
	case 4:
		return "!" + "(" + e.boolean(d) + ")"
	case 5:
		return "(" + e.boolean(d) + " ? " + e.boolean(d) + " : " + e.boolean(d) + ")"
	case 6:
		return e.text(d) + pickOf(e, ".contains(", ".startsWith(", ".endsWith(") + e.text(d) + ")"
	case 7:
		return e.text(d) + ".matches(" + pickOf(e, `"^a"`, `"(b|c)+$"`, `"."`, `""`) + ")"
	case 8:
		return e.member(d)
	default:
		return e.comparison(d)
	}
}

func (e *entropy) comparison(d int) string {
	op := pickOf(e, " == ", " != ", " < ", " <= ", " > ", " >= ")
	switch e.pick(7) {
	case 0:
		return "(" + e.integer(d) + op + e.integer(d) + ")"
	case 1:
		return "(" + e.number(d) + op + e.number(d) + ")"
	case 2:
		return "(" + e.text(d) + op + e.text(d) + ")"
	case 3:
		return "(" + e.number(d) + op + e.integer(d) + ")"
	case 4:
		return "(" + e.integer(d) + op + e.number(d) + ")"
	case 5:
		return "(" + e.dynamic() + op + e.any(d) + ")"
	}
	return "(" + e.boolean(d) + op + e.boolean(d) + ")"
}

func (e *entropy) member(d int) string {
	switch e.pick(4) {
	case 0:
		return "(" + e.text(d) + ` in ["a", "bc", ""])`
	case 1:
		return "(" + e.integer(d) + " in [0, 7, -1])"
	case 2:
		return "(" + e.number(d) + " in [0.0, 0.5, -1.5])"
	}
	return "(" + e.dynamic() + ` in ["a", 1, 0.5, true])`
}

func (e *entropy) any(d int) string {
	switch e.pick(5) {
	case 0:
		return e.integer(d)
	case 1:
		return e.number(d)
	case 2:
		return e.text(d)
	case 3:
		return e.dynamic()
	}
	return e.boolean(d)
}

func (e *entropy) dynamic() string { return pickOf(e, "local.a", "local.b", `local["c-d"]`) }

func (e *entropy) integer(depth int) string {
	if depth <= 0 || len(e.data) == 0 {
		return pickOf(e, "count", "limit", "0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "9007199254740993", "local.b")
	}
	d := depth - 1
	switch e.pick(5) {
	case 0:
		return "(-" + e.integer(0) + ")"
	case 1:
		return "size(" + e.text(d) + ")"
	case 2:
		return "(" + e.boolean(d) + " ? " + e.integer(d) + " : " + e.integer(d) + ")"
	}
	return "(" + e.integer(d) + pickOf(e, " + ", " - ", " * ", " / ", " % ") + e.integer(d) + ")"
}

func (e *entropy) number(depth int) string {
	if depth <= 0 || len(e.data) == 0 {
		return pickOf(e, "score", "metrics.rate", `metrics["load"]`, "0.0", "0.5", "-1.5", "1e308", "9223372036854775807.0", "-9223372036854775808.0", "local.a")
	}
	d := depth - 1
	switch e.pick(6) {
	case 0:
		return "(-" + e.number(0) + ")"
	case 1:
		return "double(" + e.integer(d) + ")"
	case 2:
		return "confidence(" + e.number(d) + ")"
	case 3:
		return "(" + e.boolean(d) + " ? " + e.number(d) + " : " + e.number(d) + ")"
	}
	return "(" + e.number(d) + pickOf(e, " + ", " - ", " * ", " / ") + e.number(d) + ")"
}

func (e *entropy) text(depth int) string {
	if depth <= 0 || len(e.data) == 0 {
		return pickOf(e, "path", "headers.ua", `headers["x-y"]`, "env.country", `"a"`, `"bc"`, `""`, `"héé"`, "local.b")
	}
	d := depth - 1
	if e.pick(3) == 0 {
		return "(" + e.boolean(d) + " ? " + e.text(d) + " : " + e.text(d) + ")"
	}
	return "(" + e.text(d) + " + " + e.text(d) + ")"
}

// row draws values for the attributes; each may be absent.
func (e *entropy) row() map[string]any {
	row := map[string]any{}
	set := func(name string, x any) {
		if e.pick(4) != 0 {
			row[name] = x
		}
	}
	doubles := []float64{0, 0.5, 1, -1.5, 7, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxInt64, math.MinInt64, 1 << 53, math.Copysign(0, -1)}
	ints := []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, 1<<53 + 1}
	texts := []string{"a", "", "bc", "abc", "héé", "\xff", "/api"}
	for _, n := range []string{"score", "metrics.rate", "metrics.load"} {
		set(n, pickOf(e, doubles...))
	}
	for _, n := range []string{"count", "limit"} {
		set(n, pickOf(e, ints...))
	}
	for _, n := range []string{"path", "headers.ua", "headers.x-y", "env.country"} {
		set(n, pickOf(e, texts...))
	}
	set("flag", e.pick(2) == 0)
	for _, n := range []string{"local.a", "local.b", "local.c-d"} {
		set(n, pickOf[any](e, true, false, int64(1), 0.5, "a", math.NaN(), int64(math.MaxInt64), 1.0))
	}
	return row
}

// vars is the row as the oracle wants it.
func vars(row map[string]any) map[string]any {
	out := map[string]any{"headers": map[string]string{}, "env": map[string]string{}, "metrics": map[string]float64{}, "local": map[string]any{}}
	for name, x := range row {
		root, key, dotted := strings.Cut(name, ".")
		switch m := out[root].(type) {
		case map[string]string:
			m[key] = x.(string)
		case map[string]float64:
			m[key] = x.(float64)
		case map[string]any:
			m[key] = x
		default:
			if dotted {
				panic(name)
			}
			out[name] = x
		}
	}
	return out
}

// check compares one expression over one row; it reports whether both compile, and
// whether the code under test was lowered.
func (o *oracle) check(t testing.TB, text string, row map[string]any) (compiled, lowered bool) {
	t.Helper()
	ast, iss := o.env.Compile(text)
	p, findings := o.comp.compile(text)
	if iss.Err() != nil || p == nil {
		if (iss.Err() != nil) != (p == nil) && !strings.Contains(fmt.Sprint(findings), "cost") {
			t.Errorf("%s\ncel-go says %v, we say %v", text, iss.Err(), findings)
		}
		return false, false
	}
	prog, err := o.env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	want := Unknown
	if out, _, err := prog.Eval(vars(row)); err == nil {
		b, ok := out.Value().(bool)
		if ok {
			want = truthOf(b)
		}
	}
	names := o.comp.scope.Names()
	r := &Row{At: make([]int, len(names))}
	for i, n := range names {
		v, err := decision.ValueOf(row[n])
		if err != nil {
			t.Fatal(err)
		}
		r.Values, r.At[i] = append(r.Values, v), i
	}
	got := p.Eval(r)
	o.necessary(t, text, p, r, got)
	if got == Unordered {
		got = False
	}
	again, _ := p.evalCEL(r)
	if got != want || again != want {
		t.Errorf("%s\nrow %v\nplain cel-go %d, ours %d (lowered %v), ours through cel-go %d", text, row, want, got, p.Lowered(), again)
	}
	return true, p.Lowered()
}

// necessary checks that a test which fails makes the condition false.
func (o *oracle) necessary(t testing.TB, text string, p *Program, r *Row, got Truth) {
	t.Helper()
	for _, test := range p.Necessary() {
		a := o.comp.scope.Attr(test.Slot)
		v := r.Get(&a)
		o.tests++
		if v == nil || v.Type() != decision.String || len(prefilter.New([]prefilter.Entry{{Op: test.Op, Texts: test.Texts}}).Rules(v.Str())) > 0 {
			continue
		}
		o.failedTests++
		if got != False {
			t.Errorf("%s\nis %d for %q, though it needs %+v", text, got, v.Str(), test)
		}
	}
}

func TestLoweredAgreesWithCEL(t *testing.T) {
	o := newOracle(t)
	rng := rand.New(rand.NewPCG(1, 2))
	compiled, lowered, n := 0, 0, 1500
	for range n {
		data := make([]byte, 40)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		e := &entropy{data}
		c, l := o.check(t, e.boolean(4), e.row())
		compiled, lowered = compiled+btoi(c), lowered+btoi(l)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d expressions, %d compile, %d lowered", n, compiled, lowered)
	if compiled < n/2 || lowered < compiled/2 {
		t.Errorf("too few compile (%d) or are lowered (%d) for the test to mean anything", compiled, lowered)
	}
}

// Conditions of the shape that an index looks for, beside random ones.
func TestNecessaryTestsAreNecessary(t *testing.T) {
	o := newOracle(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 600 {
		data := make([]byte, 40)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		e := &entropy{data}
		test := pickOf(e, `headers.ua == "a"`, `"bc" == path`, `path.contains("b")`, `headers["x-y"].startsWith("a")`, `path.endsWith("")`, `env.country in ["a", "c"]`)
		o.check(t, pickOf(e, test+" && "+e.boolean(3), e.boolean(2)+" && ("+test+" && "+e.boolean(1)+")"), e.row())
	}
	t.Logf("%d tests, %d fail", o.tests, o.failedTests)
	if o.tests < 300 || o.failedTests < 50 {
		t.Errorf("only %d necessary tests, %d of which fail", o.tests, o.failedTests)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func FuzzLoweredAgreesWithCEL(f *testing.F) {
	for i := range 8 {
		f.Add([]byte(strconv.Itoa(i)+"\x09\x05\x03\x00\x01"), []byte{byte(i), 1, 2, 3, 4, 5, 6, 7})
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, text, row []byte) {
		if len(text) > 200 || len(row) > 100 {
			return
		}
		o.check(t, (&entropy{text}).boolean(5), (&entropy{row}).row())
	})
}
