package replay

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// sample keeps a uniform random sample of each scenario's requests (reservoir sampling,
// Vitter's algorithm R), reproducible under the plan's seed and bounded in memory.
type sample struct {
	size  int
	seed  uint64
	names []string
	strat map[string]*stratum
}

type stratum struct {
	rng  *rand.Rand
	seen uint64
	kept []*request
}

func newSample(p *Plan) *sample {
	return &sample{size: p.Audit, seed: p.Seed, strat: map[string]*stratum{}}
}

func (s *sample) offer(q *request) {
	if s.size == 0 {
		return
	}
	st := s.strat[q.req.Scenario]
	if st == nil {
		st = &stratum{rng: rand.New(rand.NewPCG(s.seed, 0x5eed<<16|uint64(len(s.names))))}
		s.strat[q.req.Scenario] = st
		s.names = append(s.names, q.req.Scenario)
	}
	st.seen++
	if len(st.kept) < s.size {
		st.kept = append(st.kept, q)
	} else if j := st.rng.Uint64N(st.seen); j < uint64(s.size) {
		st.kept[j] = q
	}
}

// audit asks every lane again about the sample; false means stop.
func (r *runner) audit() bool {
	r.progress.Phase = "audit"
	for _, name := range r.sample.names {
		kept := r.sample.strat[name].kept
		// A reservoir loses the order; restore it so that files read in order.
		slices.SortFunc(kept, func(a, b *request) int { return compareRef(a.rows[0].Ref, b.rows[0].Ref) })
		for _, lane := range r.lanes {
			if !r.auditLane(lane, kept) {
				return false
			}
		}
	}
	return true
}

func compareRef(a, b snapshot.Ref) int {
	if c := strings.Compare(a.Segment, b.Segment); c != 0 {
		return c
	}
	return int(a.Row - b.Row)
}

func (r *runner) auditLane(lane *competitor, kept []*request) bool {
	for _, q := range kept {
		if r.ctx.Err() != nil {
			return false // Run passes the context's error on
		}
		if lane.Backend == nil {
			if !r.auditRecorded(lane, q) {
				return false
			}
			continue
		}
		if !r.auditRequest(lane, q) {
			return false
		}
	}
	return true
}

func (r *runner) auditRequest(lane *competitor, q *request) bool {
	missing := missingAttributes(lane.infoFor(q.req.Scenario).Attributes, q.rows[0])
	a := &lane.answers[0]
	for repeat := range r.plan.Repeats {
		r.ask(lane, q, lane.copyOf(0, q), a)
		if r.ctx.Err() != nil {
			return false // a call that was cut off says nothing about the backend
		}
		var why *decision.Explanation
		if repeat == 0 {
			why = r.explain(lane, q)
		}
		ok := r.emit(lane, q, a, func(o *snapshot.Outcome) {
			o.Phase, o.Repeat = snapshot.PhaseAudit, int32(repeat)
			if repeat > 0 {
				return
			}
			o.Identified = decision.Some(r.identified(lane, &o.Artefact))
			o.Explained = decision.Some(explains(why, o))
			o.Complete = decision.Some(len(missing) == 0)
			o.Missing = missing
		})
		if !ok {
			return false
		}
	}
	return true
}

// identified: the content of what decided is known by its hash and can be fetched, and
// no other model answered than the one that was asked for. A local lane was opened from
// that very content; what a remote service claims must be found among the artefacts.
func (r *runner) identified(lane *competitor, a *decision.Artefact) bool {
	if a.StrategyDigest == [32]byte{} || a.ModelRequested != "" && a.ModelRequested != a.ModelResolved {
		return false
	}
	if !lane.caps.Network && lane.Backend != nil {
		return true
	}
	_, found := r.rule(a.StrategyDigest, "")
	return found
}

func (r *runner) rule(digest [32]byte, id string) (exists, found bool) {
	if r.plan.Artefacts == nil || digest == [32]byte{} {
		return false, false
	}
	return r.plan.Artefacts.Rule(digest, id)
}

// explain asks the backend why, and contains what goes wrong; nil is no explanation. A
// backend without explanations is not explained, by measurement.
func (r *runner) explain(lane *competitor, q *request) (e *decision.Explanation) {
	ex, ok := lane.Backend.(decision.Explainer)
	if !ok {
		return nil
	}
	defer func() {
		if recover() != nil {
			e = nil
		}
	}()
	e, err := ex.Explain(r.ctx, lane.copyOf(0, q))
	if err != nil {
		return nil
	}
	return e
}

// explains: the explanation is of this answer, and points into an artefact.
func explains(e *decision.Explanation, o *snapshot.Outcome) bool {
	return e != nil && e.Reason.Kind == o.Reason && e.Reason.Rule == o.RuleID &&
		o.Reason != decision.ReasonNone && e.Position.File != ""
}

// auditRecorded checks the record itself. It is not executed again, so that nothing is
// said about reproducibility.
func (r *runner) auditRecorded(lane *competitor, q *request) bool {
	return r.emitRecorded(lane, q, func(o *snapshot.Outcome) {
		o.Phase = snapshot.PhaseAudit
		exists, found := r.rule(o.Artefact.StrategyDigest, o.RuleID)
		byFallback := o.Reason == decision.ReasonFallback && o.RuleID == ""
		o.Identified = decision.Some(r.identified(lane, &o.Artefact))
		o.Explained = decision.Some(found && o.Reason != decision.ReasonNone && (exists || byFallback))
		o.Missing = damaged(q.rows[0])
		o.Complete = decision.Some(len(o.Missing) == 0)
	})
}

// missingAttributes lists what a backend reads and the snapshot does not hold as it was:
// not in its capture list, or redacted. Of a backend that does not say what it reads
// (a remote service), everything that was captured counts.
func missingAttributes(reads []string, s *snapshot.Snapshot) []string {
	if len(reads) == 0 {
		return damaged(s)
	}
	var out []string
	for _, name := range reads {
		held := s.Attrs.Schema.Index(name) >= 0
		if name == decision.BodyAttribute {
			held = s.Input != nil && !short(s)
		}
		if !held || redacted(s, name) {
			out = append(out, name)
		}
	}
	return out
}

func redacted(s *snapshot.Snapshot, name string) bool {
	for _, r := range s.Redacted {
		if path, _, _ := strings.Cut(r, ":"); path == name {
			return true
		}
	}
	return false
}

// damaged lists what a record itself lacks: redacted paths and a truncated input.
func damaged(s *snapshot.Snapshot) []string {
	var out []string
	for _, r := range s.Redacted {
		// A body may be redacted in many places: it is one path.
		if path, _, _ := strings.Cut(r, ":"); !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	if short(s) && !slices.Contains(out, decision.BodyAttribute) {
		out = append(out, decision.BodyAttribute)
	}
	return out
}

// short reports an input that is not all that came.
func short(s *snapshot.Snapshot) bool {
	return s.Input != nil && s.InputLen.Set && int64(len(s.Input)) < s.InputLen.V
}
