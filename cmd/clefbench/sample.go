package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/clefbench/clefbench/internal/term"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// sampleFlags say which requests are kept.
type sampleFlags struct {
	rate float64
	by   string
	keep string
}

func (f *sampleFlags) register(fl *pflag.FlagSet) {
	fl.Float64Var(&f.rate, "sample", 1, "share of the requests to keep, above 0 and up to 1")
	fl.StringVar(&f.by, "sample-by", "request", "request or entity: keep this share of the requests, or all requests of this share of the entities")
	fl.StringVar(&f.keep, "sample-keep", "", "what is always kept: errors, error, timeout, denied, abstain, confidence<X, rare<SHARE, action=A, rule=ID, scenario=S, with commas between")
}

// rules are the conditions that the flags name.
func (f *sampleFlags) rules() (recorder.Sampling, error) {
	s, err := recorder.ParseKeep(f.keep)
	switch {
	case err != nil:
		return s, err
	case f.by != "request" && f.by != "entity":
		return s, fmt.Errorf("--sample-by %q is not request or entity", f.by)
	case !(f.rate > 0 && f.rate <= 1):
		return s, fmt.Errorf("--sample %v is not above 0 and up to 1", f.rate)
	case f.rate == 1 && f.keep != "":
		return s, fmt.Errorf("--sample-keep says what --sample must not leave out, and without --sample nothing is")
	}
	s.ByEntity = f.by == "entity"
	return s, nil
}

// hasKey refuses a draw by entity under a key that is made up at start: it would keep other
// entities in every run and on every host.
func (f *sampleFlags) hasKey(env term.LookupEnv) error {
	if key, _ := env(entityKeyVar); f.by == "entity" && f.rate < 1 && key == "" {
		return fail(exitUsage, "the same key on every host keeps the same entities", "--sample-by entity needs a key in %s", entityKeyVar)
	}
	return nil
}

// open returns nil when everything is kept.
func (f *sampleFlags) open(key []byte) (*requestSampler, error) {
	s, err := f.rules()
	if err != nil || f.rate == 1 {
		return nil, err
	}
	// Chance is not asked: a request's draw follows from its id, so that reading a file
	// twice keeps the same rows.
	sampler, err := recorder.NewSampler(f.rate, s, key, func() float64 { return 0 })
	return &requestSampler{Sampler: sampler}, err
}

// requestSampler holds the rows of one request until all of them are there.
type requestSampler struct {
	*recorder.Sampler
	rows  []snapshot.Snapshot
	lines []int
	// fresh: a line came since the last tick.
	fresh bool
}

// sample takes the row of line n, after settling the request before it if that is another.
func (r *recording) sample(n int) error {
	s := r.sampled
	if len(s.rows) > 0 && s.rows[0].RequestID != r.row.RequestID {
		if err := r.settle(); err != nil {
			return err
		}
	}
	s.rows, s.lines, s.fresh = append(s.rows, r.row), append(s.lines, n), true
	return nil
}

// settleIdle settles the request that was read last when nothing has followed for a
// whole interval: a slow source must not keep it from being written.
func (r *recording) settleIdle() error {
	if s := r.sampled; s != nil && s.fresh {
		s.fresh = false
		return nil
	}
	return r.settle()
}

// settle writes the rows that are held back, or counts them as sampled out.
func (r *recording) settle() error {
	s := r.sampled
	if s == nil || len(s.rows) == 0 {
		return nil
	}
	factor, keep := s.decide()
	rows, lines := s.rows, s.lines
	s.rows, s.lines = s.rows[:0], s.lines[:0]
	if !keep {
		n := uint64(len(rows))
		r.total.SampledOut += n
		r.lost.SampledOut += n
		r.lost.Offered += n
		return nil
	}
	for i := range rows {
		rows[i].KeepProb *= factor
		if err := r.append(&rows[i], lines[i]); err != nil {
			r.unwritten(uint64(len(rows) - i - 1))
			return err
		}
	}
	return nil
}

func (s *requestSampler) decide() (factor float64, keep bool) {
	met := false
	for i := range s.rows {
		row := &s.rows[i]
		met = s.Meets(&recorder.SampledRow{Scenario: row.Scenario, Action: row.Action, Rule: row.RuleID,
			Status: row.Status, Confidence: row.Confidence}) || met
	}
	first := &s.rows[0]
	head := s.DrawID(first.RequestID)
	if s.ByEntity && first.Entity.Set {
		head = s.DrawEntity(first.Entity.V)
	}
	return s.Keep(head, met)
}
