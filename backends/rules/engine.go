package rules

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// EngineVersion is the version of the language that this engine speaks; it changes when
// a file could be answered differently.
const EngineVersion = "rules/1"

// Engine decides by a compiled rules file. It is safe for concurrent use.
type Engine struct {
	file   *file
	info   decision.Info
	binder *decision.Binder
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
	return &Engine{
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
	}, nil
}

// Info describes the engine and the file.
func (e *Engine) Info() decision.Info { return e.info }

// Close does nothing.
func (e *Engine) Close(context.Context) error { return nil }

// Decide answers each question of the request with the action of the first rule that
// matches. An action that a question does not allow is left to
// [decision.Response.Check].
func (e *Engine) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = e.info.Artefact
	if len(req.Questions) == 0 {
		return nil
	}
	row := expr.Row{Values: req.Attrs.Values, At: e.binder.Bind(req.Attrs.Schema)}
	v := e.evaluate(&row)
	for i := range out.Decisions {
		v.fill(&out.Decisions[i])
	}
	return nil
}

// verdict is the answer of the rules for one row.
type verdict struct {
	action  *expr.Action // nil: abstain
	params  string
	kind    decision.ReasonKind
	rule    *rule // nil: the file's fallback, or none
	skipped int
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

// evaluate finds the deciding rule. A rule that matches but whose action cannot be
// rendered answers with its own fallback, or counts as skipped.
func (e *Engine) evaluate(row *expr.Row) verdict {
	skipped := 0
	for i := range e.file.rules {
		r := &e.file.rules[i]
		switch r.matches(row) {
		case expr.Unknown:
			skipped++
		case expr.True:
			params, ok := r.action.Params(row)
			if ok {
				return verdict{r.action, params, decision.ReasonMatch, r, skipped}
			}
			if r.fallback != nil {
				params, _ = r.fallback.Params(row)
				return verdict{r.fallback, params, decision.ReasonFallback, r, skipped}
			}
			skipped++
		}
	}
	v := verdict{action: e.file.fallback, kind: decision.ReasonFallback, skipped: skipped}
	if v.action == nil {
		v.kind = decision.ReasonNone
		return v
	}
	v.params, _ = v.action.Params(row)
	return v
}

// matches is True when all conditions hold, False when one fails for certain, Unknown
// otherwise. It does not stop at Unknown: a later condition may still fail, and then
// nothing was skipped.
func (r *rule) matches(row *expr.Row) expr.Truth {
	out := expr.True
	for i := range r.conditions {
		switch r.conditions[i].holds(row) {
		case expr.False:
			return expr.False
		case expr.Unknown:
			out = expr.Unknown
		}
	}
	return out
}

// Explain says which rule decides and why, and which rules could not be evaluated.
func (e *Engine) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	row := expr.Row{Values: req.Attrs.Values, At: e.binder.Bind(req.Attrs.Schema)}
	v := e.evaluate(&row)
	var d decision.Decision
	v.fill(&d)
	x := &decision.Explanation{Reason: d.Reason}
	for i := range e.file.rules {
		r := &e.file.rules[i]
		if r == v.rule {
			break
		}
		if s, ok := r.skipped(&row); ok {
			x.Skipped = append(x.Skipped, s)
		}
	}
	e.describe(x, &v, &row)
	return x, nil
}

func (e *Engine) describe(x *decision.Explanation, v *verdict, row *expr.Row) {
	switch {
	case v.rule == nil && v.action == nil:
		x.Text = "no rule matches and the file has no fallback"
	case v.rule == nil:
		x.Position = v.action.Pos
		x.Text = fmt.Sprintf("no rule matches; the file's fallback answers %s", v.action.Label)
	case v.kind == decision.ReasonFallback:
		x.Position, x.Cited = v.rule.pos, v.rule.cited()
		x.Text = fmt.Sprintf("rule %s matches, but its action lacks %s; its fallback answers %s",
			v.rule.id, strings.Join(v.rule.action.Missing(row), ", "), v.action.Label)
	default:
		x.Position, x.Cited = v.rule.pos, v.rule.cited()
		x.Text = fmt.Sprintf("rule %s matches and answers %s", v.rule.id, v.action.Label)
	}
}

// cited lists what the rule reads, each name once.
func (r *rule) cited() []string {
	var out []string
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for i := range r.conditions {
		add(r.conditions[i].attr.Name)
	}
	for _, a := range r.action.Reads() {
		add(a.Name)
	}
	return out
}

// skipped says why the rule could not be evaluated, and false when it could.
func (r *rule) skipped(row *expr.Row) (decision.SkippedRule, bool) {
	s := decision.SkippedRule{Rule: r.id}
	switch r.matches(row) {
	case expr.False:
		return s, false
	case expr.True:
		s.Missing = r.action.Missing(row)
		s.Cause = "its action lacks " + strings.Join(s.Missing, ", ")
		return s, true
	}
	var causes []string
	for i := range r.conditions {
		c := &r.conditions[i]
		cause := c.cause(row)
		if cause == "" {
			continue
		}
		causes = append(causes, cause)
		if row.Get(&c.attr) == nil && !slices.Contains(s.Missing, c.attr.Name) {
			s.Missing = append(s.Missing, c.attr.Name)
		}
	}
	s.Cause = strings.Join(slices.Compact(causes), ", ")
	return s, true
}
