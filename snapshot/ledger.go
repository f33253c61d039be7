package snapshot

import (
	"errors"
	"fmt"
	"maps"
)

// ErrLedger reports a ledger that does not close.
var ErrLedger = errors.New("ledger does not close")

// Ledger accounts for every decision that was offered to a recorder:
// Offered = Written + SampledOut + the sum of Dropped. Counts are rows; Requests counts
// the whole requests that the rows belong to.
type Ledger struct {
	Offered    uint64 `json:"offered"`
	Written    uint64 `json:"written"`
	SampledOut uint64 `json:"sampled_out"`
	// Dropped counts by reason (queue-full, redaction-failed, sink-error, closed, ...).
	Dropped map[string]uint64 `json:"dropped"`
	// Requests is nil where requests were not counted, as in files of earlier versions.
	Requests *Counts `json:"requests,omitempty"`
}

// Counts accounts for whole requests, as [Ledger] does for rows. A request is written when
// its first row is, and counts once: what becomes of its other rows the rows' ledger says.
type Counts struct {
	Offered    uint64            `json:"offered"`
	Written    uint64            `json:"written"`
	SampledOut uint64            `json:"sampled_out"`
	Dropped    map[string]uint64 `json:"dropped"`
}

// DroppedTotal is the sum over the reasons.
func (l Ledger) DroppedTotal() uint64 { return total(l.Dropped) }

// DroppedTotal is the sum over the reasons.
func (c Counts) DroppedTotal() uint64 { return total(c.Dropped) }

func total(dropped map[string]uint64) uint64 {
	var n uint64
	for _, v := range dropped {
		n += v
	}
	return n
}

// Drop counts n rows dropped for a reason.
func (l *Ledger) Drop(reason string, n uint64) { drop(&l.Dropped, reason, n) }

// Drop counts n requests dropped for a reason.
func (c *Counts) Drop(reason string, n uint64) { drop(&c.Dropped, reason, n) }

func drop(dropped *map[string]uint64, reason string, n uint64) {
	if n == 0 {
		return
	}
	if *dropped == nil {
		*dropped = map[string]uint64{}
	}
	(*dropped)[reason] += n
}

// Add adds another ledger's counts. The sum counts requests only when both sides do; a side
// that counts nothing at all says nothing against it.
func (l *Ledger) Add(o Ledger) {
	switch {
	case o.Requests == nil && o.empty():
	case l.Requests == nil && l.empty():
		l.Requests = o.Requests.Clone()
	case l.Requests == nil || o.Requests == nil:
		l.Requests = nil
	default:
		l.Requests.Add(*o.Requests)
	}
	l.Offered += o.Offered
	l.Written += o.Written
	l.SampledOut += o.SampledOut
	for r, n := range o.Dropped {
		l.Drop(r, n)
	}
}

// empty: no row was counted.
func (l Ledger) empty() bool { return l.Offered|l.Written|l.SampledOut|l.DroppedTotal() == 0 }

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Offered += o.Offered
	c.Written += o.Written
	c.SampledOut += o.SampledOut
	for r, n := range o.Dropped {
		c.Drop(r, n)
	}
}

// Clone returns a copy that shares nothing.
func (l Ledger) Clone() Ledger {
	l.Dropped, l.Requests = maps.Clone(l.Dropped), l.Requests.Clone()
	return l
}

// Clone returns a copy with its own map; nil of nil.
func (c *Counts) Clone() *Counts {
	if c == nil {
		return nil
	}
	out := *c
	out.Dropped = maps.Clone(c.Dropped)
	return &out
}

// Check returns an error that wraps [ErrLedger] unless the ledger closes, in rows and in
// requests where those are counted. A request has a row at least, so no count of requests
// may exceed that of its rows.
func (l Ledger) Check() error {
	rows := Counts{Offered: l.Offered, Written: l.Written, SampledOut: l.SampledOut, Dropped: l.Dropped}
	if err := rows.Check(); err != nil || l.Requests == nil {
		return err
	}
	q := l.Requests
	if err := q.Check(); err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	if q.Written > l.Written || q.SampledOut > l.SampledOut || q.DroppedTotal() > l.DroppedTotal() {
		return fmt.Errorf("%w: more requests than rows: written %d of %d, sampled out %d of %d, dropped %d of %d",
			ErrLedger, q.Written, l.Written, q.SampledOut, l.SampledOut, q.DroppedTotal(), l.DroppedTotal())
	}
	return nil
}

// Check returns an error that wraps [ErrLedger] unless the counts close.
func (c Counts) Check() error {
	if sum := c.Written + c.SampledOut + c.DroppedTotal(); sum != c.Offered {
		return fmt.Errorf("%w: offered %d, but written %d + sampled out %d + dropped %d = %d",
			ErrLedger, c.Offered, c.Written, c.SampledOut, c.DroppedTotal(), sum)
	}
	return nil
}
