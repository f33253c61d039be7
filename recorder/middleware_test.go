package recorder

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func choose(r *http.Request, action string) {
	d := FromContext(r.Context()).Decision("")
	d.SetActions("allow", "block")
	d.Choose(action)
}

func TestMiddlewareRecordsRequestAndHandler(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Backend: "edge", Capture: Capture{
		Fields: []CaptureField{
			{Name: "method", Type: decision.String}, {Name: "path", Type: decision.String}, {Name: "query.page", Type: decision.Int},
			{Name: "headers.X-Many", Type: decision.String}, {Name: "headers.host", Type: decision.String},
			{Name: "headers.absent", Type: decision.String}, {Name: "metrics.load", Type: decision.Double}, {Name: "env.country", Type: decision.String},
		},
		Entity: EntitySource{Cookie: "sid"}, Input: true, Output: true}})
	var ids []decision.ID
	s := serve(t, r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		rec := FromContext(req.Context())
		rec.SetScenario("api-abuse")
		rec.SetMetric("load", 0.5)
		rec.SetMetric("not-on-the-list", 1)
		rec.SetAttr("env.country", decision.StringValue("CN"))
		rec.SetFeatures("f2", []float32{1, 2})
		d := rec.Decision("main")
		d.SetActions("allow", "block")
		stop := d.Stage(StageRules)
		d.Answer(decision.Decision{Action: "block", Params: `{"ttl":1}`, Confidence: decision.Some(0.25), ConfidenceDef: "peak",
			Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "r9"}, Candidates: []decision.Candidate{{Action: "block", Score: decision.Some(float32(2))}}})
		stop()
		d.SetBackend("rules", decision.Artefact{StrategyVersion: "v3"})
		d.SetPropensity(0.5, snapshot.PropensityExact)
		d.SetApplied(snapshot.AppliedShadow)
		d.SetCost(12)
		d.SetTerms(snapshot.Terms{TrainingUse: "allowed"})
		d.SetNonDeterminism(`{"seed":1}`)
		d.SetQuestionType(decision.QuestionChoice)
		second := rec.Decision("second")
		second.Fail(decision.Timeout, "deadline", "too slow")
		second.SetLatency(time.Minute)
		ids = append(ids, d.ID(), second.ID(), rec.ID(), rec.Decision("main").ID())
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	})))
	req, _ := http.NewRequest("POST", s.URL+"/a/b?page=12&token=x", strings.NewReader("the body"))
	req.Header["X-Many"] = []string{"one", "two"}
	req.Header.Set("Cookie", "sid=session-1")
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	closeNow(t, r)
	rows := sink.all()
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	got := rows[0]
	for name, want := range map[string]any{"method": "POST", "path": "/a/b", "query.page": int64(12), "headers.X-Many": "one, two",
		"headers.host": strings.TrimPrefix(s.URL, "http://"), "headers.absent": nil, "metrics.load": 0.5, "env.country": "CN"} {
		if v := got.Attrs.Get(name).Any(); v != want {
			t.Errorf("%s = %v, want %v", name, v, want)
		}
	}
	entity := sum(key, "session-1")
	want := &snapshot.Snapshot{ID: ids[0], RequestID: ids[2], Status: decision.OK, Question: "main", QuestionType: decision.QuestionChoice,
		Time: got.Time, Scenario: "api-abuse", Entity: decision.Some([8]byte(entity[:8])), Attrs: got.Attrs,
		Input: []byte("the body"), Output: []byte("short and stout"), InputDigest: decision.Some(sum(key, "the body")),
		OutputDigest: decision.Some(sum(key, "short and stout")), InputLen: decision.Some(int64(8)),
		Candidates: []decision.Candidate{{Action: "allow"}, {Action: "block", Score: decision.Some(float32(2))}}, Forced: decision.Some(false),
		Features: []float32{1, 2}, FeatureSet: "f2", Action: "block", Params: `{"ttl":1}`, Applied: snapshot.AppliedShadow,
		Confidence: decision.Some(0.25), ConfidenceDef: "peak", Reason: decision.ReasonMatch, RuleID: "r9",
		Backend: "rules", Artefact: decision.Artefact{StrategyVersion: "v3", HTTPStatus: 418}, Latency: got.Latency, Stages: got.Stages,
		Propensity: decision.Some(0.5), PropensityKind: snapshot.PropensityExact, KeepProb: 1,
		Usage: decision.Usage{BytesIn: decision.Some(int64(8)), BytesOut: decision.Some(int64(15))}, Cost: decision.Some(int64(12)),
		TraceID: got.TraceID, SpanID: got.SpanID, ND: `{"seed":1}`, Terms: snapshot.Terms{TrainingUse: "allowed"}}
	if !equalRows(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if fmt.Sprintf("%x %x", got.TraceID.V, got.SpanID.V) != "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331" {
		t.Errorf("trace %x span %x", got.TraceID.V, got.SpanID.V)
	}
	if !got.Latency.Set || !got.Stages.Rules.Set || got.Stages.Rules.V > got.Latency.V || time.Since(got.Time) > time.Hour {
		t.Errorf("latency %v, stages %+v, time %v", got.Latency, got.Stages, got.Time)
	}
	two := rows[1]
	if two.ID != ids[1] || ids[3] != ids[0] || two.RequestID != got.RequestID || two.Status != decision.Timeout || two.Reason != decision.ReasonTimeout ||
		two.Latency.V != time.Minute || two.Backend != "edge" || len(two.Input) > 0 || two.InputLen.Set || two.Attrs.Get("path").Str() != "/a/b" {
		t.Errorf("second row %+v", two)
	}
	if n := r.Stats().Unlisted; n != 1 {
		t.Errorf("%d unlisted attributes, want 1", n)
	}
}

