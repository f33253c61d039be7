package recorder

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// candidate is a backend whose Decide does what a test says.
type candidate struct {
	decide func(ctx context.Context, req *decision.Request, out *decision.Response) error
	closed atomic.Int64
}

func (c *candidate) Info() decision.Info {
	return decision.Info{Name: "candidate", Kind: "model", Artefact: decision.Artefact{StrategyVersion: "v8"}}
}
func (c *candidate) Close(context.Context) error { c.closed.Add(1); return nil }
func (c *candidate) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	for i := range out.Decisions {
		out.Decisions[i] = decision.Decision{Status: decision.OK, Action: "deny"}
	}
	if c.decide != nil {
		return c.decide(ctx, req, out)
	}
	return nil
}

func newShadow(t *testing.T, r *Recorder, c *candidate, o ShadowOptions) *Shadow {
	t.Helper()
	s, err := r.Shadow(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeShadow(t *testing.T, s *Shadow) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func shadowRequest() *decision.Request {
	return &decision.Request{ID: decision.NewID(time.Now()), Scenario: "s", Body: []byte("body"), Features: []float32{1},
		Questions: []decision.Question{{ID: "a", Candidates: []string{"allow", "deny"}}, {ID: "b"}}}
}

// split parts the shadows' rows from the primaries'.
func split(rows []*snapshot.Snapshot) (primary, shadow []*snapshot.Snapshot) {
	for _, s := range rows {
		if s.Applied == snapshot.AppliedShadow {
			shadow = append(shadow, s)
		} else {
			primary = append(primary, s)
		}
	}
	return primary, shadow
}

func TestShadowRows(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", EntityKey: key, Capture: Capture{Input: true, Entity: EntitySource{Header: "X-User"}}})
	s := newShadow(t, r, &candidate{}, ShadowOptions{})
	b := r.Wrap(&fake{answer: "allow"}, s, nil)
	decide := func(ctx context.Context, req *decision.Request) {
		var out decision.Response
		if err := b.Decide(ctx, req, &out); err != nil || out.Decisions[0].Action != "allow" {
			t.Errorf("%v: the caller got %+v", err, out.Decisions)
		}
		for i := range req.Body { // the caller may reuse what it owns at once
			req.Body[i] = '!'
		}
		req.Questions[0].Candidates[0], req.Features[0] = "!", 9
		req.Questions[1] = decision.Question{ID: "!"}
	}
	decide(context.Background(), shadowRequest())
	noID := shadowRequest()
	noID.ID = decision.ID{}
	decide(context.Background(), noID)
	h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { decide(q.Context(), shadowRequest()) }))
	q := httptest.NewRequest("GET", "/", nil)
	q.Header.Set("X-User", "ada")
	h.ServeHTTP(httptest.NewRecorder(), q)
	closeShadow(t, s)
	led := closeNow(t, r)
	primary, shadow := split(sink.all())
	if len(primary) != 6 || len(shadow) != 6 || led.Written != 12 {
		t.Fatalf("%d and %d rows, %+v", len(primary), len(shadow), led)
	}
	ids := map[decision.ID]bool{}
	for _, p := range primary {
		n := 0
		for _, row := range shadow {
			if row.SourceID != p.RequestID.String() || row.Question != p.Question {
				continue
			}
			n++
			if ids[row.ID] || row.ID == p.ID || row.RequestID == p.RequestID {
				t.Error("a shadow's row goes by an id that is taken")
			}
			ids[row.ID] = true
			if row.Action != "deny" || row.Backend != "candidate" || row.Artefact.StrategyVersion != "v8" || !row.Latency.Set ||
				row.KeepProb != 1 || row.Entity != p.Entity || row.Question == "a" && string(row.Input) != "body" || len(row.Candidates) != len(p.Candidates) {
				t.Errorf("got %+v beside %+v", row, p)
			}
		}
		if n != 1 {
			t.Errorf("%d shadow rows for a primary's row", n)
		}
	}
	if st := r.Stats().Shadow; st != (ShadowStats{Asked: 3}) {
		t.Errorf("stats %+v", st)
	}
}

