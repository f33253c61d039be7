package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends/rules"
)

func (a *app) rulesTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE...",
		Short: "Run the tests that stand in rules files",
		Long: `Test runs the tests: of rules files and prints each one that fails with file:line:col.
Failures exit with 1. Rules that took part in no test are listed, and are no failure.`,
		Example: "  clefbench rules test backends/*/rules.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.rulesTest(args) },
	}
}

func (a *app) rulesTest(files []string) error {
	passed, failed := 0, 0
	for _, name := range files {
		data, err := a.readInput(name)
		if err != nil {
			return err
		}
		report, err := rules.Test(name, data)
		if err != nil {
			return usage(err, "clefbench rules check "+name)
		}
		for _, p := range report.Failed {
			fmt.Fprintf(a.stdout, "%s: %s\n", p.Pos, p.Message)
		}
		fmt.Fprintf(a.stdout, "%s: %d passed, %d failed\n", name, report.Passed, len(report.Failed))
		if len(report.Untested) > 0 {
			fmt.Fprintf(a.stdout, "    untested: %s\n", strings.Join(report.Untested, ", "))
		}
		passed, failed = passed+report.Passed, failed+len(report.Failed)
	}
	if failed > 0 {
		return fail(exitFailed, "", "%d of %d tests failed", failed, passed+failed)
	}
	return nil
}
