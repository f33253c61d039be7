package main

import (
	"errors"
	"math"
)

// errSingular reports a Hessian that cannot be solved: with the penalty that the trainer
// sets, only an input that is not finite gives one.
var errSingular = errors.New("logistic regression: the Hessian is not positive definite")

// fit returns the weights of a multinomial logistic regression, one row a class, by
// Newton's method on the penalised likelihood
//
//	sum_i log p(y_i | x_i) - l2/2 * sum of the squared weights
//
// All classes have weights (the penalty makes them unique) and column 0 of x, the
// constant, is penalised 1,000 times less. Newton rather than a gradient method because
// it ends at the same point to the last digits whatever the scale of the features, which
// is what makes the committed files reproducible.
func fit(x [][]float64, y []int, classes int, l2 float64) ([][]float64, error) {
	d := len(x[0])
	w := make([]float64, classes*d)
	penalty := make([]float64, len(w))
	for i := range penalty {
		penalty[i] = l2
		if i%d == 0 {
			penalty[i] = l2 / 1000
		}
	}
	for range 100 {
		grad, hess := derivatives(x, y, w, classes)
		for i := range w {
			grad[i] -= penalty[i] * w[i]
			hess[i][i] += penalty[i]
		}
		step, err := solve(hess, grad)
		if err != nil {
			return nil, err
		}
		// Half steps at most: the likelihood is concave, but a full Newton step from far
		// away can overshoot.
		scale, largest := 1.0, maxAbs(step)
		if largest > 2 {
			scale = 2 / largest
		}
		for i := range w {
			w[i] += scale * step[i]
		}
		if largest < 1e-10 {
			break
		}
	}
	out := make([][]float64, classes)
	for c := range out {
		out[c] = w[c*d : (c+1)*d]
	}
	return out, nil
}

// derivatives returns the gradient and the negative Hessian of the log likelihood.
func derivatives(x [][]float64, y []int, w []float64, classes int) ([]float64, [][]float64) {
	d := len(x[0])
	grad := make([]float64, len(w))
	hess := make([][]float64, len(w))
	for i := range hess {
		hess[i] = make([]float64, len(w))
	}
	for n, row := range x {
		p := softmax(row, w, classes)
		on := nonzero(row)
		for a := range classes {
			delta := -p[a]
			if y[n] == a {
				delta++
			}
			for _, i := range on {
				grad[a*d+i] += delta * row[i]
			}
			for b := range classes {
				v := -p[a] * p[b]
				if a == b {
					v += p[a]
				}
				addOuter(hess[a*d:], b*d, on, row, v)
			}
		}
	}
	return grad, hess
}

// addOuter adds v * row * row' to the block of rows h that starts in column col.
func addOuter(h [][]float64, col int, on []int, row []float64, v float64) {
	for _, i := range on {
		vi := v * row[i]
		for _, j := range on {
			h[i][col+j] += vi * row[j]
		}
	}
}

func nonzero(row []float64) []int {
	var on []int
	for i, v := range row {
		if v != 0 {
			on = append(on, i)
		}
	}
	return on
}

func softmax(row, w []float64, classes int) []float64 {
	d := len(row)
	p := make([]float64, classes)
	top := math.Inf(-1)
	for c := range p {
		for i, v := range row {
			p[c] += w[c*d+i] * v
		}
		top = max(top, p[c])
	}
	sum := 0.0
	for c := range p {
		p[c] = math.Exp(p[c] - top)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// solve returns the solution of a*x = b for a symmetric positive definite a, which it
// overwrites with its Cholesky factor.
func solve(a [][]float64, b []float64) ([]float64, error) {
	n := len(b)
	for j := range n {
		for i := j; i < n; i++ {
			s := a[i][j]
			for k := range j {
				s -= a[i][k] * a[j][k]
			}
			if i == j {
				if !(s > 0) {
					return nil, errSingular
				}
				a[j][j] = math.Sqrt(s)
			} else {
				a[i][j] = s / a[j][j]
			}
		}
	}
	x := append([]float64(nil), b...)
	for i := range n {
		for k := range i {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[k][i] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x, nil
}

func maxAbs(v []float64) float64 {
	m := 0.0
	for _, x := range v {
		m = max(m, math.Abs(x))
	}
	return m
}
