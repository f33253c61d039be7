package recorder

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
)

// Error codes of decisions that got no answer: their handler or backend panicked, left
// the decision open, or returned an error instead of an outcome.
const (
	CodePanic    = "panic"
	CodeNoAnswer = "no-answer"
	CodeBackend  = "backend-error"
)

// drain is the goroutine between the slabs and the sink. It also does the work that
// would cost the caller: hashing, redacting, validating.
type drain struct {
	*Recorder
	mac     *mac
	secrets secret.Scanner
	// scanned is the request that secrets remembers.
	scanned decision.ID
	lanes   []lane
	// g holds the request under way.
	g group
	// pause is how long the drain waits at most; came counts rows since it was set.
	pause time.Duration
	paced time.Time
	came  int
	// unflushed counts rows that were appended since the last flush.
	unflushed int
	// lastRequest is the request_id of the last row that was appended, and runs counts how
	// often it changed: see seal.
	lastRequest decision.ID
	runs        uint64
	// told is what the log has heard.
	told Stats
}

// lane is what was taken of one shard, and how far the drain has gone through it.
type lane struct {
	slabs     []*slab
	slab, row int
}

func newDrain(r *Recorder) *drain {
	return &drain{Recorder: r, mac: newMAC(r.opts.EntityKey), paced: time.Now(), lanes: make([]lane, len(r.in.shards))}
}

func (d *drain) run() {
	defer close(d.done)
	tick := time.NewTicker(d.opts.FlushInterval)
	defer tick.Stop()
	visit := time.NewTimer(d.opts.FlushInterval)
	defer visit.Stop()
	for {
		select {
		case <-d.in.wake:
			d.appendAll()
		case <-visit.C:
			d.appendAll()
		case <-tick.C:
			d.appendAll()
			_ = d.flush() // counted, remembered and logged inside
		case reply := <-d.flushes:
			d.appendAll()
			reply <- d.flush()
		case <-d.closing:
			d.appendAll()
			d.closeErr = d.seal()
			return
		}
		visit.Reset(d.pause)
	}
}

// minPause is the shortest time after which the drain looks by itself.
const minPause = time.Millisecond

// pace sets the pause after which about half of the rows that would wake the drain are
// waiting, going by the n rows that came since it last looked. Waking a sleeping goroutine
// took a caller 5 to 12 us, one call in wakeAt; under even traffic this way none does.
func (d *drain) pace(n int) {
	now := time.Now()
	since := now.Sub(d.paced)
	d.came += n
	if since < d.pause/2 && d.came < d.in.wakeAt/2 {
		return // flushes and ticks come in between: too short a time to go by
	}
	d.pause = d.opts.FlushInterval
	if d.came > 0 {
		enough := float64(since) * float64(d.in.wakeAt) / float64(2*d.came)
		d.pause = max(min(minPause, d.pause), time.Duration(min(enough, float64(d.pause))))
	}
	d.paced, d.came = now, 0
}

// appendAll goes through everything that was handed over, in the order of the tickets.
func (d *drain) appendAll() {
	d.pace(d.in.take(d.lanes))
	for l := d.first(); l != nil; l = d.first() {
		sl := l.slabs[l.slab]
		if !d.append(sl, l.row) {
			return
		}
		l.row += sl.rows[l.row].size.rows()
		if d.unflushed >= d.opts.FlushRows {
			_ = d.flush()
		}
	}
}

// first returns the lane with the earliest request, nil when all are empty. Slabs that
// are through go back on the way.
func (d *drain) first() (best *lane) {
	for i := range d.lanes {
		l := &d.lanes[i]
		for ; l.slab < len(l.slabs); l.slab, l.row = l.slab+1, 0 {
			sl := l.slabs[l.slab]
			if l.row = sl.next(l.row); l.row < len(sl.rows) {
				break
			}
			l.slabs[l.slab] = nil
			d.in.recycle(sl)
		}
		if l.slab < len(l.slabs) && (best == nil || earlier(l.ticket(), best.ticket())) {
			best = l
		}
	}
	return best
}

func (l *lane) ticket() uint64 { return l.slabs[l.slab].rows[l.row].ticket }

// append hands the rows of the request at a row of a slab to the sink; false ends the work.
func (d *drain) append(sl *slab, at int) bool {
	if d.in.isAbandoned() {
		return false
	}
	size := d.g.unpack(sl, at)
	written, reason := 0, DropSinkError
	if why, err := d.prepare(&d.g); err != nil {
		d.failed(err)
		reason = why
	} else {
		written, reason = d.appendRows(&d.g)
	}
	if !d.in.settle(size, written, reason) {
		return false
	}
	d.unflushed += written
	return true
}

