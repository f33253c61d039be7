package fit

import (
	"fmt"
	"math"
)

// calibrate fits each fold's rows by the others and corrects the scores that they get
// there, since those of the rows that a model was fitted to are too sure. The hold-out has
// no part in it.
func calibrate(all *samples, train []Row, o *Options) (factor, offset float64, err error) {
	if o.Calibrate == CalibratePlatt && all.classes != 2 {
		return 0, 0, fmt.Errorf("%w: platt calibrates two classes, there are %d: use temperature", ErrRefused, all.classes)
	}
	logits := make([]float64, len(train)*all.classes)
	for fold := range o.Folds {
		var inner, outer []int
		for i := range train {
			if int(share(o.Seed, train[i].Cluster)*float64(o.Folds)) == fold {
				outer = append(outer, i)
			} else {
				inner = append(inner, i)
			}
		}
		part := all.subset(inner)
		for k := range all.classes {
			if count(part.y, k) == 0 {
				return 0, 0, fmt.Errorf("%w: fold %d leaves no row of a class: use fewer folds, or no calibration", ErrRefused, fold)
			}
		}
		w, err := maximise(part, o.L2)
		if err != nil {
			return 0, 0, err
		}
		for _, i := range outer {
			w.logits(all.row(i), logits[i*all.classes:(i+1)*all.classes])
		}
	}
	if o.Calibrate == CalibratePlatt {
		factor, offset, err = platt(all, logits)
	} else {
		factor = temperature(all, logits)
	}
	if err == nil && !(factor > 0) {
		err = fmt.Errorf("%w: out of the folds that they were fitted to, scores point away from the truth", ErrRefused)
	}
	return factor, offset, err
}

func (s *samples) subset(rows []int) *samples {
	out := &samples{d: s.d, classes: s.classes}
	for _, i := range rows {
		out.x = append(out.x, s.row(i)...)
		out.y, out.w = append(out.y, s.y[i]), append(out.w, s.w[i])
	}
	return out
}

func count(y []int, class int) int {
	n := 0
	for _, v := range y {
		if v == class {
			n++
		}
	}
	return n
}

// platt is a logistic regression on the score alone.
func platt(all *samples, logits []float64) (factor, offset float64, err error) {
	s := &samples{d: 2, classes: 2, y: all.y, w: all.w}
	for i := range all.y {
		s.x = append(s.x, 1, logits[2*i+1])
	}
	w, err := maximise(s, 0)
	if err != nil {
		return 0, 0, err
	}
	return w.beta[1], w.beta[0], nil
}

// temperature maximises the likelihood of logits times a factor, by Newton's method in one
// dimension: it is concave in the factor.
func temperature(all *samples, logits []float64) float64 {
	factor, p := 1.0, make([]float64, all.classes)
	for range maxSteps {
		var slope, curve float64
		for i, y := range all.y {
			z := logits[i*all.classes : (i+1)*all.classes]
			for k := range p {
				p[k] = factor * z[k]
			}
			softmax(p)
			mean, square := 0.0, 0.0
			for k, v := range z {
				mean, square = mean+p[k]*v, square+p[k]*v*v
			}
			slope += all.w[i] * (z[y] - mean)
			curve += all.w[i] * (square - mean*mean)
		}
		step := slope / curve
		if math.IsNaN(step) || math.Abs(step) < 1e-12 {
			break
		}
		factor += max(-factor/2, min(factor, step)) // at most halved or doubled
	}
	return factor
}
