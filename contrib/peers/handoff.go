package peers

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

const (
	// burstRows are handed over before the recorder may catch up: fewer than its queue
	// holds, since a drop would be cheaper than a hand-over.
	burstRows = 4096
	// burstsPerRound are timed as a whole; as many again call by call.
	burstsPerRound = 8
	// hotRows is the number of different rows that are handed over in turn. They stay in the
	// processor's cache, as a row does that a service has just made.
	hotRows = 32
)

// handOver is one way to hand a row over, and what a caller paid.
type handOver struct {
	name    string
	callers int
	call    func(caller, i int)
	// settle waits for what goes on behind the caller's back.
	settle func() error

	// caller and process are nanoseconds of processor time a call, one value a round: on the
	// callers' own threads, and in all with what was left to other goroutines.
	caller, process []float64
	latencies       []time.Duration
	mallocs, calls  uint64
}

// HandOff compares what a caller pays to hand over one row.
func HandOff(rows []snapshot.Snapshot, rounds int) (*Report, error) {
	if len(rows) < hotRows {
		return nil, fmt.Errorf("%d rows, want %d", len(rows), hotRows)
	}
	rows = rows[:hotRows]
	r, err := recorder.New(nowhere{}, recorder.Options{Capture: recorder.Capture{Input: true}})
	if err != nil {
		return nil, err
	}
	cases := handOvers(r, rows)
	if err := takeTurns(cases, rounds); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := r.Close(ctx); err != nil {
		return nil, err
	}
	if s := r.Stats(); s.Ledger.DroppedTotal() > 0 || s.Ledger.Written == 0 {
		return nil, fmt.Errorf("the recorder took %d rows and dropped %d", s.Ledger.Written, s.Ledger.DroppedTotal())
	}
	return handOffReport(rounds, cases), nil
}

// nowhere is a sink at no cost.
type nowhere struct{}

func (nowhere) Append(*snapshot.Snapshot) error  { return nil }
func (nowhere) Flush(snapshot.Ledger) error      { return nil }
func (nowhere) Close(_, _ snapshot.Ledger) error { return nil }

// The cases of the group, in its order.
const (
	bareCopy = iota
	record
	recordTwo
	zerologTyped
	zerologRaw
)

func handOvers(r *recorder.Recorder, rows []snapshot.Snapshot) []*handOver {
	ctx := context.Background()
	log := zerolog.New(io.Discard)
	var kept copied
	give := func(_, i int) { r.Record(ctx, &rows[i%hotRows]) }
	flush := func() error { _, err := r.Flush(ctx); return err }
	nothing := func() error { return nil }
	return []*handOver{
		bareCopy:     {name: "bare copy of the row", callers: 1, call: func(_, i int) { kept.take(&rows[i%hotRows]) }, settle: nothing},
		record:       {name: "recorder.Record, 1 caller", callers: 1, call: give, settle: flush},
		recordTwo:    {name: "recorder.Record, 2 callers", callers: 2, call: give, settle: flush},
		zerologTyped: {name: "zerolog typed call to io.Discard", callers: 1, call: func(_, i int) { logRow(&log, &rows[i%hotRows]) }, settle: nothing},
		zerologRaw:   {name: "the same, the input embedded unchecked", callers: 1, call: func(_, i int) { logRowRaw(&log, &rows[i%hotRows]) }, settle: nothing},
	}
}

// copied is memory that a row is copied into; it is there already.
type copied struct {
	row        snapshot.Snapshot
	input      []byte
	candidates []decision.Candidate
	features   []float32
}

func (c *copied) take(s *snapshot.Snapshot) {
	c.row = *s
	c.input = append(c.input[:0], s.Input...)
	c.candidates = append(c.candidates[:0], s.Candidates...)
	c.features = append(c.features[:0], s.Features...)
	c.row.Input, c.row.Candidates, c.row.Features = c.input, c.candidates, c.features
}

