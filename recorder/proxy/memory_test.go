package proxy

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// read waits until so many attempts have been read.
func (s *setup) read(n uint64) {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); s.proxy.Stats().Attempts < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%d attempts were not read: %+v", n, s.proxy.Stats())
		}
	}
}

func failing(t *testing.T) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); w.WriteHeader(503) })
}

func waiting(o *Options, _ *recorder.Options) { o.RetryWindow = time.Hour }

// long is ask1 with a state of so many bytes, which compress well.
func long(n int) string { return strings.Replace(ask1, `"x"`, `"`+strings.Repeat("x", n)+`"`, 1) }

// Failed attempts wait for their retry as they came: without their encoding these would be
// 32 MiB.
func TestWaitingBodiesStayCompressed(t *testing.T) {
	const n, size = 32, 1 << 20
	s := start(t, failing(t), waiting)
	body := long(size)
	packed := string(zipped(body))
	before := heap()
	for range n {
		post(t, s.url+"/v1/systemone", packed, "Content-Encoding", "gzip")
	}
	s.read(n)
	grown, captured := heap()-before, s.proxy.Stats().Captured
	if grown > 12<<20 || captured < n*int64(len(packed)) || captured > n*(int64(len(packed))+8<<10)+2*size {
		t.Errorf("%d bytes more on the heap, %d captured, of %d requests of %d bytes", grown, captured, n, len(packed))
	}
	rows := s.rows()
	l := s.rec.Stats().Ledger
	if l.Offered != n || len(rows)+int(l.Dropped[recorder.DropQueueFull]) != n || len(rows) == 0 || string(rows[0].Input) != body {
		t.Errorf("%d rows, %+v", len(rows), l)
	}
}

// What a body becomes without its encoding counts as captured, of requests and answers.
func TestDecodedBodiesAreInTheBudget(t *testing.T) {
	var answer []byte
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(answer)
	}), func(o *Options, _ *recorder.Options) { o.Budget = 1 << 20 })
	answer = zipped(answer1)
	post(t, s.url+"/v1/systemone", string(zipped(long(2<<20))), "Content-Encoding", "gzip")
	post(t, s.url+"/v1/systemone", string(zipped(long(1<<10))), "Content-Encoding", "gzip")
	s.read(1) // the second; the first is lost before
	answer = zipped(strings.Repeat(" ", 2<<20))
	post(t, s.url+"/v1/systemone", ask1)
	rows := s.rows()
	if l := s.rec.Stats().Ledger; len(rows) != 1 || l.Dropped[LostBudget] != 2 || string(rows[0].Input) != long(1<<10) {
		t.Errorf("%d rows, %+v", len(rows), l)
	}
}

// A retry may be compressed otherwise than the attempt before: it is the same body.
func TestRetryOfCompressedBody(t *testing.T) {
	s := start(t, script(t, status(503), fine), waiting)
	post(t, s.url+"/v1/systemone", string(zipped(ask1)), "Content-Encoding", "gzip")
	post(t, s.url+"/v1/systemone", ask1, "X-Stainless-Retry-Count", "1")
	if r := only(t, s.rows()); r.Attempts.V != 2 || string(r.Input) != ask1 {
		t.Errorf("%+v", r)
	}
}

// Of the headers of an attempt that waits, only what its row needs is kept.
func TestWaitingHeadersAreSmall(t *testing.T) {
	const n = 150
	s := start(t, failing(t), waiting)
	before := heap()
	for i := range n {
		post(t, s.url+"/v1/systemone?pad="+strings.Repeat("q", 20_000), fmt.Sprintf(`{"x":%d}`, i), "X-Pad", strings.Repeat("a", 180_000))
	}
	s.read(n)
	if grown, captured := heap()-before, s.proxy.Stats().Captured; grown > 8<<20 || captured > n*(8<<10) {
		t.Errorf("%d bytes more on the heap, %d captured", grown, captured)
	}
	if rows := s.rows(); len(rows) != n {
		t.Errorf("%d rows", len(rows))
	}
}

