package recorder

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// The reasons under which the ledger counts dropped rows. The error
// of a [Sink] may name others.
const (
	DropQueueFull     = "queue-full"
	DropClosed        = "closed"
	DropCloseDeadline = "close-deadline"
	DropSinkError     = "sink-error"
	DropRedaction     = "redaction-failed"
	DropInvalid       = "invalid"
	DropPanic         = "recorder-panic"
	DropSwitchedOff   = "switched-off"
)

// intake is the bounded queue between the callers and the drain, and the ledger of both.
//
// A caller copies its rows into the slab of a shard that is its processor's as long as no
// other caller holds it. The drain takes the slabs of all shards at one moment and goes
// through them in the order of their tickets. So a caller shares nothing with another but
// the budget, and yet its requests stay in order.
//
// The ledger closes at every moment, not only at the end: who reads it stops all shards.
// Locks are taken in the order shards, mu.
type intake struct {
	budget
	slabRows int
	wakeAt   int
	block    time.Duration // how long an offer may wait; 0 under PolicyDrop

	shards []*shard
	// affinity hands each processor the shard that it used last.
	affinity sync.Pool
	next     atomic.Uint32

	// wake tells the drain that wakeAt rows are waiting.
	wake   chan struct{}
	closed atomic.Bool

	// mu guards the rest, which is the drain's side.
	mu   sync.Mutex
	free []*slab
	// room is closed when the drain makes room; nil when nobody waits.
	room      chan struct{}
	abandoned bool
	// settled counts what became of the rows that the drain took, and what was taken from
	// it. A row counts as written when the sink took it; unacked of those are not flushed yet.
	settled        account
	unacked, acked tally
	// late was with the sink, or on the way into it, when the recorder was abandoned: it
	// counts as dropped until the sink comes back.
	late tally
	// told is what the sink knows of losses.
	told account
}

// shard is a slab that one caller at a time fills, and the callers' side of the ledger.
type shard struct {
	mu    sync.Mutex
	index int
	slab  *slab
	full  []*slab
	account
	// refused counts what found the queue full, apart from the account: under overload a map
	// costs more than the rest.
	refused tally
	// pending is the room of a request that is being copied.
	pending count
	// highest is the most that this shard's callers saw held.
	highest count
	_       [64]byte // shards are neighbours in memory
}

func newIntake(o *Options, shards int) *intake {
	q := &intake{wake: make(chan struct{}, 1)}
	q.maxRows, q.maxBytes = o.QueueRows, min(o.QueueBytes, maxQueueBytes)
	q.slabRows = min(slabRows, o.QueueRows)
	q.wakeAt = min(1024, max(1, o.QueueRows/4)) // as a rule half of it waits, and still is in a cache
	if o.Policy == PolicyBlock {
		q.block = o.BlockTimeout
	}
	for i := range shards {
		q.shards = append(q.shards, &shard{index: i})
	}
	q.affinity.New = func() any { return q.shards[int(q.next.Add(1)-1)%len(q.shards)] }
	return q
}

// lock returns a locked shard: the processor's own, or another that is free. Who finds
// its own in other hands stays with the one it found.
func (q *intake) lock() *shard {
	own := q.affinity.Get().(*shard)
	if own.mu.TryLock() {
		return own
	}
	for i := 1; i < len(q.shards); i++ {
		if s := q.shards[(own.index+i)%len(q.shards)]; s.mu.TryLock() {
			return s
		}
	}
	own.mu.Lock()
	return own
}

func (q *intake) unlock(s *shard) {
	if s.pending > 0 {
		q.release(s.pending)
		s.pending = 0
	}
	s.mu.Unlock()
	q.affinity.Put(s)
}

// offer copies the request's rows into a slab, or counts them as dropped. It never waits
// under PolicyDrop.
func (q *intake) offer(ctx context.Context, r *request) {
	wait := q.block > 0 && q.ever(r.len(), r.size)
	if !q.try(r, !wait) && wait {
		q.await(ctx, r)
	}
}

// try returns false when there is no room; only the last try counts that as a drop. A panic
// within it leaves rows in the slab that no request claims, and nothing counted: unlock
// gives the room back.
//
// Room is reserved before the copy, not after it: an atomic operation waits until all
// stores before it are in the cache, and this way those of the copy are waited for once.
func (q *intake) try(r *request, last bool) bool {
	s := q.lock()
	defer q.unlock(s)
	n := r.len()
	if q.closed.Load() {
		s.turnAway(DropClosed, requestOf(n))
		return true
	}
	ticket, held, ok := q.reserve(n, r.size)
	if !ok {
		if last {
			s.refused.add(requestOf(n))
		}
		return false
	}
	s.pending = countOf(n, r.size)
	s.highest = max(s.highest, held)
	if s.slab == nil {
		s.slab = q.newSlab()
	}
	sl := s.slab
	first := len(sl.rows)
	r.pack(sl)
	head := &sl.rows[first]
	head.size, head.ticket, head.whole = s.pending, ticket, r.g == nil
	s.pending = 0
	s.offer(n)
	if sl.full(q.slabRows) {
		s.full = append(s.full, sl)
		s.slab = nil
	}
	if before := q.waiting(ticket); before < q.wakeAt && before+n >= q.wakeAt {
		q.poke()
	}
	return true
}

