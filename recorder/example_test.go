package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// printer is a sink that prints what it gets; a service uses that of snapshot/arrowfile.
type printer struct{}

func (printer) Append(s *snapshot.Snapshot) error {
	fmt.Println(s.Scenario, s.Attrs.Get("headers.user-agent"), s.Status, s.Action, s.Redacted)
	return nil
}
func (printer) Flush(snapshot.Ledger) error      { return nil }
func (printer) Close(_, _ snapshot.Ledger) error { return nil }

func ExampleRecorder_Middleware() {
	rec, err := recorder.New(printer{}, recorder.Options{Capture: recorder.Capture{Fields: []recorder.CaptureField{
		{Name: "headers.user-agent", Type: decision.String},
		{Name: "path", Type: decision.String, Redact: recorder.Mask, KeepFirst: 4},
	}}})
	if err != nil {
		panic(err)
	}
	handler := rec.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := recorder.FromContext(r.Context())
		q.SetScenario("api-abuse")
		d := q.Decision("")
		d.SetActions("allow", "block")
		d.Choose("allow")
		fmt.Fprintln(w, "welcome")
	}))

	req := httptest.NewRequest("GET", "/api/v1/users/4711", nil)
	req.Header.Set("User-Agent", "curl/8")
	handler.ServeHTTP(httptest.NewRecorder(), req)
	if err := rec.Close(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("written:", rec.Stats().Ledger.Written)
	// Output:
	// api-abuse curl/8 ok allow [path:mask]
	// written: 1
}

// threshold is a backend of one rule.
type threshold struct{}

func (threshold) Info() decision.Info         { return decision.Info{Name: "threshold", Kind: "rules"} }
func (threshold) Close(context.Context) error { return nil }
func (threshold) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(1)
	out.Decisions[0] = decision.Decision{Status: decision.OK, Action: "approve"}
	if amount, _ := req.Attrs.Get("amount").Number(); amount > 1000 {
		out.Decisions[0].Action = "review"
	}
	return nil
}

func ExampleRecorder_Wrap() {
	rec, err := recorder.New(printer{}, recorder.Options{Capture: recorder.Capture{Fields: []recorder.CaptureField{
		{Name: "amount", Type: decision.Double, Redact: recorder.Bucket, Edges: []float64{0, 100, 1000, 10000}},
	}}})
	if err != nil {
		panic(err)
	}
	backend := rec.Wrap(threshold{})

	schema, err := decision.NewSchema(decision.Field{Name: "amount", Type: decision.Double})
	if err != nil {
		panic(err)
	}
	req := decision.Request{Scenario: "fraud",
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(2500)}},
		Questions: []decision.Question{{Candidates: []string{"approve", "review"}}}}
	var out decision.Response
	if err := backend.Decide(context.Background(), &req, &out); err != nil {
		panic(err)
	}
	fmt.Println("answer:", out.Decisions[0].Action)
	if err := rec.Close(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// answer: review
	// fraud null ok review [amount:bucket]
}

func ExampleNewSlogHandler() {
	rec, err := recorder.New(printer{}, recorder.Options{})
	if err != nil {
		panic(err)
	}
	// A service gives the handler that it has in the place of nil.
	log := slog.New(recorder.NewSlogHandler(rec, nil, recorder.DefaultSlogMapping("")))
	log.Info("started", "port", 8080)
	log.Info("decided", "scenario", "fraud", "action", "review", "candidates", []string{"approve", "review"}, "confidence", 0.8)
	if err := rec.Close(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// fraud null ok review []
}

func ExampleRecorder_Shadow() {
	rec, err := recorder.New(printer{}, recorder.Options{})
	if err != nil {
		panic(err)
	}
	shadow, err := rec.Shadow(threshold{}, recorder.ShadowOptions{Rate: 1})
	if err != nil {
		panic(err)
	}
	backend := rec.Wrap(threshold{}, shadow) // the same candidate as the primary, for once

	req := decision.Request{Scenario: "fraud", Questions: make([]decision.Question, 1)}
	var out decision.Response
	if err := backend.Decide(context.Background(), &req, &out); err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := errors.Join(shadow.Close(ctx), rec.Close(ctx)); err != nil {
		panic(err)
	}
	fmt.Println("asked:", rec.Stats().Shadow.Asked)
	// Output:
	// fraud null ok approve []
	// fraud null ok approve []
	// asked: 1
}
