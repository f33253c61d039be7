package reports

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

// maxActions is how many actions a confusion matrix shows on each side; the rarest of
// more are added up in one row or column. The data in the page has them all.
const maxActions = 16

// heatSteps is the number of shades in the style sheet.
const heatSteps = 9

// matrix is a confusion matrix: a row a right action, a column a chosen one.
type matrix struct {
	Title   string
	Columns []string
	Rows    []matrixRow
}

type matrixRow struct {
	Truth string
	Cells []matrixCell
	Total string
}

type matrixCell struct {
	Count, Share string
	// Heat is the shade, 0 to heatSteps, by the share of the row.
	Heat int
	// Right marks the diagonal.
	Right bool
}

// newMatrix lays out a confusion matrix; false when there is none.
func newMatrix(title string, list []scoring.Confusion) (matrix, bool) {
	if len(list) == 0 {
		return matrix{}, false
	}
	truths := newAxis(list, func(c scoring.Confusion) string { return c.Truth })
	chosen := newAxis(list, func(c scoring.Confusion) string { return c.Chosen })
	chosen.order(truths.names)
	sums := make([][]float64, len(truths.names))
	for i := range sums {
		sums[i] = make([]float64, len(chosen.names))
	}
	for _, c := range list {
		sums[truths.of(c.Truth)][chosen.of(c.Chosen)] += positive(c.Weight)
	}
	m := matrix{Title: title, Columns: chosen.print()}
	for i, name := range truths.print() {
		right := chosen.index[truths.names[i]]
		if truths.names[i] == restName {
			right = 0
		}
		m.Rows = append(m.Rows, newMatrixRow(name, sums[i], right))
	}
	return m, true
}

// newMatrixRow is one row; right is 1 + the column of the right action, or 0.
func newMatrixRow(name string, sums []float64, right int) matrixRow {
	var total float64
	for _, v := range sums {
		total += v
	}
	row := matrixRow{Truth: name, Total: weight(total)}
	for j, v := range sums {
		cell := matrixCell{Count: weight(v), Right: j == right-1}
		if total > 0 {
			cell.Share = decimal(100*v/total, 0) + "%"
			cell.Heat = int(math.Ceil(v / total * heatSteps))
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

// weight formats a weighted count: whole, unless rows were sampled.
func weight(v float64) string {
	if v == math.Trunc(v) && v < 1e15 {
		return count(int64(v))
	}
	return group(decimal(v, 1))
}

// axis is the actions of one side, the heaviest first.
type axis struct {
	names []string
	// index is 1 + the place of a name; the names that are added up have the last place.
	index map[string]int
	rest  int
}

// restName stands for the actions that are added up; no action has an empty name.
const restName = ""

func newAxis(list []scoring.Confusion, name func(scoring.Confusion) string) *axis {
	sums := map[string]float64{}
	for _, c := range list {
		sums[name(c)] += positive(c.Weight)
	}
	a := &axis{}
	for n := range sums {
		a.names = append(a.names, n)
	}
	sort.Slice(a.names, func(i, j int) bool {
		if si, sj := sums[a.names[i]], sums[a.names[j]]; si != sj {
			return si > sj
		}
		return a.names[i] < a.names[j]
	})
	if len(a.names) > maxActions {
		a.rest = len(a.names) - maxActions + 1
		a.names = append(a.names[:maxActions-1], restName)
	}
	a.number()
	return a
}

// number gives every name its place.
func (a *axis) number() {
	a.index = map[string]int{}
	for i, n := range a.names {
		a.index[n] = i + 1
	}
}

// of is the place of a name.
func (a *axis) of(name string) int {
	if i := a.index[name]; i > 0 {
		return i - 1
	}
	return len(a.names) - 1
}

// order puts the names of the other axis first and in its order, so that right choices
// stand on the diagonal; then other actions, then what was no answer.
func (a *axis) order(other []string) {
	rank := func(n string) int {
		if i := slices.Index(other, n); i >= 0 && n != restName {
			return i
		}
		switch {
		case n == restName:
			return len(other) + 2
		case strings.HasPrefix(n, "("):
			return len(other) + 1
		}
		return len(other)
	}
	slices.SortStableFunc(a.names, func(x, y string) int { return rank(x) - rank(y) })
	a.number()
}

func (a *axis) print() []string {
	out := make([]string, len(a.names))
	for i, n := range a.names {
		if out[i] = clean(n); n == restName && a.rest > 0 {
			out[i] = plural(a.rest, "other")
		}
	}
	return out
}
