package window

import (
	"fmt"
	"sync"
	"time"
)

// State is what a breaker does with calls to a node.
type State string

// The states: calls pass; calls are refused; single calls pass to see whether the node is
// back.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half-open"
)

// BreakerOptions configure a [Breaker]; the zero value of a field is its default.
type BreakerOptions struct {
	// ErrorRate opens the breaker, in (0,1], once the window holds MinCalls calls (0.5, 20).
	ErrorRate float64
	MinCalls  uint64
	// OpenFor is how long an open breaker refuses before it lets a call pass (5 s).
	OpenFor time.Duration
	// Probes is how many calls in a row must succeed to close it again (3).
	Probes int
}

// Breaker leaves nodes alone that fail, by the error rates of a [Window]. It is safe for
// concurrent use. Each allowed call must be reported by [Breaker.Observe].
type Breaker struct {
	w *Window
	o BreakerOptions

	mu    sync.Mutex
	nodes map[string]*circuit
}

// circuit is a node whose breaker is not closed; closed ones are not kept.
type circuit struct {
	state   State
	since   time.Time
	probing bool
	passed  int
}

// NewBreaker returns a breaker over a window. Errors wrap [ErrOptions].
func NewBreaker(w *Window, o BreakerOptions) (*Breaker, error) {
	if o.ErrorRate == 0 {
		o.ErrorRate = 0.5
	}
	if o.MinCalls == 0 {
		o.MinCalls = 20
	}
	if o.OpenFor == 0 {
		o.OpenFor = 5 * time.Second
	}
	if o.Probes == 0 {
		o.Probes = 3
	}
	if w == nil || !(o.ErrorRate > 0 && o.ErrorRate <= 1) || o.OpenFor < 0 || o.Probes < 0 {
		return nil, fmt.Errorf("%w: a breaker needs a window, an error rate in (0,1] and positive limits", ErrOptions)
	}
	return &Breaker{w: w, o: o, nodes: map[string]*circuit{}}, nil
}

// Allow says whether to call a node now. Of a breaker that is half open one call at a time
// is allowed.
func (b *Breaker) Allow(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.nodes[name]
	if c == nil {
		return true
	}
	if c.state == Open && b.w.now().Sub(c.since) >= b.o.OpenFor {
		c.state, c.passed, c.probing = HalfOpen, 0, false
	}
	if c.state == Open || c.probing {
		return false
	}
	c.probing = true
	return true
}

// Observe counts a call, as [Window.Observe] does, and moves the breaker.
func (b *Breaker) Observe(name string, latency time.Duration, failed bool) {
	b.w.Observe(name, latency, failed)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.nodes[name]
	switch {
	case c == nil:
		s := b.w.Read(name)
		if rate, ok := s.ErrorRate(); ok && failed && s.Calls >= b.o.MinCalls && rate >= b.o.ErrorRate {
			b.nodes[name] = &circuit{state: Open, since: b.w.now()}
		}
	case c.state == Open: // a call that was under way when it opened
	case failed:
		*c = circuit{state: Open, since: b.w.now()}
	default:
		c.probing = false
		if c.passed++; c.passed >= b.o.Probes {
			b.w.forget(name) // or the failures that opened it would open it again
			delete(b.nodes, name)
		}
	}
}

// State returns what the breaker would do with a call now, for the attribute
// local.breaker.
func (b *Breaker) State(name string) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.nodes[name]
	switch {
	case c == nil:
		return Closed
	case c.state == Open && b.w.now().Sub(c.since) >= b.o.OpenFor:
		return HalfOpen
	}
	return c.state
}

// forget empties a node's ring.
func (w *Window) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, name)
}
