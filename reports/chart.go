package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

// The charts are drawn for the width of a phone, in CSS pixels, and are laid side by side
// where there is room; scaled down from a desktop size their text could not be read.
const (
	barWidth   = 360.0
	barLeft    = 8.0
	barRight   = 352.0
	barRow     = 38.0
	barTop     = 6.0
	cdfWidth   = 400.0
	cdfHeight  = 262.0
	cdfLeft    = 44.0
	cdfRight   = 388.0
	cdfTop     = 12.0
	cdfBottom  = 214.0
	labelWidth = 38
)

// The palette has as many colours and dash patterns as the style sheet; their numbers
// have no common factor, so that thirty backends look different.
const (
	paletteColors = 6
	paletteDashes = 5
)

// series is the look of the i-th backend, the same in every chart.
func series(i int) string {
	return fmt.Sprintf("c%d d%d", i%paletteColors, i%paletteDashes)
}

// barChart is one measure of every backend, as bars with whiskers.
type barChart struct {
	ID, Title, Desc string
	Height, Axis    float64
	Bars            []bar
	Ticks           []tick
	Lines           []tick
}

type bar struct {
	Class        string
	Label, Value string
	// Full is the whole name where the label is shortened.
	Full          string
	Missing       bool
	Whisker       bool
	Width         float64
	Lo, Hi        float64
	TextY, Y, Mid float64
}

type tick struct {
	X, Y  float64
	Label string
	Class string
	// Anchor keeps the labels at the ends of an axis within the picture.
	Anchor string
}

// anchor is the text-anchor of the i-th of n labels.
func anchor(i, n int) string {
	switch i {
	case 0:
		return "start"
	case n - 1:
		return "end"
	}
	return "middle"
}

// barValue is what a bar shows: an estimate on a scale that ends at full.
type barValue struct {
	name     string
	estimate scoring.Estimate
}

// known says whether there is a bar to draw.
func (v barValue) known() bool { return v.estimate.NA == "" && !math.IsNaN(float64(v.estimate.Value)) }

// newBarChart draws bars on a scale from 0 to full.
func newBarChart(id, title string, values []barValue, full float64, format func(float64) string) barChart {
	c := barChart{ID: id, Title: title, Axis: barTop + barRow*float64(len(values)) + 4}
	c.Height = c.Axis + 20
	at := func(v float64) float64 { return barLeft + (barRight-barLeft)*math.Min(1, math.Max(0, v/full)) }
	var said []string
	for i, v := range values {
		b := bar{Class: series(i), Label: shorten(clean(v.name), labelWidth), Full: clean(v.name)}
		b.TextY = barTop + barRow*float64(i) + 13
		b.Y, b.Mid = b.TextY+5, b.TextY+11
		if b.Missing, b.Value = !v.known(), na; v.known() {
			value := float64(v.estimate.Value)
			b.Value, b.Width = format(value), at(value)-barLeft
			lo, hi := float64(v.estimate.Lo), float64(v.estimate.Hi)
			if b.Whisker = !math.IsNaN(lo) && !math.IsNaN(hi); b.Whisker {
				b.Lo, b.Hi = at(lo), at(hi)
			}
		}
		said = append(said, b.Full+" "+b.Value)
		c.Bars = append(c.Bars, b)
	}
	for i := 0; i <= 4; i++ {
		c.Ticks = append(c.Ticks, tick{X: at(full * float64(i) / 4), Label: strconv.Itoa(25 * i), Anchor: anchor(i, 5)})
	}
	c.Desc = "Bars with 95% intervals: " + strings.Join(said, ", ") + "."
	return c
}

// line draws a level that all bars are to be compared with.
func (c *barChart) line(v, full float64, label, class string) {
	if math.IsNaN(v) {
		return
	}
	c.Lines = append(c.Lines, tick{X: barLeft + (barRight-barLeft)*math.Min(1, math.Max(0, v/full)), Label: label, Class: class})
	c.Desc += fmt.Sprintf(" %s %s.", label, share(v/full))
}

// cdfChart is the latency distribution of every backend on a logarithmic axis.
type cdfChart struct {
	ID, Title, Desc string
	Paths           []cdfPath
	X, Y            []tick
}

type cdfPath struct {
	Class, Name, D string
	Marks          []cdfMark
}

type cdfMark struct {
	X, Y  float64
	Label string
}

// cdfSource is one backend's distribution; index is its place in the palette.
type cdfSource struct {
	index int
	name  string
	score *scoring.Result
}

