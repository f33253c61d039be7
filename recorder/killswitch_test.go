package recorder

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func TestSwitchedOffPassesThrough(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", Capture: Capture{Input: true, Output: true}})
	var seen *Recording
	var w http.ResponseWriter
	h := r.Middleware(http.HandlerFunc(func(got http.ResponseWriter, q *http.Request) {
		seen, w = FromContext(q.Context()), got
		seen.Decision("").Choose("allow")
	}))
	b := r.Wrap(&fake{answer: "allow"})
	req := decision.Request{Scenario: "s", Questions: make([]decision.Question, 2)}
	all := func() {
		rw := httptest.NewRecorder()
		h.ServeHTTP(rw, httptest.NewRequest("GET", "/", nil))
		if off := !r.Recording(); off != (w == http.ResponseWriter(rw)) || off != (seen == nil) {
			t.Errorf("off %v, but the handler got recording %v, writer %T", off, seen, w)
		}
		if err := b.Decide(context.Background(), &req, &decision.Response{}); err != nil {
			t.Error(err)
		}
		r.Record(context.Background(), row(1), row(2), row(3))
		ctx, rec := r.Start(context.Background())
		FromContext(ctx).Decision("").Choose("allow")
		rec.End(ctx)
	}
	all()
	r.SetRecording(false)
	s := r.Stats()
	if s.Recording || s.OffSince.IsZero() || s.Bypassed != 0 {
		t.Errorf("stats %+v", s)
	}
	all()
	r.SetRecording(false) // twice is once
	r.SetRecording(true)
	all()
	s = r.Stats()
	if !s.Recording || !s.OffSince.IsZero() || s.Bypassed != 4 || s.Ledger.Dropped[DropSwitchedOff] != 1+2+3+1 {
		t.Errorf("stats %+v", s)
	}
	led := closeNow(t, r)
	if q := led.Requests; q.Offered != 12 || q.Dropped[DropSwitchedOff] != 4 || q.Check() != nil {
		t.Errorf("ledger of requests %+v", q)
	}
	if led.Written != 14 || led.Offered != 21 || len(sink.all()) != 14 {
		t.Errorf("ledger %+v, %d rows", led, len(sink.all()))
	}
	if sink.lost.Dropped[DropSwitchedOff] != 7 {
		t.Errorf("the sink was told of %+v", sink.lost)
	}
}

// A request that is under way when the switch falls is recorded to its end.
func TestSwitchLetsRequestsFinish(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s"})
	r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.SetRecording(false)
		FromContext(q.Context()).Decision("").Choose("allow")
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if closeNow(t, r); len(sink.all()) != 1 {
		t.Errorf("%d rows", len(sink.all()))
	}
}

func TestSwitchUnderLoad(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{FlushInterval: time.Millisecond})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				r.Record(context.Background(), row(i))
			}
		})
	}
	for i := range 200 {
		r.SetRecording(i%2 == 1)
		r.Stats()
	}
	wg.Wait()
	led := closeNow(t, r)
	if led.Offered != 8000 || led.Check() != nil {
		t.Errorf("ledger %+v", led)
	}
}

func TestKillFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "off")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hang, flushing := make(chan struct{}), make(chan struct{}, 1)
	sink := &memory{onFlush: func() error {
		select {
		case flushing <- struct{}{}:
		default:
		}
		<-hang
		return nil
	}}
	r := newRecorder(t, sink, Options{KillFile: file, FlushInterval: time.Millisecond})
	if r.Recording() {
		t.Error("the file was there before the recorder, which records")
	}
	r.SetRecording(true)
	if r.Recording() {
		t.Error("a call wins over the file")
	}
	<-flushing // from now on the drain hangs, and the file must be looked for all the same
	become := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); r.Recording() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("recording did not become %v", want)
			}
		}
	}
	os.Remove(file)
	become(true)
	os.WriteFile(file, nil, 0o600)
	become(false)
	r.SetRecording(false)
	os.Remove(file)
	time.Sleep(5 * time.Millisecond)
	if r.Recording() {
		t.Error("the file is gone, but the call still holds")
	}
	close(hang)
}

// A file that cannot be looked for leaves the switch where it is.
func TestKillFileUnknown(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{KillFile: "bad\x00name"})
	if !r.Recording() || !strings.Contains(r.Stats().LastError, "kill file") {
		t.Errorf("recording %v, %q", r.Recording(), r.Stats().LastError)
	}
}

