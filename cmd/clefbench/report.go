package main

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/internal/term"
	"github.com/clefbench/clefbench/reports"
	"github.com/clefbench/clefbench/scoring"
)

func (a *app) reportCommand() *cobra.Command {
	var f scoreFlags
	var format, out string
	var full bool
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Report a run as text, Markdown, HTML or JSON",
		Example: `  clefbench report run --prices prices.yaml
  clefbench report run -f html -o report.html
  clefbench report run -f json | jq .backends[].total`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			as, err := reportFormat(format, out)
			if err != nil {
				return err
			}
			card, err := scoreRun(args[0], &f)
			if err != nil {
				return err
			}
			return a.output(out, as, card, reports.Options{Brief: as == reports.FormatText && !full})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&format, "format", "f", "", "text, markdown, html or json (default: by the file's ending, else text)")
	cmd.Flags().BoolVar(&full, "full", false, "text: also counts, evidence and every pair, as the other formats have")
	cmd.Flags().StringVarP(&out, "output", "o", "-", "file to write, or - for stdout")
	return cmd
}

// reportFormat takes the format that is named, else that of the file's ending, else text.
func reportFormat(format, out string) (reports.Format, error) {
	switch {
	case format != "":
	case out != "-":
		format = out
	default:
		format = "text"
	}
	f, err := reports.ParseFormat(format)
	if err != nil {
		return "", usage(err, "formats: text, markdown, html, json")
	}
	return f, nil
}

// output writes a report to stdout, fitted to the terminal, or to a file.
func (a *app) output(name string, f reports.Format, card *scoring.Scorecard, o reports.Options) error {
	if name != "-" {
		return outputError(writeAtomic(name, func(w io.Writer) error { return reports.Write(w, f, card, o) }))
	}
	info := term.Detect(a.stdout, a.lookupEnv)
	o.Width, o.Color = info.Width, info.Color
	return reports.Write(a.stdout, f, card, o)
}

// outputError makes a place that cannot be written a mistake of the command line: the
// data are fine.
func outputError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		return usage(err, "where should -o go?")
	}
	return err
}
