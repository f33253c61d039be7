package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/spool"
)

// maxLine bounds a JSON line: 16 MiB.
const maxLine = 16 << 20

// defaultBatch is the number of rows a batch; within 1 % of the best size measured.
const defaultBatch = 8192

// maxBatch is the largest batch that every reader takes.
const maxBatch = 1 << 16

// entityKeyVar names the environment variable with the key that hashes entities.
const entityKeyVar = "CLEFBENCH_ENTITY_KEY"

type recordFlags struct {
	out     string
	ack     bool
	skipBad bool
	batch   int
	every   time.Duration
	fsync   string
	attrs   []string
	key     string
	upload  uploadFlags
	sample  sampleFlags
	// segmentSize and segmentAge end a segment.
	segmentSize string
	segmentAge  time.Duration
	proxy       proxyFlags
}

func (a *app) recordCommand() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record -o DIR < decisions.jsonl",
		Short: "Record decisions from JSON lines on stdin, or as they pass to a service",
		Long: `Record reads one decision a line from stdin and writes zstd-compressed Arrow
segments into a directory. Everything below the watermark that --ack prints is there
after a crash: 'clefbench datasets verify' and every reader recover it.

With --listen and --upstream it stands between a decision service (SystemOne, OpenAI
Decisions, /v1/decide) and its clients instead, changes no byte of what passes, and
records each decision, until it is interrupted. docs/formats/proxy.md has what a row holds.

A line needs "scenario" and "action" (or "status"); "candidates", "attrs", "ts", "id",
"entity", "latency_ns", "confidence", "reason", "rule_id", "propensity" and "keep_prob"
are the fields that replay and scoring gain most from. docs/formats/record.md has all.
Entities are hashed under the key in ` + entityKeyVar + `.

With --sample, requests are kept or left as a whole: neighbouring lines of one request_id.
--sample-keep names what is kept whatever the draw says; the keep_prob of the rows follows
from the two, and estimates weighted by 1/keep_prob stay right.`,
		Example: `  echo '{"scenario":"edge","action":"allow","candidates":["allow","block"],"attrs":{"path":"/"}}' |
    clefbench record -o snapshots
  clefbench record -o snapshots --ack --fsync batch < decisions.jsonl
  clefbench record -o snapshots --listen 127.0.0.1:8081 --upstream https://api.typesafe.ai`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			proxied := f.proxy.listen != "" || f.proxy.upstream != ""
			if err := otherForm(cmd.Flags(), proxied); err != nil {
				return err
			}
			if !proxied {
				return a.record(cmd.Context(), &f)
			}
			return a.recordProxy(cmd.Context(), &f)
		},
	}
	cmd.AddCommand(a.selftestCommand())
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "directory for the segments (required)")
	fl.BoolVar(&f.ack, "ack", false, "print 'acked N' on stderr as the watermark moves")
	fl.BoolVar(&f.skipBad, "skip-bad", false, "count and skip lines that cannot be read, instead of stopping")
	fl.IntVar(&f.batch, "batch", defaultBatch, "rows a batch")
	fl.DurationVar(&f.every, "flush-interval", time.Second, "longest time a row waits for its batch")
	fl.StringVar(&f.fsync, "fsync", "interval", "never, interval or batch: when files are synced to disk")
	f.sample.register(fl)
	fl.StringVar(&f.segmentSize, "segment-size", "64MiB", "size at which a segment is sealed")
	fl.DurationVar(&f.segmentAge, "segment-age", 5*time.Minute, "age at which a segment is sealed")
	fl.StringVar(&f.key, "checkpoint-key", "", "PEM file of an Ed25519 private key: every sealed segment is signed (datasets checkpoint --help)")
	f.upload.register(fl)
	fl.StringVar(&f.upload.to, "upload", "", "also upload sealed segments to this bucket, as 'clefbench upload' does")
	fl.StringVar(&f.upload.max, "spool-max", "", "bytes that may wait for their upload before stdin waits (default 4GiB)")
	fl.DurationVar(&f.upload.timeout, "upload-timeout", time.Minute, "longest time to go on uploading at the end")
	fl.StringArrayVar(&f.attrs, "attr", nil, "declare an attribute as name:type (bool, int, double, string)")
	f.proxy.register(fl)
	return cmd
}

