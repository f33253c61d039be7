package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// synctest fails a test whose goroutines outlive it: every test here that uses it is a
// leak test as well.

func bubble(t *testing.T, sink *memory, opts Options, f func(r *Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := New(sink, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(context.Background())
		f(r)
	})
}

func TestFlushInterval(t *testing.T) {
	sink := &memory{}
	bubble(t, sink, Options{FlushInterval: time.Second}, func(r *Recorder) {
		r.Record(context.Background(), row(1))
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if r.Watermark() != 0 || sink.flushCount() != 0 {
			t.Errorf("flushed early: watermark %d", r.Watermark())
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if r.Watermark() != 1 || sink.flushCount() != 1 {
			t.Errorf("after the interval: watermark %d, %d flushes", r.Watermark(), sink.flushCount())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := sink.flushCount(); n != 11 { // a sink that rotates by age has no other clock
			t.Errorf("%d flushes in 11 seconds", n)
		}
	})
	if sink.closes != 1 {
		t.Errorf("the sink was closed %d times", sink.closes)
	}
}

func TestFlushRowsAndWakeUp(t *testing.T) {
	sink := &memory{}
	bubble(t, sink, Options{FlushInterval: time.Hour, FlushRows: 3, QueueRows: 16}, func(r *Recorder) {
		for i := range 4 { // a quarter of the queue wakes the drain
			r.Record(context.Background(), row(i))
		}
		synctest.Wait()
		if n := len(sink.all()); n != 4 || r.Watermark() != 3 {
			t.Errorf("%d rows, watermark %d", n, r.Watermark())
		}
		if n, err := r.Flush(context.Background()); n != 4 || err != nil {
			t.Errorf("flush: %d, %v", n, err)
		}
	})
}

func TestFlushFailureIsRetried(t *testing.T) {
	broken := errors.New("EIO")
	fails := 2
	sink := &memory{onFlush: func() error {
		if fails--; fails >= 0 {
			return broken
		}
		return nil
	}}
	bubble(t, sink, Options{FlushInterval: time.Hour, SampleRate: 0.5, Random: func() float64 { return 0.4 }}, func(r *Recorder) {
		bad := row(2)
		bad.Action = ""
		r.Record(context.Background(), row(1))
		r.Record(context.Background(), bad)
		for range 2 {
			if n, err := r.Flush(context.Background()); n != 0 || !errors.Is(err, broken) {
				t.Errorf("flush: %d, %v", n, err)
			}
		}
		if n, err := r.Flush(context.Background()); n != 1 || err != nil {
			t.Errorf("flush: %d, %v", n, err)
		}
		if sink.lost.Dropped[DropInvalid] != 1 || sink.lost.Offered != 1 {
			t.Errorf("the sink was told of %+v", sink.lost)
		}
		if s := r.Stats(); s.FlushErrors != 2 || !strings.Contains(s.LastError, "EIO") {
			t.Errorf("stats %+v", s)
		}
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseReportsTheSink(t *testing.T) {
	eio, enospc := errors.New("EIO"), errors.New("ENOSPC")
	sink := &memory{onFlush: func() error { return eio }, onClose: func() error { return enospc }}
	bubble(t, sink, Options{}, func(r *Recorder) {
		r.Record(context.Background(), row(1))
		err := r.Close(context.Background())
		if !errors.Is(err, eio) || !errors.Is(err, enospc) || errors.Is(err, snapshot.ErrLedger) {
			t.Errorf("close: %v", err)
		}
		led := r.Stats().Ledger
		if led.Check() != nil || led.Dropped[DropSinkError] != 1 || led.Written != 0 || r.Watermark() != 0 {
			t.Errorf("ledger %+v", led)
		}
		if again := r.Close(context.Background()); again == nil || again.Error() != err.Error() {
			t.Errorf("second close: %v", again)
		}
	})
	sink = &memory{onFlush: func() error { return eio }}
	bubble(t, sink, Options{}, func(r *Recorder) {
		r.Record(context.Background(), row(1))
		if err := r.Close(context.Background()); err != nil || r.Watermark() != 1 {
			t.Errorf("sealing made up for the flush: %v, watermark %d", err, r.Watermark())
		}
	})
	sink = &memory{onClose: func() error { panic("bug") }}
	bubble(t, sink, Options{}, func(r *Recorder) {
		if err := r.Close(context.Background()); err == nil || !strings.Contains(err.Error(), "bug") {
			t.Errorf("close: %v", err)
		}
	})
}

func TestAfterClose(t *testing.T) {
	sink := &memory{}
	bubble(t, sink, Options{SampleRate: 0.5, Random: func() float64 { return 0.4 }}, func(r *Recorder) {
		r.Record(context.Background(), row(1))
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.Record(context.Background(), row(2), row(3))
		led := r.Stats().Ledger
		if led.Dropped[DropClosed] != 2 || led.Check() != nil || len(sink.rows) != 1 {
			t.Errorf("ledger %+v", led)
		}
		if _, err := r.Flush(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("flush: %v", err)
		}
	})
	if sink.closes != 1 {
		t.Errorf("%d closes", sink.closes)
	}
}

func TestCloseDeadline(t *testing.T) {
	release := make(chan struct{})
	sink := &memory{}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		n := 0
		sink.onAppend = func(*snapshot.Snapshot) error {
			if n++; n > 2 {
				<-release
			}
			return nil
		}
		r, err := New(sink, Options{FlushInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		r.Record(context.Background(), row(1))
		r.Flush(context.Background())
		for i := range 5 {
			r.Record(context.Background(), row(i), row(i))
		}
		flushCtx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if n, err := r.Flush(flushCtx); n != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %d, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = r.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "10 rows") {
			t.Errorf("close: %v", err)
		}
		led := r.Stats().Ledger
		if led.Check() != nil || led.Dropped[DropCloseDeadline] != 10 || led.Written != 1 {
			t.Errorf("ledger %+v", led)
		}
		close(release) // the sink comes back: it is sealed, and takes no request but the one in its hands
		if again := r.Close(context.Background()); again == nil || again.Error() != err.Error() {
			t.Errorf("second close: %v", again)
		}
		after := r.Stats().Ledger
		if after.Check() != nil || after.Dropped[DropCloseDeadline] != 8 || after.Written != 3 || r.Watermark() != 3 {
			t.Errorf("ledger after all: %+v", after)
		}
		after.Requests, sink.total.Requests = nil, nil // of hand-overs and of ids, which differ here
		if !reflect.DeepEqual(after, sink.total) {
			t.Errorf("the sink's total %+v, the recorder's ledger %+v", sink.total, after)
		}
	})
	if sink.closes != 1 || len(sink.rows) != 3 || sink.lost.Dropped[DropCloseDeadline] != 8 {
		t.Errorf("%d closes, %d rows, losses %+v", sink.closes, len(sink.rows), sink.lost)
	}
}

func TestQueueBoundsKeepRequestsWhole(t *testing.T) {
	sink := &memory{}
	bubble(t, sink, Options{FlushInterval: time.Hour, QueueRows: 100, QueueBytes: 10, Capture: Capture{Input: true}}, func(r *Recorder) {
		a, b := row(1), row(2)
		a.Input = []byte("123456")
		r.Record(context.Background(), a, b)
		r.Record(context.Background(), a, b) // 12 bytes
		big := make([]*snapshot.Snapshot, 99)
		for i := range big {
			big[i] = row(i)
		}
		r.Record(context.Background(), big...) // 101 rows
		r.Record(context.Background(), b)
		if led := r.Stats().Ledger; led.Dropped[DropQueueFull] != 101 || led.Offered != 104 {
			t.Errorf("ledger %+v", led)
		}
		r.Flush(context.Background())
		r.Record(context.Background(), a, b) // there is room again
		if err := r.Close(context.Background()); err != nil || len(sink.rows) != 5 {
			t.Errorf("%v, %d rows", err, len(sink.rows))
		}
	})
}

func TestPolicyBlock(t *testing.T) {
	sink := &memory{onAppend: func(*snapshot.Snapshot) error { time.Sleep(time.Millisecond); return nil }}
	opts := Options{QueueRows: 4, Policy: PolicyBlock, BlockTimeout: time.Second, FlushInterval: time.Hour}
	bubble(t, sink, opts, func(r *Recorder) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 50 {
					r.Record(context.Background(), row(i), row(i))
				}
			})
		}
		wg.Wait()
		if err := r.Close(context.Background()); err != nil || len(sink.rows) != 400 {
			t.Errorf("%v, %d rows, %+v", err, len(sink.rows), r.Stats().Ledger)
		}
	})
	stuck := make(chan struct{})
	synctest.Test(t, func(t *testing.T) {
		stuck = make(chan struct{})
		sink := &memory{onAppend: func(*snapshot.Snapshot) error { <-stuck; return nil }}
		r, err := New(sink, opts)
		if err != nil {
			t.Fatal(err)
		}
		waited := func(ctx context.Context, rows ...*snapshot.Snapshot) time.Duration {
			from := time.Now()
			r.Record(ctx, rows...)
			return time.Since(from)
		}
		r.Record(context.Background(), row(1), row(2), row(3), row(4))
		if d := waited(context.Background(), row(5)); d != time.Second {
			t.Errorf("waited %v for room", d)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if d := waited(ctx, row(6)); d != time.Millisecond {
			t.Errorf("waited %v with a context", d)
		}
		if d := waited(context.Background(), row(1), row(2), row(3), row(4), row(5)); d != 0 {
			t.Errorf("waited %v for what never fits", d)
		}
		done := make(chan time.Duration)
		go func() { done <- waited(context.Background(), row(7)) }()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- r.Close(context.Background()) }()
		if d := <-done; d != 0 {
			t.Errorf("waited %v for a closed recorder", d)
		}
		close(stuck)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		led := r.Stats().Ledger
		if led.Offered != 12 || led.Written != 4 || led.Dropped[DropQueueFull] != 7 || led.Dropped[DropClosed] != 1 {
			t.Errorf("ledger %+v", led)
		}
	})
}

