package recorder

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// discard is a sink at no cost, so that a benchmark shows the recorder's own.
type discard struct{}

func (discard) Append(*snapshot.Snapshot) error  { return nil }
func (discard) Flush(snapshot.Ledger) error      { return nil }
func (discard) Close(_, _ snapshot.Ledger) error { return nil }

// benchRow is a row of ordinary traffic: 377 bytes of input, four attributes, three
// candidates, twelve features.
func benchRow() *snapshot.Snapshot {
	schema, err := decision.NewSchema(
		decision.Field{Name: "headers.user-agent", Type: decision.String}, decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "metrics.edge_error_rate_1m", Type: decision.Double}, decision.Field{Name: "n", Type: decision.Int})
	if err != nil {
		panic(err)
	}
	s := row(1)
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("Mozilla/5.0 (X11; Linux x86_64)"),
		decision.StringValue("/api/v1/items"), decision.DoubleValue(0.02), decision.IntValue(7)}}
	s.Input = make([]byte, 377)
	s.Candidates = []decision.Candidate{{Action: "allow", Score: decision.Some(float32(0.7))}, {Action: "deny"}, {Action: "review"}}
	s.Features = make([]float32, 12)
	return s
}

func benchRecorder(b *testing.B, opts Options) *Recorder {
	b.Helper()
	s := benchRow()
	for _, f := range s.Attrs.Schema.Fields() {
		opts.Capture.Fields = append(opts.Capture.Fields, CaptureField{Name: f.Name, Type: f.Type})
	}
	opts.Capture.Input = true
	r, err := New(discard{}, opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return r
}

// BenchmarkHandOver shows what a caller pays. bare-copy is the floor: the same row copied into memory that is
// there already. slog-json is the same fields written as JSON to io.Discard.
func BenchmarkHandOver(b *testing.B) {
	s := benchRow()
	ctx := context.Background()
	b.Run("bare-copy", func(b *testing.B) {
		var dst struct {
			row        snapshot.Snapshot
			input      []byte
			attrs      []decision.Value
			candidates []decision.Candidate
			features   []float32
		}
		b.ReportAllocs()
		for b.Loop() {
			dst.row = *s
			dst.row.Input = refill(&dst.input, s.Input)
			dst.row.Attrs.Values = refill(&dst.attrs, s.Attrs.Values)
			dst.row.Candidates = refill(&dst.candidates, s.Candidates)
			dst.row.Features = refill(&dst.features, s.Features)
		}
	})
	b.Run("record", func(b *testing.B) {
		r := benchRecorder(b, Options{})
		b.ReportAllocs()
		for i := 1; b.Loop(); i++ {
			r.Record(ctx, s)
			if i%4096 == 0 { // a drop is cheaper than a hand-over: let none happen
				b.StopTimer()
				r.Flush(ctx)
				b.StartTimer()
			}
		}
		if n := r.Stats().Ledger.DroppedTotal(); n > 0 {
			b.Errorf("%d of %d rows were dropped", n, b.N)
		}
	})
	b.Run("record-full-queue", func(b *testing.B) {
		r := benchRecorder(b, Options{QueueRows: 1})
		b.ReportAllocs()
		for b.Loop() {
			r.Record(ctx, s, s)
		}
	})
	b.Run("slog-json", func(b *testing.B) {
		log := slog.New(slog.NewJSONHandler(io.Discard, nil))
		b.ReportAllocs()
		for b.Loop() {
			logRow(ctx, log, s)
		}
	})
}

func logRow(ctx context.Context, log *slog.Logger, s *snapshot.Snapshot) {
	log.LogAttrs(ctx, slog.LevelInfo, "decision", slog.String("id", s.ID.String()), slog.String("request_id", s.RequestID.String()),
		slog.Time("ts", s.Time), slog.String("scenario", s.Scenario), slog.String("status", s.Status.String()),
		slog.String("action", s.Action), slog.Float64("keep_prob", s.KeepProb),
		slog.String("user_agent", s.Attrs.At(0).Str()), slog.String("path", s.Attrs.At(1).Str()),
		slog.Float64("rate", s.Attrs.At(2).Double()), slog.Int64("n", s.Attrs.At(3).Int()),
		slog.String("input", string(s.Input)), slog.Any("candidates", s.Candidates), slog.Any("features", s.Features))
}

func BenchmarkWrap(b *testing.B) {
	s := benchRow()
	req := decision.Request{Scenario: "test", Attrs: s.Attrs, Features: s.Features, FeatureSet: "f", Body: s.Input, Now: time.Now(),
		Questions: []decision.Question{{Candidates: []string{"allow", "deny", "review"}}}}
	run := func(b *testing.B, backend decision.Backend) {
		var out decision.Response
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			if err := backend.Decide(ctx, &req, &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("bare", func(b *testing.B) { run(b, &fake{answer: "allow"}) })
	b.Run("wrapped", func(b *testing.B) { run(b, benchRecorder(b, Options{}).Wrap(&fake{answer: "allow"})) })
}

func BenchmarkMiddleware(b *testing.B) {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := FromContext(r.Context()).Decision("")
		d.SetActions("allow", "deny", "review")
		d.Choose("allow")
		io.WriteString(w, "ok")
	})
	run := func(b *testing.B, h http.Handler) {
		req := httptest.NewRequest("GET", "/api/v1/items", nil)
		req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)")
		w := httptest.NewRecorder()
		b.ReportAllocs()
		for b.Loop() {
			w.Body.Reset()
			h.ServeHTTP(w, req)
		}
	}
	b.Run("bare", func(b *testing.B) { run(b, next) })
	b.Run("recorded", func(b *testing.B) { run(b, benchRecorder(b, Options{Scenario: "test"}).Middleware(next)) })
}
