package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// diskFull is an error that names its reason.
type diskFull struct{}

func (diskFull) Error() string      { return "no space" }
func (diskFull) DropReason() string { return "spool-full" }

type rude struct{}

func (rude) Error() string      { return "rude" }
func (rude) DropReason() string { panic("bug in an error") }

func TestSinkNamesTheReason(t *testing.T) {
	n := 0
	sink := &memory{onAppend: func(*snapshot.Snapshot) error {
		n++
		return [...]error{fmt.Errorf("batch 3: %w", diskFull{}), errors.New("other"), rude{}}[n-1]
	}}
	r := newRecorder(t, sink, Options{})
	for i := range 3 {
		r.Record(context.Background(), row(i), row(i))
	}
	led := closeNow(t, r)
	if led.Dropped["spool-full"] != 2 || led.Dropped[DropSinkError] != 4 || led.Requests.Dropped["spool-full"] != 1 || led.Requests.Dropped[DropSinkError] != 2 {
		t.Errorf("ledger %+v, requests %+v", led, led.Requests)
	}
	sink = &memory{onClose: func() error { return diskFull{} }}
	r = newRecorder(t, sink, Options{})
	r.Record(context.Background(), row(1), row(2))
	if err := r.Close(context.Background()); !errors.As(err, new(diskFull)) {
		t.Errorf("close: %v", err)
	}
	// The flush before had made both rows safe.
	if led := r.Stats().Ledger; led.Check() != nil || led.Written != 2 || led.Requests.Written != 1 {
		t.Errorf("ledger %+v", led)
	}
	sink = &memory{onFlush: func() error { return errors.New("EIO") }, onClose: func() error { return diskFull{} }}
	r = newRecorder(t, sink, Options{})
	r.Record(context.Background(), row(1), row(2))
	if err := r.Close(context.Background()); err == nil {
		t.Error("closed")
	}
	if led := r.Stats().Ledger; led.Check() != nil || led.Dropped["spool-full"] != 2 || led.Requests.Dropped["spool-full"] != 1 {
		t.Errorf("ledger %+v", led)
	}
}

// The total for the file counts requests as the file does: by request_id.
func TestTotalCountsRequestsByID(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{})
	a, b := row(1), row(2)
	r.Record(context.Background(), a)
	r.Record(context.Background(), a) // one request in two parts
	r.Record(context.Background(), b, b)
	if s := r.Stats(); s.Ledger.Requests.Offered != 3 || s.Ledger.Offered != 4 {
		t.Errorf("stats %+v", s)
	}
	closeNow(t, r)
	if q := sink.total.Requests; q.Offered != 2 || q.Written != 2 || sink.total.Check() != nil {
		t.Errorf("total %+v", q)
	}
}

func TestStatsOfTheQueue(t *testing.T) {
	gate := make(chan struct{})
	sink := &memory{onAppend: func(*snapshot.Snapshot) error { <-gate; return nil }}
	r := newRecorder(t, sink, Options{QueueRows: 10, QueueBytes: 100, FlushInterval: time.Hour, Capture: Capture{Input: true}})
	s := row(1)
	s.Input = make([]byte, 7)
	r.Record(context.Background(), s, s)
	r.Record(context.Background(), row(2))
	if got := r.Stats(); got.Queued != 3 || got.QueuedRequests != 2 || got.QueuedBytes != 14 || got.MaxQueued != 3 || got.Capacity != 10 || got.CapacityBytes != 100 {
		t.Errorf("stats %+v", got)
	}
	close(gate)
	r.Flush(context.Background())
	r.Record(context.Background(), row(3))
	if got := r.Stats(); got.Queued != 1 || got.QueuedRequests != 1 || got.QueuedBytes != 0 || got.MaxQueued != 3 {
		t.Errorf("stats %+v", got)
	}
}

