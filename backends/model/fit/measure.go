package fit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/decision"
)

// Bins is the number of bins of a reliability table, of equal width.
const Bins = 10

// Metrics are those of the hold-out, rows weighted.
type Metrics struct {
	// Accuracy is the share of rows whose most probable class is right; Majority that of
	// the training rows' most frequent class, which MajorityClass names.
	Accuracy, Majority float64
	MajorityClass      string
	// LogLoss is the mean of -log p(right class), Brier the mean of the squared differences
	// between probabilities and truth over all classes. The others are those of the training
	// rows' shares, the best that a constant can do.
	LogLoss, ShareLogLoss float64
	Brier, ShareBrier     float64
	// CalibrationError is the mean of |confidence - accuracy| over the bins, weighted.
	CalibrationError float64
	Reliability      [Bins]Bin
}

// Bin holds the rows whose confidence, the highest probability, falls into it.
type Bin struct {
	Rows                         int
	Weight, Confidence, Accuracy float64
}

// clip keeps the logarithm finite: a probability that is 0 in float64 is a number, too.
const clip = 1e-15

// measure asks the finished model about each row, as a caller would.
func measure(m *model.Model, train, holdout []Row, classes []Class) (Metrics, error) {
	var out Metrics
	shares, total := make([]float64, len(classes)), 0.0
	index := func(a string) int {
		return slices.IndexFunc(classes, func(c Class) bool { return c.Action == a })
	}
	for i := range train {
		shares[index(train[i].Class)] += train[i].Weight
		total += train[i].Weight
	}
	top := 0
	for k := range shares {
		shares[k] /= total
		if shares[k] > shares[top] {
			top = k
		}
	}
	out.MajorityClass = classes[top].Action
	p, sum := make([]float64, len(classes)), 0.0
	req, resp := decision.Request{Questions: make([]decision.Question, 1)}, decision.Response{}
	for i := range holdout {
		r := &holdout[i]
		req.Attrs = r.Attrs
		if err := m.Decide(context.Background(), &req, &resp); err != nil {
			return out, err
		}
		if d := &resp.Decisions[0]; d.Status != decision.OK {
			return out, fmt.Errorf("the fitted model answers %v: %s", d.Status, d.Error)
		}
		for _, c := range resp.Decisions[0].Candidates {
			p[index(c.Action)] = c.Probability.V
		}
		y := index(r.Class)
		out.add(p, shares, y, y == top, r.Weight)
		sum += r.Weight
	}
	out.divide(sum)
	return out, nil
}

func (m *Metrics) add(p, shares []float64, y int, majority bool, w float64) {
	peak := 0
	for k := range p {
		if p[k] > p[peak] {
			peak = k
		}
		truth := 0.0
		if k == y {
			truth = 1
		}
		m.Brier += w * (p[k] - truth) * (p[k] - truth)
		m.ShareBrier += w * (shares[k] - truth) * (shares[k] - truth)
	}
	m.LogLoss -= w * math.Log(max(p[y], clip))
	m.ShareLogLoss -= w * math.Log(max(shares[y], clip))
	bin := &m.Reliability[min(Bins-1, int(p[peak]*Bins))]
	bin.Rows++
	bin.Weight += w
	bin.Confidence += w * p[peak]
	if peak == y {
		m.Accuracy += w
		bin.Accuracy += w
	}
	if majority {
		m.Majority += w
	}
}

func (m *Metrics) divide(sum float64) {
	for _, v := range []*float64{&m.Accuracy, &m.Majority, &m.LogLoss, &m.ShareLogLoss, &m.Brier, &m.ShareBrier} {
		*v /= sum
	}
	for i := range m.Reliability {
		b := &m.Reliability[i]
		if b.Weight == 0 {
			continue
		}
		m.CalibrationError += math.Abs(b.Confidence-b.Accuracy) / sum
		b.Confidence /= b.Weight
		b.Accuracy /= b.Weight
	}
}
