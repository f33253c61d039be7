package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// finding is a problem as -f json prints it. The fields are for editors and CI: they stay.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`   // from 1
	Column   int    `json:"column"` // from 1, in characters; 0 is unknown
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func findingOf(p *document.Problem) finding {
	return finding{p.Pos.File, p.Pos.Line, p.Pos.Column, severity(p), p.Message, p.Hint}
}

// printFindings prints a JSON array, one finding a line.
func printFindings(out io.Writer, list []finding) error {
	if len(list) == 0 {
		_, err := io.WriteString(out, "[]\n")
		return err
	}
	for i, f := range list {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(f); err != nil {
			return err
		}
		before, after := " ", ","
		if i == 0 {
			before = "["
		}
		if i == len(list)-1 {
			after = "]"
		}
		if _, err := fmt.Fprintf(out, "%s%s%s\n", before, strings.TrimSpace(b.String()), after); err != nil {
			return err
		}
	}
	return nil
}

// actionsOf returns where each action of a file stands, by label.
func actionsOf(kind, name string, data []byte, schema *decision.Schema) (map[string][]decision.Position, error) {
	switch kind {
	case "rules":
		return rules.Actions(name, data, schema)
	case "strategy":
		return strategy.Actions(name, data, schema)
	}
	_, root, err := document.Parse(name, data)
	if err != nil {
		return nil, err
	}
	out := map[string][]decision.Position{}
	add := func(n *document.Node) {
		if n != nil {
			label, _ := n.Text()
			out[label] = append(out[label], n.Pos())
		}
	}
	if list := root.Map().Get("actions"); list != nil { // of a matrix
		for _, a := range list.List() {
			if n := a.Map().Get("name"); n != nil {
				add(n)
			} else {
				add(a.Map().Get("type"))
			}
		}
	}
	// A model with utilities chooses among their actions, not among its classes.
	if list := root.Map().Get("classes"); list != nil && root.Map().Get("utility") == nil {
		for _, c := range list.List() {
			add(c.Map().Get("action"))
		}
		add(root.Map().Get("otherwise"))
	}
	return out, nil
}

// candidates is what the recorded questions allow, by scenario; nil is any action.
type candidates map[string][]string

// candidatesOf reads the tasks of a data set, and where they name none, the candidates of
// its rows.
func candidatesOf(ds *datasets.Dataset) (candidates, error) {
	out, anything := candidates{}, map[string]bool{}
	for s, err := range ds.Snapshots(datasets.Filter{}) {
		if err != nil {
			return nil, err
		}
		anything[s.Scenario] = anything[s.Scenario] || len(s.Candidates) == 0
		for _, c := range s.Candidates {
			if !slices.Contains(out[s.Scenario], c.Action) {
				out[s.Scenario] = append(out[s.Scenario], c.Action)
			}
		}
	}
	for scenario, yes := range anything {
		if yes {
			out[scenario] = nil
		}
		if task := ds.Tasks()[scenario]; len(task.Candidates) > 0 {
			out[scenario] = task.Candidates
		}
	}
	return out, nil
}

// allowed lists what the scenarios of a file allow together, nil for any action or when
// the data set has none of them. A file without scenarios is for all.
func (c candidates) allowed(scenarios []string) []string {
	if len(scenarios) == 0 {
		scenarios = slices.Collect(maps.Keys(c))
	}
	var out []string
	for _, s := range scenarios {
		list, ok := c[s]
		if ok && list == nil {
			return nil
		}
		out = append(out, list...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notAllowed warns of actions that no recorded question allows: each such answer would be
// an error at decision time.
func (c *checker) notAllowed(kind, name string, data []byte) (document.Problems, error) {
	_, root, err := document.Parse(name, data)
	if err != nil {
		return nil, err
	}
	var scenarios []string
	if n := root.Map().Get("scenarios"); n != nil {
		scenarios = n.Texts()
	}
	allowed := c.candidates.allowed(scenarios)
	if allowed == nil {
		return nil, nil
	}
	actions, err := actionsOf(kind, name, data, c.schema)
	if err != nil {
		return nil, err
	}
	f := &document.File{Name: name}
	for label, places := range actions {
		if slices.Contains(allowed, label) {
			continue
		}
		hint := "the candidates are " + strings.Join(allowed[:min(len(allowed), 12)], ", ")
		if near := document.Closest(label, allowed); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		for _, pos := range places {
			f.Warnf(pos, hint, "no recorded question allows the action %q: the answer would be an error", document.Short(label))
		}
	}
	return f.Problems, nil
}

// printCost prints what a decision evaluates at most.
func printCost(out io.Writer, kind, name string, data []byte, schema *decision.Schema) error {
	switch kind {
	case "rules":
		c, err := rules.WorstCase(name, data, schema)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: a decision evaluates at most %s conditions of %s rules, %s of them patterns and %s computed\n",
			name, grouped(c.Conditions), grouped(c.Rules), grouped(c.Patterns), grouped(c.Computed))
	case "strategy":
		c, err := strategy.WorstCase(name, data, schema)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: a decision evaluates at most %s conditions with %s patterns, for %s steps of CEL\n",
			name, grouped(c.Rules), grouped(c.Patterns), grouped(int(min(c.Steps, 1<<62))))
	}
	return nil
}

// overlaps adds the pairs of rules that can both match; only rules files are looked at.
func overlaps(kind, name string, data []byte, schema *decision.Schema) (document.Problems, error) {
	if kind != "rules" {
		return nil, nil
	}
	ps, err := rules.Overlaps(name, data, schema)
	var problems document.Problems
	if errors.As(err, &problems) { // Check has listed them
		return nil, nil
	}
	return ps, err
}
