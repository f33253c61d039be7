package recorder

import "sync/atomic"

const (
	// rowShift: rows stand in the upper 24 bits of a count, bytes in the lower 40.
	rowShift = 40
	// maxQueueRows and maxQueueBytes are what a count can hold with room to spare, so that
	// the difference of two counts is right though both wrap around.
	maxQueueRows  = 1 << 22
	maxQueueBytes = 1<<rowShift - 1
	// maxRequestBytes bounds the array that one request makes a slab grow to.
	maxRequestBytes = 1 << 31
)

// count is a number of rows and of body bytes in one word.
type count uint64

func countOf(rows int, bytes int64) count { return count(rows)<<rowShift + count(bytes) }

func (c count) rows() int    { return int(c >> rowShift) }
func (c count) bytes() int64 { return int64(c & maxQueueBytes) }

// budget bounds what the recorder holds: the callers count in, the drain counts out, and
// the difference is held. Both words only grow, so the value that came in before a
// request is also its place in the order of all requests: one atomic operation gives room
// and order together. Two words for rows and bytes and a third for the order were slower,
// a lock around them slower yet.
type budget struct {
	maxRows  int
	maxBytes int64

	in atomic.Uint64
	// The drain writes the others: on the same cache line they would slow the callers.
	_   [56]byte
	out atomic.Uint64
	// taken is how far the drain has taken slabs.
	taken atomic.Uint64
	_     [48]byte
}

// fits says whether there is room; ever says whether an empty queue would have it.
func (b *budget) fits(rows int, bytes int64) bool {
	return b.fit(b.held(), rows, bytes)
}

func (b *budget) fit(held count, rows int, bytes int64) bool {
	return held.rows()+rows <= b.maxRows && held.bytes()+bytes <= b.maxBytes
}

func (b *budget) ever(rows int, bytes int64) bool {
	return rows <= b.maxRows && bytes <= min(b.maxBytes, maxRequestBytes)
}

// held may say too much while others count out, never too little: out is read first.
func (b *budget) held() count {
	out := b.out.Load()
	return count(b.in.Load() - out)
}

// reserve takes room for a request; ticket orders it among all others, and held is what
// the queue then holds.
func (b *budget) reserve(rows int, bytes int64) (ticket uint64, held count, ok bool) {
	if !b.ever(rows, bytes) {
		return 0, 0, false
	}
	size := uint64(countOf(rows, bytes))
	for {
		out := b.out.Load()
		ticket = b.in.Load()
		if !b.fit(count(ticket-out), rows, bytes) {
			return 0, 0, false
		}
		if b.in.CompareAndSwap(ticket, ticket+size) {
			return ticket, count(ticket + size - out), true
		}
	}
}

// release gives room back.
func (b *budget) release(size count) { b.out.Add(uint64(size)) }

// waiting is how many rows came in after what the drain took, up to a ticket.
func (b *budget) waiting(ticket uint64) int { return count(ticket - b.taken.Load()).rows() }

// earlier compares tickets, which wrap around.
func earlier(a, b uint64) bool { return int64(a-b) < 0 }