func TestAdminHandler(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{Scenario: "s"})
	h := r.AdminHandler()
	do := func(method, body string, edit func(*http.Request)) *httptest.ResponseRecorder {
		q := httptest.NewRequest(method, "http://127.0.0.1:9000/recording", strings.NewReader(body))
		q.RemoteAddr = "127.0.0.1:5555"
		q.Header.Set("Content-Type", "application/json")
		if edit != nil {
			edit(q)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		return w
	}
	off := `{"on":false}`
	for name, edit := range map[string]func(*http.Request){
		"another machine":  func(q *http.Request) { q.RemoteAddr = "192.0.2.1:5555" },
		"no address":       func(q *http.Request) { q.RemoteAddr = "" },
		"a rebound name":   func(q *http.Request) { q.Host = "evil.example:9000" },
		"a name like it":   func(q *http.Request) { q.Host = "localhost.evil.example" },
		"no name":          func(q *http.Request) { q.Host = "" },
		"another origin":   func(q *http.Request) { q.Header.Set("Origin", "http://evil.example") },
		"another port":     func(q *http.Request) { q.Header.Set("Origin", "http://127.0.0.1:9001") },
		"a sandbox":        func(q *http.Request) { q.Header.Set("Origin", "null") },
		"another site":     func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") },
		"the same site":    func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "same-site") },
		"a proxy":          func(q *http.Request) { q.Header.Set("X-Forwarded-For", "192.0.2.1") },
		"a standard proxy": func(q *http.Request) { q.Header.Set("Forwarded", "for=192.0.2.1") },
	} {
		for _, method := range []string{"GET", "POST"} {
			if w := do(method, off, edit); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "ledger") {
				t.Errorf("%s from %s: %d %s", method, name, w.Code, w.Body)
			}
		}
	}
	for _, c := range []struct {
		method, body string
		edit         func(*http.Request)
		code         int
	}{
		{"DELETE", "", nil, 405}, {"PUT", off, nil, 405},
		{"POST", off, func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") }, 415},
		{"POST", off, func(q *http.Request) { q.Header.Del("Content-Type") }, 415},
		{"POST", "", nil, 400}, {"POST", "{}", nil, 400}, {"POST", `{"on":"false"}`, nil, 400},
		{"POST", `{"on":false,"off":true}`, nil, 400}, {"POST", off + off, nil, 400},
		{"POST", `{"on":` + strings.Repeat(" ", 1<<11) + `false}`, nil, 400},
	} {
		if w := do(c.method, c.body, c.edit); w.Code != c.code {
			t.Errorf("%s %q: %d, want %d", c.method, c.body, w.Code, c.code)
		}
	}
	if !r.Recording() {
		t.Fatal("a refused request switched the recorder off")
	}
	local := func(q *http.Request) {
		q.Host, q.RemoteAddr = "[::1]:9000", "[::1]:1"
		q.Header.Set("Origin", "http://[::1]:9000")
		q.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if w := do("POST", off, local); w.Code != 200 || r.Recording() || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r.Record(context.Background(), row(1))
	var got struct {
		Recording bool      `json:"recording"`
		OffSince  time.Time `json:"off_since"`
		Bypassed  uint64    `json:"bypassed"`
		Ledger    struct{ Offered uint64 }
	}
	w := do("GET", "", func(q *http.Request) { q.Host = "LOCALHOST" })
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Recording || got.Bypassed != 1 || got.Ledger.Offered != 1 || got.OffSince.IsZero() {
		t.Errorf("%v: %s", err, w.Body)
	}
	if w := do("POST", `{"on":true}`, nil); w.Code != 200 || !r.Recording() || strings.Contains(w.Body.String(), "off_since") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var none *Recorder
	none.SetRecording(true)
	if none.Recording() {
		t.Error("no recorder records")
	}
}

func BenchmarkMiddlewareOff(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	r := benchRecorder(b, Options{})
	r.SetRecording(false)
	w, q := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	for name, h := range map[string]http.Handler{"bare": next, "switched-off": r.Middleware(next)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, q)
			}
		})
	}
}

