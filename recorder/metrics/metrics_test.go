package metrics

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/spool"
)

// What converts here converts for everybody.
var (
	_ = SegmentStats(arrowfile.Stats{})
	_ = UploadStats(spool.Stats{})
)

type fixed recorder.Stats

func (f fixed) Stats() recorder.Stats { return recorder.Stats(f) }

func all(s recorder.Stats) *Sources {
	now := time.Unix(1000, 0)
	return &Sources{Recorder: fixed(s), Now: func() time.Time { return now },
		Segments: func() SegmentStats {
			return SegmentStats{Segments: 2, EncodeTime: 1500 * time.Millisecond, LastSeal: now.Add(-time.Minute), OpenSince: now.Add(-time.Second)}
		},
		Uploads: func() UploadStats { return UploadStats{Pending: 3, OldestPending: time.Hour, Conflicts: 1} }}
}

func values(s *Sources) map[string]float64 {
	out, ms := map[string]float64{}, s.Metrics()
	s.Read(func(i, label int, v float64) {
		name := ms[i].Name
		if ms[i].Label != "" {
			name += "/" + ms[i].Values[label]
		}
		if _, twice := out[name]; twice {
			panic(name)
		}
		out[name] = v
	})
	return out
}

func TestFiguresAreThoseOfTheStats(t *testing.T) {
	s := recorder.Stats{Queued: 4, Capacity: 100, Acknowledged: 5, AppendErrors: 6, FlushErrors: 7, Panics: 8, Unlisted: 9, Bypassed: 10, Recording: true,
		Shadow: recorder.ShadowStats{Asked: 11, Running: 12, Busy: 13, TooLarge: 14, TimedOut: 15, Panicked: 16},
		Ledger: snapshot.Ledger{Offered: 100, Written: 50, SampledOut: 20, Requests: &snapshot.Counts{Offered: 9, Written: 5, SampledOut: 2},
			Dropped: map[string]uint64{recorder.DropQueueFull: 10, recorder.DropSwitchedOff: 10, "spool-full": 4, "made up": 5, "too": 1}}}
	s.Ledger.Requests.Drop("any", 2)
	got := values(all(s))
	for name, want := range map[string]float64{
		"recorder_offered_rows_total": 100, "recorder_written_rows_total": 50, "recorder_sampled_out_rows_total": 20,
		"recorder_dropped_rows_total/queue-full": 10, "recorder_dropped_rows_total/switched-off": 10, "recorder_dropped_rows_total/spool-full": 4,
		"recorder_dropped_rows_total/other": 6, "recorder_dropped_rows_total/closed": 0, "recorder_requests_total/written": 5,
		"recorder_requests_total/sampled-out": 2, "recorder_requests_total/dropped": 2, "recorder_queue_rows": 4, "recorder_queue_capacity_rows": 100,
		"recorder_acknowledged_rows_total": 5, "recorder_sink_errors_total/append": 6, "recorder_sink_errors_total/flush": 7, "recorder_panics_total": 8,
		"recorder_unlisted_attributes_total": 9, "recorder_bypassed_calls_total": 10, "recorder_recording": 1,
		"shadow_asked_requests_total": 11, "shadow_running_requests": 12, "shadow_skipped_requests_total/busy": 13, "shadow_skipped_requests_total/too-large": 14,
		"shadow_timed_out_requests_total": 15, "shadow_panicked_requests_total": 16, "segments_sealed_total": 2, "segments_encode_seconds_total": 1.5,
		"segments_seal_age_seconds": 60, "segments_open_age_seconds": 1, "upload_pending_segments": 3, "upload_lag_seconds": 3600, "upload_stuck_segments/conflict": 1,
	} {
		if v, ok := got["clefbench_"+name]; !ok || v != want {
			t.Errorf("%s = %v, want %v", name, v, want)
		}
	}
	if v := got["clefbench_recorder_blind_ratio"]; math.Abs(v-(1-0.9*50.0/70)) > 1e-12 {
		t.Errorf("blind %v", v)
	}
}

