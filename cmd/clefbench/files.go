package main

import (
	"io"
	"os"
	"path/filepath"
)

// writeFile replaces a file in one step: a reader sees the old one or the new one.
func writeFile(name string, data []byte) error {
	return writeAtomic(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func writeAtomic(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
