package model

import (
	"math"

	"github.com/clefbench/clefbench/decision"
)

// contributions attributes the difference between the logits of two classes to features,
// by Saabas' path attribution: at each split that a request passes, the feature that is
// split on gets the change of the mean of the leaves below (weighted by the training rows,
// or the sum of their Hessians, that came there). What is left is the base value. The sum
// is exact, the parts depend on the order of the splits: these are not Shapley values.
func (f *forest) contributions(attrs decision.Attrs, at []int, first, second int) []contribution {
	v := make([]uint64, max(1, len(f.slots)))
	f.fill(attrs, at, v)
	owner := make([]int, len(f.slots))
	cs := make([]contribution, 1+len(f.inputs))
	cs[0].label = "base value"
	for i, in := range f.inputs {
		cs[1+i].label = in.name
		for k := in.from; k < in.to; k++ {
			owner[k] = 1 + i
		}
	}
	for k, b := range f.base {
		cs[0].by += b * f.sign(k, first, second)
	}
	for _, r := range f.roots {
		sign := f.sign(int(r.group), first, second)
		if f.rounds > 0 {
			sign /= f.rounds
		}
		if sign != 0 {
			f.walk(r.at, v, func(slot uint16, from, to float64) { cs[owner[slot]].by += sign * (to - from) })
			cs[0].by += sign * f.mean[r.at]
		}
	}
	return cs
}

// sign is what a group's sum counts in the difference of the logits of two classes.
func (f *forest) sign(group, first, second int) float64 {
	switch {
	case len(f.base) == 1 && first == 1:
		return f.scale
	case len(f.base) == 1:
		return -f.scale
	case group == first:
		return 1
	case group == second:
		return -1
	}
	return 0
}

// walk visits the splits on the way to a leaf, with the means before and after each.
func (f *forest) walk(at uint32, v []uint64, visit func(slot uint16, from, to float64)) {
	for next := f.child(at, v); next != at; next = f.child(at, v) {
		visit(f.nodes[at].slot, f.mean[at], f.mean[next])
		at = next
	}
}

// absent lists the features that have no value.
func (f *forest) absent(attrs decision.Attrs) []decision.SkippedRule {
	var out []decision.SkippedRule
	for i := range f.inputs {
		in := &f.inputs[i]
		v := attrs.Get(in.name)
		if !math.IsNaN(in.value(v)) {
			continue
		}
		cause := "missing"
		switch {
		case math.IsNaN(v.Double()):
			cause = "NaN"
		case in.codes != nil && v.Type() == decision.String, in.numbers != nil && !v.IsNull() && v.Type() != decision.String:
			cause = "the value is none of the categories"
		case !v.IsNull():
			cause = "the value is no number"
		}
		out = append(out, decision.SkippedRule{Rule: in.feature, Missing: []string{in.name}, Cause: cause + ": the splits on it go as they did for missing values in training"})
	}
	return out
}
