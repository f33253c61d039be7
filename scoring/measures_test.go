package scoring

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/snapshot"
)

func TestLatencyCurve(t *testing.T) {
	a := LatencyAnchors{Good: time.Microsecond, Bad: 100 * time.Microsecond, Deadline: time.Second}
	for _, tc := range []struct{ ns, want float64 }{
		{1, 1}, {1000, 1}, {10_000, 0.5}, {100_000, 0}, {1e9, 0}, {math.Inf(1), 0}, {math.Sqrt(1000 * 10_000), 0.75},
	} {
		is(t, "s", Number(latencyCurve(tc.ns, a)), tc.want)
	}
}

// 400 requests at 1 ms, of which 20 time out: attainment .95, p50 and p95 at 1 ms, p99
// beyond every answer.
func TestLatencyByHand(t *testing.T) {
	in := one(400, func(i int, _ *Row, o *snapshot.Outcome) {
		if i%20 == 0 {
			o.Status, o.Action, o.Latency = decision.Timeout, "", decision.Some(time.Second)
		}
	})
	b, _ := scoreOne(t, in, preset(t, "default"))
	lat := b.Scenarios["s1"].Categories.Latency
	s := math.Log(1e9/1e6) / math.Log(1e9/5e5)
	is(t, "attainment", lat.term("attainment").Value, 0.95)
	// 1 ms falls into the bucket [995,328, 1,003,520), whose middle stands for it.
	if got, want := float64(lat.Value), 100*0.95*(0.25+0.35)*s; math.Abs(got-want) > 0.05 {
		t.Errorf("latency is %v, want about %v", got, want)
	}
	isNA(t, "p99", lat.term("p99").Estimate, "beyond every answer")
	if !math.IsNaN(float64(b.LatencyNs.P99)) || math.Abs(float64(b.LatencyNs.P50)-1e6) > 4000 {
		t.Errorf("quantiles are %+v", b.LatencyNs)
	}
	// A slow answer is not late: attainment counts answers within the deadline.
	in = one(400, func(i int, _ *Row, o *snapshot.Outcome) {
		if i%4 == 0 {
			o.Latency = decision.Some(100*time.Millisecond + 1)
		}
	})
	b, _ = scoreOne(t, in, preset(t, "default"))
	is(t, "attainment", b.Categories.Latency.term("attainment").Value, 0.75)
}

func TestQuantilesThatAreDropped(t *testing.T) {
	for _, tc := range []struct {
		n    int
		want []string
		na   string
	}{
		{4, nil, "too few requests"}, {5, []string{"p50"}, ""}, {58, []string{"p50"}, ""}, {59, []string{"p50", "p95"}, ""},
		{298, []string{"p50", "p95"}, ""}, {299, []string{"p50", "p95", "p99"}, ""},
	} {
		b, card := scoreOne(t, one(tc.n, func(int, *Row, *snapshot.Outcome) {}), preset(t, "default"))
		lat := b.Scenarios["s1"].Categories.Latency
		if tc.na != "" {
			isNA(t, "latency", lat.Estimate, tc.na)
			continue
		}
		var names []string
		sum := 0.0
		for _, term := range lat.Terms[1:] {
			names = append(names, term.Name)
			sum += float64(term.Weight)
		}
		if !slices.Equal(names, tc.want) || math.Abs(sum-1) > 1e-12 {
			t.Errorf("%d requests use %v with weights that sum to %v", tc.n, names, sum)
		}
		// All requests took 1 ms, so dropping terms does not move the score.
		s := math.Log(1e9/1e6) / math.Log(1e9/5e5)
		if got := float64(lat.Value); math.Abs(got-100*s) > 0.05 {
			t.Errorf("%d requests: latency %v, want %v", tc.n, got, 100*s)
		}
		if dropped := 3 - len(tc.want); len(warned(card, WarnQuantile)) != dropped {
			t.Errorf("%d requests: warnings %v", tc.n, card.Warnings)
		}
	}
}

func warned(card *Scorecard, code string) []Warning {
	var out []Warning
	for _, w := range card.Warnings {
		if w.Code == code {
			out = append(out, w)
		}
	}
	return out
}

