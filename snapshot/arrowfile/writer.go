package arrowfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

const (
	// churnRows: a label column that forces a second new segment within so many rows
	// gives up its dictionary.
	churnRows = 10_000
	// lossEvery is how often losses are written when there are no rows to go with them.
	lossEvery = 10 * time.Second
	// retryEvery is how long Append leaves a failed write alone. A full batch would be
	// compressed again for every row, on a disk that is full.
	retryEvery = time.Second
)

// Writer writes snapshots to the segments of a directory. It is not safe for concurrent
// use: one goroutine owns it.
//
// After an error the rows that were appended and not acknowledged are still pending, and
// the next Append or Flush tries to write them again: into the same segment when its torn
// bytes could be cut off, else into a new one, which leaves the old one for [Recover]. An
// Append that returned an error has not taken its row; for a second it returns the error
// again without trying.
type Writer struct {
	opts  Options
	dir   string
	enc   *encoder
	batch rowBatch[snapshot.Snapshot]
	attrs *decision.Schema
	seg   *segment
	seq   int
	// link is that of the open segment, or of the next one.
	link Link
	// lost are the losses that no batch or footer holds yet.
	lost     snapshot.Ledger
	lossTime time.Time
	// request is that of the last row, and requests counts those that begin in the batch.
	request   decision.ID
	requests  uint64
	written   uint64
	forced    map[string]uint64
	strategy  string
	failed    error
	failedAt  time.Time
	closed    bool
	closeErr  error
	abandoned int
	stats     counters
}

// Create returns a writer of snapshot segments in dir, which is made when it is missing.
// A segment's file appears with its first batch.
func Create(dir string, opts Options) (*Writer, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	enc, err := newEncoder(o.Level)
	if err != nil {
		return nil, err
	}
	link, err := firstLink(dir, &o)
	if err != nil {
		return nil, err
	}
	w := &Writer{opts: o, dir: dir, enc: enc, attrs: o.Schema, link: link, forced: map[string]uint64{}, lossTime: o.Now()}
	w.batch.init(seedOf(o.Seed), snapshotFields(w.attrs))
	return w, nil
}

// seedOf adds the labels that are known by their types.
func seedOf(seed map[string][]string) map[string][]string {
	out := map[string][]string{}
	for s := decision.OK; s <= decision.NotReplayable; s++ {
		out["status"] = append(out["status"], s.String())
	}
	for r := decision.ReasonMatch; r <= decision.ReasonTimeout; r++ {
		out["reason"] = append(out["reason"], r.String())
	}
	for name, labels := range seed {
		out[name] = append(out[name], labels...)
	}
	return out
}

// SetOrigin says under which rules the rows of the segments to come are recorded, as the
// options of the same names do. A recorder calls it before the first row.
func (w *Writer) SetOrigin(entityKeyID, redaction, captureDigest string) {
	w.opts.EntityKeyID, w.opts.Redaction, w.opts.CaptureDigest = entityKeyID, redaction, captureDigest
}

