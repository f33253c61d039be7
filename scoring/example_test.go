package scoring_test

import (
	"fmt"
	"iter"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// Two backends decided the same 400 requests. One always allows; the other is right on
// nine of ten.
func ExampleScore() {
	choose := func(lane string, pick func(i int) string) iter.Seq2[*snapshot.Outcome, error] {
		return func(yield func(*snapshot.Outcome, error) bool) {
			for i := range 400 {
				o := &snapshot.Outcome{
					Ref: snapshot.Ref{Segment: "day-1", Row: int64(i)}, ID: id(i), RequestID: id(i), Scenario: "api-abuse", KeepProb: 1,
					Backend: lane, Status: decision.OK, Action: pick(i), Latency: decision.Some(200 * time.Microsecond),
				}
				if !yield(o, nil) {
					return
				}
			}
		}
	}
	truth := func(i int) string {
		if i%4 == 0 {
			return "block"
		}
		return "allow"
	}
	labels := func(yield func(*snapshot.Label, error) bool) {
		for i := range 400 {
			l := &snapshot.Label{Ref: snapshot.Ref{Segment: "day-1", Row: int64(i)}, ID: id(i), Action: truth(i)}
			if !yield(l, nil) {
				return
			}
		}
	}
	lanes := []iter.Seq2[*snapshot.Outcome, error]{
		choose("always", func(int) string { return "allow" }),
		choose("rules", func(i int) string {
			if i%10 == 9 {
				return "block"
			}
			return truth(i)
		}),
	}

	profile, err := scoring.Preset("waf")
	if err != nil {
		fmt.Println(err)
		return
	}
	card, err := scoring.Score(scoring.Input{
		Lanes: []scoring.Lane{{Name: "always", Kind: "exec"}, {Name: "rules", Kind: "rules"}},
		Rows:  scoring.Merge(labels, lanes),
	}, profile)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range card.Backends {
		a := b.Categories.Accuracy
		fmt.Printf("%-6s accuracy %.1f [%.1f, %.1f], total %s\n", b.Name, a.Value, a.Lo, a.Hi, b.Total.NA)
	}
	for _, p := range card.Pairs {
		if p.Measure == scoring.MeasureUtility {
			fmt.Printf("%s against %s: %+.3f, %s\n", p.New, p.Base, p.Diff, p.Verdict)
		}
	}
	// Output:
	// always accuracy 0.0 [0.0, 17.2], total cost: no price book; auditability: no audit sample
	// rules  accuracy 60.0 [48.6, 71.2], total cost: no price book; auditability: no audit sample
	// rules against always: +0.150, better
}

func id(i int) decision.ID { return decision.ID{14: byte(i >> 8), 15: byte(i), 0: 1} }

func ExamplePreset() {
	p, err := scoring.Preset("fraud")
	fmt.Printf("%+v %v\n", p.Weights, err)
	_, err = scoring.Preset("froud")
	fmt.Println(err)
	// Output:
	// {Accuracy:0.5 Latency:0.2 Cost:0.1 Auditability:0.2} <nil>
	// unknown profile preset "froud": did you mean "fraud"?
}
