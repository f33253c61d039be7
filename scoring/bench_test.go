package scoring

import (
	"fmt"
	"math/rand/v2"
	"runtime"
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

// manyRows yields n rows of one reused Row, as a reader would: memory stays that of the
// accumulators, whatever n is.
func manyRows(n int, lanes []Lane) func(func(*Row, error) bool) {
	return func(yield func(*Row, error) bool) {
		rng := rand.New(rand.NewPCG(1, 2))
		l := label(0, "")
		r := &Row{Label: l}
		for i := range lanes {
			o := outcome(lanes[i].Name, 0, "")
			r.Outcomes = append(r.Outcomes, o)
		}
		actions := []string{"allow", "block", "challenge"}
		scenarios := []string{"s1", "s2", "s3"}
		for k := range n {
			l.Action = actions[rng.IntN(3)]
			id := idOf(uint64(k))
			for i, o := range r.Outcomes {
				o.ID, o.RequestID, o.Scenario, o.Ref.Row = id, id, scenarios[k%3], int64(k)
				o.Action = l.Action
				if rng.IntN(10) <= i {
					o.Action = "allow"
				}
				o.Latency.V = time.Duration(50_000 + rng.IntN(1<<20))
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// BenchmarkStream reports the cost of an outcome and the heap that a long run holds.
func BenchmarkStream(b *testing.B) {
	lanes := []Lane{{"a", "rules"}, {"b", "flash"}, {"c", "model"}}
	const n = 1_000_000
	p := priced(b)
	var held uint64
	for b.Loop() {
		c, err := Collect(Input{Lanes: lanes, Rows: manyRows(n, lanes)}, p)
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		held = m.HeapAlloc
		runtime.KeepAlive(c)
	}
	b.ReportMetric(float64(held)/(1<<20), "MiB-held")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/float64(len(lanes)), "ns/outcome")
}
