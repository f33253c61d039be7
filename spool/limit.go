package spool

import (
	"context"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// Sink is what a recorder writes to: recorder.Sink, as [Spool.Wrap] uses it.
type Sink interface {
	Append(s *snapshot.Snapshot) error
	Flush(lost snapshot.Ledger) error
	Close(lost, total snapshot.Ledger) error
}

// Full reports whether more than Options.MaxBytes wait for their upload.
func (s *Spool) Full() bool { return s.full.Load() }

// Await returns nil once the spool is not full. Else the error is that of ctx, or
// [ErrClosed] after Close.
func (s *Spool) Await(ctx context.Context) error {
	for {
		s.mu.Lock()
		if !s.Full() {
			s.mu.Unlock()
			return nil
		}
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return ErrClosed
		}
	}
}

// Wrap returns a sink in front of the writer of the spool's directory: while the spool is
// full, Append waits for room, at most wait, and then refuses the row with a [FullError],
// which a recorder counts under [DropFull].
//
// Under the recorder's PolicyDrop wait is 0. Under PolicyBlock it is the recorder's
// BlockTimeout: while Append waits, the recorder's queue fills, and callers wait for room
// in it, up to their own bound. What was appended before is flushed first, so that rows
// are not kept from the disk by a store that is away.
func (s *Spool) Wrap(sink Sink, wait time.Duration) Sink {
	return &limited{sink: sink, spool: s, wait: wait}
}

type limited struct {
	sink  Sink
	spool *Spool
	wait  time.Duration
}

// SetOrigin passes on what a recorder says of its rules, to a writer that keeps it.
func (l *limited) SetOrigin(entityKeyID, redaction, captureList string) {
	type originSetter interface {
		SetOrigin(entityKeyID, redaction, captureList string)
	}
	if s, ok := l.sink.(originSetter); ok {
		s.SetOrigin(entityKeyID, redaction, captureList)
	}
}

// Append implements Sink.
func (l *limited) Append(row *snapshot.Snapshot) error {
	if !l.spool.Full() || l.await() {
		return l.sink.Append(row)
	}
	l.spool.mu.Lock()
	defer l.spool.mu.Unlock()
	l.spool.stats.Refused++
	return &FullError{Pending: l.spool.bytes, Max: l.spool.opts.MaxBytes}
}

// await reports whether there is room within the wait.
func (l *limited) await() bool {
	if l.wait <= 0 {
		return false
	}
	_ = l.sink.Flush(snapshot.Ledger{}) // a failure comes back with the recorder's own flush
	ctx, cancel := context.WithTimeout(context.Background(), l.wait)
	defer cancel()
	return l.spool.Await(ctx) == nil
}

// Flush implements Sink.
func (l *limited) Flush(lost snapshot.Ledger) error {
	err := l.sink.Flush(lost)
	l.spool.poke()
	return err
}

// Close implements Sink. It leaves the spool open: what this sealed is uploaded by
// [Spool.Close].
func (l *limited) Close(lost, total snapshot.Ledger) error {
	return l.sink.Close(lost, total)
}
