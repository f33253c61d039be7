package recorder

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// fake is a backend that answers every question alike, or misbehaves.
type fake struct {
	answer string
	decide func(req *decision.Request, out *decision.Response) error
	closed int
}

func (f *fake) Info() decision.Info {
	return decision.Info{Name: "fake", Kind: "rules", Artefact: decision.Artefact{StrategyVersion: "v7"},
		Capabilities: decision.Capabilities{Deterministic: true}}
}

func (f *fake) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	for i := range out.Decisions {
		out.Decisions[i].Status, out.Decisions[i].Action = decision.OK, f.answer
	}
	if f.decide != nil {
		return f.decide(req, out)
	}
	return nil
}

func (f *fake) Close(context.Context) error { f.closed++; return nil }

type explains struct{}

func (explains) Explain(context.Context, *decision.Request) (*decision.Explanation, error) {
	return &decision.Explanation{Text: "because"}, nil
}

type warms struct{}

func (warms) Warm(context.Context, []*decision.Request) error { return nil }

type readies struct{}

func (readies) Ready(context.Context) error { return errors.New("down") }

func TestWrapKeepsOptionalInterfaces(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{})
	backends := []decision.Backend{
		&fake{},
		struct {
			*fake
			explains
		}{}, struct {
			*fake
			warms
		}{}, struct {
			*fake
			readies
		}{},
		struct {
			*fake
			explains
			warms
		}{}, struct {
			*fake
			explains
			readies
		}{}, struct {
			*fake
			warms
			readies
		}{},
		struct {
			*fake
			explains
			warms
			readies
		}{},
	}
	for _, b := range backends {
		w := r.Wrap(b)
		_, e1 := b.(decision.Explainer)
		_, e2 := w.(decision.Explainer)
		_, w1 := b.(decision.Warmer)
		_, w2 := w.(decision.Warmer)
		_, r1 := b.(decision.Readier)
		_, r2 := w.(decision.Readier)
		if e1 != e2 || w1 != w2 || r1 != r2 {
			t.Errorf("%T: explainer %v/%v, warmer %v/%v, readier %v/%v", b, e1, e2, w1, w2, r1, r2)
		}
	}
	f := &fake{}
	if err := r.Wrap(f).Close(context.Background()); err != nil || f.closed != 1 {
		t.Errorf("close: %v, %d times", err, f.closed)
	}
	var none *Recorder
	if none.Wrap(f) != decision.Backend(f) || r.Wrap(nil) != nil {
		t.Error("a nil recorder or backend is not passed through")
	}
}

func twoQuestions() *decision.Request {
	schema, _ := decision.NewSchema(decision.Field{Name: "user", Type: decision.String}, decision.Field{Name: "n", Type: decision.Int},
		decision.Field{Name: "headers.authorization", Type: decision.String})
	return &decision.Request{Scenario: "fraud", Seed: 42, Now: time.Unix(1_600_000_000, 5).UTC(), Body: []byte(`{"a":1}`),
		Attrs:    decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("ada"), decision.IntValue(3), decision.StringValue("Bearer x")}},
		Features: []float32{1, 2}, FeatureSet: "f2",
		Questions: []decision.Question{{ID: "q1", Type: decision.QuestionChoice, Candidates: []string{"a", "b"}}, {ID: "q2", Candidates: []string{"b"}}}}
}

