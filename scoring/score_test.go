package scoring

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func idOf(n uint64) (id decision.ID) {
	binary.BigEndian.PutUint64(id[8:], n+1)
	return id
}

// outcome is an answered outcome of row n: its own request and cluster.
func outcome(lane string, n int, action string) *snapshot.Outcome {
	return &snapshot.Outcome{
		Ref: snapshot.Ref{Segment: "s", Row: int64(n)}, ID: idOf(uint64(n)), RequestID: idOf(uint64(n)),
		Scenario: "s1", KeepProb: 1, Backend: lane, Status: decision.OK, Action: action,
		Latency: decision.Some(time.Millisecond),
	}
}

func label(n int, action string) *snapshot.Label {
	return &snapshot.Label{Ref: snapshot.Ref{Segment: "s", Row: int64(n)}, ID: idOf(uint64(n)), Action: action}
}

func rowsOf(rows []*Row) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func preset(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// one makes a run of a single lane "x"; change may spoil a row.
func one(n int, change func(i int, r *Row, o *snapshot.Outcome)) Input {
	var rows []*Row
	for i := range n {
		o := outcome("x", i, "allow")
		r := &Row{Label: label(i, "allow"), Outcomes: []*snapshot.Outcome{o}}
		change(i, r, o)
		rows = append(rows, r)
	}
	return Input{Lanes: []Lane{{"x", "rules"}}, Rows: rowsOf(rows), Dataset: DatasetInfo{Intact: true}}
}

func mustScore(t testing.TB, in Input, p *Profile) *Scorecard {
	t.Helper()
	card, err := Score(in, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := Recompute(card); err != nil {
		t.Errorf("the scorecard does not add up: %v", err)
	}
	return card
}

func scoreOne(t testing.TB, in Input, p *Profile) (BackendScore, *Scorecard) {
	t.Helper()
	card := mustScore(t, in, p)
	return card.Backends[0], card
}

func is(t *testing.T, what string, got Number, want float64) {
	t.Helper()
	if math.IsNaN(float64(got)) || math.Abs(float64(got)-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func isNA(t *testing.T, what string, e Estimate, why string) {
	t.Helper()
	if !math.IsNaN(float64(e.Value)) || !math.IsNaN(float64(e.Lo)) || !strings.Contains(e.NA, why) || e.NA == "" {
		t.Errorf("%s is %v with reason %q, want NA: %s", what, e.Value, e.NA, why)
	}
}

// 10 rows, 7 allow and 3 block; the backend gets 9 right: U = .9, U_base = .7.
func TestAccuracyByHand(t *testing.T) {
	in := one(10, func(i int, r *Row, o *snapshot.Outcome) {
		if i < 3 {
			r.Label.Action, o.Action = "block", "block"
		}
		if i == 2 {
			o.Action = "allow"
		}
	})
	b, _ := scoreOne(t, in, preset(t, "default"))
	s := b.Scenarios["s1"]
	is(t, "U", s.Categories.Accuracy.term("U").Value, 0.9)
	is(t, "U_base", s.BaseUtility, 0.7)
	is(t, "U_top", s.TopUtility, 1)
	is(t, "accuracy", b.Categories.Accuracy.Value, 100*(0.9-0.7)/(1-0.7))
	is(t, "action accuracy", s.ActionAccuracy.Value, 0.9)
	is(t, "majority", s.Majority, 0.7)
	if s.MajorityAction != "allow" || b.Categories.Accuracy.NoInterval != tooFewClusters {
		t.Errorf("majority %q, interval: %q", s.MajorityAction, b.Categories.Accuracy.NoInterval)
	}
	want := []Confusion{{"allow", "allow", 7}, {"block", "allow", 1}, {"block", "block", 2}}
	if len(s.Confusion) != 3 || s.Confusion[1] != want[1] || s.Confusion[2] != want[2] || s.Confusion[0] != want[0] {
		t.Errorf("confusion is %v, want %v", s.Confusion, want)
	}
}

func TestBrierBonusByHand(t *testing.T) {
	in := one(10, func(i int, r *Row, o *snapshot.Outcome) {
		if i < 5 {
			r.Label.Action = "block"
		}
		if i < 4 {
			o.Action = "block"
		}
		p := 0.8 // for the action chosen
		o.Candidates = []decision.Candidate{
			{Action: "allow", Probability: decision.Some(p)}, {Action: "block", Probability: decision.Some(1 - p)},
		}
		if o.Action == "block" {
			o.Candidates[0].Action, o.Candidates[1].Action = "block", "allow"
		}
	})
	b, _ := scoreOne(t, in, preset(t, "default"))
	acc := b.Scenarios["s1"].Categories.Accuracy
	// 9 right: Brier 2*0.04; 1 wrong: 2*0.64; base rates 1/2: 0.5.
	skill := 1 - (9*0.08+1.28)/10/0.5
	is(t, "skill", acc.term(termSkill).Value, skill)
	is(t, "accuracy", acc.Value, 80+0.15*skill*20)

	// One candidate without a probability: no bonus, and the reason.
	in = one(10, func(i int, r *Row, o *snapshot.Outcome) {
		if i < 5 {
			r.Label.Action = "block"
		}
		if i > 0 {
			o.Candidates = []decision.Candidate{{Action: "allow", Probability: decision.Some(1.0)}}
		}
	})
	b, _ = scoreOne(t, in, preset(t, "default"))
	acc = b.Scenarios["s1"].Categories.Accuracy
	isNA(t, "skill", acc.term(termSkill).Estimate, "a part of the answers only")
}

func TestBonusNeverLowersAndHonestyPays(t *testing.T) {
	for dec := 0.0; dec <= 100; dec += 12.5 {
		for _, bss := range []float64{-3, 0, 0.5, 1} {
			if a := accuracyScore(dec, bss); a < dec || a > 100 {
				t.Errorf("A_dec %v with skill %v gives %v", dec, bss, a)
			}
		}
	}
	// The expected half Brier score under truth probability q is least at p = q.
	const q = 0.3
	best, at := math.Inf(1), 0.0
	for p := 0.0; p <= 1; p += 0.01 {
		o := &snapshot.Outcome{Candidates: []decision.Candidate{
			{Action: "a", Probability: decision.Some(p)}, {Action: "b", Probability: decision.Some(1 - p)},
		}}
		a, okA := halfBrier(o, "a", nil)
		b, okB := halfBrier(o, "b", nil)
		if !okA || !okB {
			t.Fatalf("no forecast at %v", p)
		}
		if e := q*float64(a) + (1-q)*float64(b); e < best {
			best, at = e, p
		}
	}
	if math.Abs(at-q) > 0.011 {
		t.Errorf("the best forecast of %v is %v", q, at)
	}
}

func TestForecastsThatAreNone(t *testing.T) {
	p := decision.Some[float64]
	for name, cs := range map[string][]decision.Candidate{
		"none":              nil,
		"one missing":       {{Action: "a", Probability: p(1)}, {Action: "b"}},
		"sum is not 1":      {{Action: "a", Probability: p(0.5)}, {Action: "b", Probability: p(0.4)}},
		"above 1":           {{Action: "a", Probability: p(1.5)}, {Action: "b", Probability: p(-0.5)}},
		"NaN":               {{Action: "a", Probability: p(math.NaN())}, {Action: "b", Probability: p(1)}},
		"candidate missing": {{Action: "a", Probability: p(1)}},
	} {
		if _, ok := halfBrier(&snapshot.Outcome{Candidates: cs}, "a", []string{"a", "b"}); ok {
			t.Errorf("%s: taken for a forecast", name)
		}
	}
	// A right action that was not among the candidates had probability 0.
	got, ok := halfBrier(&snapshot.Outcome{Candidates: []decision.Candidate{{Action: "a", Probability: p(1)}}}, "z", nil)
	if !ok || got != 1<<utilityBits {
		t.Errorf("half Brier is %v, want 1", math.Ldexp(float64(got), -utilityBits))
	}
}

// Always-allow on a 97 %-allow data set scores 0 and is not eligible.
func TestBestConstantScoresZero(t *testing.T) {
	in := one(400, func(i int, r *Row, _ *snapshot.Outcome) {
		if i%100 < 3 {
			r.Label.Action = "block"
		}
	})
	b, _ := scoreOne(t, in, preset(t, "default"))
	is(t, "action accuracy", b.ActionAccuracy.Value, 0.97)
	is(t, "accuracy", b.Categories.Accuracy.Value, 0)
	if b.Eligible || !strings.Contains(strings.Join(b.Ineligible, "; "), "accuracy") {
		t.Errorf("eligible %v: %q", b.Eligible, b.Ineligible)
	}
}

// The oracle of a utility matrix scores 100, its best constant 0.
func TestMatrixEnds(t *testing.T) {
	p := preset(t, "default")
	task := NewTask()
	task.Utility = map[string]map[string]float64{
		"fraud": {"approve": 0, "review": 0.7, "block": 0.9}, "good": {"approve": 0.95, "review": 0.8, "block": 0.3},
	}
	p.Tasks["s1"] = task
	for action, want := range map[string]float64{"oracle": 100, "review": 0, "approve": 0} {
		in := one(40, func(i int, r *Row, o *snapshot.Outcome) {
			best := "approve"
			r.Label.Action = "good"
			if i%4 == 0 {
				r.Label.Action, best = "fraud", "block"
			}
			if o.Action = action; action == "oracle" {
				o.Action = best
			}
		})
		b, _ := scoreOne(t, in, p)
		s := b.Scenarios["s1"]
		// review: .25*.7+.75*.8 = .775; approve: .7125; oracle: .25*.9+.75*.95 = .9375.
		is(t, "U_base", s.BaseUtility, 0.775)
		is(t, "U_top", s.TopUtility, 0.9375)
		is(t, action, b.Categories.Accuracy.Value, want)
	}
}

func TestUnansweredGetsTheWorst(t *testing.T) {
	worst := 0.25
	for _, tc := range []struct {
		status     decision.Status
		unanswered *float64
		abstain    bool // the matrix knows abstention
		want       float64
	}{
		{decision.Timeout, nil, false, 0}, {decision.Timeout, &worst, false, 0.25}, {decision.Error, &worst, true, 0.25},
		{decision.NotReplayable, &worst, false, 0.25}, {decision.Abstain, &worst, false, 0.25}, {decision.Abstain, &worst, true, 0.6},
		{decision.Denied, &worst, false, 0.25},
	} {
		p := preset(t, "default")
		task := NewTask()
		task.Utility = map[string]map[string]float64{"allow": {"allow": 1, "block": 0.3}, "block": {"allow": 0.3, "block": 1}}
		task.Unanswered = tc.unanswered
		if tc.abstain {
			task.Utility["allow"]["abstain"] = 0.6
		}
		p.Tasks["s1"] = task
		in := one(10, func(i int, r *Row, o *snapshot.Outcome) {
			if i%2 == 0 {
				o.Status, o.Action = tc.status, ""
				return
			}
			r.Label.Action = "block"
		})
		b, _ := scoreOne(t, in, p)
		acc := b.Scenarios["s1"].Categories.Accuracy
		is(t, tc.status.String(), acc.term("U").Value, (tc.want+0.3)/2)
	}
}

func TestParametersThatTheMatrixNames(t *testing.T) {
	p := preset(t, "default")
	task := NewTask()
	task.Candidates = []string{"route", "drop"}
	task.Utility = map[string]map[string]float64{
		"eu": {"route{upstream=eu}": 1, "route{upstream=us}": 0.4, "route": 0.1, "drop": 0},
		"us": {"route{upstream=us}": 1, "route": 0.2, "drop": 0},
	}
	p.Tasks["s1"] = task
	params := []string{`{"upstream":"eu"}`, `{"upstream":"us","ttl":5}`, `{"upstream":"asia"}`, `{`, ""}
	truths := []string{"eu", "eu", "eu", "eu", "us"}
	want := []float64{1, 0.4, 0.1, 0.1, 0.2}
	c := newTask("s1", task)
	for i := range params {
		o := &snapshot.Outcome{Status: decision.OK, Action: "route", Params: params[i]}
		if got := math.Ldexp(float64(c.value(label(0, truths[i]), c.choice(o))), -utilityBits); math.Abs(got-want[i]) > 1e-12 {
			t.Errorf("route with %s under %s is worth %v, want %v", params[i], truths[i], got, want[i])
		}
	}
	// Under "us" the matrix does not tell eu apart from any other route.
	o := &snapshot.Outcome{Status: decision.OK, Action: "route", Params: params[0]}
	if got := math.Ldexp(float64(c.value(label(0, "us"), c.choice(o))), -utilityBits); math.Abs(got-0.2) > 1e-12 {
		t.Errorf("route to eu under us is worth %v, want 0.2", got)
	}
}

func TestAccuracyRefusals(t *testing.T) {
	matrix := NewTask()
	matrix.Utility = map[string]map[string]float64{"x": {"allow": 1}}
	for _, tc := range []struct {
		name, why string
		task      Task
		change    func(i int, r *Row, o *snapshot.Outcome)
	}{
		{"no labels", "no labels", NewTask(), func(_ int, r *Row, _ *snapshot.Outcome) { r.Label = nil }},
		{"no signal", "no decision signal", NewTask(), func(int, *Row, *snapshot.Outcome) {}},
		{"rewards only", "reward of the recorded action only", NewTask(), func(_ int, r *Row, _ *snapshot.Outcome) {
			r.Label.Action, r.Label.Reward = "", decision.Some(0.5)
		}},
		{"foreign truth", "knows none of the labels", matrix, func(int, *Row, *snapshot.Outcome) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := preset(t, "default")
			p.Tasks["s1"] = tc.task
			b, _ := scoreOne(t, one(30, tc.change), p)
			isNA(t, "accuracy", b.Categories.Accuracy.Estimate, tc.why)
			isNA(t, "total", b.Total, "accuracy: ")
			isNA(t, "total", b.Total, "cost: no price book")
			if b.Eligible || !math.IsNaN(float64(b.Geometric)) {
				t.Errorf("eligible %v, geometric %v", b.Eligible, b.Geometric)
			}
			if math.IsNaN(float64(b.Categories.Latency.Value)) {
				t.Error("latency is gone too")
			}
		})
	}
}

func TestFrozenAnchorsWin(t *testing.T) {
	p := preset(t, "default")
	task := NewTask()
	task.Baseline, task.BaselineAction, task.Top, task.Majority, task.Ceiling = 0.5, "block", 0.95, 0.55, 0.96
	p.Tasks["s1"] = task
	b, _ := scoreOne(t, one(10, func(i int, r *Row, _ *snapshot.Outcome) {
		if i < 2 {
			r.Label.Action = "block"
		}
	}), p)
	s := b.Scenarios["s1"]
	is(t, "accuracy", b.Categories.Accuracy.Value, 100*(0.8-0.5)/(0.95-0.5))
	is(t, "majority", s.Majority, 0.55)
	is(t, "ceiling", s.Ceiling, 0.96)
	// A Task made without NewTask says 0 where nothing is known.
	p.Tasks["s1"] = Task{}
	b, _ = scoreOne(t, one(10, func(i int, r *Row, _ *snapshot.Outcome) {
		if i < 2 {
			r.Label.Action = "block"
		}
	}), p)
	is(t, "U_base", b.Scenarios["s1"].BaseUtility, 0.8)
}

func TestScoreRefusesBadInput(t *testing.T) {
	good := one(3, func(int, *Row, *snapshot.Outcome) {})
	spoil := func(f func(o *snapshot.Outcome)) Input {
		return one(3, func(_ int, _ *Row, o *snapshot.Outcome) { f(o) })
	}
	badProfile := preset(t, "default")
	badProfile.Weights.Accuracy = 0.5
	failing := good
	failing.Rows = func(yield func(*Row, error) bool) { yield(nil, errors.New("disk gone")) }
	foreign := good
	foreign.Audit = outcomes([]*snapshot.Outcome{outcome("y", 1, "a")})
	twice := good
	twice.Lanes = []Lane{{"x", "a"}, {"x", "b"}}
	short := good
	short.Lanes = []Lane{{"x", "a"}, {"y", "b"}}
	for _, tc := range []struct {
		name string
		in   Input
		p    *Profile
		is   error
		want string
	}{
		{"empty", one(0, nil), preset(t, "default"), ErrEmpty, "no decisions"},
		{"no lanes", Input{}, preset(t, "default"), ErrInput, "no lanes"},
		{"no rows", Input{Lanes: []Lane{{"x", ""}}}, preset(t, "default"), ErrInput, "no rows"},
		{"lane twice", twice, preset(t, "default"), ErrInput, "stands twice"},
		{"lanes and outcomes", short, preset(t, "default"), ErrInput, "1 outcomes for 2 lanes"},
		{"no profile", good, nil, ErrInput, "no profile"},
		{"weights", good, badProfile, ErrInput, "weights sum to 1.1"},
		{"rows fail", failing, preset(t, "default"), nil, "disk gone"},
		{"keep_prob 0", spoil(func(o *snapshot.Outcome) { o.KeepProb = 0 }), preset(t, "default"), ErrRow, "s row 0, backend x: row cannot be scored: keep_prob 0"},
		{"keep_prob tiny", spoil(func(o *snapshot.Outcome) { o.KeepProb = 1e-9 }), preset(t, "default"), ErrRow, "below 2^-24"},
		{"status", spoil(func(o *snapshot.Outcome) { o.Status = 0 }), preset(t, "default"), ErrRow, "status none"},
		{"scenario", spoil(func(o *snapshot.Outcome) { o.Scenario = "" }), preset(t, "default"), ErrRow, "no scenario"},
		{"phase", spoil(func(o *snapshot.Outcome) { o.Phase = snapshot.PhaseAudit }), preset(t, "default"), ErrRow, "phase audit"},
		{"foreign outcome", spoil(func(o *snapshot.Outcome) { o.Backend = "y" }), preset(t, "default"), ErrRow, `s row 0: row cannot be scored: an outcome of backend "y" in lane "x"`},
		{"foreign audit", foreign, preset(t, "default"), ErrRow, `backend "y" is not a lane`},
	} {
		_, err := Score(tc.in, tc.p)
		if err == nil || !strings.Contains(err.Error(), tc.want) || (tc.is != nil && !errors.Is(err, tc.is)) {
			t.Errorf("%s: error is %v, want %s", tc.name, err, tc.want)
		}
	}
}

func TestTooManyScenarios(t *testing.T) {
	in := one(maxScenarios+1, func(i int, _ *Row, o *snapshot.Outcome) { o.Scenario = string(rune(0x4e00 + i)) })
	if _, err := Collect(in, preset(t, "default")); !errors.Is(err, ErrRow) {
		t.Errorf("error is %v", err)
	}
}