// Every figure has a value, whatever the stats hold; the label sets are closed.
func TestNothingIsMissing(t *testing.T) {
	empty := all(recorder.Stats{})
	names := map[string]bool{}
	for i, m := range empty.Metrics() {
		if names[m.Name] || m.Help == "" || m.Unit == "" || (m.Label == "") != (len(m.Values) == 0) {
			t.Errorf("metric %d: %+v", i, m)
		}
		names[m.Name] = true
		if (m.Kind == Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s: counters end in _total, gauges do not", m.Name)
		}
		n := max(1, len(m.Values))
		got := 0
		empty.Read(func(j, label int, v float64) {
			if j == i {
				got++
				if label >= n || math.IsNaN(v) || v < 0 {
					t.Errorf("%s: label %d, value %v", m.Name, label, v)
				}
			}
		})
		if got != n && m.Name != "clefbench_recorder_requests_total" { // the one that may not be counted
			t.Errorf("%s: %d values for %d labels", m.Name, got, n)
		}
	}
	if n := len((&Sources{}).Metrics()); n != 0 {
		t.Errorf("%d metrics of nothing", n)
	}
}

// A reason that the recorder gains must join the closed set.
func TestEveryReasonIsListed(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := filepath.Glob("../proxy/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, proxy...)
	known, found, reason := dropReasons(), 0, regexp.MustCompile(`^(Drop|Lost)[A-Z]`)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !reason.MatchString(v.Names[0].Name) {
				return true
			}
			lit, ok := v.Values[0].(*ast.BasicLit)
			if !ok || v.Type != nil {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if found++; err != nil || !slices.Contains(known, text) {
				t.Errorf("%s = %q is not listed", v.Names[0].Name, text)
			}
			return true
		})
	}
	if found < 13 {
		t.Errorf("only %d reasons were found", found)
	}
	if !slices.Contains(known, spool.DropFull) {
		t.Error("the spool's reason is not listed")
	}
}

// The page for people lists what there is.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range all(recorder.Stats{}).Metrics() {
		label := ""
		if m.Label != "" {
			label = "`" + m.Label + "`: " + strings.Join(m.Values, ", ")
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", m.Name, m.Help, label))
	}
	var got []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `clefbench_") {
			got = append(got, strings.TrimRight(line, "\n"))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md should have\n%s", strings.Join(want, "\n"))
	}
}

func TestBlind(t *testing.T) {
	drop := func(reason string, n uint64) map[string]uint64 { return map[string]uint64{reason: n} }
	for _, c := range []struct {
		l    snapshot.Ledger
		want float64
	}{
		{snapshot.Ledger{}, 0},
		{snapshot.Ledger{Offered: 100, Written: 100}, 0},
		{snapshot.Ledger{Offered: 100, Written: 10, SampledOut: 90}, 0},
		{snapshot.Ledger{Offered: 100, Written: 90, Dropped: drop("queue-full", 10)}, 0.1},
		{snapshot.Ledger{Offered: 100, SampledOut: 99, Dropped: drop("sink-error", 1)}, 1}, // the whole sample is lost
		{snapshot.Ledger{Offered: 100, Written: 1, SampledOut: 49, Dropped: drop("switched-off", 50)}, 0.5},
		{snapshot.Ledger{Offered: 100, Dropped: drop("switched-off", 100)}, 1},
		{snapshot.Ledger{Offered: 100}, 0}, // all wait
	} {
		if got := Blind(c.l); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v, want %v", c.l, got, c.want)
		}
	}
	inRange := func(written, sampled, full, off uint32) bool {
		l := snapshot.Ledger{Written: uint64(written), SampledOut: uint64(sampled)}
		l.Drop("queue-full", uint64(full))
		l.Drop(recorder.DropSwitchedOff, uint64(off))
		l.Offered = l.Written + l.SampledOut + l.DroppedTotal()
		b := Blind(l)
		return b >= 0 && b <= 1 && (b == 0) == (full == 0 && off == 0)
	}
	if err := quick.Check(inRange, nil); err != nil {
		t.Error(err)
	}
}

func ExampleSources() {
	rec, err := recorder.New(nothing{}, recorder.Options{})
	if err != nil {
		panic(err)
	}
	s := Sources{Recorder: rec}
	ms := s.Metrics()
	s.Read(func(i, _ int, v float64) {
		if ms[i].Name == "clefbench_recorder_queue_capacity_rows" {
			fmt.Println(ms[i].Name, v)
		}
	})
	// Output:
	// clefbench_recorder_queue_capacity_rows 8192
}

type nothing struct{}

func (nothing) Append(*snapshot.Snapshot) error  { return nil }
func (nothing) Flush(snapshot.Ledger) error      { return nil }
func (nothing) Close(_, _ snapshot.Ledger) error { return nil }
