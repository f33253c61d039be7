package arrowfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// maxRowBytes bounds one row: it has to fit a batch that every reader takes.
const maxRowBytes = 64 << 20

// rowBatch gathers rows of one kind.
type rowBatch[R any] struct {
	columnSet
	program program
	bytes   int
	info    segmentInfo
}

func (b *rowBatch[R]) init(seed map[string][]string, fields []field[R]) {
	b.dicts, b.plain, b.seed = map[string]*interner{}, map[string]bool{}, seed
	b.use(fields)
}

// use changes the columns; the batch must be empty.
func (b *rowBatch[R]) use(fields []field[R]) {
	specs := specsOf(fields)
	b.rebuild(shapesOf(specs))
	b.program = programOf(specs, b.columns)
}

// add appends a row; nil is a row of nulls.
func (b *rowBatch[R]) add(r *R, size int) {
	b.mended = b.mended[:0]
	if r != nil {
		b.program.run(unsafe.Pointer(r))
	}
	b.n++
	b.bytes += size
	b.info.Mended += int64(len(b.mended))
}

// full reports whether the batch has no room for a row of a size.
func (b *rowBatch[R]) full(o *Options, size int) bool {
	return b.n >= o.BatchRows || (b.n > 0 && b.bytes+size > o.BatchBytes)
}

// clear empties the batch after it was written.
func (b *rowBatch[R]) clear() {
	b.reset()
	b.bytes, b.info = 0, segmentInfo{}
}

// pending is what the batch adds to its segment; requests is nil for rows that are not
// counted by requests.
func (b *rowBatch[R]) pending(lost snapshot.Ledger, requests *snapshot.Counts) segmentInfo {
	info := b.info
	info.Rows = int64(b.n)
	info.Ledger = snapshot.Ledger{Offered: uint64(b.n), Written: uint64(b.n), Requests: requests}
	info.Ledger.Add(lost)
	return info
}

// tooLarge refuses a row that no batch could hold.
func tooLarge(size int) error {
	if size > maxRowBytes {
		return fmt.Errorf("%w: row of %d bytes, at most %d can be written", snapshot.ErrInvalid, size, maxRowBytes)
	}
	return nil
}

// elementBytes is what one list element counts for in the size of a row.
const elementBytes = 32

func candidateBytes(cs []decision.Candidate) int {
	n := 0
	for i := range cs {
		n += elementBytes + len(cs[i].Action)
	}
	return n
}

func stringBytes(list []string) int {
	n := 0
	for _, s := range list {
		n += elementBytes + len(s)
	}
	return n
}

// snapshotBytes is the size of a row's parts of variable length.
func snapshotBytes(s *snapshot.Snapshot) int {
	n := len(s.Input) + len(s.Output) + 4*len(s.Features) + candidateBytes(s.Candidates) + stringBytes(s.Redacted) +
		len(s.SourceID) + len(s.Params) + len(s.Error) + len(s.ND) + len(s.Action) + len(s.Question) + len(s.RuleID)
	for i := range s.Attrs.Values {
		n += len(s.Attrs.Values[i].Str())
	}
	return n
}

func outcomeBytes(o *snapshot.Outcome) int {
	return candidateBytes(o.Candidates) + stringBytes(o.Missing) + len(o.Ref.Segment) + len(o.Action) +
		len(o.Params) + len(o.Error) + len(o.Recorded) + len(o.RuleID) + len(o.Question) + len(o.Scenario)
}

func labelBytes(l *snapshot.Label) int {
	n := len(l.Ref.Segment) + len(l.Action) + len(l.Source) + len(l.Key)
	for i := range l.Utilities {
		n += elementBytes + len(l.Utilities[i].Action)
	}
	return n
}

// segment is one file while it is written.
type segment struct {
	opts *Options
	enc  *encoder
	// path is the name that the file gets when it is sealed; from then on it has a digest.
	path   string
	digest string
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
	// dirty: there are bytes that were not synced; placed: the directory was synced.
	dirty, placed bool
	buf           []byte
	// encode is the time spent on encoding, told the size, when the writer last asked.
	encode time.Duration
	told   int64
}

// segmentHead is what a new segment is told about itself.
type segmentHead struct {
	path  string
	kind  Kind
	seq   int
	attrs *decision.Schema
	link  *Link
}

// newSegment creates the file and builds its head from the columns as they are now.
func newSegment(o *Options, enc *encoder, h segmentHead, cols *columnSet) (*segment, error) {
	now := o.Now()
	s := &segment{opts: o, enc: enc, path: h.path, attrs: h.attrs, labels: cols.labels(), opened: now, synced: now}
	keys, values, err := headMeta(o, &h)
	if err != nil {
		return nil, err
	}
	shapes := cols.shapes()
	if s.schema, err = schemaMessage(shapes, keys, values); err != nil {
		return nil, err
	}
	if s.file, err = o.FS.Create(h.path + OpenExt); err != nil {
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
	began := time.Now()
	buf, b, last := s.enc.recordBatch(buf, cols.columns, cols.n, []keyValue{{keySegment, text}}, s.last)
	s.encode += time.Since(began)
	s.buf = buf
	if err := s.append(buf); err != nil {
		return err
	}
	b.offset += s.size
	s.head, s.dirty = nil, true
	if s.opts.Sync == SyncBatch {
		// The kernel may drop the pages of a failed sync: another sync of this file could
		// succeed without the data. So the file is given up, and the batch goes elsewhere.
		if err := s.sync(s.opts.Now()); err != nil {
			return errors.Join(err, s.file.Truncate(s.size))
		}
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

// sync makes what was written durable, the first time with the file's name.
func (s *segment) sync(now time.Time) error {
	err := s.file.Sync()
	if err == nil && !s.placed {
		err = s.opts.FS.SyncDir(filepath.Dir(s.path))
	}
	if err != nil {
		return fmt.Errorf("%w: sync %s: %w", errTorn, s.path, err)
	}
	s.synced, s.dirty, s.placed = now, false, true
	return nil
}

// syncIfDue syncs under the interval policy.
func (s *segment) syncIfDue(now time.Time) error {
	if !s.dirty || s.opts.Sync != SyncInterval || now.Sub(s.synced) < s.opts.SyncEvery {
		return nil
	}
	return s.sync(now)
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
	tail, digest, err := in.tail()
	if err != nil {
		return err
	}
	tail = append(s.head, tail...)
	if err := s.append(tail); err != nil {
		return errors.Join(err, s.file.Close())
	}
	s.size += int64(len(tail))
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
	s.digest = hex.EncodeToString(digest[:])
	if err := s.opts.FS.SyncDir(filepath.Dir(s.path)); err != nil {
		return fmt.Errorf("sync directory of %s: %w", s.path, err)
	}
	return nil
}
