package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// shown is the number of features that an explanation names.
const shown = 5

// Explain names the features that separated the most probable class from the next, and
// the place of the chosen action in the file.
func (m *Model) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	var s probabilities
	m.score(req.Attrs, &s)
	var d decision.Decision
	q := decision.Question{}
	if len(req.Questions) > 0 {
		q = req.Questions[0]
	}
	m.answer(&s, &q, &d)
	e := &decision.Explanation{Reason: d.Reason, Cited: slices.Clone(m.info.Attributes), Skipped: m.skipped(req.Attrs)}
	switch d.Status {
	case decision.OK:
		e.Position = m.places[slices.Index(m.actions, d.Action)]
		e.Text = m.sentence(req.Attrs, &s, &d)
	case decision.Abstain:
		e.Text = m.unable(&s)
	default:
		e.Text = d.Error
	}
	return e, nil
}

func (m *Model) unable(s *probabilities) string {
	if m.forest != nil {
		return fmt.Sprintf("none of the %d features has a value", s.missing)
	}
	return fmt.Sprintf("%d of %d features have no value and the model declares none for that", s.missing, len(m.features))
}

func (m *Model) skipped(attrs decision.Attrs) []decision.SkippedRule {
	if m.forest != nil {
		return m.forest.absent(attrs)
	}
	var out []decision.SkippedRule
	for i := range m.features {
		f := &m.features[i]
		v := attrs.Get(f.name)
		if _, _, ok := f.eval(v); ok {
			continue
		}
		cause := "missing"
		switch {
		case math.IsNaN(v.Double()):
			cause = "NaN"
		case !v.IsNull():
			cause = "the value has no number or is outside the transform's domain"
		}
		out = append(out, decision.SkippedRule{Rule: f.label(), Missing: []string{f.name}, Cause: cause})
	}
	return out
}

// contribution is what a feature adds to the first class's logit over the second's.
type contribution struct {
	label string
	by    float64
}

func (m *Model) sentence(attrs decision.Attrs, s *probabilities, d *decision.Decision) string {
	first, second := topTwo(s.p[:len(m.bias)])
	by, cs := "", []contribution(nil)
	if m.forest != nil {
		by, cs = ", by path attribution (Saabas)", m.forest.contributions(attrs, m.bind.Bind(attrs.Schema), first, second)
	} else {
		cs = m.terms(attrs, first, second)
	}
	slices.SortStableFunc(cs, func(a, b contribution) int { return cmp.Compare(math.Abs(b.by), math.Abs(a.by)) })
	parts := make([]string, 0, shown)
	for _, c := range cs[:min(shown, len(cs))] {
		parts = append(parts, fmt.Sprintf("%s %+.3g", c.label, c.by))
	}
	return fmt.Sprintf("%s: P(%s) = %.4g, P(%s) = %.4g; for %s over %s%s: %s", d.Action, m.classNames[first], s.p[first],
		m.classNames[second], s.p[second], m.classNames[first], m.classNames[second], by, strings.Join(parts, ", "))
}

// terms are the terms of the difference between the logits of two classes.
func (m *Model) terms(attrs decision.Attrs, first, second int) []contribution {
	cs := []contribution{{"bias", m.bias[first] - m.bias[second]}}
	for i := range m.features {
		f := &m.features[i]
		if column, x, ok := f.eval(attrs.Get(f.name)); ok {
			cs = append(cs, contribution{f.label(), (m.rows[first][column] - m.rows[second][column]) * x})
		}
	}
	return cs
}

func topTwo(p []float64) (first, second int) {
	second = -1
	for k := 1; k < len(p); k++ {
		switch {
		case p[k] > p[first]:
			first, second = k, first
		case second < 0 || p[k] > p[second]:
			second = k
		}
	}
	return first, second
}
