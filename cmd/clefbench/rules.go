package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

func (a *app) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check, test and compile rules, strategies, matrices and models",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.rulesCheckCommand(), a.rulesTestCommand(), a.rulesCompileCommand())
	return cmd
}

func (a *app) rulesCheckCommand() *cobra.Command {
	var strict bool
	var dataset string
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check rules, strategy, matrix and model files and print every problem",
		Long: `Check tells the kind of a file by its top-level fields (rules + version, strategy,
dimensions + matrix, model + classes) and prints every problem with file:line:col and
a hint. Errors exit with 2, warnings with 0, unless --strict makes them 2.`,
		Example: `  clefbench rules check edge.yaml
  clefbench rules check --strict --dataset snapshots backends/*/*.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			schema, err := schemaOf(dataset)
			if err != nil {
				return err
			}
			return a.check(args, schema, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings fail, too")
	cmd.Flags().StringVar(&dataset, "dataset", "", "allow the attributes that this data set records")
	return cmd
}

func schemaOf(dataset string) (*decision.Schema, error) {
	if dataset == "" {
		return nil, nil
	}
	ds, err := datasets.Open(dataset)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	return ds.Schema(), nil
}

func (a *app) check(files []string, schema *decision.Schema, strict bool) error {
	errs, warns := 0, 0
	for _, name := range files {
		data, err := a.readInput(name)
		if err != nil {
			return err
		}
		kind, problems := checkFile(name, data, schema)
		problems.Sort()
		for _, p := range problems {
			fmt.Fprintf(a.stdout, "%s: %s: %s\n", p.Pos, severity(p), p.Message)
			if p.Hint != "" {
				fmt.Fprintf(a.stdout, "    hint: %s\n", p.Hint)
			}
		}
		e := problems.Errors()
		errs, warns = errs+e, warns+len(problems)-e
		if len(problems) == 0 {
			fmt.Fprintf(a.stdout, "%s: ok (%s)\n", name, kind)
		}
	}
	if errs > 0 || strict && warns > 0 {
		return fail(exitUsage, "", "%d errors, %d warnings", errs, warns)
	}
	return nil
}

func severity(p *document.Problem) string {
	if p.Severity == document.SevWarning {
		return "warning"
	}
	return "error"
}

// readInput reads a file, or stdin for "-".
func (a *app) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(a.stdin, document.MaxSize+1))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(err, "")
	}
	return data, nil
}

// same reports whether two names are of one file.
func same(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// kindOfFile tells what a file is by its top-level fields.
func kindOfFile(root *document.Node) string {
	if root == nil || !root.IsMap() {
		return ""
	}
	m := root.Map()
	has := func(key string) bool { return m.Get(key) != nil }
	switch {
	case has("strategy"):
		return "strategy"
	case has("dimensions") || has("matrix"):
		return "matrix"
	case has("classes") || has("model"):
		return "model"
	case has("rules"):
		return "rules"
	}
	return ""
}

func checkFile(name string, data []byte, schema *decision.Schema) (kind string, ps document.Problems) {
	_, root, err := document.Parse(name, data)
	if root == nil {
		errors.As(err, &ps)
		return "", ps
	}
	switch kind = kindOfFile(root); kind {
	case "rules":
		return kind, rules.Check(name, data, schema)
	case "strategy":
		return kind, strategy.Check(name, data, schema)
	case "matrix":
		return kind, flash.Check(name, data, schema)
	case "model":
		return kind, model.Check(name, data, schema)
	}
	return "", document.Problems{{Pos: root.Pos(),
		Message: "cannot tell what this file is",
		Hint:    "rules files have rules:, strategies have strategy:, matrices have dimensions and matrix, models have model and classes"}}
}

func (a *app) rulesCompileCommand() *cobra.Command {
	var config, out string
	cmd := &cobra.Command{
		Use:     "compile --config MATRIX.json -o TABLE.cfb",
		Short:   "Compile a matrix into a Clef-flash table of at most 64 KB",
		Example: "  clefbench rules compile --config matrix.json -o edge.cfb",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if config == "" || out == "" {
				return fail(exitUsage, "", "compile needs --config MATRIX.json and -o TABLE.cfb")
			}
			data, err := a.readInput(config)
			if err != nil {
				return err
			}
			table, err := flash.CompileMatrix(config, data)
			if err != nil {
				return err
			}
			if same(config, out) {
				return fail(exitUsage, "", "-o %s would replace the matrix itself", out)
			}
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
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "matrix file, or - for stdin")
	cmd.Flags().StringVarP(&out, "output", "o", "", "table to write, or - for stdout")
	return cmd
}
