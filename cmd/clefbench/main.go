// Command clefbench records production decisions, replays them through several
// backends, scores the backends and reports. Run clefbench --help for the commands,
// and clefbench demo for the whole pipe on embedded data.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/internal/term"
)

// app is everything a command touches, so that tests can run commands in process.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      term.LookupEnv
	quiet          bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv})
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, a *app) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	return a.report(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "clefbench",
		Short: "Flight recorder and replay bench for decision services",
		Long: `clefbench records the decisions of a service (rules, WAFs, models, remote decision
APIs), replays them through several backends, scores the backends in four
categories (accuracy, latency, cost, auditability) and reports which backend
should take the traffic, with intervals and with refusals where the evidence
does not reach.

Exit codes: ` + exitCodeHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print no progress and no notes")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(err, "run '"+cmd.CommandPath()+" --help'")
	})
	root.AddCommand(a.demoCommand(), a.recordCommand(), a.uploadCommand(), a.replayCommand(), a.scoreCommand(),
		a.reportCommand(), a.datasetsCommand(), a.rulesCommand(), a.modelCommand(), a.versionCommand())
	for _, c := range root.Commands() {
		argsAreUsage(c)
	}
	return root
}

// argsAreUsage makes cobra's complaints about arguments usage errors (exit 2); cobra
// itself returns plain errors.
func argsAreUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(err, "run '"+cmd.CommandPath()+" --help'")
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		argsAreUsage(sub)
	}
}

// interrupted reports whether an error comes from a signal.
func interrupted(err error) bool { return errors.Is(err, context.Canceled) }