func TestLatencyThatWasNotMeasured(t *testing.T) {
	missing := func(every int) Input {
		return one(400, func(i int, _ *Row, o *snapshot.Outcome) {
			if i%every == 0 {
				o.Latency = decision.Opt[time.Duration]{}
			}
		})
	}
	b, _ := scoreOne(t, missing(1), preset(t, "default"))
	isNA(t, "latency", b.Categories.Latency.Estimate, "latency was not measured")
	isNA(t, "total", b.Total, "latency: latency was not measured")
	b, _ = scoreOne(t, missing(4), preset(t, "default"))
	isNA(t, "latency", b.Categories.Latency.Estimate, "missing for 25.0 %")
	b, card := scoreOne(t, missing(10), preset(t, "default"))
	is(t, "attainment", b.Categories.Latency.term("attainment").Value, 1)
	if len(warned(card, WarnUntimed)) != 1 {
		t.Errorf("warnings %v", card.Warnings)
	}
}

// Rows of one request share its latency, usage and price: they are counted once.
func TestRequestsOfSeveralRows(t *testing.T) {
	p := preset(t, "default")
	p.Prices = &PriceBook{Currency: "USD", Prices: []Price{{Backend: "*", Unit: UnitTokensIn, Price: 2}}}
	in := one(60, func(i int, _ *Row, o *snapshot.Outcome) {
		o.RequestID = idOf(uint64(1000 + i/3))
		o.Usage.TokensIn = decision.Some[int64](300)
	})
	b, _ := scoreOne(t, in, p)
	// 20 requests of 300 tokens at 2e-6 over 60 answered decisions.
	is(t, "price", b.CostPer1000.Value, 1000*20*300*2e-6/60)
	if got := b.Scenarios["s1"].Categories.Latency.Evidence; !strings.HasPrefix(got, "20 requests") {
		t.Errorf("evidence is %q", got)
	}
	if b.Counts.Offered != 60 || b.Counts.Clusters != 20 {
		t.Errorf("counts are %+v", b.Counts)
	}
}

func TestCostByHand(t *testing.T) {
	cpu := func(_ int, _ *Row, o *snapshot.Outcome) { o.Usage.CPU = decision.Some(2 * time.Millisecond) }
	book := []Price{
		{Backend: "*", Unit: UnitCPUSecond, Price: 0.5},
		{Backend: "rules", Unit: UnitDecision, Price: 1e-5}, {Backend: "rules", Unit: UnitCPUSecond, Price: 0.1},
		{Backend: "named", Unit: UnitGiBEgress, Price: 1024},
		{Backend: "model", Unit: UnitTokensOut, Model: "m1", Price: 8}, {Backend: "model", Unit: UnitTokensOut, Price: 1},
		{Backend: "strict", Unit: UnitTokensOut, Model: "m1", Price: 8},
		{Backend: "free", Unit: UnitDecision, Price: 0},
	}
	for _, tc := range []struct {
		name, lane, kind string
		change           func(i int, r *Row, o *snapshot.Outcome)
		price            float64
		na               string
	}{
		{"any backend", "x", "flash", cpu, 1000 * 0.002 * 0.5, ""},
		{"kind before any, units add up", "x", "rules", cpu, 1000 * (1e-5 + 0.002*0.1), ""},
		{"name before kind", "named", "rules", func(_ int, _ *Row, o *snapshot.Outcome) { o.Usage.BytesOut = decision.Some[int64](1 << 20) }, 1000, ""},
		{"model before none", "x", "model", func(i int, _ *Row, o *snapshot.Outcome) {
			o.Usage.TokensOut = decision.Some[int64](100)
			if i%2 == 0 {
				o.Artefact.ModelResolved = "m1"
			}
		}, 1000 * (8e-4 + 1e-4) / 2, ""},
		{"provider before all", "x", "rules", func(_ int, _ *Row, o *snapshot.Outcome) { o.Cost = decision.Some[int64](5_000_000) }, 5, ""},
		{"attempts", "x", "rules", func(i int, r *Row, o *snapshot.Outcome) { cpu(i, r, o); o.Attempts = decision.Some[int8](3) }, 1000 * (3e-5 + 0.002*0.1), ""},
		{"free", "x", "free", cpu, 0, ""},
		{"failed calls cost too", "x", "rules", func(i int, r *Row, o *snapshot.Outcome) {
			if cpu(i, r, o); i < 10 {
				o.Status, o.Action = decision.Error, ""
			}
		}, 1000 * 40 * (1e-5 + 0.002*0.1) / 30, ""},
		{"not replayable costs nothing", "x", "rules", func(i int, r *Row, o *snapshot.Outcome) {
			if cpu(i, r, o); i < 10 {
				o.Status, o.Action = decision.NotReplayable, ""
			}
		}, 1000 * (1e-5 + 0.002*0.1), ""},
		{"failed calls of unknown usage cost what the others cost", "x", "flash", func(i int, r *Row, o *snapshot.Outcome) {
			if cpu(i, r, o); i < 4 {
				o.Status, o.Action, o.Usage.CPU = decision.Timeout, "", decision.Opt[time.Duration]{}
			}
		}, 1000 * 40 * 0.001 / 36, ""},
		{"too many of them", "x", "flash", func(i int, r *Row, o *snapshot.Outcome) {
			if cpu(i, r, o); i < 9 {
				o.Status, o.Action, o.Usage.CPU = decision.Timeout, "", decision.Opt[time.Duration]{}
			}
		}, 0, "unknown usage of 22.5 % of the calls"},
		{"unknown usage", "x", "flash", func(int, *Row, *snapshot.Outcome) {}, 0, "unknown usage: cpu-second"},
		{"unknown model", "x", "strict", func(_ int, _ *Row, o *snapshot.Outcome) {
			o.Usage.TokensOut, o.Artefact.ModelResolved = decision.Some[int64](1), "m2"
		}, 0, `no price for 1M-tokens-out of model "m2"`},
		{"nothing answered", "x", "rules", func(i int, r *Row, o *snapshot.Outcome) {
			cpu(i, r, o)
			o.Status, o.Action = decision.Error, ""
		}, 0, "no answered decisions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := preset(t, "default")
			p.Prices = &PriceBook{Currency: "USD", Prices: book}
			in := one(40, func(i int, r *Row, o *snapshot.Outcome) {
				o.Backend = tc.lane
				tc.change(i, r, o)
			})
			in.Lanes[0] = Lane{tc.lane, tc.kind}
			b, _ := scoreOne(t, in, p)
			if tc.na != "" {
				isNA(t, "cost", b.Categories.Cost.Estimate, tc.na)
				isNA(t, "price", b.CostPer1000, tc.na)
				return
			}
			is(t, "price", b.CostPer1000.Value, tc.price)
			want := 100.0
			if tc.price > 0 {
				want = 100 * min(1, max(0, math.Log(10/tc.price)/math.Log(10/0.0001)))
			}
			is(t, "cost", b.Categories.Cost.Value, want)
		})
	}
}

