package strategy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func randomCondition(r *rand.Rand, depth int) string {
	text := func() string { return fmt.Sprintf("%q", []string{"", "a", "ab", "abc", "b", "ba"}[r.IntN(6)]) }
	number := func() string { return []string{"0.5", "1.0", "1.5", "2.0"}[r.IntN(4)] }
	compare := func() string { return []string{"==", "!=", "<", "<=", ">", ">="}[r.IntN(6)] }
	if depth > 0 {
		a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
		switch r.IntN(8) {
		case 0, 1, 2:
			return "(" + a + ") && (" + b + ")"
		case 3:
			return "(" + a + ")||(" + b + ")"
		case 4:
			return "!(" + a + ")"
		}
	}
	switch r.IntN(11) {
	case 0:
		return "m " + compare() + " " + number()
	case 1:
		return number() + compare() + "m"
	case 2:
		return "n " + compare() + fmt.Sprint(r.IntN(3))
	case 3:
		return "n < " + number()
	case 4:
		return "has(" + []string{"path", "m", "local.x"}[r.IntN(3)] + ")"
	case 5:
		return "flag"
	case 6:
		return "path in [" + text() + "," + text() + "]"
	case 7:
		return "local.x " + []string{"==", "!="}[r.IntN(2)] + []string{`"a"`, "1", "true"}[r.IntN(3)]
	case 8:
		return "m + m" + compare() + " 2.0"
	case 9:
		return "path" + []string{"==", "!=", "<"}[r.IntN(3)] + text()
	}
	return "path." + []string{"contains", "startsWith", "endsWith", "matches"}[r.IntN(4)] + "(" + text() + ")"
}

// No input reaches a rule that the check says is never reached, whatever is absent, NaN
// or of another type.
func TestWhatIsNeverReachedIsNot(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	said := regexp.MustCompile(`^rule "(r\d)" (is never reached|never matches)`)
	reached, never := 0, 0
	for range 400 {
		var conds []string
		for range 5 {
			c := randomCondition(r, 2)
			if len(conds) > 0 && r.IntN(3) == 0 {
				c = "(" + c + ") && (" + conds[r.IntN(len(conds))] + ")"
			}
			conds = append(conds, c)
		}
		var b strings.Builder
		b.WriteString("strategy: s\nattributes: {m: double, n: int, flag: bool}\nrules:\n")
		for i, c := range conds {
			fmt.Fprintf(&b, "  - {id: r%d, if: '%s', action: a}\n", i, c)
		}
		warned := map[string]string{}
		for _, p := range Check("s.yaml", []byte(b.String()), nil) {
			if m := said.FindStringSubmatch(p.Message); m != nil {
				warned[m[1]] = p.Message
				if m[2] == "never matches" {
					never++
				} else {
					reached++
				}
			}
		}
		e, err := Compile("s.yaml", []byte(b.String()), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out decision.Response
		for range 200 {
			req := request(t, randomInput(r))
			if err := e.Decide(context.Background(), req, &out); err != nil {
				t.Fatal(err)
			}
			if id := out.Decisions[0].Reason.Rule; warned[id] != "" {
				t.Fatalf("%v: %s decides, though %s\n%s", req.Attrs.Values, id, warned[id], b.String())
			}
		}
	}
	t.Logf("%d said to be shadowed, %d to be impossible", reached, never)
	if reached < 50 || never < 20 {
		t.Error("the test says too little")
	}
}

func randomInput(r *rand.Rand) map[string]any {
	in := map[string]any{}
	texts := []string{"", "a", "b", "c"}
	if r.IntN(8) > 0 {
		in["path"] = texts[r.IntN(4)] + texts[r.IntN(4)] + texts[r.IntN(4)]
	}
	if k := r.IntN(12); k > 1 {
		in["m"] = []float64{0, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, math.NaN(), math.Inf(1)}[r.IntN(10)]
	}
	if r.IntN(8) > 0 {
		in["n"] = int64(r.IntN(4) - 1)
	}
	if r.IntN(4) > 0 {
		in["flag"] = r.IntN(2) == 0
	}
	if r.IntN(3) > 0 {
		in["local.x"] = []any{"a", "b", int64(1), 1.0, 2.5, true}[r.IntN(6)]
	}
	return in
}

func TestShadowedByComparison(t *testing.T) {
	for _, tc := range []struct {
		earlier, later string
		want           bool
	}{
		{`path.startsWith("/api")`, `path.startsWith("/api/v1") && metrics.load > 0.5`, true},
		{`metrics.load > 0.8`, `0.9 < metrics.load`, true},
		{`metrics.load > 0.9`, `metrics.load > 0.8`, false},
		{`path in ["/a", "/b"]`, `path == "/b"`, true},
		{`has(headers["x-a"])`, `headers["x-a"] == "1"`, true},
		{`headers["x-a"].size() > 3`, `path == "/" && headers["x-a"].size()>3`, true},
		{`metrics.a + metrics.b > 1.0`, `metrics.a + metrics.b > 1.0 // again`, true},
		{`metrics.a + metrics.b > 1.0`, `metrics.b + metrics.a > 1.0`, false},
		{`!(metrics.load > 0.9)`, `metrics.load < 0.5`, false},  // so, but not found
		{`metrics.load <= 0.9`, `!(metrics.load > 0.9)`, false}, // NaN
		{`["/a"].exists(p, path.startsWith(p))`, `["/a"].exists(p, path.startsWith(p)) && flag`, true},
	} {
		text := fmt.Sprintf("strategy: s\nattributes: {flag: bool}\nrules:\n- {id: a, if: %q, action: x}\n- {id: b, if: %q, action: y}\nfallback: {action: x}\n", tc.earlier, tc.later)
		ps := Check("s.yaml", []byte(text), nil)
		if ps.Errors() > 0 {
			t.Fatalf("%s", findings(ps))
		}
		if got := len(ps) == 1 && strings.Contains(ps[0].Message, "already matches"); got != tc.want {
			t.Errorf("%s before %s: %s", tc.earlier, tc.later, findings(ps))
		}
	}
}
