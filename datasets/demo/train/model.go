package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
)

// feature is one feature of the model file; exactly one of the fields after attr says
// which sort it is. Absent values count as 0 (not contained, not equal), and as the
// lowest bin: features of the sort present tell them apart where they occur.
type feature struct {
	attr       string
	contains   string
	equals     string
	equalsTrue bool
	bins       []float64
	present    bool
	log        bool
	// mean and scale standardise a log feature; the trainer sets them.
	mean, scale float64
}

func (f *feature) width() int {
	if f.bins != nil {
		return len(f.bins) + 1
	}
	return 1
}

// columns writes the feature's columns.
func (f *feature) columns(v decision.Value, out []float64) {
	on := false
	switch {
	case f.contains != "":
		on = strings.Contains(strings.ToLower(v.Str()), f.contains)
	case f.equals != "":
		on = v.Str() == f.equals
	case f.equalsTrue:
		on = v.Bool()
	case f.present:
		on = !v.IsNull()
	case f.log:
		x, _ := v.Number()
		out[0] = (math.Log1p(x) - f.mean) / f.scale
		return
	default:
		x, ok := v.Number()
		if !ok {
			x = f.bins[0] - 1
		}
		i, _ := slices.BinarySearchFunc(f.bins, x, func(edge, x float64) int {
			if edge <= x {
				return -1
			}
			return 1
		})
		out[i] = 1
		return
	}
	if on {
		out[0] = 1
	}
}

// standardise sets mean and scale of the log features from the training rows.
func (s *scenario) standardise(rows []*datasets.Example) {
	for i := range s.features {
		f := &s.features[i]
		if !f.log {
			continue
		}
		var sum, sum2 float64
		for _, ex := range rows {
			x, _ := ex.Attrs.Get(f.attr).Number()
			l := math.Log1p(x)
			sum += l
			sum2 += float64(l * l)
		}
		n := float64(len(rows))
		f.mean = round(sum / n)
		f.scale = round(math.Sqrt(sum2/n - float64(sum/n*(sum/n))))
	}
}

// design returns a row's columns, the constant first.
func (s *scenario) design(ex *datasets.Example) []float64 {
	row := []float64{1}
	for i := range s.features {
		f := &s.features[i]
		at := len(row)
		row = append(row, make([]float64, f.width())...)
		f.columns(ex.Attrs.Get(f.attr), row[at:])
	}
	return row
}

// classes are the actions that are ever right.
func (s *scenario) classes() []string {
	var out []string
	for _, c := range s.task.Candidates {
		if s.task.Utility[c] != nil {
			out = append(out, c)
		}
	}
	return out
}

// trainModel fits the model to the training rows.
func trainModel(s *scenario, rows []*datasets.Example) ([]byte, error) {
	s.standardise(rows)
	classes := s.classes()
	x, y := make([][]float64, len(rows)), make([]int, len(rows))
	for i, ex := range rows {
		x[i] = s.design(ex)
		y[i] = slices.Index(classes, ex.Label.Action)
		if y[i] < 0 {
			return nil, fmt.Errorf("%s: no class is called %q", ex.SourceID, ex.Label.Action)
		}
	}
	w, err := fit(x, y, len(classes), s.l2)
	if err != nil {
		return nil, err
	}
	return s.modelFile(classes, w), nil
}

// round keeps six digits after the point: the committed files do not change with the
// last bits, which differ between processors.
func round(x float64) float64 { return math.Round(x*1e6)/1e6 + 0 }

func number(x float64) string { return strconv.FormatFloat(round(x), 'f', -1, 64) }

// modelFile writes the model, a feature on a line.
func (s *scenario) modelFile(classes []string, w [][]float64) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"model\": \"logistic\",\n  \"name\": %s,\n  \"version\": %s,\n  \"scenarios\": [%s],\n  \"features\": [",
		quote(s.name+"-logistic"), quote(s.version), quote(s.name))
	for i := range s.features {
		fmt.Fprintf(&b, "%s\n    %s", comma(i), s.features[i].json())
	}
	b.WriteString("\n  ],\n  \"classes\": [")
	for c, action := range classes {
		weights := make([]string, len(w[c])-1)
		for i, x := range w[c][1:] {
			weights[i] = number(x)
		}
		fmt.Fprintf(&b, "%s\n    {\"action\": %s, \"bias\": %s, \"weights\": [%s]}", comma(c), quote(action), number(w[c][0]), strings.Join(weights, ", "))
	}
	b.WriteString("\n  ],\n  \"utility\": {")
	for i, truth := range classes {
		fmt.Fprintf(&b, "%s\n    %s: {", comma(i), quote(truth))
		for k, action := range s.task.Candidates {
			fmt.Fprintf(&b, "%s%s: %s", strings.TrimSuffix(comma(k)+" ", " "), quote(action), number(s.task.Utility[truth][action]))
		}
		b.WriteString("}")
	}
	b.WriteString("\n  }\n}\n")
	return b.Bytes()
}

func (f *feature) json() string {
	name := "{\"name\": " + quote(f.attr)
	switch {
	case f.contains != "":
		return name + ", \"contains\": " + quote(f.contains) + ", \"ignore_case\": true, \"missing\": 0}"
	case f.equals != "":
		return name + ", \"equals\": " + quote(f.equals) + ", \"missing\": 0}"
	case f.equalsTrue:
		return name + ", \"equals\": true, \"missing\": 0}"
	case f.present:
		return name + ", \"present\": true}"
	case f.log:
		return name + ", \"transform\": \"log1p\", \"mean\": " + number(f.mean) + ", \"scale\": " + number(f.scale) + "}"
	}
	edges := make([]string, len(f.bins))
	for i, e := range f.bins {
		edges[i] = number(e)
	}
	return name + ", \"bins\": [" + strings.Join(edges, ", ") + "], \"missing\": " + number(f.bins[0]-1) + "}"
}
