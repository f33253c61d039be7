package arrowfile

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// fileBytes is the size of all segments of a directory, sealed and open.
func fileBytes(t *testing.T, dir string) (n uint64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue // what is kept for the next recorder
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += uint64(info.Size())
	}
	return n
}

func TestStatsFollowTheWriter(t *testing.T) {
	w := startWriting(t, Options{SegmentAge: time.Minute})
	if got := w.Stats(); got != (Stats{}) {
		t.Errorf("before the first row: %+v", got)
	}
	w.append(requestRows(3)...)
	if got := w.Stats(); got != (Stats{}) {
		t.Errorf("rows that wait: %+v", got)
	}
	w.flush()
	first := w.Stats()
	if first.Rows != 3 || first.Requests != 1 || first.Batches != 1 || first.Segments != 0 || !first.OpenSince.Equal(w.now) || !first.LastSeal.IsZero() {
		t.Errorf("one batch: %+v", first)
	}
	if first.EncodeTime <= 0 || first.Bytes != fileBytes(t, w.dir) {
		t.Errorf("%d bytes of %d, encoded in %v", first.Bytes, fileBytes(t, w.dir), first.EncodeTime)
	}
	w.now = w.now.Add(2 * time.Minute)
	w.append(requestRows(1)...)
	w.flush() // too old: sealed, and a new one begun
	got := w.Stats()
	if got.Segments != 1 || !got.LastSeal.Equal(w.now) || !got.OpenSince.Equal(w.now) || got.Bytes != fileBytes(t, w.dir) || got.EncodeTime <= first.EncodeTime {
		t.Errorf("after a seal: %+v, %d bytes", got, fileBytes(t, w.dir))
	}
	w.done()
	got = w.Stats()
	if got.Segments != 2 || !got.OpenSince.IsZero() || got.Bytes != fileBytes(t, w.dir) || got.Rows != 4 || got.Requests != 2 || got.Batches != 2 || got.Abandoned != 0 {
		t.Errorf("after Close: %+v, %d bytes", got, fileBytes(t, w.dir))
	}
}

func TestStatsCountAbandonedSegments(t *testing.T) {
	fs := &faultFS{op: "sync", fails: map[int]bool{1: true}, err: syscall.EIO}
	w := startWriting(t, Options{FS: fs, Sync: SyncBatch})
	w.append(requestRows(2)...)
	if err := w.Flush(snapshot.Ledger{}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if got := w.Stats(); got.Abandoned != 1 || !got.OpenSince.IsZero() || got.Rows != 0 || got.Bytes != 0 {
		t.Errorf("%+v", got)
	}
	w.flush()
	if got := w.Stats(); got.Rows != 2 || got.Batches != 1 || got.OpenSince.IsZero() || got.Bytes == 0 {
		t.Errorf("%+v", got)
	}
}

// Metrics are scraped by another goroutine than the one that appends.
func TestStatsAreSafeWhileRowsAreAppended(t *testing.T) {
	w := startWriting(t, Options{BatchRows: 8, SegmentBytes: 20_000})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var last Stats
			for {
				s := w.Stats()
				if s.Rows < last.Rows || s.Bytes < last.Bytes || s.Segments < last.Segments || s.EncodeTime < last.EncodeTime {
					t.Errorf("counts went back: %+v, then %+v", last, s)
				}
				last = s
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 500 {
		w.append(plainRow("s", "a"))
	}
	close(stop)
	wg.Wait()
	metas := w.done()
	if got := w.Stats(); got.Rows != 500 || got.Requests != 500 || got.Segments != uint64(len(metas)) || len(metas) < 2 {
		t.Errorf("%+v of %d segments", got, len(metas))
	}
}
