package scoring

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/snapshot"
)

func pairOf(t *testing.T, card *Scorecard, measure, scenario string) Pair {
	t.Helper()
	for _, p := range card.Pairs {
		if p.Measure == measure && p.Scenario == scenario {
			return p
		}
	}
	t.Fatalf("no pair of %s in %q", measure, scenario)
	return Pair{}
}

// A pair of a run is the pair of the same run without the rows that one of the two
// could not replay: the subtraction of left rows is exact.
func TestPairUsesWhatBothCanReplay(t *testing.T) {
	for _, requests := range []int{60, 500} {
		w := newWorld(t, 11)
		rows := w.rows(requests)
		audit := auditOf(rows, 40)
		lanes := w.lanes[:2]
		var all, common []*Row
		left := int64(0)
		for i, r := range rows {
			two := &Row{Label: r.Label, Outcomes: r.Outcomes[:2]}
			// A lane that cannot replay answers no row of the request.
			if q := r.Outcomes[0].RequestID; q[15]%7 == 0 {
				o := *r.Outcomes[1]
				o.Status, o.Action, o.Candidates = decision.NotReplayable, "", nil
				two.Outcomes = []*snapshot.Outcome{r.Outcomes[0], &o}
			}
			for k, o := range two.Outcomes {
				if o.Status == decision.NotReplayable && o.RequestID[15]%7 != 0 {
					o := *o
					o.Status = decision.Error // here only whole requests are left out
					two.Outcomes[k] = &o
				}
			}
			all = append(all, two)
			if two.Outcomes[0].Status == decision.NotReplayable || two.Outcomes[1].Status == decision.NotReplayable {
				left++
			} else {
				common = append(common, all[i])
			}
		}
		if left == 0 || len(common) == 0 {
			t.Fatal("the rows do not test anything")
		}
		in := Input{Lanes: lanes, Rows: rowsOf(all), Audit: outcomes(keep(audit, "third"))}
		full := mustScore(t, in, w.profile)
		in.Rows = rowsOf(common)
		cut := mustScore(t, in, w.profile)
		for i, p := range full.Pairs {
			q := cut.Pairs[i]
			if p.Scenario == "" && p.Left != left {
				t.Errorf("%d rows are left out, want %d", p.Left, left)
			}
			p.Left = 0
			// Only where both have too many clusters to be groups are the groups the same.
			if requests > 200 && p.Scenario == "" && asJSON(t, p) != asJSON(t, q) {
				t.Errorf("of the run  %s\nof the rest %s", asJSON(t, p), asJSON(t, q))
			}
			if p.Diff != q.Diff && !math.IsNaN(float64(p.Diff)) {
				t.Errorf("difference %v, without the rows left out %v", p.Diff, q.Diff)
			}
		}
	}
}

// keep drops the audit rows of a lane.
func keep(os []*snapshot.Outcome, not string) []*snapshot.Outcome {
	var out []*snapshot.Outcome
	for _, o := range os {
		if o.Backend != not {
			out = append(out, o)
		}
	}
	return out
}

// 300 rows: both right on 250, only the base on 10, only the new on 25, neither on 15.
func TestPairByHand(t *testing.T) {
	var rows []*Row
	for i := range 300 {
		truth, other := "allow", "block"
		if i%2 == 0 {
			truth, other = other, truth
		}
		base, next := truth, truth
		switch {
		case i < 10:
			next = other
		case i < 35:
			base = other
		case i < 50:
			base, next = other, other
		}
		rows = append(rows, &Row{Label: label(i, truth), Outcomes: []*snapshot.Outcome{outcome("a", i, base), outcome("b", i, next)}})
	}
	in := Input{Lanes: []Lane{{"a", "rules"}, {"b", "rules"}}, Rows: rowsOf(rows), Dataset: DatasetInfo{Intact: true}}
	p := pairOf(t, mustScore(t, in, preset(t, "default")), MeasureUtility, "")
	is(t, "difference", p.Diff, 15.0/300)
	is(t, "p", p.P, stats.McNemar(10, 25))
	if p.N != 300 || p.Left != 0 || p.OnlyBase != 10 || p.OnlyNew != 25 || p.Verdict != VerdictBetter {
		t.Errorf("%+v", p)
	}
	// The standard error of a mean of 300 differences in {-1, 0, 1}.
	d := 15.0 / 300
	se := math.Sqrt((35.0/300 - d*d) / 299)
	if got := float64(p.MDE); math.Abs(got-2.8*se) > 0.1*2.8*se {
		t.Errorf("detectable effect is %v, want about %v", got, 2.8*se)
	}
	if lo := float64(p.Lo); math.Abs(lo-(d-1.96*se)) > 0.006 {
		t.Errorf("lower bound %v, want about %v", lo, d-1.96*se)
	}
}

