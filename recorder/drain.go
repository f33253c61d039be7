package recorder

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/snapshot"
)

// Error codes of decisions that got no answer: their handler or backend panicked, left
// the decision open, or returned an error instead of an outcome.
const (
	CodePanic    = "panic"
	CodeNoAnswer = "no-answer"
	CodeBackend  = "backend-error"
)

// drain is the goroutine between the queue and the sink. It also does the work that
// would cost the caller: spreading what a request's rows share, hashing, redacting,
// validating.
type drain struct {
	*Recorder
	mac     *mac
	secrets secret.Scanner
	spare   []*group
	// unflushed counts rows that were appended since the last flush.
	unflushed int
	// told is what the log has heard.
	told Stats
}

func newDrain(r *Recorder) *drain { return &drain{Recorder: r, mac: newMAC(r.opts.EntityKey)} }

func (d *drain) run() {
	defer close(d.done)
	tick := time.NewTicker(d.opts.FlushInterval)
	defer tick.Stop()
	for {
		select {
		case <-d.in.wake:
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
	}
}

func (d *drain) appendAll() {
	groups := d.in.take(d.spare)
	for i, g := range groups {
		groups[i] = nil
		if !d.append(g) {
			break
		}
		if d.unflushed >= d.opts.FlushRows {
			_ = d.flush()
		}
	}
	d.spare = groups
}

// append hands one request's rows to the sink; false ends the work.
func (d *drain) append(g *group) bool {
	if d.in.isAbandoned() {
		return false
	}
	written, reason := 0, DropSinkError
	if why, err := d.prepare(g); err != nil {
		d.failed(err)
		reason = why
	} else {
		written = d.appendRows(g)
	}
	if !d.in.settle(g, written, reason) {
		return false
	}
	d.unflushed += written
	d.release(g)
	return true
}

// appendRows returns how many rows the sink took. After a refusal the request's further
// rows are not offered to it: a part of a request is worth less than its absence.
func (d *drain) appendRows(g *group) int {
	for i := range g.slots {
		if err := d.guard("sink append", func() error { return d.sink.Append(&g.slots[i].row) }); err != nil {
			d.appendErrors.Add(1)
			d.failed(err)
			return i
		}
	}
	return len(g.slots)
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
	closeErr := d.guard("sink close", func() error { return d.sink.Close(lost, total) })
	if closeErr != nil {
		d.failed(closeErr)
	}
	d.in.sealed(closeErr == nil)
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
			d.spread(g, i)
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

// redact does everything that keeps secrets out of the rows: once a request, or once a
// row where the rows came complete.
func (d *drain) redact(g *group) error {
	if g.whole {
		for i := range g.slots {
			if err := d.redactRow(&g.slots[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(g.slots) == 0 {
		return nil
	}
	var err error
	if g.redacted, err = d.attributes(g.schema, g.attrs, g.redacted); err != nil {
		return err
	}
	if g.hasEntity && d.mac == nil {
		g.redacted = append(g.redacted, "entity:no-key")
	}
	g.redacted, err = d.bodies(&g.slots[0], g.redacted)
	return err
}

// redactRow is redact for a row that came complete.
func (d *drain) redactRow(s *slot) (err error) {
	s.redacted = append(s.redacted[:0], s.row.Redacted...)
	if s.redacted, err = d.attributes(s.row.Attrs.Schema, s.row.Attrs.Values, s.redacted); err != nil {
		return err
	}
	if s.redacted, err = d.bodies(s, s.redacted); err != nil {
		return err
	}
	if len(s.redacted) > 0 {
		s.row.Redacted = s.redacted
	}
	if s.hasEntity && !s.row.Entity.Set {
		s.row.Entity = d.entity(s.entity)
	}
	return nil
}

func (d *drain) attributes(schema *decision.Schema, vals []decision.Value, notes []string) ([]string, error) {
	if d.plan.All {
		return d.plan.denied.strip(schema, vals, notes, &d.secrets), nil
	}
	return d.plan.apply(vals, notes, d.mac, &d.secrets)
}

// entity is the keyed hash of a raw entity, absent without a key.
func (d *drain) entity(raw string) decision.Opt[[8]byte] {
	if d.mac == nil {
		return decision.Opt[[8]byte]{}
	}
	sum := d.mac.of([]byte(raw))
	return decision.Some([8]byte(sum[:8]))
}

// bodies puts the captured bodies into the row that carries them.
func (d *drain) bodies(s *slot, notes []string) (_ []string, err error) {
	row := &s.row
	if s.in.seen {
		if row.Input, notes, err = d.body(notes, "input", &s.in); err != nil {
			return notes, err
		}
		row.InputLen = s.in.length
		if !row.InputDigest.Set {
			row.InputDigest = s.in.digest
		}
	}
	if s.out.seen {
		if row.Output, notes, err = d.body(notes, "output", &s.out); err != nil {
			return notes, err
		}
		if !row.OutputDigest.Set {
			row.OutputDigest = s.out.digest
		}
	}
	return notes, nil
}

// body hashes one body and returns what to store of it.
func (d *drain) body(notes []string, name string, b *body) ([]byte, []string, error) {
	// A reader may stop behind the last byte, without having seen the end.
	if b.length.Set && b.length.V == b.total {
		b.complete = true
	}
	if b.complete {
		b.length = decision.Some(b.total)
	}
	cut := !b.complete || b.total > int64(len(b.data)) && !b.rewritten
	switch {
	case b.rewritten:
	case cut:
		notes = append(notes, name+":truncated")
	case d.mac != nil:
		b.digest = decision.Some(d.mac.of(b.data))
	}
	return d.clean(notes, name, b, cut)
}

// spread gives a row what its request shares.
func (d *drain) spread(g *group, i int) {
	row := &g.slots[i].row
	row.RequestID, row.Time, row.KeepProb = g.id, g.now.Round(0).UTC(), g.keep
	row.Scenario = g.scenario
	orDefault(&row.Scenario, d.opts.Scenario)
	orDefault(&row.Backend, d.opts.Backend)
	if row.Artefact.HTTPStatus == 0 {
		row.Artefact.HTTPStatus = int16(g.httpStatus)
	}
	row.Attrs = decision.Attrs{Schema: g.schema, Values: g.attrs}
	row.TraceID, row.SpanID = g.trace, g.span
	if g.featureSet != "" || len(g.features) > 0 {
		row.Features, row.FeatureSet = g.features, g.featureSet
	}
	if !row.Latency.Set {
		row.Latency = g.latency
	}
	if len(row.Candidates) > 0 {
		row.Forced = decision.Some(len(row.Candidates) == 1)
	}
	if g.hasEntity {
		row.Entity = d.entity(g.entity)
	}
	if len(g.redacted) > 0 {
		row.Redacted = g.redacted
	}
	conclude(row, g)
}

// conclude gives a status to a decision that its handler left open or broke off.
func conclude(row *snapshot.Snapshot, g *group) {
	switch {
	case g.panicked:
		fail(row, decision.Error, CodePanic, "the handler panicked")
	case row.Status != decision.StatusNone:
	case g.httpStatus >= 500:
		fail(row, decision.Error, "http-"+strconv.Itoa(g.httpStatus), "the handler answered without a decision")
	default:
		fail(row, decision.Error, CodeNoAnswer, "the handler left the decision open")
	}
}

// fail makes a row one without an answer.
func fail(row *snapshot.Snapshot, s decision.Status, code, text string) {
	row.Status, row.Action, row.Params = s, "", ""
	row.Confidence, row.ConfidenceDef = decision.Opt[float64]{}, ""
	row.Reason, row.RuleID = decision.ReasonNone, ""
	switch s {
	case decision.Timeout:
		row.Reason = decision.ReasonTimeout
	case decision.Error, decision.NotReplayable:
		row.Reason = decision.ReasonError
	}
	row.ErrorCode, row.Error = code, text
}