// unpack fills the group from a slab, in whose memory its slices are.
func (g *group) unpack(sl *slab, at int) count {
	g.slots, g.redacted = g.slots[:0], g.redacted[:0]
	head := &sl.rows[at]
	for i := range head.size.rows() {
		sl.rows[at+i].unpack(g.add())
	}
	first := &g.slots[0]
	g.whole, g.schema, g.attrs = head.whole, first.row.Attrs.Schema, first.row.Attrs.Values
	g.entity, g.hasEntity = first.entity, first.hasEntity
	return head.size
}

// appendRows returns how many rows the sink took, and why not all. After a refusal the
// request's further rows are not offered to it: a part of a request is worth less than
// its absence.
func (d *drain) appendRows(g *group) (written int, reason string) {
	for i := range g.slots {
		row := &g.slots[i].row
		if err := d.guard("sink append", func() error { return d.sink.Append(row) }); err != nil {
			d.appendErrors.Add(1)
			d.failed(err)
			return i, d.dropReason(err)
		}
		if row.RequestID != d.lastRequest {
			d.lastRequest = row.RequestID
			d.runs++
		}
	}
	return len(g.slots), ""
}

// reasoner is an error of a sink that says under which reason rows are dropped.
type reasoner interface{ DropReason() string }

// dropReason is what the sink's error says, else sink-error.
func (d *drain) dropReason(err error) (reason string) {
	_ = d.guard("sink error", func() error {
		var named reasoner
		if errors.As(err, &named) {
			reason = named.DropReason()
		}
		return nil
	})
	orDefault(&reason, DropSinkError)
	return reason
}

// shortfall is an error of a sink's Close that says what it could not write of what it
// had taken.
type shortfall interface {
	Unwritten() (rows, requests uint64)
}

// unwritten is what an error of Close means for the rows that were not acknowledged: all
// are lost, unless it says how many.
func (d *drain) unwritten(err error) (n tally) {
	if err == nil {
		return n
	}
	n = tally{math.MaxUint64, math.MaxUint64}
	_ = d.guard("sink error", func() error {
		var short shortfall
		if errors.As(err, &short) {
			n.rows, n.requests = short.Unwritten()
		}
		return nil
	})
	return n
}

// flush calls the sink also when nothing is new: its syncs and its rotation by age have
// no other clock.
func (d *drain) flush() error {
	d.unflushed = 0
	defer d.log()
	d.tellBypassed()
	lost, unacked := d.in.report()
	if err := d.guard("sink flush", func() error { return d.sink.Flush(lost) }); err != nil {
		d.flushErrors.Add(1)
		d.failed(err)
		return err
	}
	d.in.acknowledge(unacked)
	return nil
}

func (d *drain) seal() error {
	flushErr := d.flush()
	lost, total := d.in.final()
	ledgerErr := total.Check()
	// Rows of one request_id that came in several hand-overs, one after the other, are one
	// request in the file, and rows of several in one hand-over are several: the file's
	// total counts as the file does, by request_id.
	total.Requests.Offered += d.runs - total.Requests.Written
	total.Requests.Written = d.runs
	closeErr := d.guard("sink close", func() error { return d.sink.Close(lost, total) })
	if closeErr != nil {
		d.failed(closeErr)
	}
	d.in.sealed(d.unwritten(closeErr), d.dropReason(closeErr))
	d.log()
	if closeErr == nil {
		flushErr = nil // what the flush could not do, sealing did
	}
	if err := errors.Join(flushErr, closeErr, ledgerErr); err != nil {
		return fmt.Errorf("recorder: close: %w", err)
	}
	return nil
}

// log says at most once a flush what was lost since it last said so.
func (d *drain) log() {
	s := d.Stats()
	dropped, before := s.Ledger.DroppedTotal(), d.told.Ledger.DroppedTotal()
	if dropped == before && s.AppendErrors == d.told.AppendErrors &&
		s.FlushErrors == d.told.FlushErrors && s.Panics == d.told.Panics {
		return
	}
	d.told = s
	args := []any{slog.Uint64("dropped", dropped), slog.Uint64("append_errors", s.AppendErrors),
		slog.Uint64("flush_errors", s.FlushErrors), slog.Uint64("panics", s.Panics), slog.String("last_error", s.LastError)}
	for _, reason := range slices.Sorted(maps.Keys(s.Ledger.Dropped)) {
		args = append(args, slog.Uint64("dropped_"+reason, s.Ledger.Dropped[reason]))
	}
	_ = d.guard("logger", func() error {
		d.opts.Logger.Warn("decisions are being lost", args...)
		return nil
	})
}