func (q *intake) newSlab() *slab {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.free); n > 0 {
		sl := q.free[n-1]
		q.free = q.free[:n-1]
		return sl
	}
	return newSlab(q.slabRows)
}

// recycle takes back an empty slab. As many as once were in use stay; the bounds of the
// queue bound them.
func (q *intake) recycle(sl *slab) {
	sl.reset()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free = append(q.free, sl)
}

// refuse counts a request of n rows as dropped, and returns true, when the queue has no
// room for them whatever their size: under overload a caller then saves the work of
// making them.
func (q *intake) refuse(n int) bool {
	if q.block > 0 || q.fits(n, 0) {
		return false
	}
	s := q.lock()
	defer q.unlock(s)
	s.refused.add(requestOf(n))
	return true
}

// poke wakes the drain; it never waits.
func (q *intake) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// await tries as often as room is made, until it has waited long enough.
func (q *intake) await(ctx context.Context, r *request) {
	limit := time.NewTimer(q.block)
	defer limit.Stop()
	for waiting := true; waiting; {
		// First, or room that is made between the try and the wait would go unnoticed.
		room := q.waitForRoom()
		if q.try(r, false) {
			return
		}
		q.poke()
		select {
		case <-room:
		case <-limit.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	q.try(r, true)
}

func (q *intake) waitForRoom() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.room == nil {
		q.room = make(chan struct{})
	}
	return q.room
}

// makeRoom wakes whoever waits; the mutex is held.
func (q *intake) makeRoom() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// sampledOut counts a request that sampling left out.
func (q *intake) sampledOut(n int) {
	if q.closed.Load() {
		q.lost(DropClosed, n)
		return
	}
	s := q.lock()
	defer q.unlock(s)
	s.offer(n)
	s.sampleOut(n)
}

// lost counts a request that was offered and lost before it reached the queue.
func (q *intake) lost(reason string, rows int) {
	q.lostAll(reason, requestOf(rows))
}

func (q *intake) lostAll(reason string, n tally) {
	s := q.lock()
	defer q.unlock(s)
	s.turnAway(reason, n)
}

// freeze stops all callers and the drain; thaw lets them go on.
func (q *intake) freeze() {
	for _, s := range q.shards {
		s.mu.Lock()
	}
	q.mu.Lock()
}

func (q *intake) thaw() {
	q.mu.Unlock()
	for _, s := range q.shards {
		s.mu.Unlock()
	}
}

// sum is the whole ledger; everything is frozen.
func (q *intake) sum() *account {
	var a account
	for _, s := range q.shards {
		a.add(&s.account)
		a.turnAway(DropQueueFull, s.refused)
	}
	a.add(&q.settled)
	return &a
}

// take moves the slabs of all shards to the lanes, one a shard, and returns their rows. What is left and what
// comes has later tickets than everything that was taken: all shards stand still.
func (q *intake) take(lanes []lane) (rows int) {
	q.freeze()
	defer q.thaw()
	for i, s := range q.shards {
		emptied := lanes[i].slabs[:0]
		lanes[i], s.full = lane{slabs: s.full}, emptied
		if s.slab != nil && len(s.slab.rows) > 0 {
			lanes[i].slabs = append(lanes[i].slabs, s.slab)
			s.slab = nil
		}
	}
	now := q.in.Load()
	return count(now - q.taken.Swap(now)).rows()
}

// settle counts what became of a request that was taken: written rows, the others dropped
// for the reason. It returns false once the recorder was abandoned, which has counted
// the rows as dropped.
func (q *intake) settle(size count, written int, reason string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.abandoned {
		q.late.add(requestOf(written))
		return false
	}
	q.settled.settle(size.rows(), written, reason)
	q.unacked.add(requestOf(written))
	q.release(size)
	q.makeRoom()
	return true
}

// report returns the losses that the sink has not been told of, which count as told
// from now on, and what waits for its acknowledgement.
func (q *intake) report() (lost snapshot.Ledger, unacked tally) {
	q.freeze()
	defer q.thaw()
	q.reprieve()
	return q.sum().losses(&q.told), q.unacked
}

// acknowledge counts rows that the sink has flushed.
func (q *intake) acknowledge(n tally) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reprieve()
	q.acked.rows += n.rows
	q.unacked.rows -= n.rows
	q.unacked.requests -= n.requests
}

// final returns what the sink gets to seal: losses not told yet, and the whole ledger.
func (q *intake) final() (lost, total snapshot.Ledger) {
	q.freeze()
	defer q.thaw()
	q.reprieve()
	sum := q.sum()
	return sum.losses(&q.told), sum.ledger()
}

// close refuses further offers; those under way are through when it returns.
func (q *intake) close() {
	q.closed.Store(true)
	q.freeze()
	defer q.thaw()
	q.makeRoom()
}

func (q *intake) stats(s *Stats) {
	q.freeze()
	defer q.thaw()
	sum := q.sum()
	waiting := sum.open()
	s.Ledger, s.Acknowledged = sum.ledger(), q.acked.rows
	s.Queued, s.QueuedRequests, s.QueuedBytes = int(waiting.rows), int(waiting.requests), q.held().bytes()
	s.Capacity, s.CapacityBytes = q.maxRows, q.maxBytes
	for _, shard := range q.shards {
		s.MaxQueued = max(s.MaxQueued, shard.highest.rows())
	}
}
