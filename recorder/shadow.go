package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Defaults of [ShadowOptions].
const (
	DefaultShadowConcurrency = 4
	DefaultShadowTimeout     = time.Second
	DefaultShadowRequest     = 256 << 10
)

// CodeDeadline is the error code of a shadow's row whose candidate did not answer in time.
const CodeDeadline = "shadow-deadline"

// ShadowOptions configure a [Shadow]; the zero value of a field is its default.
type ShadowOptions struct {
	// Rate is the share of the recorded requests that the candidate is asked about too, in
	// (0,1]; 0 means all.
	Rate float64
	// Random, when set, draws from [0,1) which requests these are; it must be safe for
	// concurrent use. By default a hash of the request's id says so, and says the same on
	// every host and for every shadow: two candidates at one rate see the same requests.
	Random func() float64
	// Concurrency bounds the calls of the candidate that are under way (4). A request
	// beyond it is skipped and counted, never waited for.
	Concurrency int
	// Timeout is the time that the candidate has (1 s). The row then says timeout. A
	// candidate that ignores its context goes on, and keeps its place of Concurrency until
	// it returns.
	Timeout time.Duration
	// MaxRequestBytes bounds the copy of a request (256 KiB): body, features and the text
	// of attributes. A larger request is skipped and counted.
	MaxRequestBytes int
}

func (o *ShadowOptions) validate() error {
	if !(o.Rate >= 0 && o.Rate <= 1) {
		return fmt.Errorf("%w: shadow rate %v is not in (0,1]", ErrOptions, o.Rate)
	}
	if min(o.Concurrency, o.MaxRequestBytes) < 0 || o.Timeout < 0 {
		return fmt.Errorf("%w: a negative limit of a shadow", ErrOptions)
	}
	orDefault(&o.Rate, 1)
	orDefault(&o.Concurrency, DefaultShadowConcurrency)
	orDefault(&o.Timeout, DefaultShadowTimeout)
	orDefault(&o.MaxRequestBytes, DefaultShadowRequest)
	return nil
}

// ShadowStats count requests: Asked = answered + TimedOut + Panicked + those under way.
type ShadowStats struct {
	// Asked were put to a candidate, Running are with it now: some of them may have timed
	// out already.
	Asked   uint64 `json:"asked"`
	Running int64  `json:"running"`
	// Busy and TooLarge were skipped: all places taken, or more bytes than may be copied.
	Busy     uint64 `json:"busy"`
	TooLarge uint64 `json:"too_large"`
	TimedOut uint64 `json:"timed_out"`
	Panicked uint64 `json:"panicked"`
}

// Skipped is the sum of what a candidate was not asked for lack of room.
func (s ShadowStats) Skipped() uint64 { return s.Busy + s.TooLarge }

type shadowCounts struct {
	asked, busy, tooLarge, timedOut, panicked atomic.Uint64
	running                                   atomic.Int64
}

func (c *shadowCounts) stats() ShadowStats {
	return ShadowStats{Asked: c.asked.Load(), Running: c.running.Load(), Busy: c.busy.Load(), TooLarge: c.tooLarge.Load(),
		TimedOut: c.timedOut.Load(), Panicked: c.panicked.Load()}
}

