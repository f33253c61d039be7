package proxy

import (
	"context"
	"crypto/sha256"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// call is what a client asked once: one attempt, or several of the same body.
type call struct {
	key      callKey
	attempts []*attempt
	until    time.Time
}

type callKey struct {
	body   [sha256.Size]byte
	client string
	path   string
}

func (c *call) last() *attempt { return c.attempts[len(c.attempts)-1] }

// folder holds failed attempts back for a while: the client may try again. It belongs to
// the reading goroutine.
type folder struct {
	*Proxy
	pending map[callKey][]*call
	// waiting counts the calls in pending; order has them from oldest to newest, among
	// others that went on meanwhile.
	waiting int
	order   []*call
	spare   []*attempt
}

// read is the goroutine that makes rows of what was captured.
func (p *Proxy) read() {
	defer close(p.done)
	f := &folder{Proxy: p, pending: map[callKey][]*call{}}
	tick := time.NewTicker(max(5*time.Millisecond, min(p.opts.RetryWindow/8, time.Second)))
	defer tick.Stop()
	for {
		select {
		case <-p.alarm.C:
			f.takeAll()
		case <-p.wake:
			f.takeAll()
		case now := <-tick.C:
			f.expire(now)
		case <-p.quit:
			f.takeAll()
			for f.waiting > 0 {
				f.oldest()
			}
			return
		}
	}
}

func (f *folder) takeAll() {
	list := f.taken(f.spare)
	for i, a := range list {
		list[i] = nil
		f.take(a)
		runtime.Gosched() // requests that have become runnable meanwhile go first
	}
	f.spare = list
}

// take settles an attempt, adds it to the call that it belongs to, or lets it wait.
func (f *folder) take(a *attempt) {
	defer f.contain(a)
	if reason := f.readable(a); reason != "" {
		f.miss(a, reason)
		return
	}
	if a.form == formNone {
		f.counts.passed.Add(1)
		f.release(a)
		return
	}
	f.counts.attempts.Add(1)
	failed := a.mayRetry()
	if a.retry == 0 && a.key == "" && !failed {
		f.settle(&call{attempts: []*attempt{a}})
		return
	}
	key := a.callKey()
	c := f.match(key, a)
	if c == nil {
		c = &call{key: key, attempts: []*attempt{a}}
	} else {
		f.counts.retries.Add(1)
		f.release(c.last()) // the same body, and an answer that another one follows
		c.attempts = append(c.attempts, a)
	}
	if !failed {
		f.settle(c)
		return
	}
	c.until = a.start.Add(a.took + f.opts.RetryWindow + retryAfter(a.answer))
	f.wait(c)
}

func (a *attempt) callKey() callKey { return callKey{sha256.Sum256(a.body.data), a.client, a.path} }

// miss loses an attempt, and with it the one that it was to follow: that the call failed
// before is not how it ended.
func (f *folder) miss(a *attempt, reason string) {
	if a.body.lost == "" && a.retry > 0 {
		if c := f.match(a.callKey(), a); c != nil {
			f.release(c.last())
		}
	}
	f.lose(a, reason)
}

// contain ends a panic of the reading code where it was: one call is lost, and counted.
func (f *folder) contain(a *attempt) {
	if v := recover(); v != nil {
		f.counts.panics.Add(1)
		f.lose(a, LostPanic)
	}
}

// mayRetry reports whether clients try again after such an attempt.
func (a *attempt) mayRetry() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return a.code != "" || a.status >= 500
}

// maxRetryAfter bounds how long a server's word keeps an attempt waiting here.
const maxRetryAfter = 2 * time.Minute

// retryAfter reads for how long a server asks clients to wait.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return min(maxRetryAfter, time.Duration(min(ms, 1e6)*float64(time.Millisecond)))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return min(maxRetryAfter, time.Duration(min(s, 1e6)*float64(time.Second)))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, min(maxRetryAfter, time.Until(at)))
	}
	return 0
}

// match takes the waiting call that an attempt continues out of those that wait: the
// oldest of which it says that it is the next attempt, or whose idempotency key it has.
func (f *folder) match(key callKey, a *attempt) *call {
	for i, c := range f.pending[key] {
		last := c.last()
		if a.retry > 0 && last.retry < a.retry && a.key == last.key || a.retry == last.retry && a.key != "" && a.key == last.key {
			f.remove(key, i)
			return c
		}
	}
	return nil
}

func (f *folder) remove(key callKey, i int) {
	list := f.pending[key]
	list[i].until = time.Time{} // not among those that wait
	if list = append(list[:i], list[i+1:]...); len(list) == 0 {
		delete(f.pending, key)
	} else {
		f.pending[key] = list
	}
	f.waiting--
}

// wait lets a call wait for its next attempt. When many wait, or they hold much of the
// memory that new requests need, the oldest are settled before their time.
func (f *folder) wait(c *call) {
	f.pending[c.key] = append(f.pending[c.key], c)
	f.order = append(f.order, c)
	f.waiting++
	for f.waiting > maxPending || f.waiting > 0 && f.budget.half() {
		f.oldest()
	}
}

// oldest settles the call that has waited longest.
func (f *folder) oldest() {
	for len(f.order) > 0 {
		c := f.order[0]
		f.order[0] = nil
		f.order = f.order[1:]
		if f.leave(c) {
			f.settle(c)
			return
		}
	}
	f.waiting = 0 // cannot be: who waits is in order
}

// leave takes a call out of those that wait; false when it went on meanwhile.
func (f *folder) leave(c *call) bool {
	for i, other := range f.pending[c.key] {
		if other == c {
			f.remove(c.key, i)
			return true
		}
	}
	return false
}

// expire settles the calls whose retry did not come.
func (f *folder) expire(now time.Time) {
	kept := f.order[:0]
	for _, c := range f.order {
		switch {
		case c.until.IsZero():
		case now.Before(c.until):
			kept = append(kept, c)
		case f.leave(c):
			f.settle(c)
		}
	}
	clear(f.order[len(kept):])
	f.order = kept
}

// settle hands a call's rows to the recorder.
func (f *folder) settle(c *call) {
	last := c.last()
	defer f.contain(last)
	rows := f.rows(c)
	ptrs := make([]*snapshot.Snapshot, len(rows))
	for i := range rows {
		ptrs[i] = &rows[i]
	}
	f.rec.RecordBegun(context.Background(), ptrs...)
	f.counts.decisions.Add(1)
	f.release(last)
}