func TestWrapRecordsTheCall(t *testing.T) {
	sink := &memory{}
	cpu := time.Duration(0)
	r := newRecorder(t, sink, Options{EntityKey: key, CPUTime: func() time.Duration { cpu += 7; return cpu },
		Capture: Capture{Fields: []CaptureField{{Name: "n", Type: decision.Double}}, Entity: EntitySource{Attr: "user"}, Input: true}})
	b := r.Wrap(&fake{answer: "b", decide: func(req *decision.Request, out *decision.Response) error {
		d := &out.Decisions[0]
		d.Candidates = []decision.Candidate{{Action: "b", Probability: decision.Some(0.9)}, {Action: "stray"}}
		d.Confidence, d.ConfidenceDef = decision.Some(0.9), "peak"
		d.Reason = decision.Reason{Kind: decision.ReasonMatch, Rule: "r1"}
		out.Attempts, out.Cost = 2, decision.Some(int64(5))
		out.Usage.TokensIn = decision.Some(int64(11))
		out.Stages.Rules = decision.Some(time.Microsecond)
		return nil
	}})
	var out decision.Response
	req := twoQuestions()
	hashed := sum(key, "ada")
	for range 2 {
		if err := b.Decide(context.Background(), req, &out); err != nil {
			t.Fatal(err)
		}
	}
	led := closeNow(t, r)
	rows := sink.all()
	if len(rows) != 4 || led.Written != 4 {
		t.Fatalf("%d rows, %+v", len(rows), led)
	}
	got := rows[0]
	want := &snapshot.Snapshot{ID: got.ID, RequestID: got.RequestID, Status: decision.OK, Question: "q1", QuestionType: decision.QuestionChoice,
		Time: req.Now, Scenario: "fraud", Entity: decision.Some([8]byte(hashed[:8])),
		Attrs: decision.Attrs{Schema: r.Schema(), Values: []decision.Value{decision.DoubleValue(3)}},
		Input: []byte(`{"a":1}`), InputDigest: decision.Some(sum(key, `{"a":1}`)), InputLen: decision.Some(int64(7)),
		Candidates: []decision.Candidate{{Action: "a"}, {Action: "b", Probability: decision.Some(0.9)}}, Forced: decision.Some(false),
		Features: []float32{1, 2}, FeatureSet: "f2", Action: "b", Confidence: decision.Some(0.9), ConfidenceDef: "peak",
		Reason: decision.ReasonMatch, RuleID: "r1", Backend: "fake", Artefact: decision.Artefact{StrategyVersion: "v7"},
		Latency: got.Latency, Stages: decision.Stages{Rules: decision.Some(time.Microsecond)}, Cold: decision.Some(true),
		Attempts: decision.Some(int8(2)), Propensity: decision.Some(1.0), PropensityKind: snapshot.PropensityDeterministic, KeepProb: 1,
		Usage: decision.Usage{TokensIn: decision.Some(int64(11)), CPU: decision.Some(time.Duration(7))}, Cost: decision.Some(int64(5)), ND: `{"seed":42}`}
	if !equalRows(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !got.Latency.Set || got.Latency.V < 0 || got.ID == rows[1].ID || got.RequestID != rows[1].RequestID {
		t.Errorf("latency %v, ids %v %v", got.Latency, got.ID, rows[1].ID)
	}
	if rows[1].Question != "q2" || !rows[1].Forced.V || rows[1].Input != nil || rows[1].Usage != got.Usage {
		t.Errorf("second row %+v", rows[1])
	}
	if rows[2].Cold.V || rows[2].RequestID == got.RequestID {
		t.Errorf("second call: cold %v, request %v", rows[2].Cold, rows[2].RequestID)
	}
}

// equalRows compares what a file could tell apart.
func equalRows(a, b *snapshot.Snapshot) bool {
	norm := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		c := s.Clone()
		c.Ref = snapshot.Ref{}
		return c
	}
	return reflect.DeepEqual(norm(a), norm(b))
}

