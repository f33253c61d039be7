package recorder

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Memory is reused between requests of different shapes: nothing may shine through.
func TestReuseLeavesNothingBehind(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{Input: true, Output: true, All: true}})
	schema, _ := decision.NewSchema(decision.Field{Name: "a", Type: decision.String})
	full := func(i int) *snapshot.Snapshot {
		s := row(i)
		s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("v")}}
		s.Input, s.Output, s.Features = []byte("in"), []byte("out"), []float32{1}
		s.Candidates, s.Redacted = []decision.Candidate{{Action: "allow"}}, []string{"x:drop"}
		s.Entity, s.Cost = decision.Some([8]byte{1}), decision.Some(int64(1))
		return s
	}
	for i := range 50 {
		r.Record(context.Background(), full(i), full(i), full(i))
		r.Flush(context.Background())
		r.Record(context.Background(), row(i))
		r.Flush(context.Background())
	}
	closeNow(t, r)
	for i, s := range sink.all() {
		bare := s.Attrs.Schema == nil && len(s.Input) == 0 && len(s.Output) == 0 && !s.InputLen.Set && len(s.Features) == 0 &&
			len(s.Candidates) == 0 && len(s.Redacted) == 0 && !s.Entity.Set && !s.Cost.Set
		if bare != (i%4 == 3) {
			t.Fatalf("row %d: %+v", i, s)
		}
	}
}

func TestRequestsDoNotSeeEachOther(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Scenario: "s", Capture: Capture{Input: true, Output: true, Entity: EntitySource{Header: "X-User"},
		Fields: []CaptureField{{Name: "headers.x-user", Type: decision.String}, {Name: "metrics.m", Type: decision.Double}}}})
	h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rec := FromContext(req.Context())
		if req.Header.Get("X-User") != "" {
			rec.SetMetric("m", 1)
			rec.SetFeatures("f", []float32{1})
			rec.Decision("").SetActions("a", "b")
			io.Copy(w, req.Body)
		}
		rec.Decision("").Choose("a")
	}))
	for range 20 {
		for _, user := range []string{"ada", ""} {
			req := httptest.NewRequest("POST", "/", strings.NewReader(user))
			req.Header.Set("X-User", user)
			if user == "" {
				req.Header.Del("X-User")
			}
			h.ServeHTTP(httptest.NewRecorder(), req)
			if _, err := r.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeNow(t, r)
	for i, s := range sink.all() {
		bare := s.Attrs.At(0).IsNull() && s.Attrs.At(1).IsNull() && !s.Entity.Set && len(s.Features) == 0 && s.FeatureSet == "" &&
			len(s.Candidates) == 0 && len(s.Input) == 0 && len(s.Output) == 0
		if bare != (i%2 == 1) {
			t.Fatalf("row %d: %+v", i, s)
		}
	}
}
