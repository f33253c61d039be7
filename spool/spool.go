package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// UploadedDir is the subdirectory for uploaded segments under Options.Keep.
const UploadedDir = "uploaded"

const (
	// salvageEvery is how often segments of writers that died meanwhile are looked for.
	salvageEvery = time.Minute
	// complainEvery is how often the log hears of failures that go on.
	complainEvery = time.Minute
)

// Spool uploads the segments of one directory. All methods are safe for concurrent use.
type Spool struct {
	dir   string
	opts  Options
	store store

	// ctx ends the uploads; Close cancels it when its own context ends.
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}
	closing chan struct{}
	done    chan struct{}
	stop    sync.Once
	release func() error
	uploads sync.WaitGroup

	mu    sync.Mutex
	queue map[string]*segment
	// bytes of the queue; busy segments among them are being uploaded.
	bytes int64
	busy  int
	// full is what Full returns, which every row asks; room is closed when it ends, and nil
	// when nobody waits.
	full     atomic.Bool
	room     chan struct{}
	draining bool
	// failing: the last attempt failed, and not for the segment's own sake.
	failing    bool
	complained time.Time
	salvaged   time.Time
	stats      Stats
}

// Stats are a spool's counts at one moment.
type Stats struct {
	// Uploaded segments of this process, with their Bytes and Rows, are in the bucket and no
	// longer in the directory. Present of them were in the bucket already: an earlier attempt
	// had been more successful than it seemed, or another process was.
	Uploaded, Present, Bytes, Rows uint64
	// Pending sealed segments wait for their upload, with PendingBytes. OldestPending is how
	// long ago the oldest of them was sealed: the upload lag.
	Pending       int
	PendingBytes  int64
	OldestPending time.Duration
	// Conflicts and Unreadable of the pending segments will not be uploaded before somebody
	// looks: the bucket holds other bytes under their key, or the file is corrupt.
	Conflicts, Unreadable int
	// Failures counts attempts that failed; Refused the rows that a wrapped sink refused.
	Failures, Refused uint64
	// Salvaged counts segments of dead writers that were sealed.
	Salvaged uint64
	// LastError is the latest failure, without anything that looks like a credential.
	LastError string
}

// Open starts to upload what is and what will be sealed in dir, which is made when it is
// missing; [Spool.Close] ends it. ctx bounds the opening only. Errors wrap [ErrOptions]
// where another configuration helps. Whether the bucket can be reached shows with the
// first upload, in [Spool.Stats]: a store that is away does not keep a service from
// starting.
func Open(ctx context.Context, dir string, opts Options) (*Spool, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := parseTarget(o.URL)
	if err != nil {
		return nil, err
	}
	st, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	s, err := start(dir, o, st)
	if err != nil {
		return nil, errors.Join(err, closeStore(st))
	}
	return s, nil
}

func closeStore(st store) error {
	if c, ok := st.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// start is Open with a store; the options are complete.
func start(dir string, o Options, st store) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if o.Keep {
		if err := os.MkdirAll(filepath.Join(dir, UploadedDir), 0o755); err != nil {
			return nil, err
		}
	}
	s := &Spool{dir: dir, opts: o, store: st, queue: map[string]*segment{},
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	s.release = sync.OnceValue(func() error { return closeStore(st) })
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.salvage()
	if err := s.scan(true); err != nil {
		return nil, err
	}
	go s.run()
	return s, nil
}

// run is the goroutine that looks at the directory and starts uploads.
func (s *Spool) run() {
	defer close(s.done)
	defer s.uploads.Wait()
	closing := s.closing
	for {
		next := s.launch()
		if s.drained() {
			return
		}
		timer := time.NewTimer(next)
		select {
		case <-s.ctx.Done():
		case <-s.wake:
		case <-timer.C:
		case <-closing:
			closing = nil
			s.drain()
		}
		timer.Stop()
		if s.ctx.Err() != nil {
			return
		}
		s.look()
	}
}

// look brings the queue up to date, unless it is being drained: a directory that others
// keep filling would never be.
func (s *Spool) look() {
	if s.isDraining() {
		return
	}
	if s.opts.Now().Sub(s.salvaged) >= salvageEvery {
		s.salvage()
	}
	if err := s.scan(false); err != nil {
		s.complain("the spool cannot be read", err)
	}
}

func (s *Spool) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// drain takes a last look, and lets everything be tried at once.
func (s *Spool) drain() {
	if err := s.scan(false); err != nil {
		s.complain("the spool cannot be read", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for _, p := range s.queue {
		p.next = time.Time{}
	}
}

// drained: what Close waits for is done.
func (s *Spool) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		return false
	}
	for _, p := range s.queue {
		if p.busy || p.stuck == nil {
			return false
		}
	}
	return true
}

// poke prompts a look at the directory; it never waits.
func (s *Spool) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close uploads what is sealed by now, trying again until it succeeds or ctx ends, and
// ends the spool. The error wraps [ErrPending] when segments are left, with the last
// failure, and [ErrConflict] when conflicts are among them. Close the recorder first: it
// seals its last segment.
func (s *Spool) Close(ctx context.Context) error {
	s.stop.Do(func() { close(s.closing) })
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	s.cancel()
	s.mu.Lock()
	s.makeRoom()
	s.mu.Unlock()
	return errors.Join(s.left(), s.release())
}

// left says what was not uploaded.
func (s *Spool) left() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %d, %d bytes in %s", ErrPending, len(s.queue), s.bytes, s.dir)
	var last error
	for _, name := range s.names() {
		if p := s.queue[name]; p.err != nil && (last == nil || errors.Is(p.err, ErrConflict)) {
			last = p.err
		}
	}
	if last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// Stats returns the counts.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Pending, st.PendingBytes = len(s.queue), s.bytes
	now := s.opts.Now()
	for _, p := range s.queue {
		st.OldestPending = max(st.OldestPending, now.Sub(p.sealed))
		switch {
		case errors.Is(p.stuck, ErrConflict):
			st.Conflicts++
		case p.stuck != nil:
			st.Unreadable++
		}
	}
	return st
}

// complain logs a failure, at most one a while.
func (s *Spool) complain(what string, err error) {
	text := scrub(err.Error())
	s.mu.Lock()
	s.stats.LastError = text
	now := s.opts.Now()
	quiet := !s.complained.IsZero() && now.Sub(s.complained) < complainEvery
	if !quiet {
		s.complained = now
	}
	pending, bytes, failures := len(s.queue), s.bytes, s.stats.Failures
	s.mu.Unlock()
	if !quiet {
		s.opts.Logger.Warn(what, slog.String("error", text), slog.Int("pending", pending),
			slog.Int64("pending_bytes", bytes), slog.Uint64("failures", failures))
	}
}
