package arrowfile

import (
	"errors"
	"fmt"

	"github.com/clefbench/clefbench/snapshot"
)

// UnwrittenError says that [Writer.Close] could not write the last rows that Append took.
// All rows before them are in files, though one may still have its .open name.
type UnwrittenError struct {
	// Rows were lost, and the Requests that begin in them.
	Rows, Requests uint64
	// Reason is the one under which the ledgers count them as dropped.
	Reason string
	Err    error
}

// Error implements error.
func (e *UnwrittenError) Error() string {
	return fmt.Sprintf("%d rows were not written: %v", e.Rows, e.Err)
}

// Unwrap returns the error of writing.
func (e *UnwrittenError) Unwrap() error { return e.Err }

// Unwritten returns Rows and Requests, for the recorder's ledger.
func (e *UnwrittenError) Unwritten() (rows, requests uint64) { return e.Rows, e.Requests }

// DropReason returns Reason, for the recorder's ledger.
func (e *UnwrittenError) DropReason() string { return e.Reason }

// dropUnwritten is the reason of rows that could not be written, unless the error has its
// own: a recorder counts a sink's errors under it.
const dropUnwritten = "sink-error"

func dropReason(err error) string {
	var named interface{ DropReason() string }
	if errors.As(err, &named) {
		return named.DropReason()
	}
	return dropUnwritten
}

// discard gives up the batch. What is in it becomes a loss of the segment, and in total it
// moves from written to dropped.
func (w *Writer) discard(total *snapshot.Ledger, cause error) error {
	e := &UnwrittenError{Rows: uint64(w.batch.n), Requests: w.requests, Reason: dropReason(cause), Err: cause}
	lost := snapshot.Ledger{Offered: e.Rows, Requests: &snapshot.Counts{Offered: e.Requests}}
	lost.Drop(e.Reason, e.Rows)
	lost.Requests.Drop(e.Reason, e.Requests)
	w.lost.Add(lost)
	rows := min(e.Rows, total.Written)
	total.Written -= rows
	total.Drop(e.Reason, rows)
	if q := total.Requests; q != nil {
		n := min(e.Requests, q.Written)
		q.Written -= n
		q.Drop(e.Reason, n)
	}
	w.batch.clear()
	w.requests = 0
	return e
}
