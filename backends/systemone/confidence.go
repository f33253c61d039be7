package systemone

import (
	"math"
	"slices"
)

// Definition names a formula for a confidence. One wire carries several of them, and a
// threshold means nothing without the name.
type Definition string

// The definitions. DefinitionGiven is the provider's own number, whatever its formula.
const (
	DefinitionGiven      Definition = "provider"
	DefinitionPeak       Definition = "peak"
	DefinitionNormalized Definition = "normalized-peak"
	DefinitionEntropy    Definition = "one-minus-entropy"
	DefinitionScore      Definition = "score-deviation"
)

// Confidence computes a confidence from probabilities, in [0,1], for the named
// definition; NaN for DefinitionGiven, an unknown one, or no probabilities.
//
// With n options and the largest probability max p: peak is max p, normalized-peak is
// (max p - 1/n)/(1 - 1/n), one-minus-entropy is 1 - H/ln n. score-deviation is
// max(0, 1 - sum p_i |i - mode| / mean_i |i - (n-1)/2|), where probs are in the order of
// the levels. The formulas of the official adapter for TypeSafe, and of Ollama. A single
// option gives 1.
func Confidence(def Definition, probs []float64) float64 {
	n := float64(len(probs))
	if len(probs) == 0 {
		return math.NaN()
	}
	peak := slices.Max(probs)
	switch def {
	case DefinitionPeak:
		return peak
	case DefinitionNormalized, DefinitionEntropy, DefinitionScore:
		if len(probs) == 1 {
			return 1
		}
	default:
		return math.NaN()
	}
	switch def {
	case DefinitionNormalized:
		return (peak - 1/n) / (1 - 1/n)
	case DefinitionEntropy:
		h := 0.0
		for _, p := range probs {
			if p > 0 {
				h -= p * math.Log(p)
			}
		}
		return 1 - h/math.Log(n)
	}
	mode, spread, uniform := slices.Index(probs, peak), 0.0, 0.0
	for i, p := range probs {
		spread += p * math.Abs(float64(i-mode))
		uniform += math.Abs(float64(i)-(n-1)/2) / n
	}
	return max(0, 1-spread/uniform)
}

// Decimals returns to how many decimals the numbers were rounded, at most 9. The dust of
// binary arithmetic (0.9299999999999999) does not count.
func Decimals(xs []float64) int {
	for d, scale := 0, 1.0; d < 9; d, scale = d+1, scale*10 {
		if !slices.ContainsFunc(xs, func(x float64) bool {
			return math.Abs(x*scale-math.Round(x*scale)) > 1e-9*scale
		}) {
			return d
		}
	}
	return 9
}

// SumTolerance returns by how much the sum of n probabilities of so many decimals may
// differ from 1: n times half of the last digit. A stricter rule was seen to refuse 35 of
// 974 good answers. Clef's four decimals were seen to need 0.02.
func SumTolerance(n, decimals int) float64 {
	const dust, clef = 1e-9, 0.02
	if decimals <= 2 {
		return 0.005*float64(n) + dust
	}
	return max(clef, 0.5*math.Pow10(-decimals)*float64(n)) + dust
}
