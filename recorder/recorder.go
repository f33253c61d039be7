package recorder

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// ErrClosed is returned by Flush after Close.
var ErrClosed = errors.New("recorder is closed")

// Sink keeps rows; snapshot/arrowfile has one that writes segments. All calls come from
// one goroutine. A call that fails or panics is counted, and the recorder goes on. An error
// of Append or Close that has, or wraps one that has, a method DropReason() string says
// under which reason the ledger counts the rows as dropped; others count as sink-error.
type Sink interface {
	// Append takes one row, which is valid only during the call.
	Append(s *snapshot.Snapshot) error
	// Flush makes everything appended safe, with what earlier calls failed to; lost is what
	// was sampled out and dropped since the last Flush, and is the sink's to keep even when
	// the call fails. It is called every Options.FlushInterval, also when nothing is new.
	Flush(lost snapshot.Ledger) error
	// Close seals; lost is as for Flush, total is the recorder's whole ledger. It is
	// called once, also after errors. After an error all rows that no Flush acknowledged
	// count as dropped, unless it has, or wraps one that has, a method Unwritten() (rows,
	// requests uint64): then those that were appended last do, so many of them.
	Close(lost, total snapshot.Ledger) error
}

// Recorder is the flight recorder: it takes decisions from middleware, wrapped backends
// and [Recorder.Record], and hands them to its sink on a goroutine of its own. All
// methods are safe for concurrent use, and do nothing on a nil Recorder.
type Recorder struct {
	opts Options
	plan *plan
	sink Sink
	in   *intake
	pool sync.Pool

	sampler *Sampler

	flushes chan chan error
	closing chan struct{}
	done    chan struct{}
	stop    sync.Once
	// closeErr is written before done is closed. deadlineErr is that of the Close whose
	// deadline abandoned the recorder, once abandoned has run.
	closeErr, deadlineErr error
	abandoned             sync.Once

	panics, unlisted, appendErrors, flushErrors atomic.Uint64
	lastErr                                     atomic.Pointer[string]

	killSwitch killSwitch
	shadows    shadowCounts
}

