package arrowfile

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"
)

// mapping is the memory map of a sealed file. It stays as long as it is in use, also when
// the file is closed meanwhile; the zero mapping is of a file that was read into memory.
type mapping struct {
	mu     sync.Mutex
	data   []byte
	users  int
	closed bool
}

// mapFile maps a file, or reads it where that is not possible: other systems, files that
// are no regular ones, empty files.
func mapFile(path string) ([]byte, *mapping, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() <= math.MaxInt {
		if data, err := mmap(file, int(info.Size())); err == nil {
			return data, &mapping{data: data}, nil
		}
	}
	data, err := os.ReadFile(path)
	return data, &mapping{}, err
}

// acquire keeps the map until release; false means that the file is closed.
func (m *mapping) acquire() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.users++
	return true
}

func (m *mapping) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users--
	_ = m.unmap() // what was mapped can be unmapped
}

func (m *mapping) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return m.unmap()
}

// unmap ends a map that is closed and not in use any more.
func (m *mapping) unmap() error {
	data := m.data
	if !m.closed || m.users > 0 || data == nil {
		return nil
	}
	m.data = nil
	return munmap(data)
}

// guard runs what reads mapped bytes. A file that is cut short under its map faults where
// the bytes were; that becomes an error. The other way, to copy every batch out with
// pread, costs every scan for what happens to none.
func (f *File) guard(read func() error) (err error) {
	if f.mapped.data == nil {
		return read()
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			err = f.fault(r)
		}
	}()
	return read()
}

// fault is the error of a panic inside the map; any other panic goes on.
func (f *File) fault(r any) error {
	at, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	if at.Addr() < start || at.Addr() >= start+uintptr(len(f.data)) {
		panic(r)
	}
	return f.corrupt(int64(at.Addr()-start), fmt.Errorf("the file was cut short while it was read"))
}

// unmapLater makes the garbage collector unmap a file that nobody closes.
func (f *File) unmapLater() {
	if f.mapped.data != nil {
		runtime.AddCleanup(f, func(m *mapping) { _ = m.close() }, f.mapped)
	}
}
