package arrowfile

import (
	"sync/atomic"
	"time"
)

// Stats is what a [Writer] has done so far.
type Stats struct {
	// Segments were sealed; Abandoned were left behind by write errors, for [Recover].
	Segments, Abandoned uint64
	// Batches hold Rows of Requests; rows that wait for their batch are not among them.
	Batches, Rows, Requests uint64
	// Bytes were written, heads and footers included.
	Bytes uint64
	// EncodeTime was spent on making batches of columns, compression included; it is wall
	// time of the one goroutine that appends.
	EncodeTime time.Duration
	// LastSeal is when a segment was sealed last, OpenSince when the open one was begun;
	// zero while there was or is none. Both are by Options.Now.
	LastSeal, OpenSince time.Time
}

// counters hold Stats. The owner of the writer sets them, anyone may read.
type counters struct {
	segments, abandoned, batches, rows, requests, bytes atomic.Uint64
	encode, lastSeal, openSince                         atomic.Int64 // nanoseconds
}

// Stats may be called from any goroutine at any time, also after Close. Each count is right
// by itself; they are not taken at one instant.
func (w *Writer) Stats() Stats {
	c := &w.stats
	return Stats{
		Segments: c.segments.Load(), Abandoned: c.abandoned.Load(),
		Batches: c.batches.Load(), Rows: c.rows.Load(), Requests: c.requests.Load(), Bytes: c.bytes.Load(),
		EncodeTime: time.Duration(c.encode.Load()), LastSeal: timeAt(c.lastSeal.Load()), OpenSince: timeAt(c.openSince.Load()),
	}
}

func timeAt(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// batch counts a batch that was written.
func (c *counters) batch(rows int, requests uint64) {
	c.batches.Add(1)
	c.rows.Add(uint64(rows))
	c.requests.Add(requests)
}

// segment counts what the segment has cost since the last call.
func (c *counters) segment(s *segment) {
	c.bytes.Add(uint64(s.size - s.told))
	c.encode.Add(int64(s.encode))
	s.told, s.encode = s.size, 0
}

// opened and sealed follow the open segment; abandoned is one that Recover has to seal.
func (c *counters) opened(at time.Time) { c.openSince.Store(at.UnixNano()) }

func (c *counters) sealed(at time.Time) {
	c.segments.Add(1)
	c.lastSeal.Store(at.UnixNano())
	c.openSince.Store(0)
}

func (c *counters) left() {
	c.abandoned.Add(1)
	c.openSince.Store(0)
}
