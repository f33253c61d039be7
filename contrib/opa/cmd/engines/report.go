package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// results are all benchmarks of a run.
type results []*benchmark

func (rs results) find(name string, rules int) *benchmark {
	i := slices.IndexFunc(rs, func(b *benchmark) bool { return b.name == name && b.rules == rules })
	if i < 0 {
		return nil
	}
	return rs[i]
}

// goal is one of the figures.
type goal struct {
	what    string
	value   float64
	unit    string
	atLeast bool
	limit   float64
}

func (g goal) met() bool {
	if g.atLeast {
		return g.value >= g.limit
	}
	return g.value <= g.limit
}

// goals are the figures to reach; those whose benchmarks were not run are left out.
func (rs results) goals() []goal {
	var out []goal
	ns := func(what, name string, rules int, limit float64) {
		if b := rs.find(name, rules); b != nil {
			out = append(out, goal{what: what, value: b.best(), unit: " ns", limit: limit})
		}
	}
	times := func(what string, x, y *benchmark, atLeast bool, limit float64) {
		if x != nil && y != nil {
			out = append(out, goal{what, ratio(x, y), "x", atLeast, limit})
		}
	}
	for _, e := range []string{engineRules, engineStrategy} {
		ns(e+", 1,000 rules, warm", e, 1000, 60)
		times("how many times faster than cel-go rule by rule, 1,000 rules: "+e, rs.find(engineCEL, 1000), rs.find(e, 1000), true, 500)
		times("cost at 1,000 rules over that at 10: "+e, rs.find(e, 1000), rs.find(e, 10), false, 2)
	}
	ns(engineRulesBatch+", a row, 1,000 rules", engineRulesBatch, 1000, 10)
	ns("flash: "+flashLookUp, flashLookUp, 0, 8)
	ns("flash: "+flashKey, flashKey, 0, 60)
	ns("flash: "+flashSeen, flashSeen, 0, 60)
	ns("flash: "+flashNew, flashNew, 0, 500)
	if b := rs.find(flashNew, 0); b != nil {
		out = append(out, goal{what: "flash: allocations, user agent new", value: b.allocs})
	}
	return out
}

// write prints the tables as Markdown.
func (rs results) write(w io.Writer, sizes []int) {
	fmt.Fprint(w, "### The same rules in all engines\n\n| engine |")
	for _, n := range sizes {
		fmt.Fprintf(w, " %d rules |", n)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(sizes)))
	for _, e := range []string{engineLoop, engineRules, engineRulesBatch, engineStrategy, engineStrategyBatch, engineCEL, engineCedar, engineOPA} {
		fmt.Fprintf(w, "| %s |", e)
		for _, n := range sizes {
			fmt.Fprintf(w, " %s |", cell(rs.find(e, n)))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "\nns a decision (the fastest round; processor time), [allocations]; where an engine has an input of its own: conversion + evaluation.\n")
	fmt.Fprint(w, "\n### Table look-up\n\n| flash | ns | allocations |\n|---|---|---|\n")
	for _, n := range []string{flashLookUp, flashKey, flashSeen, flashNew, flashDecide} {
		if b := rs.find(n, 0); b != nil {
			fmt.Fprintf(w, "| %s | %.1f | %.0f |\n", n, b.best(), b.allocs)
		}
	}
	fmt.Fprint(w, "\n### Goals\n\n| | measured | goal | met |\n|---|---|---|---|\n")
	for _, g := range rs.goals() {
		sign, met := "at most", "yes"
		if g.atLeast {
			sign = "at least"
		}
		if !g.met() {
			met = "**no**"
		}
		fmt.Fprintf(w, "| %s | %.4g%s | %s %g%s | %s |\n", g.what, g.value, g.unit, sign, g.limit, g.unit, met)
	}
}

func cell(b *benchmark) string {
	switch {
	case b == nil:
		return ""
	case b.measured:
		c := float64(b.convert)
		return fmt.Sprintf("%.0f = %.0f + %.0f [%.0f]", b.best(), c, max(0, b.best()-c), b.allocs)
	case b.best() < 100:
		return fmt.Sprintf("%.1f [%.0f]", b.best(), b.allocs)
	}
	return fmt.Sprintf("%.0f [%.0f]", b.best(), b.allocs)
}
