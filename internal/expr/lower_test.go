package expr

import (
	"math"
	"math/big"
	"sync"
	"testing"

	"cel.dev/cel-go/common/operators"

	"github.com/clefbench/clefbench/decision"
)

// Int arithmetic against math/big, over the corners of 64 bits.
func TestIntOperators(t *testing.T) {
	corners := []int64{0, 1, -1, 2, -2, 3, 7, -7, 1 << 31, -1 << 31, 1 << 32, 3037000499, 3037000500, -3037000500, 1 << 62, -1 << 62, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1}
	exact := map[string]func(z, x, y *big.Int) *big.Int{
		operators.Add: (*big.Int).Add, operators.Subtract: (*big.Int).Sub, operators.Multiply: (*big.Int).Mul,
		operators.Divide: (*big.Int).Quo, operators.Modulo: (*big.Int).Rem,
	}
	for fn, f := range exact {
		op := intOperator(fn)
		for _, x := range corners {
			for _, y := range corners {
				got, ok := op(x, y)
				divides := fn == operators.Divide || fn == operators.Modulo
				if divides && y == 0 {
					if ok {
						t.Errorf("%d %s 0 = %d", x, fn, got)
					}
					continue
				}
				want := f(new(big.Int), big.NewInt(x), big.NewInt(y))
				fits := want.IsInt64()
				if fn == operators.Modulo && x == math.MinInt64 && y == -1 {
					fits = false // the quotient overflows, and CEL makes that an error
				}
				if ok != fits || ok && got != want.Int64() {
					t.Errorf("%d %s %d = %d, %v; want %v", x, fn, y, got, ok, want)
				}
			}
		}
	}
}

// askedLate counts how often each late name is read.
type askedLate struct {
	scope  *Scope
	values map[string]decision.Value
	asked  int
}

func (l *askedLate) Late(slot int) *decision.Value {
	l.asked++
	v, ok := l.values[l.scope.Attr(slot).Name]
	if !ok {
		return nil
	}
	return &v
}

func TestLateNamesAreReadLast(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  Truth
		asked int
	}{
		{`confidence(model.score) < 0.6 && flag`, False, 0},
		{`confidence(model.score) < 0.6 && score > 0.1`, True, 1},
		{`model.action == "block" || !flag`, True, 0},
		{`(model.action == "block" || flag) && flag`, False, 0},
		{`has(model.score) && flag`, False, 0},
		{`model.action in ["block", "allow"] && !flag`, True, 1},
		{`model.missing == "x" && !flag`, Unknown, 1},
		{`(model.score > 0.5 ? flag : !flag) && score > 0.1`, False, 1},
		{`score > 0.1`, True, 0},
	} {
		t.Run(tc.text, func(t *testing.T) {
			schema := testSchema(t)
			scope := NewScope(schema)
			scope.AskModel()
			p := compileText(t, scope, tc.text)
			row := bind(t, scope, schema, map[string]any{"flag": false, "score": 0.2})
			late := &askedLate{scope: scope, values: map[string]decision.Value{"model.score": decision.DoubleValue(0.55), "model.action": decision.StringValue("allow")}}
			row.Late = late
			if got := p.Eval(row); got != tc.want || late.asked != tc.asked {
				t.Errorf("got %d after %d reads, want %d after %d", got, late.asked, tc.want, tc.asked)
			}
			row.Late = nil
			p.Eval(row) // absent, not a panic
		})
	}
}

// A recorded attribute of the same name does not stand in for the model's answer.
func TestLateNamesAreNotTheRecordedOnes(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "model.score", Type: decision.Double})
	if err != nil {
		t.Fatal(err)
	}
	for _, asks := range []bool{true, false} {
		scope := NewScope(schema)
		if asks {
			scope.AskModel()
		}
		p := compileText(t, scope, `model.score > 0.5`)
		row := bind(t, scope, schema, map[string]any{"model.score": 0.9})
		row.Late = &askedLate{scope: scope, values: map[string]decision.Value{"model.score": decision.DoubleValue(0.1)}}
		if got := p.Eval(row) == True; got == asks {
			t.Errorf("with a model %v: %v", asks, got)
		}
	}
}

