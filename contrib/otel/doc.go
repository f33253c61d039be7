// Package recorderotel joins a recorder to OpenTelemetry: its figures as observable
// instruments, and the ids of the trace that a decision was made in.
//
// Steps:
//
//  1. Set recorder.Options.TraceFromContext to [TraceFromContext]: rows then carry the
//     ids of the span that made them instead of those of the traceparent header alone.
//  2. [Register] a meter's instruments over the recorder, its segments and uploads.
//  3. Unregister what Register returned when the recorder ends.
//
// The SDK asks when it collects; nothing is pushed. The package configures no exporter and
// makes no spans.
package recorderotel
