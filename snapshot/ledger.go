package snapshot

import (
	"errors"
	"fmt"
	"maps"
)

// ErrLedger reports a ledger that does not close.
var ErrLedger = errors.New("ledger does not close")

// Ledger accounts for every decision that was offered to a recorder:
// Offered = Written + SampledOut + the sum of Dropped. Counts are rows.
type Ledger struct {
	Offered    uint64 `json:"offered"`
	Written    uint64 `json:"written"`
	SampledOut uint64 `json:"sampled_out"`
	// Dropped counts by reason (queue-full, redaction-failed, sink-error, closed, ...).
	Dropped map[string]uint64 `json:"dropped"`
}

// DroppedTotal is the sum over the reasons.
func (l Ledger) DroppedTotal() uint64 {
	var n uint64
	for _, v := range l.Dropped {
		n += v
	}
	return n
}

// Drop counts n rows dropped for a reason.
func (l *Ledger) Drop(reason string, n uint64) {
	if n == 0 {
		return
	}
	if l.Dropped == nil {
		l.Dropped = map[string]uint64{}
	}
	l.Dropped[reason] += n
}

// Add adds another ledger's counts.
func (l *Ledger) Add(o Ledger) {
	l.Offered += o.Offered
	l.Written += o.Written
	l.SampledOut += o.SampledOut
	for r, n := range o.Dropped {
		l.Drop(r, n)
	}
}

// Clone returns a copy with its own map.
func (l Ledger) Clone() Ledger {
	l.Dropped = maps.Clone(l.Dropped)
	return l
}

// Check returns an error that wraps [ErrLedger] unless the ledger closes.
func (l Ledger) Check() error {
	if sum := l.Written + l.SampledOut + l.DroppedTotal(); sum != l.Offered {
		return fmt.Errorf("%w: offered %d, but written %d + sampled out %d + dropped %d = %d",
			ErrLedger, l.Offered, l.Written, l.SampledOut, l.DroppedTotal(), sum)
	}
	return nil
}
