package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends/model/fit"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func (a *app) modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Fit fallback models to recorded decisions",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fit := &cobra.Command{
		Use:   "fit",
		Short: "Fit a model to the decisions of a data set",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fit.AddCommand(a.fitLogisticCommand())
	cmd.AddCommand(fit)
	return cmd
}

type fitFlags struct {
	dataset, scenario, target, out string
	missing, calibrate             string
	options                        fit.Options
}

func (a *app) fitLogisticCommand() *cobra.Command {
	f := fitFlags{options: fit.DefaultOptions()}
	o := &f.options
	cmd := &cobra.Command{
		Use:   "logistic --dataset DIR --target label|action -o FILE",
		Short: "Fit a regularised logistic regression",
		Long: `Logistic fits a multinomial or binary logistic regression with an L2 penalty to the rows of
one scenario, each weighted by 1/keep_prob, and writes a model file for -b model:FILE or a
strategy's fallback.model.

--target label learns the right action of the labels. --target action imitates what was
decided: such a model is no better than that was, and repeats its mistakes.

A quarter of the entities (or requests) is held out, by a hash that no option changes, and
only the printed figures see them. Numbers are standardised, an absent one counts as the
mean (and has an indicator, unless --missing mean); texts have a column for each of the
most frequent values. Too few rows of a class are refused, and so are columns that
separate the classes when there is no penalty.`,
		Example: `  clefbench model fit logistic --dataset snapshots --target label -o model.json
  clefbench model fit logistic --dataset snapshots --scenario fraud --target label --calibrate platt -o fraud/model.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.fitLogistic(cmd.Context(), &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dataset, "dataset", "", "data set to learn from (required)")
	fl.StringVar(&f.target, "target", "", "label: the right action; action: the action that was chosen (required)")
	fl.StringVarP(&f.out, "output", "o", "", "model file to write (required)")
	fl.StringVar(&f.scenario, "scenario", "", "scenario to learn; may be left out when there is one")
	fl.StringVar(&o.Name, "name", o.Name, "name of the model, which decisions give as their rule")
	fl.StringVar(&o.Version, "model-version", "", "version that goes into the file")
	fl.Float64Var(&o.L2, "l2", o.L2, "penalty on the squared weights of standardised columns; 0 means none")
	fl.StringVar(&f.missing, "missing", string(o.Missing), "what absent numbers are: indicator (mean and a column) or mean")
	fl.IntVar(&o.Values, "values", o.Values, "most frequent values of a text that get a column")
	fl.IntVar(&o.MinRows, "min-rows", o.MinRows, "least training rows of a class, and of a text's value")
	fl.StringVar(&f.calibrate, "calibrate", string(o.Calibrate), "correct probabilities on out-of-fold scores: none, temperature or platt")
	fl.IntVar(&o.Folds, "folds", o.Folds, "folds of the calibration")
	fl.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the folds; the hold-out has none")
	fl.StringArrayVar(&o.Attributes, "attribute", nil, "use only this attribute (repeat)")
	fl.StringArrayVar(&o.Exclude, "exclude", nil, "leave this attribute out (repeat)")
	return cmd
}

func (a *app) fitLogistic(ctx context.Context, f *fitFlags) (err error) {
	switch {
	case f.dataset == "" || f.out == "":
		return fail(exitUsage, "clefbench model fit logistic --dataset DIR --target label -o FILE", "fit needs --dataset DIR and -o FILE")
	case f.target != "label" && f.target != "action":
		return fail(exitUsage, "label learns what was right, action imitates what was chosen", "--target %q (want label or action)", f.target)
	}
	ds, err := datasets.Open(f.dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	rows, skipped, err := f.rows(ctx, ds)
	if err != nil {
		return err
	}
	f.options.Missing, f.options.Calibrate = fit.Missing(f.missing), fit.Calibration(f.calibrate)
	r, err := fit.Fit(rows, f.options)
	switch {
	case errors.Is(err, fit.ErrRefused):
		return fail(exitNoVerdict, "", "%w", err)
	case err != nil:
		return usage(err, "run 'clefbench model fit logistic --help'")
	}
	if err := writeFile(f.out, r.File); err != nil {
		return err
	}
	a.printFit(f, r, skipped)
	return nil
}

// rows reads the decisions of the scenario that have a target, and counts those that have
// none.
func (f *fitFlags) rows(ctx context.Context, ds *datasets.Dataset) ([]fit.Row, int, error) {
	if f.scenario == "" {
		info, err := ds.Info()
		if err != nil {
			return nil, 0, err
		}
		var names []string
		for _, s := range info.Scenarios {
			names = append(names, s.Name)
		}
		if len(names) != 1 {
			return nil, 0, fail(exitUsage, "choose one: "+strings.Join(names, ", "), "the data set has %d scenarios, and a model learns one: --scenario NAME", len(names))
		}
		f.scenario = names[0]
	}
	f.options.Scenario = f.scenario
	filter := datasets.Filter{Scenarios: []string{f.scenario}}
	truth, err := f.truth(ds, filter)
	if err != nil {
		return nil, 0, err
	}
	var rows []fit.Row
	skipped := 0
	texts := map[string]string{}
	for s, err := range ds.Snapshots(filter) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, 0, err
		}
		class := truth[s.Ref]
		if f.target == "action" {
			class = kept(texts, s.Action)
		}
		if class == "" {
			skipped++
			continue
		}
		rows = append(rows, fit.Row{Attrs: ownAttrs(texts, s.Attrs), Class: class, Weight: s.Weight(), Cluster: clusterOf(s)})
	}
	if len(rows) == 0 {
		return nil, 0, fail(exitNoVerdict, "--target action imitates what was chosen, which is another thing", "none of %d decisions of %s has a label", skipped, f.scenario)
	}
	return rows, skipped, nil
}

// truth is the right action of each labelled row: the label's action, or else the one of
// the highest utility, the first by name where several are.
func (f *fitFlags) truth(ds *datasets.Dataset, filter datasets.Filter) (map[snapshot.Ref]string, error) {
	out := map[snapshot.Ref]string{}
	if f.target == "action" {
		return out, nil
	}
	texts := map[string]string{}
	for l, err := range ds.Labels(filter) {
		if err != nil {
			return nil, err
		}
		action := l.Action
		if action == "" && len(l.Utilities) > 0 {
			action = slices.MaxFunc(l.Utilities, func(a, b snapshot.ActionUtility) int {
				return cmp.Or(cmp.Compare(a.Utility, b.Utility), cmp.Compare(b.Action, a.Action))
			}).Action
		}
		if action != "" {
			ref := l.Ref
			ref.Segment = kept(texts, ref.Segment)
			out[ref] = kept(texts, action)
		}
	}
	return out, nil
}

// kept returns a copy of a text that outlives the row that it is of, one for all rows.
func kept(texts map[string]string, s string) string {
	if t, ok := texts[s]; ok {
		return t
	}
	s = strings.Clone(s)
	texts[s] = s
	return s
}

func ownAttrs(texts map[string]string, attrs decision.Attrs) decision.Attrs {
	values := slices.Clone(attrs.Values)
	for i, v := range values {
		if v.Type() == decision.String {
			values[i] = decision.StringValue(kept(texts, v.Str()))
		}
	}
	return decision.Attrs{Schema: attrs.Schema, Values: values}
}

// clusterOf is the entity, or else the request, or the row itself.
func clusterOf(s *snapshot.Snapshot) []byte {
	switch {
	case s.Entity.Set:
		return slices.Clone(s.Entity.V[:])
	case !s.RequestID.IsZero():
		return slices.Clone(s.RequestID[:])
	}
	return slices.Clone(s.ID[:])
}

func (a *app) printFit(f *fitFlags, r *fit.Result, skipped int) {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	m := &r.Metrics
	fmt.Fprintf(w, "%s: %d columns for %d classes, from %s rows of %s; %s held out\n", f.out, r.Columns, len(r.Classes), grouped(r.Train), f.scenario, grouped(r.Holdout))
	if f.target == "action" {
		fmt.Fprintln(w, "imitation: the target is the action that was chosen, right or wrong; accuracy is agreement with it")
	}
	if skipped > 0 {
		fmt.Fprintf(w, "%s rows without a %s were left out\n", grouped(skipped), f.target)
	}
	if len(r.Dropped) > 0 {
		fmt.Fprintf(w, "attributes that tell nothing: %s\n", strings.Join(r.Dropped, ", "))
	}
	fmt.Fprintln(w, "\nclass\ttraining\theld out")
	for _, c := range r.Classes {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Action, grouped(c.Train), grouped(c.Holdout))
	}
	fmt.Fprintf(w, "\non the hold-out\tmodel\twithout attributes\n")
	fmt.Fprintf(w, "accuracy\t%.4f\t%.4f (always %s)\n", m.Accuracy, m.Majority, m.MajorityClass)
	fmt.Fprintf(w, "log loss\t%.4f\t%.4f (training shares)\n", m.LogLoss, m.ShareLogLoss)
	fmt.Fprintf(w, "Brier score\t%.4f\t%.4f\n", m.Brier, m.ShareBrier)
	fmt.Fprintf(w, "calibration error\t%.4f\n", m.CalibrationError)
	fmt.Fprintln(w, "\nconfidence\trows\tmean\taccuracy")
	for i, b := range m.Reliability {
		if b.Rows > 0 {
			fmt.Fprintf(w, "%.1f to %.1f\t%s\t%.3f\t%.3f\n", float64(i)/fit.Bins, float64(i+1)/fit.Bins, grouped(b.Rows), b.Confidence, b.Accuracy)
		}
	}
	if r.Factor != 1 || r.Offset != 0 {
		fmt.Fprintf(w, "\ncalibrated on %d folds: logits times %.4f, offset %+.4f\n", f.options.Folds, r.Factor, r.Offset)
	}
	w.Flush()
	if !a.quiet && (m.LogLoss >= m.ShareLogLoss || math.IsNaN(m.LogLoss)) {
		fmt.Fprintln(a.stderr, "clefbench: the model tells nothing: on the hold-out its probabilities are no better than the training shares")
	}
}