func TestWrapPassesTheAnswerUnchanged(t *testing.T) {
	broken := errors.New("token expired")
	cases := []struct {
		name   string
		decide func(req *decision.Request, out *decision.Response) error
		want   []string // status and code of the rows
	}{
		{"not allowed", func(_ *decision.Request, out *decision.Response) error {
			out.Decisions[1].Action = "a"
			return nil
		}, []string{"ok ", "error action-not-allowed"}},
		{"too few", func(_ *decision.Request, out *decision.Response) error {
			out.Decisions = out.Decisions[:1]
			return nil
		}, []string{"error bad-response", "error bad-response"}},
		{"error", func(*decision.Request, *decision.Response) error { return broken }, []string{"error backend-error", "error backend-error"}},
		{"timeout", func(_ *decision.Request, out *decision.Response) error {
			out.Decisions[0].Fail(decision.Timeout, "deadline", strings.Repeat("x", 5000))
			return nil
		}, []string{"timeout deadline", "ok "}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sink := &memory{}
			r := newRecorder(t, sink, Options{})
			f := &fake{answer: "b", decide: c.decide}
			var bare, out decision.Response
			err1 := f.Decide(context.Background(), twoQuestions(), &bare)
			err2 := r.Wrap(f).Decide(context.Background(), twoQuestions(), &out)
			if err1 != err2 || !reflect.DeepEqual(bare, out) {
				t.Errorf("bare %v %+v, wrapped %v %+v", err1, bare, err2, out)
			}
			closeNow(t, r)
			var got []string
			for _, s := range sink.all() {
				got = append(got, s.Status.String()+" "+s.ErrorCode)
				if len(s.Error) > maxError {
					t.Errorf("an error of %d bytes", len(s.Error))
				}
				if s.Propensity.Set != (err1 == nil) {
					t.Errorf("propensity %v after the error %v", s.Propensity, err1)
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWrapPanicPassesAndIsRecorded(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{})
	b := r.Wrap(&fake{decide: func(*decision.Request, *decision.Response) error { panic("boom") }})
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
		}()
		b.Decide(context.Background(), twoQuestions(), new(decision.Response))
	}()
	closeNow(t, r)
	rows := sink.all()
	if len(rows) != 2 || rows[0].Status != decision.Error || rows[0].ErrorCode != CodePanic || r.Stats().Panics != 0 {
		t.Errorf("%d rows, stats %+v", len(rows), r.Stats())
	}
}

func TestWrapInsideMiddleware(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{
		Fields: []CaptureField{{Name: "path", Type: decision.String}, {Name: "n", Type: decision.Int}}, Entity: EntitySource{Header: "X-User"}}})
	b := r.Wrap(&fake{answer: "b"})
	h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var out decision.Response
		for range 2 {
			if err := b.Decide(req.Context(), twoQuestions(), &out); err != nil {
				t.Error(err)
			}
		}
	}))
	req := httptest.NewRequest("GET", "/p", nil)
	req.Header.Set("X-User", "ada")
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	h.ServeHTTP(httptest.NewRecorder(), req)
	led := closeNow(t, r)
	rows := sink.all()
	if len(rows) != 4 || led.Offered != 4 {
		t.Fatalf("%d rows, %+v", len(rows), led)
	}
	// The second call was handed over first: the request's own rows follow at its end.
	own, joined := rows[0], rows[2]
	if joined.Attrs.Get("path").Str() != "/p" || joined.Attrs.Get("n").Int() != 3 || joined.Artefact.HTTPStatus != 200 {
		t.Errorf("joined %+v", joined)
	}
	if !own.Attrs.Get("path").IsNull() || own.Attrs.Get("n").Int() != 3 {
		t.Errorf("own %+v", own.Attrs)
	}
	if own.RequestID == joined.RequestID || own.Entity != joined.Entity || !own.Entity.Set || own.TraceID != joined.TraceID || !own.TraceID.Set {
		t.Errorf("own %+v\njoined %+v", own, joined)
	}
}

// What sampling leaves out of a request's trace it leaves out as a whole.
func TestNestedCallsShareTheSampling(t *testing.T) {
	sink := &memory{}
	draws := []float64{0.9, 0.1, 0.9, 0.1}
	r := newRecorder(t, sink, Options{Scenario: "s", SampleRate: 0.5, Random: func() float64 {
		x := draws[0]
		draws = draws[1:]
		return x
	}})
	b := r.Wrap(&fake{answer: "b"})
	h := r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		for range 3 {
			b.Decide(req.Context(), twoQuestions(), new(decision.Response))
		}
	}))
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if led := closeNow(t, r); led.SampledOut != 6 || led.Written != 6 || len(draws) != 2 {
		t.Errorf("ledger %+v, %d draws left", led, len(draws))
	}
	for _, s := range sink.all() {
		if s.KeepProb != 0.5 {
			t.Errorf("keep_prob %v", s.KeepProb)
		}
	}
}
