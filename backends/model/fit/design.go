package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
)

// Limits. Newton's method solves a dense system of all parameters, and the columns of all
// rows are in memory.
const (
	maxClasses    = 64
	maxParameters = 2000
	maxCells      = 1 << 26
)

// feature is one feature of the file; it has one column.
type feature struct {
	attr string
	kind featureKind
	// mean and scale are of a number; value is what a text or bool is compared with.
	mean, scale float64
	value       decision.Value
}

type featureKind uint8

const (
	numeric featureKind = iota
	equals
	present
)

// column is what the feature is for a value. Absent numbers are the mean, and absent texts
// equal nothing; the file says so.
func (f *feature) column(v decision.Value) float64 {
	x, isNumber := v.Number()
	known := !v.IsNull() && !(isNumber && math.IsNaN(x))
	switch {
	case f.kind == present && known, f.kind == equals && v == f.value:
		return 1
	case f.kind == numeric && isNumber && known:
		if z := (x - f.mean) / f.scale; !math.IsInf(z, 0) {
			return z
		}
	}
	return 0
}

// design is which columns the training rows give.
type design struct {
	features []feature
	// columns counts the constant, too.
	columns int
	classes []Class
	dropped []string
}

func newDesign(train []Row, classes []Class, o *Options) (*design, error) {
	d := &design{classes: classes}
	fields, err := fieldsOf(train, o)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		d.attribute(train, f, o)
	}
	d.columns = len(d.features) + 1
	groups := len(classes)
	if groups == 2 {
		groups = 1
	}
	switch {
	case len(d.features) == 0:
		return nil, fmt.Errorf("%w: no attribute differs between the training rows", ErrRefused)
	case d.columns*groups > maxParameters:
		return nil, fmt.Errorf("%w: %d columns for %d classes are more than %d parameters: use fewer attributes, or fewer values of texts", ErrRefused, d.columns, len(classes), maxParameters)
	case d.columns*len(train) > maxCells:
		return nil, fmt.Errorf("%w: %d rows of %d columns are more than fit into memory: use fewer attributes, or fewer values of texts", ErrRefused, len(train), d.columns)
	}
	return d, nil
}

// fieldsOf lists the attributes of the rows by name, after the options.
func fieldsOf(train []Row, o *Options) ([]decision.Field, error) {
	found := map[string]decision.Field{}
	var last *decision.Schema
	for i := range train {
		if s := train[i].Attrs.Schema; s != last {
			last = s
			for _, f := range s.Fields() {
				found[f.Name] = f
			}
		}
	}
	for _, name := range slices.Concat(o.Attributes, o.Exclude) {
		if _, ok := found[name]; !ok {
			return nil, fmt.Errorf("%w: no row has an attribute %q", ErrRefused, name)
		}
	}
	var out []decision.Field
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !slices.ContainsFunc(train, func(r Row) bool { return !r.Attrs.Get(name).IsNull() }) {
			continue // of another scenario
		}
		if (len(o.Attributes) == 0 || slices.Contains(o.Attributes, name)) && !slices.Contains(o.Exclude, name) {
			out = append(out, found[name])
		}
	}
	return out, nil
}

// attribute appends the columns of one attribute.
func (d *design) attribute(train []Row, f decision.Field, o *Options) {
	var values []feature
	switch f.Type {
	case decision.String:
		values = frequent(train, f.Name, o)
	case decision.Bool:
		values = []feature{{attr: f.Name, kind: equals, value: decision.BoolValue(true), scale: 1}}
	default:
		if n, ok := standardise(train, f.Name); ok {
			values = []feature{n}
		}
	}
	if o.Missing == MissingIndicator {
		values = append(values, feature{attr: f.Name, kind: present, scale: 1})
	}
	before := len(d.features)
	for _, v := range values {
		if varies(train, &v) {
			d.features = append(d.features, v)
		}
	}
	if len(d.features) == before {
		reason := "the same in all training rows"
		if f.Type == decision.String {
			reason = fmt.Sprintf("one text in all training rows, or no text in %d of them", o.MinRows)
		}
		d.dropped = append(d.dropped, f.Name+" ("+reason+")")
	}
}

func varies(train []Row, f *feature) bool {
	first := f.column(train[0].Attrs.Get(f.attr))
	return slices.ContainsFunc(train, func(r Row) bool { return f.column(r.Attrs.Get(f.attr)) != first })
}

// maxText bounds the texts that get a column, in bytes: the file is for people, too.
const maxText = 200

// frequent gives a column to each of the most frequent texts. All other texts have none:
// the biases are theirs. Where there are no others the most frequent text takes their
// place, or the columns would always sum to 1 (or to the indicator of missing values).
func frequent(train []Row, name string, o *Options) []feature {
	counts := map[string]int{}
	for i := range train {
		if v := train[i].Attrs.Get(name); v.Type() == decision.String && len(v.Str()) <= maxText && utf8.ValidString(v.Str()) {
			counts[v.Str()]++
		}
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var out []feature
	others := len(train)
	if o.Missing == MissingIndicator {
		others = 0
		for _, n := range counts {
			others += n
		}
	}
	for _, s := range texts[:min(len(texts), o.Values)] {
		// A text that all rows but a few have is told by the few; one that a few have tells
		// nothing that would hold elsewhere.
		if counts[s] >= o.MinRows {
			out = append(out, feature{attr: name, kind: equals, value: decision.StringValue(s), scale: 1})
			others -= counts[s]
		}
	}
	if others == 0 && len(out) > 0 {
		return out[1:]
	}
	return out
}

// standardise takes mean and standard deviation over the rows that have the number,
// weighted. The numbers are first scaled by their largest, so that squares cannot overflow.
func standardise(train []Row, name string) (feature, bool) {
	var sum, weight, top float64
	each := func(visit func(x, w float64)) {
		for i := range train {
			if x, ok := train[i].Attrs.Get(name).Number(); ok && !math.IsNaN(x) && !math.IsInf(x, 0) {
				visit(x, train[i].Weight)
			}
		}
	}
	each(func(x, _ float64) { top = max(top, math.Abs(x)) })
	if top == 0 {
		return feature{}, false
	}
	each(func(x, w float64) { sum, weight = sum+w*(x/top), weight+w })
	mean, square := sum/weight, 0.0
	each(func(x, w float64) { square += w * (x/top - mean) * (x/top - mean) })
	f := feature{attr: name, mean: round(mean * top), scale: round(math.Sqrt(square/weight) * top)}
	return f, f.scale > 0 && !math.IsInf(f.scale, 0) && !math.IsInf(f.mean, 0)
}

// round keeps nine significant digits: what the file holds is what is fitted, and the
// last bits, which differ between processors, are in neither.
func round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	var out float64
	if _, err := fmt.Sscanf(fmt.Sprintf("%.8e", x), "%g", &out); err != nil {
		return x
	}
	return out
}

// samples makes the matrix of the rows. Their weights have the mean 1.
func (d *design) samples(rows []Row) *samples {
	s := &samples{d: d.columns, classes: len(d.classes), x: make([]float64, 0, len(rows)*d.columns)}
	total := 0.0
	for i := range rows {
		total += rows[i].Weight
	}
	for i := range rows {
		s.x = append(s.x, 1)
		for k := range d.features {
			f := &d.features[k]
			s.x = append(s.x, f.column(rows[i].Attrs.Get(f.attr)))
		}
		s.y = append(s.y, slices.IndexFunc(d.classes, func(c Class) bool { return c.Action == rows[i].Class }))
		s.w = append(s.w, rows[i].Weight/total*float64(len(rows)))
	}
	return s
}
