package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

type checkFlags struct {
	strict   bool
	overlaps bool
	dataset  string
	sample   string
	rules    string
	format   string
}

func (a *app) rulesCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check rules, strategy, matrix and model files and print every problem",
		Long: `Check tells the kind of a file by its top-level fields (rules + version, strategy,
dimensions + matrix, model + classes) and prints every problem with file:line:col and
a hint, and what a decision of a rules or strategy file evaluates at most. With -f json
it prints a JSON array of {file, line, column, severity, message, hint} instead.

Exit codes: 0 when no file has an error (warnings are no errors, unless --strict makes
them), 2 when one has or cannot be read, 3 when the data set or the sample cannot be read.

With --overlaps pairs of rules are listed that can both match and answer differently.
With --dataset the attributes that the data set records and the actions that it allows
are known, and a rules file is also run on its decisions: hits of each rule, rules that
never fire, the share that no rule decides, and why. With --sample a JSON object of
attributes ("-" is stdin) is decided by each rules, strategy or model file, and the
decision printed as JSON.`,
		Example: `  clefbench rules check edge.yaml
  clefbench rules check --strict --dataset snapshots backends/*/*.yaml
  clefbench rules check -f json edge.yaml | jq -r '.[].message'
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
			switch {
			case len(args) == 0:
				return fail(exitUsage, "clefbench rules check FILE...", "check needs a file")
			case f.format != "text" && f.format != "json":
				return fail(exitUsage, "text or json", "unknown format %q", f.format)
			case f.format == "json" && f.sample != "":
				return fail(exitUsage, "the decision on a sample is JSON already", "-f json is for findings, without a sample")
			}
			return a.check(cmd.Context(), args, &f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.strict, "strict", false, "warnings fail, too")
	fl.BoolVar(&f.overlaps, "overlaps", false, "list pairs of rules that can both match and answer differently")
	fl.StringVar(&f.dataset, "dataset", "", "allow the attributes that this data set records, and print what rules cover of it")
	fl.StringVar(&f.sample, "sample", "", "JSON object of attributes to decide, or - for stdin")
	fl.StringVar(&f.rules, "rules", "", "the file to check; the argument is then the sample")
	fl.StringVarP(&f.format, "format", "f", "text", "text, or json for a JSON array of findings")
	return cmd
}

// checker checks files one by one and sums up.
type checker struct {
	*app
	flags      *checkFlags
	ds         *datasets.Dataset // nil without --dataset
	schema     *decision.Schema
	candidates candidates
	sample     []byte
	findings   []finding
	errs       int
}

func (a *app) check(ctx context.Context, files []string, f *checkFlags) (err error) {
	c := &checker{app: a, flags: f}
	if f.dataset != "" {
		if c.ds, err = datasets.Open(f.dataset); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.ds.Close()) }()
		c.schema = c.ds.Schema()
		if c.candidates, err = candidatesOf(c.ds); err != nil {
			return err
		}
	}
	if f.sample != "" {
		if c.sample, err = a.readInput(f.sample); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := c.file(ctx, name); err != nil {
			return err
		}
	}
	if f.format == "json" {
		if err := printFindings(a.stdout, c.findings); err != nil {
			return err
		}
	}
	if warns := len(c.findings) - c.errs; c.errs > 0 || f.strict && warns > 0 {
		return fail(exitUsage, "", "%d errors, %d warnings", c.errs, warns)
	}
	return nil
}

func (c *checker) file(ctx context.Context, name string) error {
	data, err := c.readInput(name)
	if err != nil {
		return err
	}
	kind, problems := checkFile(name, data, c.schema)
	ok := problems.Errors() == 0
	if c.ds != nil && ok {
		more, err := c.notAllowed(kind, name, data)
		if err != nil {
			return err
		}
		problems = append(problems, more...)
	}
	if c.flags.overlaps && ok {
		more, err := overlaps(kind, name, data, c.schema)
		if err != nil {
			return err
		}
		problems = append(problems, more...)
	}
	problems.Sort()
	for _, p := range problems {
		c.findings = append(c.findings, findingOf(p))
	}
	c.errs += problems.Errors()
	if c.flags.format != "json" {
		c.printProblems(name, kind, problems, c.sample != nil)
	}
	if !ok {
		return nil
	}
	return c.outcome(ctx, kind, name, data)
}

// outcome prints what a file without errors does: its worst case, its coverage of the
// data set, its decision on the sample.
func (c *checker) outcome(ctx context.Context, kind, name string, data []byte) error {
	out := c.stdout
	if c.flags.format == "json" {
		out = c.stderr
	}
	if c.sample == nil && c.flags.format != "json" {
		if err := printCost(out, kind, name, data, c.schema); err != nil {
			return err
		}
	}
	if kind == "rules" && c.ds != nil {
		if err := c.coverage(ctx, out, name, data, c.ds); err != nil {
			return err
		}
	}
	if c.sample != nil {
		return c.decideSample(ctx, kind, name, data, c.schema, c.flags.sample, c.sample)
	}
	return nil
}

// printProblems prints what was found in a file; when stdout is for a decision, on stderr.
func (a *app) printProblems(name, kind string, problems document.Problems, sampled bool) {
	out := a.stdout
	if sampled {
		out = a.stderr
	}
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
