package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// serviceCallers is how many goroutines call the test's service at once.
const serviceCallers = 2

// deciderService is a service for tests that records itself: numbered requests of several
// callers pass through its middleware until it is killed, and it prints every watermark.
func deciderService() {
	rec, err := openService(os.Args[1], arrowfile.Options{BatchRows: 200})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for c := range serviceCallers {
		go callService(rec, c, 0, 1<<40)
	}
	for {
		acked, err := rec.Flush(context.Background())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("acked", acked)
		time.Sleep(time.Millisecond)
	}
}

func openService(dir string, opts arrowfile.Options) (*recorder.Recorder, error) {
	sink, err := arrowfile.Create(dir, opts)
	if err != nil {
		return nil, err
	}
	return recorder.New(sink, recorder.Options{Scenario: "edge", Policy: recorder.PolicyBlock, BlockTimeout: time.Minute,
		FlushInterval: 5 * time.Millisecond, Capture: recorder.Capture{Input: true,
			Fields: []recorder.CaptureField{{Name: "path", Type: decision.String}, {Name: "query.n", Type: decision.Int}}}})
}

// callService sends the requests of one caller with the numbers from..to-1, and returns how
// many were answered as they should be.
func callService(rec *recorder.Recorder, caller, from, to int) (answered int) {
	h := rec.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the input is what the handler reads
		d := recorder.FromContext(r.Context()).Decision("")
		d.SetActions("allow", "block")
		d.Choose("allow")
		w.WriteHeader(http.StatusAccepted)
	}))
	for i := from; i < to; i++ {
		req := httptest.NewRequest("POST", fmt.Sprintf("/c%d?n=%d", caller, i), strings.NewReader(strconv.Itoa(i)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code == http.StatusAccepted {
			answered++
		}
	}
	return answered
}

// A service that records itself is killed at a random moment, 50 times. What its last
// watermark covered is there after recovery, and of each caller's requests the first so
// many without a hole.
func TestKilledServiceKeepsWhatWasAcknowledged(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 3
	}
	for i := range kills {
		dir := filepath.Join(t.TempDir(), "ds")
		acked := runAndKill(t, dir, time.Duration(i%11)*4*time.Millisecond)
		if acked == 0 {
			t.Fatalf("kill %d: nothing was acknowledged", i)
		}
		if got := countCallers(t, dir); got < acked {
			t.Errorf("kill %d: acknowledged %d rows, recovered %d", i, acked, got)
		}
	}
}

// runAndKill kills the service some time after its first watermark above 0 and returns
// the last one that it printed.
func runAndKill(t *testing.T, dir string, after time.Duration) (acked int) {
	t.Helper()
	cmd := exec.Command("decider-service", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "acked ")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			t.Errorf("unexpected on stdout: %s", lines.Text())
			break
		}
		if acked == 0 && n > 0 {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		acked = n
	}
	cmd.Process.Kill()
	cmd.Wait()
	return acked
}

// countCallers recovers a recording of the service and checks that it holds every
// caller's requests from the first on without a hole, whole. It returns how many there are.
func countCallers(t *testing.T, dir string) int {
	t.Helper()
	if _, err := arrowfile.RecoverDir(dir); err != nil {
		t.Fatal(err)
	}
	ds, err := datasets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	var next [serviceCallers]int64
	total := 0
	for s, err := range ds.Snapshots(datasets.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		var caller int
		if _, err := fmt.Sscanf(s.Attrs.Get("path").Str(), "/c%d", &caller); err != nil || caller >= serviceCallers {
			t.Fatalf("path %q: %v", s.Attrs.Get("path").Str(), err)
		}
		if n := s.Attrs.Get("query.n").Int(); n != next[caller] || string(s.Input) != strconv.FormatInt(n, 10) {
			t.Fatalf("caller %d: request %d with body %q, want request %d", caller, n, s.Input, next[caller])
		}
		next[caller]++
		total++
	}
	return total
}

// fullDisk is a file system whose space ends: from the moment it is set, a write writes a
// part of what it is given and fails, and no file can be made.
type fullDisk struct{ full *atomic.Bool }

func (d fullDisk) Create(path string) (arrowfile.WriteFile, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	return fullFile{f, d.full}, err
}

func (d fullDisk) Rename(from, to string) error { return os.Rename(from, to) }

func (d fullDisk) SyncDir(string) error { return nil }

type fullFile struct {
	*os.File
	full *atomic.Bool
}

func (f fullFile) Write(b []byte) (int, error) {
	if !f.full.Load() {
		return f.File.Write(b)
	}
	n, err := f.File.Write(b[:len(b)/2])
	return n, errors.Join(syscall.ENOSPC, err)
}

// The disk fills up while a service records, and stays full: every request is answered,
// the ledger closes with what was lost in it, and the next start finds everything that was
// acknowledged.
func TestFullDiskLeavesTheServiceAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	var full atomic.Bool
	rec, err := openService(dir, arrowfile.Options{BatchRows: 100, FS: fullDisk{&full}})
	if err != nil {
		t.Fatal(err)
	}
	const each = 3000
	if n := callAll(rec, 0, each); n != serviceCallers*each {
		t.Fatalf("%d requests were answered", n)
	}
	acked, err := rec.Flush(t.Context())
	if err != nil || acked != serviceCallers*each {
		t.Fatalf("acknowledged %d: %v", acked, err)
	}
	full.Store(true)
	if n := callAll(rec, each, 2*each); n != serviceCallers*each {
		t.Errorf("with a full disk %d requests were answered", n)
	}
	if err := rec.Close(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closing on a full disk: %v", err)
	}
	ledger := rec.Stats().Ledger
	if err := ledger.Check(); err != nil || ledger.Offered != 2*serviceCallers*each {
		t.Errorf("ledger %+v: %v", ledger, err)
	}
	if got := countCallers(t, dir); got < int(acked) || uint64(got) != ledger.Written {
		t.Errorf("acknowledged %d, written %d, recovered %d", acked, ledger.Written, got)
	}
	verifyRecording(t, dir)
}

