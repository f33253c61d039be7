package model

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

type featureKind uint8

const (
	numeric featureKind = iota
	contains
	equals
	bins
	present
)

// feature turns one attribute into one column, or into one of several (bins).
type feature struct {
	name string
	kind featureKind
	// log, mean and scale are those of a numeric feature.
	log         bool
	mean, scale float64
	// text is looked for by contains, without regard to ASCII case under fold.
	text  string
	fold  bool
	equal decision.Value
	edges []float64
	// missing is what an absent or NaN attribute counts as: the raw number of a numeric
	// feature and of bins, 0 or 1 for the others.
	missing decision.Opt[float64]
	// first is the feature's first column.
	first int
}

// width is the number of columns: k edges make k+1 bins.
func (f *feature) width() int {
	if f.kind == bins {
		return len(f.edges) + 1
	}
	return 1
}

// eval returns the column that the value sets, and to what. It is false when the value
// is missing (or not of a type that the feature can read, or outside the domain of its
// transform) and the file says nothing about that.
func (f *feature) eval(v decision.Value) (column int, x float64, ok bool) {
	switch f.kind {
	case present:
		return f.first, unit(!isMissing(v)), true
	case contains:
		if v.Type() == decision.String {
			return f.first, unit(f.has(v.Str())), true
		}
	case equals:
		if !isMissing(v) {
			return f.first, unit(f.same(v)), true
		}
	default:
		return f.number(v)
	}
	return f.first, f.missing.V, f.missing.Set
}

func (f *feature) number(v decision.Value) (column int, x float64, ok bool) {
	if raw, isNumber := asNumber(v); isNumber {
		if column, x, ok = f.scaled(raw); ok {
			return column, x, true
		}
	}
	if !f.missing.Set {
		return f.first, 0, false
	}
	return f.scaled(f.missing.V)
}

// scaled applies bins or transform, mean and scale to a raw number.
func (f *feature) scaled(raw float64) (column int, x float64, ok bool) {
	if f.kind == bins {
		if math.IsNaN(raw) {
			return f.first, 0, false
		}
		// The first edge above raw: bin i is [edge i-1, edge i).
		return f.first + sort.Search(len(f.edges), func(i int) bool { return f.edges[i] > raw }), 1, true
	}
	if f.log {
		raw = math.Log1p(raw)
	}
	x = (raw - f.mean) / f.scale
	return f.first, x, !math.IsNaN(x) && !math.IsInf(x, 0)
}

// same compares numbers by value, other types as they are.
func (f *feature) same(v decision.Value) bool {
	a, ok := v.Number()
	b, ok2 := f.equal.Number()
	if ok && ok2 && v.Type() != f.equal.Type() {
		return a == b
	}
	return v == f.equal
}

func (f *feature) has(s string) bool {
	if !f.fold {
		return strings.Contains(s, f.text)
	}
	for i := 0; i+len(f.text) <= len(s); i++ {
		if equalFold(s[i:i+len(f.text)], f.text) {
			return true
		}
	}
	return false
}

// equalFold compares with a lower-case text. Letters outside ASCII must be equal: their
// case depends on the language, and folding them can change the length.
func equalFold(s, lower string) bool {
	for i := range len(s) {
		if toLower(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

func toLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// label names the feature for people.
func (f *feature) label() string {
	switch f.kind {
	case contains:
		return fmt.Sprintf("%s contains %q", f.name, f.text)
	case equals:
		return fmt.Sprintf("%s = %v", f.name, f.equal)
	case bins:
		return f.name + " (binned)"
	case present:
		return f.name + " present"
	}
	return f.name
}

func unit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// isMissing holds for null and NaN.
func isMissing(v decision.Value) bool { return v.IsNull() || math.IsNaN(v.Double()) }

// asNumber also reads a bool, as 0 or 1; NaN is no number here.
func asNumber(v decision.Value) (float64, bool) {
	if v.Type() == decision.Bool {
		return unit(v.Bool()), true
	}
	x, ok := v.Number()
	return x, ok && !math.IsNaN(x)
}