func TestExplainNamesWhatIsMissing(t *testing.T) {
	schema := testSchema(t)
	for _, tc := range []struct {
		text    string
		values  map[string]any
		missing []string
		cause   string
	}{
		{`score > 0.5 && path == "/"`, map[string]any{"path": "/"}, []string{"score"}, "no such attribute: score"},
		{`count + limit > 0`, map[string]any{"count": math.MaxInt64, "limit": 1}, nil, "integer overflow"},
		{`count / limit > 0`, map[string]any{"count": 1, "limit": 0}, nil, "division by zero"},
		{`local.x > 1`, nil, []string{"local.x"}, "no such attribute: local.x"},
		{`score > 0.5`, map[string]any{"score": math.NaN()}, nil, "score is NaN"},
		{`confidence(score) > 0.5`, map[string]any{"score": 3.0}, nil, "confidence of 3, which is not in [0,1]"},
		{`score - score > 0.5`, map[string]any{"score": math.Inf(1)}, nil, "a computed value is NaN"},
		{`score > 0.5`, map[string]any{"score": "high"}, nil, "score is string, not double"},
		{`["a"].exists(x, path.contains(x))`, nil, []string{"path"}, "no such attribute: path"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			scope := NewScope(schema)
			p := compileText(t, scope, tc.text)
			row := bind(t, scope, schema, tc.values)
			if got := p.Eval(row); got != Unknown && got != Unordered {
				t.Fatalf("evaluates to %d", got)
			}
			missing, cause := p.Explain(row)
			if len(missing) != len(tc.missing) || len(missing) > 0 && missing[0] != tc.missing[0] || cause != tc.cause {
				t.Errorf("missing %v, cause %q", missing, cause)
			}
		})
	}
}

// What is not lowered counts a NaN as well.
func TestFallbackToCELCountsNaN(t *testing.T) {
	schema := testSchema(t)
	scope := NewScope(schema)
	p := compileText(t, scope, `[1.0, 2.0].exists(x, score > x)`)
	if p.Lowered() {
		t.Fatal("lowered: the test needs another expression")
	}
	if got := p.Eval(bind(t, scope, schema, map[string]any{"score": math.NaN()})); got != Unordered {
		t.Errorf("NaN gives %d", got)
	}
	if got := p.Eval(bind(t, scope, schema, map[string]any{"score": 0.5})); got != False {
		t.Errorf("0.5 gives %d", got)
	}
}

// A value that has another type than the condition was compiled for.
func TestValuesOfAnotherType(t *testing.T) {
	for _, tc := range []struct {
		text, name string
		value      any
		want       Truth
	}{
		{`score > 0.5`, "score", 1, True},
		{`score > 0.5`, "score", int64(1<<53 + 1), Unknown}, // not a double without loss
		{`score > 0.5`, "score", "1", Unknown},
		{`count > 0`, "count", 2.0, True},
		{`count > 0`, "count", 2.5, Unknown},
		{`path == "1"`, "path", 1, Unknown},
		{`flag`, "flag", "true", Unknown},
		{`flag || true`, "flag", "true", True},
		{`has(flag)`, "flag", "true", True},
		{`local.x`, "local.x", "true", Unknown},
		{`local.x && true`, "local.x", true, True},
		{`local.x == 1`, "local.x", 1.0, True},
		{`local.x == "1"`, "local.x", 1, False},
		{`local.x < 2`, "local.x", 1.5, True},
		{`local.x < 2`, "local.x", "1", Unknown},
	} {
		t.Run(tc.text, func(t *testing.T) {
			scope := NewScope(testSchema(t))
			p := compileText(t, scope, tc.text)
			v, err := decision.ValueOf(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			row := &Row{Values: []decision.Value{v}, At: []int{0}}
			if got := p.Eval(row); got != tc.want {
				t.Errorf("%v: got %d, want %d", tc.value, got, tc.want)
			}
			if got, _ := p.evalCEL(row); got != tc.want {
				t.Errorf("%v: cel-go gives %d, want %d", tc.value, got, tc.want)
			}
		})
	}
}

func TestProgramsAreSafeForConcurrentUse(t *testing.T) {
	schema := testSchema(t)
	scope := NewScope(schema)
	var programs []*Program
	for _, text := range []string{`score > 0.5 && path.matches("^/a")`, `["/a"].exists(p, path.startsWith(p))`, `path in ["/a", "/b"]`} {
		programs = append(programs, compileText(t, scope, text))
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			row := bind(t, scope, schema, map[string]any{"score": 0.6, "path": "/a"})
			for k := range 200 {
				if p := programs[(i+k)%len(programs)]; p.Eval(row) != True {
					t.Error("not true")
				}
			}
		})
	}
	wg.Wait()
}

func TestLoweredAllocatesNothing(t *testing.T) {
	schema := testSchema(t)
	scope := NewScope(schema)
	for _, text := range []string{
		`env.country == "CN" && path.startsWith("/api/v1")`, `confidence(score) < 0.6`, `headers["user-agent"].contains("bot") || metrics.rate > 0.5`,
		`count in [1, 2, 3] && !has(query.q)`, `local.x == "a"`, `path.matches("^/api/v[0-9]+")`, `(flag ? count : limit) + 1 > 7`,
	} {
		p := compileText(t, scope, text)
		row := bind(t, scope, schema, map[string]any{"env.country": "CN", "path": "/api/v1", "score": 0.5, "count": 3, "flag": true, "headers.user-agent": "x", "metrics.rate": 0.1})
		p.Eval(row)
		if n := testing.AllocsPerRun(100, func() { p.Eval(row) }); n != 0 && !raceEnabled || !p.Lowered() {
			t.Errorf("%s: %v allocations, lowered %v", text, n, p.Lowered())
		}
	}
}
