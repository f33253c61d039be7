package strategy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// EngineVersion is the version of the language that this engine speaks; it changes when
// a file could be answered differently.
const EngineVersion = "strategy/1"

// Engine decides by a compiled strategy. It is safe for concurrent use when its model
// is.
type Engine struct {
	file      *file
	model     decision.Backend
	modelName string
	info      decision.Info
	binder    *decision.Binder
	pool      sync.Pool // of *state
	// index leaves out rules that a text makes false; nil when the rules are few.
	index *prefilter.Index
	// indexed are the attributes of its filters.
	indexed []expr.Attr
}

// Compile reads a strategy file. The name stands in positions; schema holds the
// attributes of the data set at hand, and may be nil. The model is the backend for the
// file's fallback.model; the engine closes it. The error is a document.Problems with
// all findings; a file that names a model is refused without one.
func Compile(name string, data []byte, schema *decision.Schema, model decision.Backend) (*Engine, error) {
	f, doc := read(name, data, schema, false)
	if f != nil && f.fallback.model != "" && model == nil {
		doc.Errorf(f.fallback.modelPos, "pass the model's file", "the fallback model %q is not loaded", f.fallback.model)
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	e := &Engine{file: f, model: model, binder: decision.NewBinder(f.scope.Names()...)}
	e.info = e.describeSelf(data)
	tests := make([][]prefilter.Test, len(f.rules))
	for i, r := range f.rules {
		tests[i] = r.cond.Necessary()
	}
	if e.index, _ = prefilter.NewIndex(tests); e.index != nil {
		for _, filter := range e.index.Filters {
			e.indexed = append(e.indexed, f.scope.Attr(filter.Slot))
		}
	}
	e.pool.New = func() any { return newState(e) }
	return e, nil
}

func (e *Engine) describeSelf(data []byte) decision.Info {
	info := decision.Info{
		Name: "strategy", Kind: "strategy",
		Artefact: decision.Artefact{
			EngineVersion: EngineVersion, StrategyVersion: e.file.version, StrategyDigest: sha256.Sum256(data), Provider: "local",
		},
		Scenarios:    e.file.scenarios,
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
	}
	for i, n := range e.file.scope.Names() {
		if !e.file.scope.Attr(i).Late {
			info.Attributes = append(info.Attributes, n)
		}
	}
	if !e.asksModel() {
		return info
	}
	m := e.model.Info()
	e.modelName = m.Name
	// What the file names is a file, not an alias: it is resolved by its content, which the
	// strategy's own digest does not cover.
	info.Artefact.ModelRequested = e.file.fallback.model + "@" + hex.EncodeToString(m.Artefact.StrategyDigest[:6])
	info.Artefact.ModelResolved = info.Artefact.ModelRequested
	for _, n := range m.Attributes {
		if !slices.Contains(info.Attributes, n) {
			info.Attributes = append(info.Attributes, n)
		}
	}
	// A model that is cut off by the clock may answer differently on another day.
	info.Capabilities = m.Capabilities
	info.Capabilities.Timeout = decision.TimeoutChecked
	return info
}

func (e *Engine) asksModel() bool { return e.file.fallback.model != "" }

// Info describes the engine, the file and its model.
func (e *Engine) Info() decision.Info { return e.info }

// Close closes the model.
func (e *Engine) Close(ctx context.Context) error {
	if e.model == nil {
		return nil
	}
	return e.model.Close(ctx)
}

// Ready asks the model, when it is one that may not be ready.
func (e *Engine) Ready(ctx context.Context) error {
	if r, ok := e.model.(decision.Readier); ok && e.asksModel() {
		return r.Ready(ctx)
	}
	return nil
}

// Warm warms the model, when it gains from it.
func (e *Engine) Warm(ctx context.Context, reqs []*decision.Request) error {
	if w, ok := e.model.(decision.Warmer); ok && e.asksModel() {
		return w.Warm(ctx, reqs)
	}
	return nil
}

// Decide answers each question of the request. Rules that do not read the model are the
// same for all questions and are evaluated once; the model has an answer for each.
func (e *Engine) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = e.info.Artefact
	if len(req.Questions) == 0 {
		return nil
	}
	s := e.pool.Get().(*state)
	s.begin(ctx, e, req)
	var v verdict
	for i := range out.Decisions {
		s.question = i
		if i == 0 || e.file.asks {
			v = e.evaluate(s)
		}
		e.fill(&v, s, &out.Decisions[i])
	}
	s.account(out)
	s.end()
	e.pool.Put(s)
	return nil
}

// verdict is what the rules say.
type verdict struct {
	rule    *rule // nil: no rule decides
	params  string
	skipped int
}

func (e *Engine) evaluate(s *state) verdict {
	var v verdict
	if e.index == nil {
		for i := range e.file.rules {
			if v.take(&e.file.rules[i], &s.row) {
				break
			}
		}
		return v
	}
	var w prefilter.Walk
	expr.Walk(&w, e.index, e.indexed, &s.row)
	for i, _ := w.Next(); i >= 0; i, _ = w.Next() {
		if v.take(&e.file.rules[i], &s.row) {
			break
		}
	}
	return v
}

