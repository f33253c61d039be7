package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

type diffFlags struct {
	dataset   string
	scenarios []string
	params    bool
	exitCode  bool
	format    string
}

func (a *app) rulesDiffCommand() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW --dataset DIR",
		Short: "Show which recorded decisions two rules or strategy files decide differently",
		Long: `Diff asks both files about every recorded decision of the scenarios that both decide, and
prints the changes grouped by action and rule on both sides, the most frequent first.
Shares are weighted by the keep probability, so they are of what was offered.`,
		Example: `  clefbench rules diff edge.yaml edge-v2.yaml --dataset snapshots
  clefbench rules diff --exit-code edge.yaml edge-v2.yaml --dataset snapshots -f json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rulesDiff(cmd.Context(), args[0], args[1], &f) },
	}
	cmd.Flags().StringVar(&f.dataset, "dataset", "", "data set whose decisions are compared (required)")
	cmd.Flags().StringArrayVar(&f.scenarios, "scenario", nil, "compare only this scenario (repeat)")
	cmd.Flags().BoolVar(&f.params, "params", false, "another parameter is a change, too")
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "exit with 1 when a decision changes")
	cmd.Flags().StringVarP(&f.format, "format", "f", "text", "text or json")
	return cmd
}

func (a *app) rulesDiff(ctx context.Context, oldName, newName string, f *diffFlags) (err error) {
	switch {
	case f.dataset == "":
		return fail(exitUsage, "clefbench rules diff OLD NEW --dataset DIR", "diff needs --dataset DIR")
	case f.format != "text" && f.format != "json":
		return fail(exitUsage, "", "format %q (want text or json)", f.format)
	}
	ds, err := datasets.Open(f.dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	var sides [2]decision.Backend
	for i, name := range []string{oldName, newName} {
		if sides[i], err = a.openFile(ctx, name, ds.Schema()); err != nil {
			return err
		}
		defer sides[i].Close(ctx)
	}
	d := &difference{Old: oldName, New: newName, params: f.params, groups: map[change]*changeGroup{}}
	if common, ok := commonScenarios(f.scenarios, sides); ok {
		if err := d.compare(ctx, ds, sides, common); err != nil {
			return err
		}
	}
	if d.Decisions == 0 {
		return fail(exitNoVerdict, "clefbench datasets describe "+f.dataset, "the data set has no decision that both files decide")
	}
	if err := a.printDiff(d, f.format); err != nil {
		return err
	}
	if f.exitCode && d.Changed > 0 {
		return fail(exitFailed, "", "%s of %s decisions change", grouped(d.Changed), grouped(d.Decisions))
	}
	return nil
}

// openFile opens a rules or strategy file, told by its content.
func (a *app) openFile(ctx context.Context, name string, schema *decision.Schema) (decision.Backend, error) {
	data, err := a.readInput(name)
	if err != nil {
		return nil, err
	}
	kind, problems := checkFile(name, data, schema)
	if problems.Errors() > 0 {
		return nil, problems
	}
	if kind != "rules" && kind != "strategy" {
		return nil, fail(exitUsage, "diff compares rules and strategy files", "%s is a %s file", name, kind)
	}
	return kinds()[kind].Open(ctx, backends.Source{Name: name, Path: name, Data: data, Schema: schema})
}

// commonScenarios selects what both sides decide; false when that is nothing.
func commonScenarios(asked []string, sides [2]decision.Backend) (datasets.Filter, bool) {
	out := asked
	for _, b := range sides {
		list := b.Info().Scenarios
		switch {
		case len(list) == 0:
		case len(out) == 0:
			out = list
		default:
			out = slices.DeleteFunc(slices.Clone(out), func(s string) bool { return !slices.Contains(list, s) })
			if len(out) == 0 {
				return datasets.Filter{}, false
			}
		}
	}
	return datasets.Filter{Scenarios: out}, true
}

// change is what happened to a decision: status or action, and the rule, on both sides.
type change struct {
	From    string `json:"from"`
	To      string `json:"to"`
	OldRule string `json:"old_rule"`
	NewRule string `json:"new_rule"`
}

// changeGroup is the decisions with one change.
type changeGroup struct {
	change
	Decisions int     `json:"decisions"`
	Weight    float64 `json:"weight"`
	// Example is the id of the first one.
	Example decision.ID `json:"example"`
}

// difference is the comparison as it is printed.
type difference struct {
	Old           string         `json:"old"`
	New           string         `json:"new"`
	Decisions     int            `json:"decisions"`
	Weight        float64        `json:"weight"`
	Changed       int            `json:"changed"`
	ChangedWeight float64        `json:"changed_weight"`
	Changes       []*changeGroup `json:"changes"`

	params bool
	groups map[change]*changeGroup
}

// compare decides row by row, or all rows at once where both sides can.
func (d *difference) compare(ctx context.Context, ds *datasets.Dataset, sides [2]decision.Backend, f datasets.Filter) error {
	oldBatch, ok := sides[0].(decision.Batcher)
	newBatch, ok2 := sides[1].(decision.Batcher)
	if ok && ok2 && !d.params {
		return d.compareBatch(ctx, ds, oldBatch, newBatch, f)
	}
	var req decision.Request
	var out [2]decision.Response
	for s, err := range ds.Snapshots(f) {
		if err != nil {
			return err
		}
		snapshot.Request([]*snapshot.Snapshot{s}, &req)
		for i, b := range sides {
			if err := b.Decide(ctx, &req, &out[i]); err != nil {
				return err
			}
			out[i].Check(&req)
		}
		d.add(s.ID, s.Weight(), out[0].Decisions[0], out[1].Decisions[0])
	}
	d.sort()
	return ctx.Err()
}

func (d *difference) compareBatch(ctx context.Context, ds *datasets.Dataset, before, after decision.Batcher, f datasets.Filter) error {
	in, weights, ids, err := batchOf(ds, f)
	if err != nil {
		return err
	}
	var a, b decision.Answers
	if err := errors.Join(before.DecideBatch(ctx, in, &a), after.DecideBatch(ctx, in, &b)); err != nil {
		return err
	}
	for i, w := range weights {
		d.add(ids[i], w, a.At(i), b.At(i))
	}
	d.sort()
	return nil
}

func (d *difference) add(id decision.ID, weight float64, before, after decision.Decision) {
	d.Decisions++
	d.Weight += weight
	from, to := outcomeName(before), outcomeName(after)
	if from == to && (!d.params || before.Params == after.Params) {
		return
	}
	if from == to {
		from, to = from+before.Params, to+after.Params
	}
	d.Changed++
	d.ChangedWeight += weight
	c := change{from, to, before.Reason.Rule, after.Reason.Rule}
	g := d.groups[c]
	if g == nil {
		g = &changeGroup{change: c, Example: id}
		d.groups[c], d.Changes = g, append(d.Changes, g)
	}
	g.Decisions++
	g.Weight += weight
}

// outcomeName is the action, or the status of a decision without one.
func outcomeName(d decision.Decision) string {
	if d.Action != "" {
		return d.Action
	}
	return "(" + d.Status.String() + ")"
}

func (d *difference) sort() {
	slices.SortStableFunc(d.Changes, func(a, b *changeGroup) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

func (a *app) printDiff(d *difference, format string) error {
	if format == "json" {
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	fmt.Fprintf(a.stdout, "%s of %s decisions change: %s of what was offered\n",
		grouped(d.Changed), grouped(d.Decisions), percent(d.ChangedWeight, d.Weight))
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, g := range d.Changes {
		fmt.Fprintf(w, "    %s\t%s\t%s -> %s\t%s -> %s\t%s\n", grouped(g.Decisions), percent(g.Weight, d.Weight), g.From, g.To,
			cmp.Or(g.OldRule, "no rule"), cmp.Or(g.NewRule, "no rule"), g.Example)
	}
	return w.Flush()
}
