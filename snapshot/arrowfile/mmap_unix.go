//go:build unix && !solaris && !aix

package arrowfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// mmap maps the first size bytes of a file for reading.
func mmap(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func munmap(b []byte) error { return unix.Munmap(b) }
