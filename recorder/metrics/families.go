package metrics

import (
	"time"

	"github.com/clefbench/clefbench/recorder"
)

type recorded = recorder.Stats

func recorderFamilies() []family[recorded] {
	return append([]family[recorded]{
		{Metric{Name: "clefbench_recorder_blind_ratio", Unit: "1", Kind: Gauge,
			Help: "Share of what should have been recorded since the start that was not: dropped, or passed while switched off."},
			one(func(s recorded) float64 { return Blind(s.Ledger) })},
		{Metric{Name: "clefbench_recorder_offered_rows_total", Unit: "{row}", Help: "Decisions that were offered to the recorder."},
			one(func(s recorded) uint64 { return s.Ledger.Offered })},
		{Metric{Name: "clefbench_recorder_written_rows_total", Unit: "{row}",
			Help: "Decisions that the sink took. Rows that a failed seal or a late Close loses are taken back."},
			one(func(s recorded) uint64 { return s.Ledger.Written })},
		{Metric{Name: "clefbench_recorder_acknowledged_rows_total", Unit: "{row}", Help: "Decisions that the sink flushed: they are safe."},
			one(func(s recorded) uint64 { return s.Acknowledged })},
		{Metric{Name: "clefbench_recorder_sampled_out_rows_total", Unit: "{row}", Help: "Decisions that sampling left out."},
			one(func(s recorded) uint64 { return s.Ledger.SampledOut })},
		{Metric{Name: "clefbench_recorder_dropped_rows_total", Unit: "{row}", Label: "reason", Values: dropReasons(),
			Help: "Decisions that were lost, by reason. Rows of switched-off are one a request where nobody knows how many there were."},
			func(s recorded) []float64 { return dropped(s.Ledger) }},
		{Metric{Name: "clefbench_recorder_requests_total", Unit: "{request}", Label: "outcome", Values: []string{"written", "sampled-out", "dropped"},
			Help: "Whole requests, by what became of them, where the recorder counts them."},
			func(s recorded) []float64 { return requests(s.Ledger) }},
		{Metric{Name: "clefbench_recorder_queue_rows", Unit: "{row}", Kind: Gauge, Help: "Rows that wait for the sink."},
			one(func(s recorded) int { return s.Queued })},
		{Metric{Name: "clefbench_recorder_queue_capacity_rows", Unit: "{row}", Kind: Gauge, Help: "Rows that may wait for the sink."},
			one(func(s recorded) int { return s.Capacity })},
		{Metric{Name: "clefbench_recorder_queue_bytes", Unit: "By", Kind: Gauge, Help: "Bytes of bodies that wait for the sink."},
			one(func(s recorded) int64 { return s.QueuedBytes })},
		{Metric{Name: "clefbench_recorder_queue_capacity_bytes", Unit: "By", Kind: Gauge, Help: "Bytes of bodies that may wait for the sink."},
			one(func(s recorded) int64 { return s.CapacityBytes })},
		{Metric{Name: "clefbench_recorder_sink_errors_total", Unit: "{call}", Label: "call", Values: []string{"append", "flush"},
			Help: "Calls of the sink that failed."},
			func(s recorded) []float64 { return []float64{float64(s.AppendErrors), float64(s.FlushErrors)} }},
		{Metric{Name: "clefbench_recorder_panics_total", Unit: "{panic}", Help: "Panics of the recorder, its options and its sink; all were contained."},
			one(func(s recorded) uint64 { return s.Panics })},
		{Metric{Name: "clefbench_recorder_unlisted_attributes_total", Unit: "{attribute}",
			Help: "Attributes that a handler set and the capture list does not name."},
			one(func(s recorded) uint64 { return s.Unlisted })},
		{Metric{Name: "clefbench_recorder_recording", Unit: "1", Kind: Gauge, Help: "1 while recording, 0 while the kill switch is on."},
			one(func(s recorded) float64 { return flag(s.Recording) })},
		{Metric{Name: "clefbench_recorder_bypassed_calls_total", Unit: "{call}", Help: "Calls that passed by while the kill switch was on."},
			one(func(s recorded) uint64 { return s.Bypassed })},
	}, shadowFamilies()...)
}

func shadowFamilies() []family[recorded] {
	return []family[recorded]{
		{Metric{Name: "clefbench_shadow_asked_requests_total", Unit: "{request}", Help: "Requests that were put to a shadow's candidate."},
			one(func(s recorded) uint64 { return s.Shadow.Asked })},
		{Metric{Name: "clefbench_shadow_skipped_requests_total", Unit: "{request}", Label: "reason", Values: []string{"busy", "too-large"},
			Help: "Requests that a shadow's candidate was not asked about for lack of room."},
			func(s recorded) []float64 { return []float64{float64(s.Shadow.Busy), float64(s.Shadow.TooLarge)} }},
		{Metric{Name: "clefbench_shadow_timed_out_requests_total", Unit: "{request}", Help: "Requests that a shadow's candidate did not answer in time."},
			one(func(s recorded) uint64 { return s.Shadow.TimedOut })},
		{Metric{Name: "clefbench_shadow_panicked_requests_total", Unit: "{request}", Help: "Requests over which a shadow's candidate panicked."},
			one(func(s recorded) uint64 { return s.Shadow.Panicked })},
		{Metric{Name: "clefbench_shadow_running_requests", Unit: "{request}", Kind: Gauge, Help: "Requests that are with a shadow's candidate."},
			one(func(s recorded) int64 { return s.Shadow.Running })},
	}
}

