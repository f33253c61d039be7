// Package wholefile replaces, reads and hashes files as a whole.
//
// [Write] replaces a small file so that a reader, and a machine that comes up again, finds
// the old content or the new one, never a part. Steps: write beside the file under a hidden
// name, sync, rename, sync the directory. It does not lock: of two writers the later one
// wins. [Read] takes files up to a limit, [Digest] is their SHA-256.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts data in the place of the file at path, with mode 0644. When it fails the file
// is as it was, unless only the last step failed: then it is the new one, and a crash of
// the machine may bring the old one back.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}

// SyncDir makes renames in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
