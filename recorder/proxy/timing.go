package proxy

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

// timing is what one attempt took, on the monotonic clock. It is locked: the transport
// goes on with a dial that lost its race to a connection that became idle.
type timing struct {
	mu                sync.Mutex
	closed            bool
	dial, dialed      time.Time
	shake, shaken     time.Time
	connected, answer time.Time
	reused            bool
}

func (t *timing) note(f func(now time.Time)) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		f(now)
	}
}

// trace returns the hooks that fill t.
func (t *timing) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		ConnectStart: func(string, string) {
			t.note(func(now time.Time) {
				if t.dial.IsZero() { // the first of several addresses
					t.dial = now
				}
			})
		},
		ConnectDone: func(_, _ string, err error) {
			t.note(func(now time.Time) {
				if err == nil {
					t.dialed = now
				}
			})
		},
		TLSHandshakeStart: func() { t.note(func(now time.Time) { t.shake = now }) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			t.note(func(now time.Time) {
				if err == nil {
					t.shaken = now
				}
			})
		},
		GotConn: func(i httptrace.GotConnInfo) {
			t.note(func(now time.Time) { t.connected, t.reused = now, i.Reused })
		},
		GotFirstResponseByte: func() { t.note(func(now time.Time) { t.answer = now }) },
	}
}

// times is a timing that no hook writes to any more.
type times struct {
	dial, shake time.Duration
	answer      time.Time
	connected   bool
	reused      bool
}

func (t *timing) end() times {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	out := times{answer: t.answer, connected: !t.connected.IsZero(), reused: t.reused}
	if !t.reused && !t.dialed.IsZero() {
		out.dial = t.dialed.Sub(t.dial)
	}
	if !t.reused && !t.shaken.IsZero() {
		out.shake = t.shaken.Sub(t.shake)
	}
	return out
}
