package recorder

import "github.com/clefbench/clefbench/snapshot"

// account counts rows and the requests that they belong to.
type account struct{ rows, requests snapshot.Counts }

// The methods count one request of n rows.

func (a *account) offer(n int) {
	a.rows.Offered += uint64(n)
	a.requests.Offered++
}

func (a *account) sampleOut(n int) {
	a.rows.SampledOut += uint64(n)
	a.requests.SampledOut++
}

// settle counts a request of which the first written rows are with the sink. One is
// written when its first row is; what became of the others the rows say.
func (a *account) settle(n, written int, reason string) {
	a.rows.Written += uint64(written)
	a.rows.Drop(reason, uint64(n-written))
	if written > 0 {
		a.requests.Written++
	} else {
		a.requests.Drop(reason, 1)
	}
}

// unwrite counts rows and requests that were thought to be written as dropped.
func (a *account) unwrite(reason string, n tally) {
	a.rows.Written -= n.rows
	a.requests.Written -= n.requests
	a.lose(reason, n)
}

// rewrite takes unwrite back.
func (a *account) rewrite(reason string, n tally) {
	for c, n := range map[*snapshot.Counts]uint64{&a.rows: n.rows, &a.requests: n.requests} {
		if n > 0 {
			c.Written += n
			c.Dropped[reason] -= n
		}
	}
}

func (a *account) lose(reason string, n tally) {
	a.rows.Drop(reason, n.rows)
	a.requests.Drop(reason, n.requests)
}

// turnAway counts what was offered and dropped at once.
func (a *account) turnAway(reason string, n tally) {
	a.rows.Offered += n.rows
	a.requests.Offered += n.requests
	a.lose(reason, n)
}

func (a *account) add(b *account) {
	a.rows.Add(b.rows)
	a.requests.Add(b.requests)
}

// open is what was offered and is not settled.
func (a *account) open() tally { return tally{open(&a.rows), open(&a.requests)} }

func open(c *snapshot.Counts) uint64 { return c.Offered - c.Written - c.SampledOut - c.DroppedTotal() }

// losses is what was sampled out and dropped since told, which becomes that.
func (a *account) losses(told *account) snapshot.Ledger {
	lost := account{losses(&a.rows, &told.rows), losses(&a.requests, &told.requests)}
	told.add(&lost)
	return lost.ledger()
}

func losses(now, told *snapshot.Counts) snapshot.Counts {
	lost := snapshot.Counts{SampledOut: now.SampledOut - told.SampledOut}
	for reason, n := range now.Dropped {
		lost.Drop(reason, n-told.Dropped[reason])
	}
	lost.Offered = lost.SampledOut + lost.DroppedTotal()
	return lost
}

// ledger returns the counts; they are shared with a.
func (a *account) ledger() snapshot.Ledger {
	requests := a.requests
	return snapshot.Ledger{Offered: a.rows.Offered, Written: a.rows.Written, SampledOut: a.rows.SampledOut,
		Dropped: a.rows.Dropped, Requests: &requests}
}

// tally is a number of rows and of the requests that they belong to.
type tally struct{ rows, requests uint64 }

// requestOf is one request of so many rows; none where there are none.
func requestOf(rows int) tally { return tally{uint64(rows), uint64(min(rows, 1))} }

func (t *tally) add(n tally) {
	t.rows += n.rows
	t.requests += n.requests
}
