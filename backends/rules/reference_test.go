package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// What follows is a second, naive evaluator of rules files: it knows nothing of the
// compiled form, works on maps, and goes through every rule.

type refCond struct {
	All, Any []refCond
	Not      *refCond
	Field    string
	Compute  [2]string // a - b
	Op       string
	Value    any // string, float64, bool, or a list of strings
}

type refRule struct {
	id          string
	conds       []refCond
	action      string
	tags        []string
	off         bool
	from, until int64 // seconds; 0 is no bound
}

// MarshalJSON writes the condition as a rules file has it.
func (c refCond) MarshalJSON() ([]byte, error) {
	switch {
	case c.All != nil:
		return json.Marshal(map[string]any{"all": c.All})
	case c.Any != nil:
		return json.Marshal(map[string]any{"any": c.Any})
	case c.Not != nil:
		return json.Marshal(map[string]any{"not": c.Not})
	case c.Field == "":
		return json.Marshal(map[string]any{"compute": c.Compute[0] + " - " + c.Compute[1], "operator": c.Op, "value": c.Value})
	}
	return json.Marshal(map[string]any{"field": c.Field, "operator": c.Op, "value": c.Value})
}

// truth is 1, 0, or -1 for unknown.
func (c refCond) truth(attrs map[string]any) int {
	switch {
	case c.All != nil:
		return refAll(c.All, attrs)
	case c.Any != nil:
		out := 0
		for _, k := range c.Any {
			switch k.truth(attrs) {
			case 1:
				return 1
			case -1:
				out = -1
			}
		}
		return out
	case c.Not != nil:
		return [3]int{-1, 1, 0}[c.Not.truth(attrs)+1]
	}
	var left any
	if c.Field == "" {
		a, aok := attrs[c.Compute[0]].(float64)
		b, bok := attrs[c.Compute[1]].(float64)
		if !aok || !bok {
			return -1
		}
		left = a - b
	} else {
		left = attrs[c.Field]
	}
	if c.Op == "exists" {
		return bit((left != nil) == c.Value.(bool))
	}
	return refCompare(left, c.Op, c.Value)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// refAll is the lowest of the truths in the order false, unknown, true.
func refAll(cs []refCond, attrs map[string]any) int {
	order := map[int]int{0: 0, -1: 1, 1: 2}
	out := 1
	for _, k := range cs {
		if t := k.truth(attrs); order[t] < order[out] {
			out = t
		}
	}
	return out
}

func refCompare(left any, op string, right any) int {
	switch x := left.(type) {
	case string:
		switch y := right.(type) {
		case string:
			switch op {
			case "eq":
				return bit(x == y)
			case "ne":
				return bit(x != y)
			case "contains":
				return bit(strings.Contains(x, y))
			case "prefix":
				return bit(strings.HasPrefix(x, y))
			case "suffix":
				return bit(strings.HasSuffix(x, y))
			}
		case []string:
			return bit(slices.Contains(y, x))
		}
	case float64:
		y, ok := right.(float64)
		if !ok || math.IsNaN(x) {
			return -1
		}
		switch op {
		case "gt":
			return bit(x > y)
		case "le":
			return bit(x <= y)
		}
	}
	return -1
}

// decide returns the deciding rule, its action, the tags and the number of skipped rules.
func refDecide(rules []refRule, attrs map[string]any, now int64) (rule, action string, tags []string, skipped int) {
	for _, r := range rules {
		if r.off {
			continue
		}
		t := 1
		if len(r.conds) > 0 {
			t = refAll(r.conds, attrs)
		}
		if dated := r.from != 0 || r.until != 0; dated && t != 0 {
			switch {
			case now == 0:
				t = -1
			case now < r.from || r.until != 0 && now >= r.until:
				t = 0
			}
		}
		switch {
		case t < 0:
			skipped++
		case t == 1 && r.tags != nil:
			for _, tag := range r.tags {
				if !slices.Contains(tags, tag) {
					tags = append(tags, tag)
				}
			}
		case t == 1:
			return r.id, r.action, tags, skipped
		}
	}
	return "", "else", tags, skipped
}

var refTexts = []string{"", "a", "ab", "abc", "b", "bc", "cab"}

func randomCond(r *rand.Rand, depth int) refCond {
	switch k := r.IntN(10); {
	case depth > 0 && k == 0:
		return refCond{All: randomConds(r, depth-1)}
	case depth > 0 && k == 1:
		return refCond{Any: randomConds(r, depth-1)}
	case depth > 0 && k == 2:
		c := randomCond(r, depth-1)
		return refCond{Not: &c}
	case k == 3:
		return refCond{Field: []string{"path", "headers.h", "metrics.m"}[r.IntN(3)], Op: "exists", Value: r.IntN(2) == 0}
	case k == 4:
		return refCond{Compute: [2]string{"metrics.m", "metrics.n"}, Op: "gt", Value: float64(r.IntN(3)) - 0.5}
	case k == 5:
		return refCond{Field: "metrics.m", Op: []string{"gt", "le"}[r.IntN(2)], Value: float64(r.IntN(3)) + 0.25}
	case k == 6:
		return refCond{Field: "headers.h", Op: "in", Value: []string{refTexts[r.IntN(7)], refTexts[r.IntN(7)]}}
	}
	op := []string{"eq", "ne", "contains", "contains", "prefix", "suffix"}[r.IntN(6)]
	return refCond{Field: []string{"path", "headers.h", "query.q"}[r.IntN(3)], Op: op, Value: refTexts[r.IntN(7)]}
}

func randomConds(r *rand.Rand, depth int) []refCond {
	out := make([]refCond, 1+r.IntN(3))
	for i := range out {
		out[i] = randomCond(r, depth)
	}
	return out
}

func randomRules(r *rand.Rand, n int) []refRule {
	out := make([]refRule, n)
	for i := range out {
		x := &out[i]
		x.id, x.action = fmt.Sprintf("r%d", i), fmt.Sprintf("a%d", i%5)
		for len(x.conds) < 2 { // short lists match so often that no later rule is reached
			x.conds = append(x.conds, randomConds(r, 2)...)
		}
		x.off = r.IntN(20) == 0
		if r.IntN(8) == 0 {
			x.tags = []string{fmt.Sprintf("t%d", r.IntN(4)), fmt.Sprintf("t%d", r.IntN(4)+4)}
		}
		if r.IntN(10) == 0 {
			x.from = 1e9 + int64(r.IntN(100))
			x.until = x.from + 1 + int64(r.IntN(50))
		}
	}
	return out
}

func refFile(t testing.TB, rules []refRule) []byte {
	t.Helper()
	var list []map[string]any
	for _, r := range rules {
		m := map[string]any{"id": r.id, "conditions": r.conds, "enabled": !r.off}
		if r.tags != nil {
			m["terminal"], m["tags"] = false, r.tags
		} else {
			m["action"] = r.action
		}
		if r.from != 0 {
			m["active"] = map[string]any{"from": time.Unix(r.from, 0).UTC(), "until": time.Unix(r.until, 0).UTC()}
		}
		list = append(list, m)
	}
	data, err := json.Marshal(map[string]any{"version": "1", "rules": list, "fallback": "else"})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func randomAttrs(r *rand.Rand) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"path", "headers.h", "query.q"} {
		if r.IntN(8) > 0 {
			out[name] = refTexts[r.IntN(7)] + refTexts[r.IntN(7)]
		}
	}
	for _, name := range []string{"metrics.m", "metrics.n"} {
		switch k := r.IntN(12); {
		case k == 0:
			out[name] = math.NaN()
		case k > 1:
			out[name] = float64(r.IntN(4))
		}
	}
	return out
}

