package arrowfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// requestRows returns rows of one request.
func requestRows(n int) (out []*snapshot.Snapshot) {
	id := decision.NewID(time.Now())
	for range n {
		s := plainRow("s", "a")
		s.RequestID = id
		out = append(out, s)
	}
	return out
}

func writtenRequests(ms []Meta) (out []int) {
	for _, m := range ms {
		if m.Ledger.Requests == nil {
			out = append(out, -1)
			continue
		}
		out = append(out, int(m.Ledger.Requests.Written))
	}
	return out
}

// A request counts once, where its first row is: not in a batch or a segment that it
// goes on in.
func TestRequestsCountWhereTheyBegin(t *testing.T) {
	w := startWriting(t, Options{})
	w.append(requestRows(3)...)
	across := requestRows(3)
	w.append(across[0])
	w.flush()
	w.append(across[1])
	w.flush()
	across[2].Action = "new" // a new label starts a segment
	w.append(across[2])
	w.flush()
	w.append(requestRows(2)...)
	w.append(requestRows(1)...)
	metas := w.done()
	if got := rowCounts(metas); !slices.Equal(got, []int64{5, 4}) {
		t.Fatalf("rows %v", got)
	}
	if got := writtenRequests(metas); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("requests %v", got)
	}
}

// The counts stay with the rows while a batch cannot be written.
func TestRequestsCountOnceThroughFaults(t *testing.T) {
	fs := &faultFS{op: "write", fails: map[int]bool{1: true}, err: syscall.ENOSPC}
	w := startWriting(t, Options{FS: fs, BatchRows: 4})
	w.append(requestRows(2)...)
	if err := w.Flush(snapshot.Ledger{}); err == nil {
		t.Fatal("the fault was not seen")
	}
	w.append(requestRows(2)...)
	if got := writtenRequests(w.done()); !slices.Equal(got, []int{2}) {
		t.Errorf("requests %v", got)
	}
}

// Losses that count rows and no requests make requests unknown; others are added.
func TestRequestsOfLosses(t *testing.T) {
	for _, c := range []struct {
		name string
		lost snapshot.Ledger
		want *snapshot.Counts
	}{
		{"none", snapshot.Ledger{}, &snapshot.Counts{Offered: 1, Written: 1}},
		{"not counted", snapshot.Ledger{Offered: 2, SampledOut: 2}, nil},
		{"counted", snapshot.Ledger{Offered: 2, SampledOut: 2, Requests: &snapshot.Counts{Offered: 1, SampledOut: 1}},
			&snapshot.Counts{Offered: 2, Written: 1, SampledOut: 1}},
	} {
		w := startWriting(t, Options{})
		w.append(requestRows(3)...)
		if err := w.Flush(c.lost); err != nil {
			t.Fatal(err)
		}
		got := w.done()[0].Ledger.Requests
		if (got == nil) != (c.want == nil) || got != nil && (got.Offered != c.want.Offered || got.Written != c.want.Written || got.SampledOut != c.want.SampledOut) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	w := startWriting(t, Options{})
	bad := snapshot.Ledger{Offered: 1, SampledOut: 1, Requests: &snapshot.Counts{Offered: 1, Written: 1}}
	if err := w.Flush(bad); !errors.Is(err, snapshot.ErrLedger) {
		t.Errorf("losses with written requests: %v", err)
	}
}

// Every batch carries the requests so far, so that they survive a kill.
func TestRecoveredLedgerKeepsTheRequests(t *testing.T) {
	w := startWriting(t, Options{})
	w.append(requestRows(3)...)
	w.flush()
	w.append(requestRows(1)...)
	w.append(requestRows(2)...)
	w.flush()
	open, _ := filepath.Glob(filepath.Join(w.dir, "*"+OpenExt))
	img, err := os.ReadFile(open[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "k.arrow")
	for cut, want := range map[int]uint64{0: 3, 1: 1} {
		if err := os.WriteFile(path+OpenExt, img[:len(img)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Recover(path + OpenExt); err != nil {
			t.Fatal(err)
		}
		r, err := Verify(path)
		if err != nil || r.Meta.Ledger.Requests == nil || r.Meta.Ledger.Requests.Written != want || r.Requests != int64(want) {
			t.Errorf("%d bytes cut: %v, %+v, %d requests", cut, err, r.Meta.Ledger.Requests, r.Requests)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerifyCountsTheRequests(t *testing.T) {
	for add, ok := range map[uint64]bool{0: true, 1: false, ^uint64(0): true, ^uint64(1): false} {
		w := startWriting(t, Options{})
		for range 4 {
			w.append(requestRows(2)...)
		}
		w.requests += add // one less may have begun in the segment before
		if err := w.Close(snapshot.Ledger{}, totalOf(8)); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(segments(t, w.dir)[0]); (err == nil) != ok || err != nil && !errors.Is(err, snapshot.ErrLedger) {
			t.Errorf("%d requests counted beside 4: %v", int64(add)+4, err)
		}
	}
}

// Files of before requests were counted.
func TestGoldenSegmentCountsNoRequests(t *testing.T) {
	if m := mustOpen(t, goldenSegment).Meta(); m.Ledger.Requests != nil || m.Total.Requests != nil {
		t.Errorf("%+v %+v", m.Ledger, m.Total)
	}
}
