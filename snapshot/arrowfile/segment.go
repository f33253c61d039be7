package arrowfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// segment is one file while it is written.
type segment struct {
	opts *Options
	enc  *encoder
	// path is the name that the file gets when it is sealed.
	path   string
	file   WriteFile
	schema []byte
	attrs  *decision.Schema
	// labels is the number of labels in the dictionaries at the head, by column name, and
	// plain the columns without dictionary.
	labels map[string]int

	// head holds the first bytes until they are written with the first batch.
	head           []byte
	size           int64
	dicts, records []block
	digests        []sum
	last           sum
	info           segmentInfo
	opened, synced time.Time
	dirty          bool
	buf            []byte
}

// newSegment creates the file and builds its head from the columns as they are now.
func newSegment(o *Options, enc *encoder, path string, kind Kind, seq int, cols *columnSet, attrs *decision.Schema) (*segment, error) {
	now := o.Now()
	s := &segment{opts: o, enc: enc, path: path, attrs: attrs, labels: cols.labels(), opened: now, synced: now}
	keys, values, err := headMeta(o, kind, seq, attrs)
	if err != nil {
		return nil, err
	}
	shapes := cols.shapes()
	if s.schema, err = schemaMessage(shapes, keys, values); err != nil {
		return nil, err
	}
	if s.file, err = o.FS.Create(path + OpenExt); err != nil {
		return nil, err
	}
	s.head = append([]byte(headMagic), s.schema...)
	s.last = digestOf(sum{}, s.schema, 0)
	s.digests = append(s.digests, s.last)
	next := int64(0)
	walk(cols.columns, func(c *column) {
		if c.dict == nil {
			return
		}
		var b block
		s.head, b, s.last = enc.dictionary(s.head, next, c.dict.values, s.last)
		s.dicts, s.digests = append(s.dicts, b), append(s.digests, s.last)
		next++
	})
	return s, nil
}

// write appends one batch with one write call. When it fails, the torn bytes are cut off
// and the batch may be written again; errTorn says that cutting failed too.
func (s *segment) write(cols *columnSet, add segmentInfo) error {
	info := s.info.plus(add)
	text, err := info.json()
	if err != nil {
		return err
	}
	buf := append(s.buf[:0], s.head...)
	buf, b, last := s.enc.recordBatch(buf, cols.columns, cols.n, []keyValue{{keySegment, text}}, s.last)
	s.buf = buf
	if err := s.append(buf); err != nil {
		return err
	}
	b.offset += s.size
	s.head, s.dirty = nil, true
	if s.opts.Sync == SyncBatch {
		// The kernel may drop the pages of a failed sync: another sync of this file could
		// succeed without the data. So the file is given up, and the batch goes elsewhere.
		if err := s.file.Sync(); err != nil {
			return errors.Join(fmt.Errorf("%w: sync %s: %w", errTorn, s.path, err), s.file.Truncate(s.size))
		}
		s.dirty = false
	}
	s.size += int64(len(buf))
	s.records, s.digests, s.last = append(s.records, b), append(s.digests, last), last
	s.info = info
	return nil
}

// errTorn marks a segment that must not be written any more.
var errTorn = errors.New("segment is given up")

// append writes bytes, or none of them.
func (s *segment) append(b []byte) error {
	n, err := s.file.Write(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("%d of %d bytes were written", n, len(b))
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("write %s: %w", s.path, err)
	if cut := s.file.Truncate(s.size); cut != nil {
		return errors.Join(fmt.Errorf("%w: %w", errTorn, err), cut)
	}
	return err
}

// syncIfDue syncs under the interval policy.
func (s *segment) syncIfDue(now time.Time) error {
	if !s.dirty || s.opts.Sync != SyncInterval || now.Sub(s.synced) < s.opts.SyncEvery {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("%w: sync %s: %w", errTorn, s.path, err)
	}
	s.synced, s.dirty = now, false
	return nil
}

// seal ends the file: footer, sync, rename, sync of the directory. When a step fails the
// file stays where it is, for Recover; a file under its sealed name is always whole.
func (s *segment) seal(add segmentInfo) error {
	info := s.info.plus(add)
	info.Total = add.Total
	text, err := info.json()
	if err != nil {
		return err
	}
	in := footerIn{schema: s.schema, dicts: s.dicts, blocks: s.records, digests: s.digests, info: text}
	tail, _, err := in.tail()
	if err != nil {
		return err
	}
	if err := s.append(append(s.head, tail...)); err != nil {
		return errors.Join(err, s.file.Close())
	}
	s.info = info
	if err := s.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", s.path, err), s.file.Close())
	}
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	if err := s.opts.FS.Rename(s.path+OpenExt, s.path); err != nil {
		return err
	}
	if err := s.opts.FS.SyncDir(filepath.Dir(s.path)); err != nil {
		return fmt.Errorf("sync directory of %s: %w", s.path, err)
	}
	return nil
}