// otherForm refuses a flag that the form at hand would ignore.
func otherForm(fl *pflag.FlagSet, proxied bool) error {
	names, without := []string{"dialect", "allow-remote", "capture", "entity", "scenario", "backend", "bodies", "max-body", "capture-memory",
		"retry-window", "upstream-timeout", "grace", "kill-file"}, "without --listen"
	if proxied {
		names, without = []string{"skip-bad", "attr"}, "with --listen"
	}
	for _, name := range names {
		if fl.Changed(name) {
			return fail(exitUsage, "clefbench record --help", "--%s has no meaning %s", name, without)
		}
	}
	return nil
}

// record is the loop of the command: lines in, rows out, a flush when a batch is full
// or old. It never drops a row: stdin waits.
func (a *app) record(ctx context.Context, f *recordFlags) error {
	if f.out == "" {
		return fail(exitUsage, "clefbench record -o DIR < decisions.jsonl", "record needs -o DIR")
	}
	reader, err := a.newLineReader(f.attrs)
	if err != nil {
		return err
	}
	o, err := f.segments()
	if err != nil {
		return err
	}
	sampled, err := f.sample.open(reader.key)
	if err != nil {
		return usage(err, "")
	}
	if err := f.sample.hasKey(a.lookupEnv); err != nil {
		return err
	}
	if f.proxy.raw != "redact" && f.proxy.raw != "keep" {
		return fail(exitUsage, "as in --raw-input keep", "--raw-input is %q, not redact or keep", f.proxy.raw)
	}
	if err := a.sealDead(f.out); err != nil {
		return err
	}
	o.EntityKeyID, o.Redaction = recorder.KeyID(reader.key), redactionOf(f.proxy.raw)
	w, err := arrowfile.Create(f.out, o)
	if err != nil {
		return outputError(err)
	}
	rec := &recording{app: a, flags: f, reader: reader, w: w, sampled: sampled}
	if f.upload.to != "" {
		if rec.spool, err = f.upload.open(ctx, a, f.out); err != nil {
			return err
		}
	}
	err = rec.loop(ctx)
	err = cmp.Or(err, rec.close())
	if rec.spool != nil {
		err = cmp.Or(err, f.upload.finish(context.WithoutCancel(ctx), a, rec.spool))
	}
	return err
}

// segments are the options of the files.
func (f *recordFlags) segments() (o arrowfile.Options, err error) {
	if o.Sync, err = arrowfile.ParseSync(f.fsync); err != nil {
		return o, usage(err, "")
	}
	rules, err := f.sample.rules()
	if err != nil {
		return o, usage(err, "")
	}
	o.Sampling = rules.Describe(f.sample.rate)
	if f.batch < 1 || f.batch > maxBatch || f.every <= 0 {
		return o, fail(exitUsage, "", "--batch must be 1 to %d, and --flush-interval positive", maxBatch)
	}
	o.BatchRows, o.SegmentAge = f.batch, f.segmentAge
	if o.SegmentBytes, err = parseBytes(f.segmentSize); err != nil || f.segmentAge <= 0 {
		return o, fail(exitUsage, "as in --segment-size 64MiB --segment-age 5m", "--segment-size and --segment-age must be positive")
	}
	if f.key != "" {
		o.CheckpointKey, err = readSigningKey(f.key)
	}
	return o, err
}