// McNemar's test counts rows: it does not hold for clusters, weights or graded utility.
func TestMcNemarOnlyWhereItHolds(t *testing.T) {
	build := func(change func(o *snapshot.Outcome, l *snapshot.Label, i int)) Pair {
		in, rows := mixed(3, 300, 0.8, 0.9)
		for i, r := range rows {
			for _, o := range r.Outcomes {
				change(o, r.Label, i)
			}
		}
		in.Audit = nil
		return pairOf(t, mustScore(t, in, preset(t, "default")), MeasureUtility, "")
	}
	plain := build(func(*snapshot.Outcome, *snapshot.Label, int) {})
	is(t, "plain p", plain.P, stats.McNemar(plain.OnlyBase, plain.OnlyNew))
	for name, change := range map[string]func(o *snapshot.Outcome, l *snapshot.Label, i int){
		"clusters": func(o *snapshot.Outcome, _ *snapshot.Label, i int) { o.Entity = decision.Some([8]byte{byte(i % 60)}) },
		"weights":  func(o *snapshot.Outcome, _ *snapshot.Label, _ int) { o.KeepProb = 0.5 },
		"graded": func(_ *snapshot.Outcome, l *snapshot.Label, _ int) {
			l.Utilities = []snapshot.ActionUtility{{Action: "allow", Utility: 0.5}, {Action: "block", Utility: 0.5}}
			l.Utilities[len(l.Action)%2].Utility = 0.9
		},
	} {
		p := build(change)
		if math.IsNaN(float64(p.P)) || float64(p.P) == stats.McNemar(p.OnlyBase, p.OnlyNew) {
			t.Errorf("%s: p is %v, McNemar's is %v", name, p.P, stats.McNemar(p.OnlyBase, p.OnlyNew))
		}
	}
}

func TestIdenticalBackends(t *testing.T) {
	in, rows := mixed(4, 300, 0.9, 0.9)
	for _, r := range rows {
		o := *r.Outcomes[0]
		o.Backend = "lane1"
		r.Outcomes[1] = &o
	}
	card := mustScore(t, in, priced(t))
	u, total := pairOf(t, card, MeasureUtility, ""), pairOf(t, card, MeasureTotal, "")
	for _, p := range []Pair{u, total} {
		if p.Diff != 0 || p.Lo != 0 || p.Hi != 0 || p.P != 1 || p.Verdict != VerdictNoDifference {
			t.Errorf("%+v", p)
		}
	}
	// No discordant pair in 300: what six of one side would have shown.
	is(t, "detectable effect", u.MDE, bestCase80/300)
	if !math.IsNaN(float64(total.MDE)) {
		t.Errorf("detectable effect of the total: %v", total.MDE)
	}
	if len(card.Ties) != 1 || len(card.Ties[0]) != 2 {
		t.Errorf("ties %v", card.Ties)
	}
}

// The Poisson law with mean bestCase80 reaches six with 80 %.
func TestBestCase(t *testing.T) {
	below, term := 0.0, math.Exp(-bestCase80)
	for k := 1.0; k <= 6; k++ {
		below += term
		term *= bestCase80 / k
	}
	if math.Abs(1-below-0.80) > 1e-4 {
		t.Errorf("P(X >= 6) = %v", 1-below)
	}
}

