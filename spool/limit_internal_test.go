package spool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// bench is a recorder in front of a spool whose store can be away.
type bench struct {
	t    *testing.T
	st   store
	away atomic.Bool
	s    *Spool
	r    *recorder.Recorder
}

// newBench is full with the first sealed segment; every flush of rows seals one.
func newBench(t *testing.T, wait time.Duration, o recorder.Options) *bench {
	t.Helper()
	b := &bench{t: t, st: stores(t)["dir"]}
	b.away.Store(true)
	dir, so := t.TempDir(), testOptions(t)
	so.MaxBytes = 1
	var err error
	if b.s, err = start(dir, so, withFaults(unclosed{b.st}, func(int, string) fault {
		if b.away.Load() {
			return failsBefore
		}
		return works
	})); err != nil {
		t.Fatal(err)
	}
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "web-1", SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	o.FlushInterval = 5 * time.Millisecond
	if b.r, err = recorder.New(b.s.Wrap(w, wait), o); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited in vain until %s; spool %+v, recorder %+v", what, b.s.Stats(), b.r.Stats())
		}
	}
}

// fill records a row, and waits until it stands sealed in the spool, which it fills.
func (b *bench) fill() {
	b.r.Record(context.Background(), testRow(0))
	b.until("the spool is full", b.s.Full)
}

// closed ends both, and checks that every row that counts as written is in the store.
func (b *bench) closed() recorder.Stats {
	b.t.Helper()
	if err := b.r.Close(within(b.t, 20*time.Second)); err != nil {
		b.t.Error(err)
	}
	if err := b.s.Close(within(b.t, 20*time.Second)); err != nil {
		b.t.Error(err)
	}
	st := b.r.Stats()
	if err := st.Ledger.Check(); err != nil {
		b.t.Error(err)
	}
	if up := b.s.Stats(); up.Rows != st.Ledger.Written {
		b.t.Errorf("%d rows uploaded, %d written", up.Rows, st.Ledger.Written)
	}
	return st
}

// A full spool refuses rows; the ledger counts them under its name, and the recorder goes
// on when there is room.
func TestFullSpoolDrops(t *testing.T) {
	b := newBench(t, 0, recorder.Options{})
	b.fill()
	for i := range 50 {
		b.r.Record(context.Background(), testRow(i))
	}
	b.until("the rows are refused", func() bool { return b.s.Stats().Refused == 50 })
	b.away.Store(false)
	b.until("there is room", func() bool { return !b.s.Full() })
	b.r.Record(context.Background(), testRow(1))
	st := b.closed()
	if got := st.Ledger; got.Offered != 52 || got.Written != 2 || got.Dropped[DropFull] != 50 {
		t.Errorf("ledger %+v", got)
	}
}

// Under PolicyBlock callers wait for the store, and nothing is lost when it comes back
// within their bound.
func TestFullSpoolBlocks(t *testing.T) {
	b := newBench(t, 20*time.Second, recorder.Options{Policy: recorder.PolicyBlock, BlockTimeout: 20 * time.Second, QueueRows: 4})
	b.fill()
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			b.r.Record(context.Background(), testRow(i))
			done.Add(1)
		})
	}
	b.until("the queue is full", func() bool { return done.Load() >= 4 })
	time.Sleep(20 * time.Millisecond)
	if n := done.Load(); n > 5 {
		t.Errorf("%d callers did not wait", n)
	}
	b.away.Store(false)
	wg.Wait()
	if got := b.closed().Ledger; got.Written != 21 || got.DroppedTotal() != 0 {
		t.Errorf("ledger %+v", got)
	}
}

// The wait is bounded: a store that stays away costs callers their bound, and rows, which
// are counted.
func TestFullSpoolBlocksNotForever(t *testing.T) {
	b := newBench(t, time.Millisecond, recorder.Options{Policy: recorder.PolicyBlock, BlockTimeout: time.Millisecond, QueueRows: 4})
	b.fill()
	for i := range 30 {
		b.r.Record(context.Background(), testRow(i))
	}
	if err := b.r.Close(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	got := b.r.Stats().Ledger
	if err := got.Check(); err != nil || got.Written != 1 || got.DroppedTotal() != 30 || got.Dropped[DropFull] == 0 {
		t.Errorf("ledger %+v, %v", got, err)
	}
	if err := b.s.Close(within(t, 50*time.Millisecond)); !errors.Is(err, ErrPending) {
		t.Errorf("error %v", err)
	}
}

func TestAwaitEnds(t *testing.T) {
	b := newBench(t, 0, recorder.Options{})
	b.fill()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.s.Await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	waiting := make(chan error)
	go func() { waiting <- b.s.Await(context.Background()) }()
	if err := b.s.Close(within(t, 10*time.Millisecond)); !errors.Is(err, ErrPending) {
		t.Errorf("error %v", err)
	}
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
	if err := b.r.Close(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestFullErrorIsADropReason(t *testing.T) {
	var reason interface{ DropReason() string }
	if err := error(&FullError{Pending: 2, Max: 1}); !errors.As(err, &reason) || reason.DropReason() != "spool-full" {
		t.Errorf("%v", err)
	}
}
