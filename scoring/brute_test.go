package scoring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// world makes random runs: three scenarios (0/1 truth with probabilities, a utility
// matrix, utilities of each label), weights, requests of several rows, entities, every
// status, and missing labels.
type world struct {
	rng     *rand.Rand
	lanes   []Lane
	profile *Profile
}

func newWorld(t testing.TB, seed uint64) *world {
	p := preset(t, "default")
	// Latencies below 256 ns are kept exactly, so that quantiles can be compared exactly.
	p.Latency = LatencyAnchors{Good: 10, Bad: 250, Deadline: 180}
	worst := 0.1
	matrix := NewTask()
	matrix.Candidates = []string{"a", "b", "c"}
	matrix.Utility = map[string]map[string]float64{
		"a": {"a": 0.9, "b": 0.2, "c": 0.5, "abstain": 0.4},
		"b": {"a": 0.15, "b": 1, "c": 0.6},
	}
	matrix.Unanswered = &worst
	p.Tasks["matrix"] = matrix
	p.Prices = &PriceBook{Currency: "USD", Prices: []Price{
		{Backend: "*", Unit: UnitDecision, Price: 2e-5}, {Backend: "*", Unit: UnitCPUSecond, Price: 0.3},
		{Backend: "second", Unit: UnitTokensIn, Price: 0.03}, {Backend: "second", Unit: UnitTokensIn, Model: "big", Price: 0.3},
		{Backend: "second", Unit: UnitGiBEgress, Price: 0.05},
	}}
	return &world{
		rng: rand.New(rand.NewPCG(seed, 42)), profile: p,
		lanes: []Lane{{"first", "rules"}, {"second", "systemone"}, {"third", "flash"}},
	}
}

func pick[T any](rng *rand.Rand, xs ...T) T { return xs[rng.IntN(len(xs))] }

func (w *world) rows(requests int) []*Row {
	var rows []*Row
	n := 0
	for q := range requests {
		scenario := pick(w.rng, "plain", "matrix", "graded")
		kp := pick(w.rng, 1, 0.5, 0.3, 0.05)
		var entity decision.Opt[[8]byte]
		if w.rng.IntN(2) == 0 {
			entity = decision.Some([8]byte{byte(w.rng.IntN(200)), byte(w.rng.IntN(4))})
		}
		calls := make([]snapshot.Outcome, len(w.lanes))
		for i, l := range w.lanes {
			calls[i] = w.call(l)
		}
		for range 1 + w.rng.IntN(3) {
			r := &Row{Label: w.label(n, scenario)}
			for i := range w.lanes {
				o := calls[i]
				w.decide(&o, r.Label, scenario)
				o.Ref, o.ID, o.RequestID = snapshot.Ref{Segment: "s", Row: int64(n)}, idOf(uint64(n)), idOf(uint64(1e6+q))
				o.Scenario, o.KeepProb, o.Entity = scenario, kp, entity
				o.Recorded = pick(w.rng, "a", "b", "")
				r.Outcomes = append(r.Outcomes, &o)
			}
			rows = append(rows, r)
			n++
		}
	}
	return rows
}

// call is what the rows of one request share.
func (w *world) call(l Lane) snapshot.Outcome {
	o := snapshot.Outcome{Backend: l.Name, Kind: l.Kind}
	o.Latency = decision.Some(time.Duration(1 + w.rng.IntN(200)))
	o.Usage.CPU = decision.Some(time.Duration(w.rng.IntN(100_000)))
	o.Usage.TokensIn = decision.Some(int64(w.rng.IntN(5000)))
	o.Usage.BytesOut = decision.Some(int64(w.rng.IntN(1 << 20)))
	o.Artefact.ModelResolved = pick(w.rng, "big", "small")
	o.Status = decision.OK
	if w.rng.IntN(25) == 0 {
		o.Status = pick(w.rng, decision.Timeout, decision.Error)
	}
	if w.rng.IntN(20) == 0 {
		o.Cost = decision.Some(int64(w.rng.IntN(1e6)))
	}
	return o
}

