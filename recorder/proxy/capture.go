package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// budget is the memory that all captures share.
type budget struct {
	max  int64
	used atomic.Int64
}

// take reserves n bytes, or nothing.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.max {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// add counts n bytes, of a size that is bounded otherwise, also beyond the limit.
func (b *budget) add(n int64) { b.used.Add(n) }

// half reports whether half of the budget is in use.
func (b *budget) half() bool { return b.used.Load() > b.max/2 }

// Reasons why a body was not captured; the ledger counts decisions under them.
const (
	LostBudget   = "capture-budget"
	LostTooLong  = "body-too-long"
	LostQueue    = "proxy-queue-full"
	LostEncoding = "content-encoding"
	LostClosed   = "proxy-closed"
	LostPanic    = "proxy-panic"
	// LostCredentials: the request has too many credentials to look for them in its bodies.
	LostCredentials = "too-many-credentials"
)

// capture keeps a body that passes. It is locked because the transport may read a request
// body for longer than the handler runs.
type capture struct {
	budget *budget
	max    int

	mu    sync.Mutex
	data  []byte
	total int64
	ended bool
	lost  string
	done  bool
}

// minCapture is the first reservation: most bodies fit.
const minCapture = 2048

// expect makes room for a body of a declared length, up to 64 KiB: a length is cheaply
// declared.
func (c *capture) expect(n int64) {
	if n > 0 && n <= int64(c.max) {
		c.grow(int(min(n, 64<<10)))
	}
}

// grow makes room for n bytes in all, or gives the capture up.
func (c *capture) grow(n int) bool {
	size := max(minCapture, min(2*cap(c.data), c.max), n)
	if !c.budget.take(int64(size - cap(c.data))) {
		c.fail(LostBudget)
		return false
	}
	data := make([]byte, len(c.data), size)
	copy(data, c.data)
	c.data = data
	return true
}

func (c *capture) fail(reason string) {
	c.lost = reason
	c.budget.give(int64(cap(c.data)))
	c.data = nil
}

func (c *capture) pass(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	c.total += int64(len(p))
	switch n := len(c.data) + len(p); {
	case c.lost != "":
	case n > c.max:
		c.fail(LostTooLong)
	case n <= cap(c.data) || c.grow(n):
		c.data = append(c.data, p...)
	}
}

var errLost = errors.New("the capture was given up")

// Write is pass for a body that is written to its end first, by one goroutine.
func (c *capture) Write(p []byte) (int, error) {
	if c.pass(p); c.lost != "" {
		return 0, errLost
	}
	return len(p), nil
}

func (c *capture) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.ended || !c.done
}

// captured is a body once nothing more passes.
type captured struct {
	data  []byte
	total int64
	// encoding is its content encoding; wire are the bytes as they came, while data is
	// without it.
	encoding string
	wire     []byte
	// whole: the body ended by itself.
	whole bool
	lost  string
	// held is what the budget gets back.
	held int64
}

// take stops the capture; the caller gives captured.held back.
func (c *capture) take() captured {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	return captured{data: c.data, total: c.total, whole: c.ended, lost: c.lost, held: int64(cap(c.data))}
}

// tee is a body with a capture.
type tee struct {
	io.ReadCloser
	c *capture
	// failed hears of an error other than the end.
	failed func(error)
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.c.pass(p[:n])
	}
	switch {
	case err == io.EOF:
		t.c.end()
	case err != nil && t.failed != nil:
		t.failed(err)
	}
	return n, err
}
