package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// segment is a sealed file that waits for its upload.
type segment struct {
	name string
	size int64
	// sealed is when the file was last written.
	sealed time.Time
	// suspect: an earlier attempt may have stored it.
	suspect  bool
	busy     bool
	attempts int
	next     time.Time
	// err is the last failure; stuck repeats it when another attempt cannot help.
	err, stuck error
}

// errHeld: another process uploads the segment.
var errHeld = errors.New("another process is uploading the segment")

// salvage seals what killed writers left open. An empty file is passed over: it may be one
// that its writer has made and not locked yet, and holds nothing anyway.
func (s *Spool) salvage() {
	s.salvaged = s.opts.Now()
	if !locks {
		return // nothing tells whether a writer lives: 'clefbench datasets repair' is for people who know
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // scan says so
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || !strings.HasSuffix(e.Name(), arrowfile.Ext+arrowfile.OpenExt) {
			continue
		}
		r, err := arrowfile.Recover(filepath.Join(s.dir, e.Name()))
		switch {
		case err == nil:
			s.mu.Lock()
			s.stats.Salvaged++
			s.mu.Unlock()
			s.opts.Logger.Info("sealed a segment of a killed writer", "segment", r.Path, "rows", r.Rows, "cut_bytes", r.Cut)
		case !errors.Is(err, arrowfile.ErrBusy) && !errors.Is(err, fs.ErrNotExist):
			s.complain("a segment of a killed writer cannot be sealed", err)
		}
	}
}

// scan brings the queue up to date with the directory.
func (s *Spool) scan(first bool) error {
	files, err := s.files() // without the mutex, which a recorder's rows wait for
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A segment that was let go of since then comes back, and goes when its upload finds no file.
	for name, info := range files {
		p := s.queue[name]
		if p == nil || (!p.busy && (p.size != info.Size() || !p.sealed.Equal(info.ModTime()))) {
			s.queue[name] = &segment{name: name, size: info.Size(), sealed: info.ModTime(), suspect: first || p != nil}
		}
	}
	for name, p := range s.queue {
		if files[name] == nil && !p.busy {
			delete(s.queue, name) // another process has uploaded it
		}
	}
	s.recount()
	return nil
}

// files are the sealed segments of the directory.
func (s *Spool) files() (map[string]fs.FileInfo, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	out := map[string]fs.FileInfo{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && isSegment(e.Name()) {
			out[e.Name()] = info
		}
	}
	return out, nil
}

// isSegment tells sealed segments from others by name. Labels stand beside their segment in
// a file that is made anew when labels come in: it is no object that is written once.
func isSegment(name string) bool {
	return filepath.Ext(name) == arrowfile.Ext && !strings.HasSuffix(name, ".labels"+arrowfile.Ext) && name[0] != '.'
}

// recount adds up the queue; the mutex is held.
func (s *Spool) recount() {
	s.bytes = 0
	waiting := int64(0)
	for _, p := range s.queue {
		s.bytes += p.size
		if p.stuck == nil {
			waiting += p.size // what can never go must not shut the others out
		}
	}
	s.full.Store(waiting > s.opts.MaxBytes)
	if !s.full.Load() {
		s.makeRoom()
	}
}

// makeRoom wakes whoever waits; the mutex is held.
func (s *Spool) makeRoom() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// names is the queue in the order of writing; the mutex is held.
func (s *Spool) names() []string { return slices.Sorted(maps.Keys(s.queue)) }

// launch starts the uploads that are due, and returns when to look again.
func (s *Spool) launch() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wait := s.opts.Now(), s.opts.Poll
	limit := s.opts.Parallel
	if s.failing {
		limit = 1 // one attempt finds out as well as many whether the store is back
	}
	for _, name := range s.names() {
		p := s.queue[name]
		if p.busy || (s.draining && p.stuck != nil) {
			continue
		}
		if until := p.next.Sub(now); until > 0 {
			wait = min(wait, until)
			continue
		}
		if s.busy >= limit {
			break // one that ends will poke
		}
		p.busy = true
		s.busy++
		s.uploads.Go(func() { s.upload(p) })
	}
	return wait
}

// upload makes one attempt.
func (s *Spool) upload(p *segment) {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	o, v, err := s.ship(ctx, p)
	switch {
	case err == nil:
		s.shipped(p, o, v)
	case errors.Is(err, fs.ErrNotExist) && gone(filepath.Join(s.dir, p.name)):
		s.forget(p)
	case errors.Is(err, errHeld):
		s.postpone(p)
	case s.ctx.Err() != nil:
		s.interrupted(p, err)
	default:
		s.failed(p, err)
	}
	s.poke()
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// ship uploads a segment and lets go of the local file.
func (s *Spool) ship(ctx context.Context, p *segment) (*object, verdict, error) {
	path := filepath.Join(s.dir, p.name)
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	if ok, err := tryLock(file); err != nil {
		return nil, 0, fmt.Errorf("lock %s: %w", path, err)
	} else if !ok {
		return nil, 0, errHeld
	}
	o, err := describe(file, s.opts.Service)
	if err != nil {
		return nil, 0, err
	}
	v, err := put(ctx, s.store, o, file, p.suspect)
	if err != nil {
		return nil, 0, err
	}
	return o, v, s.letGo(path)
}

// letGo removes a segment that the bucket holds.
func (s *Spool) letGo(path string) error {
	if s.opts.Keep {
		return os.Rename(path, filepath.Join(s.dir, UploadedDir, filepath.Base(path)))
	}
	return os.Remove(path)
}

// shipped takes a segment off the queue.
func (s *Spool) shipped(p *segment, o *object, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Uploaded++
	s.stats.Bytes += uint64(o.size)
	s.stats.Rows += uint64(o.rows)
	if v == present {
		s.stats.Present++
	}
	if s.failing {
		s.failing, s.complained = false, time.Time{}
		s.opts.Logger.Info("uploads succeed again", "pending", len(s.queue)-1)
	}
	s.drop(p)
}

// drop takes a segment off the queue; the mutex is held.
func (s *Spool) drop(p *segment) {
	p.busy = false
	s.busy--
	delete(s.queue, p.name)
	s.recount()
}

// forget takes a segment off the queue that another process has let go of.
func (s *Spool) forget(p *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(p)
}

// postpone leaves a segment to the process that uploads it, for now.
func (s *Spool) postpone(p *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.busy, p.next = false, s.opts.Now().Add(s.opts.Poll)
	s.busy--
}

// interrupted gives up an attempt because the spool is closed.
func (s *Spool) interrupted(p *segment, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.busy, p.suspect = false, true
	if p.err == nil {
		p.err = err
	}
	s.busy--
}

// failed notes a failure and when to try again. A conflict and a corrupt file are tried
// again, too, as somebody may have put them right; but they do not hold up the others.
func (s *Spool) failed(p *segment, err error) {
	own := errors.Is(err, ErrConflict) || errors.Is(err, arrowfile.ErrCorrupt) ||
		errors.Is(err, arrowfile.ErrSchema) || errors.Is(err, arrowfile.ErrVersion)
	s.mu.Lock()
	p.busy, p.suspect, p.err, p.stuck = false, true, err, nil
	p.attempts++
	wait := s.opts.delay(p.attempts)
	if own {
		p.stuck, wait = err, s.opts.RetryMax
	} else {
		s.failing = true
	}
	p.next = s.opts.Now().Add(wait)
	s.busy--
	s.stats.Failures++
	s.recount()
	s.mu.Unlock()
	s.complain("an upload failed", err)
}
