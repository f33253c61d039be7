package arrowfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// FS is what a writer needs of a file system; tests inject faults through it.
type FS interface {
	// Create makes a new file for writing; it fails when the file exists.
	Create(path string) (WriteFile, error)
	Rename(from, to string) error
	// SyncDir makes renames in a directory durable.
	SyncDir(dir string) error
}

// WriteFile is an open file of an [FS]. Writes append.
type WriteFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// osFS is the operating system's file system.
type osFS struct{}

// osFile appends: after a truncation the next write goes to the new end.
type osFile struct{ *os.File }

func (osFS) Create(path string) (WriteFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	// The lock tells Recover that the writer lives; it ends with the process.
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close(), os.Remove(path))
	}
	return osFile{f}, nil
}

// Rename refuses to replace a file: a sealed file is immutable. That the file has its new
// name already is no error: between a writer's close, which ends its lock, and its rename
// another process's [Recover] may find the file whole and rename it.
func (osFS) Rename(from, to string) error {
	err := renameNew(from, to)
	if err == nil {
		return nil
	}
	if _, gone := os.Lstat(from); errors.Is(gone, os.ErrNotExist) {
		if _, there := os.Lstat(to); there == nil {
			return nil
		}
	}
	return err
}

func renameNew(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("rename %s: %s: %w", from, to, os.ErrExist)
	}
	return os.Rename(from, to)
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
