package atomicfile

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Readers see one of the contents, whole, at every moment.
func TestWriteIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	contents := [][]byte{bytes.Repeat([]byte("a"), 5000), bytes.Repeat([]byte("b"), 70_000), {}}
	if err := Write(path, contents[0]); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			data, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(data, contents[0]) && !bytes.Equal(data, contents[1]) && !bytes.Equal(data, contents[2]) {
				t.Errorf("%v: %d bytes", err, len(data))
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 60 {
		if err := Write(path, contents[i%3]); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v: left behind %v", err, entries)
	}
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(taken, []byte("a")); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Write(filepath.Join(dir, "none", "x"), nil); err == nil {
		t.Error("written into a directory that is not there")
	}
	if err := SyncDir(filepath.Join(dir, "none")); err == nil {
		t.Error("synced a directory that is not there")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v: left behind %v", err, entries)
	}
}
