package strategy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// Error codes of a model that gave no answer.
const (
	CodeModelTimeout = "model-timeout"
	CodeModelError   = "model-error"
)

// state is one request on its way through the engine. It is pooled, because rows handed
// to closures live on the heap, and because the model's response has memory to reuse.
type state struct {
	row      expr.Row
	engine   *Engine
	ctx      context.Context
	req      decision.Request // a copy, with the model's deadline
	question int
	asked    bool
	took     time.Duration
	resp     decision.Response
	late     []decision.Value // by slot
}

func newState(e *Engine) *state {
	return &state{late: make([]decision.Value, len(e.file.scope.Names()))}
}

func (s *state) begin(ctx context.Context, e *Engine, req *decision.Request) {
	s.engine, s.ctx, s.req, s.question, s.asked, s.took = e, ctx, *req, 0, false, 0
	s.row = expr.Row{Values: req.Attrs.Values, At: e.binder.Bind(req.Attrs.Schema), Late: s}
}

// end lets go of what belongs to the caller.
func (s *state) end() {
	s.ctx, s.req, s.row = nil, decision.Request{}, expr.Row{}
	clear(s.late)
}

// answer returns the model's answer to the state's question, asking it the first time.
func (s *state) answer() *decision.Decision {
	if !s.asked {
		s.asked = true
		s.ask()
	}
	return &s.resp.Decisions[s.question]
}

// ask calls the model. Its time is measured around the call and held to the file's
// timeout afterwards; the model is told the deadline, so that a remote one can give up
// in time.
//
// An in-process model that overran is asked once more, and only two overruns count:
// under load the scheduler can hold up a call of 100 ns for more than 15 ms, and an
// answer that depends on that could not be replayed. The time of both calls is
// reported.
func (s *state) ask() {
	e := s.engine
	limit := e.file.fallback.timeout
	if s.req.Deadline == 0 || s.req.Deadline > limit {
		s.req.Deadline = limit
	}
	took, err := s.call()
	if c := &e.info.Capabilities; err == nil && took > limit && c.Deterministic && !c.Network {
		took, err = s.call()
	}
	switch {
	case err != nil:
		s.fail(decision.Error, CodeModelError, err.Error())
	case took > limit:
		s.fail(decision.Timeout, CodeModelTimeout, fmt.Sprintf("model %s took longer than %v", e.modelName, limit))
	case len(s.resp.Decisions) != len(s.req.Questions):
		s.fail(decision.Error, decision.CodeBadResponse,
			fmt.Sprintf("model %s gave %d decisions for %d questions", e.modelName, len(s.resp.Decisions), len(s.req.Questions)))
	}
}

func (s *state) call() (time.Duration, error) {
	start := time.Now()
	err := s.engine.model.Decide(s.ctx, &s.req, &s.resp)
	took := time.Since(start)
	s.took += took
	return took, err
}

func (s *state) fail(status decision.Status, code, text string) {
	s.resp.Reset(len(s.req.Questions))
	s.resp.FailAll(status, code, text)
}

// Late answers model.* names: action, score (the probability of the chosen action),
// confidence, and probability.<action>. What the model does not give is absent.
func (s *state) Late(slot int) *decision.Value {
	d := s.answer()
	v := &s.late[slot]
	*v = decision.Value{}
	if d.Status != decision.OK && d.Status != decision.Denied {
		return nil
	}
	switch name := s.engine.file.scope.Attr(slot).Name; name {
	case "model.action":
		*v = decision.StringValue(d.Action)
	case "model.score":
		*v = probability(d, d.Action)
	case "model.confidence":
		if d.Confidence.Set {
			*v = decision.DoubleValue(d.Confidence.V)
		}
	default:
		if action, ok := strings.CutPrefix(name, "model.probability."); ok {
			*v = probability(d, action)
		}
	}
	return v
}

func probability(d *decision.Decision, action string) decision.Value {
	for i := range d.Candidates {
		if c := &d.Candidates[i]; c.Action == action && c.Probability.Set {
			return decision.DoubleValue(c.Probability.V)
		}
	}
	return decision.Value{}
}

// account passes on what the model's call consumed.
func (s *state) account(out *decision.Response) {
	if !s.asked {
		return
	}
	out.Usage, out.Cost, out.Attempts = s.resp.Usage, s.resp.Cost, s.resp.Attempts
	out.Stages = s.resp.Stages
	out.Stages.Model = decision.Some(s.took)
	if m := s.resp.Artefact.ModelResolved; m != "" {
		out.Artefact.ModelResolved = m
	}
}
