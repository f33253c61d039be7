package scoring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/snapshot"
)

// improvement makes one decision of a run better in one respect.
type improvement struct {
	name     string
	category func(*Categories) *Category
	better   func(r *Row, o *snapshot.Outcome) bool // false: this row cannot be improved
}

func improvements() []improvement {
	accuracy := func(c *Categories) *Category { return &c.Accuracy }
	latency := func(c *Categories) *Category { return &c.Latency }
	cost := func(c *Categories) *Category { return &c.Cost }
	return []improvement{
		{"right instead of wrong", accuracy, func(r *Row, o *snapshot.Outcome) bool {
			if r.Label == nil || o.Status != decision.OK || o.Action == r.Label.Action {
				return false
			}
			o.Action = r.Label.Action
			return true
		}},
		{"right instead of no answer", accuracy, func(r *Row, o *snapshot.Outcome) bool {
			if r.Label == nil || o.Status != decision.Timeout {
				return false
			}
			o.Status, o.Action = decision.OK, r.Label.Action
			return true
		}},
		{"faster", latency, func(_ *Row, o *snapshot.Outcome) bool {
			o.Latency.V /= 2
			return o.Status == decision.OK
		}},
		{"answered instead of missed", latency, func(_ *Row, o *snapshot.Outcome) bool {
			if o.Status != decision.Timeout {
				return false
			}
			o.Status, o.Action, o.Latency = decision.OK, "z", decision.Some(time.Microsecond)
			return true
		}},
		{"cheaper", cost, func(_ *Row, o *snapshot.Outcome) bool {
			o.Usage.CPU.V /= 2
			return true
		}},
	}
}

// Scores are monotone: nothing that is better for the caller lowers its category.
func TestScoresAreMonotone(t *testing.T) {
	p := preset(t, "default")
	task := NewTask()
	task.Baseline, task.Top = 0.4, 1
	p.Tasks["s1"] = task
	p.Prices = &PriceBook{Prices: []Price{{Backend: "*", Unit: UnitCPUSecond, Price: 1}}}
	build := func(seed uint64) []*Row {
		rng := rand.New(rand.NewPCG(seed, 4))
		var rows []*Row
		for i := range 70 {
			o := outcome("x", i, pick(rng, "a", "b"))
			o.Latency = decision.Some(time.Duration(1e6 * math.Exp(3*rng.NormFloat64())))
			o.Usage.CPU = decision.Some(time.Duration(rng.IntN(1e6)))
			o.KeepProb = pick(rng, 1, 0.3)
			r := &Row{Outcomes: []*snapshot.Outcome{o}}
			if rng.IntN(5) > 0 {
				r.Label = label(i, pick(rng, "a", "b"))
			}
			if rng.IntN(10) == 0 {
				o.Status, o.Action = decision.Timeout, ""
			}
			rows = append(rows, r)
		}
		return rows
	}
	score := func(rows []*Row) *Categories {
		c, err := Collect(Input{Lanes: []Lane{{"x", "k"}}, Rows: rowsOf(rows)}, p)
		if err != nil {
			t.Fatal(err)
		}
		l := c.lanes[0]
		m := newModel(l.tallies["s1"], &l.meters, p, true)
		v := m.point()
		var cats Categories
		_, list := cats.list()
		for i, x := range v.categories() {
			list[i].Value = Number(x)
		}
		return &cats
	}
	for _, im := range improvements() {
		tried := 0
		for seed := range uint64(5) {
			rows := build(seed)
			before := im.category(score(rows)).Value
			for _, r := range rows {
				if !im.better(r, r.Outcomes[0]) {
					continue
				}
				tried++
				after := im.category(score(rows)).Value
				if !(after >= before-1e-12) || after < 0 || after > 100 {
					t.Fatalf("%s: from %v to %v", im.name, before, after)
				}
				before = after
			}
		}
		if tried < 10 {
			t.Errorf("%s: tried %d times", im.name, tried)
		}
	}
}

// The oracle scores 100 and the best constant 0 whatever the utilities are, and nothing
// scores above the oracle.
func TestEndsOfRandomUtilities(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		actions := []string{"a", "b", "c", "d"}
		var rows []*Row
		sums := map[string]float64{}
		for i := range 60 {
			l := label(i, "")
			best := 0
			for k, a := range actions {
				u := rng.Float64()
				l.Utilities = append(l.Utilities, snapshot.ActionUtility{Action: a, Utility: u})
				if sums[a] += u; u > l.Utilities[best].Utility {
					best = k
				}
			}
			oracle, constant, random := outcome("oracle", i, actions[best]), outcome("constant", i, ""), outcome("random", i, pick(rng, actions...))
			rows = append(rows, &Row{Label: l, Outcomes: []*snapshot.Outcome{oracle, constant, random}})
		}
		top := actions[0]
		for _, a := range actions {
			if sums[a] > sums[top] {
				top = a
			}
		}
		for _, r := range rows {
			r.Outcomes[1].Action = top
		}
		in := Input{Lanes: []Lane{{"oracle", ""}, {"constant", ""}, {"random", ""}}, Rows: rowsOf(rows)}
		card := mustScore(t, in, preset(t, "default"))
		is(t, "oracle", card.Backends[0].Categories.Accuracy.Value, 100)
		if v := card.Backends[1].Categories.Accuracy.Value; v < 0 || v > 1e-9 {
			t.Errorf("the best constant scores %v", v)
		}
		if v := card.Backends[2].Categories.Accuracy.Value; v > 50 {
			t.Errorf("chance scores %v", v)
		}
	}
}

