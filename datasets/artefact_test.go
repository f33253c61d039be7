package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func TestArtefacts(t *testing.T) {
	dir := two(t)
	file := []byte("version: 1\n")
	sum := sha256.Sum256(file)
	for range 2 { // again changes nothing
		must(t, StoreArtefact(dir, file))
	}
	d := opened(t, dir)
	if got, err := d.Artefact(sum); err != nil || string(got) != string(file) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := d.Artefact([32]byte{1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown: %v", err)
	}
	if v := verified(t, dir); v.Err() != nil || v.Artefacts != 1 {
		t.Errorf("%+v", v)
	}
	write(t, filepath.Join(dir, ArtefactDir, hex.EncodeToString(sum[:])), "version: 2\n")
	if _, err := d.Artefact(sum); !errors.Is(err, arrowfile.ErrCorrupt) {
		t.Errorf("another content: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
