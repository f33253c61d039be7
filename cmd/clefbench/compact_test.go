package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/datasets"
)

// A compaction is killed at a random moment again and again: the old set stays as it is,
// and the new one is there as a whole or not at all.
func TestKilledCompactionIsAllOrNothing(t *testing.T) {
	kills := 40
	if testing.Short() {
		kills = 5
	}
	dir := filepath.Join(t.TempDir(), "ds")
	recordAndKill(t, dir, 200*time.Millisecond)
	if out, err := exec.Command("clefbench", "datasets", "repair", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := soundRows(t, dir)
	began := time.Now()
	compactAndKill(t, dir, filepath.Join(t.TempDir(), "whole"), time.Hour)
	whole := time.Since(began)
	there := 0
	for i := range kills {
		out := filepath.Join(t.TempDir(), "out")
		compactAndKill(t, dir, out, whole*time.Duration(i)/time.Duration(kills)) // the first at once
		if _, err := os.Stat(out); err == nil {
			there++
			if got := soundRows(t, out); got != rows {
				t.Errorf("kill %d: %d rows of %d", i, got, rows)
			}
		}
		if got := soundRows(t, dir); got != rows {
			t.Errorf("kill %d: the old set has %d rows of %d", i, got, rows)
		}
	}
	t.Logf("%d rows; the new set was there after %d of %d kills", rows, there, kills)
	if there == kills {
		t.Error("no kill came in time: the test has no power")
	}
}

func compactAndKill(t *testing.T, dir, out string, after time.Duration) {
	t.Helper()
	cmd := exec.Command("clefbench", "datasets", "compact", dir, "-o", out)
	var text strings.Builder
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v: %s", err, text.String())
	}
}

func soundRows(t *testing.T, dir string) int64 {
	t.Helper()
	v, err := datasets.Verify(dir)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Rows
}
