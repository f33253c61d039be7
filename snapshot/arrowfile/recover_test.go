package arrowfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func TestRecoverKeepsEveryWholeBatch(t *testing.T) {
	rows := randomRows(newGen(31), 60)
	_, data := oneSegment(t, rows, 20)
	data = openImage(t, data)
	r := rand.New(rand.NewPCG(7, 8))
	kept := map[int]int{}
	for i := range 150 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("t-%d.arrow", i))
		img := append([]byte(nil), data[:r.IntN(len(data)+1)]...)
		if i%3 == 0 && len(img) > 4096 {
			at := r.IntN(len(img)) &^ 4095
			clear(img[at:min(at+4096, len(img))])
		}
		if i == 0 {
			img = append(data[:len(data):len(data)], "garbage after the last batch"...)
		}
		if err := os.WriteFile(path+OpenExt, img, 0o644); err != nil {
			t.Fatal(err)
		}
		rec, err := Recover(path + OpenExt)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(path + OpenExt); string(after) != string(img) {
				t.Fatal("a file without a whole batch was changed")
			}
			kept[0]++
			continue
		}
		got := checkRecovered(t, rec, int64(len(img)))
		diff(t, rows[:len(got)], got)
		kept[len(got)]++
	}
	if kept[0] == 0 || kept[20] == 0 || kept[40] == 0 || kept[60] == 0 {
		t.Errorf("not all cases were met: %v", kept)
	}
}

// checkRecovered verifies a recovered file and returns its rows.
func checkRecovered(t *testing.T, rec *Recovery, size int64) []*snapshot.Snapshot {
	t.Helper()
	report, err := Verify(rec.Path)
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != rec.Rows || report.Batches != rec.Batches || !report.Meta.Sealed {
		t.Fatalf("recovered %+v, verified %+v", rec, report)
	}
	if rec.Cut < 0 || rec.Cut > size || (rec.Cut > 0) != (rec.Cause != nil) {
		t.Fatalf("cut %d of %d, cause %v", rec.Cut, size, rec.Cause)
	}
	got, err := readAll(mustOpen(t, rec.Path))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRecoverOfAWholeFileOnlyRenames(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(32), 10), 20)
	if err := os.Rename(path, path+OpenExt); err != nil {
		t.Fatal(err)
	}
	if f := mustOpen(t, path+OpenExt); !f.Meta().Sealed || f.Meta().Segment != "h-b-00000001" {
		t.Errorf("meta %+v", f.Meta())
	}
	rec, err := Recover(path + OpenExt)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(data) || !rec.Whole || rec.Rows != 10 || rec.Cut != 0 {
		t.Errorf("recovery %+v, err %v", rec, err)
	}
}

