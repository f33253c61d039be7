package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/datasets/runs"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/term"
	"github.com/clefbench/clefbench/replay"
	"github.com/clefbench/clefbench/snapshot"
)

type replayFlags struct {
	backends  []string
	out       string
	scenarios []string
	plan      replay.Plan
}

func (a *app) replayCommand() *cobra.Command {
	f := replayFlags{plan: replay.DefaultPlan()}
	cmd := &cobra.Command{
		Use:   "replay DATASET... -b BACKEND [-b BACKEND...] -o RUN",
		Short: "Replay recorded decisions through backends",
		Long: `Replay asks every backend about the same recorded decisions, in interleaved blocks
whose order is shuffled under --seed, and writes what they answered into a run
directory for 'clefbench score' and 'clefbench report'.

A backend is [NAME=]KIND:TARGET[?option=value&...]. Kinds: ` + kindNames() + `.
TARGET is a file, a directory DIR/<scenario>/<file>, or a URL.`,
		Example: `  clefbench replay snapshots -b recorded -b rules:edge.yaml -b flash:edge.cfb -o run
  clefbench replay snapshots -b v1=rules:edge.yaml -b v2=rules:edge-v2.yaml -o run
  clefbench replay snapshots -b decide:http://127.0.0.1:8080 --scenario fraud -o run`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd.Context(), args, &f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVarP(&f.backends, "backend", "b", nil, "backend to replay through, as [NAME=]KIND:TARGET (repeat)")
	fl.StringVarP(&f.out, "output", "o", "", "run directory to write (required)")
	fl.StringArrayVar(&f.scenarios, "scenario", nil, "replay only this scenario (repeat)")
	fl.Uint64Var(&f.plan.Seed, "seed", f.plan.Seed, "seed of the order, the sample and the backends")
	fl.DurationVar(&f.plan.Timeout, "timeout", f.plan.Timeout, "a later answer is a timeout; 0 means none")
	fl.IntVar(&f.plan.Warmup, "warmup", f.plan.Warmup, "calls that are not kept, a backend and scenario")
	fl.IntVar(&f.plan.Block, "block", f.plan.Block, "requests asked to one backend before the next")
	fl.IntVar(&f.plan.Audit, "audit", f.plan.Audit, "requests a scenario in the audit sample; 0 means none")
	fl.IntVar(&f.plan.Repeats, "repeats", f.plan.Repeats, "how often each of the audit sample is asked again")
	return cmd
}

// replay opens the backends before the data set's rows are read.
func (a *app) replay(ctx context.Context, patterns []string, f *replayFlags) (err error) {
	switch {
	case f.out == "":
		return fail(exitUsage, "", "replay needs -o RUN")
	case len(f.backends) == 0:
		return fail(exitUsage, "for example -b recorded -b rules:FILE.yaml", "replay needs a backend: -b BACKEND")
	}
	specs, err := parseSpecs(f.backends)
	if err != nil {
		return err
	}
	if err := checkTargets(specs); err != nil {
		return err
	}
	ds, err := datasets.Open(patterns...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	lanes, closeLanes, err := openLanes(ctx, specs, ds.Schema())
	if err != nil {
		return err
	}
	defer closeLanes()
	return a.runReplay(ctx, ds, patterns, lanes, f)
}

func parseSpecs(texts []string) ([]backends.Spec, error) {
	var specs []backends.Spec
	seen := map[string]bool{}
	for _, text := range texts {
		s, err := backends.ParseSpec(text)
		if err != nil {
			return nil, usage(err, "a backend is [NAME=]KIND:TARGET, as in -b rules:edge.yaml")
		}
		if s.Kind == replay.RecordedKind && (s.Target != "" || len(s.Options) > 0) {
			return nil, fail(exitUsage, "", "recorded takes neither a target nor options: %q", text)
		}
		if seen[s.Name] {
			return nil, fail(exitUsage, "name one of them: -b other=...", "two backends are named %q", s.Name)
		}
		seen[s.Name] = true
		specs = append(specs, s)
	}
	return specs, nil
}

// checkTargets looks for the backends' files before the data set is read; their content
// is checked against the data set's attributes afterwards.
func checkTargets(specs []backends.Spec) error {
	for _, s := range specs {
		if kinds()[s.Kind].File == "" {
			continue
		}
		if _, err := os.Stat(s.Target); err != nil {
			return backendError(s, err)
		}
	}
	return nil
}

// openLanes opens and checks every backend; the function it returns closes them.
func openLanes(ctx context.Context, specs []backends.Spec, schema *decision.Schema) ([]replay.Lane, func(), error) {
	var lanes []replay.Lane
	closeAll := func() {
		for _, l := range lanes {
			if l.Backend != nil {
				l.Backend.Close(context.WithoutCancel(ctx))
			}
		}
	}
	for _, s := range specs {
		lane := replay.Lane{Name: s.Name}
		if s.Kind != replay.RecordedKind {
			b, err := openBackend(ctx, s, schema)
			if err != nil {
				closeAll()
				return nil, nil, err
			}
			lane.Backend = b
		}
		lanes = append(lanes, lane)
	}
	return lanes, closeAll, nil
}

func openBackend(ctx context.Context, s backends.Spec, schema *decision.Schema) (decision.Backend, error) {
	b, err := backends.Open(ctx, s, kinds(), schema)
	if err != nil {
		return nil, backendError(s, err)
	}
	if r, ok := b.(decision.Readier); ok {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := r.Ready(ctx); err != nil {
			b.Close(context.WithoutCancel(ctx))
			return nil, fail(exitBackend, "is the service up?", "backend %s is not ready: %w", s.Name, err)
		}
	}
	return b, nil
}

// runReplay writes the run: outcomes as they come, the labels, then the manifest.
func (a *app) runReplay(ctx context.Context, ds *datasets.Dataset, patterns []string, lanes []replay.Lane, f *replayFlags) error {
	info, err := ds.Info()
	if err != nil {
		return err
	}
	a.noteLeftovers(f.out)
	w, err := runs.Create(f.out, manifest(info, ds, patterns, lanes, f))
	if err != nil {
		return err
	}
	bar := a.progress("replay", "decisions", selected(info, f.scenarios)*int64(len(lanes)))
	n, err := writeOutcomes(ctx, w, ds, lanes, f, bar)
	bar.Stop()
	if err == nil && n.rows == 0 {
		err = fail(exitNoVerdict, "'clefbench datasets describe' lists the scenarios", "nothing selected: no decision of scenario %q", f.scenarios)
	}
	if err != nil && !interrupted(err) {
		return errors.Join(err, w.Abort())
	}
	for l, lerr := range ds.Labels(datasets.Filter{Scenarios: f.scenarios}) {
		if lerr == nil {
			lerr = w.AppendLabel(l)
		}
		if lerr != nil {
			return errors.Join(lerr, w.Abort())
		}
	}
	if cerr := w.Close(err != nil); cerr != nil {
		return cerr
	}
	if err != nil {
		return &failure{exitInterrupted, fmt.Errorf("interrupted: run %s is partial and says so", f.out), "'clefbench report' reads it"}
	}
	return n.silent(lanes)
}

// noteLeftovers names what killed replays left beside the run: they may be of one that
// still runs elsewhere, so it is for a person to remove them.
func (a *app) noteLeftovers(run string) {
	run = filepath.Clean(run)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(run), "."+filepath.Base(run)+"-*"))
	if err != nil || a.quiet {
		return
	}
	for _, name := range left {
		fmt.Fprintf(a.stderr, "note: %s is of a replay that still runs or was killed; remove it in the latter case\n", name)
	}
}

