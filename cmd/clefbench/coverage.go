package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
)

// coverage prints what a rules file does on a data set's decisions of its scenarios.
func (a *app) coverage(ctx context.Context, out io.Writer, name string, data []byte, ds *datasets.Dataset) error {
	e, err := rules.Compile(name, data, ds.Schema())
	if err != nil {
		return err
	}
	in, weights, _, err := batchOf(ds, datasets.Filter{Scenarios: e.Info().Scenarios})
	if err != nil {
		return err
	}
	if in.Len() == 0 {
		fmt.Fprintf(out, "%s: the data set has no decision of its scenarios\n", name)
		return nil
	}
	c, err := e.Cover(ctx, in, weights)
	if err != nil {
		return err
	}
	printCoverage(out, name, c)
	return nil
}

// batchOf reads the attributes of the selected decisions, their weights and their ids.
func batchOf(ds *datasets.Dataset, f datasets.Filter) (in *decision.Batch, weights []float64, ids []decision.ID, err error) {
	in = decision.NewBatch(ds.Schema())
	for s, err := range ds.Snapshots(f) {
		if err != nil {
			return nil, nil, nil, err
		}
		if err := in.Append(s.Attrs.Values, s.Time); err != nil {
			return nil, nil, nil, fmt.Errorf("%s row %d: %w", s.Ref.Segment, s.Ref.Row, err)
		}
		if len(s.Features) > 0 {
			in.SetFeatures(s.FeatureSet, s.Features)
		}
		weights, ids = append(weights, s.Weight()), append(ids, s.ID)
	}
	return in, weights, ids, nil
}

func printCoverage(out io.Writer, name string, c *rules.Coverage) {
	fmt.Fprintf(out, "%s: coverage of %s recorded decisions", name, grouped(c.Rows))
	if c.Weight > float64(c.Rows)*(1+1e-9) {
		fmt.Fprintf(out, ", which stand for %s", grouped(int(c.Weight+0.5)))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var never []string
	for _, r := range c.Rules {
		switch {
		case !r.Decides:
		case r.Rows == 0:
			never = append(never, fmt.Sprintf("%s (%s)", r.Rule, r.Position))
		default:
			fmt.Fprintf(w, "    %s\t%s\t%s\n", r.Rule, grouped(r.Rows), percent(r.Weight, c.Weight))
		}
	}
	fmt.Fprintf(w, "    no rule\t%s\t%s\n", grouped(c.Uncovered.Rows), percent(c.Uncovered.Weight, c.Weight))
	w.Flush()
	for _, n := range never {
		fmt.Fprintf(out, "    never fires: %s\n", n)
	}
	printUncovered(out, c)
}

// printUncovered says why rows were left to the fallback.
func printUncovered(out io.Writer, c *rules.Coverage) {
	if c.Examined == 0 {
		return
	}
	of := "of those that no rule decides"
	if c.Examined < c.Uncovered.Rows {
		of = fmt.Sprintf("of the first %s that no rule decides", grouped(c.Examined))
	}
	for _, m := range c.Missing {
		fmt.Fprintf(out, "    missing: %s, in %s %s\n", m.Name, percent(float64(m.Rows), float64(c.Examined)), of)
	}
	for _, n := range c.Near {
		fmt.Fprintf(out, "    near miss: %s (%s), for want of %s alone, in %s %s\n",
			n.Rule, n.Position, n.Condition, percent(float64(n.Rows), float64(c.Examined)), of)
	}
	for _, n := range c.Common {
		fmt.Fprintf(out, "    often: %s is %s, in %s %s\n", n.Name, strconv.Quote(n.Text), percent(float64(n.Rows), float64(c.Examined)), of)
	}
}

// grouped prints a count with commas.
func grouped(n int) string {
	s := strconv.Itoa(n)
	var parts []string
	for len(s) > 3 {
		parts = append(parts, s[len(s)-3:])
		s = s[:len(s)-3]
	}
	for _, p := range slices.Backward(parts) {
		s += "," + p
	}
	return s
}

func percent(x, of float64) string {
	p := 100 * x / of
	if p > 0 && p < 0.1 {
		return "<0.1 %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}
