package checkpoint

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
)

// Write signs a checkpoint and puts it in the place of the file, which is the old or the
// new one at every moment.
func (c *Checkpoint) Write(path string, key ed25519.PrivateKey) error {
	note, err := c.Sign(key)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(note)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
