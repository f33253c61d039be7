package reports

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

func summaryOf(card *scoring.Scorecard) string {
	p := layOut(card, Options{})
	return strings.Join(append(p.alerts, p.summary...), "\n")
}

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*scoring.Scorecard)
		want   []string
	}{
		{"tie", func(*scoring.Scorecard) {}, []string{
			"strategy (80.1) and flash (80.3) are tied in the first place: this run cannot tell them apart.",
			"4,094 decisions in 3,891 requests, 3 scenarios, through 5 backends.",
			"Switching to flash would choose another action than the record in 14.2% of decisions (95% interval 13.2% to 15.3%); it would change the total by +21.8 points",
		}},
		{"one leader", func(c *scoring.Scorecard) { c.Ties[0] = c.Ties[0][:1] }, []string{"flash leads with 80.3 of 100 (95% interval 79.2 to 81.5)."}},
		{"leader without interval", func(c *scoring.Scorecard) {
			c.Ties[0] = c.Ties[0][:1]
			c.Backends[3].Total.Lo, c.Backends[3].Total.Hi = nan, nan
		}, []string{"flash leads with 80.3 of 100."}},
		{"no backends", func(c *scoring.Scorecard) { c.Backends = nil }, []string{"No backend was scored."}},
		{"nobody leads", func(c *scoring.Scorecard) { c.Ties = nil }, []string{"No backend leads: none is eligible and has a total."}},
		{"partial", func(c *scoring.Scorecard) { c.Run.Partial = true }, []string{"This run was interrupted"}},
		{"not intact", func(c *scoring.Scorecard) { c.Dataset.Intact = false }, []string{"The data set is not intact"}},
		{"refused for one", func(c *scoring.Scorecard) { c.Backends[1].Categories.Cost.Estimate = refusal("no price for x.") },
			[]string{"Refused (NA): the cost of rules: no price for x."}},
		{"refused for all", func(c *scoring.Scorecard) {
			for i := range c.Backends {
				c.Backends[i].Categories.Accuracy.Estimate = refusal("no labels")
			}
		}, []string{"Refused (NA): the accuracy of every backend: no labels."}},
		{"not eligible", func(c *scoring.Scorecard) {
			for _, i := range []int{1, 3} {
				c.Backends[i].Eligible, c.Backends[i].Ineligible = false, []string{"attainment 0.9 is below 0.95"}
			}
		}, []string{"rules and flash are not eligible: attainment 0.9 is below 0.95.", "strategy leads with"}},
		{"worse than the record", func(c *scoring.Scorecard) {
			c.Ties = [][]string{{"rules"}}
		}, []string{"It is worse than the record in fraud (utility)."}},
		{"pair the other way round", func(c *scoring.Scorecard) {
			c.Ties = [][]string{{"rules"}}
			for i := range c.Pairs {
				p := &c.Pairs[i]
				back, _ := towards(*p, p.New, p.Base)
				*p = back
			}
		}, []string{"change the total by +19.6 points (95% interval +18.2 to +21.0): better.", "It is worse than the record in fraud (utility)."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			card := demoCard()
			tt.change(card)
			got := summaryOf(card)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("summary lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

func TestTowards(t *testing.T) {
	p := scoring.Pair{Base: "a", New: "b", Diff: 2, Lo: 1, Hi: 4, OnlyBase: 5, OnlyNew: 6, Verdict: scoring.VerdictBetter}
	back, ok := towards(p, "b", "a")
	if want := (scoring.Pair{Base: "b", New: "a", Diff: -2, Lo: -4, Hi: -1, OnlyBase: 6, OnlyNew: 5, Verdict: scoring.VerdictWorse}); !ok || back != want {
		t.Errorf("got %+v, want %+v", back, want)
	}
	again, ok := towards(back, "a", "b")
	if !ok || again != p {
		t.Errorf("there and back: %+v", again)
	}
	if _, ok := towards(p, "a", "c"); ok {
		t.Error("another pair")
	}
}

func TestPlaces(t *testing.T) {
	better := func(base, new string) scoring.Pair {
		return scoring.Pair{Base: base, New: new, Measure: scoring.MeasureTotal, Verdict: scoring.VerdictBetter}
	}
	for _, tt := range []struct {
		name  string
		ties  [][]string
		out   []string // not eligible
		pairs []scoring.Pair
		want  map[string]string
	}{
		{"plain", [][]string{{"a"}, {"b", "c"}, {"d"}}, nil, nil, map[string]string{"a": "1", "b": "2=", "c": "2=", "d": "4"}},
		{"one out", [][]string{{"a"}, {"b", "c"}, {"d"}}, []string{"a"}, nil, map[string]string{"b": "1=", "c": "1=", "d": "3"}},
		{"tie resolved", [][]string{{"a", "b"}, {"c", "d"}}, []string{"b", "c", "d"}, nil, map[string]string{"a": "1"}},
		{"a leader is out and the others differ", [][]string{{"a", "b", "c"}, {"d"}}, []string{"a"}, []scoring.Pair{better("c", "b")}, map[string]string{"b": "1", "c": "2", "d": "3"}},
		{"none", nil, nil, nil, map[string]string{}},
	} {
		card := &scoring.Scorecard{Ties: tt.ties, Pairs: tt.pairs}
		for _, n := range []string{"a", "b", "c", "d"} {
			x := scoring.BackendScore{Name: n}
			x.Eligible = !strings.Contains(strings.Join(tt.out, " "), n)
			card.Backends = append(card.Backends, x)
		}
		got := places(card)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		for n, p := range tt.want {
			if got[n] != p {
				t.Errorf("%s: %s has place %q, want %q", tt.name, n, got[n], p)
			}
		}
	}
}

// scored is a scorecard that package scoring made: 600 decisions, three lanes, the last
// of which times out now and then.
func scored(t testing.TB, labels bool) *scoring.Scorecard {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	var rows iter.Seq2[*scoring.Row, error] = func(yield func(*scoring.Row, error) bool) {
		for n := range 600 {
			id := decision.ID{15: byte(n), 14: byte(n >> 8), 0: 1}
			ref := snapshot.Ref{Segment: "s", Row: int64(n)}
			truth := []string{"allow", "block"}[rng.IntN(2)]
			row := &scoring.Row{}
			if labels {
				row.Label = &snapshot.Label{Ref: ref, ID: id, Action: truth}
			}
			for lane, right := range []float64{0.7, 0.9, 0.9} {
				o := &snapshot.Outcome{Backend: []string{"recorded", "rules", "remote"}[lane],
					Ref: ref, ID: id, RequestID: id, Scenario: []string{"fraud", "edge"}[n%2], KeepProb: 1,
					Status: decision.OK, Action: truth, Latency: decision.Some(time.Duration(2e5 * rng.ExpFloat64()))}
				if rng.Float64() > right {
					o.Action = "allow"
				}
				if lane == 2 && n%20 == 0 {
					o.Status, o.Action, o.Latency = decision.Timeout, "", decision.Opt[time.Duration]{}
				}
				row.Outcomes = append(row.Outcomes, o)
			}
			if !yield(row, nil) {
				return
			}
		}
	}
	profile, err := scoring.Preset("default")
	if err != nil {
		t.Fatal(err)
	}
	card, err := scoring.Score(scoring.Input{
		Lanes: []scoring.Lane{{Name: "recorded", Kind: "recorded"}, {Name: "rules", Kind: "rules"}, {Name: "remote", Kind: "decide"}}, Rows: rows,
	}, profile)
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// What scoring makes is printed in every format, and comes back from JSON.
func TestRealScorecard(t *testing.T) {
	for _, labels := range []bool{true, false} {
		card := scored(t, labels)
		for _, f := range Formats() {
			var b bytes.Buffer
			if err := Write(&b, f, card, Options{Width: 100}); err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"NaN", "+Inf", "%!", "<nil>"} {
				if strings.Contains(b.String(), bad) {
					t.Errorf("%s, labels %v: %q in the report", f, labels, bad)
				}
			}
			if f != FormatJSON && !strings.Contains(b.String(), "no price book") {
				t.Errorf("%s does not say why cost is NA", f)
			}
			if f != FormatJSON && !labels && !strings.Contains(b.String(), "Refused (NA): the accuracy of every backend") {
				t.Errorf("%s does not say that accuracy was refused", f)
			}
		}
		back, err := ReadJSON(bytes.NewReader(mustJSON(t, card)))
		if err != nil {
			t.Fatal(err)
		}
		if err := scoring.Recompute(back); err != nil {
			t.Errorf("labels %v: the card that was read does not add up: %v", labels, err)
		}
	}
}

// The ledger of requests stands beside that of rows when there is one.
func TestLedgerLine(t *testing.T) {
	l := snapshot.Ledger{Offered: 4211, Written: 4194, SampledOut: 5, Dropped: map[string]uint64{"closed": 12}}
	rows := "offered 4,211 = written 4,194 + sampled out 5 + dropped 12 (closed 12)"
	if got := ledgerLine(l); got != rows {
		t.Errorf("got %q", got)
	}
	l.Requests = &snapshot.Counts{Offered: 2000, Written: 1998, SampledOut: 2}
	if got, want := ledgerLine(l), rows+"; in requests: offered 2,000 = written 1,998 + sampled out 2 + dropped 0"; got != want {
		t.Errorf("got %q", got)
	}
}