// Code that records must also run without a recorder, and after it is over.
func TestNilAndLateCallsDoNothing(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s"})
	exercise := func(rec *Recording) *Decision {
		rec.SetScenario("x")
		rec.SetMetric("m", 1)
		rec.SetEntity("e")
		rec.SetFeatures("f", nil)
		_ = rec.ID()
		d := rec.Decision("")
		use(d)
		return d
	}
	if d := exercise(FromContext(context.Background())); d != nil {
		t.Errorf("a decision of nothing: %v", d)
	}
	var late *Decision
	var rec *Recording
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		rec = FromContext(req.Context())
		late = rec.Decision("")
		late.Choose("allow")
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	use(late)
	if d := rec.Decision("another"); d != nil {
		t.Error("a decision after the end")
	}
	closeNow(t, r)
	if rows := sink.all(); len(rows) != 1 || rows[0].Action != "allow" || rows[0].Cost.Set {
		t.Errorf("rows %+v", rows)
	}
	var none *Recorder
	h := http.NotFoundHandler()
	if fmt.Sprint(none.Middleware(h)) != fmt.Sprint(h) {
		t.Error("a nil recorder wraps")
	}
	none.Record(context.Background(), row(1))
	if _, err := none.Flush(context.Background()); err != nil || none.Close(context.Background()) != nil ||
		none.Watermark() != 0 || none.Schema() != nil || none.Stats().Queued != 0 {
		t.Error("a nil recorder does something")
	}
}

func use(d *Decision) {
	d.SetActions("a")
	d.SetCandidates(decision.Candidate{Action: "b"})
	d.SetQuestionType(decision.QuestionNoul)
	d.Choose("late")
	d.Answer(decision.Decision{Action: "late"})
	d.Fail(decision.Error, "late", "")
	d.SetBackend("late", decision.Artefact{})
	d.SetPropensity(1, snapshot.PropensityExact)
	d.SetApplied(snapshot.AppliedYes)
	d.SetLatency(1)
	d.SetUsage(decision.Usage{})
	d.SetCost(1)
	d.SetNonDeterminism("{}")
	d.SetTerms(snapshot.Terms{})
	d.Stage(StageModel)()
	_ = d.ID()
}

