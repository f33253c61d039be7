package scoring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// cacheTask is a matrix with a column for a parameter and one for not choosing.
func cacheTask() Task {
	t := NewTask()
	t.Candidates = []string{"cache", "bypass"}
	t.Utility = map[string]map[string]float64{
		"hot":  {"cache": 0.4, "cache{ttl=60}": 1, "bypass": 0, "abstain": 0.8},
		"cold": {"cache": 0.1, "cache{ttl=60}": 0.7, "bypass": 1, "abstain": 0.8},
	}
	return t
}

// A policy that does not look at the decision earns nothing, whatever its constant is: a
// candidate, a candidate with a parameter, to abstain, or to deny; with the anchors of
// the run and with frozen ones.
func TestConstantsEarnNothing(t *testing.T) {
	denying := cacheTask()
	denying.Utility["hot"]["denied"], denying.Utility["cold"]["denied"] = 0.9, 0.9
	abstaining := cacheTask()
	delete(abstaining.Utility["hot"], "cache{ttl=60}")
	delete(abstaining.Utility["cold"], "cache{ttl=60}")
	for name, tc := range map[string]struct {
		task   Task
		choose func(o *snapshot.Outcome)
		base   float64
		action string
	}{
		"parameter": {cacheTask(), func(o *snapshot.Outcome) { o.Action, o.Params = "cache", `{"ttl":60}` }, 0.85, "cache{ttl=60}"},
		"abstain":   {abstaining, func(o *snapshot.Outcome) { o.Status, o.Action = decision.Abstain, "" }, 0.8, "abstain"},
		"denied":    {denying, func(o *snapshot.Outcome) { o.Status, o.Action = decision.Denied, "" }, 0.9, "denied"},
	} {
		for _, frozen := range []bool{false, true} {
			truth := func(i int) string { return []string{"hot", "cold"}[i%2] }
			task := tc.task
			if frozen {
				a := NewAnchors(task)
				for i := range 400 {
					a.Add(label(i, truth(i)), 1)
				}
				task = a.Freeze()
				is(t, name+": frozen base", task.Baseline, tc.base)
			}
			p := preset(t, "default")
			p.Tasks["s1"] = task
			in := one(400, func(i int, r *Row, o *snapshot.Outcome) {
				r.Label.Action = truth(i)
				tc.choose(o)
			})
			b, _ := scoreOne(t, in, p)
			s := b.Scenarios["s1"]
			is(t, name+": U_base", s.BaseUtility, tc.base)
			is(t, fmt.Sprintf("%s: accuracy (frozen %v)", name, frozen), s.Categories.Accuracy.Value, 0)
			if frozen && task.BaselineAction != tc.action {
				t.Errorf("%s: best constant %q, want %q", name, task.BaselineAction, tc.action)
			}
		}
	}
}

// weighed is a label with the probability that its row was kept.
type weighed struct {
	label *snapshot.Label
	keep  float64
}

func anchorRows(r *rand.Rand, actions []string) []weighed {
	var rows []weighed
	for i := range 200 {
		l := label(i, actions[r.IntN(3)])
		switch r.IntN(4) {
		case 0:
			l.Utilities = []snapshot.ActionUtility{{Action: "a", Utility: r.Float64()}, {Action: "c", Utility: r.Float64()}, {Action: "abstain", Utility: r.Float64()}}
		case 1:
			l.Action, l.Reward = "", decision.Some(r.Float64())
		}
		rows = append(rows, weighed{l, 0.1 + 0.9*r.Float64()})
	}
	return rows
}

// bruteChoice is what a constant earns under a label; ok is false where nobody knows.
func bruteChoice(t *Task, l *snapshot.Label, choice string) (u float64, ok bool) {
	if len(l.Utilities) > 0 {
		least := 1.0
		for _, u := range l.Utilities {
			if u.Action == choice {
				return u.Utility, true
			}
			least = min(least, u.Utility)
		}
		return least, true
	}
	row := t.Utility[l.Action]
	switch {
	case l.Action == "" || t.Utility != nil && row == nil:
		return 0, false
	case t.Utility == nil && l.Action == choice:
		return 1, true
	case t.Utility == nil:
		return 0, true
	}
	plain, _, _ := strings.Cut(choice, "{")
	for _, name := range []string{choice, plain} {
		if u, ok := row[name]; ok {
			return u, true
		}
	}
	if t.Unanswered != nil {
		return *t.Unanswered, true
	}
	return 0, true
}