// nested are ways in which one request passes the recorder at more than one place; each
// makes one request of so many rows while recording.
func nested(r *Recorder) map[string]struct {
	rows uint64
	do   func()
} {
	b := r.Wrap(&fake{answer: "allow"})
	log := slog.New(NewSlogHandler(r, nil, DefaultSlogMapping("")))
	decide := func(ctx context.Context, questions int) {
		req := decision.Request{Scenario: "s", Questions: make([]decision.Question, questions)}
		for i := range req.Questions {
			req.Questions[i].ID = string(rune('a' + i))
		}
		_ = b.Decide(ctx, &req, &decision.Response{})
	}
	middleware := func(f func(ctx context.Context)) func() {
		h := r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { f(q.Context()) }))
		return func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) }
	}
	start := func(ctx context.Context, f func(ctx context.Context)) {
		ctx, rec := r.Start(ctx)
		f(ctx)
		rec.End(ctx)
	}
	type way = struct {
		rows uint64
		do   func()
	}
	return map[string]way{
		"middleware, backend":                      {1, middleware(func(ctx context.Context) { decide(ctx, 1) })},
		"middleware, backend with three questions": {3, middleware(func(ctx context.Context) { decide(ctx, 3) })},
		"middleware, log":                          {1, middleware(func(ctx context.Context) { log.InfoContext(ctx, "decided", "action", "allow") })},
		"middleware, rows":                         {2, middleware(func(ctx context.Context) { r.Record(ctx, row(1), row(2)) })},
		"middleware, handler":                      {1, middleware(func(ctx context.Context) { FromContext(ctx).Decision("").Choose("allow") })},
		"start, backend": {2, func() {
			start(context.Background(), func(ctx context.Context) { decide(ctx, 2) })
		}},
		"middleware, start, backend": {2, middleware(func(ctx context.Context) {
			start(ctx, func(ctx context.Context) { decide(ctx, 2) })
		})},
	}
}

// What a request passes by at several places counts while recording is off as it does
// while it is on.
func TestNestedCallsPassByOnce(t *testing.T) {
	for name := range nested(newRecorder(t, &memory{}, Options{Scenario: "s"})) {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, &memory{}, Options{Scenario: "s"})
			way := nested(r)[name]
			for range 10 {
				way.do()
			}
			r.SetRecording(false)
			for range 10 {
				way.do()
			}
			bypassed := r.Stats().Bypassed
			led := closeNow(t, r)
			if led.Written != 10*way.rows || led.Dropped[DropSwitchedOff] != 10*way.rows {
				t.Errorf("rows %+v, want %d written and as many dropped", led, 10*way.rows)
			}
			if q := led.Requests; q.Written != 10 || q.Dropped[DropSwitchedOff] != 10 || bypassed != 10 {
				t.Errorf("requests %+v, bypassed %d", q, bypassed)
			}
		})
	}
}

// A further call is a request of its own on either side of the switch, and another
// recorder's mark is not one's own.
func TestPassingByIsCountedPerRecorder(t *testing.T) {
	r, other := newRecorder(t, &memory{}, Options{Scenario: "s"}), newRecorder(t, &memory{}, Options{Scenario: "s"})
	b := other.Wrap(r.Wrap(&fake{answer: "allow"}))
	h := r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		for range 2 {
			_ = b.Decide(q.Context(), twoQuestions(), &decision.Response{})
		}
	}))
	for _, on := range []bool{true, false} {
		r.SetRecording(on)
		other.SetRecording(on)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	for _, led := range []snapshot.Ledger{closeNow(t, r), closeNow(t, other)} {
		if q := led.Requests; led.Written != 4 || led.Dropped[DropSwitchedOff] != 4 || q.Written != 2 || q.Dropped[DropSwitchedOff] != 2 {
			t.Errorf("rows %+v, requests %+v", led, q)
		}
	}
}

// The server removes a form's files by its own request, whose handler has a marked copy.
func TestServerSeesFormWhileOff(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{})
	r.SetRecording(false)
	q := httptest.NewRequest("POST", "/", strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nb\r\n--x--\r\n"))
	q.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	defer func() {
		if recover() == nil || q.MultipartForm == nil || len(q.MultipartForm.File["f"]) != 1 {
			t.Errorf("the form %+v", q.MultipartForm)
		}
	}()
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if err := q.ParseMultipartForm(1 << 10); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})).ServeHTTP(httptest.NewRecorder(), q)
}

// A request that began while recording was on is taken, or counted under its own reason.
func TestSwitchedOffTakesWhatHasBegun(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s"})
	r.SetRecording(false)
	r.RecordBegun(context.Background(), row(1), row(2))
	r.LostBegun("no-memory", 3)
	var none *Recorder
	none.RecordBegun(context.Background(), row(1))
	none.LostBegun("no-memory", 1)
	r.LostBegun("no-memory", 0)
	if led := closeNow(t, r); led.Written != 2 || led.Dropped["no-memory"] != 3 || led.Dropped[DropSwitchedOff] != 0 || led.Check() != nil {
		t.Errorf("%+v", led)
	}
}