// What is kept of a head counts: captured headers, and all of it until it is read.
func TestHeadersAreInTheBudget(t *testing.T) {
	s := start(t, failing(t), waiting, func(o *Options, r *recorder.Options) {
		o.Budget = 100_000
		r.Capture.Fields = []recorder.CaptureField{{Name: "headers.x-kept", Type: decision.String}}
	})
	post(t, s.url+"/v1/systemone", ask1, "X-Pad", strings.Repeat("a", 150_000))
	post(t, s.url+"/v1/systemone", ask1, "X-Kept", strings.Repeat("a", 20_000))
	s.read(1)
	for end := time.Now().Add(20 * time.Second); s.proxy.Stats().Captured < 20_000; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", s.proxy.Stats())
		}
	}
	rows := s.rows()
	if l := s.rec.Stats().Ledger; len(rows) != 1 || l.Dropped[LostBudget] != 1 {
		t.Errorf("%d rows, %+v", len(rows), l)
	}
}

// A call that is tried for ever is recorded all the same, and holds no more memory with
// each attempt.
func TestEndlessRetriesAreRecorded(t *testing.T) {
	const n = 10*maxAttempts + 1
	for name, headers := range map[string]func(i int) []string{
		"key":   func(int) []string { return []string{"Idempotency-Key", "k"} },
		"count": func(i int) []string { return []string{"X-Stainless-Retry-Count", fmt.Sprint(i % (maxRetry + 1))} },
	} {
		s := start(t, failing(t), waiting)
		var most int64
		for i := range n {
			post(t, s.url+"/v1/systemone", ask1, append(headers(i), "X-Pad", strings.Repeat("a", 20_000))...)
			s.read(uint64(i + 1))
			most = max(most, s.proxy.Stats().Captured)
		}
		rows := s.rows()
		sum := 0
		for _, r := range rows {
			sum += strings.Count(r.ND, `"at_ns":`)
			if r.ErrorCode != "http-503" || len(r.ND) > 100*maxAttempts+200 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if alone(rows) {
			sum++ // the last one, whose tape is only the dial or nothing
		}
		if len(rows) < n/maxAttempts || sum != n || most > 100_000 {
			t.Errorf("%s: %d rows of %d attempts, %d of them on tapes, at most %d captured", name, len(rows), n, sum, most)
		}
	}
}

func alone(rows []*snapshot.Snapshot) bool {
	for _, r := range rows {
		if r.Attempts.V == 1 || !strings.Contains(r.ND, "at_ns") {
			return true
		}
	}
	return false
}

// A call ends at an age, too, however the server puts its clients off.
func TestCallsEndByAge(t *testing.T) {
	s := start(t, failing(t))
	f := &folder{Proxy: s.proxy, pending: map[callKey][]*call{}}
	from := time.Now().Add(-time.Hour)
	for i := range 10 {
		f.take(&attempt{form: formQuestions, start: from.Add(time.Duration(i) * time.Minute), status: 503, key: "k", retry: 0,
			header: http.Header{}, answer: http.Header{"Retry-After": {"120"}}, body: captured{data: []byte(ask1), whole: true}})
	}
	if f.order.Len() != 1 {
		t.Fatalf("%d calls", f.order.Len())
	}
	c := f.order.Front().Value.(*call)
	if end := from.Add(maxCallAge + s.proxy.opts.RetryWindow); len(c.steps) != 10 || !c.until.Equal(end) {
		t.Errorf("%d attempts, until %v, want %v", len(c.steps), c.until, end)
	}
	f.expire(c.until.Add(-time.Nanosecond))
	if f.order.Len() != 1 {
		t.Error("it ended before its time")
	}
	if f.expire(c.until); f.order.Len() != 0 || len(f.pending) != 0 {
		t.Error("it waits on")
	}
	if r := only(t, s.rows()); r.Attempts.V != 10 {
		t.Errorf("%+v", r)
	}
}