// newCDFChart draws the share of offered decisions that were answered within a time, so
// that a curve of a backend with misses ends below 100% and meets its own quantiles. It is
// false when nothing was measured.
func newCDFChart(id, title string, sources []cdfSource) (cdfChart, bool) {
	lo, hi := decades(sources)
	if lo > hi {
		return cdfChart{}, false
	}
	c := cdfChart{ID: id, Title: title}
	x := func(ns float64) float64 {
		f := (math.Log10(math.Max(ns, 1)) - lo) / (hi - lo)
		return cdfLeft + (cdfRight-cdfLeft)*math.Min(1, math.Max(0, f))
	}
	c.axes(lo, hi, x)
	var said []string
	for _, s := range sources {
		if len(s.score.Distribution) == 0 {
			continue
		}
		p := cdfPath{Class: series(s.index), Name: clean(s.name), D: cdfSteps(s.score, x)}
		for _, m := range []struct {
			q  float64
			at scoring.Number
		}{{0.50, s.score.LatencyNs.P50}, {0.99, s.score.LatencyNs.P99}} {
			if v := float64(m.at); !math.IsNaN(v) {
				p.Marks = append(p.Marks, cdfMark{X: x(v), Y: cdfY(m.q), Label: fmt.Sprintf("%s p%.0f %s", p.Name, 100*m.q, latency(v))})
			}
		}
		c.Paths = append(c.Paths, p)
		said = append(said, fmt.Sprintf("%s p50 %s, p99 %s", p.Name, latency(float64(s.score.LatencyNs.P50)), latency(float64(s.score.LatencyNs.P99))))
	}
	c.Desc = "Share of offered decisions answered within a time, on a logarithmic axis: " + strings.Join(said, "; ") + "."
	return c, true
}

// axes places a tick a power of ten, fewer where labels would touch, and one a quarter.
func (c *cdfChart) axes(lo, hi float64, x func(float64) float64) {
	step := math.Ceil((hi - lo) / 7)
	for d := lo; d <= hi; d++ {
		t := tick{X: x(math.Pow(10, d)), Anchor: "middle"}
		if d == hi {
			t.Anchor = "end"
		}
		if math.Mod(d-lo, step) == 0 {
			t.Label = decadeLabel(int(d))
		}
		c.X = append(c.X, t)
	}
	for i := 0; i <= 4; i++ {
		c.Y = append(c.Y, tick{Y: cdfY(float64(i) / 4), Label: strconv.Itoa(25*i) + "%"})
	}
}

// decades are the powers of ten that hold all buckets; the first is greater than the
// second when there is none.
func decades(sources []cdfSource) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, s := range sources {
		for _, b := range s.score.Distribution {
			lo = math.Min(lo, math.Floor(math.Log10(math.Max(1, float64(b.LoNs)))))
			hi = math.Max(hi, math.Ceil(math.Log10(math.Max(1, bucketEnd(b)))))
		}
	}
	if lo == hi {
		hi++
	}
	return lo, hi
}

// bucketEnd is the upper bound, or the lower one of the bucket that has no end.
func bucketEnd(b scoring.Bucket) float64 {
	if b.HiNs == math.MaxInt64 || b.HiNs < b.LoNs {
		return float64(b.LoNs)
	}
	return float64(b.HiNs)
}

// decadeLabel is 10^d nanoseconds: "1 µs", "100 ms".
func decadeLabel(d int) string {
	units := [...]string{"ns", "µs", "ms", "s"}
	u := min(max(d/3, 0), len(units)-1)
	return "1" + strings.Repeat("0", d-3*u) + " " + units[u]
}

func cdfY(share float64) float64 { return cdfBottom - (cdfBottom-cdfTop)*share }

// cdfSteps is the path of the distribution; steps that are too small to see are left out.
func cdfSteps(s *scoring.Result, x func(float64) float64) string {
	var sum float64
	for _, b := range s.Distribution {
		sum += positive(b.Weight)
	}
	if sum == 0 {
		return ""
	}
	scale := 1 / sum
	if s.Counts.Offered > 0 {
		scale *= float64(s.Counts.Answered) / float64(s.Counts.Offered)
	}
	path := fmt.Sprintf("M%.1f %.1f", x(float64(s.Distribution[0].LoNs)), cdfBottom)
	drawn, cum := cdfBottom, 0.0
	for i, b := range s.Distribution {
		cum += positive(b.Weight)
		if y := cdfY(cum * scale); drawn-y >= 0.3 || i == len(s.Distribution)-1 {
			path += fmt.Sprintf("H%.1fV%.1f", x(bucketEnd(b)), y)
			drawn = y
		}
	}
	return path + fmt.Sprintf("H%.1f", cdfRight)
}

func positive(n scoring.Number) float64 {
	if v := float64(n); v > 0 && !math.IsInf(v, 0) {
		return v
	}
	return 0
}

// shorten cuts a text in its middle: the ends of long names differ most often.
func shorten(s string, width int) string {
	if displayWidth(s) <= width {
		return s
	}
	r := []rune(s)
	head, tail := len(r)/2, len(r)/2
	for head > 1 && displayWidth(string(r[:head])+"…"+string(r[tail:])) > width {
		head--
		if tail < len(r)-1 {
			tail++
		}
	}
	return string(r[:head]) + "…" + string(r[tail:])
}
