package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// A lost reply is found out in the same attempt, by reading the object.
func TestPutSettles(t *testing.T) {
	for name, st := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				what    fault
				suspect bool
				verdict verdict
				err     error
			}{
				{what: works, verdict: stored},
				{what: works, suspect: true, verdict: stored},
				{what: losesReply, verdict: present},
				{what: failsBefore, err: errInjected},
				{what: reset, err: errInjected},
			} {
				o, f := body(t, t.Name()+t.TempDir(), 1000)
				faulty := withFaults(st, func(int, string) fault { return test.what })
				v, err := put(t.Context(), faulty, o, f, test.suspect)
				if !errors.Is(err, test.err) || (err == nil && v != test.verdict) {
					t.Errorf("%+v: verdict %v, error %v", test, v, err)
				}
				// What an attempt left behind, the next one finds.
				if v, err = put(t.Context(), st, o, rewound(t, f), true); err != nil || (v == present) != (test.err == nil) {
					t.Errorf("%+v, again: verdict %v, error %v", test, v, err)
				}
			}
		})
	}
}

func rewound(t *testing.T, f *os.File) *os.File {
	t.Helper()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}

// forbidding answers for absent objects that they are forbidden, as S3 does to a role that
// may not list.
type forbidding struct{ store }

var errForbidden = errors.New("403 forbidden")

func (f forbidding) open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := f.store.open(ctx, key)
	if errors.Is(err, errAbsent) {
		return nil, errForbidden
	}
	return r, err
}

func TestRoleThatMayNotList(t *testing.T) {
	dir, st := t.TempDir(), stores(t)["mem"]
	want := writeSegments(t, dir, "web-1", 3, 5)
	faults := []fault{failsBefore, losesReply, works}
	s, err := start(dir, testOptions(t), forbidding{withFaults(unclosed{st}, func(n int, _ string) fault { return faults[n%3] })})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		if !bytes.Equal(content(t, st, keyFor(name)), data) {
			t.Errorf("%s differs", name)
		}
	}
}

// busyStore is away, and counts the attempts at one time.
type busyStore struct {
	store
	count, inside, most atomic.Int64
}

func (b *busyStore) create(context.Context, *object, *os.File) error {
	n := b.inside.Add(1)
	if b.count.Add(1) > 4 {
		b.most.Store(max(b.most.Load(), n))
	}
	time.Sleep(2 * time.Millisecond)
	b.inside.Add(-1)
	return errInjected
}

// A store that is away is asked by one attempt at a time, however much waits.
func TestOneAttemptWhileFailing(t *testing.T) {
	dir := t.TempDir()
	writeSegments(t, dir, "web-1", 10, 1)
	st := &busyStore{store: stores(t)["mem"]}
	s, err := start(dir, testOptions(t), st)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); st.count.Load() < 20 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if err := s.Close(within(t, time.Millisecond)); !errors.Is(err, ErrPending) {
		t.Errorf("error %v", err)
	}
	if n := st.most.Load(); n != 1 {
		t.Errorf("%d attempts at one time", n)
	}
}
