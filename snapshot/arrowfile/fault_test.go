package arrowfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// faultFS fails operations on purpose: op is the operation, and the call numbers in fails
// are those that fail, counted from 1.
type faultFS struct {
	osFS
	op    string
	fails map[int]bool
	err   error
	// short writes that many bytes before a write fails.
	short int
	// stuck makes truncation fail as well.
	stuck bool
	calls int
}

func (f *faultFS) trip(op string) error {
	if op != f.op {
		return nil
	}
	f.calls++
	if f.fails[f.calls] {
		return f.err
	}
	return nil
}

func (f *faultFS) Create(path string) (WriteFile, error) {
	if err := f.trip("create"); err != nil {
		return nil, err
	}
	file, err := f.osFS.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f}, nil
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.trip("rename"); err != nil {
		return err
	}
	return f.osFS.Rename(from, to)
}

func (f *faultFS) SyncDir(dir string) error {
	if err := f.trip("syncdir"); err != nil {
		return err
	}
	return f.osFS.SyncDir(dir)
}

type faultFile struct {
	WriteFile
	fs *faultFS
}

func (f *faultFile) Write(b []byte) (int, error) {
	if err := f.fs.trip("write"); err != nil {
		n, _ := f.WriteFile.Write(b[:min(f.fs.short, len(b))])
		if errors.Is(err, errShort) {
			err = nil // a short write without an error, against the contract of io.Writer
		}
		return n, err
	}
	return f.WriteFile.Write(b)
}

var errShort = errors.New("short write")

func (f *faultFile) Sync() error {
	if err := f.fs.trip("sync"); err != nil {
		return err
	}
	return f.WriteFile.Sync()
}

func (f *faultFile) Truncate(n int64) error {
	if f.fs.stuck {
		return syscall.EIO
	}
	return f.WriteFile.Truncate(n)
}

// faultRun appends rows, flushing every 10, keeping on after errors as a recorder does. It
// returns the rows that the writer took, how many of them were acknowledged by a Flush
// without an error, and the number of errors.
func faultRun(t *testing.T, dir string, opts Options, rows []*snapshot.Snapshot) (taken []*snapshot.Snapshot, acked, failed int) {
	t.Helper()
	opts.Host, opts.Boot = "h", "b"
	w, err := Create(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	note := func(err error) bool {
		if err != nil {
			failed++
		}
		return err == nil
	}
	for i, s := range rows {
		if note(w.Append(s)) {
			taken = append(taken, s)
		}
		if i%10 == 9 && note(w.Flush(snapshot.Ledger{})) {
			acked = len(taken)
			if w.Watermark() != uint64(acked) {
				t.Fatalf("watermark %d, %d rows acknowledged", w.Watermark(), acked)
			}
		}
	}
	if note(w.Close(snapshot.Ledger{}, totalOf(len(taken)))) {
		acked = len(taken)
	}
	return taken, acked, failed
}

func TestFaultsLoseNothingAcknowledged(t *testing.T) {
	at := func(calls ...int) map[int]bool {
		m := map[int]bool{}
		for _, c := range calls {
			m[c] = true
		}
		return m
	}
	for name, fs := range map[string]*faultFS{
		"disk full, nothing written":     {op: "write", fails: at(1, 3, 4), err: syscall.ENOSPC},
		"disk full, torn write":          {op: "write", fails: at(2, 5), err: syscall.ENOSPC, short: 777},
		"disk full, cannot cut":          {op: "write", fails: at(2, 4), err: syscall.ENOSPC, short: 777, stuck: true},
		"disk full at the first write":   {op: "write", fails: at(1), err: syscall.ENOSPC, short: 100, stuck: true},
		"short write without error":      {op: "write", fails: at(2), err: errShort, short: 100},
		"io error while syncing":         {op: "sync", fails: at(2, 3), err: syscall.EIO},
		"io error while syncing, sealed": {op: "sync", fails: at(11), err: syscall.EIO},
		"rename":                         {op: "rename", fails: at(1), err: syscall.EACCES},
		"sync of the directory":          {op: "syncdir", fails: at(1), err: syscall.EIO},
		"create":                         {op: "create", fails: at(1, 2, 3), err: syscall.EMFILE},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rows := randomRows(newGen(41), 100)
			opts := Options{FS: fs, Sync: SyncBatch, Seed: labelsOf(t, rows), SegmentBytes: 100 << 10}
			taken, acked, failed := faultRun(t, dir, opts, rows)
			if failed == 0 {
				t.Fatal("the fault was not reported")
			}
			if acked == 0 {
				t.Fatal("nothing was acknowledged")
			}
			for _, p := range segments(t, dir) {
				if _, err := Verify(p); err != nil {
					t.Errorf("a sealed file is not whole: %v", err)
				}
			}
			if _, err := RecoverDir(dir); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			got := withoutRefs(readDir(t, dir))
			if len(got) < acked {
				t.Fatalf("%d rows of %d acknowledged", len(got), acked)
			}
			diff(t, taken[:len(got)], got)
		})
	}
}

