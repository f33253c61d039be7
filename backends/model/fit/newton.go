package fit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// samples are rows of columns, the first of which is 1, with class and weight.
type samples struct {
	d, classes int
	x, w       []float64
	y          []int
}

func (s *samples) row(i int) []float64 { return s.x[i*s.d : (i+1)*s.d] }

// groups is the number of weight vectors: two classes share one, of the second.
func (s *samples) groups() int {
	if s.classes == 2 {
		return 1
	}
	return s.classes
}

// weights are the parameters, bias first, by group.
type weights struct {
	d, groups  int
	beta       []float64
	iterations int
}

func (w *weights) of(group int) []float64 { return w.beta[group*w.d : (group+1)*w.d] }

// scale applies a calibration to logits: factor times the logit, plus offset (which two
// classes only have).
func (w *weights) scale(factor, offset float64) {
	for i := range w.beta {
		w.beta[i] *= factor
		if i%w.d == 0 {
			w.beta[i] += offset
		}
	}
}

// logits writes the logit of each class.
func (w *weights) logits(row, out []float64) {
	first := len(out) - w.groups
	for k := range out[:first] {
		out[k] = 0
	}
	for g := range w.groups {
		z := 0.0
		for j, b := range w.of(g) {
			z += b * row[j]
		}
		out[first+g] = z
	}
}

// softmax turns logits into probabilities and returns the logarithm of their sum.
func softmax(z []float64) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range z {
		top = max(top, v)
	}
	for k, v := range z {
		z[k] = math.Exp(v - top)
		sum += z[k]
	}
	for k := range z {
		z[k] /= sum
	}
	return top + math.Log(sum)
}

// Bounds of Newton's method: steps, what the largest component of the gradient must
// come to per row, and how badly conditioned an unpenalised Hessian may be: a column that
// separates has a curvature of about the tolerance when the gradient falls below it.
const (
	maxSteps     = 100
	tolerance    = 1e-9
	maxCondition = 1e7
)

// maximise returns the weights that maximise
//
//	sum_i w_i log p(y_i | x_i) - l2/2 * sum of the squared weights, biases aside
//
// by Newton's method (iteratively reweighted least squares) with halved steps where a full
// one overshoots. With more than two classes all have weights; the penalty makes them
// unique but for a constant in all biases, which is kept at what it was, 0.
func maximise(s *samples, l2 float64) (*weights, error) {
	w := &weights{d: s.d, groups: s.groups()}
	w.beta = make([]float64, w.d*w.groups)
	value := objective(s, w, l2)
	for ; w.iterations < maxSteps; w.iterations++ {
		grad, hess := derivatives(s, w, l2)
		if mat.Norm(grad, math.Inf(1)) <= tolerance*float64(len(s.y)) {
			return w, checkSeparated(s, w, hess, l2)
		}
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(hess) || chol.SolveVecTo(&step, grad) != nil && l2 == 0 {
			return nil, separated()
		}
		next, ok := search(s, w, &step, value, l2)
		if !ok { // no step is better: this is as exact as float64 gets
			return w, checkSeparated(s, w, hess, l2)
		}
		value = next
	}
	if l2 == 0 {
		return nil, separated()
	}
	return nil, fmt.Errorf("%w: Newton's method did not come to an end in %d steps", ErrRefused, maxSteps)
}

// search halves the step until the objective grows, and takes it.
func search(s *samples, w *weights, step *mat.VecDense, value, l2 float64) (float64, bool) {
	old := append([]float64(nil), w.beta...)
	for scale := 1.0; scale > 1e-10; scale /= 2 {
		for i := range w.beta {
			w.beta[i] = old[i] + scale*step.AtVec(i)
		}
		if v := objective(s, w, l2); v > value {
			return v, true
		}
	}
	copy(w.beta, old)
	return value, false
}

func objective(s *samples, w *weights, l2 float64) float64 {
	sum, z := 0.0, make([]float64, s.classes)
	for i, y := range s.y {
		w.logits(s.row(i), z)
		zy := z[y]
		sum += s.w[i] * (zy - softmax(z))
	}
	for i, b := range w.beta {
		if i%w.d != 0 {
			sum -= l2 / 2 * b * b
		}
	}
	return sum
}

// derivatives returns the gradient and the negative Hessian.
func derivatives(s *samples, w *weights, l2 float64) (*mat.VecDense, *mat.SymDense) {
	n := len(w.beta)
	grad, h := make([]float64, n), make([]float64, n*n)
	p, on, first := make([]float64, s.classes), make([]int, 0, s.d), s.classes-w.groups
	for i, y := range s.y {
		row := s.row(i)
		w.logits(row, p)
		softmax(p)
		on = on[:0]
		for j, v := range row {
			if v != 0 {
				on = append(on, j)
			}
		}
		for a := range w.groups {
			pa := p[first+a]
			delta := -pa
			if y == first+a {
				delta++
			}
			for _, j := range on {
				grad[a*s.d+j] += s.w[i] * delta * row[j]
			}
			for b := a; b < w.groups; b++ {
				v := -pa * p[first+b]
				if a == b {
					v += pa
				}
				addOuter(h, n, a*s.d, b*s.d, on, row, s.w[i]*v)
			}
		}
	}
	penalise(grad, h, w, l2)
	return mat.NewVecDense(n, grad), mat.NewSymDense(n, h)
}

// addOuter adds v * row * row' to the block at (top, left); of blocks on the diagonal only
// the upper triangle is read.
func addOuter(h []float64, n, top, left int, on []int, row []float64, v float64) {
	for k, i := range on {
		vi, to := v*row[i], h[(top+i)*n+left:]
		from := on
		if top == left {
			from = on[k:]
		}
		for _, j := range from {
			to[j] += vi * row[j]
		}
	}
}

// penalise adds the penalty. Where all classes have a bias, equal amounts to all of them
// change nothing: the Hessian has no curvature there, and gets some; since the gradient has
// no part in that direction, the step is the same.
func penalise(grad, h []float64, w *weights, l2 float64) {
	n := len(w.beta)
	for i, b := range w.beta {
		if i%w.d != 0 {
			grad[i] -= l2 * b
			h[i*n+i] += l2
		}
	}
	if w.groups == 1 {
		return
	}
	for a := 0; a < n; a += w.d {
		for b := a; b < n; b += w.d {
			h[a*n+b]++
		}
	}
	if l2 > 0 {
		return
	}
	for j := 1; j < w.d; j++ { // the same for the weights when nothing is penalised
		for a := j; a < n; a += w.d {
			for b := a; b < n; b += w.d {
				h[a*n+b]++
			}
		}
	}
}

// checkSeparated refuses an unpenalised maximum that is none: when columns separate the
// classes the likelihood grows for ever, and its gradient vanishes on the way.
func checkSeparated(s *samples, w *weights, hess *mat.SymDense, l2 float64) error {
	if l2 > 0 {
		return nil
	}
	var chol mat.Cholesky
	if !chol.Factorize(hess) || chol.Cond() > maxCondition {
		return separated()
	}
	z, sure := make([]float64, s.classes), true
	for i, y := range s.y {
		w.logits(s.row(i), z)
		softmax(z)
		sure = sure && z[y] > 1-1e-6
	}
	if sure {
		return separated()
	}
	return nil
}

func separated() error {
	return fmt.Errorf("%w: without a penalty the likelihood has no maximum: columns separate the classes, or say the same twice; use a penalty above 0", ErrRefused)
}