func TestHandlerEndings(t *testing.T) {
	cases := []struct {
		name    string
		handler func(w http.ResponseWriter, r *http.Request)
		want    string // status, code, http status of each row
	}{
		{"no decision", func(http.ResponseWriter, *http.Request) {}, ""},
		{"chosen", func(w http.ResponseWriter, r *http.Request) { choose(r, "allow") }, "ok  200;"},
		{"chosen, then 500", func(w http.ResponseWriter, r *http.Request) { choose(r, "allow"); w.WriteHeader(500) }, "ok  500;"},
		{"left open", func(w http.ResponseWriter, r *http.Request) { FromContext(r.Context()).Decision("") }, "error no-answer 200;"},
		{"left open, 503", func(w http.ResponseWriter, r *http.Request) {
			FromContext(r.Context()).Decision("")
			w.WriteHeader(103)
			w.WriteHeader(503)
		}, "error http-503 503;"},
		{"panic", func(w http.ResponseWriter, r *http.Request) { panic("boom") }, "error panic 0;"},
		{"panic after choice", func(w http.ResponseWriter, r *http.Request) { choose(r, "allow"); panic("boom") }, "error panic 0;"},
		{"abort", func(w http.ResponseWriter, r *http.Request) { choose(r, "block"); panic(http.ErrAbortHandler) }, "error panic 0;"},
		{"abstain", func(w http.ResponseWriter, r *http.Request) {
			FromContext(r.Context()).Decision("").Answer(decision.Decision{Status: decision.Abstain})
		}, "abstain  200;"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sink := &memory{}
			r := newRecorder(t, sink, Options{Scenario: "s"})
			panicked := func() (p any) {
				defer func() { p = recover() }()
				r.Middleware(http.HandlerFunc(c.handler)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
				return nil
			}()
			wantPanic := strings.Contains(c.want, "panic")
			if (panicked != nil) != wantPanic || r.Stats().Panics != 0 {
				t.Errorf("panic %v, counted %d", panicked, r.Stats().Panics)
			}
			closeNow(t, r)
			got := ""
			for _, s := range sink.all() {
				got += fmt.Sprintf("%v %s %d;", s.Status, s.ErrorCode, s.Artefact.HTTPStatus)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A panic of the recorder's own code must neither reach the caller nor open the ledger.
func TestOwnPanicsAreContained(t *testing.T) {
	for panicAt := 1; panicAt <= 5; panicAt++ {
		sink := &memory{}
		var mu sync.Mutex
		n := 0
		r := newRecorder(t, sink, Options{Scenario: "s", Clock: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == panicAt {
				panic("clock broke")
			}
			return time.Now()
		}})
		b := r.Wrap(&fake{answer: "b"})
		w := httptest.NewRecorder()
		r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			d := FromContext(req.Context()).Decision("")
			d.Stage(StageModel)()
			d.Choose("allow")
			b.Decide(req.Context(), twoQuestions(), new(decision.Response))
			fmt.Fprint(w, "answer")
		})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Body.String() != "answer" {
			t.Errorf("panic at %d: the caller got %q", panicAt, w.Body)
		}
		led := closeNow(t, r)
		if r.Stats().Panics != 1 || led.Check() != nil {
			t.Errorf("panic at %d: %+v", panicAt, r.Stats())
		}
	}
}

func TestEndPanicIsCountedInTheLedger(t *testing.T) {
	sink := &memory{}
	calls := 0
	r := newRecorder(t, sink, Options{Scenario: "s", Clock: func() time.Time {
		if calls++; calls == 2 {
			panic("clock broke")
		}
		return time.Now()
	}})
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { choose(req, "allow") })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if led := closeNow(t, r); led.Offered != 1 || led.Dropped[DropPanic] != 1 {
		t.Errorf("ledger %+v", led)
	}
}

// The caller has the answer while the sink hangs, and a handler with a full queue too.
func TestBlockedSinkDoesNotReachTheCaller(t *testing.T) {
	release := make(chan struct{})
	sink := &memory{onAppend: func(*snapshot.Snapshot) error { <-release; return nil }}
	r := newRecorder(t, sink, Options{Scenario: "s", QueueRows: 2, FlushInterval: time.Millisecond})
	s := serve(t, r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		choose(req, "allow")
		fmt.Fprint(w, "answer")
	})))
	for range 20 {
		resp, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "answer" {
			t.Fatalf("answer %q", body)
		}
	}
	if st := r.Stats(); st.Ledger.Written != 0 || st.Ledger.Dropped[DropQueueFull] == 0 {
		t.Errorf("stats %+v", st)
	}
	close(release)
	if led := closeNow(t, r); led.Offered != 20 || led.Written == 0 || led.Written > 3 {
		t.Errorf("ledger %+v", led)
	}
}