// New checks the options and starts the recorder; [Recorder.Close] stops it. Errors
// wrap [ErrOptions].
func New(sink Sink, opts Options) (*Recorder, error) {
	if sink == nil {
		return nil, fmt.Errorf("%w: no sink", ErrOptions)
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts.applyDefaults()
	p, err := compile(opts.Capture)
	if err != nil {
		return nil, err
	}
	sampler, err := NewSampler(opts.SampleRate, opts.Sampling, opts.EntityKey, opts.Random)
	if err != nil {
		return nil, err
	}
	r := &Recorder{opts: opts, plan: p, sink: sink, sampler: sampler, in: newIntake(&opts, shardsOf(runtime.GOMAXPROCS(0))),
		flushes: make(chan chan error), closing: make(chan struct{}), done: make(chan struct{})}
	if s, ok := sink.(originSetter); ok {
		s.SetOrigin(opts.EntityKeyID, opts.Capture.redaction(), opts.Capture.hexDigest())
	}
	r.watchKillFile()
	go newDrain(r).run()
	return r, nil
}

// shardsOf: one for each processor; two let callers pass one that was interrupted while
// it copied.
func shardsOf(processors int) int { return min(max(processors, 2), 16) }

// Schema returns the attributes of the capture list, as the rows carry them.
func (r *Recorder) Schema() *decision.Schema {
	if r == nil {
		return nil
	}
	return r.plan.schema
}

// Stats are a recorder's counts at one moment.
type Stats struct {
	// Ledger counts rows and requests; while some wait for the sink, Queued and
	// QueuedRequests are what it lacks to close.
	Ledger                 snapshot.Ledger
	Queued, QueuedRequests int
	// QueuedBytes are of bodies. MaxQueued is the most rows that ever waited.
	QueuedBytes int64
	MaxQueued   int
	// Acknowledged rows are safe: the sink has flushed them.
	Acknowledged uint64
	// AppendErrors and FlushErrors count failed calls of the sink, LastError is the text
	// of the last failure of any kind, without the credentials that can be found in it.
	AppendErrors, FlushErrors uint64
	LastError                 string
	// Panics counts panics of the recorder's own code, its options' functions and its
	// sink; all were contained.
	Panics uint64
	// Recording is false while the kill switch is on, since OffSince; Bypassed counts the
	// calls that passed by while it was. They stand in the ledger as dropped for the reason
	// switched-off: rows where the call shows how many it would have been, one a request
	// where nobody knows.
	Recording bool
	OffSince  time.Time
	Bypassed  uint64
	// Shadow counts what the recorder's shadows did.
	Shadow ShadowStats
	// Capacity is the number of rows that may wait, of which Queued do, and CapacityBytes
	// that of bytes, of which QueuedBytes do.
	Capacity      int
	CapacityBytes int64
	// Unlisted counts attributes that a handler set and the capture list does not name.
	Unlisted uint64
}

// Stats returns the counts.
func (r *Recorder) Stats() Stats {
	if r == nil {
		return Stats{}
	}
	s := Stats{AppendErrors: r.appendErrors.Load(), FlushErrors: r.flushErrors.Load(),
		Panics: r.panics.Load(), Unlisted: r.unlisted.Load()}
	if e := r.lastErr.Load(); e != nil {
		s.LastError = *e
	}
	r.tellBypassed()
	s.Recording, s.OffSince, s.Bypassed = r.Recording(), r.killSwitch.offSince(), r.killSwitch.calls.Load()
	s.Shadow = r.shadows.stats()
	r.in.stats(&s)
	return s
}

// Watermark returns how many rows are acknowledged: the sink has flushed this many, in
// the order in which they were handed over.
func (r *Recorder) Watermark() uint64 {
	if r == nil {
		return 0
	}
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	return r.in.acked.rows
}

// Flush waits until the rows that were handed over before the call are with the sink
// and flushed, and returns the watermark. The error is the sink's, the context's, or
// [ErrClosed].
func (r *Recorder) Flush(ctx context.Context) (uint64, error) {
	if r == nil {
		return 0, nil
	}
	reply := make(chan error, 1)
	select {
	case r.flushes <- reply:
	case <-r.closing:
		return r.Watermark(), ErrClosed
	case <-ctx.Done():
		return r.Watermark(), ctx.Err()
	}
	select {
	case err := <-reply:
		return r.Watermark(), err
	case <-ctx.Done():
		return r.Watermark(), ctx.Err()
	}
}

// Close refuses new rows, hands over and flushes what waits, seals the sink and checks
// the ledger; the error wraps [snapshot.ErrLedger] when it does not close. When ctx ends
// first, what is not acknowledged is counted as dropped (close-deadline) and the error
// wraps the context's; the sink is then still sealed as soon as it returns from the call
// that it hangs in, and the rows that it has taken count as written again, as its files
// have them. Further calls wait for the same end and return the same error.
func (r *Recorder) Close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.in.close()
	r.stop.Do(func() { close(r.closing) })
	select {
	case <-r.done:
		r.abandoned.Do(func() {}) // nothing is left to abandon
	case <-ctx.Done():
		r.abandoned.Do(func() { r.abandon(ctx.Err()) })
	}
	if r.deadlineErr != nil {
		return r.deadlineErr
	}
	return r.closeErr
}

// abandon leaves what the sink did not flush before the deadline of Close.
func (r *Recorder) abandon(cause error) {
	select {
	case <-r.done: // both at once
		return
	default:
	}
	n := r.in.abandon()
	r.deadlineErr = fmt.Errorf("recorder: close: %d rows were not flushed in time: %w", n, cause)
}

// contain is deferred around the recorder's own code on a caller's goroutine: a panic
// ends there, and the rows that it cost are counted. It must be deferred itself, and
// recovers no panic that was under way before.
func (r *Recorder) contain(rows int) {
	if p := recover(); p != nil {
		r.panicked(p)
		r.in.lost(DropPanic, rows)
	}
}

func (r *Recorder) panicked(p any) {
	r.panics.Add(1)
	r.failed(fmt.Errorf("panic: %v", p))
}

// failed remembers the text of an error, for Stats and the log.
func (r *Recorder) failed(err error) {
	s := scrub(err.Error())
	r.lastErr.Store(&s)
}

// guard runs f and turns a panic into an error.
func (r *Recorder) guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.panics.Add(1)
			err = fmt.Errorf("%s: panic: %v", what, p)
		}
	}()
	if err = f(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