func segmentFamilies(now time.Time) []family[SegmentStats] {
	return []family[SegmentStats]{
		{Metric{Name: "clefbench_segments_sealed_total", Unit: "{segment}", Help: "Segments that were sealed."},
			one(func(s SegmentStats) uint64 { return s.Segments })},
		{Metric{Name: "clefbench_segments_abandoned_total", Unit: "{segment}", Help: "Segments that were left behind by write errors."},
			one(func(s SegmentStats) uint64 { return s.Abandoned })},
		{Metric{Name: "clefbench_segments_batches_total", Unit: "{batch}", Help: "Batches that were written."},
			one(func(s SegmentStats) uint64 { return s.Batches })},
		{Metric{Name: "clefbench_segments_rows_total", Unit: "{row}", Help: "Rows in those batches."},
			one(func(s SegmentStats) uint64 { return s.Rows })},
		{Metric{Name: "clefbench_segments_written_bytes_total", Unit: "By", Help: "Bytes that were written, compressed, heads and footers included."},
			one(func(s SegmentStats) uint64 { return s.Bytes })},
		{Metric{Name: "clefbench_segments_encode_seconds_total", Unit: "s", Help: "Time spent on making batches of columns, compression included."},
			one(func(s SegmentStats) float64 { return s.EncodeTime.Seconds() })},
		{Metric{Name: "clefbench_segments_seal_age_seconds", Unit: "s", Kind: Gauge,
			Help: "Time since a segment was sealed last; before the first, since the open one was begun."},
			one(func(s SegmentStats) float64 { return age(now, s.LastSeal, s.OpenSince) })},
		{Metric{Name: "clefbench_segments_open_age_seconds", Unit: "s", Kind: Gauge, Help: "Age of the open segment, 0 without one."},
			one(func(s SegmentStats) float64 { return age(now, s.OpenSince, now) })},
	}
}

// age is the time since the first of the moments that is set, never negative.
func age(now time.Time, moments ...time.Time) float64 {
	for _, t := range moments {
		if !t.IsZero() {
			return max(0, now.Sub(t).Seconds())
		}
	}
	return 0
}

func uploadFamilies() []family[UploadStats] {
	return []family[UploadStats]{
		{Metric{Name: "clefbench_upload_segments_total", Unit: "{segment}", Help: "Segments that are in the bucket."},
			one(func(s UploadStats) uint64 { return s.Uploaded })},
		{Metric{Name: "clefbench_upload_present_segments_total", Unit: "{segment}", Help: "Segments of those that were in the bucket already."},
			one(func(s UploadStats) uint64 { return s.Present })},
		{Metric{Name: "clefbench_upload_sent_bytes_total", Unit: "By", Help: "Bytes of the segments that are in the bucket."},
			one(func(s UploadStats) uint64 { return s.Bytes })},
		{Metric{Name: "clefbench_upload_rows_total", Unit: "{row}", Help: "Rows of the segments that are in the bucket."},
			one(func(s UploadStats) uint64 { return s.Rows })},
		{Metric{Name: "clefbench_upload_pending_segments", Unit: "{segment}", Kind: Gauge, Help: "Sealed segments that wait for their upload."},
			one(func(s UploadStats) int { return s.Pending })},
		{Metric{Name: "clefbench_upload_pending_bytes", Unit: "By", Kind: Gauge, Help: "Bytes of those."},
			one(func(s UploadStats) int64 { return s.PendingBytes })},
		{Metric{Name: "clefbench_upload_lag_seconds", Unit: "s", Kind: Gauge, Help: "Time since the oldest of those was sealed."},
			one(func(s UploadStats) float64 { return s.OldestPending.Seconds() })},
		{Metric{Name: "clefbench_upload_stuck_segments", Unit: "{segment}", Kind: Gauge, Label: "reason", Values: []string{"conflict", "unreadable"},
			Help: "Segments of those that will not be uploaded before somebody looks."},
			func(s UploadStats) []float64 { return []float64{float64(s.Conflicts), float64(s.Unreadable)} }},
		{Metric{Name: "clefbench_upload_failures_total", Unit: "{attempt}", Help: "Attempts to upload that failed."},
			one(func(s UploadStats) uint64 { return s.Failures })},
		{Metric{Name: "clefbench_upload_refused_rows_total", Unit: "{row}", Help: "Rows that were refused because too much waits for its upload."},
			one(func(s UploadStats) uint64 { return s.Refused })},
		{Metric{Name: "clefbench_upload_salvaged_segments_total", Unit: "{segment}", Help: "Segments of dead writers that were sealed."},
			one(func(s UploadStats) uint64 { return s.Salvaged })},
	}
}
