package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// maxArtefact bounds a strategy file: 64 MiB.
const maxArtefact = 64 << 20

// StoreArtefact keeps a strategy file beside the recording, under its SHA-256, so that
// what a recorded rule id means can be looked up for as long as the recording lives.
// Storing the same content again changes nothing.
func StoreArtefact(dir string, data []byte) error {
	dir = filepath.Join(dir, ArtefactDir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return wholefile.Write(filepath.Join(dir, hex.EncodeToString(sum[:])), data)
}

// Artefact returns the strategy file of a SHA-256. The error wraps fs.ErrNotExist when
// the data set does not keep it, and arrowfile.ErrCorrupt when its content is not what
// its name says.
func (d *Dataset) Artefact(digest [32]byte) ([]byte, error) {
	name := hex.EncodeToString(digest[:])
	err := fmt.Errorf("artefact %s: %w", name, os.ErrNotExist)
	for _, dir := range d.dirs() {
		path := filepath.Join(dir, ArtefactDir, name)
		info, serr := os.Stat(path)
		if serr != nil || info.Size() > maxArtefact {
			continue
		}
		data, rerr := os.ReadFile(path)
		if rerr != nil {
			err = rerr
			continue
		}
		if err = checkArtefact(path, data); err == nil {
			return data, nil
		}
	}
	return nil, err
}

// checkArtefact holds the content of an artefact to its name.
func checkArtefact(path string, data []byte) error {
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != filepath.Base(path) {
		return fmt.Errorf("%s: %w: its content has another SHA-256", path, arrowfile.ErrCorrupt)
	}
	return nil
}

// readBounded reads a file of at most limit bytes; a larger one is damaged.
func readBounded(path string, limit int64) ([]byte, error) {
	data, err := wholefile.Read(path, limit)
	if errors.Is(err, wholefile.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", arrowfile.ErrCorrupt, err)
	}
	return data, err
}