func TestPriceWarnings(t *testing.T) {
	p := preset(t, "default")
	in := one(30, func(int, *Row, *snapshot.Outcome) {})
	_, card := scoreOne(t, in, p)
	if len(warned(card, WarnNoPrices)) != 1 {
		t.Errorf("warnings %v", card.Warnings)
	}
	p.Prices = &PriceBook{Prices: []Price{
		{Backend: "*", Unit: UnitDecision, Price: 1, Note: "an estimate of ours", URL: "https://example.com"},
		{Backend: "*", Unit: UnitCPUSecond, Price: 1},
	}}
	_, card = scoreOne(t, in, p)
	if len(warned(card, WarnEstimated)) != 1 || len(warned(card, WarnNoReceipt)) != 1 {
		t.Errorf("warnings %v", card.Warnings)
	}
}

// A perfect record is no certainty: the lower bound is that of n successes in n.
func TestCertaintyIsBounded(t *testing.T) {
	in := one(150, func(i int, r *Row, o *snapshot.Outcome) {
		if i%2 == 0 {
			r.Label.Action, o.Action = "block", "block"
		}
	})
	b, _ := scoreOne(t, in, preset(t, "default"))
	lo, _ := stats.ClopperPearson(150, 150, 0.95)
	acc := b.Categories.Accuracy
	if got := float64(acc.Lo); acc.Value != 100 || acc.Hi != 100 || math.Abs(got-100*(2*lo-1)) > 0.3 {
		t.Errorf("accuracy is %+v, want a lower bound of about %v", acc.Estimate, 100*(2*lo-1))
	}
}

func TestTotalsByHand(t *testing.T) {
	w := Weights{0.40, 0.25, 0.15, 0.20}
	is(t, "total", Number(totalScore([4]float64{50, 60, 70, 80}, w)), 20+15+10.5+16)
	is(t, "perfect", Number(totalScore([4]float64{100, 100, 100, 100}, w)), 100)
	// The always-allow constant of the trial: 57.3 in total, geometric mean 15.4.
	c := [4]float64{0, 100, 100, 86.5}
	is(t, "constant", Number(totalScore(c, w)), 57.3)
	if g := geometricScore(c, w); math.Abs(g-15.4) > 0.05 {
		t.Errorf("geometric mean of the constant is %v", g)
	}
	// A category without weight may be NA.
	if v := totalScore([4]float64{50, math.NaN(), 50, 50}, Weights{0.5, 0, 0.25, 0.25}); v != 50 {
		t.Errorf("total is %v", v)
	}
	if v := totalScore([4]float64{50, math.NaN(), 50, 50}, w); !math.IsNaN(v) {
		t.Errorf("total without latency is %v", v)
	}
}

