package proxy

import (
	"container/list"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// call is what a client asked once: one attempt, or several of the same body.
type call struct {
	key callKey
	// steps are its attempts so far, last what is needed of the latest. last.attrs are those
	// of the first.
	steps []step
	last  *attempt
	until time.Time
	// place is where it waits in folder.order, nil while it does not.
	place *list.Element
	// held is what the budget gets back beside what last holds.
	held int64
}

// step is what a row says of each attempt.
type step struct {
	start, answer time.Time
	took          time.Duration
	status        int
	code          string
}

const (
	// stepBytes is the memory of one step.
	stepBytes = 96
	// maxAttempts and maxCallAge end a call that is tried again for ever: nothing of it
	// would be recorded otherwise.
	maxAttempts = 32
	maxCallAge  = 10 * time.Minute
)

// add makes an attempt the latest of a call.
func (c *call) add(a *attempt) {
	c.last = a
	c.steps = append(c.steps, step{a.start, a.times.answer, a.took, a.status, a.code})
}

// callKey stands for body, client, path and idempotency key.
type callKey [sha256.Size]byte

// folder holds failed attempts back for a while: the client may try again. It belongs to
// the reading goroutine.
type folder struct {
	*Proxy
	pending map[callKey][]*call
	// order has the calls in pending from the one that waits longest to the latest.
	order list.List
	spare []*attempt
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
			for f.order.Len() > 0 {
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
	c := &call{}
	if a.retry > 0 || a.key != "" || failed {
		key := a.callKey()
		if before := f.match(key, a); before != nil {
			f.counts.retries.Add(1)
			c = before
			f.next(c, a)
		}
		c.key = key
	}
	c.add(a)
	if !failed || len(c.steps) >= maxAttempts {
		f.settle(c)
		return
	}
	c.until = a.start.Add(a.took + f.opts.RetryWindow + a.after)
	if end := c.steps[0].start.Add(maxCallAge + f.opts.RetryWindow); end.Before(c.until) {
		c.until = end
	}
	f.wait(c)
}

// next lets go of a call's latest attempt: another one follows, of the same body.
func (f *folder) next(c *call, a *attempt) {
	a.attrs = c.last.attrs
	f.release(c.last)
	c.held += stepBytes
	f.budget.add(stepBytes)
}

func (a *attempt) callKey() callKey {
	body := sha256.Sum256(a.body.data)
	h := sha256.New()
	h.Write(body[:])
	for _, s := range []string{a.client, a.key, a.path} {
		io.WriteString(h, s)
		h.Write([]byte{0})
	}
	return callKey(h.Sum(nil))
}

// miss loses an attempt, and with it the one that it was to follow: that the call failed
// before is not how it ended.
func (f *folder) miss(a *attempt, reason string) {
	if a.body.lost == "" && (a.retry > 0 || a.key != "") {
		if c := f.match(a.callKey(), a); c != nil {
			f.release(c.last)
			f.budget.give(c.held)
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
	for _, c := range f.pending[key] {
		if a.retry > c.last.retry || a.retry == c.last.retry && a.key != "" {
			f.leave(c)
			return c
		}
	}
	return nil
}

// wait lets a call wait for its next attempt. When many wait, or they hold much of the
// memory that new requests need, the oldest are settled before their time.
func (f *folder) wait(c *call) {
	f.shelve(c.last)
	f.pending[c.key] = append(f.pending[c.key], c)
	c.place = f.order.PushBack(c)
	for n := f.order.Len(); n > maxPending || n > 0 && f.budget.half(); n = f.order.Len() {
		f.oldest()
	}
}

// oldest settles the call that has waited longest.
func (f *folder) oldest() {
	c := f.order.Front().Value.(*call)
	f.leave(c)
	f.settle(c)
}

// leave takes a call out of those that wait.
func (f *folder) leave(c *call) {
	f.order.Remove(c.place)
	c.place = nil
	rest := f.pending[c.key]
	if i := slices.Index(rest, c); i >= 0 {
		rest = slices.Delete(rest, i, i+1)
	}
	if f.pending[c.key] = rest; len(rest) == 0 {
		delete(f.pending, c.key)
	}
}

// expire settles the calls whose retry did not come.
func (f *folder) expire(now time.Time) {
	for e := f.order.Front(); e != nil; {
		c := e.Value.(*call)
		e = e.Next()
		if !now.Before(c.until) {
			f.leave(c)
			f.settle(c)
		}
	}
}

// settle hands a call's rows to the recorder. A call that has waited is read once more.
func (f *folder) settle(c *call) {
	last := c.last
	defer f.contain(last)
	defer f.budget.give(c.held)
	if reason := f.readable(last); reason != "" {
		f.lose(last, reason)
		return
	}
	rows := f.rows(c)
	ptrs := make([]*snapshot.Snapshot, len(rows))
	for i := range rows {
		ptrs[i] = &rows[i]
	}
	f.rec.RecordBegun(context.Background(), ptrs...)
	f.counts.decisions.Add(1)
	f.release(last)
}
