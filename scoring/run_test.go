package scoring

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// priced gives a profile a price for everything.
func priced(t testing.TB) *Profile {
	p := preset(t, "default")
	p.Prices = &PriceBook{Currency: "USD", Prices: []Price{{Backend: "*", Unit: UnitDecision, Price: 1e-6, URL: "u"}}}
	return p
}

// mixed makes rows of lanes with the given accuracies: two actions, random latencies,
// every row a cluster; audit rows that all hold.
func mixed(seed uint64, n int, accuracies ...float64) (Input, []*Row) {
	rng := rand.New(rand.NewPCG(seed, 1))
	in := Input{Dataset: DatasetInfo{Intact: true}}
	for i := range accuracies {
		in.Lanes = append(in.Lanes, Lane{fmt.Sprintf("lane%d", i), "rules"})
	}
	var rows []*Row
	for k := range n {
		truth := pick(rng, "allow", "block")
		r := &Row{Label: label(k, truth)}
		for i, acc := range accuracies {
			action := truth
			if rng.Float64() >= acc {
				action = map[string]string{"allow": "block", "block": "allow"}[truth]
			}
			o := outcome(in.Lanes[i].Name, k, action)
			o.Latency = decision.Some(time.Duration(1e6 * (1 + rng.ExpFloat64())))
			r.Outcomes = append(r.Outcomes, o)
		}
		rows = append(rows, r)
	}
	in.Rows = rowsOf(rows)
	in.Audit = outcomes(auditOf(rows, min(n, 40)))
	return in, rows
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestScoringTwiceGivesTheSameBytes(t *testing.T) {
	in, _ := mixed(1, 300, 0.9, 0.8)
	a, b := mustScore(t, in, priced(t)), mustScore(t, in, priced(t))
	if asJSON(t, a) != asJSON(t, b) {
		t.Error("two scorecards of one input differ")
	}
	if d := Diff(a, b); len(d) != 0 {
		t.Errorf("diff: %q", d)
	}
}

// reorder shuffles whole requests and gives rows new places, as another sharding would.
func reorder(rng *rand.Rand, rows []*Row) [][]*Row {
	var groups [][]*Row
	for i, r := range rows {
		if i > 0 && r.Outcomes[0].RequestID == rows[i-1].Outcomes[0].RequestID {
			groups[len(groups)-1] = append(groups[len(groups)-1], r)
		} else {
			groups = append(groups, []*Row{r})
		}
	}
	rng.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	return groups
}

func TestOrderAndShardsDoNotMatter(t *testing.T) {
	for _, requests := range []int{100, 700} { // clusters as groups, and hashed ones
		w := newWorld(t, 9)
		rows := w.rows(requests)
		in := Input{Lanes: w.lanes, Audit: outcomes(auditOf(rows, 60)), Dataset: DatasetInfo{Intact: true}}
		in.Rows = rowsOf(rows)
		want := asJSON(t, mustScore(t, in, w.profile))
		rng := rand.New(rand.NewPCG(3, 3))
		for _, k := range []int{1, 2, 7} {
			groups := reorder(rng, rows)
			var whole *Collection
			for s := range k {
				part := in
				part.Rows = rowsOf(slices.Concat(groups[s*len(groups)/k : (s+1)*len(groups)/k]...))
				if s > 0 {
					part.Audit = nil
				}
				c, err := Collect(part, w.profile)
				if err != nil {
					t.Fatal(err)
				}
				if whole == nil {
					whole = c
				} else if err := whole.Merge(c); err != nil {
					t.Fatal(err)
				}
			}
			card, err := whole.Scorecard(in.Dataset, in.Run)
			if err != nil {
				t.Fatal(err)
			}
			if got := asJSON(t, card); got != want {
				t.Errorf("%d requests in %d shards: %.300s", requests, k, strings.Join(Diff(card, mustScore(t, in, w.profile)), "\n"))
			}
		}
	}
}

func TestMergeRefusesOtherRuns(t *testing.T) {
	p := priced(t)
	collect := func(p *Profile, lanes ...float64) *Collection {
		in, _ := mixed(1, 5, lanes...)
		c, err := Collect(in, p)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := collect(p, 1, 1).Merge(collect(p, 1)); err == nil {
		t.Error("other lanes are merged")
	}
	if err := collect(p, 1).Merge(collect(priced(t), 1)); err == nil {
		t.Error("another profile is merged")
	}
}

// Adding a backend moves no other number: neither scores, nor pairs.
func TestAddingABackendMovesNothing(t *testing.T) {
	w := newWorld(t, 5)
	rows := w.rows(500)
	var two []*Row
	for i, r := range rows {
		if i%9 == 0 {
			r.Outcomes[2] = nil // the third lacks some, and has rows of its own below
		}
		two = append(two, &Row{Label: r.Label, Outcomes: r.Outcomes[:2]})
	}
	extra := outcome("third", 1_000_000, "a")
	extra.Scenario, extra.RequestID = "plain", idOf(1<<40)
	rows = append(rows, &Row{Outcomes: []*snapshot.Outcome{nil, nil, extra}})

	small := mustScore(t, Input{Lanes: w.lanes[:2], Rows: rowsOf(two)}, w.profile)
	big := mustScore(t, Input{Lanes: w.lanes, Rows: rowsOf(rows)}, w.profile)
	if asJSON(t, small.Backends) != asJSON(t, big.Backends[:2]) {
		t.Error("the scores of the first two backends moved")
	}
	var pairs []Pair
	for _, p := range big.Pairs {
		if p.Base == "first" && p.New == "second" {
			pairs = append(pairs, p)
		}
	}
	if asJSON(t, small.Pairs) != asJSON(t, pairs) {
		t.Errorf("the pair of the first two moved:\n%s\n%s", asJSON(t, small.Pairs), asJSON(t, pairs))
	}
	if len(warned(big, WarnCoverage)) != 3 {
		t.Errorf("warnings of coverage: %v", warned(big, WarnCoverage))
	}
}

func TestScenariosAreWeighedByDecisions(t *testing.T) {
	// 60 rows of s1, all right; 20 of s2 at weight 2, half right: U = 1 and .5.
	build := func() Input {
		return one(80, func(i int, r *Row, o *snapshot.Outcome) {
			if i%2 == 0 {
				r.Label.Action, o.Action = "block", "block"
			}
			if i >= 60 {
				o.Scenario, o.KeepProb = "s2", 0.5
				if i%4 < 2 {
					o.Action = map[string]string{"allow": "block", "block": "allow"}[o.Action]
				}
			}
		})
	}
	p := preset(t, "default")
	b, _ := scoreOne(t, build(), p)
	is(t, "by decisions", b.Categories.Accuracy.Value, 100*60.0/100)
	p.ScenarioWeights = map[string]float64{"s2": 0.9}
	b, _ = scoreOne(t, build(), p)
	is(t, "s2 at .9, the rest by decisions", b.Categories.Accuracy.Value, 10)
	p.ScenarioWeights = map[string]float64{"s1": 0.5, "s2": 0.25, "s9": 0.25}
	b, card := scoreOne(t, build(), p)
	is(t, "2 to 1", b.Categories.Accuracy.Value, 100*2.0/3)
	if got := warned(card, WarnUnset); len(got) != 1 || got[0].Scenario != "s9" {
		t.Errorf("warnings %v", card.Warnings)
	}
	if len(warned(card, WarnWeighted)) != 1 {
		t.Errorf("warnings %v", card.Warnings)
	}
}

func TestShareOfNA(t *testing.T) {
	build := func(unlabelled int) Input {
		return one(100, func(i int, r *Row, o *snapshot.Outcome) {
			if i%2 == 0 {
				r.Label.Action, o.Action = "block", "block"
			}
			if i < unlabelled {
				o.Scenario, r.Label = "s2", nil
			}
		})
	}
	b, card := scoreOne(t, build(20), preset(t, "default"))
	is(t, "20 % left out", b.Categories.Accuracy.Value, 100)
	if got := warned(card, WarnShareNA); len(got) != 1 || !strings.Contains(got[0].Text, "accuracy is NA for 20.0 % of the decisions") {
		t.Errorf("warnings %v", card.Warnings)
	}
	b, _ = scoreOne(t, build(21), preset(t, "default"))
	isNA(t, "21 % missing", b.Categories.Accuracy.Estimate, "no labels (21.0 % of the decisions)")
}

func TestRunLevelNumbers(t *testing.T) {
	in := one(90, func(i int, r *Row, o *snapshot.Outcome) {
		o.Entity = decision.Some([8]byte{byte(i % 45)})
		o.Recorded = "allow"
		if i%2 == 0 {
			r.Label.Action, o.Action = "block", "block"
		}
		if i >= 60 {
			o.Scenario = "s2"
			o.Latency = decision.Some(50 * time.Millisecond)
		}
		if i < 3 {
			o.Status, o.Action, o.ErrorCode = decision.NotReplayable, "", "no-strategy"
		}
		if i == 70 {
			o.Status, o.Action = decision.Error, ""
		}
	})
	cold := outcome("x", 7, "allow")
	cold.Phase, cold.Latency = snapshot.PhaseCold, decision.Some(time.Second)
	later := outcome("x", 3, "allow")
	later.Block, later.Latency = 4, decision.Some(time.Hour)
	in.Cold = outcomes([]*snapshot.Outcome{later, cold})
	b, card := scoreOne(t, in, priced(t))
	is(t, "cold", b.LatencyNs.Cold, 1e9)
	is(t, "agreement", b.Agreement.Value, 44.0/90)
	c := b.Counts
	if c.Offered != 90 || c.Answered != 86 || c.NotReplayable != 3 || c.Errors != 1 || c.Clusters != 45 || c.Labelled != 90 {
		t.Errorf("counts %+v", c)
	}
	if c.Reasons["no-strategy"] != 3 || c.Reasons["unspecified"] != 1 {
		t.Errorf("reasons %v", c.Reasons)
	}
	weight := Number(0)
	for _, d := range b.Distribution {
		weight += d.Weight
		if d.LoNs >= d.HiNs {
			t.Errorf("bucket %+v", d)
		}
	}
	is(t, "weight of the distribution", weight, 86)
	if len(warned(card, WarnNotReplayable)) != 1 {
		t.Errorf("warnings %v", card.Warnings)
	}
	if b.Worst != "" {
		t.Errorf("worst scenario %q without totals", b.Worst)
	}
}

func TestWorstScenario(t *testing.T) {
	in := one(200, func(i int, r *Row, o *snapshot.Outcome) {
		if i%2 == 0 {
			r.Label.Action, o.Action = "block", "block"
		}
		if i >= 100 {
			o.Scenario = "slow"
			o.Latency = decision.Some(99 * time.Millisecond)
		}
	})
	in.Audit = outcomes(audits(200, 2, func(i, _ int, o *snapshot.Outcome) {
		if i >= 100 {
			o.Scenario = "slow"
		}
	}))
	b, _ := scoreOne(t, in, priced(t))
	if b.Worst != "slow" || !b.Eligible || b.Total.NA != "" {
		t.Errorf("worst %q, eligible %v (%q), total %+v", b.Worst, b.Eligible, b.Ineligible, b.Total)
	}
	s1, slow := b.Scenarios["s1"], b.Scenarios["slow"]
	is(t, "total", b.Total.Value, float64(s1.Total.Value+slow.Total.Value)/2)
	if !(b.Total.Lo < b.Total.Value && b.Total.Value < b.Total.Hi) {
		t.Errorf("interval of the total: %+v", b.Total)
	}
}

func TestWarnings(t *testing.T) {
	in := one(19, func(i int, r *Row, o *snapshot.Outcome) {
		o.Latency = decision.Some[time.Duration](500)
		if i == 0 {
			r.Label = nil
		}
	})
	in.Run.Partial, in.Dataset.Intact = true, false
	_, card := scoreOne(t, in, preset(t, "default"))
	for _, code := range []string{WarnPartial, WarnNotIntact, WarnFewClusters, WarnClock, WarnUnlabelled} {
		got := warned(card, code)
		if len(got) != 1 || got[0].Text == "" {
			t.Errorf("%s: %v", code, got)
		}
	}
	for _, w := range card.Warnings {
		if strings.Contains(w.Text, "%!") {
			t.Errorf("%s: %s", w.Code, w.Text)
		}
	}
	// A finding that one lane of two has names it; one of both stands once.
	in, _ = mixed(1, 40, 0.9, 0.9)
	card = mustScore(t, in, priced(t))
	if got := warned(card, WarnQuantile); len(got) != 2 || got[0].Backend != "" {
		t.Errorf("dropped quantiles: %v", got)
	}
}

func TestFloodOfErrorCodes(t *testing.T) {
	profile := preset(t, "default")
	flood := func(order []int) Counts {
		var c *Collection
		for _, part := range [][]int{order[:len(order)/2], order[len(order)/2:]} {
			in := one(len(part), func(i int, _ *Row, o *snapshot.Outcome) {
				o.Status, o.Action, o.ErrorCode = decision.Error, "", fmt.Sprint("code", part[i])
			})
			p, err := Collect(in, profile)
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				c = p
			} else if err := c.Merge(p); err != nil {
				t.Fatal(err)
			}
		}
		return c.lanes[0].tallies["s1"].finalCounts()
	}
	order := make([]int, maxReasons+5)
	for i := range order {
		order[i] = i
	}
	a := flood(order)
	slices.Reverse(order)
	b := flood(order)
	if len(a.Reasons) != 1 || a.Reasons[otherReasons] != int64(len(order)) || asJSON(t, a.Reasons) != asJSON(t, b.Reasons) {
		t.Errorf("reasons %v and %v", a.Reasons, b.Reasons)
	}
}

func TestLaneWithoutRows(t *testing.T) {
	in, rows := mixed(1, 60, 0.9, 0.9)
	for _, r := range rows {
		r.Outcomes[1] = nil
	}
	in.Audit = nil
	card := mustScore(t, in, priced(t))
	b := card.Backends[1]
	isNA(t, "total", b.Total, "no decisions")
	if b.Eligible || b.Counts.Offered != 0 || len(b.Scenarios) != 0 {
		t.Errorf("%+v", b.Result)
	}
	for _, p := range card.Pairs {
		if p.Verdict != VerdictNotComparable || p.N != 0 || p.Left != 60 || !math.IsNaN(float64(p.Diff)) {
			t.Errorf("pair %+v", p)
		}
	}
}

// A few rows that stand for many carry the weight: the reader is told, whether weights
// or the sizes of clusters are the reason.
func TestWarningOfLowEffectiveSize(t *testing.T) {
	for name, tc := range map[string]struct {
		rows   int
		change func(i int, r *Row, o *snapshot.Outcome)
		want   string
	}{
		"equal weights":  {60, func(int, *Row, *snapshot.Outcome) {}, ""},
		"mild weights":   {600, func(i int, _ *Row, o *snapshot.Outcome) { o.KeepProb = 1 / float64(1+i%2) }, ""},
		"too few to say": {15, func(i int, _ *Row, o *snapshot.Outcome) { o.KeepProb = 1 / float64(1+i%2) }, ""},
		// 190 rows of weight 1 and 10 of 100: 1190^2 / 100,190.
		"a factor of 100": {200, func(i int, _ *Row, o *snapshot.Outcome) {
			if i%20 == 0 {
				o.KeepProb = 0.01
			}
		}, "200 count as 14 equal ones, and 16.8 % of the weight"},
		"weighted and small": {80, func(i int, _ *Row, o *snapshot.Outcome) { o.KeepProb = 1 / float64(1+i%2) }, "80 count as 72 equal ones"},
		"one heavy entity": {400, func(i int, _ *Row, o *snapshot.Outcome) {
			if i%2 == 0 || i%4 == 1 {
				o.Entity = decision.Some([8]byte{1})
			}
		}, "101 count as 2 equal ones, and 75.2 % of the weight"},
		"unlabelled rows do not help": {400, func(i int, r *Row, o *snapshot.Outcome) {
			if o.KeepProb = 0.5; i >= 40 {
				r.Label = nil
			}
		}, "40 count as 40 equal ones"},
	} {
		card := mustScore(t, one(tc.rows, tc.change), preset(t, "default"))
		got := warned(card, WarnLowESS)
		if (tc.want == "") != (len(got) == 0) || len(got) > 0 && !strings.Contains(got[0].Text, tc.want) {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
	}
}
