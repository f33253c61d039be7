package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/recorder/proxy"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/spool"
)

// proxyFlags are those of record --listen.
type proxyFlags struct {
	listen, upstream, dialect string
	remote                    bool
	capture                   []string
	entity, scenario, backend string
	bodies, maxBody, memory   string
	raw                       string
	killFile                  string
	window, timeout, grace    time.Duration
}

func (f *proxyFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.listen, "listen", "", "record what passes through this address to --upstream, instead of stdin")
	fl.StringVar(&f.upstream, "upstream", "", "http or https URL of the decision service")
	fl.StringVar(&f.dialect, "dialect", "auto", "auto, systemone, decisions or decide: what the service speaks")
	fl.BoolVar(&f.remote, "allow-remote", false, "allow an address for --listen that other machines can reach")
	fl.StringArrayVar(&f.capture, "capture", nil, "record an attribute, as NAME or NAME:TYPE: headers.NAME, query.NAME, method, path, or one of a decide request")
	fl.StringVar(&f.entity, "entity", "", "attribute whose keyed hash names the user, session or account")
	fl.StringVar(&f.scenario, "scenario", proxy.DefaultScenario, "scenario of requests that name none")
	fl.StringVar(&f.backend, "backend", "", "name of who decides (default: the model that was asked for, else the host)")
	fl.StringVar(&f.bodies, "bodies", "both", "both, input, output or none: which bodies are stored")
	fl.StringVar(&f.raw, "raw-input", "redact", "redact or keep: what becomes of secrets that stand in bodies")
	fl.StringVar(&f.maxBody, "max-body", "4MiB", "longest body that is captured")
	fl.StringVar(&f.memory, "capture-memory", "64MiB", "memory for bodies on their way; beyond it requests pass unrecorded, and are counted")
	fl.DurationVar(&f.window, "retry-window", proxy.DefaultRetryWindow, "how long a failed attempt waits for its retry")
	fl.DurationVar(&f.timeout, "upstream-timeout", 0, "longest time of an attempt (default: as long as its client waits)")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "longest time that requests under way get at the end")
	fl.StringVar(&f.killFile, "kill-file", "", "nothing is recorded while this file exists")
}

// recordProxy records what passes until it is interrupted. A second signal ends at once.
func (a *app) recordProxy(ctx context.Context, f *recordFlags) error {
	const hint = "clefbench record -o DIR --listen 127.0.0.1:8081 --upstream URL"
	switch {
	case f.out == "":
		return fail(exitUsage, hint, "record needs -o DIR")
	case f.proxy.listen == "" || f.proxy.upstream == "":
		return fail(exitUsage, hint, "--listen and --upstream go together")
	}
	o, ro, err := a.proxyOptions(f)
	if err != nil {
		return err
	}
	segments, err := f.segments()
	if err != nil {
		return err
	}
	l, err := f.proxy.open()
	if err != nil {
		return err
	}
	defer l.Close()
	r := &proxyRecording{app: a, flags: f, listener: l}
	if err := r.open(ctx, o, ro, segments); err != nil {
		return err
	}
	return r.run(ctx)
}

// proxyOptions turns the flags into the options of proxy and recorder.
func (a *app) proxyOptions(f *recordFlags) (o proxy.Options, ro recorder.Options, err error) {
	p := &f.proxy
	o = proxy.Options{Upstream: p.upstream, Entity: p.entity, Dialect: proxy.Dialect(p.dialect), Scenario: p.scenario, Backend: p.backend,
		RetryWindow: p.window, Timeout: p.timeout}
	maxBody, err := parseBytes(p.maxBody)
	if err != nil || maxBody > 1<<30 {
		return o, ro, fail(exitUsage, "as in --max-body 4MiB", "--max-body must be a size up to 1GiB")
	}
	if o.Budget, err = parseBytes(p.memory); err != nil {
		return o, ro, usage(err, "as in --capture-memory 64MiB")
	}
	o.MaxBody = int(maxBody)
	ro = recorder.Options{MaxBody: o.MaxBody, FlushInterval: f.every, FlushRows: f.batch, KillFile: p.killFile, SampleRate: f.sample.rate}
	if ro.Capture, err = p.list(f.attrs); err != nil {
		return o, ro, err
	}
	reader, err := a.newLineReader(nil)
	if err != nil {
		return o, ro, err
	}
	if err := o.Validate(); err != nil {
		return o, ro, usage(err, "as in --upstream https://api.example.org --dialect auto")
	}
	ro.EntityKey = reader.key
	if ro.Sampling, err = f.sample.rules(); err != nil {
		return o, ro, usage(err, "")
	}
	if err := f.sample.hasKey(a.lookupEnv); err != nil {
		return o, ro, err
	}
	if !a.quiet {
		ro.Logger = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return o, ro, nil
}

// list is the capture list.
func (f *proxyFlags) list(attrs []string) (c recorder.Capture, err error) {
	for _, spec := range append(slices.Clone(f.capture), attrs...) {
		name, typ, given := strings.Cut(spec, ":")
		t := decision.String
		if given {
			t, err = decision.ParseType(typ)
		}
		if err != nil || name == "" {
			return c, fail(exitUsage, "as in --capture headers.user-agent --capture metrics.rate:double", "--capture %q is not NAME or NAME:TYPE", spec)
		}
		c.Fields = append(c.Fields, recorder.CaptureField{Name: name, Type: t})
	}
	if f.raw != "redact" && f.raw != "keep" {
		return c, fail(exitUsage, "", "--raw-input %q is not redact or keep", f.raw)
	}
	c.Entity.Attr, c.RawBodies = f.entity, f.raw == "keep"
	switch f.bodies {
	case "both":
		c.Input, c.Output = true, true
	case "input":
		c.Input = true
	case "output":
		c.Output = true
	case "none":
	default:
		return c, fail(exitUsage, "", "--bodies %q is not both, input, output or none", f.bodies)
	}
	return c, nil
}

// open listens; what other machines can reach needs a word of consent, because whoever
// reaches the port can use the service behind it.
func (f *proxyFlags) open() (net.Listener, error) {
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, usage(err, "as in --listen 127.0.0.1:8081")
	}
	if addr, ok := l.Addr().(*net.TCPAddr); !f.remote && (!ok || !addr.IP.IsLoopback()) {
		l.Close()
		return nil, fail(exitUsage, "listen on 127.0.0.1, or add --allow-remote", "--listen %s can be reached from other machines", f.listen)
	}
	return l, nil
}

