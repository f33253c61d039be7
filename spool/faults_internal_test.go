package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

var testDay = time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC)

func testRow(i int) *snapshot.Snapshot {
	at := testDay.Add(time.Duration(i) * time.Millisecond)
	return &snapshot.Snapshot{ID: decision.NewID(at), RequestID: decision.NewID(at), Time: at, Scenario: "fraud",
		Status: decision.OK, Action: "allow", KeepProb: 1, SourceID: fmt.Sprint(i)}
}

// writeSegments seals n segments of rows each in dir, and returns their names and bytes.
func writeSegments(t testing.TB, dir, host string, n, rows int) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	aside := t.TempDir() // a spool that runs already may take a segment before it is read here
	for i := range n {
		w, err := arrowfile.Create(aside, arrowfile.Options{Host: host, Boot: fmt.Sprintf("%012x%08x", testDay.UnixMilli(), i)})
		if err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			if err := w.Append(testRow(r)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: uint64(rows), Written: uint64(rows)}); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s-%012x%08x-00000001.arrow", host, testDay.UnixMilli(), i)
		data, err := os.ReadFile(filepath.Join(aside, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(aside, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		out[name] = data
	}
	return out
}

// fault is what a faulty store does with one create.
type fault int

const (
	works fault = iota
	failsBefore
	losesReply
	reset // writes nothing, and the read-back fails, too
	hangs
)

// faultyStore injects faults into the creates of a store, in turn.
type faultyStore struct {
	store
	mu     sync.Mutex
	plan   func(attempt int, key string) fault
	count  int
	broken bool
	// creates counts per key.
	creates map[string]int
}

var errInjected = errors.New("503 slow down")

func (f *faultyStore) create(ctx context.Context, o *object, body *os.File) error {
	f.mu.Lock()
	what := f.plan(f.count, o.key)
	f.count++
	f.creates[o.key]++
	f.broken = what == reset
	f.mu.Unlock()
	switch what {
	case failsBefore, reset:
		return errInjected
	case losesReply:
		return errors.Join(f.store.create(ctx, o, body), errInjected)
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	}
	return f.store.create(ctx, o, body)
}

func (f *faultyStore) open(ctx context.Context, key string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		f.broken = false
		return nil, errInjected
	}
	return f.store.open(ctx, key)
}

func withFaults(st store, plan func(int, string) fault) *faultyStore {
	return &faultyStore{store: st, plan: plan, creates: map[string]int{}}
}

// stores are the stores that need no server.
func stores(t *testing.T) map[string]store {
	d, err := openDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bucketStore{bucket: memblob.OpenBucket(nil), prefix: "some/prefix/"}
	t.Cleanup(func() { d.Close(); b.Close() })
	return map[string]store{"dir": d, "mem": b}
}

// unclosed keeps a store open after the spool, for the test to read.
type unclosed struct{ store }

func content(t *testing.T, st store, key string) []byte {
	t.Helper()
	r, err := st.open(t.Context(), key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func testOptions(t testing.TB) Options {
	o, err := Options{Service: "checkout", Poll: 5 * time.Millisecond, RetryBase: time.Millisecond, RetryMax: 4 * time.Millisecond,
		Timeout: 5 * time.Second}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func keyFor(name string) string { return "full/dt=2026-03-04/checkout/" + name }

func entries(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		if !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
