package recorder

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Wrap returns b with every Decide recorded: attributes by the capture list, candidates
// with scores, answers, latency, stages, usage and artefact. The answer passes
// unchanged; what is recorded of it is what Response.Check makes of a copy. Closing the
// wrapped backend closes b, not the recorder. Explainer, Warmer and Readier are there
// when b has them, and are not recorded.
//
// Inside the middleware, the first Decide of a request fills the request's own
// recording, if the handler has opened no decision before; any further one becomes a
// request of its own, with entity, trace and sampling of the one around it.
//
// Each shadow's candidate is asked about the same requests, off the caller's path; see
// [Shadow]. A shadow of another recorder is left out.
func (r *Recorder) Wrap(b decision.Backend, shadows ...*Shadow) decision.Backend {
	if r == nil || b == nil {
		return b
	}
	w := &backend{Backend: b, r: r, info: b.Info()}
	for _, s := range shadows {
		if s != nil && s.r == r {
			w.shadows = append(w.shadows, s)
		}
	}
	e, explains := b.(decision.Explainer)
	wa, warms := b.(decision.Warmer)
	re, readies := b.(decision.Readier)
	switch {
	case explains && warms && readies:
		return struct {
			*backend
			decision.Explainer
			decision.Warmer
			decision.Readier
		}{w, e, wa, re}
	case explains && warms:
		return struct {
			*backend
			decision.Explainer
			decision.Warmer
		}{w, e, wa}
	case explains && readies:
		return struct {
			*backend
			decision.Explainer
			decision.Readier
		}{w, e, re}
	case warms && readies:
		return struct {
			*backend
			decision.Warmer
			decision.Readier
		}{w, wa, re}
	case explains:
		return struct {
			*backend
			decision.Explainer
		}{w, e}
	case warms:
		return struct {
			*backend
			decision.Warmer
		}{w, wa}
	case readies:
		return struct {
			*backend
			decision.Readier
		}{w, re}
	}
	return w
}

type backend struct {
	decision.Backend
	r    *Recorder
	info decision.Info
	warm atomic.Bool
	// shadows are asked after each call.
	shadows []*Shadow
}

// call is one Decide.
type call struct {
	start    time.Time
	cpu      time.Duration
	latency  time.Duration
	err      error
	returned bool
}

func (b *backend) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	if b.r.bypass(ctx, len(req.Questions)) {
		return b.Backend.Decide(ctx, req, out)
	}
	c := call{}
	b.begin(&c)
	defer b.end(ctx, req, out, &c)
	c.err = b.Backend.Decide(ctx, req, out)
	c.returned = true
	return c.err
}

func (b *backend) begin(c *call) {
	if b.r.opts.CPUTime != nil {
		runtime.LockOSThread()
		c.cpu = b.r.cpu()
	}
	c.start = b.r.clock()
}

// cpu is the thread's clock; a panic of the injected function must not reach the caller.
func (r *Recorder) cpu() (t time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(p)
		}
	}()
	return r.opts.CPUTime()
}

// stop ends what begin began, on the same goroutine.
func (b *backend) stop(c *call) {
	c.latency = durationOf(c.start, b.r.clock())
	if b.r.opts.CPUTime != nil {
		c.cpu = max(0, b.r.cpu()-c.cpu)
		runtime.UnlockOSThread()
	}
}

func (b *backend) end(ctx context.Context, req *decision.Request, out *decision.Response, c *call) {
	r := b.r
	b.stop(c)
	n := len(req.Questions)
	defer r.contain(n)
	outer := FromContext(ctx)
	if outer != nil && outer.r != r {
		outer = nil
	}
	if n == 0 {
		return
	}
	if b.join(outer, req, out, c) {
		b.shadow(outer.origins, req)
		return
	}
	if drawn := outer.drawn(r); !drawn && !r.sampler.late() {
		r.in.sampledOut(n)
	} else if !r.in.refuse(n) {
		g := r.request(ctx, outer, req.ID, c.start)
		b.fill(g, req, out, c)
		from := origins{id: g.id, head: drawn}
		from.share(r, g)
		r.settle(ctx, g, drawn)
		b.shadow(func() origins { return from }, req)
	}
}

// shadow puts a request that was recorded to the candidates.
func (b *backend) shadow(from func() origins, req *decision.Request) {
	if len(b.shadows) == 0 {
		return
	}
	defer b.r.contain(0)
	o := from()
	for _, s := range b.shadows {
		s.offer(&o, req)
	}
}

// drawn is the draw of the request around a call, or one of its own where there is none.
func (rec *Recording) drawn(r *Recorder) bool {
	if rec != nil {
		return rec.kept
	}
	return r.sampler.Draw()
}