// verifyRecording does what 'datasets verify' does, and returns the last segment's total.
func verifyRecording(t *testing.T, dir string) *snapshot.Ledger {
	t.Helper()
	v, err := datasets.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Err(); err != nil {
		t.Errorf("the recording does not verify: %v", err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"+arrowfile.Ext))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %d segments", err, len(paths))
	}
	f, err := arrowfile.Open(paths[len(paths)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Meta().Total
}

// smallDisk is a file system with room for small writes only, from the moment it is set.
type smallDisk struct{ full *atomic.Bool }

// smallWrite is more than a footer has here, and less than a batch.
const smallWrite = 16 << 10

func (d smallDisk) Create(path string) (arrowfile.WriteFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	return smallFile{f, d.full}, err
}

func (d smallDisk) Rename(from, to string) error { return os.Rename(from, to) }

func (d smallDisk) SyncDir(string) error { return nil }

type smallFile struct {
	*os.File
	full *atomic.Bool
}

func (f smallFile) Write(b []byte) (int, error) {
	if f.full.Load() && len(b) > smallWrite {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// The last batch does not fit on the disk, but the footer does: it says what the recorder
// says, and the segments' ledgers sum up to it. Batches that Append wrote while flushes
// failed are in the file, and count.
func TestLastBatchDoesNotFit(t *testing.T) {
	for _, room := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "ds")
		var full atomic.Bool
		sink, err := arrowfile.Create(dir, arrowfile.Options{FS: smallDisk{&full}, BatchRows: 3000})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := recorder.New(sink, recorder.Options{Scenario: "edge", FlushInterval: time.Hour, QueueRows: 1 << 16,
			FlushRows: 1 << 20, Capture: recorder.Capture{Input: true}})
		if err != nil {
			t.Fatal(err)
		}
		record(rec, 100)
		if _, err := rec.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := uint64(100)
		if room {
			record(rec, 3000)
			record(rec, 1) // makes the sink write the batch of 3000, which no flush acknowledges
			waitForRows(t, sink, 3100)
			want = 3100
		}
		full.Store(true)
		record(rec, 2000)
		if err := rec.Close(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("close: %v", err)
		}
		ledger := rec.Stats().Ledger
		if ledger.Check() != nil || ledger.Written != want || ledger.Requests.Written != want || ledger.DroppedTotal() != ledger.Offered-want {
			t.Errorf("want %d written, the recorder says %+v", want, ledger)
		}
		total := verifyRecording(t, dir)
		if !reflect.DeepEqual(total, &ledger) {
			t.Errorf("the file's total %+v, the recorder's ledger %+v", total, ledger)
		}
	}
}

// record hands over rows of requests with one row each.
func record(rec *recorder.Recorder, n int) {
	for i := range n {
		ctx, r := rec.Start(context.Background())
		r.SetInput([]byte(strings.Repeat(r.ID().String(), 4)))
		r.Decision("").Choose("allow")
		r.SetAttr("n", decision.IntValue(int64(i)))
		r.End(ctx)
	}
}

func waitForRows(t *testing.T, sink *arrowfile.Writer, n uint64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); sink.Stats().Rows < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the sink has written %d rows, want %d", sink.Stats().Rows, n)
		}
	}
}

// stuckSink hangs in the Append of one row until it is released.
type stuckSink struct {
	*arrowfile.Writer
	at      int
	hangs   chan struct{}
	release chan struct{}
}

func (s *stuckSink) Append(row *snapshot.Snapshot) error {
	if s.at--; s.at == 0 {
		close(s.hangs)
		<-s.release
	}
	return s.Writer.Append(row)
}

// Close gives up on a sink that hangs. When that comes back, the rows in its hands are
// written, and the files and the recorder say so alike; nothing counts twice.
func TestCloseDeadlineKeepsTheLedgers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	w, err := arrowfile.Create(dir, arrowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sink := &stuckSink{Writer: w, at: 50, hangs: make(chan struct{}), release: make(chan struct{})}
	rec, err := recorder.New(sink, recorder.Options{Scenario: "edge", FlushInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	record(rec, 100)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-sink.hangs; cancel() }()
	err = rec.Close(ctx)
	if ledger := rec.Stats().Ledger; !errors.Is(err, context.Canceled) || ledger.Check() != nil || ledger.Written != 0 || ledger.Dropped[recorder.DropCloseDeadline] != 100 {
		t.Errorf("close: %v, ledger %+v", err, ledger)
	}
	close(sink.release)
	if again := rec.Close(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("close again: %v", again)
	}
	ledger := rec.Stats().Ledger
	if ledger.Check() != nil || ledger.Written != 50 || ledger.Dropped[recorder.DropCloseDeadline] != 50 {
		t.Errorf("ledger after all %+v", ledger)
	}
	if total := verifyRecording(t, dir); !reflect.DeepEqual(total, &ledger) {
		t.Errorf("the file's total %+v, the recorder's ledger %+v", total, ledger)
	}
}

func callAll(rec *recorder.Recorder, from, to int) int {
	var wg sync.WaitGroup
	var answered atomic.Int64
	for c := range serviceCallers {
		wg.Go(func() { answered.Add(int64(callService(rec, c, from, to))) })
	}
	wg.Wait()
	return int(answered.Load())
}
