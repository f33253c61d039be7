package recorder

import (
	"context"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// slot is a row and the memory that the row's slices point into. The two are apart
// because an absent slice is nil in a row, while its memory is kept for the next one.
type slot struct {
	row        snapshot.Snapshot
	attrs      []decision.Value
	in, out    body
	candidates []decision.Candidate
	features   []float32
	redacted   []string
	entity     string
	hasEntity  bool
}

// body is what was seen of a request or response body. The bodies of a request stand
// on its first row.
type body struct {
	data []byte
	// total counts the bytes that passed; it is the original length when complete.
	total    int64
	complete bool
	// length is the original length where it is known otherwise.
	length decision.Opt[int64]
	// digest is set when the original did not fit data; else the drain computes it.
	digest decision.Opt[[32]byte]
	seen   bool
	// json: its sender called it JSON. rewritten: it is what redaction left of a whole body,
	// so that its length says nothing.
	json, rewritten bool
}

// group is what is known of one request: its rows, and what they share. It belongs to
// the caller's goroutine until it is offered, then to the drain.
type group struct {
	slots []slot
	// whole: the rows came complete, through Record; the rest is not used.
	whole bool

	id         decision.ID
	now        time.Time
	scenario   string
	keep       float64
	entity     string
	hasEntity  bool
	schema     *decision.Schema
	attrs      []decision.Value
	features   []float32
	featureSet string
	redacted   []string
	latency    decision.Opt[time.Duration]
	httpStatus int
	panicked   bool
	trace      decision.Opt[[16]byte]
	span       decision.Opt[[8]byte]

	// size is what the bodies count for in the queue.
	size int64
	// answers is scratch for checking a response without touching it.
	answers []decision.Decision
}

// refill copies src into the memory of buf; nil stays nil and empty stays empty.
func refill[T any](buf *[]T, src []T) []T {
	if src == nil {
		return nil
	}
	*buf = append((*buf)[:0], src...)
	if *buf == nil {
		*buf = []T{}
	}
	return *buf
}

// add appends an empty row and returns it.
func (g *group) add() *slot {
	if n := len(g.slots); n < cap(g.slots) {
		g.slots = g.slots[:n+1]
	} else {
		g.slots = append(g.slots, slot{})
	}
	return &g.slots[len(g.slots)-1]
}

// bytes is what the group's bodies hold in the queue.
func (g *group) bytes() int64 {
	n := 0
	for i := range g.slots {
		n += len(g.slots[i].in.data) + len(g.slots[i].out.data)
	}
	return int64(n)
}

// Groups that grew beyond these are left to the garbage collector, so that one large
// request does not hold its memory for ever.
const (
	keepSlots = 64
	keepBytes = 64 << 10
)

func (s *slot) reset() {
	clear(s.attrs[:cap(s.attrs)])
	clear(s.candidates[:cap(s.candidates)])
	clear(s.redacted[:cap(s.redacted)])
	*s = slot{attrs: s.attrs[:0], in: body{data: s.in.data[:0]}, out: body{data: s.out.data[:0]},
		candidates: s.candidates[:0], features: s.features[:0], redacted: s.redacted[:0]}
}

// reset forgets the contents and keeps the memory. Values are cleared too: the pool
// must not keep a caller's strings alive.
func (g *group) reset() {
	for i := range g.slots {
		g.slots[i].reset()
	}
	clear(g.attrs[:cap(g.attrs)])
	clear(g.redacted[:cap(g.redacted)])
	clear(g.answers[:cap(g.answers)])
	*g = group{slots: g.slots[:0], attrs: g.attrs[:0], features: g.features[:0],
		redacted: g.redacted[:0], answers: g.answers[:0]}
}

func (g *group) poolable() bool {
	n := 0
	for i := range g.slots {
		n += cap(g.slots[i].in.data) + cap(g.slots[i].out.data)
	}
	return cap(g.slots) <= keepSlots && n <= keepBytes
}

func (r *Recorder) newGroup() *group {
	if g, ok := r.pool.Get().(*group); ok {
		return g
	}
	return new(group)
}

func (r *Recorder) release(g *group) {
	if g.poolable() {
		g.reset()
		r.pool.Put(g)
	}
}

// blank sets up the attributes of a group for the recorder's own schema.
func (g *group) blank(p *plan) {
	g.schema = p.schema
	if n := len(p.fields); cap(g.attrs) < n {
		g.attrs = make([]decision.Value, n)
	} else {
		g.attrs = g.attrs[:n]
	}
}

// project copies the attributes that the list names into g.
func (g *group) project(p *plan, a decision.Attrs) {
	if p.All {
		g.schema, g.attrs = a.Schema, append(g.attrs[:0], a.Values...)
		return
	}
	for i, at := range p.binder.Bind(a.Schema) {
		if v := a.At(at); !v.IsNull() {
			g.attrs[i] = v
		}
	}
}

// Record hands over the complete rows of one request: an import, or a service that
// fills its rows itself. The rows are copied; the caller may reuse them at once. The
// attributes are cut to the capture list and redacted as any others, sampling applies,
// error texts are cleaned as by [Decision.Fail], and an unset keep probability counts as
// 1; everything else is stored as given. Rows that do not pass Snapshot.Validate are dropped and counted as invalid. ctx matters
// under PolicyBlock only.
func (r *Recorder) Record(ctx context.Context, rows ...*snapshot.Snapshot) {
	if r == nil || len(rows) == 0 || r.bypass(len(rows)) {
		return
	}
	defer r.contain(len(rows))
	factor, kept := r.keepRows(rows)
	if !kept {
		r.in.sampledOut(len(rows))
		return
	}
	if r.in.refuse(len(rows)) {
		return
	}
	g := r.newGroup()
	g.whole = true
	for _, s := range rows {
		r.copyRow(g.add(), s, factor)
	}
	r.handOver(ctx, g)
}

// handOver offers a filled group; after it the group is no longer the caller's.
func (r *Recorder) handOver(ctx context.Context, g *group) {
	g.size = g.bytes()
	if !r.in.offer(ctx, g) {
		r.release(g)
	}
}

// copyRow copies a row; factor is what its keep probability is multiplied by.
func (r *Recorder) copyRow(dst *slot, src *snapshot.Snapshot, factor float64) {
	row := &dst.row
	*row = *src
	row.KeepProb *= factor
	if src.KeepProb == 0 {
		row.KeepProb = factor
	}
	row.Candidates = refill(&dst.candidates, src.Candidates)
	row.Features = refill(&dst.features, src.Features)
	row.Redacted = refill(&dst.redacted, src.Redacted)
	row.Error = scrub(src.Error)
	r.copyBody(&dst.in, r.plan.Input, src.Input, src.InputLen)
	dst.in.rewritten = rewritten(src.Redacted, "input")
	r.copyBody(&dst.out, r.plan.Output, src.Output, decision.Opt[int64]{})
	row.Input, row.Output = nil, nil
	if e := r.plan.Entity.Attr; e != "" {
		v := src.Attrs.Get(e)
		dst.entity, dst.hasEntity = v.String(), !v.IsNull()
	}
	if r.plan.All {
		row.Attrs.Values = refill(&dst.attrs, src.Attrs.Values)
		return
	}
	dst.attrs = dst.attrs[:0]
	for _, at := range r.plan.binder.Bind(src.Attrs.Schema) {
		dst.attrs = append(dst.attrs, src.Attrs.At(at))
	}
	row.Attrs = decision.Attrs{Schema: r.plan.schema, Values: dst.attrs}
}

// copyBody takes a body that is complete, unless its original length says otherwise,
// where the list allows bodies.
func (r *Recorder) copyBody(b *body, allowed bool, src []byte, length decision.Opt[int64]) {
	if !allowed || src == nil {
		return
	}
	b.seen, b.complete, b.total = true, true, max(length.V, int64(len(src)))
	b.data = append(b.data[:0], src[:min(len(src), r.opts.MaxBody)]...)
}

// durationOf is a span of the monotonic clock, never negative: an injected clock may
// run backwards, a latency may not.
func durationOf(from, to time.Time) time.Duration {
	return max(0, to.Sub(from))
}