// The server removes the files of a form that it finds in its own request.
func TestServerSeesFormAndPattern(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{Scenario: "s"})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /up/{name}", func(w http.ResponseWriter, req *http.Request) {
		if err := req.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
	})
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, _ := form.CreateFormFile("f", "f.txt")
	part.Write(make([]byte, 20<<20))
	form.Close()
	req := httptest.NewRequest("POST", "/up/x", &body)
	req.Header.Set("Content-Type", form.FormDataContentType())
	r.Middleware(mux).ServeHTTP(httptest.NewRecorder(), req)
	if req.MultipartForm == nil || req.Pattern != "POST /up/{name}" {
		t.Errorf("form %v, pattern %q", req.MultipartForm, req.Pattern)
	}
	if err := req.MultipartForm.RemoveAll(); err != nil {
		t.Error(err)
	}
}

// Handlers compare the body with http.NoBody.
func TestNoBodyStays(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", Capture: Capture{Input: true}})
	s := serve(t, r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		choose(req, "allow")
		if req.Body != http.NoBody {
			t.Errorf("a body of type %T", req.Body)
		}
	})))
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	closeNow(t, r)
	if got := sink.all()[0]; !got.InputLen.Set || got.InputLen.V != 0 || len(got.Redacted) != 0 {
		t.Errorf("row %+v", got)
	}
}

func TestConcurrentUseOfOneRecording(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", Capture: Capture{Fields: []CaptureField{{Name: "metrics.m", Type: decision.Double}}}})
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var wg sync.WaitGroup
		rec := FromContext(req.Context())
		d := rec.Decision("0")
		for i := range 8 {
			wg.Go(func() {
				for range 50 {
					rec.SetMetric("m", float64(i))
					d := rec.Decision(fmt.Sprint(i % 4))
					d.SetActions("a", "b")
					d.Choose("a")
				}
			})
		}
		wg.Wait()
		wg.Go(func() {
			for range 100 {
				rec.Decision("0")
			}
		})
		for range 100 { // a handle is read without a lock
			if d.ID() != rec.Decision("0").ID() {
				t.Error("the id of a decision changed")
			}
		}
		wg.Wait()
		go d.Choose("b") // a goroutine that outlives its handler
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	closeNow(t, r)
	if rows := sink.all(); len(rows) != 4 {
		t.Errorf("%d rows, want 4", len(rows))
	}
}

func TestParseTraceparent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for h, want := range map[string]bool{
		good: true, "cc" + good[2:] + "-future": true, good + "-extra": false, good[:54]: false, "": false,
		"ff" + good[2:]: false, strings.ToUpper(good): false, strings.Replace(good, "-", "_", 1): false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
		"0g" + good[2:]: false, good[:53] + "0x": false, "cc" + good[2:] + "x": false,
	} {
		trace, span := parseTraceparent(h)
		if trace.Set != want || span.Set != want {
			t.Errorf("%q: %v %v, want %v", h, trace, span, want)
		}
	}
}

func FuzzParseTraceparent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("")
	f.Fuzz(func(t *testing.T, h string) {
		trace, span := parseTraceparent(h)
		if trace.Set != span.Set {
			t.Fatal("half a trace")
		}
		if trace.Set && !strings.Contains(h, fmt.Sprintf("-%x-%x-", trace.V, span.V)) {
			t.Fatalf("%q gave %x %x", h, trace.V, span.V)
		}
	})
}
