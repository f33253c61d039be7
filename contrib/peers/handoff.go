package peers

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

const (
	// roundCalls are timed as a whole; as many again call by call.
	roundCalls = 32_768
	// steadyRows are handed over before the recorder is waited for, untimed: so few do not
	// wake its goroutine, as happens to a service that it keeps up with, and its memory is
	// still in a cache when it comes back.
	steadyRows = 512
	// saturatedRows keep its goroutine busy meanwhile, in memory that comes back cold. Its
	// queue holds more: a drop would be cheaper than a hand-over.
	saturatedRows = 4096
	// hotRows is the number of different rows that are handed over in turn. They stay in the
	// processor's cache, as a row does that a service has just made.
	hotRows = 32
)

// handOver is one way to hand a row over, and what a caller paid.
type handOver struct {
	name    string
	callers int
	// burst is the number of calls before settle, by all callers.
	burst int
	call  func(caller, i int)
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
	bareTaken
	record
	recordTwo
	bareSaturated
	recordSaturated
	zerologTyped
	zerologRaw
)

func handOvers(r *recorder.Recorder, rows []snapshot.Snapshot) []*handOver {
	ctx := context.Background()
	log := zerolog.New(io.Discard)
	var kept copied
	steady, saturated := ring{slots: make([]copied, steadyRows)}, ring{slots: make([]copied, saturatedRows)}
	give := func(_, i int) { r.Record(ctx, &rows[i%hotRows]) }
	flush := func() error { _, err := r.Flush(ctx); return err }
	nothing := func() error { return nil }
	return []*handOver{
		bareCopy: {name: "bare copy of the row, always to the same place", callers: 1, burst: steadyRows,
			call: func(_, i int) { kept.take(&rows[i%hotRows]) }, settle: nothing},
		bareTaken: {name: "bare copy to memory that another goroutine empties, steady", callers: 1, burst: steadyRows,
			call: func(_, i int) { steady.take(&rows[i%hotRows]) }, settle: steady.empty},
		record:    {name: "recorder.Record, 1 caller, steady", callers: 1, burst: steadyRows, call: give, settle: flush},
		recordTwo: {name: "recorder.Record, 2 callers, steady", callers: 2, burst: steadyRows, call: give, settle: flush},
		bareSaturated: {name: "bare copy to memory that another goroutine empties, saturated", callers: 1, burst: saturatedRows,
			call: func(_, i int) { saturated.take(&rows[i%hotRows]) }, settle: saturated.empty},
		recordSaturated: {name: "recorder.Record, 1 caller, saturated", callers: 1, burst: saturatedRows, call: give, settle: flush},
		zerologTyped: {name: "zerolog typed call to io.Discard", callers: 1, burst: steadyRows,
			call: func(_, i int) { logRow(&log, &rows[i%hotRows]) }, settle: nothing},
		zerologRaw: {name: "zerolog, the input embedded unchecked", callers: 1, burst: steadyRows,
			call: func(_, i int) { logRowRaw(&log, &rows[i%hotRows]) }, settle: nothing},
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

// empty lets go of the row and keeps the memory.
func (c *copied) empty() {
	clear(c.input)
	clear(c.candidates)
	clear(c.features)
	c.row = snapshot.Snapshot{}
}

// ring is the memory of a burst: the least that rows cost which another goroutine takes.
type ring struct {
	slots []copied
	next  int
}

func (r *ring) take(s *snapshot.Snapshot) {
	r.slots[r.next%len(r.slots)].take(s)
	r.next++
}

func (r *ring) empty() error {
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range r.slots {
			r.slots[i].empty()
		}
	})
	wg.Wait()
	return nil
}

// takeTurns runs the cases round after round, after one that warms up.
func takeTurns(cases []*handOver, rounds int) error {
	for round := range rounds + 1 {
		for _, h := range cases {
			runtime.GC()
			h.run(nil) // the collection emptied pools
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
	for range roundCalls / h.burst {
		start := processTime()
		caller += h.run(nil)
		if err := h.settle(); err != nil {
			return err
		}
		process += processTime() - start
	}
	latencies := make([]time.Duration, 0, roundCalls)
	for range roundCalls / h.burst {
		h.run(&latencies)
		if err := h.settle(); err != nil {
			return err
		}
	}
	mallocs := h.allocated()
	if err := h.settle(); err != nil {
		return err
	}
	if counts {
		h.caller, h.process = append(h.caller, float64(caller)/roundCalls), append(h.process, float64(process)/roundCalls)
		h.mallocs, h.calls = h.mallocs+mallocs, h.calls+uint64(h.burst)
		h.latencies = append(h.latencies, latencies...)
	}
	return nil
}

// allocated is the allocations of a burst, the recorder's goroutine included, but not those
// that starting callers and waiting for the end of the burst take.
func (h *handOver) allocated() uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range h.burst {
		h.call(0, i)
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// run makes the calls of a burst, shared by the callers, and returns the processor time of
// their threads. Given a place for them it times each call instead. Callers start together.
func (h *handOver) run(latencies *[]time.Duration) (spent time.Duration) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ready atomic.Int32
	for caller := range h.callers {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for ready.Add(1); ready.Load() < int32(h.callers); {
				runtime.Gosched()
			}
			took, each := h.calling(caller, h.burst/h.callers, latencies != nil)
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
	r := &Report{Title: fmt.Sprintf("Hand-off of one row: %d rounds of %d calls", rounds, roundCalls),
		Columns: []string{"case", "caller ns CPU", "process ns CPU", "allocs", "p50", "p99", "p99.9"}, What: "ratio",
		Notes: []string{fmt.Sprintf("Steady: the recorder is waited for after %d calls; saturated: after %d. ", steadyRows, saturatedRows) +
			"Caller: processor time of the calling threads alone. Process: with the recorder's goroutine and a sink that keeps nothing. " +
			"The latencies are of single calls by the wall clock, which costs some 50 ns itself; other load on the machine shows in them."}}
	for _, l := range []struct {
		of, base int // the same: there is no ratio
		goal     Goal
	}{
		{of: bareCopy, base: bareCopy}, {of: bareTaken, base: bareCopy},
		{record, bareCopy, Goal{AtMost: 2.5}}, {of: record, base: bareTaken}, {recordTwo, record, Goal{AtMost: 1.5}},
		{of: bareSaturated, base: bareCopy}, {of: recordSaturated, base: bareCopy}, {of: recordSaturated, base: bareSaturated},
		{zerologTyped, record, Goal{AtLeast: 25}}, {of: zerologRaw, base: record},
	} {
		line := Line{Cells: cases[l.of].cells(), Goal: l.goal}
		if l.of != l.base {
			line.Cells[0] += " / " + cases[l.base].name
			line.Ratio = RatioOf(cases[l.of].caller, cases[l.base].caller)
		}
		r.Lines = append(r.Lines, line)
	}
	return r
}

func (h *handOver) cells() []string {
	slices.Sort(h.latencies)
	at := func(q float64) string { return h.latencies[int(q*float64(len(h.latencies)-1))].String() }
	return []string{h.name, fmt.Sprintf("%.1f", quantile(h.caller, 0.5)), fmt.Sprintf("%.1f", quantile(h.process, 0.5)),
		fmt.Sprintf("%.3f", float64(h.mallocs)/float64(h.calls)), at(0.5), at(0.99), at(0.999)}
}
