package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Create-if-absent of the directory store holds among many writers of one key.
func TestDirStoreOneWinner(t *testing.T) {
	root := t.TempDir()
	for round := range 20 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		winners := []int{}
		for i := range 8 {
			wg.Go(func() {
				d, err := openDir(root) // as another process would: a handle of its own
				if err != nil {
					t.Error(err)
					return
				}
				defer d.Close()
				f, err := os.CreateTemp(t.TempDir(), "body")
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				fmt.Fprintf(f, "writer %d", i)
				f.Seek(0, io.SeekStart)
				err = d.create(context.Background(), &object{key: fmt.Sprintf("full/%d", round)}, f)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					winners = append(winners, i)
				case !errors.Is(err, fs.ErrExist):
					// A sweep of a store that is opened at this moment may take an unlocked file.
					if !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		got, err := os.ReadFile(filepath.Join(root, "full", fmt.Sprint(round)))
		if err != nil || len(winners) != 1 || string(got) != fmt.Sprintf("writer %d", winners[0]) {
			t.Fatalf("round %d: winners %v, content %q, %v", round, winners, got, err)
		}
	}
	if left := entries(t, filepath.Join(root, tempDir)); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