func (w *world) decide(o *snapshot.Outcome, l *snapshot.Label, scenario string) {
	if o.Status != decision.OK {
		o.ErrorCode = pick(w.rng, "x", "")
		return
	}
	if w.rng.IntN(15) == 0 {
		o.Status = pick(w.rng, decision.Abstain, decision.Denied, decision.NotReplayable)
	}
	switch o.Status {
	case decision.OK:
		o.Action = pick(w.rng, "a", "a", "b", "c")
		if l != nil && w.rng.IntN(20) > 0 {
			o.Action = best(l)
		}
	case decision.Denied:
		o.Action = pick(w.rng, "", "b")
	}
	if scenario == "plain" && o.Backend == "first" && o.Status.Answered() {
		p := w.rng.Float64()
		if l != nil && w.rng.IntN(4) > 0 {
			p = max(p, 0.7)
			if best(l) == "b" {
				p = 1 - p
			}
		}
		o.Candidates = []decision.Candidate{
			{Action: "a", Probability: decision.Some(p)}, {Action: "b", Probability: decision.Some(1 - p)},
		}
	}
}

func best(l *snapshot.Label) string {
	if len(l.Utilities) == 2 && l.Utilities[1].Utility > l.Utilities[0].Utility {
		return l.Utilities[1].Action
	}
	if len(l.Utilities) == 2 {
		return l.Utilities[0].Action
	}
	return l.Action
}

func (w *world) label(n int, scenario string) *snapshot.Label {
	if w.rng.IntN(5) == 0 {
		return nil
	}
	l := label(n, pick(w.rng, "a", "a", "b"))
	if scenario == "graded" {
		l.Utilities = []snapshot.ActionUtility{{Action: "a", Utility: w.rng.Float64()}, {Action: "b", Utility: w.rng.Float64()}}
		if w.rng.IntN(2) == 0 {
			l.Action = ""
		}
	}
	return l
}

// naive is the score by plain floating point over all rows held in memory, written
// from the page of formulas and not from the code.
type naive struct {
	u, base, top, dec, bss, acc           float64
	att, lat, price, cost, right, agree   float64
	offered                               float64
	quantiles                             [3]float64
	requests                              int
	answered, rightOf, recorded, labelled float64
}

func naiveUtility(p *Profile, scenario string, l *snapshot.Label, o *snapshot.Outcome) float64 {
	action := o.Action
	switch {
	case o.Status == decision.Abstain:
		action = "abstain"
	case o.Status == decision.Denied && action == "":
		action = "denied"
	case o.Status != decision.OK && o.Status != decision.Denied:
		action = "(none)"
	}
	if len(l.Utilities) > 0 {
		least := 1.0
		for _, u := range l.Utilities {
			if u.Action == action {
				return u.Utility
			}
			least = min(least, u.Utility)
		}
		return least
	}
	if t := p.Tasks[scenario]; t.Utility != nil {
		if u, ok := t.Utility[l.Action][action]; ok {
			return u
		}
		return *t.Unanswered
	}
	if action == l.Action {
		return 1
	}
	return 0
}

func bruteScore(p *Profile, rows []*Row, lane int, scenario string) naive {
	var n naive
	var mine []*Row
	for _, r := range rows {
		if o := r.Outcomes[lane]; o != nil && o.Scenario == scenario {
			mine = append(mine, r)
		}
	}
	n.accuracy(p, mine, lane, scenario)
	n.latency(p, mine, lane)
	n.money(p, mine, lane)
	return n
}