// Shadow asks a candidate backend what it would have decided, off the caller's path: on a
// copy of the request, after the answer was made, on a goroutine of its own. Nothing that
// the candidate does reaches the caller; its answers are rows with applied = shadow, the
// candidate's own name, artefact and latency, and a timeout, error or panic as status.
//
// A shadow's rows are a request of their own, because the rows of a request share one
// keep probability and one set of questions: their source_id is the request_id of the
// primary's rows in its 36-character form, which is what pairs the two
// ([snapshot.Snapshot.ShadowOf]); a replay leaves them out. A candidate is
// asked about requests that the head draw of the sampling keeps, whatever a tail rule
// finds in them, so that each shadow row has its primary's rows beside it; its keep
// probability is the head rate times Rate, and with Rate 1 and no sampling it is 1. What
// was skipped for lack of room is in no keep probability: it is in [ShadowStats].
type Shadow struct {
	r     *Recorder
	b     *backend
	opts  ShadowOptions
	slots chan struct{}

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

// Shadow returns a shadow of the recorder for [Recorder.Wrap], or for a service that
// calls [Shadow.Offer] itself. Errors wrap [ErrOptions]. A nil Recorder gives a nil
// Shadow, which does nothing.
func (r *Recorder) Shadow(candidate decision.Backend, o ShadowOptions) (*Shadow, error) {
	if r == nil {
		return nil, nil
	}
	if candidate == nil {
		return nil, fmt.Errorf("%w: no candidate to shadow with", ErrOptions)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Shadow{r: r, b: &backend{Backend: candidate, r: r, info: candidate.Info()}, opts: o,
		slots: make(chan struct{}, o.Concurrency)}, nil
}

// Offer puts a request to the candidate, if it is among those to ask and there is room.
// It copies what it needs and never waits. The id is that of the recorded request: of
// [FromContext] where there is a recording, else the request's own; without either there
// is nothing to pair with, and the request is left out. A request outside a recording is
// drawn by the head rate as well, by its id.
func (s *Shadow) Offer(ctx context.Context, req *decision.Request) {
	if s == nil || !s.r.Recording() {
		return
	}
	defer s.r.contain(0)
	if outer := FromContext(ctx); outer != nil && outer.r == s.r {
		from := outer.origins()
		s.offer(&from, req)
		return
	}
	from := s.r.undrawn(req)
	s.offer(&from, req)
}

// origins is what a shadow's rows take over from the recorded request.
type origins struct {
	id        decision.ID
	head      bool // the head draw keeps the request
	entity    string
	hasEntity bool
	trace     decision.Opt[[16]byte]
	span      decision.Opt[[8]byte]
}

func (rec *Recording) origins() origins {
	from := origins{id: rec.id, head: rec.kept}
	rec.edit(func(g *group) { from.share(rec.r, g) })
	return from
}

// undrawn is what a request outside a recording gives. Nobody has drawn for it, so it is
// drawn here, because the shadow's rows carry the head rate in their keep probability: by
// the id, so that a request that is offered twice is asked twice or not at all.
func (r *Recorder) undrawn(req *decision.Request) origins {
	from := origins{id: req.ID, head: r.sampler.DrawID(req.ID)}
	if e := r.plan.Entity.Attr; e != "" {
		if v := req.Attrs.Get(e); !v.IsNull() {
			from.entity, from.hasEntity = v.String(), true
		}
	}
	from.head = r.sampler.head(from.head, from.entity, from.hasEntity)
	return from
}

// share takes over what the group has, and holds the draw against its entity.
func (from *origins) share(r *Recorder, g *group) {
	from.entity, from.hasEntity, from.trace, from.span = g.entity, g.hasEntity, g.trace, g.span
	from.head = r.sampler.head(from.head, g.entity, g.hasEntity)
}

func (s *Shadow) offer(from *origins, req *decision.Request) {
	if !from.head || from.id.IsZero() || len(req.Questions) == 0 || !s.draws(from.id) {
		return
	}
	c := &s.r.shadows
	if requestBytes(req) > s.opts.MaxRequestBytes {
		c.tooLarge.Add(1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		c.busy.Add(1)
		return
	}
	c.asked.Add(1)
	c.running.Add(1)
	run := &shadowRun{s: s, from: *from, req: copyRequest(req)}
	run.req.Deadline = s.opts.Timeout
	s.runs.Add(1)
	go run.do()
}

// draws says whether a request is among those to ask.
func (s *Shadow) draws(id decision.ID) bool {
	switch {
	case s.opts.Rate >= 1:
		return true
	case s.opts.Random != nil:
		return s.opts.Random() < s.opts.Rate
	}
	return unit(idHash(id)) < s.opts.Rate
}

// idHash spreads the bits of an id, of which some are a time (splitmix64 by halves).
func idHash(id decision.ID) uint64 {
	x := mix64(binary.BigEndian.Uint64(id[:8]))
	return mix64(x ^ binary.BigEndian.Uint64(id[8:]))
}

func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps a hash to [0,1), evenly.
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// shadowRun is one request with the candidate.
type shadowRun struct {
	s    *Shadow
	from origins
	req  decision.Request
	call call
	// told guards the rows: the answer or the deadline gives them, whichever comes first.
	told sync.Once
}

// do asks, on a goroutine of its own. A candidate that hangs holds it, and its place,
// but its row is out at the deadline.
func (run *shadowRun) do() {
	s := run.s
	defer func() {
		<-s.slots
		s.r.shadows.running.Add(-1)
		s.runs.Done()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	s.b.begin(&run.call)
	defer time.AfterFunc(s.opts.Timeout, run.expire).Stop()
	out := run.ask(ctx)
	run.told.Do(func() { run.record(&run.call, out) })
}

// ask returns the answer of the candidate, whose panic ends here.
func (run *shadowRun) ask(ctx context.Context) (out *decision.Response) {
	s := run.s
	out = new(decision.Response)
	defer func() {
		s.b.stop(&run.call)
		if p := recover(); p != nil {
			s.r.shadows.panicked.Add(1)
			s.r.failed(fmt.Errorf("shadow: panic: %v", p))
		}
	}()
	run.call.err = s.b.Backend.Decide(ctx, &run.req, out)
	run.call.returned = true
	// A candidate that watches its context and comes back with that error timed out.
	if errors.Is(run.call.err, context.DeadlineExceeded) && ctx.Err() != nil {
		run.expire()
	}
	return out
}

// expire records the timeout unless the answer was there first. The request is read here
// while the candidate may still read it, too; nobody writes it.
func (run *shadowRun) expire() {
	run.told.Do(func() {
		run.s.r.shadows.timedOut.Add(1)
		out := new(decision.Response)
		out.Reset(len(run.req.Questions))
		out.FailAll(decision.Timeout, CodeDeadline, "no answer within "+run.s.opts.Timeout.String())
		run.record(&call{start: run.call.start, latency: run.s.opts.Timeout, returned: true}, out)
	})
}

// record hands the candidate's rows over.
func (run *shadowRun) record(c *call, out *decision.Response) {
	s, n := run.s, len(run.req.Questions)
	r := s.r
	defer r.contain(n)
	if r.in.refuse(n) {
		return
	}
	g := r.newGroup()
	g.blank(r.plan)
	g.id, g.now, g.keep = decision.NewID(c.start), c.start, r.sampler.rate*s.opts.Rate
	g.entity, g.hasEntity, g.trace, g.span = run.from.entity, run.from.hasEntity, run.from.trace, run.from.span
	s.b.fill(g, &run.req, out, c)
	source := run.from.id.String()
	for i := range g.slots {
		row := &g.slots[i].row
		row.Applied, row.SourceID = snapshot.AppliedShadow, source
		if c != &run.call {
			row.Usage.CPU = decision.Opt[time.Duration]{} // of a call that goes on nobody knows it
		}
	}
	r.handOver(context.Background(), g)
}

// Close takes no more requests, waits for those that are with the candidate, and closes
// it. When ctx ends first, the candidate is left open, because it is still at work, and
// the error says how many calls hang. Close a shadow before its recorder.
func (s *Shadow) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() { s.runs.Wait(); close(idle) }()
	select {
	case <-idle:
		return s.b.Backend.Close(ctx)
	case <-ctx.Done():
		return fmt.Errorf("shadow %s: %d calls have not returned: %w", s.b.info.Name, len(s.slots), ctx.Err())
	}
}

// requestBytes is what a copy of a request weighs, in the parts that can be large.
func requestBytes(req *decision.Request) int {
	n := len(req.Body) + 4*len(req.Features)
	for _, v := range req.Attrs.Values {
		n += len(v.Str())
	}
	for _, q := range req.Questions {
		n += len(q.ID)
		for _, c := range q.Candidates {
			n += len(c)
		}
	}
	return n
}

// copyRequest copies what the caller may reuse once its own Decide has returned. Texts
// are immutable and shared, and so is the schema.
func copyRequest(req *decision.Request) decision.Request {
	c := *req
	c.Attrs.Values = append([]decision.Value(nil), req.Attrs.Values...)
	c.Features = append([]float32(nil), req.Features...)
	if req.Body != nil {
		c.Body = append([]byte{}, req.Body...)
	}
	c.Questions = append([]decision.Question(nil), req.Questions...)
	for i := range c.Questions {
		q := &c.Questions[i]
		q.Candidates = append([]string(nil), q.Candidates...)
	}
	return c
}