// On a full disk a full batch is not compressed again for every row.
func TestAppendLeavesAFailedWriteAloneForAWhile(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	fs := &faultFS{op: "write", fails: map[int]bool{1: true, 2: true}, err: syscall.ENOSPC}
	w, err := Create(t.TempDir(), Options{FS: fs, BatchRows: 1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	g := newGen(47)
	if err := w.Append(g.snapshot()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := w.Append(g.snapshot()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("append: %v", err)
		}
	}
	if fs.calls != 1 {
		t.Errorf("%d attempts to write", fs.calls)
	}
	if err := w.Flush(snapshot.Ledger{}); !errors.Is(err, syscall.ENOSPC) || fs.calls != 2 {
		t.Errorf("flush: %v after %d attempts", err, fs.calls)
	}
	now = now.Add(retryEvery)
	if err := w.Append(g.snapshot()); err != nil || w.Watermark() != 1 {
		t.Errorf("append: %v, watermark %d", err, w.Watermark())
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(2)); err != nil {
		t.Error(err)
	}
}

// When neither syncing nor cutting works, a batch that was not acknowledged may stand in
// two segments; nothing is missing.
func TestDoubleFaultMayRepeatButNeverLoses(t *testing.T) {
	dir := t.TempDir()
	rows := randomRows(newGen(42), 100)
	fs := &faultFS{op: "sync", fails: map[int]bool{2: true}, err: syscall.EIO, stuck: true}
	taken, acked, failed := faultRun(t, dir, Options{FS: fs, Sync: SyncBatch, Seed: labelsOf(t, rows)}, rows)
	if failed == 0 || acked != len(taken) {
		t.Fatalf("%d failures, %d of %d acknowledged", failed, acked, len(taken))
	}
	if _, err := RecoverDir(dir); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, s := range readDir(t, dir) {
		found[s.ID.String()]++
	}
	twice := 0
	for _, s := range taken {
		n := found[s.ID.String()]
		if n == 0 {
			t.Fatalf("row %v is missing", s.ID)
		}
		if n > 1 {
			twice++
		}
	}
	if twice > 10 {
		t.Errorf("%d rows stand twice, a batch has 10", twice)
	}
}

func TestIntervalSyncFailureIsReported(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	fs := &faultFS{op: "sync", fails: map[int]bool{1: true}, err: syscall.EIO}
	w, err := Create(t.TempDir(), Options{FS: fs, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	g := newGen(43)
	if err := errors.Join(w.Append(g.snapshot()), w.Flush(snapshot.Ledger{})); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	if err := w.Flush(snapshot.Ledger{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("flush: %v", err)
	}
	if w.Abandoned() != 1 {
		t.Errorf("%d segments given up", w.Abandoned())
	}
	if err := errors.Join(w.Append(g.snapshot()), w.Close(snapshot.Ledger{}, totalOf(2))); err != nil {
		t.Error(err)
	}
}

// A failed seal keeps the losses for the next segment.
func TestLossesSurviveAFailedSeal(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_700_000_000, 0)
	fs := &faultFS{op: "rename", fails: map[int]bool{1: true}, err: syscall.EACCES}
	w, err := Create(dir, Options{FS: fs, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	g := newGen(44)
	if err := errors.Join(w.Append(g.snapshot()), w.Flush(snapshot.Ledger{})); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if err := w.Flush(snapshot.Ledger{Offered: 3, SampledOut: 3}); !errors.Is(err, syscall.EACCES) {
		t.Fatalf("flush: %v", err)
	}
	total := snapshot.Ledger{Offered: 4, Written: 1, SampledOut: 3}
	if err := w.Close(snapshot.Ledger{}, total); err != nil {
		t.Fatal(err)
	}
	paths := segments(t, dir)
	if len(paths) != 1 {
		t.Fatalf("sealed %v", paths)
	}
	m := mustOpen(t, paths[0]).Meta()
	if m.Ledger.SampledOut != 3 || m.Total == nil || m.Total.Offered != 4 {
		t.Errorf("meta %+v", m)
	}
}

func TestCloseReportsAndStaysClosed(t *testing.T) {
	fs := &faultFS{op: "write", fails: map[int]bool{1: true, 2: true}, err: syscall.ENOSPC}
	w, err := Create(t.TempDir(), Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(newGen(45).snapshot()); err != nil {
		t.Fatal(err)
	}
	err = w.Close(snapshot.Ledger{}, totalOf(1))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "1 rows were not written") {
		t.Errorf("close: %v", err)
	}
	if again := w.Close(snapshot.Ledger{}, totalOf(1)); !errors.Is(again, syscall.ENOSPC) {
		t.Errorf("close again: %v", again)
	}
	if err := w.Append(newGen(45).snapshot()); !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := w.Flush(snapshot.Ledger{}); !errors.Is(err, ErrClosed) {
		t.Errorf("flush: %v", err)
	}
}

func TestOneFileWritersKeepTheirError(t *testing.T) {
	fs := &faultFS{op: "write", fails: map[int]bool{2: true}, err: syscall.ENOSPC, short: 10}
	path := filepath.Join(t.TempDir(), "o.arrow")
	w, err := CreateOutcomes(path, Options{FS: fs, BatchRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := newGen(46)
	for i := range 2 {
		if err := w.Append(g.outcome(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(g.outcome(2)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	for range 2 {
		if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a sealed file exists: %v", err)
	}
	if f := mustOpen(t, path+OpenExt); f.Meta().Rows != 1 {
		t.Errorf("%d rows are left", f.Meta().Rows)
	}
}