func TestRecoverRefuses(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(33), 10), 20)
	if _, err := Recover(path); err == nil {
		t.Error("a sealed file was recovered")
	}
	if err := os.WriteFile(path+OpenExt, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(path + OpenExt); !errors.Is(err, os.ErrExist) {
		t.Errorf("a sealed file of the name exists: %v", err)
	}
	if _, err := Recover(filepath.Join(t.TempDir(), "x.arrow.open")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestRecoverLeavesALivingWriterAlone(t *testing.T) {
	g := newGen(34)
	dir := t.TempDir()
	w, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := g.snapshot()
	if err := errors.Join(w.Append(s), w.Flush(snapshot.Ledger{})); err != nil {
		t.Fatal(err)
	}
	open, _ := filepath.Glob(filepath.Join(dir, "*"+OpenExt))
	if len(open) != 1 {
		t.Fatalf("open files %v", open)
	}
	if _, err := Recover(open[0]); !errors.Is(err, ErrBusy) {
		t.Errorf("recover beside the writer: %v", err)
	}
	if got, err := RecoverDir(dir); err != nil || len(got) != 0 {
		t.Errorf("recover dir: %v, %v", got, err)
	}
	f := mustOpen(t, open[0]) // reading is allowed
	if got, err := readAll(f); err != nil || len(got) != 1 || f.Meta().Sealed {
		t.Errorf("%d rows, %v", len(got), err)
	}
	if _, err := Verify(open[0]); !errors.Is(err, ErrUnsealed) {
		t.Errorf("verify of an open file: %v", err)
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(1)); err != nil {
		t.Fatal(err)
	}
}

// A kill must not lose the losses: each batch carries the ledger so far.
func TestRecoveredLedgerKeepsTheLosses(t *testing.T) {
	g := newGen(35)
	dir := t.TempDir()
	w, err := Create(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := snapshot.Ledger{Offered: 9, SampledOut: 4, Dropped: map[string]uint64{"queue-full": 5}}
	s := g.snapshot()
	if err := errors.Join(w.Append(s), w.Flush(lost)); err != nil {
		t.Fatal(err)
	}
	open, _ := filepath.Glob(filepath.Join(dir, "*"+OpenExt))
	img, err := os.ReadFile(open[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "k.arrow")
	if err := os.WriteFile(other+OpenExt, img, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(other + OpenExt); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, other).Meta().Ledger
	if l.Offered != 10 || l.Written != 1 || l.SampledOut != 4 || l.Dropped["queue-full"] != 5 {
		t.Errorf("ledger %+v", l)
	}
}

// childEnv makes the test binary a writer that never ends by itself.
const childEnv = "ARROWFILE_TEST_WRITER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever writes numbered rows and prints the watermark after every flush.
func writeForever(dir string) error {
	w, err := Create(dir, Options{Host: "child", BatchRows: 64, SegmentBytes: 256 << 10, Sync: SyncNever})
	if err != nil {
		return err
	}
	g := newGen(uint64(os.Getpid()))
	for n := 0; ; n++ {
		s := g.snapshot()
		s.SourceID = strconv.Itoa(n)
		if err := w.Append(s); err != nil {
			return err
		}
		if n%50 == 49 {
			if err := w.Flush(snapshot.Ledger{}); err != nil {
				return err
			}
			fmt.Println("acked", w.Watermark())
		}
	}
}

// killedWriter starts a child that writes to dir, kills it with SIGKILL after a while and
// returns the last watermark that it printed.
func killedWriter(t *testing.T, dir string, after time.Duration) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	last, killed := 0, false
	for {
		line, err := lines.ReadString('\n')
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "acked "); ok && err == nil {
			if last, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
		}
		if errors.Is(err, io.EOF) || err != nil {
			break
		}
		if !killed && last > 0 { // the clock starts with the first watermark
			killed = true
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return last
}

func TestNothingAcknowledgedIsLostWhenTheWriterIsKilled(t *testing.T) {
	r := rand.New(rand.NewPCG(9, uint64(os.Getpid())))
	for i := range 20 {
		dir := t.TempDir()
		acked := killedWriter(t, dir, time.Duration(r.IntN(120))*time.Millisecond)
		if acked == 0 {
			t.Fatal("no watermark was printed")
		}
		recovered, err := RecoverDir(dir)
		if err != nil && !errors.Is(err, ErrCorrupt) { // a file killed in its first write holds nothing
			t.Fatal(err)
		}
		rows := readDir(t, dir)
		if len(rows) < acked {
			t.Fatalf("kill %d: %d rows of %d acknowledged", i, len(rows), acked)
		}
		for n, s := range rows {
			if s.SourceID != strconv.Itoa(n) {
				t.Fatalf("kill %d: row %d is %q", i, n, s.SourceID)
			}
		}
		for _, p := range segments(t, dir) {
			if _, err := Verify(p); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("acknowledged %d, found %d, recovered %d files", acked, len(rows), len(recovered))
	}
}

func TestVerifyFindsWhatDoesNotHold(t *testing.T) {
	write := func(change func(*Writer)) error {
		dir := t.TempDir()
		w, err := Create(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(newGen(36).snapshot()); err != nil {
			t.Fatal(err)
		}
		change(w)
		if err := w.Close(snapshot.Ledger{}, totalOf(1)); err != nil {
			t.Fatal(err)
		}
		report, err := Verify(segments(t, dir)[0])
		if (err == nil) != (report.Failed == 0) || (err == nil) != (len(report.Findings) == 0) {
			t.Errorf("error %v, but report %+v", err, report)
		}
		return err
	}
	if err := write(func(*Writer) {}); err != nil {
		t.Error(err)
	}
	if err := write(func(w *Writer) { w.lost.Offered = 1 }); !errors.Is(err, snapshot.ErrLedger) {
		t.Errorf("ledger: %v", err)
	}
	if err := write(func(w *Writer) { w.batch.info.strategy("never used") }); !errors.Is(err, ErrSchema) {
		t.Errorf("strategies: %v", err)
	}
	if err := write(func(w *Writer) { w.batch.info.seen(1) }); !errors.Is(err, ErrSchema) {
		t.Errorf("times: %v", err)
	}
	bad := newGen(37).snapshot()
	bad.Status, bad.Action = decision.Timeout, "allow"
	if err := write(func(w *Writer) { w.batch.add(bad, 0) }); !errors.Is(err, snapshot.ErrInvalid) {
		t.Errorf("row: %v", err)
	}
}
