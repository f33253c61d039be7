package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"time"

	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// Metadata names of an object. They have no underscore: some proxies drop headers that do.
const (
	metaSum    = "sha256"
	metaRows   = "rows"
	metaMin    = "min-ts-ns"
	metaMax    = "max-ts-ns"
	metaDigest = "digest"
)

// contentType is registered with IANA for Arrow IPC files.
const contentType = "application/vnd.apache.arrow.file"

// object is a segment as it stands in a bucket.
type object struct {
	key  string
	size int64
	// sum is the SHA-256 of all bytes, in hex.
	sum  string
	rows int64
	meta map[string]string
}

// describe verifies a sealed segment and says what becomes of it in the bucket. All of it
// follows from the file itself, so that a second attempt, or another process, comes to the
// same key.
func describe(file *os.File, service string) (*object, error) {
	f, err := arrowfile.Open(file.Name())
	if err != nil {
		return nil, err
	}
	m := f.Meta()
	if err := f.Close(); err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	size, err := io.Copy(h, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	o := &object{key: keyOf(&m, service), size: size, rows: m.Rows, sum: hex.EncodeToString(h.Sum(nil))}
	o.meta = map[string]string{metaSum: o.sum, metaRows: strconv.FormatInt(m.Rows, 10), metaDigest: m.Digest}
	if !m.MinTime.IsZero() {
		o.meta[metaMin] = strconv.FormatInt(m.MinTime.UnixNano(), 10)
		o.meta[metaMax] = strconv.FormatInt(m.MaxTime.UnixNano(), 10)
	}
	_, err = file.Seek(0, io.SeekStart)
	return o, err
}

func keyOf(m *arrowfile.Meta, service string) string {
	day := dayOf(m).UTC().Format(time.DateOnly)
	return path.Join("full", "dt="+day, service, m.Segment+arrowfile.Ext)
}

// dayOf is the time of the earliest row. A segment that holds only losses has none: then
// it is the start of its writer, which its boot id begins with, or else the epoch.
func dayOf(m *arrowfile.Meta) time.Time {
	if !m.MinTime.IsZero() {
		return m.MinTime
	}
	if len(m.Boot) >= 12 {
		if ms, err := strconv.ParseUint(m.Boot[:12], 16, 47); err == nil {
			return time.UnixMilli(int64(ms))
		}
	}
	return time.Unix(0, 0)
}
