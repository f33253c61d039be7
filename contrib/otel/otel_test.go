package recorderotel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	recorderotel "github.com/clefbench/clefbench/contrib/otel"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/recorder/metrics"
	"github.com/clefbench/clefbench/snapshot"
)

// memory keeps clones.
type memory struct{ rows []*snapshot.Snapshot }

func (m *memory) Append(s *snapshot.Snapshot) error { m.rows = append(m.rows, s.Clone()); return nil }
func (*memory) Flush(snapshot.Ledger) error         { return nil }
func (*memory) Close(_, _ snapshot.Ledger) error    { return nil }

func newRecorder(t *testing.T, sink recorder.Sink) *recorder.Recorder {
	t.Helper()
	rec, err := recorder.New(sink, recorder.Options{Scenario: "s", TraceFromContext: recorderotel.TraceFromContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close(context.Background()) })
	return rec
}

// figures collects by name, with the label's value after a slash.
func figures(t *testing.T, reader sdk.Reader) (out map[string]float64, units map[string]string) {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	out, units = map[string]float64{}, map[string]string{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[float64]
			switch d := m.Data.(type) {
			case metricdata.Sum[float64]:
				if points = d.DataPoints; !d.IsMonotonic || d.Temporality != metricdata.CumulativeTemporality {
					t.Errorf("%s does not only rise", m.Name)
				}
			case metricdata.Gauge[float64]:
				points = d.DataPoints
			}
			units[m.Name] = m.Unit
			for _, p := range points {
				name := m.Name
				for _, kv := range p.Attributes.ToSlice() {
					name += "/" + kv.Value.AsString()
				}
				out[name] = p.Value
			}
		}
	}
	return out, units
}

func TestRegister(t *testing.T) {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	rec := newRecorder(t, &memory{})
	sources := metrics.Sources{Recorder: rec, Segments: func() metrics.SegmentStats { return metrics.SegmentStats{Bytes: 7} },
		Uploads: func() metrics.UploadStats { return metrics.UploadStats{} }}
	reg, err := recorderotel.Register(provider.Meter("clefbench"), sources)
	if err != nil {
		t.Fatal(err)
	}
	ctx, q := rec.Start(context.Background())
	q.Decision("").Choose("allow")
	q.End(ctx)
	if _, err := rec.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	rec.SetRecording(false)
	rec.Record(ctx, &snapshot.Snapshot{})
	got, units := figures(t, reader)
	for name, want := range map[string]float64{"clefbench.recorder.offered_rows": 2, "clefbench.recorder.written_rows": 1,
		"clefbench.recorder.dropped_rows/switched-off": 1, "clefbench.recorder.dropped_rows/queue-full": 0, "clefbench.recorder.blind": 0.5,
		"clefbench.recorder.recording": 0, "clefbench.segments.written": 7} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if units["clefbench.segments.written"] != "By" || units["clefbench.segments.encode"] != "s" {
		t.Errorf("units %v", units)
	}
	if missing := len(sources.Metrics()) - len(units); missing > 1 { // requests are not always counted
		t.Errorf("%d metrics are missing", missing)
	}
	if err := reg.Unregister(); err != nil {
		t.Fatal(err)
	}
	if got, _ := figures(t, reader); len(got) > 0 {
		t.Errorf("%d figures after the end", len(got))
	}
}

// Names must stay apart, and be names.
func TestNames(t *testing.T) {
	s := metrics.Sources{Recorder: newRecorder(t, &memory{}), Segments: func() (s metrics.SegmentStats) { return }, Uploads: func() (s metrics.UploadStats) { return }}
	seen, valid := map[string]bool{}, regexp.MustCompile(`^clefbench\.(recorder|shadow|segments|upload)\.[a-z][a-z_]*$`)
	for _, m := range s.Metrics() {
		name := recorderotel.Name(m)
		if seen[name] || !valid.MatchString(name) {
			t.Errorf("%s of %s", name, m.Name)
		}
		seen[name] = true
	}
}

func TestTraceOfTheContext(t *testing.T) {
	id, span := trace.TraceID{1, 2}, trace.SpanID{3, 4}
	in := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span}))
	sink := &memory{}
	rec := newRecorder(t, sink)
	h := rec.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		recorder.FromContext(q.Context()).Decision("").Choose("allow")
	}))
	q := httptest.NewRequest("GET", "/", nil)
	q.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	h.ServeHTTP(httptest.NewRecorder(), q.WithContext(in)) // the span of this service goes before its caller's
	h.ServeHTTP(httptest.NewRecorder(), q)
	ctx, r := rec.Start(in)
	r.Decision("").Choose("allow")
	r.End(ctx)
	ctx, r = rec.Start(context.Background())
	r.Decision("").Choose("allow")
	r.End(ctx)
	if err := rec.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sink.rows {
		got = append(got, fmt.Sprintf("%x %x", s.TraceID.V[:2], s.SpanID.V[:2]))
	}
	if want := "[0102 0304 0af7 b7ad 0102 0304 0000 0000]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, _, ok := recorderotel.TraceFromContext(context.Background()); ok {
		t.Error("a trace out of nothing")
	}
}

func ExampleRegister() {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	rec, err := recorder.New(&memory{}, recorder.Options{TraceFromContext: recorderotel.TraceFromContext})
	if err != nil {
		panic(err)
	}
	reg, err := recorderotel.Register(provider.Meter("my-service"), metrics.Sources{Recorder: rec})
	if err != nil {
		panic(err)
	}
	defer reg.Unregister()
	var out metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &out); err != nil {
		panic(err)
	}
	fmt.Println(out.ScopeMetrics[0].Metrics[0].Name)
	// Output:
	// clefbench.recorder.blind
}
