package recorder

import (
	"context"

	"github.com/clefbench/clefbench/decision"
)

// Start begins the recording of one request that no [Recorder.Middleware] sees: a gRPC
// call, a message of a queue, a step of a batch. The context that it returns carries the
// recording to [FromContext] and to wrapped backends; the caller gives it what the
// middleware would have read (attributes, entity, bodies) and calls [Recording.End] once
// the request is done. Without a recorder, or while recording is switched off, the
// context comes back without a recording, and the Recording is nil, which may be used like
// any other.
func (r *Recorder) Start(ctx context.Context) (context.Context, *Recording) {
	if r == nil {
		return ctx, nil
	}
	if r.bypass(ctx, 1) {
		return r.mark(ctx), nil
	}
	rec := r.open(ctx)
	if rec == nil {
		return ctx, nil
	}
	return context.WithValue(ctx, contextKey{}, rec), rec
}

// open returns nil when the recorder itself failed; the request goes on without it.
func (r *Recorder) open(ctx context.Context) (rec *Recording) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(p)
			rec = nil
		}
	}()
	now := r.opts.Clock()
	rec = &Recording{r: r, start: now, id: decision.NewID(now), kept: r.sampler.Draw(), g: r.newGroup()}
	g := rec.g
	g.id, g.now = rec.id, now
	g.blank(r.plan)
	g.trace, g.span = r.traceOf(ctx)
	return rec
}

// traceOf asks the hook for the ids of the trace that ctx belongs to. They go before
// those of a traceparent header: the header names the caller's span, the context the
// one of this service.
func (r *Recorder) traceOf(ctx context.Context) (trace decision.Opt[[16]byte], span decision.Opt[[8]byte]) {
	if r.opts.TraceFromContext == nil {
		return trace, span
	}
	t, s, ok := r.opts.TraceFromContext(ctx)
	if ok && t != [16]byte{} {
		trace = decision.Some(t)
		span = decision.Opt[[8]byte]{V: s, Set: s != [8]byte{}}
	}
	return trace, span
}

// End takes the rows out of reach and hands them over, as the middleware does when its
// handler has returned. A request for which no decision was opened leaves no row. ctx
// matters under PolicyBlock only. Only the first call counts.
func (rec *Recording) End(ctx context.Context) { rec.finish(ctx, true, nil) }

// Abort is End for a request whose handler panicked: its decisions are recorded as
// errors with the code panic, and where none was opened and Options.Scenario is set, one
// row says so. It does not recover: call it from a deferred function.
func (rec *Recording) Abort(ctx context.Context) { rec.finish(ctx, false, nil) }

// finish hands the rows over; fill adds what is known only now.
func (rec *Recording) finish(ctx context.Context, returned bool, fill func(g *group)) {
	if rec == nil {
		return
	}
	r, rows := rec.r, 0
	defer func() {
		if p := recover(); p != nil {
			r.panicked(p)
			r.in.lost(DropPanic, rows)
		}
	}()
	rec.mu.Lock()
	g := rec.g
	rec.g = nil
	rec.mu.Unlock()
	if g == nil {
		return
	}
	if len(g.slots) == 0 && !returned && r.opts.Scenario != "" {
		g.add().row.ID = decision.NewID(rec.start)
	}
	rows = len(g.slots)
	g.panicked = !returned
	switch {
	case rows == 0:
		r.release(g)
	case !r.keep(g, rec.kept):
		r.in.sampledOut(rows)
		r.release(g)
	default:
		g.latency = decision.Some(durationOf(rec.start, r.opts.Clock()))
		rec.bodies(g)
		if fill != nil {
			fill(g)
		}
		r.handOver(ctx, g)
	}
}

// FailOpen gives every decision that is open without an answer this outcome, as
// [Decision.Fail] does: what a handler that returned an error leaves behind.
func (rec *Recording) FailOpen(status decision.Status, code, text string) {
	rec.edit(func(g *group) {
		for i := range g.slots {
			if row := &g.slots[i].row; row.Status == decision.StatusNone {
				fail(row, status, code, scrub(text))
			}
		}
	})
}

// SetInput gives the request's body, SetOutput the response's; they are stored where the
// capture list allows it, cut to Options.MaxBody.
func (rec *Recording) SetInput(body []byte) { rec.setBody(body, false) }

// SetOutput gives the response's body.
func (rec *Recording) SetOutput(body []byte) { rec.setBody(body, true) }

func (rec *Recording) setBody(body []byte, output bool) {
	rec.edit(func(*group) {
		if output {
			rec.r.copyBody(&rec.out, rec.r.plan.Output, body)
		} else {
			rec.r.copyBody(&rec.in, rec.r.plan.Input, body)
		}
	})
}

// bodies moves what SetInput and SetOutput were given to the row that carries bodies.
func (rec *Recording) bodies(g *group) {
	first := &g.slots[0]
	if rec.in.seen {
		first.in = rec.in
	}
	if rec.out.seen {
		first.out = rec.out
	}
}
