package recorder

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// request is one request at hand-over: the complete rows of Record, or the group of
// everything else, whose rows are complete as well by then.
type request struct {
	// r is the recorder, and not its plan: behind two pointers, what is stored in the plan
	// does not make the compiler put the rows on the heap.
	r    *Recorder
	rows []*snapshot.Snapshot
	g    *group
	// keep is the factor of the rows' keep probability.
	keep float64
	// size is what the bodies count for in the queue.
	size int64
}

func (q *request) len() int {
	if q.g != nil {
		return len(q.g.slots)
	}
	return len(q.rows)
}

// pack copies the rows into a slab.
func (q *request) pack(sl *slab) {
	if q.g != nil {
		q.packGroup(sl)
		return
	}
	for _, s := range q.rows {
		q.packRow(sl, s)
	}
}

// packGroup copies a group's rows. What they share, the first one carries.
func (q *request) packGroup(sl *slab) {
	var first *snapshot.Snapshot
	for i := range q.g.slots {
		s := &q.g.slots[i]
		p := sl.add()
		p.pack(sl, &s.row)
		row := &p.row
		row.KeepProb = q.keep
		row.Input, p.inSeen, p.inKind = put(&sl.bytes, s.in.data), s.in.seen, s.in.bodyKind
		row.Output, p.outSeen, p.outKind = put(&sl.bytes, s.out.data), s.out.seen, s.out.bodyKind
		if i == 0 {
			row.Attrs = decision.Attrs{Schema: q.g.schema, Values: put(&sl.values, q.g.attrs)}
			row.Features = put(&sl.features, q.g.features)
			p.entity, p.hasEntity = q.g.entity, q.g.hasEntity
			first = row
		} else {
			row.Attrs, row.Features = first.Attrs, first.Features
		}
	}
}

// packRow copies a complete row: attributes and bodies as the list allows.
func (q *request) packRow(sl *slab, s *snapshot.Snapshot) {
	plan := q.r.plan
	p := sl.add()
	p.pack(sl, s)
	row := &p.row
	if s.Error != "" {
		row.Error = scrub(s.Error)
	}
	if row.KeepProb = q.keep; s.KeepProb != 0 {
		row.KeepProb *= s.KeepProb
	}
	row.Features = put(&sl.features, s.Features)
	row.Input, row.Output = nil, nil
	if plan.Input && s.Input != nil {
		p.inSeen = true
		row.Input, row.InputLen, p.inKind.cut = q.packBody(sl, s.Input, s.InputLen)
		if len(s.Redacted) > 0 && rewritten(s.Redacted, "input") {
			p.inKind = bodyKind{rewritten: true}
		}
	}
	if plan.Output && s.Output != nil {
		p.outSeen = true
		row.Output, _, p.outKind.cut = q.packBody(sl, s.Output, decision.Opt[int64]{})
	}
	if e := plan.Entity.Attr; e != "" {
		v := s.Attrs.Get(e)
		p.entity, p.hasEntity = v.String(), !v.IsNull()
	}
	switch {
	case plan.All:
		row.Attrs.Values = put(&sl.values, s.Attrs.Values)
	case len(s.Attrs.Values) == len(plan.fields) && s.Attrs.Schema == plan.same.Load():
		row.Attrs = decision.Attrs{Schema: plan.schema, Values: put(&sl.values, s.Attrs.Values)}
	default:
		row.Attrs = decision.Attrs{Schema: plan.schema, Values: q.project(sl, s.Attrs)}
	}
}

// project copies the attributes that the list names, and remembers a schema that is the
// list: its rows are copied at once.
func (q *request) project(sl *slab, a decision.Attrs) []decision.Value {
	at := q.r.plan.binder.Bind(a.Schema)
	n := len(sl.values)
	same := a.Schema != nil && a.Schema.Len() == len(at)
	for i, from := range at {
		sl.values = append(sl.values, a.At(from))
		same = same && i == from
	}
	if same {
		q.r.plan.same.Store(a.Schema)
	}
	return sl.values[n:len(sl.values):len(sl.values)]
}

// packBody copies what is kept of a body, and returns the length of the original.
func (q *request) packBody(sl *slab, src []byte, length decision.Opt[int64]) (kept []byte, total decision.Opt[int64], cut bool) {
	kept = put(&sl.bytes, src[:min(len(src), q.r.opts.MaxBody)])
	total = decision.Some(max(length.V, int64(len(src))))
	return kept, total, total.V > int64(len(kept))
}
