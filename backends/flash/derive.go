package flash

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// Deriver makes a matrix out of another backend's decisions: a rules file or a strategy
// that is to run as a table. A cell gets the action that the source takes most often, by
// weight, for the requests that fall into it; a cell without a request gets what the
// source answers for a made-up request in the middle of the cell.
//
// Steps: [NewDeriver], [Deriver.Add] for each recorded request, [Deriver.Finish].
type Deriver struct {
	source decision.Backend
	dims   dimsFile
	axes   []axis
	bind   *decision.Binder
	cells  []derivedCell
	missed map[answerKey]*votes
	rows   int
	weight float64
	out    decision.Response
}

// derivedCell is what the source decided for the requests of one cell.
type derivedCell map[answerKey]*votes

// answerKey is a decision as a table can repeat it.
type answerKey struct {
	status         decision.Status
	action, params string
}

type votes struct {
	weight  float64
	rows    int
	rules   map[string]int
	example decision.ID
}

// NewDeriver reads the dimensions file: a matrix file without actions and matrix. The
// error is a [document.Problems].
func NewDeriver(name string, data []byte, source decision.Backend) (*Deriver, error) {
	f, root, err := document.Parse(name, data)
	if err != nil {
		return nil, f.Problems
	}
	r := &reader{f: f, c: &content{fallback: noDigit}, ids: map[int64]uint16{}}
	m := root.Map("version", "scenarios", "dimensions")
	d := &Deriver{source: source, missed: map[answerKey]*votes{}}
	if v := m.Get("version"); v != nil {
		d.dims.version = r.text(v)
	}
	if v := m.Get("scenarios"); v != nil {
		d.dims.scenarios = r.distinct(v, "scenario")
	}
	if v := m.Need("dimensions"); v != nil {
		r.dimensions(v)
		d.dims.dimensions = v.JSON()
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	n, err := r.c.size()
	if err != nil {
		return nil, err
	}
	d.cells = make([]derivedCell, n)
	attrs := make([]string, len(r.c.dims))
	for i := range r.c.dims {
		n /= len(r.c.dims[i].values)
		d.axes = append(d.axes, newAxis(&r.c.dims[i], n))
		attrs[i] = r.c.dims[i].from
	}
	d.bind = decision.NewBinder(attrs...)
	return d, nil
}

// Add asks the source about a request and counts its answer in the request's cell.
func (d *Deriver) Add(ctx context.Context, req *decision.Request, weight float64) error {
	if len(req.Questions) == 0 {
		return nil
	}
	if err := d.source.Decide(ctx, req, &d.out); err != nil {
		return fmt.Errorf("request %s: %w", req.ID, err)
	}
	a := d.out.Decisions[0]
	d.rows++
	d.weight += weight
	v := d.voteFor(d.cellOf(req.Attrs), answerKey{a.Status, a.Action, a.Params})
	if v.rows == 0 {
		v.example = req.ID
	}
	v.rows++
	v.weight += weight
	v.rules[cmp.Or(a.Reason.Rule, a.Reason.Kind.String())]++
	return nil
}

func (d *Deriver) cellOf(attrs decision.Attrs) int {
	cell := 0
	for i, at := range d.bind.Bind(attrs.Schema) {
		digit := d.axes[i].digit(attrs.At(at))
		if digit == noDigit {
			return -1
		}
		cell += int(digit) * d.axes[i].stride
	}
	return cell
}

// voteFor finds the count of an answer in a cell; -1 is the requests that have none.
func (d *Deriver) voteFor(cell int, a answerKey) *votes {
	m := d.missed
	if cell >= 0 {
		if d.cells[cell] == nil {
			d.cells[cell] = derivedCell{}
		}
		m = d.cells[cell]
	}
	if m[a] == nil {
		m[a] = &votes{rules: map[string]int{}}
	}
	return m[a]
}

// probe asks the source about a request in the middle of a cell. Two dimensions may read
// one attribute; a cell that no value of it reaches has no request, and no answer.
func (d *Deriver) probe(ctx context.Context, cell int) (a answerKey, reached bool, err error) {
	values := map[string]decision.Value{}
	for i := range d.axes {
		x := &d.axes[i]
		digit := uint16(cell / x.stride % len(x.values))
		if v, ok := values[x.from]; ok {
			if x.digit(v) != digit {
				return a, false, nil
			}
			continue
		}
		v, ok := x.sample(digit)
		if !ok {
			return a, false, nil
		}
		values[x.from] = v
	}
	req, err := requestOf(values, d.dims.scenarios)
	if err != nil {
		return a, false, err
	}
	if err := d.source.Decide(ctx, req, &d.out); err != nil {
		return a, false, err
	}
	got := d.out.Decisions[0]
	return answerKey{got.Status, got.Action, got.Params}, true, nil
}

func requestOf(values map[string]decision.Value, scenarios []string) (*decision.Request, error) {
	req := &decision.Request{Questions: make([]decision.Question, 1)}
	if len(scenarios) > 0 {
		req.Scenario = scenarios[0]
	}
	var fields []decision.Field
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if v := values[name]; !v.IsNull() {
			fields = append(fields, decision.Field{Name: name, Type: v.Type()})
			req.Attrs.Values = append(req.Attrs.Values, v)
		}
	}
	var err error
	req.Attrs.Schema, err = decision.NewSchema(fields...)
	return req, err
}

// sample is a value that falls on a digit of the axis; false when none does.
func (a *axis) sample(digit uint16) (decision.Value, bool) {
	var candidates []decision.Value
	for _, s := range a.spans {
		if s.digit == digit {
			candidates = append(candidates, decision.DoubleValue(s.middle()))
		}
	}
	for _, t := range a.dimension.texts {
		if t.digit == digit {
			candidates = append(candidates, decision.StringValue(t.text))
		}
	}
	if a.kind == kindDevice {
		candidates = nil
		for _, ua := range []string{"Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Mobile/15E148", "Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X)"} {
			candidates = append(candidates, decision.StringValue(ua))
		}
	}
	candidates = append(candidates, decision.Value{}, decision.StringValue("\ufffd other"), decision.DoubleValue(math.MaxFloat64))
	for _, v := range candidates {
		if a.digit(v) == digit {
			return v, true
		}
	}
	return decision.Value{}, false
}

// middle is a number well inside a range.
func (s span) middle() float64 {
	switch lo, hi := math.IsInf(s.lo, -1), math.IsInf(s.hi, 1); {
	case lo && hi:
		return 0
	case lo:
		return s.hi - math.Max(1, math.Abs(s.hi))/2
	case hi:
		return s.lo + math.Max(1, math.Abs(s.lo))/2
	}
	return s.lo + (s.hi-s.lo)/2
}

// dimsFile is what a dimensions file holds.
type dimsFile struct {
	version    string
	scenarios  []string
	dimensions any
}

// name is a cell as reports have it: its values joined by slashes.
func (d *Deriver) name(cell int) string {
	if cell < 0 {
		return "no cell"
	}
	s := ""
	for i := range d.axes {
		if i > 0 {
			s += "/"
		}
		s += d.axes[i].values[cell/d.axes[i].stride%len(d.axes[i].values)]
	}
	return s
}

func (k answerKey) String() string {
	if k.action == "" {
		return "(" + k.status.String() + ")"
	}
	if k.params == "" {
		return k.action
	}
	return k.action + " " + k.params
}