// The engine, with its index and without, answers as the naive evaluator does: action,
// rule, tags and the number of rules that could not be evaluated.
func TestAnswersAreThoseOfTheReference(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	inputs, matched := 0, 0
	for _, n := range []int{2, 5, 11, 30, 100, 1000} {
		for range 4 {
			spec := randomRules(r, n)
			e, err := Compile("r.json", refFile(t, spec), nil)
			if err != nil {
				t.Fatal(err)
			}
			if p := e.program.Load(); (p.index != nil) != (len(p.rules) >= 12) {
				t.Fatalf("%d rules, indexed: %v", len(p.rules), p.index != nil)
			}
			for range 500 {
				attrs, now := randomAttrs(r), []int64{0, 1e9 + int64(r.IntN(150))}[r.IntN(2)]
				if checkReference(t, e, spec, attrs, now) {
					matched++
				}
				inputs++
			}
		}
	}
	if inputs < 10_000 || matched < inputs/4 {
		t.Errorf("%d inputs, %d of them matched a rule", inputs, matched)
	}
}

func checkReference(t *testing.T, e *Engine, spec []refRule, attrs map[string]any, now int64) (matched bool) {
	t.Helper()
	req := request(t, attrs)
	if now != 0 {
		req.Now = time.Unix(now, 0)
	}
	var out decision.Response
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	rule, action, tags, skipped := refDecide(spec, attrs, now)
	params := ""
	if tags != nil {
		text, _ := json.Marshal(map[string]any{"tags": tags})
		params = string(text)
	}
	d := out.Decisions[0]
	if d.Reason.Rule != rule || d.Action != action || d.Params != params || int(d.Reason.Skipped) != skipped {
		t.Fatalf("%v at %d: got %s by %q with %s, %d skipped; want %s by %q with %s, %d skipped\n%s", attrs, now,
			d.Action, d.Reason.Rule, d.Params, d.Reason.Skipped, action, rule, params, skipped, refFile(t, spec))
	}
	x, err := e.Explain(context.Background(), req)
	if err != nil || x.Reason != d.Reason || len(x.Skipped) != skipped || !slices.Equal(x.Tags, tags) {
		t.Fatalf("%v: explained as %+v, decided as %+v: %v", attrs, x, d, err)
	}
	return rule != ""
}
