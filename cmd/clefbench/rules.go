package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	cmd.AddCommand(a.rulesCheckCommand(), a.rulesTestCommand(), a.rulesDiffCommand(), a.rulesCompileCommand())
	return cmd
}

type checkFlags struct {
	strict  bool
	dataset string
	sample  string
	rules   string
}

func (a *app) rulesCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check rules, strategy, matrix and model files and print every problem",
		Long: `Check tells the kind of a file by its top-level fields (rules + version, strategy,
dimensions + matrix, model + classes) and prints every problem with file:line:col and
a hint. Errors exit with 2, warnings with 0, unless --strict makes them 2.

With --dataset the attributes that the data set records are known, and a rules file is
also run on its decisions: hits of each rule, rules that never fire, the share that no
rule decides, and why. With --sample a JSON object of attributes ("-" is stdin) is
decided by each rules, strategy or model file, and the decision printed as JSON.`,
		Example: `  clefbench rules check edge.yaml
  clefbench rules check --strict --dataset snapshots backends/*/*.yaml
  echo '{"headers":{"user-agent":"curl/8"},"metrics":{"load":0.9}}' | clefbench rules check --rules edge.yaml -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.rules != "" { // the short form: the file is --rules, the argument the sample
				if len(args) > 1 || len(args) == 1 && f.sample != "" {
					return fail(exitUsage, "clefbench rules check --rules FILE - < sample.json", "--rules takes one sample")
				}
				if len(args) == 1 {
					f.sample = args[0]
				}
				args = []string{f.rules}
			}
			if len(args) == 0 {
				return fail(exitUsage, "clefbench rules check FILE...", "check needs a file")
			}
			return a.check(cmd.Context(), args, &f)
		},
	}
	cmd.Flags().BoolVar(&f.strict, "strict", false, "warnings fail, too")
	cmd.Flags().StringVar(&f.dataset, "dataset", "", "allow the attributes that this data set records, and print what rules cover of it")
	cmd.Flags().StringVar(&f.sample, "sample", "", "JSON object of attributes to decide, or - for stdin")
	cmd.Flags().StringVar(&f.rules, "rules", "", "the file to check; the argument is then the sample")
	return cmd
}

func (a *app) check(ctx context.Context, files []string, f *checkFlags) (err error) {
	var ds *datasets.Dataset
	var schema *decision.Schema
	if f.dataset != "" {
		if ds, err = datasets.Open(f.dataset); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ds.Close()) }()
		schema = ds.Schema()
	}
	var sample []byte
	if f.sample != "" {
		if sample, err = a.readInput(f.sample); err != nil {
			return err
		}
	}
	errs, warns := 0, 0
	for _, name := range files {
		data, err := a.readInput(name)
		if err != nil {
			return err
		}
		kind, problems := checkFile(name, data, schema)
		a.printProblems(name, kind, problems, sample != nil)
		e := problems.Errors()
		errs, warns = errs+e, warns+len(problems)-e
		if e > 0 {
			continue
		}
		if kind == "rules" && ds != nil {
			if err := a.coverage(ctx, name, data, ds); err != nil {
				return err
			}
		}
		if sample != nil {
			if err := a.decideSample(ctx, kind, name, data, schema, f.sample, sample); err != nil {
				return err
			}
		}
	}
	if errs > 0 || f.strict && warns > 0 {
		return fail(exitUsage, "", "%d errors, %d warnings", errs, warns)
	}
	return nil
}

// printProblems prints what was found in a file; when stdout is for a decision, on stderr.
func (a *app) printProblems(name, kind string, problems document.Problems, sampled bool) {
	out := a.stdout
	if sampled {
		out = a.stderr
	}
	problems.Sort()
	for _, p := range problems {
		fmt.Fprintf(out, "%s: %s: %s\n", p.Pos, severity(p), p.Message)
		if p.Hint != "" {
			fmt.Fprintf(out, "    hint: %s\n", p.Hint)
		}
	}
	if len(problems) == 0 && !sampled {
		fmt.Fprintf(out, "%s: ok (%s)\n", name, kind)
	}
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
		return kind, checkModel(name, data, schema)
	}
	return "", document.Problems{{Pos: root.Pos(),
		Message: "cannot tell what this file is",
		Hint:    "rules files have rules:, strategies have strategy:, matrices have dimensions and matrix, models have model and classes"}}
}

// checkModel also gives the model its directory, for the file of its trees.
func checkModel(name string, data []byte, schema *decision.Schema) document.Problems {
	dir, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return model.Check(name, data, schema)
	}
	defer dir.Close()
	return model.CheckIn(dir.FS(), name, data, schema)
}
