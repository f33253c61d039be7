package scoring

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
)

// simulation draws runs of two lanes from a known law: clusters with an ability of
// their own, so that decisions of one cluster resemble each other.
type simulation struct {
	clusters, size int
	spread         float64
}

// The two lanes' abilities in a typical cluster, on the logistic scale, and the law of
// latencies: log-normal around 2 ms.
const (
	ability0, ability1 = 1.2, 1.0
	latencySpread      = 0.7
)

func (s simulation) run(seed uint64) Input {
	// Hashed, so that neighbouring seeds have nothing in common.
	rng := rand.New(rand.NewPCG(stats.Hash(seed, nil), 7))
	var rows []*Row
	for c := range s.clusters {
		effect := s.spread * rng.NormFloat64()
		slow := 0.3 * s.spread * rng.NormFloat64()
		for range s.size {
			n := len(rows)
			r := &Row{Label: label(n, pick(rng, "a", "b"))}
			for i, ability := range []float64{ability0, ability1} {
				action := "c"
				if rng.Float64() < logistic(ability+effect) {
					action = r.Label.Action
				}
				o := outcome([]string{"x", "y"}[i], n, action)
				o.Entity = decision.Some([8]byte{byte(c), byte(c >> 8)})
				o.Latency = decision.Some(time.Duration(2e6 * math.Exp(slow+latencySpread*rng.NormFloat64())))
				r.Outcomes = append(r.Outcomes, o)
			}
			rows = append(rows, r)
		}
	}
	return Input{Lanes: []Lane{{"x", "k"}, {"y", "k"}}, Rows: rowsOf(rows)}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// meanLogistic is E[logistic(a + s*Z)], by the midpoint rule.
func meanLogistic(a, s float64) float64 {
	const n = 10_000
	sum := 0.0
	for i := range n {
		sum += logistic(a + s*stats.NormalQuantile((float64(i)+0.5)/n))
	}
	return sum / n
}

// Nominal 95 % intervals of accuracy, latency and paired utility difference. A coverage
// of 95 % seen in n runs has the standard error sqrt(.95*.05/n), 1.8 points for 150:
// it may lie three of them below. Intervals of quantiles are known to cover 89 to 96 %,
// so latency may lie three points lower.
func TestCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation of hundreds of scorecards")
	}
	for name, tc := range map[string]struct {
		simulation
		runs uint64
	}{
		"independent":          {simulation{150, 1, 0}, 150},
		"clusters of five":     {simulation{120, 5, 1.2}, 150},
		"hashed clusters of 3": {simulation{300, 3, 1.2}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			tc.check(t, tc.runs)
		})
	}
}

func (s simulation) check(t *testing.T, runs uint64) {
	t.Helper()
	p := preset(t, "default")
	task := NewTask()
	task.Baseline, task.Top = 0.5, 1 // frozen, as in a data set's manifest
	p.Tasks["s1"] = task
	u0, u1 := meanLogistic(ability0, s.spread), meanLogistic(ability1, s.spread)
	truth := map[string]float64{"accuracy": 100 * (u0 - 0.5) / 0.5, "difference": u1 - u0}
	sd := math.Hypot(latencySpread, 0.3*s.spread)
	lat := 0.0
	for _, q := range latencyQuantiles(int64(s.clusters * s.size)) {
		lat += q.weight * latencyCurve(2e6*math.Exp(sd*stats.NormalQuantile(q.p)), p.Latency)
	}
	truth["latency"] = 100 * lat // all but one in 10^8 are within the deadline
	covered := map[string]float64{}
	for seed := range runs {
		c, err := Collect(s.run(seed), p)
		if err != nil {
			t.Fatal(err)
		}
		card, err := c.Scorecard(DatasetInfo{}, RunInfo{})
		if err != nil {
			t.Fatal(err)
		}
		cats := card.Backends[0].Categories
		u := pairOf(t, card, MeasureUtility, "")
		for what, e := range map[string]Estimate{
			"accuracy": cats.Accuracy.Estimate, "latency": cats.Latency.Estimate, "difference": {Lo: u.Lo, Hi: u.Hi},
		} {
			if float64(e.Lo) <= truth[what] && truth[what] <= float64(e.Hi) {
				covered[what] += 1 / float64(runs)
			}
		}
	}
	low := 0.95 - 3*math.Sqrt(0.95*0.05/float64(runs))
	for what, least := range map[string]float64{"accuracy": low, "difference": low, "latency": low - 0.03} {
		t.Logf("%s: coverage %.3f", what, covered[what])
		if covered[what] < least {
			t.Errorf("the 95 %% interval of %s covers %.3f, less than %.3f", what, covered[what], least)
		}
	}
}

// What the intervals are for: an interval over rows of clustered data, as if they were
// independent, does not cover.
func TestRowsAsClustersCoverTooLittle(t *testing.T) {
	s := simulation{60, 20, 1.2}
	u0 := meanLogistic(ability0, s.spread)
	covered := 0
	const runs = 60
	for seed := range uint64(runs) {
		in := s.run(seed)
		right, n := 0.0, 0.0
		for r := range in.Rows {
			n++
			if r.Outcomes[0].Action == r.Label.Action {
				right++
			}
		}
		if lo, hi := stats.Wilson(right/n, n); lo <= u0 && u0 <= hi {
			covered++
		}
	}
	if covered > runs*3/4 {
		t.Errorf("the interval over rows covers %d of %d: clustering does not bite here", covered, runs)
	}
}