// takeTurns runs the cases round after round, after one that warms up.
func takeTurns(cases []*handOver, rounds int) error {
	for round := range rounds + 1 {
		for _, h := range cases {
			runtime.GC()
			h.burst(nil) // the collection emptied pools
			if err := h.settle(); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			if err := h.round(round > 0); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
		}
	}
	return nil
}

func (h *handOver) round(counts bool) error {
	var caller, process time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range burstsPerRound {
		start := processTime()
		caller += h.burst(nil)
		if err := h.settle(); err != nil {
			return err
		}
		process += processTime() - start
	}
	runtime.ReadMemStats(&after)
	latencies := make([]time.Duration, 0, burstsPerRound*burstRows)
	for range burstsPerRound {
		h.burst(&latencies)
		if err := h.settle(); err != nil {
			return err
		}
	}
	if counts {
		const calls = burstsPerRound * burstRows
		h.caller, h.process = append(h.caller, float64(caller)/calls), append(h.process, float64(process)/calls)
		h.mallocs, h.calls = h.mallocs+after.Mallocs-before.Mallocs, h.calls+calls
		h.latencies = append(h.latencies, latencies...)
	}
	return nil
}

// burst makes burstRows calls, shared by the callers, and returns the processor time of
// their threads. Given a place for them it times each call instead.
func (h *handOver) burst(latencies *[]time.Duration) (spent time.Duration) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for caller := range h.callers {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			took, each := h.calling(caller, burstRows/h.callers, latencies != nil)
			mu.Lock()
			defer mu.Unlock()
			if spent += took; latencies != nil {
				*latencies = append(*latencies, each...)
			}
		})
	}
	wg.Wait()
	return spent
}

func (h *handOver) calling(caller, calls int, timed bool) (took time.Duration, each []time.Duration) {
	if !timed {
		start := threadTime()
		for i := range calls {
			h.call(caller, i)
		}
		return threadTime() - start, nil
	}
	each = make([]time.Duration, calls)
	for i := range calls {
		start := time.Now()
		h.call(caller, i)
		each[i] = time.Since(start)
	}
	return 0, each
}

func handOffReport(rounds int, cases []*handOver) *Report {
	r := &Report{Title: fmt.Sprintf("Hand-off of one row: %d rounds of %d calls", rounds, burstsPerRound*burstRows),
		Columns: []string{"case", "caller ns CPU", "process ns CPU", "allocs", "p50", "p99", "p99.9"}, What: "ratio",
		Notes: []string{"Caller: processor time of the calling threads alone. Process: with the recorder's goroutine and a sink that keeps nothing. " +
			"The latencies are of single calls by the wall clock, which costs some 50 ns itself; other load on the machine shows in them."}}
	for i, h := range cases {
		slices.Sort(h.latencies)
		at := func(q float64) string { return h.latencies[int(q*float64(len(h.latencies)-1))].String() }
		line := Line{Cells: []string{h.name, fmt.Sprintf("%.1f", quantile(h.caller, 0.5)), fmt.Sprintf("%.1f", quantile(h.process, 0.5)),
			fmt.Sprintf("%.3f", float64(h.mallocs)/float64(h.calls)), at(0.5), at(0.99), at(0.999)}}
		switch i {
		case record:
			line.Cells[0] += " / bare copy"
			line.Ratio, line.Goal = RatioOf(h.caller, cases[bareCopy].caller), Goal{AtMost: 2.5}
		case recordTwo:
			line.Cells[0] += " / 1 caller"
			line.Ratio, line.Goal = RatioOf(h.caller, cases[record].caller), Goal{AtMost: 1.5}
		case zerologTyped:
			line.Cells[0] += " / recorder.Record"
			line.Ratio, line.Goal = RatioOf(h.caller, cases[record].caller), Goal{AtLeast: 25}
		case zerologRaw:
			line.Cells[0] += " / recorder.Record"
			line.Ratio = RatioOf(h.caller, cases[record].caller)
		}
		r.Lines = append(r.Lines, line)
	}
	return r
}
