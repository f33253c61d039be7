package wholefile

import (
	"bytes"
	"errors"
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

func TestReadAndDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := Write(path, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 5); err != nil || string(data) != "hello" {
		t.Errorf("%v: %q", err, data)
	}
	if data, err := Read(path, 4); !errors.Is(err, ErrTooLarge) || data != nil {
		t.Errorf("%v: %q", err, data)
	}
	if sum, err := Digest(path); err != nil || sum != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("%v: %s", err, sum)
	}
	for _, path := range []string{path + "x", filepath.Dir(path)} {
		_, err1 := Read(path, 9)
		_, err2 := Digest(path)
		if err1 == nil || err2 == nil {
			t.Errorf("%s: %v, %v", path, err1, err2)
		}
	}
}
