package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// selftestLoad adds up what blocks of one kind measured.
type selftestLoad struct {
	response, call stats.Histogram // ns
	calls          uint64
	spent          time.Duration // in hand-overs
	cpu, wall      time.Duration
}

// block runs the load for a while, with or without the recorder. With it, the block ends
// when all its rows are flushed, so that no work of one block is charged to the next.
func (m *selftestRun) block(ctx context.Context, into *selftestLoad, length time.Duration, on bool) error {
	clock := processClock()
	if clock == nil {
		clock = func() time.Duration { return 0 }
	}
	loads := make([]selftestLoad, m.flags.callers)
	cpu, start := clock(), time.Now()
	var wg sync.WaitGroup
	for i := range loads {
		wg.Go(func() { m.call(ctx, &loads[i], i, start, length, on) })
	}
	wg.Wait()
	into.wall += max(length, time.Since(start)) // the flush is no part of the schedule
	if on {
		if _, err := m.rec.Flush(ctx); err != nil {
			return err
		}
	}
	into.cpu += clock() - cpu
	for i := range loads {
		l := &loads[i]
		into.response.Merge(&l.response)
		into.call.Merge(&l.call)
		into.calls, into.spent = into.calls+l.calls, into.spent+l.spent
	}
	return ctx.Err()
}

// call is one caller: it decides when the schedule says so, or at once when that is
// past. It sleeps rather than spins, so that processor time is that of the work.
func (m *selftestRun) call(ctx context.Context, l *selftestLoad, caller int, start time.Time, length time.Duration, on bool) {
	interval := float64(time.Second) * float64(m.flags.callers) / m.flags.rate
	offset := interval * float64(caller) / float64(m.flags.callers)
	rows := m.share(caller)
	for i := 0; ctx.Err() == nil; i++ {
		due := time.Duration(offset + float64(i)*interval)
		if due >= length {
			return
		}
		intended := start.Add(due)
		if wait := time.Until(intended); wait > 0 {
			time.Sleep(wait)
		}
		row := rows[i%len(rows)]
		begin := time.Now()
		row.ID, row.Time = decision.NewID(begin), begin.UTC()
		row.RequestID = row.ID
		if on {
			before := time.Now()
			m.rec.Record(ctx, row)
			took := time.Since(before)
			l.call.Add(uint64(max(0, took)), 1)
			l.spent += took
		}
		l.response.Add(uint64(max(0, time.Since(intended))), 1)
		l.calls++
	}
}

// share are the rows of one caller, which changes their ids and times as it goes.
func (m *selftestRun) share(caller int) []*snapshot.Snapshot {
	n := len(m.rows) / m.flags.callers
	return m.rows[caller*n : (caller+1)*n]
}

// clockCost is what reading the clock twice takes: it is in every single hand-over time.
func clockCost() time.Duration {
	const n = 10_000
	start := time.Now()
	for range n {
		_ = time.Since(time.Now())
	}
	return time.Since(start) / n
}

// selftestFields are the attributes of the rows.
func selftestFields() []decision.Field {
	return []decision.Field{{Name: "headers.user-agent", Type: decision.String}, {Name: "path", Type: decision.String},
		{Name: "metrics.edge_error_rate_1m", Type: decision.Double}, {Name: "metrics.requests_1m", Type: decision.Int}}
}

func selftestCapture() recorder.Capture {
	c := recorder.Capture{Input: true}
	for _, f := range selftestFields() {
		c.Fields = append(c.Fields, recorder.CaptureField{Name: f.Name, Type: f.Type})
	}
	return c
}

// selftestRowCount is more rows than a batch has: were they fewer, each batch would hold
// the same ones twice, and no traffic compresses like that.
const selftestRowCount = 2 * defaultBatch

// selftestRows are rows of ordinary size: four attributes, a body of about 400 bytes,
// three candidates, twelve features.
func selftestRows() []*snapshot.Snapshot {
	schema, err := decision.NewSchema(selftestFields()...)
	if err != nil {
		panic(err) // the fields stand above
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]*snapshot.Snapshot, selftestRowCount)
	for i := range rows {
		rows[i] = selftestRow(rng, schema)
	}
	return rows
}