// prepare makes a group's rows complete, redacted and valid; an error comes with the
// reason under which the whole group is dropped.
func (d *drain) prepare(g *group) (reason string, err error) {
	if err := d.guard("redaction", func() error { return d.redact(g) }); err != nil {
		return DropRedaction, err
	}
	for i := range g.slots {
		if !g.whole {
			d.share(g, i)
		}
		if err := g.slots[i].row.Validate(); err != nil {
			return DropInvalid, err
		}
	}
	if err := d.guard("redaction", func() error { return d.texts(g) }); err != nil {
		return DropRedaction, err
	}
	return "", nil
}

// share gives a row what was redacted once for its request.
func (d *drain) share(g *group, i int) {
	row := &g.slots[i].row
	row.Attrs = decision.Attrs{Schema: g.schema, Values: g.attrs}
	if g.hasEntity {
		row.Entity = d.entity(g.entity)
	}
	if len(g.redacted) > 0 {
		row.Redacted = g.redacted
	}
}

// redact does everything that keeps secrets out of the rows: once a request, or once a
// row where the rows came complete.
func (d *drain) redact(g *group) error {
	if len(g.slots) == 0 {
		return nil
	}
	// The rows of a request may come in several hand-overs.
	if id := g.slots[0].row.RequestID; id != d.scanned || id.IsZero() {
		d.secrets.Forget()
		d.scanned = id
	}
	if g.whole {
		for i := range g.slots {
			if err := d.redactRow(&g.slots[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	attrs := decision.Attrs{Schema: g.schema, Values: g.attrs}
	if attrs, g.redacted, err = d.attributes(attrs, g.redacted); err != nil {
		return err
	}
	g.schema, g.attrs = attrs.Schema, attrs.Values
	if g.hasEntity && d.mac == nil {
		g.redacted = append(g.redacted, "entity:no-key")
	}
	if g.redacted, err = d.bodies(&g.slots[0], g.redacted); err == nil {
		g.redacted = echoesIn(attrs, d.plan, g.redacted, &d.secrets)
	}
	return err
}

// redactRow is redact for a row that came complete.
func (d *drain) redactRow(s *slot) (err error) {
	s.redacted = append(s.redacted[:0], s.row.Redacted...)
	if s.row.Attrs, s.redacted, err = d.attributes(s.row.Attrs, s.redacted); err != nil {
		return err
	}
	if s.redacted, err = d.bodies(s, s.redacted); err != nil {
		return err
	}
	if s.redacted = echoesIn(s.row.Attrs, d.plan, s.redacted, &d.secrets); len(s.redacted) > 0 {
		s.row.Redacted = s.redacted
	}
	if s.hasEntity && !s.row.Entity.Set {
		s.row.Entity = d.entity(s.entity)
	}
	return nil
}

func (d *drain) attributes(a decision.Attrs, notes []string) (decision.Attrs, []string, error) {
	if d.plan.All {
		a, notes = d.plan.denied.strip(a, notes, &d.secrets)
		return a, notes, nil
	}
	notes, err := d.plan.apply(a.Values, notes, d.mac, &d.secrets)
	return a, notes, err
}

// entity is the keyed hash of a raw entity, absent without a key.
func (d *drain) entity(raw string) decision.Opt[[8]byte] {
	if d.mac == nil {
		return decision.Opt[[8]byte]{}
	}
	sum := d.mac.of([]byte(raw))
	return decision.Some([8]byte(sum[:8]))
}

// bodies hashes and rewrites the captured bodies of a row.
func (d *drain) bodies(s *slot, notes []string) (_ []string, err error) {
	row := &s.row
	if row.Input, notes, err = d.body(notes, "input", &s.in, &row.InputDigest); err != nil {
		return notes, err
	}
	row.Output, notes, err = d.body(notes, "output", &s.out, &row.OutputDigest)
	return notes, err
}

// body returns what to store of one body, and sets its digest where there is none.
func (d *drain) body(notes []string, name string, b *body, digest *decision.Opt[[32]byte]) ([]byte, []string, error) {
	switch {
	case !b.seen:
		return nil, notes, nil
	case b.rewritten:
	case b.cut:
		notes = append(notes, name+":truncated")
	case d.mac != nil && !digest.Set:
		*digest = decision.Some(d.mac.of(b.data))
	}
	return d.clean(notes, name, b, b.cut)
}
