package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/scoring"
)

func TestBarChart(t *testing.T) {
	c := newBarChart("x", "Total", []barValue{
		{"half", est(50, 25, 75)},
		{"full", est(100, 100, 100)},
		{"none", refusal("no labels")},
		{"above", scoring.Estimate{Value: 120, Lo: nan, Hi: nan}},
		{strings.Repeat("long-name-", 10), est(0, -5, 5)},
	}, 100, score)
	if w := c.Bars[0].Width; w != (barRight-barLeft)/2 {
		t.Errorf("half is %v wide", w)
	}
	if lo, hi := c.Bars[0].Lo, c.Bars[0].Hi; lo != barLeft+(barRight-barLeft)/4 || hi != barLeft+(barRight-barLeft)*3/4 {
		t.Errorf("whiskers from %v to %v", lo, hi)
	}
	if !c.Bars[2].Missing || c.Bars[2].Value != "NA" || c.Bars[2].Width != 0 {
		t.Errorf("a refused bar is %+v", c.Bars[2])
	}
	if c.Bars[3].Width != barRight-barLeft || c.Bars[3].Whisker {
		t.Errorf("a bar beyond the scale is %+v", c.Bars[3])
	}
	if c.Bars[4].Lo != barLeft {
		t.Errorf("a whisker leaves the picture: %+v", c.Bars[4])
	}
	if n := displayWidth(c.Bars[4].Label); n > labelWidth || !strings.Contains(c.Bars[4].Label, "…") {
		t.Errorf("label %q", c.Bars[4].Label)
	}
	if !strings.Contains(c.Desc, "half 50.0, full 100.0, none NA") {
		t.Errorf("description %q", c.Desc)
	}
	c.line(math.NaN(), 1, "ceiling", "d2")
	c.line(0.25, 1, "majority", "d1")
	if len(c.Lines) != 1 || c.Lines[0].X != barLeft+(barRight-barLeft)/4 {
		t.Errorf("lines %+v", c.Lines)
	}
}

// Quantiles that are read off a curve are those of the buckets.
func TestCDFMeetsItsQuantiles(t *testing.T) {
	s := &scoring.Result{Counts: scoring.Counts{Offered: 200, Answered: 100}, LatencyNs: scoring.Quantiles{P50: 1000, P99: nan}}
	for i := range 100 {
		s.Distribution = append(s.Distribution, scoring.Bucket{LoNs: int64(10 * (i + 1)), HiNs: int64(10 * (i + 2)), Weight: 2})
	}
	c, ok := newCDFChart("x", "Latency", []cdfSource{{0, "a", s}})
	if !ok {
		t.Fatal("no chart")
	}
	steps := pathPoints(t, c.Paths[0].D)
	end := steps[len(steps)-1]
	if end[0] != cdfRight || math.Abs(end[1]-cdfY(0.5)) > 0.1 {
		t.Errorf("half were answered, and the curve ends at %v", end)
	}
	for i := 1; i < len(steps); i++ {
		if steps[i][0] < steps[i-1][0] || steps[i][1] > steps[i-1][1] {
			t.Fatalf("the curve goes back at %v", steps[i])
		}
	}
	if n := len(c.Paths[0].Marks); n != 1 {
		t.Errorf("%d marks, want that of p50 alone", n)
	}
	// Half of the answered, a quarter of the offered, took less than 510 ns.
	x := cdfLeft + (cdfRight-cdfLeft)*(math.Log10(510)-1)/(4-1)
	var y float64
	for _, p := range steps {
		if p[0] <= x+0.1 {
			y = p[1]
		}
	}
	if math.Abs(y-cdfY(0.25)) > 1.5 {
		t.Errorf("at 510 ns the curve is at %.1f, want %.1f", y, cdfY(0.25))
	}
}

// pathPoints reads "M1 2H3V4H5".
func pathPoints(t *testing.T, d string) [][2]float64 {
	t.Helper()
	var x, y float64
	if _, err := fmt.Sscanf(d, "M%g %g", &x, &y); err != nil {
		t.Fatalf("path %q: %v", d, err)
	}
	out := [][2]float64{{x, y}}
	for i := strings.IndexByte(d, 'H'); i >= 0 && i < len(d); {
		j := i + 1
		for j < len(d) && d[j] != 'H' && d[j] != 'V' {
			j++
		}
		v, err := strconv.ParseFloat(d[i+1:j], 64)
		if err != nil {
			t.Fatalf("path %q: %v", d, err)
		}
		if d[i] == 'H' {
			x = v
		} else {
			y = v
		}
		out = append(out, [2]float64{x, y})
		i = j
	}
	return out
}

