package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/clefbench/clefbench/backends/cedar"
	"github.com/clefbench/clefbench/backends/cel"
	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/contrib/opa"
	"github.com/clefbench/clefbench/decision"
)

// The engines, as the table calls them.
const (
	engineLoop          = "loop of strings.Contains and comparisons (the reference)"
	engineRules         = "rules, Decide"
	engineRulesBatch    = "rules, DecideBatch"
	engineStrategy      = "strategy (CEL lowered), Decide"
	engineStrategyBatch = "strategy (CEL lowered), DecideBatch"
	engineCEL           = "cel-go v0.33.2, a program a rule"
	engineCedar         = "cedar-go v1.9.2, an action a rule"
	engineOPA           = "OPA v1.22.4, rego, an else chain"
)

// contender is an engine with the rule set in it, made ready twice: as it is used, and
// with its stages timed where it has any.
type contender struct {
	engine string
	plain  decision.Backend
	timed  decision.Backend
}

// opened reports errors by engine.
func opened(engine string, plain, timed decision.Backend, err error) (contender, error) {
	if err != nil {
		return contender{}, fmt.Errorf("%s: %w", engine, err)
	}
	return contender{engine, plain, timed}, nil
}

// contenders opens the rule set in all engines.
func contenders(s *ruleset) ([]contender, error) {
	var out []contender
	for _, open := range []func(*ruleset) (contender, error){openRules, openStrategy, openCEL, openCedar, openOPA} {
		c, err := open(s)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func openRules(s *ruleset) (contender, error) {
	b, err := rules.Compile("rules.yaml", []byte(s.yaml()), s.schema)
	return opened(engineRules, b, nil, err)
}

func openStrategy(s *ruleset) (contender, error) {
	b, err := strategy.Compile("strategy.yaml", []byte(s.cel("strategy")), s.schema, nil)
	return opened(engineStrategy, b, nil, err)
}

func openCEL(s *ruleset) (contender, error) {
	text := []byte(s.cel("cel"))
	plain, err := cel.Compile("cel.yaml", text, s.schema, cel.Options{})
	if err != nil {
		return opened(engineCEL, nil, nil, err)
	}
	timed, err := cel.Compile("cel.yaml", text, s.schema, cel.Options{Stages: true})
	return opened(engineCEL, plain, timed, err)
}

func openCedar(s *ruleset) (contender, error) {
	mapping, policies := s.cedar()
	plain, err := cedar.Compile("cedar.yaml", []byte(mapping), "p.cedar", []byte(policies), cedar.Options{})
	if err != nil {
		return opened(engineCedar, nil, nil, err)
	}
	timed, err := cedar.Compile("cedar.yaml", []byte(mapping), "p.cedar", []byte(policies), cedar.Options{Stages: true})
	return opened(engineCedar, plain, timed, err)
}

func openOPA(s *ruleset) (contender, error) {
	text := []byte(s.rego())
	plain, err := opa.Compile("policy.rego", text, opa.Options{})
	if err != nil {
		return opened(engineOPA, nil, nil, err)
	}
	timed, err := opa.Compile("policy.rego", text, opa.Options{Stages: true})
	return opened(engineOPA, plain, timed, err)
}

// gate holds every engine to the reference on all inputs, one by one and as a batch.
// Nothing is timed that has not passed it.
func gate(s *ruleset, c contender) error {
	for _, b := range []decision.Backend{c.plain, c.timed} {
		if b == nil {
			continue
		}
		var out decision.Response
		for i, req := range s.inputs {
			if err := b.Decide(context.Background(), req, &out); err != nil {
				return fmt.Errorf("%s: %w", c.engine, err)
			}
			if err := s.agrees(i, out.Decisions[0]); err != nil {
				return fmt.Errorf("%s, %d rules: %w", c.engine, len(s.rules), err)
			}
		}
	}
	batcher, ok := c.plain.(decision.Batcher)
	if !ok {
		return nil
	}
	var answers decision.Answers
	if err := batcher.DecideBatch(context.Background(), s.batch(1), &answers); err != nil {
		return fmt.Errorf("%s: %w", c.engine, err)
	}
	for i := range s.inputs {
		if err := s.agrees(i, answers.At(i)); err != nil {
			return fmt.Errorf("%s, batch, %d rules: %w", c.engine, len(s.rules), err)
		}
	}
	return nil
}

func (s *ruleset) agrees(i int, d decision.Decision) error {
	if want := action(s.want[i]); d.Status != decision.OK || d.Action != want || d.Reason.Skipped != 0 {
		return fmt.Errorf("input %d: %v %q with %d rules skipped, want %q", i, d.Status, d.Action, d.Reason.Skipped, want)
	}
	return nil
}

// batch is the inputs as columns, several times over.
func (s *ruleset) batch(times int) *decision.Batch {
	b := decision.NewBatch(s.schema)
	for range times {
		for _, req := range s.inputs {
			if err := b.Append(req.Attrs.Values, time.Time{}); err != nil {
				panic(err) // the values are of the schema
			}
		}
	}
	return b
}

// conversion is the median time that an engine takes to make its input, the clock's own
// time taken off.
func conversion(s *ruleset, b decision.Backend) time.Duration {
	if b == nil {
		return 0
	}
	var all []time.Duration
	var out decision.Response
	for range 4 {
		for _, req := range s.inputs {
			if err := b.Decide(context.Background(), req, &out); err != nil {
				panic(err) // it passed the gate
			}
			all = append(all, out.Stages.Features.V)
		}
	}
	return max(0, median(all)-clockCost())
}

// clockCost is the median of what two looks at the clock show for nothing between them.
func clockCost() time.Duration {
	all := make([]time.Duration, 1001)
	for i := range all {
		start := time.Now()
		all[i] = time.Since(start)
	}
	return median(all)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