func TestTies(t *testing.T) {
	card := &Scorecard{}
	na := Estimate{Value: Number(math.NaN()), NA: "x"}
	for name, v := range map[string]float64{"a": 90, "b": 89, "c": 80, "d": 79, "e": 10} {
		card.Backends = append(card.Backends, BackendScore{Name: name, Result: Result{Total: Estimate{Value: Number(v)}}})
	}
	card.Backends = append(card.Backends, BackendScore{Name: "gone", Result: Result{Total: na}})
	slices.SortFunc(card.Backends, func(x, y BackendScore) int { return -cmpString(x.Name, y.Name) })
	for _, v := range [][3]string{
		{"b", "a", VerdictNoDifference}, {"c", "a", VerdictWorse}, {"a", "d", VerdictNotComparable}, {"e", "a", VerdictWorse},
		{"c", "e", VerdictBetter}, {"b", "c", VerdictNoDifference},
	} {
		card.Pairs = append(card.Pairs, Pair{Base: v[0], New: v[1], Measure: MeasureTotal, Verdict: v[2]},
			Pair{Base: v[0], New: v[1], Measure: MeasureUtility, Verdict: VerdictBetter})
	}
	// d cannot be compared with the leader, so it cannot be told apart; c ties with b, but
	// a set is what ties with its leader.
	if got := fmt.Sprint(ties(card)); got != "[[a b d] [c] [e]]" {
		t.Errorf("ties are %s", got)
	}
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestBetterBackendLeads(t *testing.T) {
	in, _ := mixed(6, 400, 0.7, 0.95, 0.94)
	card := mustScore(t, in, priced(t))
	if got := fmt.Sprint(card.Ties); got != "[[lane1 lane2] [lane0]]" && got != "[[lane2 lane1] [lane0]]" {
		t.Errorf("ties are %s", got)
	}
	if p := pairOf(t, card, MeasureTotal, ""); p.Base != "lane0" || p.New != "lane1" || p.Verdict != VerdictBetter || !(p.P < 0.001) {
		t.Errorf("%+v", p)
	}
	if len(card.Pairs) != 6 {
		t.Errorf("%d pairs", len(card.Pairs))
	}
}

// The interval of a total is not the sum of its categories' intervals: it comes from
// joint draws, and is narrower.
func TestTotalIsResampledJointly(t *testing.T) {
	in, _ := mixed(7, 400, 0.8)
	b := mustScore(t, in, priced(t)).Backends[0]
	w := preset(t, "default").Weights.list()
	_, cats := b.Categories.list()
	added := 0.0
	for i, c := range cats {
		added += w[i] * float64(c.Hi-c.Lo)
	}
	if width := float64(b.Total.Hi - b.Total.Lo); !(width > 0 && width < added) {
		t.Errorf("the interval of the total is %v wide, the four together %v", width, added)
	}
}

// A total has no interval where one of its weighted categories has none, and a pair of
// totals no verdict: 12 labels say little, however many latencies there are.
func TestTotalRestsOnItsWeakestCategory(t *testing.T) {
	for _, tc := range []struct {
		labels  int
		weights Weights
		has     bool
	}{
		{12, Weights{Accuracy: 0.6, Latency: 0.4}, false},
		{60, Weights{Accuracy: 0.6, Latency: 0.4}, true},
		{12, Weights{Latency: 1}, true},
	} {
		in, rows := mixed(8, 1000, 0.7, 0.9)
		for i, r := range rows {
			if i >= tc.labels {
				r.Label = nil
			}
		}
		p := preset(t, "default")
		task := NewTask()
		task.Baseline, task.Top = 0.3, 1
		p.Tasks["s1"], p.Weights = task, tc.weights
		card := mustScore(t, in, p)
		b, pair := card.Backends[0], pairOf(t, card, MeasureTotal, "")
		if acc := b.Categories.Accuracy; (acc.NoInterval == "") != (tc.labels >= stats.MinGroups) {
			t.Fatalf("%d labels: accuracy %+v", tc.labels, acc.Estimate)
		}
		if (b.Total.NoInterval == "") != tc.has || (pair.Verdict != VerdictNotComparable) != tc.has {
			t.Errorf("%d labels, weights %+v: total %+v, pair %+v", tc.labels, tc.weights, b.Total, pair)
		}
		if tc.has != (len(card.Ties) == 2) && tc.weights.Accuracy > 0 {
			t.Errorf("%d labels: ties %v", tc.labels, card.Ties)
		}
	}
}

// discordant makes n decisions of which b are right by the base only, and c by the new
// one only; of the others a tenth is wrong by both.
func discordant(n, b, c int) Input {
	var rows []*Row
	for i := range n {
		truth, wrong := "allow", "block"
		if i%2 == 0 {
			truth, wrong = wrong, truth
		}
		base, next := truth, truth
		switch at := i * 7919 % n; { // spread over the rows: n must not be a multiple of 7919
		case at < b:
			next = wrong
		case at < b+c:
			base = wrong
		case i%10 == 7:
			base, next = wrong, wrong
		}
		rows = append(rows, &Row{Label: label(i, truth), Outcomes: []*snapshot.Outcome{outcome("a", i, base), outcome("b", i, next)}})
	}
	return Input{Lanes: []Lane{{"a", "rules"}, {"b", "rules"}}, Rows: rowsOf(rows), Dataset: DatasetInfo{Intact: true}}
}

// agrees checks that interval, p-value and verdict of a pair say the same.
func agrees(t *testing.T, p Pair) {
	t.Helper()
	apart := p.Lo > 0 || p.Hi < 0
	verdict := p.Verdict == VerdictBetter || p.Verdict == VerdictWorse
	if verdict && !(p.P <= 0.05) || verdict && !apart || apart && !verdict || p.Lo > p.Diff || p.Hi < p.Diff {
		t.Errorf("%s: %v [%v, %v], p %v, verdict %q", p.Measure, p.Diff, p.Lo, p.Hi, p.P, p.Verdict)
	}
}

// Few differing decisions: the exact test decides, and the interval says what it says.
func TestPairsWithFewDiscordantDecisions(t *testing.T) {
	for _, tc := range []struct {
		b, c int
		p    float64 // by hand: twice the binomial tail
		want string
	}{
		{1, 0, 1, VerdictNoDifference},
		{4, 0, 2.0 / 16, VerdictNoDifference},
		{5, 0, 2.0 / 32, VerdictNoDifference},
		{0, 5, 2.0 / 32, VerdictNoDifference},
		{6, 0, 2.0 / 64, VerdictWorse},
		{0, 6, 2.0 / 64, VerdictBetter},
		{9, 2, 2.0 * (1 + 11 + 55) / 2048, VerdictNoDifference},
		{10, 2, 2.0 * (1 + 12 + 66) / 4096, VerdictWorse},
		{40, 24, stats.McNemar(40, 24), VerdictNoDifference}, // .0599
		{46, 24, stats.McNemar(46, 24), VerdictWorse},        // .0115
	} {
		for _, seed := range []uint64{0, 1, 2} {
			profile := preset(t, "default")
			profile.Seed = seed
			profile.Weights = Weights{Accuracy: 0.5, Latency: 0.5}
			card := mustScore(t, discordant(2000, tc.b, tc.c), profile)
			p, total := pairOf(t, card, MeasureUtility, ""), pairOf(t, card, MeasureTotal, "")
			is(t, fmt.Sprintf("%d:%d: p", tc.b, tc.c), p.P, tc.p)
			if p.OnlyBase != int64(tc.b) || p.OnlyNew != int64(tc.c) || p.Verdict != tc.want {
				t.Errorf("%d:%d, seed %d: %+v, want %q", tc.b, tc.c, seed, p, tc.want)
			}
			agrees(t, p)
			agrees(t, total)
			if tied := len(card.Ties) == 1; tied != (total.Verdict == VerdictNoDifference) {
				t.Errorf("%d:%d: ties %v, verdict of the totals %q", tc.b, tc.c, card.Ties, total.Verdict)
			}
		}
	}
}

// Over random runs of every sort, no verdict contradicts its p-value or its interval.
func TestVerdictAndPNeverContradict(t *testing.T) {
	if testing.Short() {
		t.Skip("two dozen scorecards")
	}
	verdicts := map[string]int{}
	for seed := range uint64(12) {
		for _, requests := range []int{60, 250} {
			w := newWorld(t, 100+seed)
			rows := w.rows(requests)
			card := mustScore(t, Input{Lanes: w.lanes, Rows: rowsOf(rows), Audit: outcomes(auditOf(rows, 50))}, w.profile)
			for _, p := range card.Pairs {
				if verdicts[p.Verdict]++; p.Verdict != VerdictNotComparable {
					agrees(t, p)
				}
			}
		}
	}
	if verdicts[VerdictNoDifference] == 0 || verdicts[VerdictBetter]+verdicts[VerdictWorse] == 0 {
		t.Errorf("the runs test nothing: %v", verdicts)
	}
}
