package remote

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// CodeCircuitOpen is the code of a call that was not made, since the service is dead.
const CodeCircuitOpen = "circuit-open"

const (
	breakerTimeouts = 20
	breakerPatience = 30 * time.Second
	breakerProbe    = time.Second
)

// breaker spares a run a timeout for each row of a service that never answers. A service
// that is only slow must score as it would without, and timeouts alone do not tell slow
// from dead: so after a number of them one more call is made beside the others, with
// patience, and only its silence opens the circuit. Any answer at any time ends the
// breaker for good. Refused connections do not count: they cost no time.
type breaker struct {
	mu       sync.Mutex
	done     bool // there was an answer, or the breaker is off
	timeouts int  // since the client was made, or since a patient call broke off
	checking bool
	open     bool
	probe    time.Time
}

// admit says whether a call may be made. An open circuit lets one through each second.
func (b *breaker) admit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true
	}
	now := time.Now()
	if now.Before(b.probe) {
		return false
	}
	b.probe = now.Add(breakerProbe)
	return true
}

func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.open = true, false
}

// silent counts a timeout and says whether a patient call is due.
func (b *breaker) silent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timeouts++
	due := !b.done && !b.open && !b.checking && b.timeouts >= breakerTimeouts
	b.checking = b.checking || due
	return due
}

// checked takes the result of the patient call that got no answer.
func (b *breaker) checked(silence bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checking, b.timeouts = false, 0
	b.open = silence && !b.done
	b.probe = time.Now().Add(breakerProbe)
}

// observe tells the breaker how a call ended that could have been answered in limit.
func (c *Client) observe(status int, code string, body []byte, limit time.Duration) {
	if status > 0 {
		c.breaker.answered()
	} else if code == CodeTimeout && c.breaker.silent() {
		go c.check(body, max(breakerPatience, 2*limit))
	}
}

// check asks the same again, without the row's limit. It bears no id: a service that
// remembers ids might let it wait for the call that hangs.
func (c *Client) check(body []byte, patience time.Duration) {
	ctx, cancel := context.WithTimeout(c.life, patience)
	defer cancel()
	status, _, err := c.post(ctx, body, decision.ID{}, 0)
	if status > 0 {
		c.breaker.answered()
		return
	}
	_, code := classify(ctx, err)
	c.breaker.checked(code == CodeTimeout)
}

func circuitOpen(d *decision.Decision) {
	d.Fail(decision.Error, CodeCircuitOpen, fmt.Sprintf("the service has never answered: %d calls timed out, and one that had at least %v", breakerTimeouts, breakerPatience))
}
