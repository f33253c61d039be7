package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clefbench/clefbench/spool"
)

const (
	// uploadPoll is how often the directory is looked at.
	uploadPoll = 200 * time.Millisecond
	// progressEvery is how often a standing uploader says how far it is.
	progressEvery = 10 * time.Second
)

// uploadFlags are those of upload, and of record --upload.
type uploadFlags struct {
	to, service, max string
	keep             bool
	timeout          time.Duration
}

func (f *uploadFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.service, "service", spool.DefaultService, "name of the service, a part of the key of every object")
	fl.BoolVar(&f.keep, "keep", false, "move uploaded segments to DIR/"+spool.UploadedDir+" instead of deleting them")
}

// open starts a spool on a directory.
func (f *uploadFlags) open(ctx context.Context, a *app, dir string) (*spool.Spool, error) {
	limit := int64(0)
	if f.max != "" {
		var err error
		if limit, err = parseBytes(f.max); err != nil {
			return nil, usage(err, "as in --spool-max 4GiB")
		}
	}
	level := slog.LevelInfo
	if a.quiet {
		level = slog.LevelWarn
	}
	s, err := spool.Open(ctx, dir, spool.Options{URL: f.to, Service: f.service, MaxBytes: limit, Keep: f.keep, Poll: uploadPoll,
		Logger: slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))})
	if errors.Is(err, spool.ErrOptions) {
		return nil, usage(err, "as in file:///mnt/bucket or s3://bucket/prefix?region=eu-west-1")
	}
	return s, err
}

// finish uploads what is left, at most until the timeout, and says what became of it.
func (f *uploadFlags) finish(ctx context.Context, a *app, s *spool.Spool) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := s.Close(ctx)
	a.uploaded(s.Stats())
	switch {
	case errors.Is(err, spool.ErrConflict):
		return &failure{exitData, err, "nothing was overwritten; compare the two, and move one of them"}
	case errors.Is(err, spool.ErrPending):
		if code, hint := classify(err); hint != "" && code != exitInterrupted {
			return &failure{code, err, hint}
		}
		return &failure{exitTryAgain, err, "nothing is lost: 'clefbench upload DIR --to URL' goes on where this stopped"}
	}
	return err
}

func (a *app) uploaded(st spool.Stats) {
	if a.quiet {
		return
	}
	fmt.Fprintf(a.stderr, "uploaded %d segments, %d rows, %d bytes (%d were there already)", st.Uploaded, st.Rows, st.Bytes, st.Present)
	if st.Pending > 0 {
		fmt.Fprintf(a.stderr, "; %d segments of %d bytes wait, the oldest for %v", st.Pending, st.PendingBytes, st.OldestPending.Round(time.Second))
	}
	fmt.Fprintln(a.stderr)
}

func (a *app) uploadCommand() *cobra.Command {
	var f uploadFlags
	var once bool
	cmd := &cobra.Command{
		Use:   "upload DIR --to URL",
		Short: "Upload sealed segments to a bucket, and delete them once it has them",
		Long: `Upload brings the sealed segments of a recorder's directory into a bucket, as
full/dt=DATE/SERVICE/NAME.arrow, one object a segment. It runs until it is interrupted;
with --once it uploads what is there and ends. Segments of killed recorders are sealed
first.

An object is written only if there is none under its name, and is read back after any
error. Nothing is deleted from DIR before the bucket is known to hold the same bytes, and
nothing in the bucket is ever overwritten. Any number of uploaders may share a directory
or a bucket.

URL is file:///dir, or s3://bucket/prefix with the parameters region, endpoint, profile,
use_path_style, dualstack, fips, ssetype and kmskeyid. Credentials come from the
environment, the shared files or the instance, as for every AWS tool, and are refused in
the URL. docs/formats/spool.md has the layout and the rights that are needed.`,
		Example: `  clefbench upload spool --to s3://decisions/prod?region=eu-west-1 --service checkout
  clefbench upload spool --to file:///mnt/bucket --once`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.upload(cmd.Context(), args[0], &f, once) },
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.StringVar(&f.to, "to", "", "URL of the bucket (required)")
	fl.BoolVar(&once, "once", false, "upload what is sealed, and end")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Minute, "with --once, longest time to try")
	return cmd
}

func (a *app) upload(ctx context.Context, dir string, f *uploadFlags, once bool) error {
	if f.to == "" {
		return fail(exitUsage, "clefbench upload DIR --to s3://bucket/prefix", "upload needs --to URL")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return err // not one to make: a mistyped name would wait for ever
	}
	s, err := f.open(ctx, a, dir)
	if err != nil {
		return err
	}
	if once {
		err := f.finish(ctx, a, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	a.watch(ctx, s)
	ended := s.Close(ctx)
	a.uploaded(s.Stats())
	if ended != nil && !errors.Is(ended, spool.ErrPending) {
		return ended
	}
	return ctx.Err()
}

// watch prints progress until the context ends.
func (a *app) watch(ctx context.Context, s *spool.Spool) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var told spool.Stats
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if st := s.Stats(); st.Uploaded != told.Uploaded || st.Failures != told.Failures {
				a.uploaded(st)
				told = st
			}
		}
	}
}

// parseBytes reads a number of bytes, with an optional KiB, MiB or GiB.
func parseBytes(s string) (int64, error) {
	number, factor := s, int64(1)
	for unit, f := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			number, factor = n, f
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a positive number of bytes", s)
	}
	return n * factor, nil
}
