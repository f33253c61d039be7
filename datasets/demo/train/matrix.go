package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
)

// dim is one dimension of a matrix. Mapping pairs are key, value; empty: each value is
// its own key.
type dim struct {
	name, from string
	values     []string
	mapping    [][2]string
}

// ranges is a dimension cut at the edges; an absent number has a value of its own.
func ranges(name, from string, missing bool, edges ...string) dim {
	d := dim{name: name, from: from}
	add := func(key, value string) {
		d.values = append(d.values, value)
		d.mapping = append(d.mapping, [2]string{key, value})
	}
	add("<"+edges[0], "<"+edges[0])
	for i := range len(edges) - 1 {
		r := edges[i] + "-" + edges[i+1]
		add(r, r)
	}
	last := edges[len(edges)-1] + "+"
	add(last, last)
	if missing {
		add("<missing>", "missing")
	}
	return d
}

// words is a dimension of texts; whatever is not listed, and what is absent, is other.
func words(name, from string, listed ...string) dim {
	d := dim{name: name, from: from, values: append(append([]string{}, listed...), "other")}
	for _, w := range listed {
		d.mapping = append(d.mapping, [2]string{w, w})
	}
	d.mapping = append(d.mapping, [2]string{"<other>", "other"}, [2]string{"<missing>", "other"})
	return d
}

// cells is the number of cells below dims[i:].
func cells(dims []dim) int {
	n := 1
	for _, d := range dims {
		n *= len(d.values)
	}
	return n
}

// trainMatrix fills each cell with the action of the highest mean utility among the
// training rows that fall into it. Cells hold few rows, so a cell's mean is drawn to the
// mean of the wider cell without the last dimension, as if prior rows had been seen
// there, and so on up to the whole table. Which cell a row falls into is asked of the
// engine itself, through a table whose cells differ in nothing.
func trainMatrix(s *scenario, rows []*datasets.Example) ([]byte, error) {
	probe, err := flash.CompileMatrix("probe.json", s.matrixFile(make([]int, cells(s.dims))))
	if err != nil {
		return nil, err
	}
	table, err := flash.Open("probe.cfb", probe)
	if err != nil {
		return nil, err
	}
	// stats[i] is by the key of the first i dimensions.
	stats := make([]map[string]*tally, len(s.dims)+1)
	for i := range stats {
		stats[i] = map[string]*tally{}
	}
	for _, ex := range rows {
		key, err := cellOf(table, ex)
		if err != nil {
			return nil, err
		}
		parts := strings.Split(key, "/")
		for i := range stats {
			k := strings.Join(parts[:i], "/")
			t := stats[i][k]
			if t == nil {
				t = &tally{sum: make([]float64, len(s.task.Candidates))}
				stats[i][k] = t
			}
			t.add(s.utilities(ex))
		}
	}
	best := make([]int, 0, cells(s.dims))
	s.walk(nil, stats, stats[0][""].mean(), func(mean []float64) {
		best = append(best, argmax(mean))
	})
	return s.matrixFile(best), nil
}

// tally sums utilities by candidate.
type tally struct {
	n   float64
	sum []float64
}

func (t *tally) add(u []float64) {
	t.n++
	for i, x := range u {
		t.sum[i] += x
	}
}

func (t *tally) mean() []float64 { return t.shrunk(make([]float64, len(t.sum)), 0) }

// shrunk is the mean after n more rows of the given mean.
func (t *tally) shrunk(mean []float64, n float64) []float64 {
	out := make([]float64, len(t.sum))
	for i := range out {
		out[i] = (t.sum[i] + float64(n*mean[i])) / (t.n + n)
	}
	return out
}

// walk visits the cells in the order of the file, the first dimension outermost, with
// the shrunken mean utilities of each.
func (s *scenario) walk(path []string, stats []map[string]*tally, mean []float64, visit func([]float64)) {
	i := len(path)
	if t := stats[i][strings.Join(path, "/")]; i > 0 && t != nil {
		mean = t.shrunk(mean, s.prior)
	}
	if i == len(s.dims) {
		visit(mean)
		return
	}
	for _, v := range s.dims[i].values {
		s.walk(append(path[:i:i], v), stats, mean, visit)
	}
}

// cellOf returns the values of a row's cell, joined by slashes.
func cellOf(table *flash.Table, ex *datasets.Example) (string, error) {
	var out decision.Response
	req := request(ex)
	if err := table.Decide(context.Background(), req, &out); err != nil {
		return "", err
	}
	if d := &out.Decisions[0]; d.Reason.Kind == decision.ReasonTableHit {
		return d.Reason.Rule, nil
	}
	return "", fmt.Errorf("%s falls into no cell: %v", ex.SourceID, ex.Attrs.Values)
}

func request(ex *datasets.Example) *decision.Request {
	return &decision.Request{
		Scenario: ex.Scenario, Attrs: ex.Attrs,
		Questions: []decision.Question{{Type: decision.QuestionAction, Candidates: ex.Candidates}},
	}
}

func argmax(v []float64) int {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return best
}

// matrixFile writes the matrix, a row of the last dimension on a line: explanations name
// the line.
func (s *scenario) matrixFile(best []int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"version\": %s,\n  \"scenarios\": [%s],\n  \"dimensions\": [", quote(s.version), quote(s.name))
	for i, d := range s.dims {
		fmt.Fprintf(&b, "%s\n    {\"name\": %s, \"from\": %s, \"values\": %s", comma(i), quote(d.name), quote(d.from), list(d.values))
		for k, m := range d.mapping {
			start := ", "
			if k == 0 {
				start = ",\n     \"mapping\": {"
			}
			fmt.Fprintf(&b, "%s%s: %s", start, quote(m[0]), quote(m[1]))
		}
		if len(d.mapping) > 0 {
			b.WriteString("}")
		}
		b.WriteString("}")
	}
	b.WriteString("\n  ],\n  \"actions\": [")
	for i, a := range s.task.Candidates {
		fmt.Fprintf(&b, "%s\n    {\"id\": %d, \"type\": %s}", comma(i), i+1, quote(a))
	}
	b.WriteString("\n  ],\n  \"matrix\": ")
	nested(&b, s.dims, best, "  ")
	b.WriteString("\n}\n")
	return b.Bytes()
}

func nested(b *bytes.Buffer, dims []dim, best []int, indent string) {
	if len(dims) == 1 {
		b.WriteString("[")
		for i, a := range best {
			fmt.Fprintf(b, "%s%d", strings.TrimSuffix(comma(i)+" ", " "), a+1)
		}
		b.WriteString("]")
		return
	}
	size := cells(dims[1:])
	b.WriteString("[")
	for i := range dims[0].values {
		fmt.Fprintf(b, "%s\n%s  ", comma(i), indent)
		nested(b, dims[1:], best[i*size:(i+1)*size], indent+"  ")
	}
	fmt.Fprintf(b, "\n%s]", indent)
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "<missing>" stays readable
	if err := enc.Encode(s); err != nil {
		return `""` // not reached: every string has a JSON form
	}
	return strings.TrimSpace(b.String())
}

func list(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