// proxyRecording is one run of record --listen.
type proxyRecording struct {
	*app
	flags    *recordFlags
	listener net.Listener
	rec      *recorder.Recorder
	proxy    *proxy.Proxy
	spool    *spool.Spool
	acked    uint64
}

// open makes the recorder before the first request can come.
func (r *proxyRecording) open(ctx context.Context, o proxy.Options, ro recorder.Options, segments arrowfile.Options) error {
	if err := r.sealDead(r.flags.out); err != nil {
		return err
	}
	w, err := arrowfile.Create(r.flags.out, segments)
	if err != nil {
		return outputError(err)
	}
	var sink recorder.Sink = w
	if r.flags.upload.to != "" {
		if r.spool, err = r.flags.upload.open(ctx, r.app, r.flags.out); err != nil {
			return errors.Join(err, w.Close(snapshot.Ledger{}, snapshot.Ledger{}))
		}
		sink = r.spool.Wrap(w, 0) // while it is full, rows are dropped and counted: traffic cannot wait
	}
	if r.rec, err = recorder.New(sink, ro); err != nil {
		return errors.Join(usage(err, "'clefbench record --help' lists the flags"), w.Close(snapshot.Ledger{}, snapshot.Ledger{}))
	}
	o.Recorder = r.rec
	if r.proxy, err = proxy.New(o); err != nil {
		return errors.Join(usage(err, "as in --upstream https://api.example.org"), r.rec.Close(ctx))
	}
	return nil
}

func (r *proxyRecording) run(ctx context.Context) error {
	fmt.Fprintf(r.stderr, "recording http://%s -> %s\n", r.listener.Addr(), r.flags.proxy.upstream)
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(r.listener) }()
	tick := time.NewTicker(r.flags.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.ack()
		case err := <-served:
			return errors.Join(err, r.close(ctx))
		case <-ctx.Done():
			return r.close(ctx)
		}
	}
}

func (r *proxyRecording) ack() {
	if n := r.rec.Watermark(); r.flags.ack && n > r.acked {
		r.acked = n
		fmt.Fprintf(r.stderr, "acked %d\n", n)
	}
}

// close lets the requests under way end, and seals. The context of the command is over:
// this has one of its own, which a second signal ends.
func (r *proxyRecording) close(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	grace, cancel := context.WithTimeout(ctx, r.flags.proxy.grace)
	defer cancel()
	if err := r.proxy.Shutdown(grace); err != nil && !r.quiet && !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintf(r.stderr, "clefbench: requests under way were broken off: %v\n", err)
	}
	seal, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	err := r.rec.Close(seal)
	r.ack()
	r.tell()
	if r.spool != nil {
		err = cmp.Or(err, r.flags.upload.finish(ctx, r.app, r.spool))
	}
	return err
}

// sealTimeout is longer than any disk takes that still works.
const sealTimeout = 30 * time.Second

// tell prints the ledger.
func (r *proxyRecording) tell() {
	if r.quiet {
		return
	}
	l, s := r.rec.Stats().Ledger, r.proxy.Stats()
	fmt.Fprintf(r.stderr, "recorded %d of %d decisions in %d requests", l.Written, l.Offered, s.Decisions)
	if s.Retries > 0 {
		fmt.Fprintf(r.stderr, ", %d retries folded", s.Retries)
	}
	if l.SampledOut > 0 {
		fmt.Fprintf(r.stderr, ", %d sampled out", l.SampledOut)
	}
	for _, reason := range slices.Sorted(maps.Keys(l.Dropped)) {
		fmt.Fprintf(r.stderr, ", %d dropped (%s)", l.Dropped[reason], reason)
	}
	fmt.Fprintf(r.stderr, "; %d other requests passed\n", s.Passed)
}
