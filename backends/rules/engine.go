package rules

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// EngineVersion is the version of the language that this engine speaks; it changes when
// a file could be answered differently.
const EngineVersion = "rules/1"

// Engine decides by a compiled rules file. It is safe for concurrent use.
type Engine struct {
	file    *file
	info    decision.Info
	binder  *decision.Binder
	program atomic.Pointer[program]
	// follower is set by Follow.
	follower atomic.Pointer[follower]
}

// program is the rules in force, which [Engine.Disable] replaces as a whole.
type program struct {
	rules    []*rule
	off      []string
	artefact decision.Artefact
	index    *index // nil when the rules are few
}

// Compile reads a rules file. The name stands in positions; schema holds the attributes
// of the data set at hand, and may be nil. The error is a document.Problems with all
// findings.
func Compile(name string, data []byte, schema *decision.Schema) (*Engine, error) {
	f, problems := read(name, data, schema, false)
	if problems.Errors() > 0 {
		return nil, problems
	}
	names := f.scope.Names()
	e := &Engine{
		file:   f,
		binder: decision.NewBinder(names...),
		info: decision.Info{
			Name: "rules", Kind: "rules",
			Artefact: decision.Artefact{
				EngineVersion: EngineVersion, StrategyVersion: f.version, StrategyDigest: sha256.Sum256(data), Provider: "local",
			},
			Scenarios:    f.scenarios,
			Attributes:   names,
			Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
		},
	}
	e.program.Store(e.assemble(nil))
	return e, nil
}

// assemble lists the rules that are on.
func (e *Engine) assemble(off map[string]bool) *program {
	p := &program{off: slices.Sorted(maps.Keys(off)), artefact: e.info.Artefact}
	for i := range e.file.rules {
		r := &e.file.rules[i]
		if r.off || off[r.id] || off[everyRule] {
			continue
		}
		p.rules = append(p.rules, r)
	}
	p.index = newIndex(p.rules)
	if len(p.off) > 0 {
		p.artefact.StrategyVersion += " without " + strings.Join(p.off, ",")
	}
	return p
}

// Info describes the engine and the file.
func (e *Engine) Info() decision.Info {
	info := e.info
	info.Artefact = e.program.Load().artefact
	return info
}

// Close ends what [Engine.Follow] began; the engine stays usable.
func (e *Engine) Close(context.Context) error {
	e.follower.Load().close()
	return nil
}

// Decide answers each question of the request with the action of the first rule that
// matches. An action that a question does not allow is left to
// [decision.Response.Check].
func (e *Engine) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	p := e.program.Load()
	out.Artefact = p.artefact
	if len(req.Questions) == 0 {
		return nil
	}
	in := input{row: expr.Row{Values: req.Attrs.Values, At: e.binder.Bind(req.Attrs.Schema)}, now: req.Now}
	v := e.evaluate(p, &in)
	for i := range out.Decisions {
		v.fill(&out.Decisions[i])
	}
	return nil
}

// input is what the rules see of a request.
type input struct {
	row expr.Row
	now time.Time
}

// verdict is the answer of the rules for one row.
type verdict struct {
	action  *expr.Action // nil: abstain
	params  string
	kind    decision.ReasonKind
	rule    *rule // nil: the file's fallback, or none
	skipped int
	tagged  []*rule
}

func (v *verdict) fill(d *decision.Decision) {
	d.Reason = decision.Reason{Kind: v.kind, Skipped: uint16(min(v.skipped, 1<<16-1))}
	if v.rule != nil {
		d.Reason.Rule = v.rule.id
	}
	if v.action == nil {
		d.Status = decision.Abstain
		return
	}
	d.Status, d.Action, d.Params = decision.OK, v.action.Label, v.params
}

// evaluate finds the deciding rule, and what the rules before it tag. A rule that matches
// but whose action cannot be rendered answers with its own fallback, or counts as skipped.
func (e *Engine) evaluate(p *program, in *input) (v verdict) {
	if p.index != nil {
		var w prefilter.Walk
		expr.Walk(&w, p.index.Index, p.index.attrs, &in.row)
		for i, covered := w.Next(); i >= 0; i, covered = w.Next() {
			r, conditions := p.rules[i], p.rules[i].conditions
			if covered {
				conditions = p.index.short[i]
			}
			if v.take(r, r.matches(conditions, in), &in.row) {
				return v
			}
		}
	} else {
		for _, r := range p.rules {
			if v.take(r, r.matches(r.conditions, in), &in.row) {
				return v
			}
		}
	}
	if v.action = e.file.fallback; v.action != nil {
		v.kind = decision.ReasonFallback
		v.params, _ = v.render(v.action, &in.row)
	}
	return v
}

// take adds what a rule does; true when it decides.
func (v *verdict) take(r *rule, t expr.Truth, row *expr.Row) bool {
	switch {
	case t == expr.Unknown:
		v.skipped++
	case t == expr.True && r.action == nil:
		v.tagged = append(v.tagged, r)
	case t == expr.True:
		return v.answer(r, row)
	}
	return false
}

// answer lets a rule decide that matches; false when it cannot.
func (v *verdict) answer(r *rule, row *expr.Row) bool {
	if params, ok := v.render(r.action, row); ok {
		v.action, v.params, v.kind, v.rule = r.action, params, decision.ReasonMatch, r
		return true
	}
	if r.fallback == nil {
		v.skipped++
		return false
	}
	v.params, _ = v.render(r.fallback, row)
	v.action, v.kind, v.rule = r.fallback, decision.ReasonFallback, r
	return true
}

// render gives the action's parameters, with the tags so far.
func (v *verdict) render(a *expr.Action, row *expr.Row) (string, bool) {
	if len(v.tagged) == 0 {
		return a.Params(row)
	}
	return a.Tagged(row, v.tags())
}

// tags are the tags of the matching rules in file order, each once.
func (v *verdict) tags() []string {
	var out []string
	for _, r := range v.tagged {
		for _, t := range r.tags {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// matches is False also when the rule is not in force, and Unknown when it is dated and
// the request has no clock. The conditions are the rule's, or those that are left to test.
func (r *rule) matches(conditions []node, in *input) expr.Truth {
	return r.inForce(allOf(conditions, &in.row), in.now)
}

// inForce is a rule's truth once its conditions are known to be t.
func (r *rule) inForce(t expr.Truth, now time.Time) expr.Truth {
	switch {
	case t == expr.False || !r.active.bounded():
		return t
	case now.IsZero():
		return expr.Unknown
	case !r.active.holds(now):
		return expr.False
	}
	return t
}
