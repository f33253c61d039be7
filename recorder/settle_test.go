package recorder

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// The deadline of Close falls at any step of a slow sink that fails now and then. Once the
// sink is closed, its rows, what it was told and the recorder's ledger agree.
func TestAbandonedAnywhereTheLedgersAgree(t *testing.T) {
	const rounds = 100
	abandoned := 0
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			if abandonAfter(t, time.Duration(round)*50*time.Microsecond) {
				abandoned++
			}
		})
	}
	if abandoned < rounds/4 || abandoned > rounds-5 {
		t.Errorf("the deadline fell into %d of %d rounds: the test shows too little", abandoned, rounds)
	}
}

func abandonAfter(t *testing.T, deadline time.Duration) (abandoned bool) {
	sink := &memory{}
	calls := 0
	slow := func() error {
		time.Sleep(20 * time.Microsecond)
		if calls++; calls%17 == 0 {
			return errors.New("EIO")
		}
		return nil
	}
	sink.onAppend = func(*snapshot.Snapshot) error { return slow() }
	sink.onFlush = slow
	sink.onClose = func() error { _ = slow(); return nil }
	r, err := New(sink, Options{FlushInterval: time.Millisecond, FlushRows: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		a := row(i)
		r.Record(context.Background(), a, a, a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	err = r.Close(ctx)
	if led := r.Stats().Ledger; led.Check() != nil {
		t.Errorf("%v: at the deadline %+v", deadline, led)
	}
	if again := r.Close(context.Background()); !reflect.DeepEqual(again, err) {
		t.Errorf("%v: closed with %v, then %v", deadline, err, again)
	}
	s := r.Stats()
	if n := uint64(len(sink.all())); n != s.Ledger.Written || n != s.Acknowledged || s.Queued != 0 {
		t.Errorf("%v: the sink has %d rows, the recorder says %+v", deadline, n, s)
	}
	told := sink.lost.Clone()
	told.Add(snapshot.Ledger{Offered: s.Ledger.Written, Written: s.Ledger.Written,
		Requests: &snapshot.Counts{Offered: s.Ledger.Requests.Written, Written: s.Ledger.Requests.Written}})
	for what, got := range map[string]snapshot.Ledger{"losses and rows": told, "total": sink.total} {
		got, want := got.Clone(), s.Ledger.Clone()
		prune(got.Dropped, got.Requests.Dropped, want.Dropped, want.Requests.Dropped)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: the sink's %s are %+v %+v, the ledger is %+v %+v", deadline, what, got, got.Requests, want, want.Requests)
		}
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// prune removes reasons that count nothing.
func prune(counts ...map[string]uint64) {
	for _, c := range counts {
		for reason, n := range c {
			if n == 0 {
				delete(c, reason)
			}
		}
	}
}
