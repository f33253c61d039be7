package peers

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// counter takes files and keeps their lengths only.
type counter struct{ bytes int64 }

func (c *counter) Create(string) (arrowfile.WriteFile, error) { return c, nil }
func (c *counter) Rename(string, string) error                { return nil }
func (c *counter) SyncDir(string) error                       { return nil }
func (c *counter) Write(b []byte) (int, error)                { c.bytes += int64(len(b)); return len(b), nil }
func (c *counter) Sync() error                                { return nil }
func (c *counter) Truncate(int64) error                       { return nil }
func (c *counter) Close() error                               { return nil }

// Seek is asked for the current place only.
func (c *counter) Seek(int64, int) (int64, error) { return c.bytes, nil }

// memory is a file in memory.
type memory struct{ bytes.Buffer }

// Seek is asked for the current place only.
func (m *memory) Seek(int64, int) (int64, error) { return int64(m.Len()), nil }

// segment writes rows into one sealed segment, digests included.
func segment(dir string, rows []snapshot.Snapshot) (path string, err error) {
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "peers", Boot: "0", SegmentBytes: 1 << 40})
	if err != nil {
		return "", err
	}
	if err := appendAll(w, rows); err != nil {
		return "", err
	}
	n := uint64(len(rows))
	return filepath.Join(dir, "peers-0-00000001"+arrowfile.Ext), w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: n, Written: n})
}

func appendAll(w *arrowfile.Writer, rows []snapshot.Snapshot) error {
	for i := range rows {
		if err := w.Append(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// ours returns an encoder that writes as a recorder does: one writer for the life of a
// process, which seals a segment now and then, here about once for each time the rows go
// through. Bytes of digests, footers and empty columns are counted.
func ours(rows []snapshot.Snapshot) (func() (int64, error), error) {
	var c counter
	w, err := arrowfile.Create(os.TempDir(), arrowfile.Options{FS: &c, SegmentBytes: 120 * int64(len(rows))})
	if err != nil {
		return nil, err
	}
	return func() (int64, error) {
		start := c.bytes
		if err := appendAll(w, rows); err != nil {
			return 0, err
		}
		err := w.Flush(snapshot.Ledger{})
		return c.bytes - start, err
	}, nil
}
