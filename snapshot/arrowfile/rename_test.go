package arrowfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A rename that another process has made already is none that failed; any other file in
// the way is.
func TestRenameByAnother(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.arrow.open"), filepath.Join(dir, "a.arrow")
	if err := (osFS{}).Rename(from, to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("neither file: %v", err)
	}
	if err := os.WriteFile(to, []byte("sealed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (osFS{}).Rename(from, to); err != nil {
		t.Errorf("renamed by another: %v", err)
	}
	if err := os.WriteFile(from, []byte("open"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (osFS{}).Rename(from, to); !errors.Is(err, os.ErrExist) {
		t.Errorf("both files: %v", err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "sealed" {
		t.Errorf("the sealed file was replaced: %q, %v", got, err)
	}
}
