package recorder

import "context"

// Lost counts the rows of one request that a program could not hand over: it had no
// memory left to capture them, or could not read them. They stand in the ledger as
// offered and dropped for the reason, which is a short word of a closed set.
func (r *Recorder) Lost(reason string, rows int) {
	if r == nil || rows <= 0 || r.bypass(context.Background(), rows) {
		return
	}
	r.in.lost(reason, rows)
}

// LostBegun is [Recorder.Lost] for a request that began while recording was on: it counts
// under its own reason although recording may have been switched off since.
func (r *Recorder) LostBegun(reason string, rows int) {
	if r != nil && rows > 0 {
		r.in.lost(reason, rows)
	}
}
