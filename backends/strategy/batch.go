package strategy

import (
	"context"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// checkEvery is the number of rows between looks at the context.
const checkEvery = 4096

// DecideBatch answers all rows as Decide does, without parameters. Which rules a text lets
// through is looked up once for each distinct text; what is left is evaluated, and the model
// asked, row by row.
func (e *Engine) DecideBatch(ctx context.Context, in *decision.Batch, out *decision.Answers) error {
	out.Reset(in.Len())
	b := e.bind(in)
	s := e.pool.Get().(*state)
	defer e.pool.Put(s)
	labels := map[string]int32{}
	for _, r := range e.file.rules {
		out.Rules = append(out.Rules, r.id)
	}
	req := decision.Request{Questions: make([]decision.Question, 1)}
	for row := range out.Rows {
		if row%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		b.fill(row)
		req.Attrs, req.Now = decision.Attrs{Schema: in.Schema(), Values: b.values}, in.Now(row)
		req.FeatureSet, req.Features = in.Features(row)
		s.begin(ctx, e, &req)
		v := b.evaluate(s, row)
		var d decision.Decision
		e.fill(&v, s, &d)
		put(out, labels, row, &v, &d)
		s.end()
	}
	return nil
}

// put writes one answer. A rule has its own place; other names, a model's or a cause, are
// added.
func put(out *decision.Answers, labels map[string]int32, row int, v *verdict, d *decision.Decision) {
	a := &out.Rows[row]
	a.Status, a.Kind, a.Skipped = d.Status, d.Reason.Kind, d.Reason.Skipped
	if v.rule != nil {
		a.Rule = v.rule.at
	} else if d.Reason.Rule != "" {
		a.Rule = place(&out.Rules, labels, "rule\x00", d.Reason.Rule)
	}
	if d.Action != "" {
		a.Action = place(&out.Actions, labels, "action\x00", d.Action)
	}
}

func place(list *[]string, labels map[string]int32, kind, name string) int32 {
	at, ok := labels[kind+name]
	if !ok {
		at = int32(len(*list))
		labels[kind+name], *list = at, append(*list, name)
	}
	return at
}

// batch is the engine bound to the columns of one batch.
type batch struct {
	e       *Engine
	in      *decision.Batch
	values  []decision.Value
	columns *prefilter.Columns // nil without an index
}

func (e *Engine) bind(in *decision.Batch) *batch {
	b := &batch{e: e, in: in, values: make([]decision.Value, in.Schema().Len())}
	if e.index != nil {
		b.columns = e.index.Columns(in, func(slot int) string { return e.file.scope.Attr(slot).Name })
	}
	return b
}

func (b *batch) fill(row int) {
	for i := range b.values {
		b.values[i] = b.in.Column(i).Value(row)
	}
}

// evaluate is Engine.evaluate with the look-ups done.
func (b *batch) evaluate(s *state, row int) (v verdict) {
	if b.columns == nil {
		return b.e.evaluate(s)
	}
	var w prefilter.Walk
	b.columns.Start(&w, row)
	for i, _ := w.Next(); i >= 0; i, _ = w.Next() {
		if v.take(&b.e.file.rules[i], &s.row) {
			break
		}
	}
	return v
}
