package fit

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// spector is Spector and Mazzeo's 32 students (Journal of Economic Education 11, 1980):
// grade point average, score of a test, taught by the new method, grade improved.
var spector = [][4]float64{
	{2.66, 20, 0, 0}, {2.89, 22, 0, 0}, {3.28, 24, 0, 0}, {2.92, 12, 0, 0}, {4.00, 21, 0, 1}, {2.86, 17, 0, 0}, {2.76, 17, 0, 0}, {2.87, 21, 0, 0},
	{3.03, 25, 0, 0}, {3.92, 29, 0, 1}, {2.63, 20, 0, 0}, {3.32, 23, 0, 0}, {3.57, 23, 0, 0}, {3.26, 25, 0, 1}, {3.53, 26, 0, 0}, {2.74, 19, 0, 0},
	{2.75, 25, 0, 0}, {2.83, 19, 0, 0}, {3.12, 23, 1, 0}, {3.16, 25, 1, 1}, {2.06, 22, 1, 0}, {3.62, 28, 1, 1}, {2.89, 14, 1, 0}, {3.51, 26, 1, 0},
	{3.54, 24, 1, 1}, {2.83, 27, 1, 1}, {3.39, 17, 1, 1}, {2.67, 24, 1, 0}, {3.65, 21, 1, 1}, {4.00, 23, 1, 1}, {3.10, 21, 1, 0}, {2.39, 19, 1, 1},
}

// The coefficients are those that the textbooks print for these data (Greene, Econometric
// Analysis): constant -13.021, GPA 2.826, TUCE 0.095, PSI 2.379; log likelihood -12.890.
func TestPublishedCoefficients(t *testing.T) {
	s := &samples{d: 4, classes: 2}
	for _, r := range spector {
		s.x, s.y, s.w = append(s.x, 1, r[0], r[1], r[2]), append(s.y, int(r[3])), append(s.w, 1)
	}
	w, err := maximise(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-13.0213, 2.8261, 0.0952, 2.3787} {
		if math.Abs(w.beta[i]-want) > 5e-5 {
			t.Errorf("coefficient %d is %v, want %v", i, w.beta[i], want)
		}
	}
	if v := objective(s, w, 0); math.Abs(v+12.8896) > 5e-5 {
		t.Errorf("log likelihood %v", v)
	}
	t.Logf("%v in %d steps", w.beta, w.iterations)
}