// tally counts measured outcomes and, by lane, answers.
type tally struct {
	rows     int64
	answered map[string]int64
	codes    map[string]map[string]int64 // by lane, why there was no answer
}

func (n *tally) add(o *snapshot.Outcome) {
	if o.Phase != snapshot.PhaseMeasured {
		return
	}
	n.rows++
	if o.Status.Answered() {
		n.answered[o.Backend]++
		return
	}
	if n.codes[o.Backend] == nil {
		n.codes[o.Backend] = map[string]int64{}
	}
	n.codes[o.Backend][cmp.Or(o.ErrorCode, o.Status.String())]++
}

// commonest is the code that a lane failed with most often.
func (n *tally) commonest(lane string) string {
	best := ""
	for code, k := range n.codes[lane] {
		if top := n.codes[lane][best]; k > top || k == top && code < best {
			best = code
		}
	}
	return best
}

// silent is exit 4: a backend that was well formed and answered nothing at all.
func (n *tally) silent(lanes []replay.Lane) error {
	for _, l := range lanes {
		if l.Backend != nil && n.answered[l.Name] == 0 {
			return fail(exitBackend, "the run is written; 'clefbench report' shows the error codes",
				"backend %s answered none of its decisions (%s)", l.Name, n.commonest(l.Name))
		}
	}
	return nil
}

