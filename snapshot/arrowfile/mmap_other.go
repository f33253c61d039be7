//go:build !unix || solaris || aix

package arrowfile

import (
	"errors"
	"os"
)

// mmap is not available: files are read into memory.
func mmap(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func munmap([]byte) error { return nil }