// One column of 0 and 1: the maximum is the log odds of the two cells, in closed form.
func TestClosedForm(t *testing.T) {
	s := &samples{d: 2, classes: 2}
	add := func(n int, x float64, y int, w float64) {
		for range n {
			s.x, s.y, s.w = append(s.x, 1, x), append(s.y, y), append(s.w, w)
		}
	}
	add(3, 0, 1, 2) // weight 2 is two rows
	add(14, 0, 0, 1)
	add(30, 1, 1, 0.5)
	add(5, 1, 0, 1)
	w, err := maximise(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	if bias, slope := math.Log(6.0/14), math.Log(15.0/5)-math.Log(6.0/14); math.Abs(w.beta[0]-bias) > 1e-12 || math.Abs(w.beta[1]-slope) > 1e-12 {
		t.Errorf("got %v, want %v and %v", w.beta, bias, slope)
	}
}

func randomSamples(seed uint64, n, d, classes int) *samples {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &samples{d: d, classes: classes}
	for range n {
		row := []float64{1}
		for j := 1; j < d; j++ {
			if j%3 == 0 {
				row = append(row, float64(r.IntN(2)))
			} else {
				row = append(row, r.NormFloat64())
			}
		}
		y := r.IntN(classes)
		if row[1] > 0.3 && r.IntN(3) > 0 {
			y = classes - 1
		}
		s.x, s.y, s.w = append(s.x, row...), append(s.y, y), append(s.w, 0.5+r.Float64())
	}
	return s
}

// naive is the penalised likelihood written down again, without any of the code above.
func naive(s *samples, l2 float64, beta []float64) float64 {
	groups, sum := len(beta)/s.d, 0.0
	for i, y := range s.y {
		total, zy := 0.0, 0.0
		for k := range s.classes {
			z := 0.0
			if g := k - (s.classes - groups); g >= 0 {
				for j := range s.d {
					z += beta[g*s.d+j] * s.x[i*s.d+j]
				}
			}
			total += math.Exp(z)
			if k == y {
				zy = z
			}
		}
		sum += s.w[i] * (zy - math.Log(total))
	}
	for i, b := range beta {
		if i%s.d > 0 {
			sum -= l2 * b * b / 2
		}
	}
	return sum
}

// An optimiser that knows neither Hessian nor our gradient comes to the same maximum.
func TestAgainstAnotherOptimiser(t *testing.T) {
	for seed, tc := range []struct {
		d, classes int
		l2         float64
	}{{4, 2, 0}, {5, 2, 3}, {4, 3, 1}, {3, 4, 0.2}, {3, 3, 0}} {
		s := randomSamples(uint64(seed), 300, tc.d, tc.classes)
		w, err := maximise(s, tc.l2)
		if err != nil {
			t.Fatal(err)
		}
		f := func(x []float64) float64 { return -naive(s, tc.l2, x) }
		problem := optimize.Problem{Func: f, Grad: func(grad, x []float64) {
			for i := range x { // central differences
				h, at := 1e-5, x[i]
				x[i] = at + h
				up := f(x)
				x[i] = at - h
				grad[i], x[i] = (up-f(x))/(2*h), at
			}
		}}
		res, err := optimize.Minimize(problem, make([]float64, len(w.beta)), &optimize.Settings{GradientThreshold: 1e-6}, &optimize.BFGS{})
		if res == nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i := range w.beta {
			worst = max(worst, math.Abs(w.beta[i]-res.X[i]))
		}
		t.Logf("%d classes, penalty %v: weights differ by at most %.2g, %d steps", tc.classes, tc.l2, worst, w.iterations)
		if worst > 1e-5 || naive(s, tc.l2, w.beta) < -res.F-1e-9 {
			t.Errorf("%+v: got %v\nwant %v", tc, w.beta, res.X)
		}
	}
}

// The Hessian is the derivative of the gradient, that of the objective: by differences.
func TestDerivatives(t *testing.T) {
	for _, classes := range []int{2, 3} {
		s := randomSamples(9, 40, 4, classes)
		w := &weights{d: 4, groups: s.groups(), beta: make([]float64, 4*s.groups())}
		for i := range w.beta {
			w.beta[i] = math.Sin(float64(i))
		}
		grad, hess := derivatives(s, w, 0.7)
		for i := range w.beta {
			const h = 1e-5
			at := w.beta[i]
			w.beta[i] = at + h
			up, upGrad := naive(s, 0.7, w.beta), first(derivatives(s, w, 0.7))
			w.beta[i] = at - h
			down, downGrad := naive(s, 0.7, w.beta), first(derivatives(s, w, 0.7))
			w.beta[i] = at
			if d := (up - down) / (2 * h); math.Abs(d-grad.AtVec(i)) > 1e-6 {
				t.Errorf("gradient %d is %v, by differences %v", i, grad.AtVec(i), d)
			}
			for j := range w.beta {
				want := -(upGrad.AtVec(j) - downGrad.AtVec(j)) / (2 * h)
				if classes > 2 && i%4 == 0 && j%4 == 0 {
					want++ // the curvature along equal biases
				}
				if math.Abs(want-hess.At(i, j)) > 1e-6 {
					t.Errorf("Hessian %d,%d is %v, by differences %v", i, j, hess.At(i, j), want)
				}
			}
		}
	}
}

func first(v *mat.VecDense, _ *mat.SymDense) *mat.VecDense { return v }

// What separates the classes has no maximum without a penalty, and one with it.
func TestSeparable(t *testing.T) {
	for name, rows := range map[string][][3]float64{ // x1, x2, y
		"completely":    {{-2, 0, 0}, {-1, 1, 0}, {-1.5, 0, 0}, {1, 0, 1}, {2, 1, 1}, {1.2, 1, 1}},
		"in one corner": {{0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 0}, {1, 0, 1}, {1, 1, 1}},
		"the same":      {{0, 0, 0}, {0, 0, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}},
	} {
		s := &samples{d: 3, classes: 2}
		for _, r := range rows {
			s.x, s.y, s.w = append(s.x, 1, r[0], r[1]), append(s.y, int(r[2])), append(s.w, 1)
		}
		if w, err := maximise(s, 0); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %v", name, w, err)
		}
		if _, err := maximise(s, 0.1); err != nil {
			t.Errorf("%s, with a penalty: %v", name, err)
		}
	}
}
