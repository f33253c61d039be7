package proxy

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
)

// exchange is one attempt while it passes. Only the handler's goroutine writes to it; the
// captures and the timing have locks of their own.
type exchange struct {
	attempt
	timing  timing
	in, out capture
	ctx     context.Context // the client's, without the proxy's own limit
}

// attempt is one attempt that has ended.
type attempt struct {
	form  form
	start time.Time
	took  time.Duration
	times times
	// header and answer are those of the request and of the upstream's answer, until reduce
	// has taken what is needed of them.
	header, answer http.Header
	query          string
	head
	attrs []decision.Value
	// client, path and key, the idempotency key, say whose retry it may be.
	client, path, key string
	// retry is how many attempts its client says were before.
	retry int
	// held is what the budget gets back for all but the bodies.
	held int64

	body, reply captured
	// status is 0 when there was no answer.
	status int
	// code says why there is no whole answer; empty when there is one. detail is for people.
	code, detail string
}

// begin starts to capture a request; nil when it is no decision, or not recorded.
func (p *Proxy) begin(r *http.Request) (x *exchange) {
	defer func() {
		if v := recover(); v != nil {
			p.counts.panics.Add(1)
			x = nil
		}
	}()
	kind := p.opts.Dialect.classify(r)
	if kind == formNone {
		p.counts.passed.Add(1)
		return nil
	}
	if !p.rec.Recording() {
		if kind == formUnknown { // nobody reads its body, and most of them are no decisions
			p.counts.passed.Add(1)
		} else {
			p.rec.Lost(recorder.DropSwitchedOff, 1)
		}
		return nil
	}
	x = &exchange{ctx: r.Context()}
	x.attempt = attempt{form: kind, start: time.Now(), header: r.Header, query: r.URL.RawQuery, path: r.URL.Path,
		attrs: p.fields.read(r), client: clientOf(r), retry: retryOf(r.Header), key: r.Header.Get("Idempotency-Key")}
	x.in.budget, x.in.max = &p.budget, p.opts.MaxBody
	x.out.budget, x.out.max = &p.budget, p.opts.MaxBody
	x.in.expect(r.ContentLength)
	if r.Body == nil || r.Body == http.NoBody {
		x.in.end()
	}
	return x
}

// clientOf is who may retry a request: the port changes with the connection.
func clientOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return host + " " + r.Header.Get("User-Agent")
}

// maxRetry is more than any client makes; a larger number is no count.
const maxRetry = 100

// retryOf reads how many attempts a client says were before: TypeSafe's clients and those
// that OpenAI generates say so.
func retryOf(h http.Header) int {
	for _, name := range []string{"X-Typesafe-Retry-Count", "X-Stainless-Retry-Count"} {
		if n, err := strconv.Atoi(h.Get(name)); err == nil && n > 0 && n <= maxRetry {
			return n
		}
	}
	return 0
}

// fail notes why an attempt has no whole answer; the first reason counts.
func (x *exchange) fail(ctx context.Context, err error) {
	if x.code == "" {
		x.code, x.detail = codeOf(ctx, err), err.Error()
	}
}

// end hands an attempt over; it waits for nothing.
func (p *Proxy) end(x *exchange) {
	defer func() {
		if v := recover(); v != nil {
			p.counts.panics.Add(1)
		}
	}()
	x.took = time.Since(x.start)
	x.times = x.timing.end()
	x.body, x.reply = x.in.take(), x.out.take()
	if x.code == "" && !x.reply.whole && x.status != http.StatusSwitchingProtocols {
		x.code, x.detail = CodeCanceled, "the client went away"
	}
	if x.status == http.StatusSwitchingProtocols {
		p.release(&x.attempt)
		return
	}
	a := x.attempt // the exchange holds the contexts, which need not live on
	if n := a.weight(); p.budget.take(n) {
		a.held = n
	} else {
		p.release(&a)
		a = attempt{form: a.form, body: captured{lost: LostBudget}}
	}
	p.offer(&a)
}

// offer queues an attempt for the reading goroutine, or loses it.
func (p *Proxy) offer(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch n := len(p.ended); {
	case p.closed:
		p.lose(a, LostClosed)
		return
	case n >= p.opts.Queue:
		p.lose(a, LostQueue)
		return
	case n == 0:
		p.alarm.Reset(readDelay)
	case n == p.opts.Queue/4:
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.ended = append(p.ended, a)
}

// taken returns what waits to be read; spare becomes the memory of the queue.
func (p *Proxy) taken(spare []*attempt) []*attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.ended
	p.ended = spare[:0]
	return list
}

// release gives back the memory that an attempt holds.
func (p *Proxy) release(a *attempt) {
	p.budget.give(a.body.held + a.reply.held + a.held)
	a.body, a.reply, a.held = captured{}, captured{}, 0
}

// lose counts an attempt that passed unrecorded. What was not known to be a decision is
// none that was lost.
func (p *Proxy) lose(a *attempt, reason string) {
	if a.form == formUnknown {
		p.counts.passed.Add(1)
	} else {
		p.rec.LostBegun(reason, 1)
	}
	p.release(a)
}
