package metrics

import (
	"time"

	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// Kind says how a value moves.
type Kind uint8

// A Counter only rises while the process lives; a Gauge goes up and down.
const (
	Counter Kind = iota
	Gauge
)

// Metric describes one figure, or one for each value of a label.
type Metric struct {
	// Name and Help follow the conventions of Prometheus: base units, counters in _total.
	Name, Help string
	// Unit is a code of UCUM: s, By, 1, or what is counted in braces.
	Unit string
	Kind Kind
	// Label has the name of the label, "" without one, and Values all that it can be: there
	// is a figure for each, also while it is 0.
	Label  string
	Values []string
}

// SegmentStats has the fields of arrowfile.Stats, so that SegmentStats(writer.Stats())
// converts the one into the other: this package does not link Arrow.
type SegmentStats struct {
	Segments, Abandoned     uint64
	Batches, Rows, Requests uint64
	Bytes                   uint64
	EncodeTime              time.Duration
	LastSeal, OpenSince     time.Time
}

// UploadStats has the fields of spool.Stats, as SegmentStats those of arrowfile.Stats.
type UploadStats struct {
	Uploaded, Present, Bytes, Rows uint64
	Pending                        int
	PendingBytes                   int64
	OldestPending                  time.Duration
	Conflicts, Unreadable          int
	Failures, Refused              uint64
	Salvaged                       uint64
	LastError                      string
}

// RecorderSource is what a recorder is watched by: *recorder.Recorder.
type RecorderSource interface{ Stats() recorder.Stats }

// Sources are what is watched; those that are nil are left out.
type Sources struct {
	Recorder RecorderSource
	Segments func() SegmentStats
	Uploads  func() UploadStats
	// Now is the clock for ages, time.Now by default.
	Now func() time.Time
}

// Metrics lists what the sources tell, in the order of Read.
func (s *Sources) Metrics() []Metric {
	var out []Metric
	if s.Recorder != nil {
		out = appendMetrics(out, recorderFamilies())
	}
	if s.Segments != nil {
		out = appendMetrics(out, segmentFamilies(time.Time{}))
	}
	if s.Uploads != nil {
		out = appendMetrics(out, uploadFamilies())
	}
	return out
}

// Read asks every source once and calls yield for each figure with its metric's place in
// Metrics and the label's place in Metric.Values (0 where there is no label).
func (s *Sources) Read(yield func(metric, label int, value float64)) {
	at := 0
	if s.Recorder != nil {
		at = read(at, recorderFamilies(), s.Recorder.Stats(), yield)
	}
	if s.Segments != nil {
		now := time.Now
		if s.Now != nil {
			now = s.Now
		}
		at = read(at, segmentFamilies(now()), s.Segments(), yield)
	}
	if s.Uploads != nil {
		read(at, uploadFamilies(), s.Uploads(), yield)
	}
}

// family is a metric and how its values, one for each label, are read off the stats.
type family[S any] struct {
	Metric
	values func(S) []float64
}

func appendMetrics[S any](out []Metric, fs []family[S]) []Metric {
	for i := range fs {
		out = append(out, fs[i].Metric)
	}
	return out
}

func read[S any](at int, fs []family[S], stats S, yield func(metric, label int, value float64)) int {
	for i := range fs {
		for j, v := range fs[i].values(stats) {
			yield(at, j, v)
		}
		at++
	}
	return at
}

func one[S any, N uint64 | int64 | int | float64](f func(S) N) func(S) []float64 {
	return func(s S) []float64 { return []float64{float64(f(s))} }
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// otherReason stands for reasons that a sink makes up.
const otherReason = "other"

// dropReasons is the closed set of reasons under which the ledger counts drops.
func dropReasons() []string {
	return []string{recorder.DropQueueFull, recorder.DropClosed, recorder.DropCloseDeadline, recorder.DropSinkError,
		recorder.DropRedaction, recorder.DropInvalid, recorder.DropPanic, recorder.DropSwitchedOff, "spool-full",
		"capture-budget", "body-too-long", "proxy-queue-full", "content-encoding", "too-many-credentials", "proxy-closed", "proxy-panic", otherReason}
}

// dropped spreads a ledger's drops over the closed set.
func dropped(l snapshot.Ledger) []float64 {
	reasons := dropReasons()
	out := make([]float64, len(reasons))
	rest := l.DroppedTotal()
	for i, r := range reasons[:len(reasons)-1] {
		out[i] = float64(l.Dropped[r])
		rest -= l.Dropped[r]
	}
	out[len(out)-1] = float64(rest)
	return out
}

// Blind is the share of what should have been recorded that was not, in [0,1]; 0 when
// nothing was offered. What sampling leaves out does not count, since the weights of the
// kept rows stand for it. Two things make blind, and are put together as independent:
// the share of the offered rows that passed while the recorder was switched off, and of
// those that were meant to be kept the rest, the share that was dropped. A plain
// dropped/offered would show one per cent under a sample of one per cent when all of the
// sample is lost. Rows that wait for the sink are neither seen nor lost yet.
func Blind(l snapshot.Ledger) float64 {
	off := l.Dropped[recorder.DropSwitchedOff]
	lost := l.DroppedTotal() - off
	seen := 1.0
	if l.Offered > 0 {
		seen -= float64(off) / float64(l.Offered)
	}
	if l.Written+lost > 0 {
		seen *= float64(l.Written) / float64(l.Written+lost)
	}
	return 1 - seen
}

func requests(l snapshot.Ledger) []float64 {
	if l.Requests == nil {
		return nil
	}
	q := l.Requests
	return []float64{float64(q.Written), float64(q.SampledOut), float64(q.DroppedTotal())}
}
