package main

import (
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clefbench/clefbench/decision"
)

// budget is the least processor time of one measurement.
const budget = 10 * time.Millisecond

// benchmark is one cell of a table.
type benchmark struct {
	name  string
	rules int
	// run decides per times.
	run func()
	per int
	// passes is how often run is run in a measurement.
	passes int
	// ns has a value a round; allocs is for one decision.
	ns       []float64
	allocs   float64
	convert  time.Duration
	measured bool // convert was
}

// processTime is the processor time of the process, garbage collection included: what
// others do on the machine is not in it, save for what they take from the caches.
func processTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err) // the clock exists wherever this package builds
	}
	return time.Duration(ts.Nano())
}

// measure runs all benchmarks turn about, round after round; the first round warms up and
// sets how many passes fill the budget.
func measure(all []*benchmark, rounds int) {
	for round := range rounds + 1 {
		for _, b := range all {
			if round == 0 {
				b.calibrate()
				continue
			}
			start := processTime()
			for range b.passes {
				b.run()
			}
			b.ns = append(b.ns, float64(processTime()-start)/float64(b.passes*b.per))
		}
	}
}

func (b *benchmark) calibrate() {
	b.run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processTime()
	b.run()
	took := processTime() - start
	runtime.ReadMemStats(&after)
	b.allocs = float64(after.Mallocs-before.Mallocs) / float64(b.per)
	b.passes = 1 + int(budget/max(took, time.Microsecond))
}

// best is the fastest round.
func (b *benchmark) best() float64 { return slices.Min(b.ns) }

// ratio is the median over the rounds of how many times x takes what y takes.
func ratio(x, y *benchmark) float64 {
	all := make([]float64, len(x.ns))
	for i := range all {
		all[i] = x.ns[i] / y.ns[i]
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ruleCases are the benchmarks of one rule set, after the gate.
func ruleCases(s *ruleset) ([]*benchmark, error) {
	all, err := contenders(s)
	if err != nil {
		return nil, err
	}
	sink := 0
	out := []*benchmark{{name: engineLoop, rules: len(s.rules), per: nInputs, run: func() {
		for _, req := range s.inputs {
			sink += s.reference(req.Attrs.Values)
		}
	}}}
	for _, c := range all {
		if err := gate(s, c); err != nil {
			return nil, err
		}
		var resp decision.Response
		b := &benchmark{name: c.engine, rules: len(s.rules), per: nInputs, convert: conversion(s, c.timed), measured: c.timed != nil}
		b.run = func() {
			for _, req := range s.inputs {
				if err := c.plain.Decide(context.Background(), req, &resp); err != nil {
					panic(err) // it passed the gate
				}
			}
		}
		out = append(out, b)
		if batcher, ok := c.plain.(decision.Batcher); ok {
			out = append(out, batchCase(s, c.engine, batcher))
		}
	}
	return out, nil
}

func batchCase(s *ruleset, engine string, batcher decision.Batcher) *benchmark {
	const times = 256 // 65,536 rows: the batch is bound to the rules once
	in, answers := s.batch(times), new(decision.Answers)
	name := engineRulesBatch
	if engine == engineStrategy {
		name = engineStrategyBatch
	}
	return &benchmark{name: name, rules: len(s.rules), per: times * nInputs, run: func() {
		if err := batcher.DecideBatch(context.Background(), in, answers); err != nil {
			panic(err) // it passed the gate
		}
	}}
}
