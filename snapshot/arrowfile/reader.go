package arrowfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// File is an open file. Its methods are safe for concurrent use, and each iteration has
// memory of its own.
type File struct {
	path    string
	data    []byte
	mapped  *mapping
	workers int
	// largest is what the largest batch takes when it is decompressed.
	largest  int64
	meta     Meta
	shapes   []*shape
	attrs    *decision.Schema
	schema   *message
	labels   []*message
	dicts    map[int64][]string
	batches  []*message
	decoders sync.Pool
	// arenas are kept for the next iteration.
	arenas sync.Pool
}

// ReadOption configures the reading of a file.
type ReadOption func(*File)

// Workers sets how many cores one iteration over a sealed file may use; 1 decodes on the
// caller's goroutine alone. The default is the number of cores, at most 4. An iteration
// decodes up to so many batches at once and then yields their rows: nothing runs while
// the caller has a row, so that the caller's own measurements stay undisturbed. Each batch
// takes memory for its decompressed columns (some 5 MiB for 8192 rows), and all of an
// iteration's at most 256 MiB, unless a single batch takes more.
func Workers(n int) ReadOption { return func(f *File) { f.workers = max(n, 1) } }

// maxWorkers is the default bound: batches of one segment are few.
const maxWorkers = 4

// Open maps a sealed file into memory (or reads it, where it cannot be mapped) and
// verifies every byte of it before any of it is decoded; a file that ends in .open is read
// as [OpenPartial] does. An error wraps [ErrCorrupt] (as [CorruptError], with the offset),
// [ErrVersion] or [ErrSchema]. A file that is cut short while it is open gives an error
// of the iteration that meets the end; a change to a batch is found by zstd's checksums.
func Open(path string, opts ...ReadOption) (*File, error) {
	if strings.HasSuffix(path, OpenExt) {
		return OpenPartial(path, opts...)
	}
	data, m, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	return newMapped(path, data, m, (*File).loadSealed, opts)
}

// OpenPartial reads a file that was not sealed: every whole batch of it. What follows the
// last one is left out, and counted in [Meta.Tail].
func OpenPartial(path string, opts ...ReadOption) (*File, error) {
	return open(path, (*File).loadEither, opts)
}

// OpenForeign reads an Arrow file of another writer with our columns. It has no digests:
// what is read is held against the file's bounds and zstd's checksums only, and
// [Meta.Digest] is empty. It must not be used for files that Open refuses.
func OpenForeign(path string, opts ...ReadOption) (*File, error) {
	return open(path, (*File).loadForeign, opts)
}

// open reads the file into memory: who does not verify it must not see it change.
func open(path string, load func(*File) error, opts []ReadOption) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newMapped(path, data, &mapping{}, load, opts)
}

func newFile(path string, data []byte, load func(*File) error) (*File, error) {
	return newMapped(path, data, &mapping{}, load, nil)
}

func newMapped(path string, data []byte, m *mapping, load func(*File) error, opts []ReadOption) (*File, error) {
	f := &File{path: path, data: data, mapped: m, dicts: map[int64][]string{}, workers: min(runtime.GOMAXPROCS(0), maxWorkers)}
	for _, set := range opts {
		set(f)
	}
	if err := f.guard(func() error { return load(f) }); err != nil {
		err = errors.Join(err, m.close())
		if !errors.Is(err, ErrCorrupt) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, err
	}
	f.unmapLater()
	return f, nil
}

// corrupt places an error in the file.
func (f *File) corrupt(offset int64, err error) error {
	if placed := (*CorruptError)(nil); errors.Is(err, ErrSchema) || errors.Is(err, ErrVersion) || errors.As(err, &placed) {
		return err
	}
	return &CorruptError{Path: f.path, Offset: offset, Err: err}
}

// loadSealed verifies from the end to the beginning: the tail's digest covers the list of
// the messages' digests, and they cover everything between the magic and the tail.
func (f *File) loadSealed() error {
	start, err := findFooter(f.data)
	if err != nil {
		return f.corrupt(int64(max(len(f.data)-tailLen, 0)), err)
	}
	digest, err := checkFooter(f.data, start)
	if err != nil {
		return f.corrupt(int64(start-min(start, len(eosMark))), err)
	}
	ft, err := parseFooter(f.data, start)
	if err != nil {
		return f.corrupt(int64(start), err)
	}
	if err := f.walkSealed(ft); err != nil {
		return err
	}
	if err := f.loadSchema(); err != nil {
		return err
	}
	if err := f.loadDicts(); err != nil {
		return err
	}
	f.meta.Sealed, f.meta.Digest = true, hex.EncodeToString(digest[:])
	ft.info.fill(&f.meta)
	var rows int64
	for _, m := range f.batches {
		rows += m.table.i64(0, 0)
	}
	if rows != f.meta.Rows {
		return f.corrupt(ft.start, fmt.Errorf("%d rows in the batches, %d in the footer", rows, f.meta.Rows))
	}
	return nil
}

