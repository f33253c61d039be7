package scoring

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// full is a scorecard in which everything is measured, over two scenarios.
func full(t testing.TB) *Scorecard {
	t.Helper()
	in, rows := mixed(8, 400, 0.9, 0.8)
	for i, r := range rows {
		for _, o := range r.Outcomes {
			if i%2 == 0 {
				o.Scenario = "s2"
			}
		}
	}
	in.Audit = outcomes(auditOf(rows, 80))
	card := mustScore(t, in, priced(t))
	for _, b := range card.Backends {
		if b.Total.NA != "" {
			t.Fatalf("total is NA: %s", b.Total.NA)
		}
	}
	return card
}

// reread sends a scorecard through its JSON.
func reread(t testing.TB, card *Scorecard) *Scorecard {
	t.Helper()
	var out Scorecard
	if err := json.Unmarshal([]byte(asJSON(t, card)), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestScorecardSurvivesItsJSON(t *testing.T) {
	card := full(t)
	again := reread(t, card)
	if err := Recompute(again); err != nil {
		t.Error(err)
	}
	if d := Diff(card, again); len(d) != 0 {
		t.Errorf("diff %q", d)
	}
	again.Dataset.Ledger.Dropped = map[string]uint64{} // null or empty says the same
	again.Run.Path = "elsewhere"
	if d := Diff(card, again); len(d) != 0 {
		t.Errorf("a moved run: %q", d)
	}
}

func TestRecomputeFindsEveryLie(t *testing.T) {
	card := full(t)
	edit := func(name string, f func(*ScenarioScore)) func(*Scorecard) {
		return func(c *Scorecard) {
			s := c.Backends[0].Scenarios[name]
			f(&s)
			c.Backends[0].Scenarios[name] = s
		}
	}
	up := func(n *Number) { *n = Number(math.Nextafter(float64(*n), 1e9)) }
	for name, tc := range map[string]struct {
		lie  func(*Scorecard)
		want string
	}{
		"total by one bit":  {func(c *Scorecard) { up(&c.Backends[0].Total.Value) }, "lane0: total"},
		"category":          {func(c *Scorecard) { up(&c.Backends[1].Categories.Cost.Value) }, "lane1: cost"},
		"scenario category": {edit("s1", func(s *ScenarioScore) { up(&s.Categories.Latency.Value) }), "lane0: s1: latency"},
		"scenario total":    {edit("s2", func(s *ScenarioScore) { s.Total.Value = 99.5 }), "lane0: s2: total"},
		"utility":           {edit("s1", func(s *ScenarioScore) { s.Categories.Accuracy.Terms[0].Value = 0.99 }), "lane0: s1: A_dec"},
		"quantile":          {edit("s1", func(s *ScenarioScore) { s.Categories.Latency.Terms[1].Value /= 2 }), "lane0: s1: latency"},
		"price":             {edit("s1", func(s *ScenarioScore) { s.Categories.Cost.Terms[0].Value = 1e-9 }), "lane0: s1: price"},
		"audit":             {edit("s1", func(s *ScenarioScore) { s.Categories.Auditability.Terms[1].Value = 0.5 }), "lane0: s1: auditability"},
		"share":             {func(c *Scorecard) { c.Backends[0].Categories.Accuracy.Terms[0].Weight = 0.9 }, "lane0: accuracy"},
		"missing term":      {func(c *Scorecard) { c.Backends[0].Categories.Latency.Terms = nil }, "lane0: latency: scenario s1"},
		"geometric":         {func(c *Scorecard) { up(&c.Backends[0].Geometric) }, "lane0: geometric"},
		"counts":            {func(c *Scorecard) { c.Backends[0].Counts.Answered++ }, "lane0: counts"},
		"hidden failures":   {edit("s1", func(s *ScenarioScore) { s.Counts.Offered-- }), "lane0: s1: counts"},
		"eligible":          {func(c *Scorecard) { c.Backends[0].Eligible = !c.Backends[0].Eligible }, "lane0: eligible"},
		"floors":            {func(c *Scorecard) { c.Backends[0].Ineligible = []string{"x"} }, "lane0: ineligible"},
		"verdict":           {func(c *Scorecard) { c.Pairs[0].Verdict = VerdictBetter; c.Pairs[0].Lo = -1 }, "pair lane0, lane1"},
		"p above 5 %":       {func(c *Scorecard) { c.Pairs[0].Verdict, c.Pairs[0].Lo, c.Pairs[0].P = VerdictBetter, 1, 0.06 }, "pair lane0, lane1"},
		"p is not a number": {func(c *Scorecard) {
			c.Pairs[0].Verdict, c.Pairs[0].Lo, c.Pairs[0].P = VerdictBetter, 1, Number(math.NaN())
		}, "pair lane0, lane1"},
		"ties":        {func(c *Scorecard) { c.Ties = nil }, "ties"},
		"worst":       {func(c *Scorecard) { c.Backends[0].Worst = "s9" }, "worst scenario"},
		"hidden NA":   {func(c *Scorecard) { c.Backends[0].Total.NA = "x" }, "lane0: total: NA"},
		"weights":     {func(c *Scorecard) { c.Profile.Weights = Weights{0.25, 0.25, 0.25, 0.25} }, "lane0: total"},
		"bad profile": {func(c *Scorecard) { c.Profile.Weights.Cost = 0.5 }, "weights sum to"},
		"no profile":  {func(c *Scorecard) { c.Profile = nil }, "no profile"},
		"version":     {func(c *Scorecard) { c.ScoreVersion = "0" }, `score version "0"`},
	} {
		c := reread(t, card)
		tc.lie(c)
		err := Recompute(c)
		if !errors.Is(err, ErrArithmetic) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v, want %s", name, err, tc.want)
		}
	}
}

// Hand-made reports must not crash the verifier.
func TestRecomputeOfFragments(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"score_version":"1"}`,
		`{"score_version":"1","profile":{"weights":{"accuracy":1},"latency":{"good_ns":1,"bad_ns":2,"deadline_ns":1},"cost":{"good":1,"bad":2}},"backends":[{"name":"a","scenarios":{"s":{}}}],"pairs":[{}],"ties":[["a"]]}`,
	} {
		var c Scorecard
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if err := Recompute(&c); !errors.Is(err, ErrArithmetic) {
			t.Errorf("%s: error is %v", text, err)
		}
	}
}

func TestDiffNamesThePlace(t *testing.T) {
	a := full(t)
	b := reread(t, a)
	b.Backends[1].Total.Lo = 1
	b.Backends[0].Counts.Reasons = map[string]int64{"x": 1}
	b.Warnings = append(b.Warnings, Warning{Code: "new"})
	got := strings.Join(Diff(a, b), "\n")
	for _, want := range []string{".backends[1].total.lo: ", ", 1", ".backends[0].counts.reasons: null, {\"x\":1}", ".warnings: "} {
		if !strings.Contains(got, want) {
			t.Errorf("diff lacks %s:\n%s", want, got)
		}
	}
	if n := len(Diff(a, b)); n != 3 {
		t.Errorf("%d differences:\n%s", n, got)
	}
}

func TestNumbersInJSON(t *testing.T) {
	for in, want := range map[Number]string{
		0.1: "0.1", Number(math.Inf(1)): "null", 1e300: "1e+300", 3: "3",
	} {
		if got := asJSON(t, in); got != want {
			t.Errorf("%v is written %s", in, got)
		}
	}
	if got := asJSON(t, Number(math.NaN())); got != "null" {
		t.Errorf("NaN is written %s", got)
	}
	var n Number
	if err := json.Unmarshal([]byte("null"), &n); err != nil || !math.IsNaN(float64(n)) {
		t.Errorf("null is read as %v, %v", n, err)
	}
	if err := json.Unmarshal([]byte(`"x"`), &n); err == nil {
		t.Error("text is read as a number")
	}
}
