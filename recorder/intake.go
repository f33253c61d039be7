package recorder

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// The reasons under which the ledger counts dropped rows.
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
// One mutex guards all of it: an offer and what becomes of it are one step, so that the
// ledger closes at every moment, not only at the end. What callers do under it is an
// append of one pointer a request; the drain takes the whole queue by swapping slices.
// Sharding it is worth its price only when a packed row replaces the pointer.
type intake struct {
	maxRows  int
	maxBytes int64
	wakeAt   int
	block    time.Duration // how long an offer may wait; 0 under PolicyDrop

	// full is a hint that the queue has no room: then callers ask refuse before they copy.
	full atomic.Bool
	// wake tells the drain that wakeAt rows are waiting.
	wake chan struct{}

	mu     sync.Mutex
	groups []*group
	queued int // rows in groups
	// held are the rows of queue and drain that are not settled yet, with their bytes.
	held      int
	heldBytes int64
	// room is closed when the drain makes room; nil when nobody waits.
	room              chan struct{}
	closed, abandoned bool

	// ledger counts a row as written when the sink took it; unacked of those are not
	// flushed yet. told is what the sink knows of losses.
	ledger  snapshot.Ledger
	unacked uint64
	acked   uint64
	told    snapshot.Ledger
}

func newIntake(o *Options) *intake {
	q := &intake{maxRows: o.QueueRows, maxBytes: o.QueueBytes, wake: make(chan struct{}, 1)}
	q.wakeAt = min(1024, max(1, o.QueueRows/4))
	if o.Policy == PolicyBlock {
		q.block = o.BlockTimeout
	}
	return q
}

// offer counts the group's rows and queues them, or counts them as dropped and returns
// false. It never waits under PolicyDrop.
func (q *intake) offer(ctx context.Context, g *group) bool {
	n, size := len(g.slots), g.size
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.block > 0 {
		q.await(ctx, n, size)
	}
	q.ledger.Offered += uint64(n)
	switch {
	case q.closed:
		q.ledger.Drop(DropClosed, uint64(n))
		return false
	case !q.fits(n, size):
		q.full.Store(q.block == 0)
		q.ledger.Drop(DropQueueFull, uint64(n))
		return false
	}
	q.groups = append(q.groups, g)
	before := q.queued
	q.queued, q.held, q.heldBytes = q.queued+n, q.held+n, q.heldBytes+size
	if before < q.wakeAt && q.queued >= q.wakeAt {
		q.poke()
	}
	return true
}

// refuse counts n rows as dropped, and returns true, when the queue has no room for
// them whatever their size: under overload a caller then saves the copy.
func (q *intake) refuse(n int) bool {
	if !q.full.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fits(n, 0) {
		q.full.Store(false)
		return false
	}
	q.ledger.Offered += uint64(n)
	q.ledger.Drop(DropQueueFull, uint64(n))
	return true
}

// poke wakes the drain; it never waits.
func (q *intake) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *intake) fits(n int, size int64) bool {
	return q.held+n <= q.maxRows && q.heldBytes+size <= q.maxBytes
}

// await returns when the group fits, can never fit, or has waited long enough. It is
// called and returns with the mutex held.
func (q *intake) await(ctx context.Context, n int, size int64) {
	if q.closed || q.fits(n, size) || n > q.maxRows || size > q.maxBytes {
		return
	}
	limit := time.NewTimer(q.block)
	defer limit.Stop()
	for !q.closed && !q.fits(n, size) {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.poke()
		q.mu.Unlock()
		given := true
		select {
		case <-room:
		case <-limit.C:
			given = false
		case <-ctx.Done():
			given = false
		}
		q.mu.Lock()
		if !given {
			return
		}
	}
}

// makeRoom wakes whoever waits; the mutex is held.
func (q *intake) makeRoom() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// sampledOut counts the rows of a request that sampling left out.
func (q *intake) sampledOut(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ledger.Offered += uint64(n)
	if q.closed {
		q.ledger.Drop(DropClosed, uint64(n))
		return
	}
	q.ledger.SampledOut += uint64(n)
}

// lost counts rows that were offered and lost before they reached the queue.
func (q *intake) lost(reason string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ledger.Offered += uint64(n)
	q.ledger.Drop(reason, uint64(n))
}

// take gives the drain all waiting groups; spare becomes the new queue's memory.
func (q *intake) take(spare []*group) []*group {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.groups
	q.groups, q.queued = spare[:0], 0
	return taken
}

// settle counts what became of a group that was taken: written rows, the others dropped
// for the reason. It returns false once the recorder was abandoned, which has counted
// the rows already.
func (q *intake) settle(g *group, written int, reason string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.abandoned {
		return false
	}
	n := len(g.slots)
	q.held, q.heldBytes = q.held-n, q.heldBytes-g.size
	q.ledger.Written += uint64(written)
	q.unacked += uint64(written)
	q.ledger.Drop(reason, uint64(n-written))
	q.makeRoom()
	return true
}

// report returns the losses that the sink has not been told of, which count as told
// from now on, and how many rows wait for their acknowledgement.
func (q *intake) report() (lost snapshot.Ledger, unacked uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.untold(), q.unacked
}

func (q *intake) untold() snapshot.Ledger {
	lost := snapshot.Ledger{SampledOut: q.ledger.SampledOut - q.told.SampledOut}
	for reason, n := range q.ledger.Dropped {
		lost.Drop(reason, n-q.told.Dropped[reason])
	}
	lost.Offered = lost.SampledOut + lost.DroppedTotal()
	q.told.Add(lost)
	return lost
}

// acknowledge counts rows that the sink has flushed.
func (q *intake) acknowledge(rows uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.abandoned {
		q.acked += rows
		q.unacked -= rows
	}
}

// final returns what the sink gets to seal: losses not told yet, and the whole ledger.
func (q *intake) final() (lost, total snapshot.Ledger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.untold(), q.ledger.Clone()
}

// close refuses further offers.
func (q *intake) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.makeRoom()
}

// sealed settles the rows that were never acknowledged: they are safe when sealing
// succeeded, lost when it failed.
func (q *intake) sealed(ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ok {
		q.acked += q.unacked
	} else {
		q.ledger.Written -= q.unacked
		q.ledger.Drop(DropSinkError, q.unacked)
	}
	q.unacked = 0
}

// abandon counts everything that is not acknowledged as lost to the deadline of Close,
// and returns how many rows that were.
func (q *intake) abandon() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.abandoned {
		return 0
	}
	n := uint64(q.held) + q.unacked
	q.ledger.Written -= q.unacked
	q.ledger.Drop(DropCloseDeadline, n)
	q.groups, q.queued, q.held, q.heldBytes, q.unacked = nil, 0, 0, 0, 0
	q.abandoned = true
	return n
}

func (q *intake) isAbandoned() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.abandoned
}