// settle hands a complete group over, or counts it as sampled out.
func (r *Recorder) settle(ctx context.Context, g *group, drawn bool) {
	if !r.keep(g, drawn) {
		r.in.sampledOut(len(g.slots))
		r.release(g)
		return
	}
	r.handOver(ctx, g)
}

// join fills the recording of the request around the call, if it is still empty.
func (b *backend) join(rec *Recording, req *decision.Request, out *decision.Response, c *call) (joined bool) {
	rec.edit(func(g *group) {
		if len(g.slots) > 0 {
			return
		}
		joined = true
		b.fill(g, req, out, c)
	})
	return joined
}

// request starts the group of a request of its own: with entity and trace of the
// recording around it, if there is one.
func (r *Recorder) request(ctx context.Context, outer *Recording, id decision.ID, now time.Time) *group {
	g := r.newGroup()
	g.blank(r.plan)
	g.id, g.now = id, now
	if g.id.IsZero() {
		g.id = decision.NewID(now)
	}
	g.trace, g.span = r.traceOf(ctx)
	outer.edit(func(from *group) {
		g.entity, g.hasEntity = from.entity, from.hasEntity
		if !g.trace.Set {
			g.trace, g.span = from.trace, from.span
		}
	})
	return g
}

// fill turns a call into rows. Panics and errors become rows without an answer.
func (b *backend) fill(g *group, req *decision.Request, out *decision.Response, c *call) {
	g.scenario = req.Scenario
	if !req.Now.IsZero() {
		g.now = req.Now // the clock that the decision used, for its replay
	}
	g.project(b.r.plan, req.Attrs)
	if e := b.r.plan.Entity.Attr; e != "" {
		if v := req.Attrs.Get(e); !v.IsNull() {
			g.entity, g.hasEntity = v.String(), true
		}
	}
	if len(req.Features) > 0 {
		g.features, g.featureSet = append(g.features[:0], req.Features...), req.FeatureSet
	}
	checked := b.checked(g, req, out, c)
	cold := decision.Some(b.warm.CompareAndSwap(false, true))
	tape := tape(req)
	for i := range req.Questions {
		s := g.add()
		s.row.ID, s.row.Cold, s.row.ND = decision.NewID(c.start), cold, tape
		s.ask(&req.Questions[i])
		b.describe(&s.row, &checked, c)
		s.answer(&checked.Decisions[i])
	}
	if req.Body != nil {
		b.r.copyBody(&g.slots[0].in, b.r.plan.Input, req.Body)
	}
}

// checked returns a copy of the response after Response.Check, which is what a careful
// caller goes on with; the caller's own stays as it is.
func (b *backend) checked(g *group, req *decision.Request, out *decision.Response, c *call) decision.Response {
	resp := decision.Response{Decisions: g.answers[:0]}
	switch {
	case !c.returned:
		resp.Reset(len(req.Questions))
		resp.FailAll(decision.Error, CodePanic, "the backend panicked")
	case c.err != nil:
		resp.Reset(len(req.Questions))
		resp.FailAll(decision.Error, CodeBackend, c.err.Error())
	default:
		resp = *out
		resp.Decisions = append(g.answers[:0], out.Decisions...)
		resp.Check(req)
	}
	g.answers = resp.Decisions
	return resp
}

func (s *slot) ask(q *decision.Question) {
	s.row.Question, s.row.QuestionType = q.ID, q.Type
	for _, name := range q.Candidates {
		s.candidates = append(s.candidates, decision.Candidate{Action: name})
	}
	if len(s.candidates) > 0 {
		s.row.Candidates = s.candidates
	}
}

// describe gives a row what the response holds once: every row of a request carries its
// usage and cost, and who adds them up reads the first.
func (b *backend) describe(row *snapshot.Snapshot, resp *decision.Response, c *call) {
	row.Backend, row.Artefact = b.info.Name, resp.Artefact
	if row.Artefact == (decision.Artefact{}) {
		row.Artefact = b.info.Artefact
	}
	row.Latency, row.Stages = decision.Some(c.latency), resp.Stages
	row.Usage, row.Cost = resp.Usage, resp.Cost
	if b.r.opts.CPUTime != nil {
		row.Usage.CPU = decision.Some(c.cpu)
	}
	if resp.Attempts > 0 {
		row.Attempts = decision.Some(int8(min(resp.Attempts, 127)))
	}
	if b.info.Capabilities.Deterministic && c.returned && c.err == nil {
		row.Propensity, row.PropensityKind = decision.Some(1.0), snapshot.PropensityDeterministic
	}
}

// tape is the non-determinism of a request that the rows do not show otherwise.
func tape(req *decision.Request) string {
	if req.Seed == 0 {
		return ""
	}
	return `{"seed":` + strconv.FormatUint(req.Seed, 10) + `}`
}
