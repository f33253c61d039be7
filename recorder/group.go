package recorder

import (
	"context"
	"strconv"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// slot is a row and the memory that the row's slices point into. The two are apart
// because an absent slice is nil in a row, while its memory is kept for the next one.
type slot struct {
	row        snapshot.Snapshot
	in, out    body
	candidates []decision.Candidate
	redacted   []string
	entity     string
	hasEntity  bool
}

// body is what was seen of a request or response body. The bodies of a request stand
// on its first row.
type body struct {
	data []byte
	seen bool
	bodyKind
	// length is that of the original, where it is known.
	length decision.Opt[int64]
	// digest is set when the original did not fit data; else the drain computes it.
	digest decision.Opt[[32]byte]
}

type bodyKind struct {
	// cut: there was more of the body. json: its sender called it JSON. rewritten: it is what
	// redaction left of a whole body, so that its length says nothing.
	cut, json, rewritten bool
}

// group is what is known of one request: its rows, and what they share. The caller's
// goroutine fills one and its rows are packed into a slab; the drain has one of its own, for
// the rows that it unpacks.
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
	clear(s.candidates[:cap(s.candidates)])
	clear(s.redacted[:cap(s.redacted)])
	*s = slot{in: body{data: s.in.data[:0]}, out: body{data: s.out.data[:0]},
		candidates: s.candidates[:0], redacted: s.redacted[:0]}
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
// 1, and secrets in bodies and texts are replaced; everything else is stored as given,
// save Ref. Rows that do not pass Snapshot.Validate are dropped and counted as invalid.
// ctx matters under PolicyBlock only.
func (r *Recorder) Record(ctx context.Context, rows ...*snapshot.Snapshot) {
	if r == nil || len(rows) == 0 || r.bypass(ctx, len(rows)) {
		return
	}
	r.RecordBegun(ctx, rows...)
}

// RecordBegun is [Recorder.Record] for a request that began while recording was on, as
// the caller has asked [Recorder.Recording]: its rows are taken although recording may
// have been switched off since.
func (r *Recorder) RecordBegun(ctx context.Context, rows ...*snapshot.Snapshot) {
	if r == nil || len(rows) == 0 {
		return
	}
	defer r.contain(len(rows))
	factor, kept := r.keepRows(rows)
	if !kept {
		r.in.sampledOut(len(rows))
		return
	}
	var q request // a literal is made beside it and copied, which waits for its stores: 3 % of a call
	q.r, q.rows, q.keep = r, rows, factor
	for _, s := range rows {
		q.size += r.stored(r.plan.Input, s.Input) + r.stored(r.plan.Output, s.Output)
	}
	r.in.offer(ctx, &q)
}

// handOver completes the rows of a group and offers them; after it the group is no longer
// the caller's.
func (r *Recorder) handOver(ctx context.Context, g *group) {
	g.spread(&r.opts)
	r.in.offer(ctx, &request{r: r, g: g, keep: g.keep, size: g.bytes()})
	r.release(g)
}

// copyBody takes a whole body where the list allows bodies.
func (r *Recorder) copyBody(b *body, allowed bool, src []byte) {
	if !allowed || src == nil {
		return
	}
	b.seen, b.length = true, decision.Some(int64(len(src)))
	b.data = append(b.data[:0], src[:min(len(src), r.opts.MaxBody)]...)
	b.cut = len(b.data) < len(src)
}

// stored is how many bytes of a body are kept.
func (r *Recorder) stored(allowed bool, body []byte) int64 {
	if !allowed {
		return 0
	}
	return int64(min(len(body), r.opts.MaxBody))
}

// spread gives the rows what their request shares, save what is redacted first.
func (g *group) spread(o *Options) {
	for i := range g.slots {
		s := &g.slots[i]
		row := &s.row
		row.RequestID, row.Time = g.id, g.now.Round(0).UTC()
		row.Scenario = g.scenario
		orDefault(&row.Scenario, o.Scenario)
		orDefault(&row.Backend, o.Backend)
		if row.Artefact.HTTPStatus == 0 {
			row.Artefact.HTTPStatus = int16(g.httpStatus)
		}
		row.TraceID, row.SpanID, row.FeatureSet = g.trace, g.span, g.featureSet
		if !row.Latency.Set {
			row.Latency = g.latency
		}
		if len(row.Candidates) > 0 {
			row.Forced = decision.Some(len(row.Candidates) == 1)
		}
		if s.in.seen {
			row.InputLen, row.InputDigest = s.in.length, s.in.digest
		}
		if s.out.seen {
			row.OutputDigest = s.out.digest
		}
		conclude(row, g)
	}
}

// conclude gives a status to a decision that its handler left open or broke off.
func conclude(row *snapshot.Snapshot, g *group) {
	switch {
	case g.panicked:
		fail(row, decision.Error, CodePanic, "the handler panicked")
	case row.Status != decision.StatusNone:
	case g.httpStatus >= 500:
		fail(row, decision.Error, "http-"+strconv.Itoa(g.httpStatus), "the handler answered without a decision")
	default:
		fail(row, decision.Error, CodeNoAnswer, "the handler left the decision open")
	}
}

// fail makes a row one without an answer.
func fail(row *snapshot.Snapshot, s decision.Status, code, text string) {
	row.Status, row.Action, row.Params = s, "", ""
	row.Confidence, row.ConfidenceDef = decision.Opt[float64]{}, ""
	row.Reason, row.RuleID = decision.ReasonNone, ""
	switch s {
	case decision.Timeout:
		row.Reason = decision.ReasonTimeout
	case decision.Error, decision.NotReplayable:
		row.Reason = decision.ReasonError
	}
	row.ErrorCode, row.Error = code, text
}

// durationOf is a span of the monotonic clock, never negative: an injected clock may
// run backwards, a latency may not.
func durationOf(from, to time.Time) time.Duration {
	return max(0, to.Sub(from))
}
