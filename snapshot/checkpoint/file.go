package checkpoint

import (
	"crypto/ed25519"

	"github.com/clefbench/clefbench/internal/wholefile"
)

// Write signs a checkpoint and puts it in the place of the file, which is the old or the
// new one at every moment.
func (c *Checkpoint) Write(path string, key ed25519.PrivateKey) error {
	note, err := c.Sign(key)
	if err != nil {
		return err
	}
	return wholefile.Write(path, note)
}