// Half a request is worth less than none: after a refusal the rest is not offered.
func TestSinkRefusesAPart(t *testing.T) {
	n := 0
	sink := &memory{onAppend: func(*snapshot.Snapshot) error {
		if n++; n == 2 {
			return errors.New("bad row")
		}
		return nil
	}}
	r := newRecorder(t, sink, Options{})
	r.Record(context.Background(), row(1), row(2), row(3))
	r.Record(context.Background(), row(4))
	led := closeNow(t, r)
	if led.Written != 2 || led.Dropped[DropSinkError] != 2 || sink.rows[1].SourceID != "4" {
		t.Errorf("ledger %+v", led)
	}
}

// Sampling keeps or leaves whole requests, and weighing by 1/keep_prob makes up for it.
func TestSamplingIsUnbiased(t *testing.T) {
	const rate, requests = 0.2, 20000
	draws := rand.New(rand.NewPCG(1, 2))
	world := rand.New(rand.NewPCG(3, 4))
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: rate, Random: draws.Float64, QueueRows: 1 << 20})
	var truth, variance float64
	size := map[decision.ID]int{}
	for range requests {
		rows := make([]*snapshot.Snapshot, 1+world.IntN(3))
		id := decision.NewID(time.Now())
		var worth float64
		for i := range rows {
			rows[i] = row(i)
			rows[i].RequestID, rows[i].KeepProb = id, 0.5 // an earlier sampler kept half
			rows[i].Cost = decision.Some(int64(world.IntN(100)))
			worth += float64(rows[i].Cost.V) / 0.5
		}
		size[id] = len(rows)
		truth += worth
		variance += worth * worth * (1 - rate) / rate
		r.Record(context.Background(), rows...)
	}
	led := closeNow(t, r)
	var weighted, naive float64
	for _, s := range sink.all() {
		if s.KeepProb != 0.5*rate {
			t.Fatalf("keep_prob %v", s.KeepProb)
		}
		size[s.RequestID]--
		weighted += float64(s.Cost.V) * s.Weight()
		naive += float64(s.Cost.V)
	}
	kept := 0
	for id, left := range size {
		if left == 0 {
			kept++
		} else if n := led.Written; n == 0 || left < 1 {
			t.Fatalf("request %v was torn apart", id)
		}
	}
	if d := math.Abs(weighted - truth); d > 4*math.Sqrt(variance) {
		t.Errorf("weighted sum %v, truth %v, %v standard errors off", weighted, truth, d/math.Sqrt(variance))
	}
	if d := truth - naive; d < 20*math.Sqrt(variance) {
		t.Errorf("the naive sum %v is near the truth %v: the test shows nothing", naive, truth)
	}
	if sd := math.Sqrt(requests * rate * (1 - rate)); math.Abs(float64(kept)-requests*rate) > 4*sd {
		t.Errorf("kept %d of %d requests", kept, requests)
	}
	if led.SampledOut == 0 || led.SampledOut+led.Written != led.Offered {
		t.Errorf("ledger %+v", led)
	}
}

