package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// A recording process is killed at a random moment, 50 times: everything below the last
// watermark that it printed is there after recovery, row for row.
func TestKilledRecordingKeepsWhatWasAcknowledged(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 3
	}
	for i := range kills {
		dir := filepath.Join(t.TempDir(), "ds")
		acked := recordAndKill(t, dir, time.Duration(i%7)*9*time.Millisecond)
		if acked == 0 {
			t.Fatalf("kill %d: nothing was acknowledged", i)
		}
		if got := countUpTo(t, dir, acked); got < acked {
			t.Errorf("kill %d: acknowledged %d rows, recovered %d", i, acked, got)
		}
	}
}

// recordAndKill streams numbered decisions into clefbench record, kills it some time
// after the first acknowledgement, and returns the last one that it printed.
func recordAndKill(t *testing.T, dir string, after time.Duration) int {
	t.Helper()
	cmd := exec.Command("clefbench", "record", "-o", dir, "--ack", "--batch", "200", "--fsync", "batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go feed(in)
	acked := 0
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "acked ")
		if !ok {
			t.Errorf("unexpected on stderr: %s", lines.Text())
			continue
		}
		if acked == 0 {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		if acked, err = strconv.Atoi(text); err != nil {
			t.Error(err)
		}
	}
	cmd.Wait()
	return acked
}

func feed(in io.WriteCloser) {
	defer in.Close()
	w := bufio.NewWriter(in)
	for n := range 10_000_000 {
		_, err := fmt.Fprintf(w, `{"scenario":"edge","action":"allow","source_id":"%d","attrs":{"metrics.n":%d,"path":"/%x"},"candidates":["allow","block"]}`+"\n", n, n, n*7919)
		if err != nil {
			return // the reader is dead
		}
	}
}

// countUpTo checks that row n is the n-th line that was sent, for all rows there are.
func countUpTo(t *testing.T, dir string, atLeast int) int {
	t.Helper()
	if _, err := arrowfile.RecoverDir(dir); err != nil {
		t.Fatal(err)
	}
	ds, err := datasets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	n := 0
	for s, err := range ds.Snapshots(datasets.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := strconv.Itoa(n); s.SourceID != want || s.Attrs.Get("metrics.n").Double() != float64(n) {
			t.Fatalf("row %d holds %s (%v), of %d acknowledged", n, s.SourceID, s.Attrs.Get("metrics.n"), atLeast)
		}
		n++
	}
	return n
}
