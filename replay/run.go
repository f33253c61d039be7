package replay

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Run replays the snapshots through the lanes. Snapshots come in the order of their
// Ref, rows of a request next to each other. The sequence ends after the audit, or with
// one error: of the plan ([ErrPlan]), of the snapshots, or of the context. A yielded
// outcome is valid until the next step.
func Run(ctx context.Context, snapshots iter.Seq2[*snapshot.Snapshot, error], lanes []Lane, plan Plan) iter.Seq2[*snapshot.Outcome, error] {
	return func(yield func(*snapshot.Outcome, error) bool) {
		if err := plan.validate(lanes); err != nil {
			yield(nil, err)
			return
		}
		r := newRunner(ctx, lanes, &plan, yield)
		for block, err := range blocks(requests(snapshots, &plan), plan.Block) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !r.block(block) {
				return
			}
		}
		if r.audit() || ctx.Err() == nil {
			return // done, or the caller has had enough
		}
		yield(nil, ctx.Err())
	}
}

// runner is the state of one replay.
type runner struct {
	ctx      context.Context
	lanes    []*competitor
	plan     *Plan
	yield    func(*snapshot.Outcome, error) bool
	order    []int // the permutation of a round of blocks
	turn     []int // the order of the block at hand
	seen     map[string]bool
	sample   *sample
	blockNo  int32
	progress Progress
	out      snapshot.Outcome
}

// answer is what a lane gave for one request of a block.
type answer struct {
	resp    decision.Response
	latency time.Duration
	cpu     decision.Opt[time.Duration]
}

func newRunner(ctx context.Context, lanes []Lane, p *Plan, yield func(*snapshot.Outcome, error) bool) *runner {
	r := &runner{ctx: ctx, lanes: compete(lanes, p.Block), plan: p, yield: yield, seen: map[string]bool{}, sample: newSample(p)}
	for i := range lanes {
		r.order = append(r.order, i)
	}
	r.turn = make([]int, len(lanes))
	r.progress.Phase = "replay"
	return r
}

