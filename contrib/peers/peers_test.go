package peers

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestTrafficIsOfTheShapeThatItSays(t *testing.T) {
	rows := NewTraffic(1).Rows(8192)
	if again := NewTraffic(1).Rows(8192); !reflect.DeepEqual(rows, again) {
		t.Error("the same seed made other rows")
	}
	if reflect.DeepEqual(rows[0], NewTraffic(2).Rows(1)[0]) {
		t.Error("another seed made the same row")
	}
	input := 0
	for i := range rows {
		if err := rows[i].Validate(); err != nil {
			t.Fatal(err)
		}
		input += len(rows[i].Input)
	}
	if mean := input / len(rows); mean < 370 || mean > 385 {
		t.Errorf("inputs of %d bytes, want about 377", mean)
	}
	// The reference traffic came to 152 bytes a row under the same encoder.
	records, err := keptRecords(rows)
	if err != nil {
		t.Fatal(err)
	}
	floor, err := zstdFloor(records)
	if err != nil {
		t.Fatal(err)
	}
	n, err := floor()
	if err != nil {
		t.Fatal(err)
	}
	if per := float64(n) / float64(len(rows)); per < 145 || per > 160 {
		t.Errorf("%.1f bytes a row under zstd, want about 152", per)
	}
}

func TestRatios(t *testing.T) {
	got := RatioOf([]float64{2, 6, 12, 4, 10}, []float64{1, 2, 3, 4, 5})
	if want := (Ratio{Median: 2, Low: 2, High: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if q := quantile([]float64{4, 1, 3, 2}, 0.5); q != 2.5 {
		t.Errorf("median %v", q)
	}
	if q := quantile(nil, 0.5); q != 0 {
		t.Errorf("of nothing %v", q)
	}
	for _, c := range []struct {
		goal    Goal
		v       float64
		verdict string
	}{{Goal{AtLeast: 2}, 2, "yes"}, {Goal{AtLeast: 2}, 1.99, "**no**"}, {Goal{AtMost: 0.85}, 0.85, "yes"}, {Goal{AtMost: 0.85}, 0.9, "**no**"}, {Goal{}, 1, ""}} {
		if got := c.goal.verdict(c.v); got != c.verdict {
			t.Errorf("%v of %v: %q", c.goal, c.v, got)
		}
	}
}

func TestMeasureCountsProcessorTime(t *testing.T) {
	spin := func(n int) func() (int64, error) {
		return func() (int64, error) {
			x := 1.0
			for range n {
				x = math.Sqrt(x + 1)
			}
			if x < 0 {
				return 0, errors.New("unreachable")
			}
			return 800, nil
		}
	}
	results, err := Measure(5, []Case{{"short", 100, spin(2_000_000)}, {"long", 100, spin(20_000_000)}})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Bytes != 8 || len(results[0].NS) != 5 {
		t.Errorf("%+v", results[0])
	}
	if r := RatioOf(results[1].NS, results[0].NS).Median; r < 4 || r > 25 {
		t.Errorf("ten times the work took %.1f times the time", r)
	}
	broken := errors.New("broken")
	if _, err := Measure(1, []Case{{"bad", 1, func() (int64, error) { return 0, broken }}}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestReportIsMarkdown(t *testing.T) {
	r := &Report{Title: "T", Columns: []string{"case", "ns"}, What: "ratio", Notes: []string{"A note."}, Lines: []Line{
		{Cells: []string{"ours", "1"}},
		{Cells: []string{"theirs", "20"}, Ratio: Ratio{20.04, 19.96, 123.4}, Goal: Goal{AtLeast: 25}}}}
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	want := "\n### T\n\n| case | ns | ratio | goal | met |\n| --- | --- | --- | --- | --- |\n| ours | 1 |  |  |  |\n" +
		"| theirs | 20 | 20.0 [20.0, 123] | >= 25 | **no** |\n\nA note.\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if _, ok := r.Find("nobody"); ok {
		t.Error("found nobody")
	}
}

// The goals are for a quiet machine and more rounds; here each ratio must only be on the
// side where no noise can put it wrongly, so that a great loss is noticed.
func TestRatiosAreFarFromBad(t *testing.T) {
	rows := NewTraffic(1).Rows(16_384)
	run := func(r *Report, err error) *Report {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if _, err := r.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		t.Log(b.String())
		return r
	}
	atLeast := func(r *Report, name string, want float64) {
		t.Helper()
		if l, ok := r.Find(name); !ok || l.Ratio.Median < want {
			t.Errorf("%s: %.2f, want %.2f or more", name, l.Ratio.Median, want)
		}
	}
	handoff := run(HandOff(rows, 3))
	atLeast(handoff, "zerolog typed call", 3)
	for _, name := range []string{"recorder.Record, 1 caller, steady", "recorder.Record, 1 caller, saturated"} {
		if l, ok := handoff.Find(name); !ok || l.Ratio.Median < 1 || l.Ratio.Median > 10 {
			t.Errorf("%s: %.2f times a bare copy", name, l.Ratio.Median)
		}
	}
	encode := run(Encode(rows, 3))
	atLeast(encode, "zerolog lines", 1.1)
	atLeast(encode, "zstd fastest alone", 0.3)
	read := run(Read(rows, 3))
	atLeast(read, "Arrow v17 FileReader, all columns", 1)
	atLeast(read, "Arrow v17 FileReader over its own file, two", 8)
	atLeast(read, "parquet-go", 2)
}

// What another goroutine emptied holds nothing of a row, and keeps its memory.
func TestRingIsEmptied(t *testing.T) {
	r := ring{slots: make([]copied, 2)}
	rows := NewTraffic(1).Rows(3)
	for i := range rows {
		r.take(&rows[i])
	}
	if !reflect.DeepEqual(r.slots[0].row, rows[2]) || !reflect.DeepEqual(r.slots[1].row, rows[1]) {
		t.Error("a copy differs from its row")
	}
	if err := r.empty(); err != nil || !reflect.ValueOf(r.slots[0].row).IsZero() || r.slots[0].candidates[0].Action != "" || cap(r.slots[1].input) == 0 {
		t.Errorf("not empty, or without memory: %v", err)
	}
}

// A recorder that could not be kept up with would hand over for nothing; too few rows to
// choose from are refused.
func TestHandOffRefusesTooFewRows(t *testing.T) {
	if _, err := HandOff(NewTraffic(1).Rows(hotRows-1), 1); err == nil {
		t.Error("no error")
	}
}