// sealDead seals what earlier recordings left open when they were killed. One that holds
// no whole batch is left as it is: nothing in it was acknowledged.
func (a *app) sealDead(dir string) error {
	if !arrowfile.CanTell() {
		return nil // another recording may be writing there
	}
	done, err := arrowfile.RecoverDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, r := range done {
		fmt.Fprintf(a.stderr, "clefbench: sealed %s, which a killed recording left open: %d rows\n", r.Path, r.Rows)
	}
	if errors.Is(err, arrowfile.ErrCorrupt) {
		fmt.Fprintf(a.stderr, "clefbench: not sealed: %v\n", err)
		return nil
	}
	return err
}

func (a *app) newLineReader(attrs []string) (*lineReader, error) {
	key, _ := a.lookupEnv(entityKeyVar)
	r := newLineReader(map[string]decision.Type{}, []byte(key), time.Now)
	for _, spec := range attrs {
		name, typ, ok := strings.Cut(spec, ":")
		t, err := decision.ParseType(typ)
		if !ok || err != nil || name == "" {
			return nil, fail(exitUsage, "as in --attr metrics.requests:int", "--attr %q is not name:type", spec)
		}
		r.declared[name] = t
	}
	if len(r.key) == 0 {
		// Without a key the hash could be reversed by trying names; a random one keeps the
		// clusters of this recording and nothing else.
		r.key = make([]byte, 32)
		rand.Read(r.key)
	}
	return r, nil
}

// recording is one run of the command.
type recording struct {
	*app
	flags    *recordFlags
	reader   *lineReader
	w        *arrowfile.Writer
	redactor recorder.Redactor
	spool    *spool.Spool // nil without --upload
	// sampled holds back the rows of the request that is being read; nil: all are kept.
	sampled *requestSampler
	row     snapshot.Snapshot
	total   snapshot.Ledger
	lost    snapshot.Ledger
	fresh   int // rows since the last flush
	acked   uint64
}

type inputLine struct {
	text []byte
	err  error
}

func (r *recording) loop(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := scanLines(ctx, bufio.NewReaderSize(r.stdin, 1<<16))
	tick := time.NewTicker(r.flags.every)
	defer tick.Stop()
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := r.settleIdle(); err != nil {
				return err
			}
			if err := r.flush(); err != nil {
				return err
			}
		case l, ok := <-lines:
			if !ok {
				return nil
			}
			if err := r.room(ctx); err != nil {
				return err
			}
			if err := r.line(l, n); err != nil {
				return err
			}
			n++
		}
	}
}

