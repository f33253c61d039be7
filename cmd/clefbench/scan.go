package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
)

func (a *app) scanCommand() *cobra.Command {
	var format string
	var ignore []string
	cmd := &cobra.Command{
		Use:   "scan DATASET...",
		Short: "Look for secrets that were recorded",
		Long: `Scan looks through every text of every row and label with the rules that the recorder
redacts by: API keys and tokens by their prefixes, JWTs, private keys, passwords beside
their names, Authorization and Cookie headers, card numbers, mail addresses. It prints how
many places there are by column and kind, and the first of them as the id of the decision
and a JSON pointer; it never prints a value. It exits with 0 where nothing was found, 1
where something was.`,
		Example: `  clefbench datasets scan snapshots
  clefbench datasets scan snapshots --ignore email -f json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return fail(exitUsage, "formats: text, json", "unknown format %q", format)
			}
			for _, k := range ignore {
				if !slices.Contains(datasets.ScanKinds(), k) {
					return fail(exitUsage, "kinds: "+strings.Join(datasets.ScanKinds(), ", "), "unknown kind %q", k)
				}
			}
			return a.scan(args, ignore, format == "json")
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "text", "text or json")
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "leave out this kind (repeat)")
	return cmd
}

func (a *app) scan(paths, ignore []string, asJSON bool) error {
	ds, err := datasets.Open(paths...)
	if err != nil {
		return err
	}
	defer ds.Close()
	a.warnings(ds)
	report, err := ds.Scan(ignore...)
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(a.stdout, report)
	} else {
		err = a.scanText(report)
	}
	if err == nil && report.Places > 0 {
		err = fail(exitFailed, "capture lists and redaction keep secrets out; 'clefbench datasets export' and 'record' write a data set again without them, and without its labels",
			"%d places look like secrets", report.Places)
	}
	return err
}

func (a *app) scanText(r *datasets.ScanReport) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %d\n", f.Column, f.Kind, f.Places)
		for _, e := range f.Examples {
			b.WriteString(strings.TrimRight("  "+e.ID.String()+" "+e.Pointer, " ") + "\n")
		}
	}
	fmt.Fprintf(&b, "%d snapshots, %d labels: %d places look like secrets\n", r.Snapshots, r.Labels, r.Places)
	_, err := io.WriteString(a.stdout, printable(b.String()))
	return err
}
