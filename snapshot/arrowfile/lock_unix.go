//go:build unix && !solaris && !aix

package arrowfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const locks = true

// lockFile takes an advisory lock that ends with the process; it returns [ErrBusy] when
// another process holds it.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}