// All ways in, everything failing now and then, and people looking all the time.
func TestLedgerClosesUnderStress(t *testing.T) {
	for _, policy := range []Policy{PolicyDrop, PolicyBlock} {
		t.Run(string(policy), func(t *testing.T) {
			sink := &memory{}
			var calls atomic.Uint64
			sink.onAppend = func(*snapshot.Snapshot) error {
				switch n := calls.Add(1); {
				case n%13 == 0:
					return errors.New("bad row")
				case n%29 == 0:
					return diskFull{}
				case n%31 == 0:
					panic("sink bug")
				case n%200 == 0:
					time.Sleep(100 * time.Microsecond)
				}
				return nil
			}
			sink.onFlush = func() error {
				if calls.Load()%3 == 0 {
					return errors.New("EIO")
				}
				return nil
			}
			var draws atomic.Uint64
			r := newRecorder(t, sink, Options{QueueRows: 400, QueueBytes: 100 << 10, FlushInterval: time.Millisecond, FlushRows: 30, EntityKey: key,
				SampleRate: 0.8, Policy: policy, BlockTimeout: 2 * time.Millisecond, Scenario: "s",
				Random: func() float64 {
					if draws.Add(1)%97 == 0 {
						panic("no entropy")
					}
					return rand.Float64()
				},
				Capture: Capture{Input: true, Output: true, Entity: EntitySource{Header: "X-User"}, Fields: []CaptureField{
					{Name: "n", Type: decision.Int}, {Name: "path", Type: decision.String, Func: func(v decision.Value) (decision.Value, error) {
						if len(v.Str())%7 == 0 {
							panic("redaction bug")
						}
						return v, nil
					}}}}})
			offered := stress(t, r)
			led := closeNow(t, r)
			checkStress(t, r, sink, led, offered)
		})
	}
}

// stress returns how many rows and requests it offered, without those that the recorder
// never saw because it failed before.
func stress(t *testing.T, r *Recorder) tally {
	const callers, each = 6, 300
	var rows, requests atomic.Uint64
	var wg, watch sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		watch.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Stats()
				whole := s.Ledger
				whole.Written += uint64(s.Queued)
				whole.Requests.Written += uint64(s.QueuedRequests)
				if err := whole.Check(); err != nil || s.Queued > s.Capacity || s.QueuedBytes > s.CapacityBytes || s.MaxQueued > s.Capacity {
					t.Errorf("%v: %+v", err, s)
					return
				}
				r.Flush(context.Background())
			}
		})
	}
	for c := range callers {
		wg.Go(func() {
			handler := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				rec := FromContext(req.Context())
				if rec != nil {
					rows.Add(2)
					requests.Add(1)
				}
				rec.Decision("a").Choose("allow")
				rec.Decision("b").SetActions("x", "y")
				w.Write([]byte(req.URL.Path))
				if len(req.URL.Path)%5 == 0 {
					panic(http.ErrAbortHandler)
				}
			}))
			wrapped := r.Wrap(&fake{answer: "b"})
			for i := range each {
				switch i % 3 {
				case 0:
					a := row(i)
					a.Input = bytes.Repeat([]byte{'x'}, i)
					if i%9 == 0 {
						a.Scenario = ""
					}
					rows.Add(3)
					requests.Add(1)
					r.Record(context.Background(), a, a, a)
				case 1:
					func() {
						defer func() { recover() }()
						handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", fmt.Sprintf("/%0*d", 1+i%20, c), nil))
					}()
				case 2:
					rows.Add(2)
					requests.Add(1)
					wrapped.Decide(context.Background(), twoQuestions(), new(decision.Response))
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	watch.Wait()
	return tally{rows.Load(), requests.Load()}
}

func checkStress(t *testing.T, r *Recorder, sink *memory, led snapshot.Ledger, offered tally) {
	t.Helper()
	if err := led.Check(); err != nil {
		t.Error(err)
	}
	if led.Offered != offered.rows || led.Requests.Offered != offered.requests {
		t.Errorf("offered %d rows of %d requests, want %+v", led.Offered, led.Requests.Offered, offered)
	}
	written := tally{}
	last := decision.ID{}
	for _, s := range sink.all() {
		written.rows++
		if s.RequestID != last {
			written.requests++
			last = s.RequestID
		}
	}
	if written.rows != led.Written || written.requests != led.Requests.Written {
		t.Errorf("the sink has %+v, the ledger says %d of %d", written, led.Written, led.Requests.Written)
	}
	for _, reason := range []string{DropSinkError, "spool-full", DropInvalid, DropPanic, DropRedaction} {
		if led.Dropped[reason] == 0 || led.Requests.Dropped[reason] == 0 {
			t.Errorf("nothing dropped as %s: %+v, %+v", reason, led, led.Requests)
		}
	}
	told := sink.lost
	told.Written += led.Written
	told.Offered += led.Written
	told.Requests.Written += led.Requests.Written
	told.Requests.Offered += led.Requests.Written
	if fmt.Sprint(told.Dropped, told.Offered, *told.Requests) != fmt.Sprint(sink.total.Dropped, sink.total.Offered, *sink.total.Requests) {
		t.Errorf("losses told in parts sum up to %+v %+v, the total is %+v %+v", told, told.Requests, sink.total, sink.total.Requests)
	}
	if s := r.Stats(); s.Queued != 0 || s.QueuedRequests != 0 || s.QueuedBytes != 0 || s.Acknowledged != led.Written {
		t.Errorf("stats %+v", s)
	}
}