func (n *naive) accuracy(p *Profile, rows []*Row, lane int, scenario string) {
	constants := map[string]float64{"a": 0, "b": 0}
	if scenario == "matrix" {
		constants["c"], constants["abstain"] = 0, 0
	}
	rates := map[string]float64{}
	var best, right, agree, brier, forecast float64
	for _, r := range rows {
		o, l := r.Outcomes[lane], r.Label
		w := 1 / o.KeepProb
		if o.Recorded != "" {
			n.recorded += w
			if o.Recorded == o.Action {
				agree += w
			}
		}
		if l == nil {
			continue
		}
		n.labelled += w
		n.u += w * naiveUtility(p, scenario, l, o)
		most := 0.0
		for c := range constants {
			u := naiveUtility(p, scenario, l, &snapshot.Outcome{Status: decision.OK, Action: c}) // also for abstain: a column
			constants[c] += w * u
			most = max(most, u)
		}
		best += w * most
		if l.Action == "" {
			continue
		}
		n.rightOf += w
		rates[l.Action] += w
		if o.Action == l.Action {
			right += w
		}
		if len(o.Candidates) > 0 {
			forecast += w
			for _, c := range o.Candidates {
				y := 0.0
				if c.Action == l.Action {
					y = 1
				}
				brier += w * (c.Probability.V - y) * (c.Probability.V - y)
			}
		}
	}
	n.u /= n.labelled
	n.top = best / n.labelled
	for _, sum := range constants {
		n.base = max(n.base, sum/n.labelled)
	}
	n.right, n.agree = right/n.rightOf, agree/n.recorded
	n.dec = 100 * min(1, max(0, (n.u-n.base)/(n.top-n.base)))
	n.acc, n.bss = n.dec, math.NaN()
	if forecast > 0 {
		ref := 0.0
		for _, w := range rates {
			r := w / n.rightOf
			ref += r * (1 - r)
		}
		// What gave no forecast is charged the base rates' score.
		n.bss = 1 - (brier+(n.rightOf-forecast)*ref)/n.rightOf/ref
		n.acc += 0.15 * min(1, max(0, n.bss)) * (100 - n.dec)
	}
}

func (n *naive) latency(p *Profile, rows []*Row, lane int) {
	type point struct{ t, w float64 }
	var points []point
	var inTime, total float64
	last := decision.ID{}
	for _, r := range rows {
		o := r.Outcomes[lane]
		w := 1 / o.KeepProb
		n.offered += w
		answered := o.Status == decision.OK || o.Status == decision.Denied || o.Status == decision.Abstain
		if answered {
			n.answered += w
			if o.Latency.V <= p.Latency.Deadline {
				inTime += w
			}
		}
		if o.RequestID == last {
			continue
		}
		last = o.RequestID
		t := math.Inf(1)
		if answered {
			t = float64(o.Latency.V)
		}
		points = append(points, point{t, w})
		total += w
	}
	n.requests = len(points)
	n.att = inTime / n.offered
	sort.Slice(points, func(i, j int) bool { return points[i].t < points[j].t })
	sum := 0.0
	for i, q := range []float64{0.5, 0.95, 0.99} {
		below := 0.0
		for _, pt := range points {
			if below += pt.w; below >= q*total*(1-1e-6) {
				n.quantiles[i] = pt.t
				break
			}
		}
		s := math.Log(250/n.quantiles[i]) / math.Log(250.0/10)
		sum += []float64{0.25, 0.35, 0.40}[i] * min(1, max(0, s))
	}
	n.lat = 100 * n.att * sum
}

func (n *naive) money(p *Profile, rows []*Row, lane int) {
	last := decision.ID{}
	total := 0.0
	for _, r := range rows {
		o := r.Outcomes[lane]
		w := 1 / o.KeepProb
		first := o.RequestID != last
		last = o.RequestID
		if o.Status == decision.NotReplayable {
			continue
		}
		switch {
		case o.Cost.Set && first:
			total += w * float64(o.Cost.V) / 1e9
		case o.Cost.Set:
		case o.Backend == "second" && first:
			total += w * map[string]float64{"big": 0.3e-6, "small": 0.03e-6}[o.Artefact.ModelResolved] * float64(o.Usage.TokensIn.V)
			total += w * 0.05 * float64(o.Usage.BytesOut.V) / (1 << 30)
		case o.Backend != "second":
			total += w * 2e-5
			if first {
				total += w * 0.3 * o.Usage.CPU.V.Seconds()
			}
		}
	}
	n.price = 1000 * total / n.answered
	n.cost = 100 * min(1, max(0, math.Log(10/n.price)/math.Log(10/0.0001)))
}