// Append takes a copy of one row. A row that is not valid, or that has an attribute of
// another type than its schema says, is refused with an error that wraps
// [snapshot.ErrInvalid]; a row with another capture list starts a new segment.
func (w *Writer) Append(s *snapshot.Snapshot) error {
	if w.closed {
		return ErrClosed
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if err := checkAttrs(s.Attrs); err != nil {
		return err
	}
	size := snapshotBytes(s)
	if err := tooLarge(size); err != nil {
		return err
	}
	if s.Attrs.Schema != w.attrs {
		if err := w.capture(s.Attrs.Schema); err != nil {
			return err
		}
	}
	if w.batch.full(&w.opts, size) {
		if err := w.makeRoom(); err != nil {
			return err
		}
	}
	w.batch.add(s, size)
	if s.RequestID != w.request { // rows of a request stand together
		w.request = s.RequestID
		w.requests++
	}
	w.batch.info.seen(s.Time.UnixNano())
	if v := s.Artefact.StrategyVersion; v != w.strategy || w.batch.n == 1 {
		w.batch.info.strategy(v)
		w.strategy = v
	}
	return nil
}

// capture changes the capture list.
func (w *Writer) capture(schema *decision.Schema) error {
	if sameSchema(schema, w.attrs) {
		w.attrs = schema
		return nil
	}
	if err := w.writeBatch(); err != nil {
		return err
	}
	w.attrs = schema
	w.batch.use(snapshotFields(schema))
	return nil
}

// makeRoom writes the full batch, unless that has just failed.
func (w *Writer) makeRoom() error {
	if w.failed != nil && w.opts.Now().Sub(w.failedAt) < retryEvery {
		return w.failed
	}
	return w.writeBatch()
}

// writeBatch writes the pending rows, into a new segment when the open one cannot take
// them.
func (w *Writer) writeBatch() error {
	if w.batch.n == 0 {
		return nil
	}
	return w.writePending()
}

func (w *Writer) writePending() error {
	now := w.opts.Now()
	err := w.tryPending(now)
	w.failed, w.failedAt = err, now
	return err
}

func (w *Writer) tryPending(now time.Time) error {
	w.batch.spread()
	if w.seg != nil && (w.outgrown() || w.expired(now)) {
		if err := w.seal(nil); err != nil {
			return err
		}
	}
	if err := w.open(); err != nil {
		return err
	}
	began := &snapshot.Counts{Offered: w.requests, Written: w.requests}
	err := w.seg.write(&w.batch.columnSet, w.batch.pending(w.lost, began))
	w.stats.segment(w.seg)
	if err != nil {
		return w.giveUp(err)
	}
	w.stats.batch(w.batch.n, w.requests)
	w.written += uint64(w.batch.n)
	w.requests = 0
	w.lost, w.lossTime = snapshot.Ledger{}, now
	w.batch.clear()
	return w.giveUp(w.seg.syncIfDue(now))
}

// giveUp leaves a segment that must not be written any more for Recover.
func (w *Writer) giveUp(err error) error {
	if err != nil && errors.Is(err, errTorn) {
		err = errors.Join(err, w.seg.file.Close())
		w.seg = nil
		w.abandoned++
		w.stats.left()
	}
	return err
}

// expired reports whether the segment has reached its size or age.
func (w *Writer) expired(now time.Time) bool {
	return w.seg.size >= w.opts.SegmentBytes || (w.seg.size > 0 && now.Sub(w.seg.opened) >= w.opts.SegmentAge)
}

// outgrown reports whether the segment's head does not describe the pending batch: another
// capture list, a column that became plain, or labels that its dictionaries lack. Columns
// that grow again and again give up their dictionaries here.
func (w *Writer) outgrown() bool {
	grown := !sameSchema(w.seg.attrs, w.attrs)
	for name, n := range w.batch.labels() {
		had, ok := w.seg.labels[name]
		if !ok || had == n {
			continue
		}
		grown = true
		if w.seg.info.Rows > 0 {
			w.force(name)
		}
	}
	return grown || len(w.batch.labels()) != len(w.seg.labels)
}

// force counts a new segment against the column that forced it.
func (w *Writer) force(name string) {
	last, before := w.forced[name]
	w.forced[name] = w.written
	if before && w.written-last < churnRows {
		w.batch.fallBack(name)
	}
}

func (w *Writer) open() error {
	if w.seg != nil {
		return nil
	}
	h := segmentHead{kind: KindSnapshot, seq: w.seq + 1, attrs: w.attrs, link: &w.link}
	h.path = filepath.Join(w.dir, segmentName(&w.opts, h.seq))
	seg, err := newSegment(&w.opts, w.enc, h, &w.batch.columnSet)
	if err != nil {
		return err
	}
	w.seg, w.seq = seg, w.seq+1
	w.stats.opened(seg.opened)
	return nil
}

// seal seals the open segment; when that fails, its file stays for Recover.
//
// Pending losses go into the footer of the last segment only, which comes with a total.
// Others leave them to the next batch: when a seal fails, nobody can tell whether its
// footer will be there after the next start, and losses in it might count twice or never.
// Without the last footer the total is gone as well, which says that something is missing.
func (w *Writer) seal(total *snapshot.Ledger) error {
	seg := w.seg
	w.seg = nil
	end := segmentInfo{Total: total}
	if total != nil {
		end.Ledger, w.lost = w.lost, snapshot.Ledger{}
	}
	err := seg.seal(end)
	w.stats.segment(seg)
	if seg.digest != "" { // also when the directory could not be synced
		w.link = w.link.Next(SegmentOf(seg.path), seg.digest)
	}
	if err != nil {
		w.abandoned++
		w.stats.left()
		return err
	}
	w.stats.sealed(w.opts.Now())
	return errors.Join(w.keepLink(), w.sign())
}

// sign says how far the chain has come. When that fails, the segment is sealed all the
// same, and the next one's checkpoint covers it.
func (w *Writer) sign() error {
	if w.opts.CheckpointKey == nil {
		return nil
	}
	origin := w.opts.Host + "-" + w.opts.Boot
	c := checkpoint.Checkpoint{Origin: origin, Time: w.opts.Now(),
		Heads: []checkpoint.Head{{Segment: w.link.Segment, Digest: w.link.Digest, Length: w.link.Length}}}
	if err := c.Write(filepath.Join(w.dir, origin+checkpoint.Ext), w.opts.CheckpointKey); err != nil {
		return fmt.Errorf("checkpoint of %s: %w", w.link.Segment, err)
	}
	return nil
}

// Flush writes all pending rows. When it returns nil, every row that was appended before
// is acknowledged: written, and under [SyncBatch] synced. lost counts what the caller
// sampled out or dropped since the last Flush; it is taken over even when Flush fails. Where
// it counts rows and no requests, the segment's ledger counts no requests either.
func (w *Writer) Flush(lost snapshot.Ledger) error {
	if w.closed {
		return ErrClosed
	}
	if err := w.takeLost(lost); err != nil {
		return err
	}
	now := w.opts.Now()
	if w.batch.n > 0 || (w.lost.Offered > 0 && now.Sub(w.lossTime) >= lossEvery) {
		return w.writePending()
	}
	if w.seg != nil && w.expired(now) {
		return w.seal(nil)
	}
	if w.seg != nil {
		return w.giveUp(w.seg.syncIfDue(now))
	}
	return nil
}

// takeLost refuses losses that do not close, or that count written rows or requests: the
// writer counts those itself.
func (w *Writer) takeLost(lost snapshot.Ledger) error {
	if err := lost.Check(); err != nil {
		return fmt.Errorf("losses: %w", err)
	}
	if lost.Written > 0 || (lost.Requests != nil && lost.Requests.Written > 0) {
		return fmt.Errorf("losses: %w: %d written rows among them", snapshot.ErrLedger, lost.Written)
	}
	w.lost.Add(lost)
	return nil
}

// Watermark is the number of rows that are acknowledged.
func (w *Writer) Watermark() uint64 { return w.written }

// Abandoned is the number of segments that a write error left behind under their .open
// names, for [Recover].
func (w *Writer) Abandoned() int { return w.abandoned }

// Close writes the pending rows and seals the last segment. total is the ledger of the
// recorder's whole life, for the last segment's footer. Rows that could not be written
// count there as dropped instead of written, and the error is or wraps an
// [UnwrittenError]. After Close every other call fails; Close again returns the same error.
func (w *Writer) Close(lost, total snapshot.Ledger) error {
	if w.closed {
		return w.closeErr
	}
	w.closed = true
	w.closeErr = w.finish(lost, total.Clone())
	return w.closeErr
}

func (w *Writer) finish(lost, total snapshot.Ledger) error {
	err := w.takeLost(lost)
	if werr := w.writeBatch(); werr != nil {
		err = errors.Join(err, w.discard(&total, werr))
	}
	if w.seg == nil && w.seq == 0 && total.Offered == 0 && w.lost.Offered == 0 {
		return err // nothing was ever offered: no file
	}
	w.batch.clear()
	if oerr := w.open(); oerr != nil {
		return errors.Join(err, oerr)
	}
	return errors.Join(err, w.seal(&total))
}
