package reports

import (
	"math"
	"time"

	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

var nan = scoring.Number(math.NaN())

// est is an estimate with its interval.
func est(v, lo, hi float64) scoring.Estimate {
	return scoring.Estimate{Value: scoring.Number(v), Lo: scoring.Number(lo), Hi: scoring.Number(hi)}
}

// refusal is an estimate that was refused.
func refusal(reason string) scoring.Estimate {
	return scoring.Estimate{Value: nan, Lo: nan, Hi: nan, NA: reason}
}

func around(v, half float64) scoring.Estimate {
	return est(v, math.Max(0, v-half), math.Min(100, v+half))
}

// spread is a log-normal latency distribution in four buckets an octave.
func spread(median float64, sigma float64) []scoring.Bucket {
	var out []scoring.Bucket
	cdf := func(x float64) float64 { return 0.5 * math.Erfc(-math.Log(x/median)/(sigma*math.Sqrt2)) }
	lo := math.Exp(math.Log(median) - 3.2*sigma)
	for i := 0; i < 100; i++ {
		hi := lo * math.Pow(2, 1.0/4)
		if w := 4000 * (cdf(hi) - cdf(lo)); w >= 0.5 {
			out = append(out, scoring.Bucket{LoNs: int64(lo), HiNs: max(int64(hi), int64(lo)+1), Weight: scoring.Number(math.Round(w))})
		}
		lo = hi
	}
	return out
}

// lane is what a backend of the demo card is made from.
type lane struct {
	name, kind     string
	accuracy       [3]float64 // per scenario
	right          [3]float64 // action accuracy
	median, sigma  float64
	latency, audit float64
	cost, price    float64
	agreement      float64
	timeouts       int64
}

var (
	demoScenarios = [3]string{"api-abuse", "edge-routing", "fraud"}
	demoOffered   = [3]int64{1204, 2000, 890}
	demoActions   = [3][]string{{"allow", "throttle", "block"}, {"cache", "origin", "origin_fallback", "shed"}, {"approve", "manual_review", "block"}}
	demoMajority  = [3]float64{0.583, 0.412, 0.719}
	demoCeiling   = [3]scoring.Number{nan, 0.8731, nan}
)

func demoLanes() []lane {
	return []lane{
		{"recorded", "recorded", [3]float64{61.2, 48.8, 12.4}, [3]float64{0.861, 0.741, 0.741}, 84_000, 0.5, 78.3, 52.5, 71.0, 0.012, 1, 0},
		{"rules", "rules", [3]float64{74.9, 51.3, 18.1}, [3]float64{0.902, 0.752, 0.748}, 612, 0.35, 100, 91.2, 96.4, 0.00021, 0.884, 0},
		{"strategy", "strategy", [3]float64{76.3, 63.0, 31.7}, [3]float64{0.911, 0.801, 0.769}, 2_310, 0.42, 98.7, 88.0, 92.1, 0.00048, 0.861, 0},
		{"flash", "flash", [3]float64{75.8, 62.1, 30.2}, [3]float64{0.909, 0.797, 0.766}, 71, 0.2, 100, 84.1, 98.8, 0.00011, 0.858, 0},
		{"decide", "decide", [3]float64{76.3, 63.0, 31.7}, [3]float64{0.911, 0.801, 0.769}, 168_000, 0.8, 69.9, 71.4, 70.2, 0.0191, 0.861, 7},
	}
}

func confusion(s int, right float64, offered, timeouts int64) []scoring.Confusion {
	var out []scoring.Confusion
	actions := demoActions[s]
	for i, truth := range actions {
		part := float64(offered) * []float64{0.58, 0.27, 0.1, 0.05}[i]
		for j, chosen := range actions {
			w := part * right
			if i != j {
				w = part * (1 - right) * float64(1+(i+2*j)%3) / 4
			}
			out = append(out, scoring.Confusion{Truth: truth, Chosen: chosen, Weight: scoring.Number(math.Round(w))})
		}
		if timeouts > 0 && i == 0 {
			out = append(out, scoring.Confusion{Truth: truth, Chosen: "(timeout)", Weight: scoring.Number(timeouts)})
		}
	}
	return out
}

func (l lane) counts(offered, timeouts int64) scoring.Counts {
	c := scoring.Counts{Offered: offered, Answered: offered - timeouts, Timeouts: timeouts, Labelled: offered, Clusters: offered / 3}
	if timeouts > 0 {
		c.Reasons = map[string]int64{"deadline-exceeded": timeouts}
	}
	return c
}

func (l lane) score(accuracy, half, right float64, c scoring.Counts) scoring.Result {
	total := 0.4*accuracy + 0.25*l.latency + 0.15*l.cost + 0.2*l.audit
	z := l.sigma
	return scoring.Result{
		Eligible: true, Total: around(total, half*0.6),
		Categories: scoring.Categories{
			Accuracy: scoring.Category{Estimate: around(accuracy, half), Evidence: "L1 labels, all decisions labelled", Terms: []scoring.Term{
				{Name: "U", Weight: 1, Estimate: est(right, right-0.01, right+0.01)},
				{Name: "U_base", Weight: 0, Estimate: scoring.Estimate{Value: 0.583, Lo: nan, Hi: nan, NoInterval: "frozen in the data set"}},
			}},
			Latency:      scoring.Category{Estimate: around(l.latency, 0.4), Evidence: "service time, warm, closed loop"},
			Cost:         scoring.Category{Estimate: around(l.cost, 0.7), Evidence: "price book 2026-05-01, CPU time measured"},
			Auditability: scoring.Category{Estimate: around(l.audit, 2.2), Evidence: "400 audited decisions; q4 faithful not measured"},
		},
		Geometric: scoring.Number(total * 0.94), Counts: c,
		LatencyNs: scoring.Quantiles{
			P50: scoring.Number(l.median), P95: scoring.Number(math.Round(l.median * math.Exp(1.645*z))),
			P99: scoring.Number(math.Round(l.median * math.Exp(2.326*z))), Cold: scoring.Number(math.Round(l.median * 41)),
		},
		ActionAccuracy: est(right, right-0.012, right+0.011),
		CostPer1000:    est(l.price, l.price*0.97, l.price*1.04),
		Agreement:      est(l.agreement, l.agreement-0.011, math.Min(1, l.agreement+0.010)),
		Distribution:   spread(l.median, l.sigma),
	}
}

func (l lane) backend() scoring.BackendScore {
	var mean, right float64
	var offered int64
	for i, n := range demoOffered {
		mean += l.accuracy[i] * float64(n)
		right += l.right[i] * float64(n)
		offered += n
	}
	mean, right = mean/float64(offered), right/float64(offered)
	b := scoring.BackendScore{Name: l.name, Kind: l.kind, Worst: "fraud", Scenarios: map[string]scoring.ScenarioScore{}}
	b.Result = l.score(mean, 1.9, right, l.counts(offered, l.timeouts))
	for i, s := range demoScenarios {
		t := l.timeouts
		if i != 1 {
			t = 0
		}
		sc := scoring.ScenarioScore{
			Result:         l.score(l.accuracy[i], 3.3, l.right[i], l.counts(demoOffered[i], t)),
			MajorityAction: demoActions[i][0], Majority: scoring.Number(demoMajority[i]), Ceiling: demoCeiling[i],
			BaseUtility: scoring.Number(demoMajority[i]), TopUtility: 1,
		}
		sc.Confusion = confusion(i, l.right[i], demoOffered[i], t)
		b.Scenarios[s] = sc
	}
	return b
}

// demoCard is what the demo prints: five backends, three scenarios, a tie, warnings.
func demoCard() *scoring.Scorecard {
	c := &scoring.Scorecard{
		ScoreVersion: scoring.Version, Profile: demoProfile(),
		Dataset: scoring.DatasetInfo{
			Snapshots: 4094, Requests: 3891, Intact: true,
			Digest: "sha256:6f1c0b6a3de8b5a9c1f27a9d1f5b3c0e8d7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c",
			Ledger: snapshot.Ledger{Offered: 4211, Written: 4094, SampledOut: 100, Dropped: map[string]uint64{"queue-full": 12, "redaction-failed": 5}},
		},
		Ties: [][]string{{"flash", "strategy"}, {"rules"}, {"decide"}, {"recorded"}},
		Warnings: []scoring.Warning{
			{Code: "weak-labels", Scenario: "api-abuse", Text: "labels come from user-agent lists and are weak"},
			{Code: "timeouts", Backend: "decide", Scenario: "edge-routing", Text: "7 decisions timed out and count as latency misses"},
			{Code: "sampled", Text: "2.4% of the offered decisions were sampled out; every number is weighted by 1/keep_prob"},
			{Code: "shared-model", Backend: "strategy", Text: "falls back to a model that was trained on the same split"},
			{Code: "shared-model", Backend: "decide", Text: "falls back to a model that was trained on the same split"},
		},
		Run: scoring.RunInfo{Path: "clefbench-demo/run", Digest: "sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9", Seed: 42},
	}
	for _, l := range demoLanes() {
		c.Backends = append(c.Backends, l.backend())
	}
	c.Pairs = demoPairs(c)
	return c
}

func demoProfile() *scoring.Profile {
	return &scoring.Profile{
		Name:    "demo",
		Weights: scoring.Weights{Accuracy: 0.4, Latency: 0.25, Cost: 0.15, Auditability: 0.2},
		Latency: scoring.LatencyAnchors{Good: 50 * time.Microsecond, Bad: 100 * time.Millisecond, Deadline: 15 * time.Millisecond},
		Cost:    scoring.CostAnchors{Good: 0.0001, Bad: 10},
		Floors:  scoring.Floors{Attainment: 0.95, Auditability: 30},
		Tasks: map[string]scoring.Task{
			"api-abuse":    {Candidates: demoActions[0], Baseline: 0.583, Top: 1, Majority: 0.583, Ceiling: nan, LabelStrength: "weak"},
			"edge-routing": {Candidates: demoActions[1], Baseline: 0.412, Top: 1, Majority: 0.412, Ceiling: 0.8731},
			"fraud":        {Candidates: demoActions[2], Baseline: 0.719, Top: 1, Majority: 0.719, Ceiling: nan, LabelStrength: "strong"},
		},
		Prices: &scoring.PriceBook{Currency: "USD", Digest: "9b74c9897bac770ffc029102a200c5de", Prices: []scoring.Price{
			{Backend: "*", Unit: "cpu-second", Price: 0.0000112, Effective: "2026-05-01"},
		}},
		Seed: 7,
	}
}

func demoPairs(c *scoring.Scorecard) []scoring.Pair {
	var out []scoring.Pair
	base := c.Backends[0]
	for _, x := range c.Backends[1:] {
		d := x.Total.Value - base.Total.Value
		out = append(out, scoring.Pair{Base: base.Name, New: x.Name, Measure: "total", N: 4087, Left: 7 * int64(x.Counts.Timeouts/7),
			Diff: d, Lo: d - 1.4, Hi: d + 1.4, P: 0.0000021, MDE: 2.0, OnlyBase: 112, OnlyNew: 301, Verdict: "better"})
		for i, s := range demoScenarios {
			p := scoring.Pair{Base: base.Name, New: x.Name, Scenario: s, Measure: "utility", N: demoOffered[i],
				Diff: 0.021, Lo: -0.004, Hi: 0.046, P: 0.101, MDE: 0.036, OnlyBase: 20, OnlyNew: 31, Verdict: "no difference shown"}
			if s == "fraud" && x.Name == "rules" {
				p.Diff, p.Lo, p.Hi, p.P, p.Verdict = -0.031, -0.052, -0.011, 0.0034, "worse"
			}
			out = append(out, p)
		}
	}
	return out
}

// hostileName tries to leave an attribute, an element, a script, a table cell and a
// terminal line.
const hostileName = "\"><img src=x onerror=alert(1)></script><!--|`*\x1b[2J\u202e"

// hostileCard has names from someone who does not wish us well, very long ones, other
// scripts, NA and NaN in every place, and floors that are not held.
func hostileCard() *scoring.Scorecard {
	c := demoCard()
	rename := map[string]string{
		"rules":    hostileName,
		"strategy": "战略-strategy-日本語-🚦",
		"flash":    "@cf/cloudflare/clef-flash-experimental-2026-05-01-with-a-name-that-does-not-end",
	}
	evil := "fraud</script><script>alert(2)</script>\n| x |"
	for i := range c.Backends {
		b := &c.Backends[i]
		if n, ok := rename[b.Name]; ok {
			b.Name = n
		}
		b.Worst = evil
		b.Scenarios[evil] = b.Scenarios["fraud"]
		delete(b.Scenarios, "fraud")
	}
	c.Profile.Tasks[evil] = c.Profile.Tasks["fraud"]
	for i := range c.Pairs {
		if n, ok := rename[c.Pairs[i].New]; ok {
			c.Pairs[i].New = n
		}
		if c.Pairs[i].Scenario == "fraud" {
			c.Pairs[i].Scenario = evil
		}
	}
	c.Ties = [][]string{{rename["flash"], rename["strategy"]}, {"decide"}, {"recorded"}}
	refuse(c, evil)
	c.Warnings = append(c.Warnings,
		scoring.Warning{Code: "hostile", Backend: hostileName, Text: "</script><!-- <b>bold</b> ]]> {{.}} [click](javascript:alert(3)) | pipe\nline"},
		scoring.Warning{Code: "code-only", Scenario: evil})
	c.Run.Partial, c.Dataset.Intact = true, false
	c.Run.Path = "../run/<evil>&'\""
	return c
}

// refuse makes NA of one backend's cost and total, of another's accuracy in a scenario,
// leaves one without an interval and one without a p99, and one below a floor.
func refuse(c *scoring.Scorecard, scenario string) {
	hostile, decide, recorded := &c.Backends[1], &c.Backends[4], &c.Backends[0]
	hostile.Categories.Cost.Estimate = refusal("no price for <model>")
	hostile.CostPer1000 = refusal("no price for <model>")
	hostile.Total, hostile.Geometric = refusal("cost is NA"), nan
	sc := decide.Scenarios[scenario]
	sc.Categories.Accuracy.Estimate = refusal("no labels")
	sc.ActionAccuracy, sc.Total = refusal("no labels"), refusal("accuracy is NA")
	sc.Majority, sc.Ceiling, sc.Confusion = nan, nan, nil
	decide.Scenarios[scenario] = sc
	decide.Counts.Timeouts, decide.Counts.Answered = 94, 4000
	decide.LatencyNs.P99 = nan
	recorded.Eligible, recorded.Ineligible = false, []string{"auditability 24.0 is below the floor of 30"}
	recorded.Total.Lo, recorded.Total.Hi, recorded.Total.NoInterval = nan, nan, "too few clusters (14 < 20)"
	recorded.LatencyNs.Cold, recorded.Agreement = nan, refusal("the record agrees with itself")
	c.Pairs[0].P, c.Pairs[0].MDE, c.Pairs[0].Lo, c.Pairs[0].Hi = nan, nan, nan, nan
	c.Pairs[0].Verdict = "not comparable"
}

// oneCard has a single backend in a single scenario, and no pair.
func oneCard() *scoring.Scorecard {
	c := demoCard()
	b := c.Backends[2]
	b.Scenarios = map[string]scoring.ScenarioScore{"fraud": b.Scenarios["fraud"]}
	c.Backends, c.Pairs, c.Warnings = []scoring.BackendScore{b}, nil, nil
	c.Ties = [][]string{{"strategy"}}
	return c
}

// emptyCard has backends of which nothing could be measured.
func emptyCard() *scoring.Scorecard {
	c := demoCard()
	c.Profile.Prices = nil
	for i := range c.Backends {
		b := &c.Backends[i]
		b.Result = refusedScore(b.Counts.Offered)
		b.Worst = ""
		for name := range b.Scenarios {
			b.Scenarios[name] = scoring.ScenarioScore{Result: refusedScore(10), Majority: nan, Ceiling: nan, BaseUtility: nan, TopUtility: nan}
		}
	}
	c.Pairs, c.Ties = nil, nil
	return c
}

func refusedScore(offered int64) scoring.Result {
	none := func(reason string) scoring.Category { return scoring.Category{Estimate: refusal(reason)} }
	return scoring.Result{
		Total: refusal("accuracy, latency, cost and auditability are NA"), Geometric: nan,
		Categories: scoring.Categories{Accuracy: none("no labels"), Latency: none("not measured in this run"), Cost: none("no price book"), Auditability: none("less than half of its weight was measured")},
		Counts:     scoring.Counts{Offered: offered, NotReplayable: offered, Reasons: map[string]int64{"no-strategy": offered}},
		LatencyNs:  scoring.Quantiles{P50: nan, P95: nan, P99: nan, Cold: nan}, ActionAccuracy: refusal("no labels"),
		CostPer1000: refusal("no price book"), Agreement: refusal("no answers"),
	}
}

// cards are the fixtures by the name of their goldens.
func cards() map[string]*scoring.Scorecard {
	return map[string]*scoring.Scorecard{"demo": demoCard(), "hostile": hostileCard(), "one": oneCard(), "empty": emptyCard()}
}