// A candidate that hangs and ignores its context costs its own places, nothing else.
func TestShadowThatHangs(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{})
	hang := make(chan struct{})
	c := &candidate{decide: func(context.Context, *decision.Request, *decision.Response) error { <-hang; return nil }}
	s := newShadow(t, r, c, ShadowOptions{Concurrency: 3, Timeout: time.Millisecond})
	b := r.Wrap(&fake{answer: "allow"}, s)
	before := runtime.NumGoroutine()
	for range 100 {
		if err := b.Decide(context.Background(), shadowRequest(), &decision.Response{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := runtime.NumGoroutine() - before; n > 3*2 { // the calls and, for a moment, their timers
		t.Errorf("%d goroutines more", n)
	}
	for r.Stats().Shadow.TimedOut < 3 {
		time.Sleep(time.Millisecond)
	}
	if st := r.Stats().Shadow; st != (ShadowStats{Asked: 3, Running: 3, Busy: 97, TimedOut: 3}) || st.Skipped() != 97 {
		t.Errorf("stats %+v", st)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "3 calls") || c.closed.Load() != 0 {
		t.Errorf("close: %v", err)
	}
	close(hang)
	closeShadow(t, s)
	closeNow(t, r)
	_, shadow := split(sink.all())
	if len(shadow) != 6 || c.closed.Load() != 1 {
		t.Fatalf("%d rows", len(shadow))
	}
	for _, row := range shadow {
		if row.Status != decision.Timeout || row.ErrorCode != CodeDeadline || row.Latency.V != time.Millisecond || row.Action != "" {
			t.Errorf("got %+v", row)
		}
	}
	if st := r.Stats().Shadow; st.Running != 0 {
		t.Errorf("stats %+v", st)
	}
}

func TestShadowMisbehaves(t *testing.T) {
	for name, c := range map[string]struct {
		decide func(ctx context.Context, req *decision.Request, out *decision.Response) error
		status decision.Status
		code   string
		stats  ShadowStats
	}{
		"panics": {func(context.Context, *decision.Request, *decision.Response) error { panic("no") }, decision.Error, CodePanic,
			ShadowStats{Asked: 1, Panicked: 1}},
		"fails": {func(context.Context, *decision.Request, *decision.Response) error { return errors.New("down") }, decision.Error, CodeBackend,
			ShadowStats{Asked: 1}},
		"obeys its context": {func(ctx context.Context, _ *decision.Request, _ *decision.Response) error {
			<-ctx.Done()
			return ctx.Err()
		}, decision.Timeout, CodeDeadline, ShadowStats{Asked: 1, TimedOut: 1}},
		"answers what is not allowed": {func(_ context.Context, _ *decision.Request, out *decision.Response) error {
			out.Decisions[0].Action = "explode"
			return nil
		}, decision.Error, decision.CodeActionNotAllowed, ShadowStats{Asked: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &memory{}
			r := newRecorder(t, sink, Options{CPUTime: func() time.Duration { return 0 }})
			s := newShadow(t, r, &candidate{decide: c.decide}, ShadowOptions{Timeout: 5 * time.Millisecond})
			if name != "obeys its context" {
				s.opts.Timeout = time.Minute
			}
			if err := r.Wrap(&fake{answer: "allow"}, s).Decide(context.Background(), shadowRequest(), &decision.Response{}); err != nil {
				t.Fatal(err)
			}
			closeShadow(t, s)
			closeNow(t, r)
			_, shadow := split(sink.all())
			if len(shadow) != 2 || shadow[0].Status != c.status || shadow[0].ErrorCode != c.code {
				t.Fatalf("got %+v", shadow)
			}
			if shadow[0].Usage.CPU.Set == (c.status == decision.Timeout) {
				t.Errorf("processor time %+v of a %v", shadow[0].Usage.CPU, c.status)
			}
			if st := r.Stats(); st.Shadow != c.stats || st.Panics != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// Which requests are shadowed is a matter of their ids: the share is the rate, two
// shadows agree, and the keep probability is that of both draws.
func TestShadowRate(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: 0.5, QueueRows: 1 << 16})
	const n, rate = 4000, 0.3
	a := newShadow(t, r, &candidate{}, ShadowOptions{Rate: rate, Concurrency: n})
	b := newShadow(t, r, &candidate{}, ShadowOptions{Rate: rate, Concurrency: n})
	w := r.Wrap(&fake{answer: "allow"}, a, b)
	req := shadowRequest()
	req.Questions = req.Questions[:1]
	for range n {
		req.ID = decision.NewID(time.Now())
		if err := w.Decide(context.Background(), req, &decision.Response{}); err != nil {
			t.Fatal(err)
		}
	}
	closeShadow(t, a)
	closeShadow(t, b)
	closeNow(t, r)
	primary, shadow := split(sink.all())
	count := map[string]int{}
	for _, p := range primary {
		count[p.RequestID.String()] = 10
	}
	for _, s := range shadow {
		if count[s.SourceID]++; s.KeepProb != 0.5*rate {
			t.Fatalf("keep probability %v", s.KeepProb)
		}
	}
	both := 0
	for id, c := range count {
		switch c {
		case 10:
		case 12:
			both++
		default:
			t.Fatalf("%s: %d", id, c)
		}
	}
	if z := (float64(both) - n*0.5*rate) / math.Sqrt(n*0.5*rate*(1-0.5*rate)); math.Abs(z) > 5 {
		t.Errorf("%d of %d were shadowed, z = %.1f", both, n, z)
	}
}

func TestShadowSkips(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Random: func() float64 { return 0.9 }, SampleRate: 0.5})
	s := newShadow(t, r, &candidate{}, ShadowOptions{MaxRequestBytes: 20})
	ctx := context.Background()
	kept := func() *decision.Request {
		for {
			if req := shadowRequest(); r.sampler.DrawID(req.ID) {
				return req
			}
		}
	}
	r.Wrap(&fake{answer: "allow"}, s).Decide(ctx, shadowRequest(), &decision.Response{}) // sampled out
	s.Offer(ctx, &decision.Request{ID: decision.NewID(time.Now())})                      // asks nothing
	noID := shadowRequest()
	noID.ID = decision.ID{}
	s.Offer(ctx, noID)
	large := kept()
	large.Body = make([]byte, 21)
	s.Offer(ctx, large)
	r.SetRecording(false)
	s.Offer(ctx, kept())
	r.SetRecording(true)
	if st := r.Stats().Shadow; st != (ShadowStats{TooLarge: 1}) {
		t.Errorf("stats %+v", st)
	}
	rctx, rec := r.Start(ctx)
	s.Offer(rctx, shadowRequest()) // the recording is not kept
	rec.End(rctx)
	s.Offer(ctx, kept())
	closeShadow(t, s)
	s.Offer(ctx, kept()) // too late
	if st := r.Stats().Shadow; st != (ShadowStats{Asked: 1, TooLarge: 1}) {
		t.Errorf("stats %+v", st)
	}
	var none *Shadow
	none.Offer(ctx, shadowRequest())
	if err := none.Close(ctx); err != nil {
		t.Error(err)
	}
	for _, o := range []ShadowOptions{{Rate: -1}, {Rate: 1.5}, {Rate: math.NaN()}, {Concurrency: -1}, {Timeout: -1}, {MaxRequestBytes: -1}} {
		if _, err := r.Shadow(&candidate{}, o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := r.Shadow(nil, ShadowOptions{}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}

// Callers, slow candidates, timeouts and Close at once.
func TestShadowUnderLoad(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{QueueRows: 1 << 16})
	var n atomic.Int64
	s := newShadow(t, r, &candidate{decide: func(_ context.Context, req *decision.Request, _ *decision.Response) error {
		if n.Add(1)%7 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
		if string(req.Body) != "body" || req.Features[0] != 1 {
			panic("the copy is not one")
		}
		return nil
	}}, ShadowOptions{Concurrency: 8, Timeout: time.Millisecond})
	b := r.Wrap(&fake{answer: "allow"}, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				req := shadowRequest()
				b.Decide(context.Background(), req, &decision.Response{})
				req.Body[0], req.Features[0] = '!', 0
			}
		})
	}
	wg.Wait()
	closeShadow(t, s)
	led := closeNow(t, r)
	st := r.Stats().Shadow
	if st.Panicked > 0 || st.Running != 0 || st.Asked+st.Busy != 2000 || led.Offered != 4000+2*st.Asked {
		t.Errorf("stats %+v, ledger %+v", st, led)
	}
}

// Outside a recording nobody has drawn for a request before it is offered. What the rows
// weigh must add up to the requests that were offered all the same.
func TestOffersOutsideARecordingAreWeighted(t *testing.T) {
	const requests, sampled, rate = 4000, 0.1, 0.5
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: sampled, Scenario: "s"})
	s := newShadow(t, r, &candidate{}, ShadowOptions{Rate: rate, Concurrency: requests})
	ids := rand.New(rand.NewPCG(5, 6))
	for range requests {
		req := shadowRequest()
		for i := range req.ID {
			req.ID[i] = byte(ids.Uint32())
		}
		before := r.Stats().Shadow.Asked
		s.Offer(context.Background(), req)
		once := r.Stats().Shadow.Asked
		s.Offer(context.Background(), req)
		if twice := r.Stats().Shadow.Asked; twice-once != once-before {
			t.Fatalf("offered twice, asked %d and %d times", once-before, twice-once)
		}
	}
	closeShadow(t, s)
	closeNow(t, r)
	weighted := 0.0
	for _, row := range sink.all() {
		if math.Abs(row.KeepProb-sampled*rate) > 1e-12 {
			t.Fatalf("keep_prob %v", row.KeepProb)
		}
		weighted += row.Weight() / 4 // two questions each, offered twice
	}
	const p = sampled * rate
	if sd := math.Sqrt(requests * (1 - p) / p); math.Abs(weighted-requests) > 4*sd {
		t.Errorf("%d requests weigh %v, %v standard errors off", requests, weighted, (weighted-requests)/sd)
	}
}

// The draw by entity holds for offers, too: of an entity all requests or none.
func TestOffersOutsideARecordingFollowTheEntity(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: 0.5, Scenario: "s", EntityKey: key, Sampling: Sampling{ByEntity: true},
		Capture: Capture{Entity: EntitySource{Attr: "user"}}})
	s := newShadow(t, r, &candidate{}, ShadowOptions{Concurrency: 1000})
	schema, err := decision.NewSchema(decision.Field{Name: "user", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[uint64]int{}
	for user := range 100 {
		before := r.Stats().Shadow.Asked
		for range 5 {
			req := shadowRequest()
			req.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue(strconv.Itoa(user))}}
			s.Offer(context.Background(), req)
		}
		asked[r.Stats().Shadow.Asked-before]++
	}
	closeShadow(t, s)
	if asked[0]+asked[5] != 100 || asked[0] < 25 || asked[5] < 25 {
		t.Errorf("entities by requests asked: %v", asked)
	}
}
