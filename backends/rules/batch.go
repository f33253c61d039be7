package rules

import (
	"context"
	"math"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// checkEvery is the number of rows between looks at the context.
const checkEvery = 4096

// DecideBatch answers all rows as Decide does, without parameters. What depends on a text
// alone (which rules it lets through, whether a condition on it holds) is worked out once
// for each distinct text; numbers are compared where they stand.
//
// Bitmaps a rule, as column stores combine them, were considered: they cost a pass over
// the rows for each rule, which is dearer than this from about ten rules on, because the
// texts leave only a few rules to test on a row.
func (e *Engine) DecideBatch(ctx context.Context, in *decision.Batch, out *decision.Answers) error {
	out.Reset(in.Len())
	b := e.bind(e.program.Load(), in, out)
	for i := range out.Rows {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		b.decide(i, &out.Rows[i])
	}
	return nil
}

// batch is the rules bound to the columns of one batch.
type batch struct {
	in       *decision.Batch
	cols     []*decision.Column // by slot; nil when the schema lacks it
	rules    []batchRule
	fallback int32
	columns  *prefilter.Columns
	// row is for what is not evaluated on columns.
	row expr.Row
}

// batchRule is one rule bound to columns. What is tested first stands first.
type batchRule struct {
	short, full conjunction
	*rule
	dated            bool
	action, fallback int32
	needs            []*decision.Column // of the action's templates
}

// conjunction is conditions that must all hold: comparisons of doubles with a number, and
// others.
type conjunction struct {
	numbers []comparison
	nodes   []batchNode
}

func (e *Engine) bind(p *program, in *decision.Batch, out *decision.Answers) *batch {
	b := &batch{in: in, rules: make([]batchRule, len(p.rules))}
	names := e.file.scope.Names()
	b.cols = make([]*decision.Column, len(names))
	b.row = expr.Row{Values: make([]decision.Value, len(names)), At: make([]int, len(names))}
	for slot, name := range names {
		b.row.At[slot] = slot
		if i := in.Schema().Index(name); i >= 0 {
			b.cols[slot] = in.Column(i)
		}
	}
	labels := labels{out, map[string]int32{}}
	for i, r := range p.rules {
		out.Rules = append(out.Rules, r.id)
		x := &b.rules[i]
		*x = batchRule{rule: r, full: b.conjunction(r.conditions), dated: r.active.bounded(), action: labels.of(r.action), fallback: labels.of(r.fallback)}
		if r.action != nil {
			for _, a := range r.action.Reads() {
				x.needs = append(x.needs, b.cols[a.Slot])
			}
		}
	}
	b.fallback = labels.of(e.file.fallback)
	b.index(p, names)
	return b
}

// labels gives each action a place in the answers.
type labels struct {
	out *decision.Answers
	at  map[string]int32
}

func (l labels) of(a *expr.Action) int32 {
	if a == nil {
		return -1
	}
	at, ok := l.at[a.Label]
	if !ok {
		at = int32(len(l.out.Actions))
		l.at[a.Label], l.out.Actions = at, append(l.out.Actions, a.Label)
	}
	return at
}

// index takes over the engine's index; without one every rule is tested on every row.
func (b *batch) index(p *program, names []string) {
	if p.index == nil {
		all := make([]int32, len(p.rules))
		for i := range all {
			all[i] = int32(i)
		}
		b.columns = (&prefilter.Index{Rest: all}).Columns(b.in, nil)
		return
	}
	b.columns = p.index.Columns(b.in, func(slot int) string { return names[slot] })
	for _, f := range p.index.Filters {
		for _, i := range f.All() {
			b.rules[i].short = b.conjunction(p.index.short[i])
		}
	}
}

func (b *batch) decide(row int, out *decision.Answer) {
	skipped := 0
	if rules, only := b.columns.Only(row); only {
		for _, i := range rules {
			if b.take(i, true, row, out, &skipped) {
				return
			}
		}
		b.otherwise(out, skipped)
		return
	}
	var w prefilter.Walk
	b.columns.Start(&w, row)
	for i, covered := w.Next(); i >= 0; i, covered = w.Next() {
		if b.take(i, covered, row, out, &skipped) {
			return
		}
	}
	b.otherwise(out, skipped)
}

// take tests a rule on a row; true when it decides.
func (b *batch) take(i int32, short bool, row int, out *decision.Answer, skipped *int) bool {
	r := &b.rules[i]
	conditions := &r.full
	if short {
		conditions = &r.short
	}
	t := b.all(conditions, row)
	if t == expr.False {
		return false
	}
	if r.dated {
		t = r.inForce(t, b.in.Now(row))
	}
	switch {
	case t == expr.Unknown:
		*skipped++
	case t == expr.True && r.rule.action != nil:
		if b.answer(r, i, row, out) {
			out.Skipped = uint16(min(*skipped, math.MaxUint16))
			return true
		}
		*skipped++
	}
	return false
}

// otherwise gives the answer when no rule decides.
func (b *batch) otherwise(out *decision.Answer, skipped int) {
	out.Skipped = uint16(min(skipped, math.MaxUint16))
	if out.Action = b.fallback; b.fallback < 0 {
		out.Status = decision.Abstain
		return
	}
	out.Status, out.Kind = decision.OK, decision.ReasonFallback
}

// answer lets a rule decide that matches; false when it cannot.
func (b *batch) answer(r *batchRule, i int32, row int, out *decision.Answer) bool {
	out.Status, out.Kind, out.Rule, out.Action = decision.OK, decision.ReasonMatch, i, r.action
	for _, c := range r.needs {
		if c != nil && !absent(c, row) && (c.Type != decision.Double || c.Doubles[row] == c.Doubles[row]) {
			continue
		}
		if r.rule.fallback == nil {
			*out = decision.Answer{Action: -1, Rule: -1}
			return false
		}
		out.Kind, out.Action = decision.ReasonFallback, r.fallback
		break
	}
	return true
}
