package recorder

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
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

// fullRow is benchRow with everything that a decision service may know.
func fullRow() *snapshot.Snapshot {
	s := benchRow()
	for i := range s.Candidates {
		s.Candidates[i].Score = decision.Some(float32(0.5))
	}
	some := decision.Some(80 * time.Microsecond)
	s.Latency, s.Stages = some, decision.Stages{Queue: some, Features: some, Rules: some, Serialise: some}
	s.Backend, s.Artefact = "rules", decision.Artefact{EngineVersion: "1.4.2", StrategyVersion: "2026-05-28.1"}
	s.Confidence, s.Propensity, s.Cost = decision.Some(0.7), decision.Some(0.95), decision.Some(int64(50_000))
	s.TraceID = decision.Some([16]byte{1, 2, 3})
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

// scratch is memory for a bare copy, the floor of a hand-over: the same row copied into
// memory that is there already, and in the processor's first cache.
type scratch struct {
	row        snapshot.Snapshot
	input      []byte
	attrs      []decision.Value
	candidates []decision.Candidate
	features   []float32
}

func (dst *scratch) copy(s *snapshot.Snapshot) {
	dst.row = *s
	dst.row.Input = refill(&dst.input, s.Input)
	dst.row.Attrs.Values = refill(&dst.attrs, s.Attrs.Values)
	dst.row.Candidates = refill(&dst.candidates, s.Candidates)
	dst.row.Features = refill(&dst.features, s.Features)
}

// batch is how many calls are timed together where single ones would show the clock, and
// flushEvery is after how many the drain is waited for, untimed: a drop is cheaper than a
// hand-over, and none may happen.
const (
	batch      = 64
	flushEvery = 1024
)

func flushed(b *testing.B, r *Recorder) {
	if _, err := r.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	if n := r.Stats().Ledger.DroppedTotal(); n > 0 {
		b.Fatalf("%d rows were dropped", n)
	}
}

// quantile sorts x.
func quantile(x []float64, q float64) float64 {
	slices.Sort(x)
	return x[min(int(q*float64(len(x))), len(x)-1)]
}

// timed returns the nanoseconds of a call, of n.
func timed(n int, f func()) float64 {
	from := time.Now()
	for range n {
		f()
	}
	return float64(time.Since(from)) / float64(n)
}

// BenchmarkHandOver shows what a caller pays. side-by-side alternates batches of bare
// copies and of hand-overs, so that other load on the machine slows both, and compares
// their medians; callers does so with rounds of one caller and of two, in wall time a
// call; latency times single calls, the clock included, which bare-p50-ns shows. slog-json
// is the same fields written as JSON to io.Discard.
func BenchmarkHandOver(b *testing.B) {
	s := benchRow()
	ctx := context.Background()
	b.Run("bare-copy", func(b *testing.B) {
		var dst scratch
		b.ReportAllocs()
		for b.Loop() {
			dst.copy(s)
		}
	})
	b.Run("record", func(b *testing.B) {
		r := benchRecorder(b, Options{})
		b.ReportAllocs()
		for i := 1; b.Loop(); i++ {
			r.Record(ctx, s)
			if i%flushEvery == 0 {
				b.StopTimer()
				flushed(b, r)
				b.StartTimer()
			}
		}
	})
	b.Run("side-by-side", func(b *testing.B) { sideBySide(b, s) })
	b.Run("side-by-side-full", func(b *testing.B) { sideBySide(b, fullRow()) })
	b.Run("callers", func(b *testing.B) { callers(b, s) })
	b.Run("latency", func(b *testing.B) { latency(b, s) })
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

func sideBySide(b *testing.B, s *snapshot.Snapshot) {
	r := benchRecorder(b, Options{})
	ctx := context.Background()
	var dst scratch
	var bare, record []float64
	for i := 1; b.Loop(); i++ {
		bare = append(bare, timed(batch, func() { dst.copy(s) }))
		record = append(record, timed(batch, func() { r.Record(ctx, s) }))
		if i%(flushEvery/batch) == 0 {
			flushed(b, r)
		}
	}
	floor, cost := quantile(bare, 0.5), quantile(record, 0.5)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(floor, "bare-ns")
	b.ReportMetric(cost, "record-ns")
	b.ReportMetric(cost/floor, "x-bare")
}

// callers needs GOMAXPROCS of 2 at least. The quarter of the rounds that was fastest is the
// one that was least disturbed.
func callers(b *testing.B, s *snapshot.Snapshot) {
	const each = 4096
	r := benchRecorder(b, Options{FlushInterval: time.Hour, QueueRows: 4 * each})
	r.in.wakeAt = 4 * each // the drain is not woken, by one as little as by two
	ctx := context.Background()
	start, done := make(chan bool), make(chan bool)
	record := func() { r.Record(ctx, s) }
	go func() {
		for range start {
			timed(each, record)
			done <- true
		}
	}()
	defer close(start)
	var one, two []float64
	for b.Loop() {
		one = append(one, timed(each, record))
		flushed(b, r)
		from := time.Now()
		start <- true
		timed(each, record)
		<-done
		two = append(two, float64(time.Since(from))/(2*each))
		flushed(b, r)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(one, 0.25), "one-ns")
	b.ReportMetric(quantile(two, 0.25), "two-ns")
	b.ReportMetric(quantile(two, 0.25)/quantile(one, 0.25), "x-one")
}

func latency(b *testing.B, s *snapshot.Snapshot) {
	r := benchRecorder(b, Options{})
	ctx := context.Background()
	var dst scratch
	var bare, record []float64
	for i := 1; b.Loop(); i++ {
		bare = append(bare, timed(1, func() { dst.copy(s) }))
		record = append(record, timed(1, func() { r.Record(ctx, s) }))
		if i%(4*flushEvery) == 0 { // two calls in it wake the drain
			flushed(b, r)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, x := range map[string][]float64{"bare": bare, "record": record} {
		b.ReportMetric(quantile(x, 0.5), name+"-p50-ns")
		b.ReportMetric(quantile(x, 0.99), name+"-p99-ns")
		b.ReportMetric(quantile(x, 0.999), name+"-p99.9-ns")
	}
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