func close1(t *testing.T, what string, got Number, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 1e-6*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, by brute force %v", what, got, want)
	}
}

func TestScoreAgainstBruteForce(t *testing.T) {
	for seed := range uint64(2) {
		w := newWorld(t, seed)
		rows := w.rows(1500)
		card, err := Score(Input{Lanes: w.lanes, Rows: rowsOf(rows)}, w.profile)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range card.Backends {
			var parts []naive
			for _, scenario := range []string{"graded", "matrix", "plain"} {
				n := bruteScore(w.profile, rows, i, scenario)
				parts = append(parts, n)
				compareScenario(t, fmt.Sprintf("seed %d, %s, %s: ", seed, b.Name, scenario), b.Scenarios[scenario], n)
			}
			compareRun(t, fmt.Sprintf("seed %d, %s: ", seed, b.Name), &b, parts)
		}
		if err := Recompute(card); err != nil {
			t.Error(err)
		}
	}
}

func compareScenario(t *testing.T, at string, s ScenarioScore, n naive) {
	t.Helper()
	if n.requests < 299 {
		t.Fatalf("%sonly %d requests", at, n.requests)
	}
	c := &s.Categories
	if n.dec == 0 || n.dec == 100 || n.cost == 0 || n.cost == 100 || n.lat < 1 {
		t.Errorf("%sclamped, so that the formula is not tested: %+v", at, n)
	}
	close1(t, at+"U", c.Accuracy.term("U").Value, n.u)
	close1(t, at+"U_base", s.BaseUtility, n.base)
	close1(t, at+"U_top", s.TopUtility, n.top)
	close1(t, at+"A_dec", c.Accuracy.term("A_dec").Value, n.dec)
	close1(t, at+"accuracy", c.Accuracy.Value, n.acc)
	if !math.IsNaN(n.bss) {
		close1(t, at+"Brier skill", c.Accuracy.term(termSkill).Value, n.bss)
	}
	close1(t, at+"attainment", c.Latency.term("attainment").Value, n.att)
	for i, q := range []Number{s.LatencyNs.P50, s.LatencyNs.P95, s.LatencyNs.P99} {
		if math.IsInf(n.quantiles[i], 1) != math.IsNaN(float64(q)) {
			t.Errorf("%squantile %d is %v, want %v", at, i, q, n.quantiles[i])
		} else if !math.IsNaN(float64(q)) {
			close1(t, at+"quantile", q, n.quantiles[i])
		}
	}
	close1(t, at+"latency", c.Latency.Value, n.lat)
	close1(t, at+"price", s.CostPer1000.Value, n.price)
	close1(t, at+"cost", c.Cost.Value, n.cost)
	close1(t, at+"action accuracy", s.ActionAccuracy.Value, n.right)
	close1(t, at+"agreement", s.Agreement.Value, n.agree)
}

func compareRun(t *testing.T, at string, b *BackendScore, parts []naive) {
	t.Helper()
	mean := func(value, weight func(naive) float64) float64 {
		var sum, all float64
		for _, n := range parts {
			sum += weight(n) * value(n)
			all += weight(n)
		}
		return sum / all
	}
	offered := func(n naive) float64 { return n.offered }
	c := &b.Categories
	close1(t, at+"accuracy", c.Accuracy.Value, mean(func(n naive) float64 { return n.acc }, offered))
	close1(t, at+"latency", c.Latency.Value, mean(func(n naive) float64 { return n.lat }, offered))
	close1(t, at+"cost", c.Cost.Value, mean(func(n naive) float64 { return n.cost }, offered))
	close1(t, at+"price", b.CostPer1000.Value, mean(func(n naive) float64 { return n.price }, func(n naive) float64 { return n.answered }))
	close1(t, at+"action accuracy", b.ActionAccuracy.Value, mean(func(n naive) float64 { return n.right }, func(n naive) float64 { return n.rightOf }))
	close1(t, at+"agreement", b.Agreement.Value, mean(func(n naive) float64 { return n.agree }, func(n naive) float64 { return n.recorded }))
}
