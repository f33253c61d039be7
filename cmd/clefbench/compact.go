package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

type compactFlags struct{ out, level, by, format string }

func (a *app) compactCommand() *cobra.Command {
	var f compactFlags
	cmd := &cobra.Command{
		Use:   "compact DIR -o NEWDIR",
		Short: "Merge short segments and batches into full ones",
		Long: `Compact writes a copy of a data set with the same rows in the same order, in full
segments of full batches, compressed harder than a recorder can afford. Ledgers add up to
the same sums; labels, dataset.yaml and artefacts come along. Runs that were replayed from
DIR stay as they are, since they hold all that they need.

DIR is verified first and never changed; NEWDIR is verified before it appears, and appears
as a whole. Remove DIR yourself when NEWDIR is what you want. retention.json tells what was
done. Segments get new names and begin a new chain: sign it with 'datasets checkpoint'.`,
		Example: `  clefbench datasets compact snapshots -o compacted`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.compact(args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "directory to make (required)")
	fl.StringVar(&f.level, "level", string(arrowfile.LevelBetter), "fastest, default, better or best: how hard to compress")
	fl.StringVar(&f.by, "by", "", "who runs this, for the record (default: user@host)")
	fl.StringVarP(&f.format, "format", "f", "text", "text or json")
	return cmd
}

func (a *app) compact(dir string, f *compactFlags) error {
	if f.format != "text" && f.format != "json" {
		return fail(exitUsage, "formats: text, json", "unknown format %q", f.format)
	}
	if f.out == "" {
		return fail(exitUsage, "clefbench datasets compact DIR -o NEWDIR", "compact needs -o NEWDIR")
	}
	level, err := arrowfile.ParseLevel(f.level)
	if err != nil {
		return usage(err, "")
	}
	if _, err := os.Stat(dir); err != nil {
		return err // not a mistake about -o
	}
	version, commit := buildVersion()
	done, err := datasets.Compact(dir, f.out, datasets.CompactOptions{Level: level, Ran: time.Now(), By: cmp.Or(f.by, whoAmI()),
		Tool: strings.TrimSpace("clefbench " + version + " " + commit)})
	switch {
	case errors.Is(err, datasets.ErrPlace):
		return usage(err, "give another -o")
	case err != nil:
		return retainError(err)
	}
	if f.format == "json" {
		return writeJSON(a.stdout, done)
	}
	b, n := done.Before, done.After
	_, err = fmt.Fprintf(a.stdout, "%d rows: %d segments and %d label files of %d bytes became %d and %d of %d bytes (%+.1f%%) in %s\n", done.Source.Snapshots,
		b.Segments, b.Labels, b.Bytes, n.Segments, n.Labels, n.Bytes, 100*(float64(n.Bytes)/float64(b.Bytes)-1), printable(f.out))
	return err
}
