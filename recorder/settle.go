package recorder

// What becomes, at the end, of rows that the sink has taken and not acknowledged.

// sealed settles the rows that were never acknowledged: those that the sink could not
// write are lost for the reason, the others are safe. Of requests the sink counts those
// that begin, by their id; here they are hand-overs, and none may be written without a row.
func (q *intake) sealed(lost tally, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reprieve()
	written := &q.settled
	if lost.rows >= q.unacked.rows {
		lost = q.unacked
	} else if left := written.rows.Written - lost.rows; written.requests.Written > left {
		lost.requests = max(lost.requests, written.requests.Written-left)
	}
	lost.requests = min(lost.requests, q.unacked.requests)
	q.settled.unwrite(reason, lost)
	q.acked.rows += q.unacked.rows - lost.rows
	q.unacked = tally{}
}

// abandon counts everything that is not acknowledged as lost to the deadline of Close,
// and returns how many rows that were.
func (q *intake) abandon() uint64 {
	q.freeze()
	defer q.thaw()
	if q.abandoned {
		return 0
	}
	held := q.sum().open()
	q.settled.lose(DropCloseDeadline, held)
	q.settled.unwrite(DropCloseDeadline, q.unacked)
	n := held.rows + q.unacked.rows
	q.late, q.unacked, q.abandoned = q.unacked, tally{}, true
	for _, s := range q.shards {
		s.slab, s.full = nil, nil
	}
	q.out.Store(q.in.Load())
	return n
}

func (q *intake) isAbandoned() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.abandoned
}

// reprieve counts what the sink has taken as written again, after the recorder was
// abandoned and the sink came back: the files have these rows, and their ledgers say so.
// The mutex is held.
func (q *intake) reprieve() {
	q.settled.rewrite(DropCloseDeadline, q.late)
	q.unacked.add(q.late)
	q.late = tally{}
}