// writeOutcomes runs the replay.
func writeOutcomes(ctx context.Context, w *runs.Writer, ds *datasets.Dataset, lanes []replay.Lane, f *replayFlags, bar *term.Progress) (*tally, error) {
	plan := f.plan
	plan.Artefacts = &artefacts{dataset: ds, rules: map[[32]byte]map[string]bool{}}
	shown := int64(0)
	plan.Progress = func(p replay.Progress) {
		bar.Add(p.Calls - shown)
		shown = p.Calls
	}
	n := &tally{answered: map[string]int64{}, codes: map[string]map[string]int64{}}
	for o, err := range replay.Run(ctx, ds.Snapshots(datasets.Filter{Scenarios: f.scenarios}), lanes, plan) {
		if err != nil {
			return n, err
		}
		if err := w.Append(o); err != nil {
			return n, err
		}
		n.add(o)
	}
	return n, nil
}

// progress shows a line on a terminal; elsewhere, and with --quiet, it is silent.
func (a *app) progress(label, unit string, total int64) *term.Progress {
	if a.quiet {
		return nil
	}
	return term.StartProgress(a.stderr, term.ProgressOptions{Label: label, Unit: unit, Total: total, Info: term.Detect(a.stderr, a.lookupEnv)})
}

// selected counts the requests of the scenarios, of all when none is named.
func selected(info *datasets.Info, scenarios []string) int64 {
	n := int64(0)
	for _, s := range info.Scenarios {
		if len(scenarios) == 0 || slices.Contains(scenarios, s.Name) {
			n += s.Requests
		}
	}
	return n
}

func manifest(info *datasets.Info, ds *datasets.Dataset, patterns []string, lanes []replay.Lane, f *replayFlags) runs.Manifest {
	version, _ := buildVersion()
	m := runs.Manifest{Tool: version, Started: time.Now().UTC(), Seed: f.plan.Seed, Machine: runs.ThisMachine(),
		Plan: runs.Plan{Scenarios: f.scenarios, Block: f.plan.Block, Warmup: f.plan.Warmup,
			Timeout: f.plan.Timeout, Audit: f.plan.Audit, Repeats: f.plan.Repeats},
		Dataset: runs.Dataset{Paths: patterns, DatasetInfo: info.DatasetInfo, Preset: ds.Preset(),
			Tasks: ds.Tasks(), Warnings: info.Warnings}}
	for i, l := range lanes {
		lane := runs.Lane{Name: l.Name, Kind: replay.RecordedKind}
		if l.Backend != nil {
			b := l.Backend.Info()
			lane.Kind, lane.Spec = b.Kind, filepath.ToSlash(f.backends[i])
			lane.Engine, lane.Strategy = b.Artefact.EngineVersion, b.Artefact.StrategyVersion
			if b.Artefact.StrategyDigest != [32]byte{} {
				lane.Digest = hex.EncodeToString(b.Artefact.StrategyDigest[:])
			}
		}
		m.Lanes = append(m.Lanes, lane)
	}
	return m
}
