package arrowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// opened opens a file with a number of workers.
func opened(t testing.TB, path string, workers int) *File {
	t.Helper()
	f, err := Open(path, Workers(workers))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bigRows have inputs that do not compress, so that batches are many pages long.
func bigRows(seed uint64, n int) []*snapshot.Snapshot {
	r := rand.New(rand.NewPCG(seed, 1))
	rows := make([]*snapshot.Snapshot, n)
	for i := range rows {
		rows[i] = plainRow("s", fmt.Sprint("a", i%7))
		rows[i].Input = make([]byte, 700)
		for k := range rows[i].Input {
			rows[i].Input[k] = byte(r.Uint32())
		}
	}
	return rows
}

// A fault in a map would end the process; here it ends the iteration.
func TestAFileThatIsCutShortWhileItIsReadIsAnError(t *testing.T) {
	rows := bigRows(71, 600)
	for _, workers := range []int{1, 4} {
		for _, keep := range []int64{0, 1, 3} { // quarters of the file
			path, data := oneSegment(t, rows, 50)
			f := opened(t, path, workers)
			if f.mapped.data == nil {
				t.Skip("files are not mapped on this system")
			}
			n := 0
			var last error
			for s, err := range f.Snapshots() {
				if last = err; err != nil {
					break
				}
				if !bytes.Equal(s.Input, rows[n].Input) || s.ID != rows[n].ID {
					t.Fatalf("row %d is another one", n)
				}
				if n++; n == 1 {
					if err := os.Truncate(path, int64(len(data))*keep/4); err != nil {
						t.Fatal(err)
					}
				}
			}
			var where *CorruptError
			if !errors.Is(last, ErrCorrupt) || !errors.As(last, &where) {
				t.Errorf("%d workers, %d quarters left: %d rows, then %v", workers, keep, n, last)
			}
			if n < 50 || n >= len(rows) {
				t.Errorf("%d workers, %d quarters left: %d rows were read", workers, keep, n)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The truncation may come at any time, while the file is being opened as well.
func TestTruncationsRaceWithOpening(t *testing.T) {
	rows := bigRows(72, 400)
	found := 0
	for i := range 30 {
		path, data := oneSegment(t, rows, 50)
		done := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
			done <- os.Truncate(path, int64(len(data)/3))
		}()
		f, err := Open(path, Workers(2))
		if err == nil {
			_, err = readAll(f)
			_ = f.Close()
		}
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if err != nil {
			found++
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 30 readers met the cut", found)
}

func TestOtherPanicsAreNotFaults(t *testing.T) {
	path, _ := oneSegment(t, randomRows(newGen(73), 5), 5)
	f := opened(t, path, 1)
	defer func() {
		if r := recover(); r != "another" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = f.guard(func() error { panic("another") })
	t.Error("the panic was swallowed")
}

// What rows hold is never a part of the map: rows are used after the file was closed.
func TestRowsOutliveAClosedFile(t *testing.T) {
	rows := randomRows(newGen(74), 120)
	path, _ := oneSegment(t, rows, 20)
	f := opened(t, path, 3)
	var kept []*snapshot.Snapshot
	for s, err := range f.Snapshots() {
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) == 0 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c := deepClone(s)
		c.Ref = snapshot.Ref{}
		c.Error, c.SourceID = s.Error, s.SourceID // the strings themselves
		kept = append(kept, c)
	}
	if f.mapped.data != nil {
		t.Error("the map stayed after the last iteration over a closed file")
	}
	diff(t, rows, kept)
	for _, err := range f.Snapshots() {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("an iteration over a closed file: %v", err)
		}
	}
	if err := f.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestBuffersThatAreNotCompressedAreCopiedOutOfAMap(t *testing.T) {
	body := append(binary.LittleEndian.AppendUint64(nil, ^uint64(0)), "plain text"...)
	for _, own := range []bool{true, false} {
		d := decoder{own: own}
		var memory held
		out, err := d.inflate(body, &memory)
		if err != nil || string(out) != "plain text" {
			t.Fatalf("%q, %v", out, err)
		}
		if aliases := &out[0] == &body[8]; aliases == own {
			t.Errorf("own %v, but the result aliases the body: %v", own, aliases)
		}
	}
}

func TestAForgottenFileIsUnmapped(t *testing.T) {
	path, _ := oneSegment(t, randomRows(newGen(75), 5), 5)
	m := opened(t, path, 1).mapped
	for range 200 {
		runtime.GC()
		m.mu.Lock()
		closed := m.closed
		m.mu.Unlock()
		if closed {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("the map of a file that nobody refers to stayed")
}

// The guarantee of the bit flip tests on the way that Open takes: mapped, with workers.
func TestEveryBitFlipOfAMappedFileIsFound(t *testing.T) {
	path, data := oneSegment(t, randomRows(newGen(76), 60), 20)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		at, bit := r.IntN(len(data)), byte(1)<<r.IntN(8)
		put := func(b byte) {
			if _, err := file.WriteAt([]byte{b}, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		put(data[at] ^ bit)
		if _, err := Open(path, Workers(1+at%4)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %#x of byte %d of %d: %v", bit, at, len(data), err)
		}
		put(data[at])
	}
	for range 200 {
		n := r.IntN(len(data))
		if err := os.WriteFile(path, data[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Workers(1+n%4)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d of %d: %v", n, len(data), err)
		}
	}
}

// A byte that changes after the file was verified shows in the map; zstd's checksums find
// it, and the metadata was copied.
func TestChangesUnderAMapNeverChangeARow(t *testing.T) {
	rows := randomRows(newGen(77), 60)
	path, data := oneSegment(t, rows, 20)
	r := rand.New(rand.NewPCG(9, 10))
	found := 0
	for i := range 500 {
		f := opened(t, path, 1+i%4)
		at := r.IntN(len(data))
		img := bytes.Clone(data)
		img[at] ^= 1 << r.IntN(8)
		if err := os.WriteFile(path, img, 0o644); err != nil { // the same inode
			t.Fatal(err)
		}
		got, err := readAll(f)
		if err == nil {
			diff(t, rows, got)
		} else if found++; !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		_ = f.Close()
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("no change was found")
	}
}

func TestWorkersReadTheSameRowsInOrder(t *testing.T) {
	rows := randomRows(newGen(78), 230)
	path, _ := oneSegment(t, rows, 9)
	for _, workers := range []int{-1, 1, 2, 3, 7, 100} {
		f := opened(t, path, workers)
		for range 2 { // the second time in memory that was used
			got, err := readAll(f)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, rows, got)
		}
	}
}

// Wherever a caller stops, no goroutine is left.
func TestStoppingLeavesNoGoroutine(t *testing.T) {
	rows := randomRows(newGen(79), 100)
	path, _ := oneSegment(t, rows, 5)
	f := opened(t, path, 8)
	before := runtime.NumGoroutine()
	for stop := range len(rows) {
		n := 0
		for _, err := range f.Snapshots() {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > stop {
				break
			}
		}
	}
	for range 1000 { // a goroutine that is done may still be on its way out
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// The error of a batch comes after the rows of the batches before it, with any number of
// workers.
func TestRowsBeforeADamagedBatchAreRead(t *testing.T) {
	rows := randomRows(newGen(80), 100)
	path, data := oneSegment(t, rows, 10)
	for _, workers := range []int{1, 4} {
		f, err := newFile(path, bytes.Clone(data), (*File).loadSealed)
		if err != nil {
			t.Fatal(err)
		}
		f.workers = workers
		clear(f.batches[6].body)
		n := 0
		for _, err = range f.Snapshots() {
			if err != nil {
				break
			}
			n++
		}
		var where *CorruptError
		if n != 60 || !errors.As(err, &where) || where.Offset != f.batches[6].offset {
			t.Errorf("%d workers: %d rows, then %v", workers, n, err)
		}
	}
}

func TestTurnsAreBoundedByMemory(t *testing.T) {
	path, _ := oneSegment(t, randomRows(newGen(81), 20), 5)
	f := opened(t, path, 4)
	for largest, want := range map[int64]int{1: 4, maxAhead / 4: 4, maxAhead / 3: 3, maxAhead/2 + 1: 1, maxAhead: 1, 1 << 40: 1} {
		if f.largest = largest; f.parallel() != want {
			t.Errorf("%d batches at once when one takes %d bytes, want %d", f.parallel(), largest, want)
		}
	}
	for _, load := range []func(*File) error{(*File).loadForeign, (*File).loadPartial} {
		if f, err := newFile(path, f.data, load); err != nil || f.parallel() != 1 {
			t.Errorf("a file that is not verified: %d at once, %v", f.parallel(), err)
		}
	}
}