// walkSealed checks that the messages fill the file without a gap, that the footer's
// blocks are these messages, and that each has the digest that the footer lists.
func (f *File) walkSealed(ft *footer) error {
	s := scanner{data: f.data[:ft.start-int64(len(eosMark))], next: int64(len(headMagic))}
	listed := append(slices.Clone(ft.dicts), ft.blocks...)
	if len(ft.digests) != len(listed)+1 {
		return f.corrupt(ft.start, fmt.Errorf("%d digests for %d messages", len(ft.digests), len(listed)+1))
	}
	messages := make([]*message, len(ft.digests))
	for i := range messages {
		m, err := parseMessage(s.data, s.next)
		if err == nil {
			err = s.inOrder(m.header)
		}
		if err != nil {
			return f.corrupt(s.next, err)
		}
		if i > 0 && listed[i-1] != (block{m.offset, m.bodyLen, int32(m.metaLen)}) {
			return f.corrupt(ft.start, fmt.Errorf("the footer places message %d elsewhere", i))
		}
		messages[i], s.next, s.seen = m, m.end(), m.header
	}
	if err := f.checkDigests(messages, ft.digests); err != nil {
		return err
	}
	for _, m := range messages {
		f.take(m)
	}
	if s.next != int64(len(s.data)) || len(f.batches) != len(ft.blocks) {
		return f.corrupt(s.next, fmt.Errorf("bytes that no message holds"))
	}
	return nil
}

// loadEither reads a file that may have been sealed and not yet renamed.
func (f *File) loadEither() error {
	whole := &File{path: f.path, data: f.data, mapped: f.mapped, dicts: map[int64][]string{}, workers: f.workers}
	if whole.loadSealed() != nil {
		return f.loadPartial()
	}
	return f.loadSealed()
}

// loadPartial takes every message whose digest holds, up to the first that does not.
func (f *File) loadPartial() error {
	s := scanner{data: f.data}
	if !strings.HasPrefix(string(f.data[:min(len(f.data), 8)]), headMagic) {
		return f.corrupt(0, fmt.Errorf("does not begin as an Arrow file"))
	}
	var failed error
	for failed == nil {
		var m *message
		if m, failed = s.message(); failed == nil {
			f.take(m)
		}
	}
	if f.schema == nil || len(f.batches) == 0 {
		return f.corrupt(s.next, fmt.Errorf("no whole batch: %w", failed))
	}
	if err := f.loadSchema(); err != nil {
		return err
	}
	if err := f.loadDicts(); err != nil {
		return err
	}
	f.meta.Tail = int64(len(f.data)) - s.next
	last := f.batches[len(f.batches)-1]
	info, err := batchInfo(last)
	if err != nil {
		return f.corrupt(last.offset, err)
	}
	info.fill(&f.meta)
	return nil
}

// loadForeign follows the footer's blocks without digests.
func (f *File) loadForeign() error {
	start, err := findFooter(f.data)
	if err != nil {
		return f.corrupt(0, err)
	}
	ft, err := parseFooter(f.data, start)
	if err != nil {
		return f.corrupt(int64(start), err)
	}
	if f.schema, err = parseMessage(f.data[:start], int64(len(headMagic))); err != nil {
		return f.corrupt(int64(len(headMagic)), err)
	}
	for _, b := range append(ft.dicts, ft.blocks...) {
		m, err := parseMessage(f.data[:start], b.offset)
		if err != nil {
			return f.corrupt(b.offset, err)
		}
		f.take(m)
	}
	if err := f.loadSchema(); err != nil {
		return err
	}
	if err := f.loadDicts(); err != nil {
		return err
	}
	for _, m := range f.batches {
		f.meta.Rows += m.table.i64(0, 0)
	}
	f.meta.Sealed = true
	return nil
}

// take files a message by its kind.
func (f *File) take(m *message) {
	switch m.header {
	case headerSchema:
		f.schema = m
	case headerDictionary:
		f.labels = append(f.labels, m)
	default:
		f.batches = append(f.batches, m)
	}
}

