package recorderotel

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/clefbench/clefbench/recorder/metrics"
)

// TraceFromContext returns the ids of the span in ctx, remote or local, sampled or not;
// ok is false without one. It is a recorder.Options.TraceFromContext.
func TraceFromContext(ctx context.Context) (id [16]byte, span [8]byte, ok bool) {
	s := trace.SpanContextFromContext(ctx)
	return s.TraceID(), s.SpanID(), s.IsValid()
}

// Register makes an instrument for every figure that the sources can tell, and one
// callback that reads them all at once. Several recorders need a meter each, told apart
// by attributes of its scope. Errors are the meter's.
func Register(meter metric.Meter, sources metrics.Sources) (metric.Registration, error) {
	var (
		all         = sources.Metrics()
		instruments = make([]metric.Float64Observable, len(all))
		labels      = make([][]metric.MeasurementOption, len(all))
		observables = make([]metric.Observable, len(all))
	)
	for i := range all {
		in, err := instrument(meter, &all[i])
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", Name(all[i]), err)
		}
		instruments[i], observables[i] = in, in
		labels[i] = options(&all[i])
	}
	reg, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		sources.Read(func(i, label int, value float64) {
			o.ObserveFloat64(instruments[i], value, labels[i][label])
		})
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("callback: %w", err)
	}
	return reg, nil
}

func instrument(meter metric.Meter, m *metrics.Metric) (metric.Float64Observable, error) {
	if m.Kind == metrics.Gauge {
		return meter.Float64ObservableGauge(Name(*m), metric.WithDescription(m.Help), metric.WithUnit(m.Unit))
	}
	return meter.Float64ObservableCounter(Name(*m), metric.WithDescription(m.Help), metric.WithUnit(m.Unit))
}

// options are the attributes of a metric's figures, made once.
func options(m *metrics.Metric) []metric.MeasurementOption {
	if m.Label == "" {
		return []metric.MeasurementOption{metric.WithAttributeSet(*attribute.EmptySet())}
	}
	out := make([]metric.MeasurementOption, len(m.Values))
	for i, v := range m.Values {
		out[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String(m.Label, v)))
	}
	return out
}

// Name is a metric's name by the conventions of OpenTelemetry: dots between what contains
// and what is contained, the unit and the kind beside the name instead of in it. So
// clefbench_segments_written_bytes_total is clefbench.segments.written.
func Name(m metrics.Metric) string {
	name := strings.TrimSuffix(m.Name, "_total")
	switch m.Unit {
	case "s":
		name = strings.TrimSuffix(name, "_seconds")
	case "By":
		name = strings.TrimSuffix(name, "_bytes")
	case "1":
		name = strings.TrimSuffix(name, "_ratio")
	}
	return strings.Replace(name, "_", ".", 2)
}
