package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// The bounds of a self-test.
const (
	maxSelftestRate = 5e6
	maxSelftestTime = time.Hour
	// A block is how long the load runs with or without the recorder before it changes: an
	// eighth of the time, so that whatever else the machine does meets both alike.
	minSelftestBlock = 250 * time.Millisecond
	maxSelftestBlock = 2 * time.Second
)

// blocks are a multiple of four, so that there are as many with as without.
func (f *selftestFlags) blocks() (n int, length time.Duration) {
	length = min(max(f.duration/8, minSelftestBlock), maxSelftestBlock)
	n = max(4, int(f.duration/length)/4*4)
	return n, f.duration / time.Duration(n)
}

type selftestFlags struct {
	rate     float64
	duration time.Duration
	policy   string
	callers  int
	dir      string
	format   string
}

func (a *app) selftestCommand() *cobra.Command {
	var f selftestFlags
	cmd := &cobra.Command{
		Use:   "selftest --rate R",
		Short: "Measure what recording costs on this machine at a stated rate",
		Long: `Selftest plays a service that makes R decisions a second and records them into a
temporary directory, in turns with the same service that does not record. It prints what
a hand-over takes, what recording adds to the response times, how many decisions were
dropped, and the processor time and bytes of each.

Calls come by an absolute schedule, and a response time counts from the moment that the
schedule names: a call that had to wait for the one before it counts as late, not as
one that came later. A quantile with fewer than ten calls above it is not shown. The
noise is what two halves of the calls without a recorder differ by: an addition that is
no larger says nothing.`,
		Example: `  clefbench record selftest --rate 2000
  clefbench record selftest --rate 50000 --duration 30s --policy block -f json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.selftest(cmd.Context(), &f) },
	}
	fl := cmd.Flags()
	fl.Float64Var(&f.rate, "rate", 0, "decisions a second, of all callers (required)")
	fl.DurationVar(&f.duration, "duration", 10*time.Second, "length of the measurement, half of it with the recorder")
	fl.StringVar(&f.policy, "policy", string(recorder.PolicyDrop), "drop or block: what a full queue does")
	fl.IntVar(&f.callers, "callers", 1, "goroutines that decide")
	fl.StringVar(&f.dir, "dir", "", "measure on the disk of this directory (default: the system's temporary directory)")
	fl.StringVarP(&f.format, "format", "f", "text", "text or json")
	return cmd
}

func (f *selftestFlags) check() error {
	switch {
	case !(f.rate >= 1 && f.rate <= maxSelftestRate):
		return fail(exitUsage, "as in --rate 2000", "--rate must be 1 to %d decisions a second", int(maxSelftestRate))
	case f.duration < 4*minSelftestBlock || f.duration > maxSelftestTime:
		return fail(exitUsage, "", "--duration must be %v to %v", 4*minSelftestBlock, maxSelftestTime)
	case f.policy != string(recorder.PolicyDrop) && f.policy != string(recorder.PolicyBlock):
		return fail(exitUsage, "policies: drop, block", "unknown policy %q", f.policy)
	case f.callers < 1 || f.callers > 1024:
		return fail(exitUsage, "", "--callers must be 1 to 1024")
	case f.format != "text" && f.format != "json":
		return fail(exitUsage, "formats: text, json", "unknown format %q", f.format)
	}
	return nil
}

func (a *app) selftest(ctx context.Context, f *selftestFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(f.dir, "clefbench-selftest-")
	if err != nil {
		return outputError(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := arrowfile.Create(dir, arrowfile.Options{})
	if err != nil {
		return outputError(err)
	}
	rec, err := recorder.New(w, recorder.Options{Policy: recorder.Policy(f.policy), Capture: selftestCapture()})
	if err != nil {
		return err
	}
	m := &selftestRun{flags: f, rec: rec, rows: selftestRows()}
	if err := cmp.Or(m.run(ctx), m.close(ctx)); err != nil {
		return err
	}
	res := m.result(w.Stats())
	res.Directory = filepath.Dir(dir)
	if err := a.printSelftest(f, res); err != nil {
		return err
	}
	if res.Invalid != "" {
		return fail(exitInvalid, "a lower --rate, more --callers or an idle machine", "the measurement is not valid: %s", res.Invalid)
	}
	return nil
}

// selftestRun is one measurement.
type selftestRun struct {
	flags *selftestFlags
	rec   *recorder.Recorder
	rows  []*snapshot.Snapshot
	// with and without the recorder; the latter in two halves, whose difference is noise.
	with    selftestLoad
	without [2]selftestLoad
	burst   time.Duration // a hand-over, at full speed
	total   recorder.Stats
}

// run warms up, measures a burst, and alternates blocks without and with the recorder:
// off on on off, so that a drift of the machine cancels.
func (m *selftestRun) run(ctx context.Context) error {
	var warm selftestLoad
	if err := m.block(ctx, &warm, minSelftestBlock, true); err != nil {
		return err
	}
	if err := m.bursts(ctx); err != nil {
		return err
	}
	before := m.rec.Stats().Ledger
	blocks, length := m.flags.blocks()
	for i := range blocks {
		into, on := &m.without[i%4/3], i%4 == 1 || i%4 == 2
		if on {
			into = &m.with
		}
		if err := m.block(ctx, into, length, on); err != nil {
			return err
		}
	}
	m.total = m.rec.Stats()
	m.total.Ledger.Offered -= before.Offered
	m.total.Ledger.Written -= before.Written
	for reason, n := range before.Dropped {
		m.total.Ledger.Dropped[reason] -= n
	}
	return nil
}

// bursts times hand-overs without the clock between them, few enough to find room.
func (m *selftestRun) bursts(ctx context.Context) error {
	const n, rounds = 1024, 20
	var best time.Duration
	for range rounds {
		start := time.Now()
		for i := range n {
			m.rec.Record(ctx, m.rows[i])
		}
		if took := time.Since(start) / n; best == 0 || took < best {
			best = took
		}
		if _, err := m.rec.Flush(ctx); err != nil {
			return err
		}
	}
	m.burst = best
	return nil
}

func (m *selftestRun) close(ctx context.Context) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return m.rec.Close(closing)
}

// quantiles in nanoseconds; those that the calls do not reach are nil.
type quantiles struct {
	P50  *float64 `json:"p50"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p99_9"`
}

func quantilesOf(h *stats.Histogram) quantiles {
	at := func(q float64) *float64 {
		if float64(h.Total())*(1-q) < 10 {
			return nil
		}
		x := h.Quantile(q)
		return &x
	}
	return quantiles{at(0.5), at(0.99), at(0.999)}
}

// minus is the difference of quantiles, where both are known.
func (q quantiles) minus(o quantiles) quantiles {
	sub := func(a, b *float64) *float64 {
		if a == nil || b == nil {
			return nil
		}
		d := *a - *b
		return &d
	}
	return quantiles{sub(q.P50, o.P50), sub(q.P99, o.P99), sub(q.P999, o.P999)}
}

// selftestResult is what the command prints.
type selftestResult struct {
	Rate         float64 `json:"rate"`
	AchievedRate float64 `json:"achieved_rate"`
	Seconds      float64 `json:"seconds"`
	Callers      int     `json:"callers"`
	Policy       string  `json:"policy"`
	Processors   int     `json:"processors"`
	Directory    string  `json:"directory"`

	// HandOver is one call of the recorder: in a burst, and under the schedule, with the
	// time of reading the clock in it.
	BurstNs      float64   `json:"hand_over_burst_ns"`
	HandOverMean float64   `json:"hand_over_mean_ns"`
	HandOver     quantiles `json:"hand_over_ns"`
	ClockNs      float64   `json:"clock_ns"`
	// Response times count from the schedule.
	Without quantiles `json:"response_without_ns"`
	With    quantiles `json:"response_with_ns"`
	Added   quantiles `json:"added_ns"`
	Noise   quantiles `json:"noise_ns"`

	Offered  uint64            `json:"offered"`
	Dropped  map[string]uint64 `json:"dropped"`
	DropRate float64           `json:"drop_rate"`
	// CPUShare is of one processor, the caller's part included; nil where the system does
	// not tell.
	CPUShare    *float64 `json:"cpu_share"`
	CPURowNs    *float64 `json:"cpu_row_ns"`
	BytesPerRow float64  `json:"bytes_per_row"`
	// Invalid says why the figures are not those of the stated rate; empty when they are.
	Invalid string `json:"invalid,omitempty"`
}

func (m *selftestRun) result(w arrowfile.Stats) *selftestResult {
	f, on := m.flags, &m.with
	off := m.without[0].response.Clone()
	off.Merge(&m.without[1].response)
	r := &selftestResult{Rate: f.rate, Seconds: f.duration.Seconds(), Callers: f.callers, Policy: f.policy, Processors: runtime.GOMAXPROCS(0),
		BurstNs: float64(m.burst), HandOver: quantilesOf(&on.call), ClockNs: float64(clockCost()),
		Without: quantilesOf(&off), With: quantilesOf(&on.response), Offered: m.total.Ledger.Offered, Dropped: map[string]uint64{}}
	if on.calls > 0 {
		r.HandOverMean = float64(on.spent) / float64(on.calls)
		r.AchievedRate = float64(on.calls) / on.wall.Seconds()
	}
	r.Added = r.With.minus(r.Without)
	r.Noise = quantilesOf(&m.without[0].response).minus(quantilesOf(&m.without[1].response)).abs()
	for reason, n := range m.total.Ledger.Dropped {
		if n > 0 {
			r.Dropped[reason] = n
		}
	}
	if r.Offered > 0 {
		r.DropRate = float64(m.total.Ledger.DroppedTotal()) / float64(r.Offered)
	}
	m.processor(r)
	if w.Rows > 0 {
		r.BytesPerRow = float64(w.Bytes) / float64(w.Rows)
	}
	if r.AchievedRate < 0.95*f.rate {
		r.Invalid = fmt.Sprintf("%.0f of %.0f decisions a second were reached", r.AchievedRate, f.rate)
	}
	return r
}

// processor is the processor time that the load took more with the recorder than
// without.
func (m *selftestRun) processor(r *selftestResult) {
	off := selftestLoad{cpu: m.without[0].cpu + m.without[1].cpu, wall: m.without[0].wall + m.without[1].wall}
	if processClock() == nil || m.with.wall == 0 || off.wall == 0 || m.with.calls == 0 {
		return
	}
	share := m.with.cpu.Seconds()/m.with.wall.Seconds() - off.cpu.Seconds()/off.wall.Seconds()
	perRow := share * m.with.wall.Seconds() * 1e9 / float64(m.with.calls)
	r.CPUShare, r.CPURowNs = &share, &perRow
}
