package arrowfile

import (
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

// rowsOf iterates over the rows of a kind; done completes a row, or makes it nil.
func rowsOf[R any](f *File, kind Kind, fields []field[R], columns []string, done func(*R, int64) *R) iter.Seq2[*R, error] {
	return func(yield func(*R, error) bool) {
		if f.meta.Kind != kind {
			yield(nil, fmt.Errorf("%s: %w: the file holds rows of kind %s, not %s", f.path, ErrSchema, f.meta.Kind, kind))
			return
		}
		dec, err := f.decoder()
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.decoders.Put(dec.zstd)
		it := iteration[R]{f: f, dec: dec, specs: specsOf(fields), arena: arenaOf[R](f), want: wanted(columns), done: done}
		if it.run(yield) {
			f.arenas.Put(it.arena)
		}
	}
}

func wanted(columns []string) func(string) bool {
	if len(columns) == 0 {
		return nil
	}
	return func(name string) bool { return slices.Contains(columns, name) }
}

// iteration is one pass over the rows of a file.
type iteration[R any] struct {
	f     *File
	dec   *decoder
	specs []spec
	arena *arena[R]
	want  func(string) bool
	done  func(*R, int64) *R
	row   int64
}

// arena is what an iteration decodes a batch into.
type arena[R any] struct {
	vectors []*vector
	rows    []R
}

func arenaOf[R any](f *File) *arena[R] {
	if m, ok := f.arenas.Get().(*arena[R]); ok {
		return m
	}
	return &arena[R]{newVectors(f.shapes), make([]R, blockRows)}
}

// run yields all rows. It reports whether the last step was asked for, too: only then is
// no row in use any more.
func (it *iteration[R]) run(yield func(*R, error) bool) bool {
	rows := it.arena.rows
	for _, m := range it.f.batches {
		n, l, err := it.load(m)
		if err != nil {
			yield(nil, it.f.corrupt(m.offset, err))
			return false
		}
		// What this batch does not load is zero; what it does is overwritten block by block.
		clear(rows)
		l = l.constants(placesOf(rows[:min(blockRows, n)]))
		for from := 0; from < n; from += blockRows {
			if !it.block(rows[:min(blockRows, n-from)], from, l, yield) {
				return false
			}
		}
	}
	return true
}

// blockRows is the number of rows that are filled at once. They have to stay in the
// nearest cache until they are yielded.
const blockRows = 16

func (it *iteration[R]) load(m *message) (int, loads, error) {
	n, err := it.dec.batch(m.table, m.body, it.arena.vectors, it.want)
	if err != nil {
		return 0, nil, err
	}
	l, err := bindAll(it.specs, it.arena.vectors, nil)
	return n, l, err
}

func placesOf[R any](rows []R) places {
	return places{unsafe.Pointer(unsafe.SliceData(rows)), unsafe.Sizeof(*new(R)), len(rows)}
}

func (it *iteration[R]) block(rows []R, from int, l loads, yield func(*R, error) bool) bool {
	l.fill(from, placesOf(rows))
	for i := range rows {
		if !yield(it.done(&rows[i], it.row), nil) {
			return false
		}
		it.row++
	}
	return true
}
