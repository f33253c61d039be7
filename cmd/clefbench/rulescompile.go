package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

type compileFlags struct {
	config, out                 string
	from, dims, dataset, matrix string
}

func (a *app) rulesCompileCommand() *cobra.Command {
	var f compileFlags
	cmd := &cobra.Command{
		Use:   "compile --config MATRIX.json -o TABLE.cfb",
		Short: "Compile a matrix, or rules over some dimensions, into a Clef-flash table of at most 64 KB",
		Long: `Compile turns a matrix file into a Clef-flash table.

With --from and --dims the matrix is derived from a rules or strategy file: each cell of
the dimensions gets the action that the source takes most often for the recorded
decisions of --dataset that fall into it, or its answer to a made-up request where none
does. What the table then answers otherwise than its source is printed, by cell.`,
		Example: `  clefbench rules compile --config matrix.json -o edge.cfb
  clefbench rules compile --from rules.yaml --dims dims.json --dataset snapshots -o edge.cfb --matrix matrix.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.from != "" || f.dims != "" {
				return a.derive(cmd.Context(), &f)
			}
			return a.compileMatrix(&f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "matrix file, or - for stdin")
	fl.StringVarP(&f.out, "output", "o", "", "table to write, or - for stdout")
	fl.StringVar(&f.from, "from", "", "rules or strategy file to derive the matrix from")
	fl.StringVar(&f.dims, "dims", "", "dimensions file: a matrix file without actions and matrix")
	fl.StringVar(&f.dataset, "dataset", "", "recorded decisions that fill the cells and measure the differences")
	fl.StringVar(&f.matrix, "matrix", "", "also write the derived matrix file")
	return cmd
}

func (a *app) compileMatrix(f *compileFlags) error {
	if f.config == "" || f.out == "" {
		return fail(exitUsage, "", "compile needs --config MATRIX.json and -o TABLE.cfb")
	}
	data, err := a.readInput(f.config)
	if err != nil {
		return err
	}
	table, err := flash.CompileMatrix(f.config, data)
	if err != nil {
		return err
	}
	if same(f.config, f.out) {
		return fail(exitUsage, "", "-o %s would replace the matrix itself", f.out)
	}
	return a.writeTable(f.out, table)
}

func (a *app) writeTable(out string, table []byte) error {
	if out == "-" {
		_, err := a.stdout.Write(table)
		return err
	}
	if err := outputError(writeFile(out, table)); err != nil {
		return err
	}
	if !a.quiet {
		fmt.Fprintf(a.stderr, "%s: %d bytes\n", out, len(table))
	}
	return nil
}

// derive makes the matrix from a rules or strategy file.
func (a *app) derive(ctx context.Context, f *compileFlags) error {
	switch {
	case f.from == "" || f.dims == "" || f.out == "" || f.config != "":
		return fail(exitUsage, "clefbench rules compile --from rules.yaml --dims dims.json -o edge.cfb", "deriving needs --from, --dims and -o, and no --config")
	case f.out == "-":
		return fail(exitUsage, "", "the report goes to stdout: name a file with -o")
	case same(f.from, f.out) || same(f.dims, f.out) || f.matrix != "" && (same(f.matrix, f.from) || same(f.matrix, f.dims)):
		return fail(exitUsage, "", "an output would replace an input")
	}
	x, err := a.derivation(ctx, f)
	if err != nil {
		return err
	}
	table, err := flash.CompileMatrix(f.dims, x.Matrix)
	if err != nil {
		return err
	}
	if f.matrix != "" {
		if err := outputError(writeFile(f.matrix, x.Matrix)); err != nil {
			return err
		}
	}
	if err := a.writeTable(f.out, table); err != nil {
		return err
	}
	a.printDerivation(f, x)
	return nil
}

func (a *app) derivation(ctx context.Context, f *compileFlags) (x *flash.Derivation, err error) {
	var ds *datasets.Dataset
	var schema *decision.Schema
	if f.dataset != "" {
		if ds, err = datasets.Open(f.dataset); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, ds.Close()) }()
		schema = ds.Schema()
	}
	source, err := a.openFile(ctx, f.from, schema)
	if err != nil {
		return nil, err
	}
	defer source.Close(ctx)
	dims, err := a.readInput(f.dims)
	if err != nil {
		return nil, err
	}
	d, err := flash.NewDeriver(f.dims, dims, source)
	if err != nil {
		return nil, err
	}
	if ds != nil {
		if err := addAll(ctx, d, ds, source.Info().Scenarios); err != nil {
			return nil, err
		}
	}
	x, err = d.Finish(ctx)
	if errors.Is(err, flash.ErrNoAnswer) {
		return nil, usage(err, "")
	}
	return x, err
}

func addAll(ctx context.Context, d *flash.Deriver, ds *datasets.Dataset, scenarios []string) error {
	var req decision.Request
	for s, err := range ds.Snapshots(datasets.Filter{Scenarios: scenarios}) {
		if err != nil {
			return err
		}
		snapshot.Request([]*snapshot.Snapshot{s}, &req)
		req.ID = s.ID
		if err := d.Add(ctx, &req, s.Weight()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// maxDifferences bounds the list that is printed; the count above it is of all.
const maxDifferences = 20

func (a *app) printDerivation(f *compileFlags, x *flash.Derivation) {
	out := a.stdout
	fmt.Fprintf(out, "%s: %s cells of %s: %s from recorded decisions, %s from made-up requests, %s that no request reaches\n",
		f.out, grouped(x.Cells), f.from, grouped(x.Measured), grouped(x.Made), grouped(x.Unreached))
	if len(x.Unread) > 0 {
		fmt.Fprintf(out, "    the source also reads %s, which no dimension has\n", strings.Join(x.Unread, ", "))
	}
	if f.dataset == "" {
		fmt.Fprintln(out, "    differences are not measured: give --dataset DIR")
		return
	}
	rows, weight := 0, 0.0
	for _, d := range x.Differs {
		rows, weight = rows+d.Rows, weight+d.Weight
	}
	if rows == 0 {
		fmt.Fprintf(out, "    the table answers all %s recorded decisions as its source does\n", grouped(x.Rows))
		return
	}
	fmt.Fprintf(out, "    %s of %s recorded decisions are answered otherwise: %s of what was offered\n", grouped(rows), grouped(x.Rows), percent(weight, x.Weight))
	for i, d := range x.Differs {
		if i == maxDifferences {
			fmt.Fprintf(out, "    and %d more\n", len(x.Differs)-i)
			break
		}
		fmt.Fprintf(out, "    %s: %s by %s becomes %s in %s, as in %s\n", d.Cell, d.Source, d.Rule, d.Table, grouped(d.Rows), d.Example)
	}
}
