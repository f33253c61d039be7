package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/internal/document"
)

type fmtFlags struct{ write, check bool }

func (a *app) rulesFmtCommand() *cobra.Command {
	var f fmtFlags
	cmd := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Format rules, strategy, matrix and model files in YAML",
		Long: `Fmt prints each file in the one canonical form: two blanks a level, lists below their
field, one blank within braces and before comments. Comments, order, quotes, line breaks
and every value stay. With -w it rewrites the files instead, and names those that it
changed. With --check it names the files that would change, and exits 1 if there is one.

A file with errors is refused (exit 2), as are forms that it does not know, such as
"? key"; no file is written then. JSON is left as it is.`,
		Example: `  clefbench rules fmt edge.yaml
  clefbench rules fmt -w backends/*/*.yaml
  clefbench rules fmt --check backends/*/*.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.write && f.check {
				return fail(exitUsage, "", "-w writes, --check does not: give one of them")
			}
			return a.rulesFmt(args, &f)
		},
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "rewrite the files")
	cmd.Flags().BoolVar(&f.check, "check", false, "name the files that would change, and exit 1 if there is one")
	return cmd
}

// formatted is a file before and after.
type formatted struct {
	name          string
	before, after []byte
}

func (a *app) rulesFmt(names []string, f *fmtFlags) error {
	var files []formatted
	var refused document.Problems
	for _, name := range names {
		if name == "-" && f.write {
			return fail(exitUsage, "", "-w cannot write stdin")
		}
		data, err := a.readInput(name)
		if err != nil {
			return err
		}
		after, err := a.format(name, data)
		var problems document.Problems
		switch {
		case errors.As(err, &problems):
			refused = append(refused, problems...)
		case err != nil:
			return err
		}
		files = append(files, formatted{name, data, after})
	}
	if len(refused) > 0 {
		return usage(refused, "'clefbench rules check' lists every problem")
	}
	changed := 0
	for _, x := range files {
		differs := !bytes.Equal(x.before, x.after)
		if differs {
			changed++
		}
		if err := a.emit(x, differs, f); err != nil {
			return err
		}
	}
	if f.check && changed > 0 {
		return fail(exitFailed, "clefbench rules fmt -w FILE...", "%d of %d files are not formatted", changed, len(files))
	}
	return nil
}

// format returns the file formatted, or as it is when it is JSON.
func (a *app) format(name string, data []byte) ([]byte, error) {
	if _, problems := checkFile(name, data, nil); problems.Errors() > 0 {
		return nil, problems
	}
	after, err := document.Format(name, data)
	if errors.Is(err, document.ErrJSON) {
		if !a.quiet {
			fmt.Fprintf(a.stderr, "%s: %v\n", name, err)
		}
		return data, nil
	}
	return after, err
}

func (a *app) emit(x formatted, differs bool, f *fmtFlags) error {
	switch {
	case !f.write && !f.check:
		_, err := a.stdout.Write(x.after)
		return err
	case !differs:
		return nil
	case f.write:
		if err := outputError(rewriteFile(x.name, x.after)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(a.stdout, x.name)
	return err
}

// rewriteFile replaces a file in one step and keeps who may read it.
func rewriteFile(name string, data []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if err := writeFile(name, data); err != nil {
		return err
	}
	return os.Chmod(name, info.Mode().Perm())
}