func (f *File) loadSchema() error {
	shapes, kv, err := parseSchema(f.schema.table)
	if err != nil {
		return f.corrupt(f.schema.offset, err)
	}
	if f.meta, err = metaOf(kv); err != nil {
		return err
	}
	f.meta.Segment = SegmentOf(f.path)
	f.shapes = shapes
	if f.meta.Kind == KindSnapshot {
		f.attrs, err = attrSchema(shapes)
	}
	return err
}

// loadDicts decodes the dictionaries.
func (f *File) loadDicts() error {
	dec, err := f.decoder()
	if err != nil {
		return err
	}
	defer f.decoders.Put(dec.zstd)
	known := dictIDs(f.shapes, map[int64]bool{})
	for _, m := range f.labels {
		if !known[m.table.i64(0, 0)] {
			continue // of a column that is stepped over
		}
		if err := f.loadDict(dec, m); err != nil {
			return f.corrupt(m.offset, err)
		}
	}
	return nil
}

func (f *File) loadDict(dec *decoder, m *message) error {
	id := m.table.i64(0, 0)
	if _, dup := f.dicts[id]; dup || m.table.u8(2) != 0 {
		return fmt.Errorf("%w: dictionary %d is replaced or extended", ErrSchema, id)
	}
	v := newVectors([]*shape{{name: "dictionary", typ: typeUTF8, dict: noDict, skipBuffers: 3}})
	data := m.table.sub(1)
	n, err := dec.batch(data, m.body, v, nil)
	if err != nil {
		return err
	}
	labels := make([]string, n)
	for i := range labels {
		if !v[0].skipped && v[0].ok(i) {
			labels[i] = v[0].str(i)
		}
	}
	f.dicts[id] = labels
	return nil
}

// dictIDs gathers the ids of the dictionaries that columns are read with.
func dictIDs(shapes []*shape, into map[int64]bool) map[int64]bool {
	for _, s := range shapes {
		if s.dict != noDict {
			into[s.dict] = true
		}
		dictIDs(s.children, into)
	}
	return into
}

func (f *File) decoder() (*decoder, error) {
	z, ok := f.decoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		if z, err = newDecoder(); err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	}
	return &decoder{zstd: z, dicts: f.dicts, own: f.mapped.data != nil}, nil
}

// Kind returns the sort of rows that the file holds.
func (f *File) Kind() Kind { return f.meta.Kind }

// Meta returns what the file says about itself.
func (f *File) Meta() Meta { return f.meta }

// Schema returns the capture list: the typed attributes of every row. It is nil for files
// without attributes, and shared by the rows.
func (f *File) Schema() *decision.Schema { return f.attrs }

// Close ends the use of the file: iterations that begin later fail with an error that
// wraps [fs.ErrClosed]. Those under way stay valid, and so do rows: they never refer to
// the file's own bytes.
func (f *File) Close() error { return f.mapped.close() }

// Snapshots yields the rows in order. A row is valid until the next step, and must be left
// as it was found; its strings stay valid. Named columns restrict what is decoded: all others are left at their zero
// values. An error ends the iteration.
func (f *File) Snapshots(columns ...string) iter.Seq2[*snapshot.Snapshot, error] {
	return rowsOf(f, KindSnapshot, snapshotFields(f.attrs), columns, func(s *snapshot.Snapshot, row int64) *snapshot.Snapshot {
		s.Ref = snapshot.Ref{Segment: f.meta.Segment, Row: row}
		return s
	})
}

// Outcomes yields the rows in order, as [File.Snapshots] does.
func (f *File) Outcomes(columns ...string) iter.Seq2[*snapshot.Outcome, error] {
	return rowsOf(f, KindOutcome, outcomeFields(), columns, func(o *snapshot.Outcome, _ int64) *snapshot.Outcome { return o })
}

// Labels yields one label for each row of the snapshot segment, in its order; nil where
// there is none. Otherwise it is as [File.Snapshots].
func (f *File) Labels(columns ...string) iter.Seq2[*snapshot.Label, error] {
	if len(columns) > 0 {
		columns = append([]string{"id"}, columns...)
	}
	return rowsOf(f, KindLabel, labelFields(), columns, func(l *snapshot.Label, _ int64) *snapshot.Label {
		if l.ID.IsZero() {
			return nil
		}
		return l
	})
}
