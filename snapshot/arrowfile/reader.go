package arrowfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
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
	path     string
	data     []byte
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

// Open reads a file into memory and verifies every byte of it before any of it is
// decoded; a file that ends in .open is read as [OpenPartial] does. An error wraps
// [ErrCorrupt] (as [CorruptError], with the offset), [ErrVersion] or [ErrSchema].
func Open(path string) (*File, error) {
	if strings.HasSuffix(path, OpenExt) {
		return OpenPartial(path)
	}
	return open(path, (*File).loadSealed)
}

// OpenPartial reads a file that was not sealed: every whole batch of it. What follows the
// last one is left out, and counted in [Meta.Tail].
func OpenPartial(path string) (*File, error) {
	return open(path, (*File).loadEither)
}

// OpenForeign reads an Arrow file of another writer with our columns. It has no digests:
// what is read is held against the file's bounds and zstd's checksums only, and
// [Meta.Digest] is empty. It must not be used for files that Open refuses.
func OpenForeign(path string) (*File, error) { return open(path, (*File).loadForeign) }

func open(path string, load func(*File) error) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newFile(path, data, load)
}

func newFile(path string, data []byte, load func(*File) error) (*File, error) {
	f := &File{path: path, data: data, dicts: map[int64][]string{}}
	if err := load(f); err != nil {
		if !errors.Is(err, ErrCorrupt) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, err
	}
	return f, nil
}

// corrupt places an error in the file.
func (f *File) corrupt(offset int64, err error) error {
	if errors.Is(err, ErrSchema) || errors.Is(err, ErrVersion) {
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

// walkSealed checks that the messages fill the file without a gap, that each has the
// digest that the footer lists, and that the footer's blocks are these messages.
func (f *File) walkSealed(ft *footer) error {
	s := scanner{data: f.data[:ft.start-int64(len(eosMark))]}
	listed := append(slices.Clone(ft.dicts), ft.blocks...)
	if len(ft.digests) != len(listed)+1 {
		return f.corrupt(ft.start, fmt.Errorf("%d digests for %d messages", len(ft.digests), len(listed)+1))
	}
	for i, want := range ft.digests {
		at := s.next
		m, err := s.message()
		if err != nil {
			return f.corrupt(at, err)
		}
		if s.last != want {
			return f.corrupt(at, fmt.Errorf("the digest of message %d does not match", i))
		}
		if i > 0 && listed[i-1] != (block{m.offset, m.bodyLen, int32(m.metaLen)}) {
			return f.corrupt(ft.start, fmt.Errorf("the footer places message %d elsewhere", i))
		}
		f.take(m)
	}
	if s.next != int64(len(s.data)) || len(f.batches) != len(ft.blocks) {
		return f.corrupt(s.next, fmt.Errorf("bytes that no message holds"))
	}
	return f.loadDicts()
}

// loadEither reads a file that may have been sealed and not yet renamed.
func (f *File) loadEither() error {
	whole := &File{path: f.path, data: f.data, dicts: map[int64][]string{}}
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
	for _, m := range f.labels {
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

func (f *File) decoder() (*decoder, error) {
	z, ok := f.decoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		if z, err = newDecoder(); err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	}
	return &decoder{zstd: z, dicts: f.dicts}, nil
}

// Kind returns the sort of rows that the file holds.
func (f *File) Kind() Kind { return f.meta.Kind }

// Meta returns what the file says about itself.
func (f *File) Meta() Meta { return f.meta }

// Schema returns the capture list: the typed attributes of every row. It is nil for files
// without attributes, and shared by the rows.
func (f *File) Schema() *decision.Schema { return f.attrs }

// Close ends the use of the file. Its bytes are ordinary memory, so that rows and
// iterations that are under way stay valid; the garbage collector frees it.
func (f *File) Close() error { return nil }

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