// room waits while too much waits for its upload; what was read is written first.
func (r *recording) room(ctx context.Context) error {
	if r.spool == nil || !r.spool.Full() {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.spool.Await(ctx)
}

// parse reads a line into the row at hand. Its errors repeat what the line holds, which
// may be a secret in the wrong place.
func (r *recording) parse(l inputLine) error {
	if l.err != nil {
		return fmt.Errorf("the line has more than %d MiB; bodies can be left out or cut", maxLine>>20)
	}
	if err := r.reader.read(l.text, &r.row); err != nil {
		text, _ := secret.Replace(err.Error())
		return errors.New(text)
	}
	return nil
}

// line takes one input line, whose number is n.
func (r *recording) line(l inputLine, n int) error {
	if l.err != nil && !errors.Is(l.err, bufio.ErrTooLong) {
		return fail(exitData, "", "stdin:%d: %w", n, l.err)
	}
	if l.err == nil && len(bytes.TrimSpace(l.text)) == 0 {
		return nil // a blank line offers no decision
	}
	r.total.Offered++
	if err := r.parse(l); err != nil {
		r.total.Drop("bad-line", 1)
		r.lost.Drop("bad-line", 1)
		r.lost.Offered++
		if r.flags.skipBad {
			fmt.Fprintf(r.stderr, "clefbench: stdin:%d: %v (skipped)\n", n, err)
			return nil
		}
		return fail(exitData, "earlier lines are recorded; --skip-bad counts bad lines and goes on", "stdin:%d: %w", n, err)
	}
	if err := r.redact(); err != nil {
		return fail(exitData, "--raw-input keep stores it as it is", "stdin:%d: %w", n, err)
	}
	if r.sampled != nil {
		return r.sample(n)
	}
	return r.append(&r.row, n)
}

// redactionOf is what segments say of --raw-input.
func redactionOf(rawInput string) string {
	if rawInput == "keep" {
		return recorder.RedactionRawBodies
	}
	return recorder.RedactionSecrets
}

// redact takes secrets out of the row at hand.
func (r *recording) redact() error {
	r.redactor.RawBodies = r.flags.proxy.raw == "keep"
	return r.redactor.Redact(&r.row)
}

// append writes the row of line n.
func (r *recording) append(row *snapshot.Snapshot, n int) error {
	if err := r.w.Append(row); err != nil {
		r.unwritten(1)
		return fmt.Errorf("stdin:%d: %w", n, err)
	}
	r.total.Written++
	if r.fresh++; r.fresh >= r.flags.batch {
		return r.flush()
	}
	return nil
}

// unwritten counts rows that the disk did not take.
func (r *recording) unwritten(n uint64) {
	r.total.Drop("write-error", n)
	r.lost.Drop("write-error", n)
	r.lost.Offered += n
}

func (r *recording) flush() error {
	if r.fresh == 0 {
		return nil
	}
	if err := r.w.Flush(r.lost); err != nil {
		return err
	}
	r.lost, r.fresh = snapshot.Ledger{}, 0
	r.ack()
	return nil
}

func (r *recording) ack() {
	if n := r.w.Watermark(); r.flags.ack && n > r.acked {
		r.acked = n
		fmt.Fprintf(r.stderr, "acked %d\n", n)
	}
}

// close seals the recording. What could not be written is counted as dropped: written
// is what the watermark covers, so that the ledger closes on a full disk, too.
func (r *recording) close() error {
	ferr := cmp.Or(r.settle(), r.flush())
	if n := r.total.Written - r.w.Watermark(); n > 0 {
		r.total.Written -= n
		r.unwritten(n)
	}
	err := r.w.Close(r.lost, r.total)
	if ferr != nil || err != nil {
		if !r.quiet {
			fmt.Fprintf(r.stderr, "recorded %d of %d decisions\n", r.total.Written, r.total.Offered)
		}
		return cmp.Or(ferr, err)
	}
	r.ack()
	if !r.quiet {
		fmt.Fprintf(r.stderr, "recorded %d of %d decisions\n", r.total.Written, r.total.Offered)
	}
	if n := r.reader.labels; n > 0 && !r.quiet {
		fmt.Fprintf(r.stderr, "note: %d lines have a label; labels are files of their own and are not recorded\n", n)
	}
	return r.total.Check()
}

// scanLines reads lines ahead. One that is longer than maxLine is read to its end and given
// as an error, so that what follows can still be read.
func scanLines(ctx context.Context, in *bufio.Reader) <-chan inputLine {
	out := make(chan inputLine, 256)
	go func() {
		defer close(out)
		for {
			l, last := readLine(in)
			if last && l.err == nil && len(l.text) == 0 {
				return
			}
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
			if last {
				return
			}
		}
	}()
	return out
}

// readLine reads one line without its end; last says that nothing follows.
func readLine(in *bufio.Reader) (l inputLine, last bool) {
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case len(l.text)+len(bytes.TrimRight(part, "\r\n")) > maxLine:
			l = inputLine{err: bufio.ErrTooLong}
		case l.err == nil:
			l.text = append(l.text, part...)
		}
		switch {
		case err == nil:
			l.text = bytes.TrimSuffix(bytes.TrimSuffix(l.text, []byte("\n")), []byte("\r"))
			return l, false
		case errors.Is(err, io.EOF):
			return l, true
		case !errors.Is(err, bufio.ErrBufferFull):
			return inputLine{err: err}, true
		}
	}
}
