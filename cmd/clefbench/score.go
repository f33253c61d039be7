package main

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/datasets/runs"
	"github.com/clefbench/clefbench/reports"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// scoreFlags choose how a run is scored.
type scoreFlags struct {
	profile   string
	prices    string
	scenarios []string
}

func (f *scoreFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.profile, "profile", "", "preset name or profile file (default: the data set's preset)")
	fl.StringVar(&f.prices, "prices", "", "price book file; without one, cost is not scored")
	fl.StringArrayVar(&f.scenarios, "scenario", nil, "score only this scenario (repeat)")
}

func (a *app) scoreCommand() *cobra.Command {
	var f scoreFlags
	var out string
	cmd := &cobra.Command{
		Use:   "score RUN",
		Short: "Score a run and print the scorecard as JSON",
		Long: `Score computes the four categories and the total of every backend of a run, over the
run and by scenario, with intervals, paired comparisons and refusals, and prints the
scorecard as JSON: the contract that 'score verify' recomputes.`,
		Example: `  clefbench score run --prices prices.yaml -o report.json
  clefbench score verify report.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			card, err := scoreRun(args[0], &f)
			if err != nil {
				return err
			}
			return a.output(out, reports.FormatJSON, card, reports.Options{})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "-", "file to write, or - for stdout")
	cmd.AddCommand(a.scoreVerifyCommand())
	return cmd
}

// scoreRun reads a run directory and scores it.
func scoreRun(dir string, f *scoreFlags) (*scoring.Scorecard, error) {
	run, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	profile, err := f.load(run)
	if err != nil {
		return nil, err
	}
	return score(run, f.scenarios, profile)
}

// score scores a run, all of it or some scenarios. What was found wrong with the data
// set travels with the numbers.
func score(run *runs.Run, scenarios []string, profile *scoring.Profile) (*scoring.Scorecard, error) {
	card, err := scoring.Score(scoreInput(run, scenarios), profile)
	if err == nil {
		card.Warnings = append(card.Warnings, run.Manifest().Dataset.Warnings...)
	}
	return card, err
}

// scoreInput hands a run to scoring, all of it or some scenarios.
func scoreInput(run *runs.Run, scenarios []string) scoring.Input {
	m := run.Manifest()
	in := scoring.Input{Dataset: m.Dataset.DatasetInfo, Run: run.Info(),
		Rows:  only(run.Rows(), scenarios, scenarioOf),
		Audit: only(run.Audit(), scenarios, outcomeScenario),
		Cold:  only(run.Cold(), scenarios, outcomeScenario)}
	for _, l := range run.Lanes() {
		in.Lanes = append(in.Lanes, scoring.Lane{Name: l.Name, Kind: l.Kind})
	}
	return in
}

// only passes the elements of the named scenarios on; of all when none is named.
func only[T any](seq iter.Seq2[T, error], scenarios []string, of func(T) string) iter.Seq2[T, error] {
	if len(scenarios) == 0 {
		return seq
	}
	return func(yield func(T, error) bool) {
		for x, err := range seq {
			if (err != nil || slices.Contains(scenarios, of(x))) && !yield(x, err) {
				return
			}
		}
	}
}

func outcomeScenario(o *snapshot.Outcome) string { return o.Scenario }

// scenarioOf is that of any lane: they are about the same snapshot.
func scenarioOf(r *scoring.Row) string {
	for _, o := range r.Outcomes {
		if o != nil {
			return o.Scenario
		}
	}
	return ""
}

// load gives the profile: a preset or a file, with the tasks of the data set and the
// price book.
func (f *scoreFlags) load(run *runs.Run) (*scoring.Profile, error) {
	name := f.profile
	if name == "" {
		name = run.Manifest().Dataset.Preset
	}
	profile, err := loadProfile(name)
	if err != nil {
		return nil, err
	}
	profile.AddTasks(run.Manifest().Dataset.Tasks)
	if f.prices != "" {
		data, err := os.ReadFile(f.prices)
		if err != nil {
			return nil, usage(err, "")
		}
		if profile.Prices, err = scoring.ParsePrices(f.prices, data); err != nil {
			return nil, err
		}
	}
	return profile, nil
}

// loadProfile reads a profile file when there is one of that name, else a preset.
func loadProfile(name string) (*scoring.Profile, error) {
	if name == "" {
		name = "default"
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && filepath.Ext(name) == "" {
		p, err := scoring.Preset(name)
		if err != nil {
			return nil, usage(err, "")
		}
		return p, nil
	}
	if err != nil {
		return nil, usage(err, "")
	}
	return scoring.ParseProfile(name, data)
}

func (a *app) scoreVerifyCommand() *cobra.Command {
	var runDir string
	cmd := &cobra.Command{
		Use:   "verify REPORT.json",
		Short: "Recompute every number of a published report",
		Long: `Verify finds the run that the report names (beside the report, or --run), checks its
digest, scores it again with the report's own profile and compares every number.
Without the run only the arithmetic is checked, and the exit code is 5.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.verifyReport(args[0], runDir) },
	}
	cmd.Flags().StringVar(&runDir, "run", "", "the run directory, when it has moved")
	return cmd
}

func (a *app) verifyReport(name, runDir string) error {
	f, err := os.Open(name)
	if err != nil {
		return usage(err, "")
	}
	defer f.Close()
	card, err := reports.ReadJSON(f)
	if err != nil {
		return fail(exitData, "", "%s: %w", name, err)
	}
	if wrong := scoring.Recompute(card); wrong != nil {
		return fail(exitFailed, "", "%s: the arithmetic does not hold: %w", name, wrong)
	}
	run, err := findRun(name, runDir, card)
	if err != nil {
		return err
	}
	if run == nil {
		return fail(exitNoVerdict, "name it with --run DIR", "%s: the arithmetic holds, but the run %s is not here", name, card.Run.Path)
	}
	if got := run.Digest(); got != card.Run.Digest {
		return fail(exitFailed, "", "%s: the run has digest %s, the report names %s", name, got, card.Run.Digest)
	}
	again, err := score(run, card.ScenarioNames(), card.Profile)
	if err != nil {
		return err
	}
	if diff := scoring.Diff(card, again); len(diff) > 0 {
		return fail(exitFailed, "", "%s: %d numbers differ, first %s", name, len(diff), diff[0])
	}
	fmt.Fprintf(a.stdout, "%s: every number recomputed from the run, digest %s\n", name, card.Run.Digest)
	return nil
}

// findRun opens the run that a report names: --run, else its path as it stands, else
// beside the report. None of them is nil without an error.
func findRun(report, runDir string, card *scoring.Scorecard) (*runs.Run, error) {
	places := []string{card.Run.Path, filepath.Join(filepath.Dir(report), card.Run.Path), filepath.Join(filepath.Dir(report), filepath.Base(card.Run.Path))}
	if runDir != "" {
		places = []string{runDir}
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return runs.Open(p)
		}
	}
	if runDir != "" {
		return nil, fail(exitUsage, "", "no run at %s", runDir)
	}
	return nil, nil
}
