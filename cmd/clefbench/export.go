package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
)

type exportFlags struct {
	to, out   string
	scenarios []string
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export DATASET...",
		Short: "Print snapshots with every column, as JSON lines or CSV",
		Long: `Export prints one line a decision, with every column that was recorded and the label
if there is one. JSON lines have the fields that 'clefbench record' reads, so that what
was exported can be recorded again; CSV has the same columns flat, always all of them
and in one order. Cells are what was recorded, also those that start with = + - or @,
which a spreadsheet takes for formulas. docs/formats/export.md describes both.`,
		Example: `  clefbench datasets export snapshots | jq -c 'select(.status == "error")'
  clefbench datasets export snapshots --to csv -o decisions.csv
  clefbench datasets export snapshots --scenario fraud | clefbench record -o fraud-only`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.export(args, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", string(datasets.ExportJSONL), "jsonl or csv")
	fl.StringVarP(&f.out, "output", "o", "-", "file to write, or - for stdout")
	fl.StringArrayVar(&f.scenarios, "scenario", nil, "export only this scenario (repeat)")
	return cmd
}

func (a *app) export(paths []string, f *exportFlags) error {
	to, err := datasets.ParseExportFormat(f.to)
	if err != nil {
		return usage(err, "formats: jsonl, csv")
	}
	ds, err := datasets.Open(paths...)
	if err != nil {
		return err
	}
	defer ds.Close()
	a.warnings(ds)
	write := func(w io.Writer) error {
		_, err := ds.Export(w, to, datasets.Filter{Scenarios: f.scenarios})
		return err
	}
	if f.out == "-" {
		err = write(a.stdout)
	} else {
		err = outputError(writeAtomic(f.out, write))
	}
	if errors.Is(err, datasets.ErrEmpty) {
		return &failure{exitNoVerdict, err, "'clefbench datasets describe' lists the scenarios"}
	}
	if err == nil && to == datasets.ExportJSONL {
		a.recordHint(ds.Schema())
	}
	return err
}

// warnings prints what was found on opening a data set.
func (a *app) warnings(ds *datasets.Dataset) {
	if a.quiet {
		return
	}
	for _, w := range ds.Warnings() {
		fmt.Fprintf(a.stderr, "clefbench: warning: %s\n", printable(w.Text))
	}
}

// recordHint says what JSON lines cannot: which numbers are integers.
func (a *app) recordHint(schema *decision.Schema) {
	var flags []string
	for _, f := range schema.Fields() {
		if f.Type == decision.Int {
			flags = append(flags, "--attr '"+strings.ReplaceAll(f.Name, "'", `'\''`)+":int'")
		}
	}
	if len(flags) > 0 && !a.quiet {
		fmt.Fprintf(a.stderr, "note: to record these lines again with integers as integers: clefbench record %s\n", printable(strings.Join(flags, " ")))
	}
}
