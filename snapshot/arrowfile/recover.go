package arrowfile

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Recovery says what [Recover] kept and cut.
type Recovery struct {
	// Path is the sealed file.
	Path string
	// Rows and Batches were kept; Cut bytes at the end were not, for Cause.
	Rows    int64
	Batches int
	Cut     int64
	Cause   error
	// Whole: the file had its footer already, and was only renamed.
	Whole bool
}

// Recover seals a file whose writer was killed: it keeps every batch up to the first that
// is not whole, cuts off the rest, writes the footer, syncs and renames NAME.arrow.open
// to NAME.arrow. The ledger is that of the last batch kept. The error wraps [ErrBusy]
// while the writer lives, [ErrCorrupt] when there is no whole batch, and [os.ErrExist]
// when a sealed file of the name exists; then nothing was changed. A Recover that is
// killed itself can be repeated.
func Recover(path string) (*Recovery, error) {
	sealed, isOpen := strings.CutSuffix(path, OpenExt)
	if !isOpen {
		return nil, fmt.Errorf("%s: only a file that ends in %s is recovered", path, OpenExt)
	}
	if _, err := os.Lstat(sealed); err == nil {
		return nil, fmt.Errorf("%s: %w", sealed, os.ErrExist)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := lockFile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	r, err := recoverFile(file, path)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	r.Path = sealed
	if err := (osFS{}).Rename(path, sealed); err != nil {
		return nil, err
	}
	return r, osFS{}.SyncDir(filepath.Dir(sealed))
}

// CanTell reports whether [Recover] notices a writer that lives; where the system has no
// advisory locks it does not, and only somebody who knows that the writers are gone may
// call it.
func CanTell() bool { return locks }

// RecoverDir recovers every .open file of a directory whose writer is gone. Files of
// living writers are left alone, and so are empty ones: a writer that has just made its
// file may not have locked it yet. Errors of single files are joined.
func RecoverDir(dir string) ([]*Recovery, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*Recovery
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), Ext+OpenExt) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Size() == 0 {
			continue
		}
		r, err := Recover(filepath.Join(dir, e.Name()))
		if err == nil {
			out = append(out, r)
		} else if !errors.Is(err, ErrBusy) {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// recoverFile makes the open file whole.
func recoverFile(file *os.File, path string) (*Recovery, error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f, err := newFile(path, data, (*File).loadSealed); err == nil && f.decodable() == len(f.batches) {
		// The writer may have been killed before it synced the footer.
		return &Recovery{Rows: f.meta.Rows, Batches: len(f.batches), Whole: true}, file.Sync()
	}
	p, err := salvage(path, data)
	if err != nil {
		return nil, err
	}
	if err := p.seal(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Recovery{Rows: p.rows, Batches: len(p.in.blocks), Cut: int64(len(data)) - p.end, Cause: p.cause}, nil
}

// salvaged is the good part of a torn file.
type salvaged struct {
	in    footerIn
	rows  int64
	end   int64
	cause error
}

// salvage finds the good part: the messages whose digests hold, up to the first batch
// that does not decode. Later messages do not count: they were written after it.
func salvage(path string, data []byte) (*salvaged, error) {
	f, err := newFile(path, data, (*File).loadPartial)
	if err != nil {
		return nil, err
	}
	keep := f.decodable()
	if keep == 0 {
		return nil, f.corrupt(f.batches[0].offset, fmt.Errorf("no batch can be decoded"))
	}
	last := f.batches[keep-1]
	p := &salvaged{end: last.end(), in: footerIn{schema: data[f.schema.offset:f.schema.end()]}}
	s := scanner{data: data[:p.end]}
	for s.next < p.end {
		m, err := s.message()
		if err != nil {
			return nil, f.corrupt(s.next, err)
		}
		p.in.digests = append(p.in.digests, s.last)
		b := block{m.offset, m.bodyLen, int32(m.metaLen)}
		switch m.header {
		case headerDictionary:
			p.in.dicts = append(p.in.dicts, b)
		case headerRecord:
			p.in.blocks = append(p.in.blocks, b)
		}
	}
	if p.end < int64(len(data)) {
		s.data = data
		_, p.cause = s.message()
	}
	info, err := batchInfo(last)
	if err != nil {
		return nil, f.corrupt(last.offset, err)
	}
	p.rows = info.Rows
	p.in.info, err = info.json()
	return p, err
}

// decodable returns how many batches from the first on decode in full, checksums
// included.
func (f *File) decodable() int {
	dec, err := f.decoder()
	if err != nil {
		return 0
	}
	defer f.decoders.Put(dec.zstd)
	dec.all = true
	vectors := newVectors(f.shapes)
	for i, m := range f.batches {
		if _, err := f.batch(dec, m, vectors, nil); err != nil {
			return i
		}
	}
	return len(f.batches)
}

// seal cuts the file and writes the footer.
func (p *salvaged) seal(file *os.File) error {
	tail, _, err := p.in.tail()
	if err != nil {
		return err
	}
	if err := file.Truncate(p.end); err != nil {
		return err
	}
	if _, err := file.WriteAt(tail, p.end); err != nil {
		return err
	}
	return file.Sync()
}

// scanner walks the messages of a file from its head, checking the chain of digests. It
// needs no footer.
type scanner struct {
	data []byte
	next int64
	last sum
	// seen is the highest kind of message so far: schema, dictionaries, batches.
	seen byte
}

// message returns the next message, once its digest holds. After an error, next is the
// offset at which the good part ends.
func (s *scanner) message() (*message, error) {
	if s.next == 0 {
		s.next = int64(len(headMagic))
		if len(s.data) < len(headMagic) || string(s.data[:len(headMagic)]) != headMagic {
			return nil, fmt.Errorf("does not begin as an Arrow file")
		}
	}
	m, err := parseMessage(s.data, s.next)
	if err != nil {
		return nil, err
	}
	if err := s.inOrder(m.header); err != nil {
		return nil, err
	}
	bytes := s.data[m.offset:m.end()]
	d := digestOf(s.last, bytes, m.digestAt)
	if m.header != headerSchema {
		if m.digestAt == 0 || hex.EncodeToString(d[:]) != string(bytes[m.digestAt:m.digestAt+digestText]) {
			return nil, fmt.Errorf("the digest of the message does not match")
		}
	}
	s.last, s.next, s.seen = d, m.end(), m.header
	return m, nil
}

// inOrder: one schema, then the dictionaries, then the batches.
func (s *scanner) inOrder(header byte) error {
	ok := header == headerSchema && s.seen == 0 ||
		header == headerDictionary && (s.seen == headerSchema || s.seen == headerDictionary) ||
		header == headerRecord && s.seen != 0
	if !ok {
		return fmt.Errorf("message of kind %d after one of kind %d", header, s.seen)
	}
	return nil
}

// batchInfo reads what a batch says about the rows up to its end.
func batchInfo(m *message) (segmentInfo, error) {
	var info segmentInfo
	text, ok := m.meta[keySegment]
	if !ok {
		return info, fmt.Errorf("a batch without its account of rows")
	}
	err := json.Unmarshal([]byte(text), &info)
	return info, err
}
