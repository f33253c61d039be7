package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func (a *app) datasetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "datasets",
		Short: "List, describe, verify, export, thin out and compact data sets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.datasetCommand("list [DIR]", "List the data sets below a directory", cobra.MaximumNArgs(1), a.listDatasets),
		a.datasetCommand("describe DATASET...", "Describe a data set: counts, scenarios, labels, ledger", cobra.MinimumNArgs(1), a.describeDataset),
		a.verifyCommand(),
		a.checkpointCommand(),
		a.repairCommand(),
		a.exportCommand(),
		a.scanCommand(),
		a.retainCommand(),
		a.compactCommand(),
	)
	return cmd
}

func (a *app) repairCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "repair DIR...",
		Short: "Seal segments that killed recordings left open",
		Long: `Repair keeps every whole batch of a segment that was left open, cuts off the rest and
seals it. Everything that was acknowledged is in whole batches. Segments of recordings
that still run are left alone.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range args {
				done, err := arrowfile.RecoverDir(dir)
				for _, r := range done {
					fmt.Fprintf(a.stdout, "%s: sealed with %d rows in %d batches, %d bytes cut\n", r.Path, r.Rows, r.Batches, r.Cut)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) datasetCommand(use, short string, args cobra.PositionalArgs, do func(args []string, asJSON bool) error) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return fail(exitUsage, "formats: text, json", "unknown format %q", format)
			}
			return do(args, format == "json")
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "text", "text or json")
	return cmd
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (a *app) listDatasets(args []string, asJSON bool) error {
	root := "."
	if len(args) == 1 {
		root = args[0]
	}
	list, err := datasets.List(root)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	for _, d := range list {
		fmt.Fprintf(a.stdout, "%s\t%d segments\t%d bytes\n", d.Path, d.Segments, d.Bytes)
	}
	return nil
}

func (a *app) describeDataset(args []string, asJSON bool) error {
	info, err := datasets.Describe(args...)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, info)
	}
	return a.describe(info)
}

// describe prints what a person asks first: how much, of what, from when, and whether
// it is all there.
func (a *app) describe(info *datasets.Info) error {
	var b strings.Builder
	if info.Name != "" {
		fmt.Fprintf(&b, "name        %s\n", info.Name)
	}
	fmt.Fprintf(&b, "snapshots   %d in %d requests, %d labelled\n", info.Snapshots, info.Requests, info.Labelled)
	fmt.Fprintf(&b, "time        %s to %s\n", info.From.Format(time.RFC3339), info.To.Format(time.RFC3339))
	fmt.Fprintf(&b, "ledger      offered %d = written %d + sampled out %d + dropped %d\n",
		info.Ledger.Offered, info.Ledger.Written, info.Ledger.SampledOut, info.Ledger.DroppedTotal())
	if q := info.Ledger.Requests; q != nil {
		fmt.Fprintf(&b, "requests    offered %d = written %d + sampled out %d + dropped %d\n", q.Offered, q.Written, q.SampledOut, q.DroppedTotal())
	}
	fmt.Fprintf(&b, "digest      %s\n", info.Digest)
	fmt.Fprintf(&b, "captured    under %d capture lists\n", info.CaptureLists)
	for _, s := range info.Scenarios {
		fmt.Fprintf(&b, "scenario    %s: %d snapshots, %d labelled, actions %s\n", s.Name, s.Snapshots, s.Labelled, countsOf(s.Actions))
	}
	for _, s := range info.Strategies {
		fmt.Fprintf(&b, "decided by  %s %s: %d snapshots\n", cmp.Or(s.Backend, "(not recorded)"), s.Version, s.Snapshots)
	}
	for _, at := range info.Attributes {
		fmt.Fprintf(&b, "attribute   %s %s: %d values\n", at.Name, at.Type, at.Values)
	}
	if len(info.EntityKeys) > 0 {
		fmt.Fprintf(&b, "entity key  %s\n", strings.Join(info.EntityKeys, ", "))
	}
	if len(info.Redaction) > 0 {
		fmt.Fprintf(&b, "redaction   %s\n", strings.Join(info.Redaction, ", "))
	}
	for _, s := range info.Segments {
		fmt.Fprintf(&b, "segment     %s: %d rows\n", s.Path, s.Rows)
	}
	for _, w := range info.Warnings {
		fmt.Fprintf(&b, "warning     %s\n", w.Text)
	}
	_, err := io.WriteString(a.stdout, printable(b.String()))
	return err
}

// printable shows control characters, which names may hold, as escapes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// maxShown bounds how many labels describe prints; JSON has all.
const maxShown = 20

func countsOf(m map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(parts) == maxShown {
			parts = append(parts, fmt.Sprintf("and %d more", len(m)-maxShown))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(name, "\n", "\uFFFD"), m[name]))
	}
	return strings.Join(parts, ", ")
}
