package arrowfile

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// accounts recovers a directory and returns the sum of its segments' ledgers, each of which
// must verify, and the total of the last, if it has one.
func accounts(t *testing.T, dir string) (sum snapshot.Ledger, total *snapshot.Ledger) {
	t.Helper()
	if _, err := RecoverDir(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range segments(t, dir) {
		r, err := Verify(p)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(r.Meta.Ledger)
		total = r.Meta.Total
	}
	return sum, total
}

// losses are n requests of one row each that a recorder dropped.
func losses(n uint64) snapshot.Ledger {
	dropped := map[string]uint64{"queue-full": n}
	return snapshot.Ledger{Offered: n, Dropped: dropped, Requests: &snapshot.Counts{Offered: n, Dropped: map[string]uint64{"queue-full": n}}}
}

// closed is the ledger of written rows, each a request, and losses.
func closed(written, lost uint64) snapshot.Ledger {
	l := losses(lost)
	l.Add(snapshot.Ledger{Offered: written, Written: written, Requests: &snapshot.Counts{Offered: written, Written: written}})
	return l
}

// sealFaults let the seal fail at each of its steps, of which op is the n-th call since it
// began.
func sealFaults() map[string]*faultFS {
	first := map[int]bool{1: true}
	return map[string]*faultFS{
		"footer does not fit":            {op: "write", fails: first, err: syscall.ENOSPC, short: 100},
		"footer torn, cannot be cut":     {op: "write", fails: first, err: syscall.ENOSPC, short: 100, stuck: true},
		"sync of the footer":             {op: "sync", fails: first, err: syscall.EIO},
		"sync of the footer, cannot cut": {op: "sync", fails: first, err: syscall.EIO, stuck: true},
		"rename":                         {op: "rename", fails: first, err: syscall.EACCES},
		"sync of the directory":          {op: "syncdir", fails: first, err: syscall.EIO},
	}
}

// A segment that reached its age cannot be sealed while losses are pending. Whatever
// becomes of its footer, they count once: here it is recovered as it stands, and once
// more after the disk lost the footer that was not synced.
func TestLossesCountOnceThroughFailedSeals(t *testing.T) {
	for name := range sealFaults() {
		for _, idle := range []bool{false, true} {
			for _, cut := range []bool{false, true} {
				fs := sealFaults()[name]
				armed := fs.fails
				fs.fails = nil
				dir := t.TempDir()
				now := time.Unix(1_700_000_000, 0)
				w, err := Create(dir, Options{FS: fs, SegmentAge: time.Minute, Sync: SyncNever, Now: func() time.Time { return now }})
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(w.Append(plainRow("s", "a")), w.Flush(snapshot.Ledger{})); err != nil {
					t.Fatal(err)
				}
				batches := w.seg.size
				path := w.seg.path
				written := uint64(1)
				now = now.Add(2 * time.Minute)
				w.lossTime = now // no batch for the losses alone
				if !idle {
					written++
					if err := w.Append(plainRow("s", "a")); err != nil {
						t.Fatal(err)
					}
				}
				fs.calls, fs.fails = 0, armed
				if err := w.Flush(losses(5)); !errors.Is(err, fs.err) {
					t.Fatalf("%s: flush: %v", name, err)
				}
				if err := w.Close(losses(2), closed(written, 7)); err != nil {
					t.Fatalf("%s: close: %v", name, err)
				}
				if cut && name != "sync of the directory" { // that one is sealed
					tear(t, path+OpenExt, batches)
				}
				sum, total := accounts(t, dir)
				if want := closed(written, 7); !reflect.DeepEqual(sum, want) || !reflect.DeepEqual(total, &want) {
					t.Errorf("%s, idle %v, cut %v: the ledgers sum up to %+v, total %+v, want %+v", name, idle, cut, sum, total, want)
				}
			}
		}
	}
}

// tear cuts an open file in the middle of its footer, where it has one.
func tear(t *testing.T, path string, batches int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(batches + (info.Size()-batches)/2); err != nil {
		t.Fatal(err)
	}
}

// The last seal fails. With its footer the file has the total, and the ledgers sum up to
// it; without, there is no total, so that nobody takes the ledgers for everything.
func TestLastSealFails(t *testing.T) {
	for name, fs := range sealFaults() {
		armed := fs.fails
		fs.fails = nil
		dir := t.TempDir()
		w, err := Create(dir, Options{FS: fs, Sync: SyncNever})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(plainRow("s", "a")), w.Flush(losses(1))); err != nil {
			t.Fatal(err)
		}
		fs.calls, fs.fails = 0, armed
		err = w.Close(losses(2), closed(1, 3))
		var left *UnwrittenError
		if !errors.Is(err, fs.err) || errors.As(err, &left) {
			t.Fatalf("%s: close: %v", name, err)
		}
		sum, total := accounts(t, dir)
		switch want := closed(1, 3); {
		case strings.HasPrefix(name, "footer"):
			if had := closed(1, 1); !reflect.DeepEqual(sum, had) || total != nil {
				t.Errorf("%s: the ledgers sum up to %+v, total %+v", name, sum, total)
			}
		case !reflect.DeepEqual(sum, want) || !reflect.DeepEqual(total, &want):
			t.Errorf("%s: the ledgers sum up to %+v, total %+v", name, sum, total)
		}
	}
}