// shuffle sets the order of the lanes for the next block. A round is as many blocks as
// there are lanes: it draws a permutation and rotates it, so that in each round every
// lane has every place once. Mere shuffling was unbalanced for hundreds of blocks, and a
// place can be worth a quarter of a microsecond. It depends on seed and block number
// alone, never on timing.
func (r *runner) shuffle() {
	n := len(r.order)
	round, at := int(r.blockNo)/n, int(r.blockNo)%n
	if at == 0 {
		rng := rand.New(rand.NewPCG(r.plan.Seed, uint64(round)))
		rng.Shuffle(n, func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	}
	for i := range r.turn {
		r.turn[i] = r.order[(i+at)%n]
	}
}

// block asks every lane about one block, and then yields what all of them answered: an
// interrupted block is left out for all lanes alike. False means stop.
func (r *runner) block(block []*request) bool {
	r.shuffle()
	for _, q := range block {
		r.sample.offer(q)
		r.progress.Requests++
		r.progress.Rows += int64(len(q.rows))
	}
	if !r.cold(block) {
		return false
	}
	for _, i := range r.turn {
		if !r.measure(r.lanes[i], block) {
			return r.stopped()
		}
		r.progress.Calls += int64(len(block))
		if r.plan.Progress != nil {
			r.plan.Progress(r.progress)
		}
	}
	for pos, i := range r.turn {
		if !r.emitBlock(r.lanes[i], block, int32(pos)) {
			return false
		}
	}
	r.blockNo++
	return true
}

// cold times each lane's first call on a scenario and then warms the lane up.
func (r *runner) cold(block []*request) bool {
	fresh := map[string][]*request{}
	var names []string
	for _, q := range block {
		if sc := q.req.Scenario; !r.seen[sc] {
			if fresh[sc] == nil {
				names = append(names, sc)
			}
			fresh[sc] = append(fresh[sc], q)
		}
	}
	for _, sc := range names {
		r.seen[sc] = true
		for _, i := range r.turn {
			if r.lanes[i].Backend != nil && !r.coldLane(r.lanes[i], fresh[sc]) {
				return false
			}
		}
	}
	return true
}

func (r *runner) coldLane(lane *competitor, reqs []*request) bool {
	a := &lane.answers[0]
	r.ask(lane, reqs[0], lane.copyOf(0, reqs[0]), a)
	if !r.emit(lane, reqs[0], a, func(o *snapshot.Outcome) { o.Phase = snapshot.PhaseCold }) {
		return false
	}
	if w, ok := lane.Backend.(decision.Warmer); ok {
		var some []*decision.Request
		for i, q := range reqs[:min(len(reqs), len(lane.copies))] {
			some = append(some, lane.copyOf(i, q))
		}
		// A backend that cannot be warmed up is measured as it is.
		_ = w.Warm(r.ctx, some)
	}
	for i := range r.plan.Warmup {
		if r.ctx.Err() != nil {
			return r.stopped()
		}
		q := reqs[i%len(reqs)]
		r.ask(lane, q, lane.copyOf(0, q), a)
	}
	return true
}

// measure asks one lane about one block; false means that the context has ended. CPU
// time is read once around the block, because a read costs more than many a decision,
// and shared out evenly.
func (r *runner) measure(lane *competitor, block []*request) bool {
	if lane.Backend == nil {
		return r.ctx.Err() == nil
	}
	for i, q := range block {
		lane.copyOf(i, q)
	}
	before, ok := cpuTime()
	for i, q := range block {
		if r.ctx.Err() != nil {
			return false
		}
		r.ask(lane, q, &lane.copies[i].req, &lane.answers[i])
	}
	after, _ := cpuTime()
	total, n := after-before, time.Duration(len(block))
	for i := range block {
		lane.answers[i].cpu = decision.Opt[time.Duration]{}
		if k := time.Duration(i); ok {
			lane.answers[i].cpu = decision.Some(total*(k+1)/n - total*k/n)
		}
	}
	return r.ctx.Err() == nil // a call that was cut off is no answer
}

// emitBlock yields what one lane answered for one block.
func (r *runner) emitBlock(lane *competitor, block []*request, pos int32) bool {
	place := func(o *snapshot.Outcome) {
		o.Phase, o.Block, o.Position = snapshot.PhaseMeasured, r.blockNo, pos
	}
	for i, q := range block {
		if lane.Backend == nil {
			if !r.emitRecorded(lane, q, place) {
				return false
			}
		} else if !r.emit(lane, q, &lane.answers[i], place) {
			return false
		}
	}
	return true
}

// stopped passes the context's error on as the last element.
func (r *runner) stopped() bool {
	r.yield(nil, r.ctx.Err())
	return false
}

// ask makes one timed call with the lane's own copy of the request. What goes wrong is an
// outcome. The answer is held to the original, whatever the backend did to its copy.
func (r *runner) ask(lane *competitor, q *request, own *decision.Request, a *answer) {
	ctx := r.ctx
	if r.plan.Timeout > 0 && lane.caps.Timeout == decision.TimeoutHard {
		c, cancel := context.WithTimeout(ctx, r.plan.Timeout)
		defer cancel()
		ctx = c
	}
	// A backend that fills nothing in must not pass an earlier answer off as its own.
	a.resp.Reset(len(q.req.Questions))
	start := time.Now()
	err := decide(ctx, lane.Backend, own, &a.resp)
	a.latency = time.Since(start)
	if err != nil {
		a.resp.Reset(len(q.req.Questions))
		a.resp.FailAll(decision.Error, "backend-failed", err.Error())
	}
	a.resp.Check(&q.req)
	if r.plan.Timeout > 0 && a.latency > r.plan.Timeout {
		a.resp.FailAll(decision.Timeout, "deadline", fmt.Sprintf("answered after %v, allowed %v", a.latency, r.plan.Timeout))
	}
}

// decide contains a panic: one bad backend must not end a run of hours.
func decide(ctx context.Context, b decision.Backend, req *decision.Request, out *decision.Response) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return b.Decide(ctx, req, out)
}

// emit yields one outcome a row; set fills in what depends on the phase.
func (r *runner) emit(lane *competitor, q *request, a *answer, set func(*snapshot.Outcome)) bool {
	for i, s := range q.rows {
		d := &a.resp.Decisions[i]
		r.out = snapshot.Outcome{
			Ref: s.Ref, ID: s.ID, RequestID: s.RequestID, Scenario: s.Scenario, Question: s.Question,
			Entity: s.Entity, KeepProb: s.KeepProb,
			Backend: lane.Name, Kind: lane.kind,
			Status: d.Status, Action: d.Action, Params: d.Params,
			Confidence: d.Confidence, ConfidenceDef: d.ConfidenceDef,
			Reason: d.Reason.Kind, RuleID: d.Reason.Rule, Skipped: d.Reason.Skipped,
			Candidates: d.Candidates, Artefact: a.resp.Artefact,
			Latency: decision.Some(a.latency), Stages: a.resp.Stages,
			Usage: a.resp.Usage, Cost: a.resp.Cost,
			Error: d.Error, ErrorCode: d.ErrorCode, Recorded: s.Action,
		}
		if !r.out.Usage.CPU.Set {
			r.out.Usage.CPU = a.cpu
		}
		if n := a.resp.Attempts; n > 0 {
			r.out.Attempts = decision.Some(int8(min(n, 127)))
		}
		set(&r.out)
		if !r.yield(&r.out, nil) {
			return false
		}
	}
	return true
}
