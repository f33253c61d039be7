package prefilter

import "github.com/clefbench/clefbench/decision"

// Columns is an index bound to the columns of one batch: what each distinct text lets
// through has been looked up.
type Columns struct {
	filters []columnFilter
	rest    []int32
}

type columnFilter struct {
	all   []int32
	col   *decision.Column // nil: the attribute is absent in every row
	rules [][]int32        // by code
}

// Columns binds the index to a batch; name gives the attribute of a slot. A column that
// holds no texts is taken as absent: tests of it are unknown.
func (ix *Index) Columns(in *decision.Batch, name func(slot int) string) *Columns {
	c := &Columns{rest: ix.Rest}
	for _, f := range ix.Filters {
		x := columnFilter{all: f.All()}
		if i := in.Schema().Index(name(f.Slot)); i >= 0 && in.Column(i).Type == decision.String {
			x.col = in.Column(i)
			x.rules = make([][]int32, len(x.col.Texts))
			for code, text := range x.col.Texts {
				x.rules[code] = f.Rules(text)
			}
		}
		c.filters = append(c.filters, x)
	}
	return c
}

// Only returns the rules of a row where one filter covers every rule and the row has its
// text: they need no merging.
func (c *Columns) Only(row int) ([]int32, bool) {
	if len(c.filters) != 1 || len(c.rest) > 0 {
		return nil, false
	}
	return c.filters[0].of(row)
}

func (f *columnFilter) of(row int) ([]int32, bool) {
	if f.col == nil || f.col.Absent != nil && f.col.Absent[row] {
		return f.all, false
	}
	return f.rules[f.col.Codes[row]], true
}

// Start begins a walk through the rules that may hold for a row.
func (c *Columns) Start(w *Walk, row int) {
	for i := range c.filters {
		w.Add(c.filters[i].of(row))
	}
	w.Add(c.rest, false)
}
