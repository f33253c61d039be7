//go:build unix && !solaris && !aix

package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// locks: tryLock tells the living from the dead.
const locks = true

// tryLock takes an advisory lock that ends with the process, or reports that another
// process has it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