// Buckets that nobody should write do not break a chart.
func TestCDFOddBuckets(t *testing.T) {
	for name, list := range map[string][]scoring.Bucket{
		"none":        nil,
		"zero":        {{LoNs: 0, HiNs: 0, Weight: 1}},
		"no weight":   {{LoNs: 1, HiNs: 10, Weight: 0}},
		"NaN weight":  {{LoNs: 1, HiNs: 10, Weight: nan}},
		"negative":    {{LoNs: -5, HiNs: -1, Weight: 1}},
		"open ended":  {{LoNs: 100, HiNs: math.MaxInt64, Weight: 1}},
		"very long":   {{LoNs: 1, HiNs: 2, Weight: 1}, {LoNs: 1e15, HiNs: 2e15, Weight: 1}},
		"wrong order": {{LoNs: 10, HiNs: 1, Weight: 1}},
	} {
		s := &scoring.Result{Counts: scoring.Counts{Offered: 1, Answered: 1}, Distribution: list, LatencyNs: scoring.Quantiles{P50: nan, P99: nan}}
		c, ok := newCDFChart("x", "t", []cdfSource{{0, "a", s}})
		if ok != (list != nil) {
			t.Errorf("%s: chart %v", name, ok)
		}
		if text := fmt.Sprint(c); strings.Contains(text, "NaN") && !strings.Contains(c.Desc, "NA") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %s", name, text)
		}
		if n := len(c.X); n > 20 {
			t.Errorf("%s: %d ticks", name, n)
		}
	}
}

func TestDecadeLabels(t *testing.T) {
	for d, want := range map[int]string{0: "1 ns", 2: "100 ns", 3: "1 µs", 5: "100 µs", 6: "1 ms", 9: "1 s", 11: "100 s", 13: "10000 s"} {
		if got := decadeLabel(d); got != want {
			t.Errorf("decadeLabel(%d) = %q, want %q", d, got, want)
		}
	}
}

// Thirty backends look different.
func TestSeriesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := range paletteColors * paletteDashes {
		seen[series(i)] = true
	}
	if len(seen) != 30 {
		t.Errorf("%d looks", len(seen))
	}
	for i := range paletteColors {
		if !strings.Contains(htmlStyle, fmt.Sprintf("--c%d:", i)) || !strings.Contains(htmlStyle, fmt.Sprintf(".line.c%d", i)) {
			t.Errorf("the style sheet has no colour %d", i)
		}
	}
	for i := 1; i <= heatSteps; i++ {
		if !strings.Contains(htmlStyle, fmt.Sprintf(".h%d {", i)) {
			t.Errorf("the style sheet has no shade %d", i)
		}
	}
}

func TestMatrix(t *testing.T) {
	m, ok := newMatrix("t", []scoring.Confusion{
		{Truth: "block", Chosen: "allow", Weight: 10}, {Truth: "block", Chosen: "block", Weight: 30}, {Truth: "block", Chosen: "(timeout)", Weight: 2.5},
		{Truth: "allow", Chosen: "allow", Weight: 100}, {Truth: "allow", Chosen: "captcha", Weight: 1}, {Truth: "allow", Chosen: "allow", Weight: 1},
	})
	if !ok {
		t.Fatal("no matrix")
	}
	if got := strings.Join(m.Columns, " "); got != "allow block captcha (timeout)" {
		t.Errorf("columns %s", got)
	}
	var rows []string
	for _, r := range m.Rows {
		s := r.Truth + ":"
		for _, c := range r.Cells {
			s += " " + c.Count
			if c.Right {
				s += "!"
			}
		}
		rows = append(rows, s+" = "+r.Total)
	}
	want := "allow: 101! 0 1 0 = 102; block: 10 30! 0 2.5 = 42.5"
	if got := strings.Join(rows, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c := m.Rows[0].Cells[0]; c.Heat != heatSteps || c.Share != "99%" {
		t.Errorf("cell %+v", c)
	}
	if _, ok := newMatrix("t", nil); ok {
		t.Error("a matrix of nothing")
	}
}

// Of many actions the rarest are added up; no weight is lost.
func TestMatrixOfMany(t *testing.T) {
	var list []scoring.Confusion
	for i := range 40 {
		for j := range 40 {
			list = append(list, scoring.Confusion{Truth: fmt.Sprintf("a%02d", i), Chosen: fmt.Sprintf("a%02d", j), Weight: scoring.Number(100 - i)})
		}
	}
	m, _ := newMatrix("t", list)
	if len(m.Rows) != maxActions || len(m.Columns) != maxActions {
		t.Fatalf("%d rows, %d columns", len(m.Rows), len(m.Columns))
	}
	last := m.Rows[maxActions-1]
	if last.Truth != "25 others" || m.Columns[maxActions-1] != "25 others" || last.Cells[maxActions-1].Right {
		t.Errorf("last row %+v of columns %v", last, m.Columns)
	}
	var sum float64
	for _, r := range m.Rows {
		v, err := strconv.ParseFloat(strings.ReplaceAll(r.Total, ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	if sum != 40*(100+61)*40/2 {
		t.Errorf("the rows sum to %v", sum)
	}
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		s     string
		width int
		want  string
	}{{"abc", 5, "abc"}, {"abcdefgh", 5, "ab…gh"}, {"日本語日本語", 7, "日…語"}} {
		if got := shorten(tt.s, tt.width); got != tt.want || displayWidth(got) > tt.width {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.s, tt.width, got, tt.want)
		}
	}
}