// Anchors against their definition, over labels with utilities, under a matrix and under
// 0/1, with weights, and with labels that say too little.
func TestAnchorsAgainstBruteForce(t *testing.T) {
	worst := 0.1
	rng := rand.New(rand.NewPCG(3, 4))
	actions := []string{"a", "b", "c"}
	for i, tc := range []struct {
		task      Task
		constants []string
	}{
		{Task{}, []string{"a", "abstain", "b", "c"}},
		{Task{Candidates: actions}, []string{"a", "abstain", "b", "c"}},
		{Task{Candidates: actions[:2], Unanswered: &worst, Utility: map[string]map[string]float64{
			"a": {"a": 1, "a{n=1}": 0.5, "b": 0.4, "c": 0.9}, "b": {"b": 0.8, "a": 0.7, "a{n=1}": 0.9},
		}}, []string{"a", "a{n=1}", "abstain", "b"}},
		{Task{Utility: map[string]map[string]float64{
			"a": {"a": 0.9, "b": 0.4, "denied": 0.95}, "c": {"a": 0.3, "c": 1, "denied": 0.2},
		}}, []string{"a", "abstain", "b", "c", "denied"}},
	} {
		rows := anchorRows(rng, actions)
		a := NewAnchors(tc.task)
		for _, r := range rows {
			a.Add(r.label, r.keep)
		}
		got := a.Freeze()
		value, right := map[string]float64{}, map[string]float64{}
		var top, weight, all float64
		for _, r := range rows {
			w := 1 / r.keep
			best, known := 0.0, false
			for _, c := range tc.constants {
				u, ok := bruteChoice(&tc.task, r.label, c)
				value[c] += w * u
				best, known = max(best, u), known || ok
			}
			if !known {
				continue
			}
			top, weight = top+w*best, weight+w
			if r.label.Action != "" {
				right[r.label.Action] += w
				all += w
			}
		}
		close := func(what string, got Number, want float64) {
			t.Helper()
			if !(math.Abs(float64(got)-want) <= 1e-7) { // weights have 28 bits after the point
				t.Errorf("%d: %s %v, want %v", i, what, got, want)
			}
		}
		base, majority := "", 0.0
		for _, c := range tc.constants {
			if base == "" || value[c] > value[base] {
				base = c
			}
		}
		for _, w := range right {
			majority = max(majority, w)
		}
		close("baseline", got.Baseline, value[base]/weight)
		close("top", got.Top, top/weight)
		close("majority", got.Majority, majority/all)
		if got.BaselineAction != base {
			t.Errorf("%d: baseline action %q, want %q", i, got.BaselineAction, base)
		}
	}
}

// What a data set freezes is what a run over the same rows computes, to the last bit.
func TestFrozenAnchorsAreThoseOfTheRun(t *testing.T) {
	p := preset(t, "default")
	p.Tasks["s1"] = cacheTask()
	a := NewAnchors(cacheTask())
	in := one(333, func(i int, r *Row, o *snapshot.Outcome) {
		r.Label.Action, o.KeepProb = []string{"hot", "cold", "cold"}[i%3], 1/(1+float64(i%7)/3)
		o.Action = "bypass"
		a.Add(r.Label, o.KeepProb)
	})
	b, _ := scoreOne(t, in, p)
	s, f := b.Scenarios["s1"], a.Freeze()
	if f.Baseline != s.BaseUtility || f.Top != s.TopUtility || f.Majority != s.Majority {
		t.Errorf("frozen %v %v %v, of the run %v %v %v", f.Baseline, f.Top, f.Majority, s.BaseUtility, s.TopUtility, s.Majority)
	}
	if f := NewAnchors(NewTask()).Freeze(); !math.IsNaN(float64(f.Baseline)) || !math.IsNaN(float64(f.Majority)) {
		t.Errorf("anchors of no labels: %+v", f)
	}
}
