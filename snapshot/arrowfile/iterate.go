package arrowfile

import (
	"fmt"
	"io/fs"
	"iter"
	"sync"
	"unsafe"
)

// rowsOf iterates over the rows of a kind; done completes a row, or makes it nil.
func rowsOf[R any](f *File, kind Kind, fields []field[R], columns []string, done func(*R, int64) *R) iter.Seq2[*R, error] {
	return func(yield func(*R, error) bool) {
		if f.meta.Kind != kind {
			yield(nil, fmt.Errorf("%s: %w: the file holds rows of kind %s, not %s", f.path, ErrSchema, f.meta.Kind, kind))
			return
		}
		if !f.mapped.acquire() {
			yield(nil, fmt.Errorf("%s: %w", f.path, fs.ErrClosed))
			return
		}
		defer f.mapped.release()
		it := iteration[R]{f: f, specs: specsOf(fields), done: done}
		it.want = wanted(columns, it.specs)
		if it.run(yield) {
			it.giveBack()
		}
	}
}

// wanted holds for the named columns, else for all that rows have a place for: what is not
// known is stepped over.
func wanted(columns []string, specs []spec) func(string) bool {
	names := make(map[string]bool, len(specs))
	for i := range specs {
		names[specs[i].shape.name] = len(columns) == 0
	}
	for _, c := range columns {
		names[c] = true
	}
	return func(name string) bool { return names[name] }
}

// iteration is one pass over the rows of a file. It takes turns: several batches are
// decoded at once, a worker each, and then their rows are yielded with no worker running.
// To decode ahead while the caller has a row would be a little faster, but the work would
// fall into what the caller measures, and a caller that never comes back would leave
// goroutines behind.
type iteration[R any] struct {
	f       *File
	specs   []spec
	want    func(string) bool
	done    func(*R, int64) *R
	workers []*worker[R]
	row     int64
}

// worker decodes one batch of a turn.
type worker[R any] struct {
	dec   *decoder
	arena *arena[R]
	// What was decoded.
	n     int
	loads loads
	err   error
}

// arena is what a batch is decoded into.
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
	// Turns grow from one batch: a caller that wants a few rows pays for one.
	size := 1
	for rest := it.f.batches; len(rest) > 0; {
		turn := rest[:min(size, len(rest))]
		rest = rest[len(turn):]
		it.decode(turn)
		for i, m := range turn {
			w := it.workers[i]
			if w.err != nil {
				yield(nil, it.f.corrupt(m.offset, w.err))
				return false
			}
			if !it.batch(w, yield) {
				return false
			}
		}
		size = min(2*size, it.f.parallel())
	}
	return true
}

// maxAhead bounds what the batches of one turn take decompressed.
const maxAhead = 256 << 20

// parallel is how many batches are decoded at once.
func (f *File) parallel() int {
	if f.largest == 0 {
		return 1 // not a sealed file: nothing is known about its batches
	}
	return int(max(min(int64(f.workers), maxAhead/f.largest), 1))
}

// decode decodes the batches of a turn, one of them on the caller's goroutine.
func (it *iteration[R]) decode(turn []*message) {
	for len(it.workers) < len(turn) {
		it.workers = append(it.workers, &worker[R]{arena: arenaOf[R](it.f)})
	}
	var wg sync.WaitGroup
	for i, m := range turn[1:] {
		wg.Go(func() { it.workers[i+1].decode(it, m) })
	}
	it.workers[0].decode(it, turn[0])
	wg.Wait()
}

func (w *worker[R]) decode(it *iteration[R], m *message) {
	if w.dec == nil {
		if w.dec, w.err = it.f.decoder(); w.err != nil {
			return
		}
	}
	if w.n, w.err = it.f.batch(w.dec, m, w.arena.vectors, it.want); w.err == nil {
		w.loads, w.err = bindAll(it.specs, w.arena.vectors, w.loads[:0])
	}
}

// batch decodes one batch of the file.
func (f *File) batch(dec *decoder, m *message, vectors []*vector, want func(string) bool) (n int, err error) {
	err = f.guard(func() error {
		n, err = dec.batch(m.table, m.body, vectors, want)
		return err
	})
	return n, err
}

// giveBack keeps what a finished iteration used for the next.
func (it *iteration[R]) giveBack() {
	for _, w := range it.workers {
		it.f.arenas.Put(w.arena)
		it.f.decoders.Put(w.dec.zstd)
	}
}

// blockRows is the number of rows that are filled at once. They have to stay in the
// nearest cache until they are yielded.
const blockRows = 16

// batch yields the rows of a batch. It reports whether the next step was asked for.
func (it *iteration[R]) batch(w *worker[R], yield func(*R, error) bool) bool {
	rows := w.arena.rows
	// What this batch does not load is zero; what it does is overwritten block by block.
	clear(rows)
	l := w.loads.constants(placesOf(rows[:min(blockRows, w.n)]))
	for from := 0; from < w.n; from += blockRows {
		if !it.block(rows[:min(blockRows, w.n-from)], from, l, yield) {
			return false
		}
	}
	return true
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