// take evaluates a rule; true when it decides.
func (v *verdict) take(r *rule, row *expr.Row) bool {
	switch r.cond.Eval(row) {
	case expr.True:
		if params, ok := r.action.Params(row); ok {
			v.rule, v.params = r, params
			return true
		}
		v.skipped++
	case expr.Unknown, expr.Unordered:
		v.skipped++
	}
	return false
}

// fill writes the answer to the state's question.
func (e *Engine) fill(v *verdict, s *state, d *decision.Decision) {
	switch {
	case v.rule != nil:
		d.Status, d.Action, d.Params = decision.OK, v.rule.action.Label, v.params
		d.Reason = decision.Reason{Kind: decision.ReasonMatch, Rule: v.rule.id}
	case e.asksModel():
		e.byModel(s, d)
	case e.file.fallback.action != nil:
		e.byAction(d)
	default:
		d.Status = decision.Abstain
	}
	d.Reason.Skipped = uint16(min(v.skipped, 1<<16-1))
}

// byModel passes the model's answer on. One that did not come, or that says it does not
// know, gives way to the fallback action; without that, it stays what it is. With the
// fallback action the reason's rule says what the model's answer was (model-timeout,
// abstain, ...): a model that fails all day must show in the records.
func (e *Engine) byModel(s *state, d *decision.Decision) {
	m := s.answer()
	if e.file.fallback.action != nil && m.Status != decision.OK && m.Status != decision.Denied {
		e.byAction(d)
		d.Reason.Rule = cmp.Or(m.ErrorCode, m.Status.String())
		return
	}
	candidates := append(d.Candidates[:0], m.Candidates...)
	*d = *m
	d.Candidates = candidates
	if m.Status.Answered() {
		d.Reason = decision.Reason{Kind: decision.ReasonModel, Rule: e.modelName}
	}
}

func (e *Engine) byAction(d *decision.Decision) {
	a := e.file.fallback.action
	d.Params, _ = a.Params(nil)
	d.Status, d.Action = decision.OK, a.Label
	d.Reason = decision.Reason{Kind: decision.ReasonFallback}
}

// Explain says which rule or model decides and why, and which rules could not be
// evaluated. It asks the model anew.
func (e *Engine) Explain(ctx context.Context, req *decision.Request) (*decision.Explanation, error) {
	s := newState(e)
	s.begin(ctx, e, req)
	v := e.evaluate(s)
	d := decision.Decision{Status: decision.Abstain}
	if len(req.Questions) > 0 {
		e.fill(&v, s, &d)
	}
	x := &decision.Explanation{Reason: d.Reason}
	for i := range e.file.rules {
		r := &e.file.rules[i]
		if r == v.rule {
			break
		}
		if skip, ok := r.skipped(&s.row); ok {
			x.Skipped = append(x.Skipped, skip)
		}
	}
	e.describe(x, &v, s, &d)
	return x, nil
}

func (e *Engine) describe(x *decision.Explanation, v *verdict, s *state, d *decision.Decision) {
	x.Position = e.file.fallback.pos
	switch {
	case v.rule != nil:
		x.Position, x.Cited = v.rule.pos, v.rule.cited()
		x.Text = fmt.Sprintf("rule %s matches and answers %s", v.rule.id, d.Action)
	case d.Reason.Kind == decision.ReasonModel:
		x.Cited = e.model.Info().Attributes
		x.Text = fmt.Sprintf("no rule matches; model %s answers %s %s", e.modelName, d.Status, d.Action)
	case d.Reason.Kind == decision.ReasonFallback && e.asksModel():
		x.Text = fmt.Sprintf("no rule matches, and model %s gives %s; the fallback answers %s", e.modelName, s.answer().Status, d.Action)
	case d.Reason.Kind == decision.ReasonFallback:
		x.Text = fmt.Sprintf("no rule matches; the fallback answers %s", d.Action)
	case e.asksModel():
		x.Text = fmt.Sprintf("no rule matches, and model %s gives %s: %s", e.modelName, d.Status, d.Error)
	default:
		x.Text = "no rule matches and the file has no fallback"
	}
}

// cited lists what the rule reads, each name once.
func (r *rule) cited() []string {
	out := r.cond.Names()
	for _, a := range r.action.Reads() {
		if !slices.Contains(out, a.Name) {
			out = append(out, a.Name)
		}
	}
	return out
}

// skipped says why the rule could not be evaluated, and false when it could.
func (r *rule) skipped(row *expr.Row) (decision.SkippedRule, bool) {
	s := decision.SkippedRule{Rule: r.id}
	switch r.cond.Eval(row) {
	case expr.False:
		return s, false
	case expr.True:
		s.Missing, s.Cause = r.action.Missing(row), "its action cannot be rendered"
	default:
		s.Missing, s.Cause = r.cond.Explain(row)
	}
	return s, true
}