func TestLogSaysWhatIsLost(t *testing.T) {
	var log bytes.Buffer
	sink := &memory{}
	bubble(t, sink, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), FlushInterval: time.Second}, func(r *Recorder) {
		bad := row(1)
		bad.Scenario = ""
		for range 10 {
			r.Record(context.Background(), bad)
		}
		time.Sleep(5 * time.Second)
		r.Record(context.Background(), row(1))
		time.Sleep(5 * time.Second)
	})
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "dropped_invalid=10") || !strings.Contains(log.String(), "scenario is required") {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

type brokenHandler struct{ slog.Handler }

func (brokenHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (brokenHandler) Handle(context.Context, slog.Record) error { panic("logger bug") }

func TestLoggerMayPanic(t *testing.T) {
	sink := &memory{}
	bubble(t, sink, Options{Logger: slog.New(brokenHandler{}), FlushInterval: time.Second}, func(r *Recorder) {
		bad := row(1)
		bad.Scenario = ""
		r.Record(context.Background(), bad, row(2))
		time.Sleep(3 * time.Second)
		r.Record(context.Background(), row(3))
		if err := r.Close(context.Background()); err != nil || len(sink.rows) != 1 {
			t.Errorf("%v, %d rows", err, len(sink.rows))
		}
	})
}

// short is what a sink's Close says that could not write its last rows.
type short struct{ rows, requests uint64 }

func (short) Error() string                 { return "disk full" }
func (e short) Unwritten() (uint64, uint64) { return e.rows, e.requests }
func (short) DropReason() string            { return "spool-full" }

// A sink that says how much it could not write is believed, as far as that can be: the
// ledger closes whatever it says.
func TestCloseWithAShortfall(t *testing.T) {
	for _, c := range []struct {
		says                   short
		rowsLost, requestsLost uint64
	}{
		{short{0, 0}, 0, 0}, {short{2, 1}, 2, 1}, {short{1, 0}, 1, 0}, {short{6, 3}, 6, 3},
		{short{7, 9}, 7, 4}, {short{8, 0}, 8, 4}, {short{99, 0}, 8, 4},
		{short{7, 0}, 7, 2}, // 3 rows are left, of at most 3 requests
	} {
		sink := &memory{onClose: func() error { return fmt.Errorf("close: %w", c.says) }}
		r := newRecorder(t, sink, Options{FlushInterval: time.Hour})
		r.Record(context.Background(), row(0), row(0))
		if _, err := r.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		sink.onFlush = func() error { return errors.New("EIO") }
		for range 4 {
			r.Record(context.Background(), row(1), row(1))
		}
		if err := r.Close(context.Background()); !errors.Is(err, c.says) {
			t.Fatalf("close: %v", err)
		}
		led := r.Stats().Ledger
		if led.Check() != nil || led.Offered != 10 || led.Dropped["spool-full"] != c.rowsLost || r.Watermark() != led.Written {
			t.Errorf("%+v: rows %+v: %v, watermark %d", c.says, led, led.Check(), r.Watermark())
		}
		if q := led.Requests; q.Offered != 5 || q.Dropped["spool-full"] != c.requestsLost {
			t.Errorf("%+v: requests %+v", c.says, q)
		}
	}
}

// The sink hangs in a flush, and in its Close, until the recorder's Close has given up.
func TestCloseDeadlineInFlushAndSeal(t *testing.T) {
	for _, in := range []string{"flush", "close"} {
		sink := &memory{}
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			hang := func() error { <-release; return nil }
			if in == "flush" {
				sink.onFlush = hang
			} else {
				sink.onFlush, sink.onClose = func() error { return errors.New("EIO") }, hang
			}
			r, err := New(sink, Options{FlushInterval: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			r.Record(context.Background(), row(1), row(2))
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			var other error
			var wg sync.WaitGroup
			wg.Go(func() { other = r.Close(context.Background()) })
			err = r.Close(ctx)
			if led := r.Stats().Ledger; !errors.Is(err, context.DeadlineExceeded) || led.Dropped[DropCloseDeadline] != 2 || led.Check() != nil {
				t.Errorf("%s: %v, ledger %+v", in, err, led)
			}
			close(release)
			wg.Wait()
			if other == nil || other.Error() != err.Error() {
				t.Errorf("%s: the other close: %v", in, other)
			}
			if led := r.Stats().Ledger; led.Written != 2 || led.DroppedTotal() != 0 || led.Requests.Written != 1 || led.Check() != nil || r.Watermark() != 2 {
				t.Errorf("%s: ledger after all %+v, watermark %d", in, led, r.Watermark())
			}
		})
		if sink.total.Written != 2 || sink.lost.Offered != 0 || sink.closes != 1 {
			t.Errorf("%s: total %+v, losses %+v, %d closes", in, sink.total, sink.lost, sink.closes)
		}
	}
}