// A flood of different actions is refused, not counted wrongly, and takes bounded memory.
func TestTooManyActions(t *testing.T) {
	tl := newTally(newTask("s1", NewTask()), 1)
	add := func(truth, chosen string) {
		r := &Row{Label: label(0, truth)}
		tl.add(&observation{row: r, cluster: 1, weight: 1 << weightBits, status: decision.OK, chosen: chosen, truth: truthAction, first: true, timed: true})
	}
	for i := range maxLabels + 1 {
		add(fmt.Sprint("truth", i), "x")
	}
	if !tl.truths.overflow || !tl.overflow || len(tl.truths.right) > maxLabels || len(tl.confusion) > maxConfusion {
		t.Errorf("overflow %v and %v, %d truths, %d cells", tl.truths.overflow, tl.overflow, len(tl.truths.right), len(tl.confusion))
	}
	if tl.confusionTable() != nil {
		t.Error("a table that lacks cells is shown")
	}
	m := newModel(tl, &meters{na: "x"}, preset(t, "default"), true)
	if m.na[catAccuracy] != "more different actions than can be counted" {
		t.Errorf("accuracy is NA for %q", m.na[catAccuracy])
	}
	// Merging does not hide it, from either side.
	small := newTally(tl.task, 1)
	small.merge(tl)
	if !small.truths.overflow || !small.overflow {
		t.Error("the overflow is lost in a merge")
	}
}

func TestScenarioShares(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, tc := range []struct {
		set       map[string]float64
		decisions []float64
		want      []float64
	}{
		{nil, []float64{1, 2, 5}, []float64{0.125, 0.25, 0.625}},
		{map[string]float64{"a": 0.5}, []float64{1, 2, 6}, []float64{0.5, 0.125, 0.375}},
		{map[string]float64{"a": 0.6, "b": 0.4}, []float64{1, 1, 8}, []float64{0.6, 0.4, 0}},
		{map[string]float64{"a": 0.2, "b": 0.2, "c": 0.1}, []float64{1, 1, 1}, []float64{0.4, 0.4, 0.2}},
		{map[string]float64{"a": 0, "z": 1}, []float64{1, 1, 1}, []float64{0, 0.5, 0.5}},
		{nil, []float64{0, 0, 0}, []float64{0, 0, 0}},
	} {
		got := scenarioShares(&Profile{ScenarioWeights: tc.set}, names, tc.decisions)
		for i := range got {
			if math.Abs(got[i]-tc.want[i]) > 1e-12 {
				t.Errorf("shares of %v under %v are %v, want %v", tc.decisions, tc.set, got, tc.want)
				break
			}
		}
	}
}

func TestMean(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		values, weights []float64
		want, missing   float64
	}{
		{[]float64{10, 20}, []float64{0.5, 0.5}, 15, 0},
		{[]float64{10, nan}, []float64{0.8, 0.2}, 10, 0.2},
		{[]float64{10, nan}, []float64{0.79, 0.21}, nan, 0.21},
		{[]float64{nan, nan}, []float64{0.5, 0.5}, nan, 1},
		{nil, nil, nan, 1},
		{[]float64{5, nan}, []float64{1, 0}, 5, 0},
	} {
		got, missing := mean(tc.values, tc.weights)
		same := got == tc.want || (math.IsNaN(got) && math.IsNaN(tc.want)) || math.Abs(got-tc.want) < 1e-12
		if !same || math.Abs(missing-tc.missing) > 1e-12 {
			t.Errorf("mean of %v by %v is %v with %v missing", tc.values, tc.weights, got, missing)
		}
	}
}

func TestLatencyWeights(t *testing.T) {
	for _, tc := range []struct {
		n    int64
		want []float64
	}{
		{299, []float64{0.25, 0.35, 0.40}}, {298, []float64{0.25 / 0.6, 0.35 / 0.6}}, {58, []float64{1}}, {4, nil},
	} {
		var got []float64
		for _, q := range latencyQuantiles(tc.n) {
			got = append(got, q.weight)
		}
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
			t.Errorf("%d requests weigh %v, want %v", tc.n, got, tc.want)
		}
	}
}

// Fixed point: what a row weighs and earns is kept to 1 part in 10^8 and 10^13.
func TestFixedPoint(t *testing.T) {
	for _, kp := range []float64{1, 0.5, 0.3, 0.05, 1e-3, math.Ldexp(1, -maxWeightLog)} {
		got := math.Ldexp(float64(fixedWeight(kp)), -weightBits)
		if math.Abs(got*kp-1) > 1e-8 {
			t.Errorf("weight of %v is %v", kp, got)
		}
	}
	for _, u := range []float64{0, 1, 0.1, 1.0 / 3, 1e-9} {
		if got := math.Ldexp(float64(fixedUtility(u)), -utilityBits); math.Abs(got-u) > 1e-13 {
			t.Errorf("utility %v is kept as %v", u, got)
		}
	}
	// The largest row fits the accumulator 2^31 times over.
	var s stats.Sum
	for range 64 {
		s.AddProduct(fixedWeight(math.Ldexp(1, -maxWeightLog)), 1<<utilityBits)
	}
	if want := math.Ldexp(64, maxWeightLog+weightBits+utilityBits); s.Float() != want {
		t.Errorf("64 rows of the largest weight sum to %v, want %v", s.Float(), want)
	}
}