func selftestRow(rng *rand.Rand, schema *decision.Schema) *snapshot.Snapshot {
	x := rng.Float64()
	s := &snapshot.Snapshot{ID: decision.NewID(time.Now()), Status: decision.OK, Action: "allow", Scenario: "selftest", KeepProb: 1,
		Time: time.Now().UTC(), Backend: "rules", RuleID: "R" + strconv.Itoa(rng.IntN(17)), Reason: decision.ReasonMatch,
		Confidence: decision.Some(math.Round(x*1000) / 1000), Latency: decision.Some(time.Duration(rng.ExpFloat64() * 1e6)),
		Features: make([]float32, 12), FeatureSet: "v1"}
	s.RequestID = s.ID
	s.Candidates = []decision.Candidate{{Action: "allow", Score: decision.Some(float32(x))},
		{Action: "block", Score: decision.Some(float32(1 - x))}, {Action: "challenge"}}
	for j := range s.Features {
		s.Features[j] = float32(rng.NormFloat64())
	}
	path := fmt.Sprintf("/api/v1/items/%d", rng.IntN(1000))
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{
		decision.StringValue("Mozilla/5.0 (X11; Linux x86_64) item/" + strconv.Itoa(rng.IntN(9))),
		decision.StringValue(path), decision.DoubleValue(x / 10), decision.IntValue(rng.Int64N(500))}}
	s.Input = fmt.Appendf(nil, `{"path":%q,"session":"%016x","items":[`, path, rng.Uint64())
	for range 20 {
		s.Input = fmt.Appendf(s.Input, `{"sku":%d,"n":%d},`, 10_000+rng.IntN(2000), rng.IntN(5))
	}
	s.Input = append(s.Input[:len(s.Input)-1], "]}"...)
	return s
}

// abs is without signs.
func (q quantiles) abs() quantiles {
	for _, p := range []*float64{q.P50, q.P99, q.P999} {
		if p != nil {
			*p = math.Abs(*p)
		}
	}
	return q
}

func (a *app) printSelftest(f *selftestFlags, r *selftestResult) error {
	if f.format == "json" {
		return writeJSON(a.stdout, r)
	}
	_, err := io.WriteString(a.stdout, r.text())
	return err
}

func (r *selftestResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f decisions a second for %.3gs, half of them recorded: %d callers, %d processors, policy %s, segments in %s\n\n",
		r.Rate, r.Seconds, r.Callers, r.Processors, r.Policy, r.Directory)
	fmt.Fprintf(&b, "%-34s %12s %12s %12s\n", "", "p50", "p99", "p99.9")
	for _, l := range []struct {
		name string
		q    quantiles
		sign bool
	}{{"hand-over", r.HandOver, false}, {"response without recorder", r.Without, false}, {"response with recorder", r.With, false},
		{"added", r.Added, true}, {"noise of the above", r.Noise, false}} {
		fmt.Fprintf(&b, "%-34s %12s %12s %12s\n", l.name, shortTime(l.q.P50, l.sign), shortTime(l.q.P99, l.sign), shortTime(l.q.P999, l.sign))
	}
	fmt.Fprintf(&b, "\nhand-over    %s on average, of which %s is the clock; %s in a burst\n",
		shortTime(&r.HandOverMean, false), shortTime(&r.ClockNs, false), shortTime(&r.BurstNs, false))
	fmt.Fprintf(&b, "dropped      %.3g %% of %d", 100*r.DropRate, r.Offered)
	for _, reason := range slices.Sorted(maps.Keys(r.Dropped)) {
		fmt.Fprintf(&b, ", %d %s", r.Dropped[reason], reason)
	}
	b.WriteByte('\n')
	if r.CPUShare != nil {
		fmt.Fprintf(&b, "processor    %.2g %% of one, %s a row, caller and encoder together\n", 100**r.CPUShare, shortTime(r.CPURowNs, false))
	}
	fmt.Fprintf(&b, "stored       %.0f bytes a row\n", r.BytesPerRow)
	return b.String()
}

// shortTime prints nanoseconds with three digits; nil, which too few calls tell, as a dash.
func shortTime(ns *float64, signed bool) string {
	if ns == nil {
		return "-"
	}
	sign := ""
	if signed && *ns >= 0 {
		sign = "+"
	}
	for _, u := range []struct {
		name string
		size float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if math.Abs(*ns) >= u.size {
			x := *ns / u.size
			digits := max(0, 2-int(math.Log10(math.Abs(x))))
			return sign + strconv.FormatFloat(x, 'f', digits, 64) + " " + u.name
		}
	}
	return sign + strconv.FormatFloat(math.Round(*ns), 'f', 0, 64) + " ns"
}
