package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// Explain says which rule decides and why, condition by condition, and which rules could
// not be evaluated.
func (e *Engine) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	p := e.program.Load()
	in := input{row: expr.Row{Values: req.Attrs.Values, At: e.binder.Bind(req.Attrs.Schema)}, now: req.Now}
	v := e.evaluate(p, &in)
	var d decision.Decision
	v.fill(&d)
	x := &decision.Explanation{Reason: d.Reason, Tags: v.tags()}
	for _, r := range p.rules {
		if r == v.rule {
			break
		}
		if s, ok := r.skipped(&in); ok {
			x.Skipped = append(x.Skipped, s)
		}
	}
	v.describe(x, &in.row)
	return x, nil
}

func (v *verdict) describe(x *decision.Explanation, row *expr.Row) {
	if v.rule != nil {
		x.Position, x.Cited = v.rule.pos, v.rule.cited()
		leaves(v.rule.conditions, func(n *node) { x.Conditions = append(x.Conditions, n.outcome(row)) })
	}
	switch {
	case v.rule == nil && v.action == nil:
		x.Text = "no rule matches and the file has no fallback"
	case v.rule == nil:
		x.Position = v.action.Pos
		x.Text = fmt.Sprintf("no rule matches; the file's fallback answers %s", v.action.Label)
	case v.kind == decision.ReasonFallback:
		x.Text = fmt.Sprintf("rule %s matches, but its action lacks %s; its fallback answers %s",
			v.rule.id, strings.Join(v.rule.action.Missing(row), ", "), v.action.Label)
	default:
		x.Text = fmt.Sprintf("rule %s matches and answers %s", v.rule.id, v.action.Label)
	}
}

// outcome is a condition as it came out for a row.
func (n *node) outcome(row *expr.Row) decision.Condition {
	c := n.leaf
	out := decision.Condition{Text: c.text(), Position: n.pos, Truth: truthName(c.holds(row))}
	if c.calc != nil {
		if v, ok := c.calc.Value(row); ok {
			out.Value = v.String()
		}
	} else if v := row.Get(&c.attr); v != nil {
		out.Value = quoted(*v)
	}
	return out
}

func truthName(t expr.Truth) string {
	switch t {
	case expr.True:
		return "true"
	case expr.False:
		return "false"
	}
	return "unknown"
}

// cited lists what the rule reads, each name once.
func (r *rule) cited() []string {
	var out []string
	add := func(attrs []expr.Attr) {
		for _, a := range attrs {
			if !slices.Contains(out, a.Name) {
				out = append(out, a.Name)
			}
		}
	}
	leaves(r.conditions, func(n *node) { add(n.leaf.reads()) })
	add(r.action.Reads())
	return out
}

// skipped says why the rule could not be evaluated, and false when it could.
func (r *rule) skipped(in *input) (decision.SkippedRule, bool) {
	s := decision.SkippedRule{Rule: r.id}
	switch r.matches(r.conditions, in) {
	case expr.False:
		return s, false
	case expr.True:
		if r.action == nil {
			return s, false
		}
		s.Missing = r.action.Missing(&in.row)
		s.Cause = "its action lacks " + strings.Join(s.Missing, ", ")
		return s, true
	}
	var causes []string
	if r.active.bounded() && in.now.IsZero() {
		causes = append(causes, "the rule is dated and the request has no clock")
	}
	leaves(r.conditions, func(n *node) {
		missing, cause := n.leaf.cause(&in.row)
		if cause == "" || slices.Contains(causes, cause) {
			return
		}
		causes = append(causes, cause)
		for _, name := range missing {
			if !slices.Contains(s.Missing, name) {
				s.Missing = append(s.Missing, name)
			}
		}
	})
	s.Cause = strings.Join(causes, ", ")
	return s, true
}
