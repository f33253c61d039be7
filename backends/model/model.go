package model

import (
	"context"
	"math"
	"slices"

	"github.com/clefbench/clefbench/decision"
)

// ConfidencePeak is the definition of a model's confidence: the probability of its most
// probable class.
const ConfidencePeak = "peak"

// CodeNotFinite is the error code of a request whose features are so large that the
// sums overflow.
const CodeNotFinite = "not-finite"

// Model decides by logistic regression, or by an ensemble of trees. It is safe for concurrent use.
type Model struct {
	// file stands in positions; rule is the name that decisions give as their rule.
	file, rule, version string
	// engine and trees are what reads the file, and the file of trees with its digest.
	engine, trees string
	scenarios     []string
	features      []feature
	columns       int
	classNames    []string
	classPlaces   []decision.Position
	bias          []float64
	// rows holds a weight for each column, by class; weights holds the same by column, so
	// that one value touches neighbours in memory.
	rows    [][]float64
	weights []float64
	// actions are what can be chosen: the classes, or the columns of utility, which holds
	// the utility of each action by class.
	actions []string
	places  []decision.Position
	utility [][]float64
	// forest is set for a model of trees; features, columns, rows and weights are then
	// empty, and bias is zero.
	forest *forest
	// classOf gives the class of an action, or -1.
	classOf []int

	bind *decision.Binder
	info decision.Info
}

// finish makes a model that was read ready to decide.
func (m *Model) finish(name string, digest [32]byte) {
	names, attrs := m.inputs(), []string(nil)
	for _, n := range names {
		if !slices.Contains(attrs, n) {
			attrs = append(attrs, n)
		}
	}
	for c := range m.columns {
		for k := range m.rows {
			m.weights = append(m.weights, m.rows[k][c])
		}
	}
	for _, a := range m.actions {
		m.classOf = append(m.classOf, slices.Index(m.classNames, a))
	}
	m.bind = decision.NewBinder(names...)
	m.info = decision.Info{
		Name: name, Kind: "model", Scenarios: m.scenarios, Attributes: attrs,
		Artefact:     decision.Artefact{EngineVersion: m.engine, StrategyVersion: m.version, StrategyDigest: digest, ModelRequested: m.trees, ModelResolved: m.trees},
		Capabilities: decision.Capabilities{Deterministic: true, Confidence: true, Timeout: decision.TimeoutChecked},
	}
}

// inputs lists the attributes that are read, in the order in which they are bound.
func (m *Model) inputs() []string {
	var names []string
	for i := range m.features {
		names = append(names, m.features[i].name)
	}
	if m.forest != nil {
		for i := range m.forest.inputs {
			names = append(names, m.forest.inputs[i].name)
		}
	}
	return names
}

// Info describes the model; the strategy digest is the SHA-256 of the file, and of its
// tree file after it.
func (m *Model) Info() decision.Info {
	i := m.info
	i.Scenarios, i.Attributes = slices.Clone(i.Scenarios), slices.Clone(i.Attributes)
	return i
}

// probabilities are the classes' logits and probabilities for one request. They live on
// the stack, hence the fixed size.
type probabilities struct {
	logit, p [maxClasses]float64
	// missing counts features that could not be evaluated; finite is false when a sum
	// overflowed.
	missing uint16
	finite  bool
	peak    float64
}

// score evaluates the features and the softmax over the classes.
func (m *Model) score(attrs decision.Attrs, s *probabilities) {
	at := m.bind.Bind(attrs.Schema)
	classes := len(m.bias)
	if m.forest != nil {
		m.forest.score(attrs, at, s)
		s.softmax(classes)
		return
	}
	copy(s.logit[:], m.bias)
	for i := range m.features {
		column, x, ok := m.features[i].eval(attrs.At(at[i]))
		if !ok {
			s.missing++
			continue
		}
		for k, w := range m.weights[column*classes : (column+1)*classes] {
			s.logit[k] += w * x
		}
	}
	s.softmax(classes)
}

// softmax subtracts the largest logit first, so that exp cannot overflow.
func (s *probabilities) softmax(classes int) {
	top, sum := math.Inf(-1), 0.0
	s.finite = true
	for _, z := range s.logit[:classes] {
		s.finite = s.finite && !math.IsNaN(z) && !math.IsInf(z, 0)
		top = max(top, z)
	}
	for k, z := range s.logit[:classes] {
		s.p[k] = math.Exp(z - top)
		sum += s.p[k]
	}
	for k := range s.p[:classes] {
		s.p[k] /= sum
		s.peak = max(s.peak, s.p[k])
	}
}

// value is what an action is chosen by: its expected utility, or its probability.
func (m *Model) value(s *probabilities, action int) float64 {
	if m.utility == nil {
		return s.p[action]
	}
	u := 0.0
	for k := range m.utility {
		u += s.p[k] * m.utility[k][action]
	}
	return u
}

// Decide gives all questions the same probabilities; each chooses among its candidates.
func (m *Model) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = m.info.Artefact
	var s probabilities
	m.score(req.Attrs, &s)
	for i := range out.Decisions {
		m.answer(&s, &req.Questions[i], &out.Decisions[i])
	}
	return nil
}

// answer chooses the best allowed action; of equal ones, the first in the file. When the
// model knows none of the candidates it still says what it would choose, which
// [decision.Response.Check] then refuses: it does not make up a choice.
func (m *Model) answer(s *probabilities, q *decision.Question, d *decision.Decision) {
	switch {
	case s.missing > 0:
		d.Status, d.Reason = decision.Abstain, decision.Reason{Kind: decision.ReasonModel, Rule: m.rule, Skipped: s.missing}
		return
	case !s.finite:
		d.Fail(decision.Error, CodeNotFinite, "a sum of weights and features is not a finite number")
		return
	}
	best, bestAllowed := -1, false
	for i, a := range m.actions {
		allowed := q.Allows(a)
		if allowed {
			d.Candidates = append(d.Candidates, m.candidate(s, i))
		}
		better := best < 0 || m.value(s, i) > m.value(s, best)
		if allowed && !bestAllowed || allowed == bestAllowed && better {
			best, bestAllowed = i, allowed
		}
	}
	d.Status, d.Action = decision.OK, m.actions[best]
	d.Confidence, d.ConfidenceDef = decision.Some(s.peak), ConfidencePeak
	d.Reason = decision.Reason{Kind: decision.ReasonModel, Rule: m.rule}
}

// candidate is an action with its score (expected utility, or logit) and, where it is a
// class, its probability.
func (m *Model) candidate(s *probabilities, action int) decision.Candidate {
	c := decision.Candidate{Action: m.actions[action]}
	if k := m.classOf[action]; k >= 0 {
		c.Probability = decision.Some(s.p[k])
		c.Score = decision.Some(float32(s.logit[k]))
	}
	if m.utility != nil {
		c.Score = decision.Some(float32(m.value(s, action)))
	}
	return c
}

// Close does nothing: a model holds no resource.
func (m *Model) Close(context.Context) error { return nil }
