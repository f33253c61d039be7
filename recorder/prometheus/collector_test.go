package recorderprom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/recorder/metrics"
	recorderprom "github.com/clefbench/clefbench/recorder/prometheus"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// running is a recorder over real segments, with sources of all kinds.
func running(t *testing.T) (*recorder.Recorder, metrics.Sources) {
	t.Helper()
	w, err := arrowfile.Create(t.TempDir(), arrowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recorder.New(w, recorder.Options{FlushInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close(context.Background()) })
	return rec, metrics.Sources{Recorder: rec, Segments: func() metrics.SegmentStats { return metrics.SegmentStats(w.Stats()) },
		Uploads: func() metrics.UploadStats { return metrics.UploadStats{} }}
}

func row() *snapshot.Snapshot {
	now := time.Now()
	return &snapshot.Snapshot{ID: decision.NewID(now), RequestID: decision.NewID(now), Status: decision.OK, Action: "allow",
		Time: now.UTC(), Scenario: "test", KeepProb: 1}
}

func TestCollectorLints(t *testing.T) {
	_, s := running(t)
	reg := prometheus.NewPedanticRegistry() // holds each metric to its description, and label sets to be consistent
	if err := reg.Register(recorderprom.New(s)); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v: %+v", err, problems)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, f := range families {
		series += len(f.Metric)
	}
	if want := len(s.Metrics()); len(families) < want-1 || series > 80 {
		t.Errorf("%d families of %d, %d series", len(families), want, series)
	}
}

func TestScrape(t *testing.T) {
	rec, s := running(t)
	reg := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(prometheus.Labels{"recorder": "a"}, reg).MustRegister(recorderprom.New(s))
	prometheus.WrapRegistererWith(prometheus.Labels{"recorder": "b"}, reg).MustRegister(recorderprom.New(metrics.Sources{Recorder: rec}))
	for range 7 {
		rec.Record(context.Background(), row())
	}
	if _, err := rec.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	rec.SetRecording(false)
	rec.Record(context.Background(), row(), row(), row())
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`clefbench_recorder_written_rows_total{recorder="a"} 7`, `clefbench_recorder_written_rows_total{recorder="b"} 7`,
		`clefbench_recorder_offered_rows_total{recorder="a"} 10`, `clefbench_recorder_dropped_rows_total{reason="switched-off",recorder="a"} 3`,
		`clefbench_recorder_dropped_rows_total{reason="queue-full",recorder="a"} 0`, `clefbench_recorder_recording{recorder="a"} 0`,
		`clefbench_recorder_blind_ratio{recorder="a"} 0.3`, `clefbench_segments_rows_total{recorder="a"} 7`, "# TYPE clefbench_recorder_blind_ratio gauge",
		"# TYPE clefbench_segments_encode_seconds_total counter",
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(w.Body)
	}
}

// A scrape at any moment sees a ledger that adds up, while others record.
func TestScrapeWhileRecording(t *testing.T) {
	rec, s := running(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 3000 {
				rec.Record(context.Background(), row())
			}
		})
	}
	c := recorderprom.New(s)
	for range 50 {
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(c)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		sum := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				sum[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		p := "clefbench_recorder_"
		if in := sum[p+"written_rows_total"] + sum[p+"dropped_rows_total"] + sum[p+"sampled_out_rows_total"] + sum[p+"queue_rows"]; in != sum[p+"offered_rows_total"] {
			t.Errorf("offered %v, accounted for %v", sum[p+"offered_rows_total"], in)
		}
	}
	wg.Wait()
}

// Every metric and every label value that the dashboard asks for is there.
func TestDashboard(t *testing.T) {
	_, s := running(t)
	known := map[string]metrics.Metric{}
	for _, m := range s.Metrics() {
		known[m.Name] = m
	}
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %d dashboards", err, len(files))
	}
	used := map[string]bool{}
	for _, file := range files {
		for _, e := range expressions(t, file) {
			for _, problem := range check(e, known, used) {
				t.Errorf("%s: %s: %s", file, problem, e)
			}
		}
	}
	for name := range known {
		if strings.HasPrefix(name, "clefbench_recorder_") && !used[name] {
			t.Errorf("%s is on no dashboard", name)
		}
	}
	for _, bad := range []string{"sum(clefbench_recorder_lost_total)", `clefbench_recorder_dropped_rows_total{reason="full"}`,
		`sum by (cause) (clefbench_recorder_dropped_rows_total)`, `clefbench_recorder_queue_rows{reason="x"}`, "sum(clefbench_recorder_queue_rows"} {
		if len(check(bad, known, used)) == 0 {
			t.Errorf("%s passes", bad)
		}
	}
}

// expressions are those of all panels and variables.
func expressions(t *testing.T, file string) (out []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var dash struct {
		Panels []struct {
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
		Templating struct{ List []struct{ Definition string } }
	}
	if err := json.Unmarshal(data, &dash); err != nil {
		t.Fatal(err)
	}
	seen := map[[2]int]string{}
	for _, p := range dash.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := seen[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				seen[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			out = append(out, q.Expr)
		}
	}
	for _, v := range dash.Templating.List {
		if v.Definition != "" {
			out = append(out, v.Definition)
		}
	}
	return out
}

var (
	metricName = regexp.MustCompile(`(clefbench_\w+)(\{[^}]*\})?`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`by \((\w+)\) \(\w*\(?(clefbench_\w+)`)
)

func check(expr string, known map[string]metrics.Metric, used map[string]bool) (problems []string) {
	if strings.Count(expr, "(") != strings.Count(expr, ")") {
		problems = append(problems, "brackets")
	}
	for _, m := range metricName.FindAllStringSubmatch(expr, -1) {
		def, ok := known[m[1]]
		if !ok {
			problems = append(problems, "no metric "+m[1])
			continue
		}
		used[m[1]] = true
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "job" || l[1] == "instance" {
				continue
			}
			if l[1] != def.Label || !slices.Contains(def.Values, l[3]) {
				problems = append(problems, fmt.Sprintf("%s has no %s %q", m[1], l[1], l[3]))
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		if known[g[2]].Label != g[1] {
			problems = append(problems, g[2]+" has no label "+g[1])
		}
	}
	return problems
}

func ExampleNew() {
	rec, err := recorder.New(discard{}, recorder.Options{QueueRows: 100})
	if err != nil {
		panic(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(recorderprom.New(metrics.Sources{Recorder: rec}))
	err = testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP clefbench_recorder_queue_capacity_rows Rows that may wait for the sink.
# TYPE clefbench_recorder_queue_capacity_rows gauge
clefbench_recorder_queue_capacity_rows 100
`), "clefbench_recorder_queue_capacity_rows")
	fmt.Println(err)
	// Output:
	// <nil>
}

type discard struct{}

func (discard) Append(*snapshot.Snapshot) error  { return nil }
func (discard) Flush(snapshot.Ledger) error      { return nil }
func (discard) Close(_, _ snapshot.Ledger) error { return nil }
