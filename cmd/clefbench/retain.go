package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

type retainFlags struct {
	out, after, now, by, format string
	policy                      datasets.RetentionPolicy
	seed                        uint64
	dryRun                      bool
}

func (a *app) retainCommand() *cobra.Command {
	var f retainFlags
	cmd := &cobra.Command{
		Use:   "retain DIR -o NEWDIR",
		Short: "Thin out old requests so that estimates stay right",
		Long: `Retain writes a copy of a data set in which old ordinary requests are thinned out.
Requests stay or go as a whole: the younger ones and the anomalies all stay, any other
with probability --keep, which is multiplied into keep_prob, so that weighted estimates
stay right. Anomalies are requests with a row whose status is not ok, whose confidence is
below --low-confidence, whose action has a smaller share of its scenario than --rare, or
that a --rule decided.

DIR is never changed; remove it yourself when NEWDIR is what you want. retention.json
tells who ran which policy when. --keep 0 is refused: of what is gone altogether nothing
can be estimated. docs/formats/retention.md has the details.`,
		Example: `  clefbench datasets retain snapshots -o kept --dry-run --low-confidence 0.6
  clefbench datasets retain snapshots -o kept --after 7d --keep 0.05 --rare 0.01 --rule block-payments`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.retain(args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "directory to make (required, but for --dry-run)")
	fl.StringVar(&f.after, "after", "7d", "age from which requests may go, as 7d or 36h")
	fl.Float64Var(&f.policy.Keep, "keep", 0.05, "probability in (0,1] with which an ordinary old request stays")
	fl.Float64Var(&f.policy.LowConfidence, "low-confidence", 0, "rows below this confidence are anomalies; 0 makes none")
	fl.Float64Var(&f.policy.Rare, "rare", 0, "rows of actions below this share of their scenario are anomalies; 0 makes none")
	fl.StringArrayVar(&f.policy.Rules, "rule", nil, "rows that this rule decided are anomalies (repeat)")
	fl.StringVar(&f.now, "now", "", "time that ages are counted from, RFC 3339 (default: the clock)")
	fl.Uint64Var(&f.seed, "seed", 1, "draws other requests")
	fl.StringVar(&f.by, "by", "", "who runs this, for the record (default: user@host)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "count, and write nothing")
	fl.StringVarP(&f.format, "format", "f", "text", "text or json")
	return cmd
}

func (a *app) retain(dir string, f *retainFlags) error {
	o, err := f.options(time.Now())
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return err // not a mistake about -o
	}
	done, err := datasets.Retain(dir, f.out, *o)
	if err != nil {
		return retainError(err)
	}
	if !a.quiet {
		for _, w := range done.Warnings {
			fmt.Fprintf(a.stderr, "clefbench: warning: %s\n", printable(w.Text))
		}
	}
	if f.format == "json" {
		return writeJSON(a.stdout, done)
	}
	return a.retained(f, done)
}

// options checks the flags.
func (f *retainFlags) options(clock time.Time) (*datasets.RetainOptions, error) {
	if f.format != "text" && f.format != "json" {
		return nil, fail(exitUsage, "formats: text, json", "unknown format %q", f.format)
	}
	if f.out == "" && !f.dryRun {
		return nil, fail(exitUsage, "clefbench datasets retain DIR -o NEWDIR", "retain needs -o NEWDIR, or --dry-run")
	}
	after, err := parseAge(f.after)
	if err != nil {
		return nil, usage(err, "as in --after 7d, --after 36h or --after 1d12h")
	}
	now := clock
	if f.now != "" {
		if now, err = time.Parse(time.RFC3339Nano, f.now); err != nil {
			return nil, fail(exitUsage, "as in --now 2026-03-01T00:00:00Z", "--now %q is not a time", f.now)
		}
	}
	f.policy.After = after
	version, commit := buildVersion()
	return &datasets.RetainOptions{Policy: f.policy, Now: now, Ran: clock, Seed: f.seed, By: cmp.Or(f.by, whoAmI()),
		Tool: strings.TrimSpace("clefbench " + version + " " + commit), DryRun: f.dryRun}, nil
}

// retainError gives an error its exit code and hint.
func retainError(err error) error {
	switch {
	case errors.Is(err, datasets.ErrPolicy):
		return usage(err, "see docs/formats/retention.md, or clefbench datasets retain --help")
	case errors.Is(err, arrowfile.ErrUnsealed):
		return &failure{exitData, err, "a recorder seals it when it ends; 'clefbench datasets repair' seals what a killed one left"}
	case errors.Is(err, fs.ErrExist):
		return usage(err, "give another -o, or remove it")
	case errors.Is(err, datasets.ErrEmpty):
		return &failure{exitNoVerdict, err, "keep more"}
	}
	return outputError(err)
}

// parseAge reads a duration that may start with days.
func parseAge(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	age := time.Duration(n) * 24 * time.Hour
	if err == nil && rest != "" {
		var more time.Duration
		more, err = time.ParseDuration(rest)
		age += more
	}
	if err != nil || s == "" || age < 0 {
		return 0, fmt.Errorf("--after %q is not an age", s)
	}
	return age, nil
}

// whoAmI is user@host, as far as the system tells.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// retained prints the counts.
func (a *app) retained(f *retainFlags, done *datasets.Retention) error {
	var b strings.Builder
	for _, s := range done.Strata {
		fmt.Fprintf(&b, "%s %s: %d of %d requests kept, %d of %d rows; they stand for %.0f of %.0f decisions\n",
			s.Scenario, s.Stratum, s.RequestsKept, s.RequestsRead, s.RowsKept, s.RowsRead, s.WeightKept, s.WeightRead)
	}
	read, kept := done.Rows()
	if f.dryRun {
		fmt.Fprintf(&b, "would keep %d of %d rows; nothing was written (dry run)\n", kept, read)
	} else {
		fmt.Fprintf(&b, "kept %d of %d rows in %s\n", kept, read, f.out)
	}
	_, err := io.WriteString(a.stdout, printable(b.String()))
	return err
}
