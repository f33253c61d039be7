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
	var first packed
	for i := range q.g.slots {
		s := &q.g.slots[i]
		p := sl.add()
		sl.pack(p, &s.row, s.row.Error)
		p.keepProb = q.keep
		p.in, p.inKind = put(&sl.bytes, s.in.data), s.in.bodyKind
		p.out, p.outKind = put(&sl.bytes, s.out.data), s.out.bodyKind
		if i == 0 {
			p.schema, p.attrs = q.g.schema, put(&sl.values, q.g.attrs)
			p.features = put(&sl.features, q.g.features)
			p.entity, p.hasEntity = q.g.entity, q.g.hasEntity
			first = *p
		} else {
			p.schema, p.attrs, p.features = first.schema, first.attrs, first.features
		}
	}
}

// packRow copies a complete row: attributes and bodies as the list allows.
func (q *request) packRow(sl *slab, s *snapshot.Snapshot) {
	plan := q.r.plan
	p := sl.add()
	err := s.Error
	if err != "" {
		err = scrub(err)
	}
	sl.pack(p, s, err)
	if p.keepProb = q.keep; s.KeepProb != 0 {
		p.keepProb *= s.KeepProb
	}
	p.features = put(&sl.features, s.Features)
	if plan.Input && s.Input != nil {
		p.in, p.inputLen, p.inKind.cut = q.packBody(sl, s.Input, s.InputLen)
		if len(s.Redacted) > 0 && rewritten(s.Redacted, "input") {
			p.inKind = bodyKind{rewritten: true}
		}
	}
	if plan.Output && s.Output != nil {
		p.out, _, p.outKind.cut = q.packBody(sl, s.Output, decision.Opt[int64]{})
	}
	if e := plan.Entity.Attr; e != "" {
		v := s.Attrs.Get(e)
		p.entity, p.hasEntity = v.String(), !v.IsNull()
	}
	switch {
	case plan.All:
		p.schema, p.attrs = s.Attrs.Schema, put(&sl.values, s.Attrs.Values)
	case len(s.Attrs.Values) == len(plan.fields) && s.Attrs.Schema == plan.same.Load():
		p.schema, p.attrs = plan.schema, put(&sl.values, s.Attrs.Values)
	default:
		p.schema, p.attrs = plan.schema, q.project(sl, s.Attrs)
	}
}

// project copies the attributes that the list names, and remembers a schema that is the
// list: its rows are copied at once.
func (q *request) project(sl *slab, a decision.Attrs) span {
	at := q.r.plan.binder.Bind(a.Schema)
	all := span{uint32(len(sl.values)) + 1, uint32(len(at))}
	same := a.Schema != nil && a.Schema.Len() == len(at)
	for i, from := range at {
		sl.values = append(sl.values, a.At(from))
		same = same && i == from
	}
	if same {
		q.r.plan.same.Store(a.Schema)
	}
	return all
}

// packBody copies what is kept of a body, and returns the length of the original.
func (q *request) packBody(sl *slab, src []byte, length decision.Opt[int64]) (at span, total decision.Opt[int64], cut bool) {
	kept := src[:min(len(src), q.r.opts.MaxBody)]
	total = decision.Some(max(length.V, int64(len(src))))
	return put(&sl.bytes, kept), total, total.V > int64(len(kept))
}
