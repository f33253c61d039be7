package recorder

import (
	"context"
	"sync"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Recording is the recording of one request under way. The middleware puts it into the
// request's context; the handler finds it with [FromContext] and says what was decided.
// Its methods are safe for concurrent use and do nothing on a nil Recording, or once
// the handler has returned. What they are given is copied.
type Recording struct {
	r     *Recorder
	start time.Time
	id    decision.ID
	// kept is the draw that was made when the request began; what it says of the request
	// is for the sampler to know.
	kept bool

	mu sync.Mutex
	// g is nil once the rows are handed over.
	g     *group
	first Decision
	// in and out are the bodies that SetInput and SetOutput were given.
	in, out body
}

type contextKey struct{}

// FromContext returns the recording of the request that ctx belongs to, nil when it is
// not recorded.
func FromContext(ctx context.Context) *Recording {
	rec, _ := ctx.Value(contextKey{}).(*Recording)
	return rec
}

// ID returns the id of the request: the request_id of its rows.
func (rec *Recording) ID() decision.ID {
	if rec == nil {
		return decision.ID{}
	}
	return rec.id
}

// edit runs f on the rows unless they are handed over.
func (rec *Recording) edit(f func(g *group)) {
	if rec == nil {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.g != nil {
		f(rec.g)
	}
}

// SetScenario says to which scenario the request's decisions belong.
func (rec *Recording) SetScenario(name string) {
	rec.edit(func(g *group) { g.scenario = name })
}

// SetAttr gives an attribute. One that the capture list does not name is not recorded.
func (rec *Recording) SetAttr(name string, v decision.Value) {
	rec.edit(func(g *group) {
		i := g.schema.Index(name)
		if i < 0 {
			rec.r.unlisted.Add(1)
			return
		}
		g.attrs[i] = v
	})
}

// SetMetric gives the attribute metrics.NAME.
func (rec *Recording) SetMetric(name string, x float64) {
	rec.SetAttr("metrics."+name, decision.DoubleValue(x))
}

// SetEntity names the user, session or account; only its keyed hash is stored.
func (rec *Recording) SetEntity(raw string) {
	rec.edit(func(g *group) { g.entity, g.hasEntity = raw, raw != "" })
}

// SetFeatures gives the model's input vector and the name of its schema.
func (rec *Recording) SetFeatures(set string, v []float32) {
	rec.edit(func(g *group) { g.featureSet, g.features = set, append(g.features[:0], v...) })
}

// Decision returns the request's decision on a question, and opens it at the first
// call: one row each. A request with a single decision names it "". A decision that is
// opened and never answered is recorded as an error.
func (rec *Recording) Decision(question string) *Decision {
	if rec == nil {
		return nil
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.g == nil {
		return nil
	}
	for i := range rec.g.slots {
		if rec.g.slots[i].row.Question == question {
			return rec.handle(i)
		}
	}
	s := rec.g.add()
	s.row.ID, s.row.Question = decision.NewID(rec.start), question
	return rec.handle(len(rec.g.slots) - 1)
}

// handle saves the allocation of the first handle: most requests have one decision.
func (rec *Recording) handle(i int) *Decision {
	if i == 0 {
		if rec.first.rec == nil { // only once: others may be reading it
			rec.first = Decision{rec: rec, id: rec.g.slots[0].row.ID}
		}
		return &rec.first
	}
	return &Decision{rec: rec, at: i, id: rec.g.slots[i].row.ID}
}

// Stage is a part of a decision's latency.
type Stage uint8

// The stages.
const (
	StageQueue Stage = iota
	StageFeatures
	StageRules
	StageModel
	StageTransport
	StageSerialise
)

// Decision is one decision of a [Recording]; the rules for its methods are the same.
type Decision struct {
	rec *Recording
	at  int
	id  decision.ID
}

// ID returns the id of the decision: answers that carry it let labels find their way.
func (d *Decision) ID() decision.ID {
	if d == nil {
		return decision.ID{}
	}
	return d.id
}

func (d *Decision) edit(f func(s *slot)) {
	if d != nil {
		d.rec.edit(func(g *group) { f(&g.slots[d.at]) })
	}
}

// SetActions gives the allowed actions in the order in which they were offered.
func (d *Decision) SetActions(names ...string) {
	d.edit(func(s *slot) {
		s.candidates = s.candidates[:0]
		for _, n := range names {
			s.candidates = append(s.candidates, decision.Candidate{Action: n})
		}
		s.row.Candidates = s.candidates
	})
}

// SetCandidates gives the allowed actions with their scores and probabilities.
func (d *Decision) SetCandidates(cs ...decision.Candidate) {
	d.edit(func(s *slot) { s.row.Candidates = refill(&s.candidates, cs) })
}

// SetQuestionType gives the shape of the answer; unset is a plain choice of an action.
func (d *Decision) SetQuestionType(t decision.QuestionType) {
	d.edit(func(s *slot) { s.row.QuestionType = t })
}

// Choose records the chosen action; [Decision.Answer] records everything about it.
func (d *Decision) Choose(action string) {
	d.edit(func(s *slot) { s.row.Status, s.row.Action = decision.OK, action })
}

// Answer records the whole answer: status (none, with an action, counts as ok), action
// and parameters, confidence with its definition, reason and rule, error (its text as
// [Decision.Fail] keeps it). Its candidates
// give scores to the actions set before, or stand for them where none were.
func (d *Decision) Answer(a decision.Decision) {
	if a.Status == decision.StatusNone && a.Action != "" {
		a.Status = decision.OK
	}
	d.edit(func(s *slot) { s.answer(&a) })
}

func (s *slot) answer(a *decision.Decision) {
	row := &s.row
	row.Status, row.Action, row.Params = a.Status, a.Action, a.Params
	row.Confidence, row.ConfidenceDef = a.Confidence, a.ConfidenceDef
	row.Reason, row.RuleID = a.Reason.Kind, a.Reason.Rule
	row.Error, row.ErrorCode = scrub(a.Error), a.ErrorCode
	if len(row.Candidates) == 0 {
		if len(a.Candidates) > 0 {
			row.Candidates = refill(&s.candidates, a.Candidates)
		}
		return
	}
	for i := range row.Candidates {
		for _, c := range a.Candidates {
			if c.Action == row.Candidates[i].Action {
				row.Candidates[i] = c
			}
		}
	}
}

// Fail records that there was no answer: abstain, timeout, error or not-replayable,
// with a short code from a closed set and a text for people. The text is kept without
// the credentials that can be found in it, up to 1024 bytes.
func (d *Decision) Fail(status decision.Status, code, text string) {
	d.edit(func(s *slot) { fail(&s.row, status, code, scrub(text)) })
}

// SetBackend says who decided, and under which exact artefact.
func (d *Decision) SetBackend(name string, a decision.Artefact) {
	d.edit(func(s *slot) { s.row.Backend, s.row.Artefact = name, a })
}

// SetPropensity gives the probability with which this action was chosen.
func (d *Decision) SetPropensity(p float64, kind snapshot.PropensityKind) {
	d.edit(func(s *slot) { s.row.Propensity, s.row.PropensityKind = decision.Some(p), kind })
}

// SetApplied says what the application did with the decision.
func (d *Decision) SetApplied(a snapshot.Applied) {
	d.edit(func(s *slot) { s.row.Applied = a })
}

// SetLatency gives the time that the decision took. Without it the row has the time
// from the middleware's start until the handler returned.
func (d *Decision) SetLatency(t time.Duration) {
	d.edit(func(s *slot) { s.row.Latency = decision.Some(t) })
}

// SetUsage gives what the request consumed; give it to each of its decisions.
func (d *Decision) SetUsage(u decision.Usage) {
	d.edit(func(s *slot) { s.row.Usage = u })
}

// SetCost gives what the provider charged, in 1e-9 units of its currency.
func (d *Decision) SetCost(nano int64) {
	d.edit(func(s *slot) { s.row.Cost = decision.Some(nano) })
}

// SetNonDeterminism gives the tape of clock, seed and look-ups, as JSON.
func (d *Decision) SetNonDeterminism(tape string) {
	d.edit(func(s *slot) { s.row.ND = tape })
}

// SetTerms gives the provider's terms for the row.
func (d *Decision) SetTerms(t snapshot.Terms) {
	d.edit(func(s *slot) { s.row.Terms = t })
}

// Stage starts the clock of a stage, and the function that it returns stops it; a stage
// that is entered again adds up.
func (d *Decision) Stage(stage Stage) (stop func()) {
	if d == nil {
		return func() {}
	}
	from := d.rec.r.clock()
	return func() {
		took := durationOf(from, d.rec.r.clock())
		d.edit(func(s *slot) {
			if v := stageOf(&s.row.Stages, stage); v != nil {
				*v = decision.Some(v.V + took)
			}
		})
	}
}

func stageOf(s *decision.Stages, stage Stage) *decision.Opt[time.Duration] {
	all := [...]*decision.Opt[time.Duration]{&s.Queue, &s.Features, &s.Rules, &s.Model, &s.Transport, &s.Serialise}
	if int(stage) >= len(all) {
		return nil
	}
	return all[stage]
}
