package rules

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// shortRules are few and have short conditions, so that one often implies another.
func shortRules(r *rand.Rand) []refRule {
	out := make([]refRule, 6)
	for i := range out {
		x := &out[i]
		x.id, x.action = fmt.Sprintf("r%d", i), fmt.Sprintf("a%d", i)
		for range 1 + r.IntN(2) {
			x.conds = append(x.conds, randomCond(r, 1))
		}
		if i > 0 && r.IntN(3) == 0 { // a narrower one
			x.conds = append(x.conds, out[r.IntN(i)].conds...)
		}
		x.off = r.IntN(20) == 0
		if r.IntN(8) == 0 {
			x.tags = []string{"t" + x.id}
		}
		if r.IntN(6) == 0 {
			x.from = 1e9 + int64(r.IntN(3))*10
			x.until = x.from + 10 + int64(r.IntN(3))*10
		}
	}
	return out
}

// No input reaches a rule that the check says is never reached, whatever is absent, NaN
// or of another type.
func TestWhatIsNeverReachedIsNot(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	said := regexp.MustCompile(`^rule "(r\d)" (is never reached|never matches)`)
	reached, never := 0, 0
	for range 1500 {
		spec := shortRules(r)
		data := refFile(t, spec)
		warned := map[string]string{}
		for _, p := range Check("r.json", data, nil) {
			if m := said.FindStringSubmatch(p.Message); m != nil {
				warned[m[1]] = p.Message
				if m[2] == "is never reached" {
					reached++
				} else {
					never++
				}
			}
		}
		e, err := Compile("r.json", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 150 {
			in := e.bound(t, randomInput(r))
			if r.IntN(3) > 0 {
				in.now = time.Unix(1e9+int64(r.IntN(60)), 0)
			}
			v := e.evaluate(e.program.Load(), &in)
			for _, x := range append(v.tagged, v.rule) {
				if x != nil && warned[x.id] != "" {
					t.Fatalf("%v: %s decides, though %s\n%s", in.row.Values, x.id, warned[x.id], data)
				}
			}
		}
	}
	t.Logf("%d said to be shadowed, %d to be impossible", reached, never)
	if reached < 300 || never < 100 {
		t.Error("the test says too little")
	}
}

// randomInput is randomAttrs with values of other types among them.
func randomInput(r *rand.Rand) map[string]any {
	in := randomAttrs(r)
	for name := range in {
		switch r.IntN(12) {
		case 0:
			in[name] = int64(r.IntN(4))
		case 1:
			in[name] = refTexts[r.IntN(7)]
		case 2:
			in[name] = r.IntN(2) == 0
		}
	}
	return in
}

func (e *Engine) bound(t testing.TB, attrs map[string]any) input {
	t.Helper()
	req := request(t, attrs)
	return input{row: expr.Row{Values: req.Attrs.Values, At: e.binder.Bind(req.Attrs.Schema)}}
}

// A file of 100,000 rules is checked in seconds: the pairs are not all compared.
func TestCheckOfManyRulesIsNotQuadratic(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {id: r%d, conditions: [{field: path, operator: eq, value: /p%d}, {field: metrics.m, operator: gt, value: %d}], action: x}\n", i, i/2, 10+i%2)
	}
	b.WriteString("fallback: x\n")
	began := time.Now()
	ps := Check("r.yaml", []byte(b.String()), nil)
	if len(ps) != n/2 {
		t.Errorf("%d findings, want %d: %v", len(ps), n/2, ps[:min(2, len(ps))])
	}
	if took := time.Since(began); took > time.Minute { // all pairs take many minutes
		t.Errorf("took %v", took)
	}
	var p *decision.Position
	for _, x := range ps {
		if x.Severity != 1 || !strings.Contains(x.Message, "already matches whatever it matches") {
			t.Fatalf("%v", x)
		}
		p = &x.Pos
	}
	if p == nil || p.Line != n+2 {
		t.Errorf("last at %v", p)
	}
}
