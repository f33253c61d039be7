package window

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_700_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func open(t testing.TB, o Options) *Window {
	t.Helper()
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

type call struct {
	at      time.Time
	latency time.Duration
	failed  bool
}

// The window against a list of all calls: counts and mean are exact over the buckets that
// it covers, quantiles lie in [true, true + 12.5 % + 1 µs].
func TestAgainstAListOfAllCalls(t *testing.T) {
	c, r := newClock(), rand.New(rand.NewPCG(1, 2))
	w := open(t, Options{Span: 3 * time.Second, Buckets: 6, Now: c.now})
	var calls []call
	for step := range 6000 {
		c.add(time.Duration(r.IntN(3_000_000)))
		if r.IntN(900) == 0 {
			c.add(time.Duration(r.IntN(5)) * time.Second) // silence
		}
		x := call{c.now(), time.Duration(r.ExpFloat64() * float64(3*time.Millisecond)), r.IntN(7) == 0}
		if r.IntN(50) == 0 {
			x.latency *= 1000
		}
		calls = append(calls, x)
		w.Observe("n", x.latency, x.failed)
		if step%50 == 0 {
			compare(t, w.Read("n"), covered(calls, c.now(), 500*time.Millisecond, 6))
		}
	}
}

// covered are the calls in the newest n buckets.
func covered(calls []call, now time.Time, width time.Duration, n int64) []call {
	var out []call
	for _, x := range calls {
		if now.UnixNano()/int64(width)-x.at.UnixNano()/int64(width) < n {
			out = append(out, x)
		}
	}
	return out
}

func compare(t *testing.T, s Stats, calls []call) {
	t.Helper()
	var failed uint64
	var sum time.Duration
	var latencies []time.Duration
	for _, x := range calls {
		if x.failed {
			failed++
		}
		sum += x.latency
		latencies = append(latencies, x.latency)
	}
	if s.Calls != uint64(len(calls)) || s.Failed != failed || s.Mean != sum/time.Duration(len(calls)) {
		t.Fatalf("%+v, want %d calls, %d failed, mean %v", s, len(calls), failed, sum/time.Duration(len(calls)))
	}
	slices.Sort(latencies)
	for _, q := range []struct {
		percent int
		got     time.Duration
	}{{50, s.P50}, {95, s.P95}, {99, s.P99}} {
		want := latencies[(len(latencies)*q.percent+99)/100-1]
		if q.got < want || q.got > want+want/8+time.Microsecond {
			t.Fatalf("p%d is %v, the calls have %v", q.percent, q.got, want)
		}
	}
}

func TestStepsHoldTheirLatencies(t *testing.T) {
	last := -1
	for us := range 70_000 {
		d := time.Duration(us) * time.Microsecond
		step := stepOf(d)
		if step < last || step > last+1 || upper(step) < d || step > 0 && upper(step-1) >= d {
			t.Fatalf("%v is in step %d after %d, which ends at %v", d, step, last, upper(step))
		}
		last = step
	}
	if stepOf(1<<62) != steps-1 || upper(steps-1) < 30*time.Minute {
		t.Errorf("%d, %v", stepOf(1<<62), upper(steps-1))
	}
}

func TestNoCallsIsNoRate(t *testing.T) {
	w := open(t, Options{})
	s := w.Read("nobody")
	if _, ok := s.ErrorRate(); ok || s.Calls != 0 {
		t.Errorf("%+v", s)
	}
	values := s.Attributes()
	if values[0] != decision.IntValue(0) || !values[2].IsNull() || !values[6].IsNull() || len(values) != len(w.Fields()) {
		t.Errorf("%v", values)
	}
	w.Observe("n", 2*time.Millisecond, true)
	s = w.Read("n")
	for i, f := range w.Fields() {
		if v := s.Attributes()[i]; v.Type() != f.Type {
			t.Errorf("%s is %v, not %v", f.Name, v, f.Type)
		}
	}
	if f := w.Fields()[2]; f.Name != "local.error_rate_10s" {
		t.Errorf("%v", f)
	}
}

func TestSilentNodesMakeRoom(t *testing.T) {
	c := newClock()
	w := open(t, Options{Span: time.Second, Buckets: 2, MaxNodes: 2, Now: c.now})
	for _, n := range []string{"a", "b", "c", "c"} {
		w.Observe(n, 1, false)
	}
	s := w.Read("c")
	if s.Calls != 0 || w.Refused() != 2 {
		t.Errorf("%+v, %d refused", s, w.Refused())
	}
	c.add(time.Second)
	w.Observe("c", 1, false)
	if s := w.Read("c"); s.Calls != 1 || w.Refused() != 2 {
		t.Errorf("%+v, %d refused", s, w.Refused())
	}
}

func TestTheClockMayStepBack(t *testing.T) {
	c := newClock()
	w := open(t, Options{Now: c.now})
	w.Observe("n", 1, true)
	c.add(-time.Hour)
	w.Observe("n", 1, false)
	if s := w.Read("n"); s.Calls != 2 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
}

func TestConcurrentUse(t *testing.T) {
	w := open(t, Options{Span: time.Hour})
	b, err := NewBreaker(w, BreakerOptions{ErrorRate: 1, MinCalls: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				name := fmt.Sprint(i % 3)
				if b.Allow(name) {
					b.Observe(name, time.Duration(i), g == 0)
				}
				w.Read(name)
				b.State(name)
			}
		})
	}
	wg.Wait()
	var calls, failed uint64
	for i := range 3 {
		s := w.Read(fmt.Sprint(i))
		calls, failed = calls+s.Calls, failed+s.Failed
	}
	if calls != 4000 || failed != 1000 {
		t.Errorf("%d calls, %d failed", calls, failed)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{{Span: time.Millisecond}, {Span: 1500 * time.Millisecond}, {Span: 2 * time.Hour}, {Buckets: 1}, {MaxNodes: -1}} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []BreakerOptions{{ErrorRate: 1.5}, {OpenFor: -1}, {Probes: -1}} {
		if _, err := NewBreaker(open(t, Options{}), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := NewBreaker(nil, BreakerOptions{}); !errors.Is(err, ErrOptions) {
		t.Errorf("%v", err)
	}
}

func TestBreaker(t *testing.T) {
	c := newClock()
	w := open(t, Options{Now: c.now})
	b, err := NewBreaker(w, BreakerOptions{ErrorRate: 0.5, MinCalls: 4, OpenFor: 2 * time.Second, Probes: 2})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(s State, allowed bool) {
		t.Helper()
		if got := b.State("n"); got != s {
			t.Fatalf("state %s, want %s", got, s)
		}
		if got := b.Allow("n"); got != allowed {
			t.Fatalf("allowed %v, want %v", got, allowed)
		}
	}
	for _, failed := range []bool{true, true, false} {
		b.Observe("n", 1, failed)
		expect(Closed, true)
	}
	b.Observe("n", 1, true) // the fourth call: 3 of 4
	expect(Open, false)
	b.Observe("n", 1, false) // was under way
	c.add(2 * time.Second)
	expect(HalfOpen, true)
	expect(HalfOpen, false) // one at a time
	b.Observe("n", 1, true)
	expect(Open, false)
	c.add(2 * time.Second)
	for range 2 {
		expect(HalfOpen, true)
		b.Observe("n", 1, false)
	}
	expect(Closed, true)
	b.Observe("n", 1, true) // old failures do not open it again
	expect(Closed, true)
}

func Example() {
	w, err := New(Options{Span: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	for i := range 20 {
		w.Observe("pool-b", 30*time.Millisecond, i%4 == 0)
	}
	stats := w.Read("pool-b")
	for i, v := range stats.Attributes()[:3] {
		fmt.Println(w.Fields()[i].Name, v)
	}
	// Output:
	// local.requests_10s 20
	// local.errors_10s 5
	// local.error_rate_10s 0.25
}

func BenchmarkObserve(b *testing.B) {
	w := open(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		w.Observe("n", time.Millisecond, false)
	}
}

func BenchmarkRead(b *testing.B) {
	w := open(b, Options{})
	w.Observe("n", time.Millisecond, false)
	for b.Loop() {
		w.Read("n")
	}
}