// quotaError is an error with a reason of its own.
type quotaError struct{ error }

func (quotaError) DropReason() string { return "quota" }
func (e quotaError) Unwrap() error    { return e.error }

// What Close cannot write moves from written to dropped, in the total and in the sum.
func TestUnwrittenRowsAreDropped(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
	}{{syscall.ENOSPC, "sink-error"}, {quotaError{syscall.ENOSPC}, "quota"}} {
		// Writes are: the first batch, the second one in Flush and in Close, the footer.
		fs := &faultFS{op: "write", fails: map[int]bool{2: true, 3: true}, err: c.err, short: 50}
		dir := t.TempDir()
		w, err := Create(dir, Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		across := requestRows(3)
		if err := errors.Join(w.Append(across[0]), w.Flush(snapshot.Ledger{})); err != nil {
			t.Fatal(err)
		}
		// Two rows of a request that began in the batch before, two of another.
		for _, s := range append(across[1:], requestRows(2)...) {
			if err := w.Append(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(losses(2)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("flush: %v", err)
		}
		total := losses(2)
		total.Add(snapshot.Ledger{Offered: 5, Written: 5, Requests: &snapshot.Counts{Offered: 2, Written: 2}})
		given := total.Clone()
		err = w.Close(snapshot.Ledger{}, total)
		var left *UnwrittenError
		if !errors.As(err, &left) || !errors.Is(err, syscall.ENOSPC) || left.Rows != 4 || left.Requests != 1 || left.DropReason() != c.reason {
			t.Fatalf("close: %v", err)
		}
		if !reflect.DeepEqual(total, given) {
			t.Error("the caller's total was changed")
		}
		want := snapshot.Ledger{Offered: 7, Written: 1, Dropped: map[string]uint64{"queue-full": 2, c.reason: 4},
			Requests: &snapshot.Counts{Offered: 4, Written: 1, Dropped: map[string]uint64{"queue-full": 2, c.reason: 1}}}
		sum, got := accounts(t, dir)
		if !reflect.DeepEqual(sum, want) || !reflect.DeepEqual(got, &want) {
			t.Errorf("the ledgers sum up to %+v, total %+v, want %+v", sum, got, want)
		}
	}
}

// A total that counts less than the writer took still closes.
func TestUnwrittenRowsOfATotalWithoutThem(t *testing.T) {
	for _, total := range []snapshot.Ledger{{}, losses(1), totalOf(1), totalOf(5)} {
		fs := &faultFS{op: "write", fails: map[int]bool{1: true}, err: syscall.ENOSPC}
		dir := t.TempDir()
		w, err := Create(dir, Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.Append(plainRow("s", "a")); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(snapshot.Ledger{}, total); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("close: %v", err)
		}
		sum, got := accounts(t, dir)
		if sum.Dropped["sink-error"] != 2 || got == nil || got.Offered != total.Offered || got.Check() != nil {
			t.Errorf("sum %+v, total %+v of %+v", sum, got, total)
		}
	}
}