func TestFloors(t *testing.T) {
	p := preset(t, "default")
	nan := Number(math.NaN())
	term := func(name string, v, lo Number, no string) Term {
		return Term{Name: name, Estimate: Estimate{Value: v, Lo: lo, NoInterval: no}}
	}
	good := func() Categories {
		return Categories{
			Accuracy:     Category{Estimate: Estimate{Value: 50}, Terms: []Term{term("A_dec", 50, 40, "")}},
			Latency:      Category{Estimate: Estimate{Value: 50}, Terms: []Term{term("attainment", 0.95, 0.9, "")}},
			Auditability: Category{Estimate: Estimate{Value: 30}},
		}
	}
	for name, tc := range map[string]struct {
		change func(*Categories)
		want   string
	}{
		"held":              {func(*Categories) {}, ""},
		"bound at 0":        {func(c *Categories) { c.Accuracy.Terms[0].Lo = 0 }, "lower bound of accuracy 0 is not above 0"},
		"no interval":       {func(c *Categories) { c.Accuracy.Terms[0] = term("A_dec", 50, nan, "too few clusters") }, "no lower bound of accuracy"},
		"accuracy NA":       {func(c *Categories) { c.Accuracy.NA = "no labels" }, "accuracy is NA: no labels"},
		"attainment":        {func(c *Categories) { c.Latency.Terms[0].Value = 0.9499 }, "attainment 0.9499 is below 0.95"},
		"latency NA":        {func(c *Categories) { c.Latency.NA = "x" }, "latency is NA: x"},
		"auditability":      {func(c *Categories) { c.Auditability.Value = 29 }, "auditability 29 is below 30"},
		"auditability NA":   {func(c *Categories) { c.Auditability.NA = "y" }, "auditability is NA: y"},
		"cost has no floor": {func(c *Categories) { c.Cost.NA = "z" }, ""},
	} {
		c := good()
		tc.change(&c)
		if got := strings.Join(floors(p, &c), "; "); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	free := *p
	free.Weights = Weights{Cost: 1}
	bad := Categories{Accuracy: Category{Estimate: Estimate{NA: "x"}}, Latency: Category{Estimate: Estimate{NA: "x"}}, Auditability: Category{Estimate: Estimate{NA: "x"}}}
	if got := floors(&free, &bad); len(got) != 0 {
		t.Errorf("floors of categories without weight: %q", got)
	}
}

// Failed calls of unknown usage are counted in calls, however many rows a call has: the
// price of 1,000 decisions does not hang on how decisions are put into requests.
func TestUnpricedCallsOfSeveralRows(t *testing.T) {
	book := []Price{{Backend: "tokens", Unit: UnitTokensIn, Price: 2}, {Backend: "both", Unit: UnitTokensIn, Price: 2}, {Backend: "both", Unit: UnitDecision, Price: 1e-5}}
	for _, perCall := range []int{1, 2, 5} {
		run := func(lane string, failedOf20 int) BackendScore {
			p := preset(t, "default")
			p.Prices = &PriceBook{Currency: "USD", Prices: book}
			in := one(100*perCall, func(i int, _ *Row, o *snapshot.Outcome) {
				call := i / perCall
				o.Backend, o.RequestID = lane, idOf(uint64(1e6+call))
				if call%20 < failedOf20 {
					o.Status, o.Action = decision.Error, ""
				} else {
					o.Usage.TokensIn = decision.Some(int64(300 * perCall))
				}
			})
			in.Lanes[0] = Lane{lane, "systemone"}
			b, card := scoreOne(t, in, p)
			if b.CostPer1000.NA == "" && len(warned(card, WarnUsage)) != 1 {
				t.Errorf("warnings %v", card.Warnings)
			}
			return b
		}
		// 100 calls at the price of the 80 (or 90) that told their usage.
		is(t, "price by tokens", run("tokens", 4).CostPer1000.Value, 1000*300*2e-6/0.8)
		is(t, "price by tokens and decisions", run("both", 2).CostPer1000.Value, 1000*(300*2e-6+1e-5)/0.9)
		for _, lane := range []string{"tokens", "both"} {
			isNA(t, "price", run(lane, 5).CostPer1000, "unknown usage of 25.0 % of the calls")
		}
	}
}
