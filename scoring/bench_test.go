package scoring

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// benchRows are rows of three scenarios and five lanes.
func benchRows(n int) (rows []*Row, lanes []Lane) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		lanes = append(lanes, Lane{fmt.Sprintf("lane%d", i), "rules"})
	}
	for k := range n {
		truth := fmt.Sprintf("a%d", rng.IntN(3))
		r := &Row{Label: label(k, truth)}
		for i := range lanes {
			a := truth
			if rng.Float64() > 0.9-0.05*float64(i) {
				a = "a0"
			}
			o := outcome(lanes[i].Name, k, a)
			o.Scenario = fmt.Sprintf("s%d", k%3)
			o.Latency = decision.Some(time.Duration(1e5 * (1 + rng.ExpFloat64())))
			r.Outcomes = append(r.Outcomes, o)
		}
		rows = append(rows, r)
	}
	return rows, lanes
}

func auditOf(rows []*Row, n int) []*snapshot.Outcome {
	var out []*snapshot.Outcome
	for _, r := range rows[:n] {
		for _, o := range r.Outcomes {
			for k := range int32(3) {
				a := *o
				a.Phase, a.Repeat = snapshot.PhaseAudit, k
				a.Identified, a.Explained, a.Complete = decision.Some(true), decision.Some(k != 9), decision.Some(true)
				out = append(out, &a)
			}
		}
	}
	return out
}

func outcomes(os []*snapshot.Outcome) func(func(*snapshot.Outcome, error) bool) {
	return func(yield func(*snapshot.Outcome, error) bool) {
		for _, o := range os {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func BenchmarkCollect(b *testing.B) {
	rows, lanes := benchRows(10_000)
	p := preset(b, "default")
	for b.Loop() {
		if _, err := Collect(Input{Lanes: lanes, Rows: rowsOf(rows)}, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)*len(lanes)), "ns/outcome")
}

func BenchmarkScorecard(b *testing.B) {
	rows, lanes := benchRows(10_000)
	in := Input{Lanes: lanes, Rows: rowsOf(rows), Audit: outcomes(auditOf(rows, 400))}
	c, err := Collect(in, preset(b, "default"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Scorecard(in.Dataset, in.Run); err != nil {
			b.Fatal(err)
		}
	}
}
