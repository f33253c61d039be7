package recorder

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Sampling says which requests are kept beyond Options.SampleRate, the head rate. It acts
// on whole requests: a request is kept if any of its rows meets any of the conditions
// below, else by the head draw. All its rows carry one factor of their keep probability:
// 1 where a condition is met, whatever the draw said, else the head rate. So the factor is
// the probability with which the request was kept, given what it is, and estimates
// weighted by 1/keep_prob are unbiased. Of rows that come with a keep probability of
// their own ([Recorder.Record]) it is multiplied.
//
// With any condition set, requests that the head draw leaves out are captured all the
// same, because what their rows say is known only at the end.
type Sampling struct {
	// ByEntity makes the head draw a matter of the entity's keyed hash: every host under
	// one Options.EntityKey keeps the same entities, with all their requests. Requests
	// without an entity are drawn one by one. It needs the key.
	ByEntity bool

	// Statuses, Actions, Rules (their ids) and Scenarios are always kept. A decision that
	// got no answer counts as an error.
	Statuses  []decision.Status
	Actions   []string
	Rules     []string
	Scenarios []string
	// ConfidenceBelow keeps answers with a confidence that is known and lower. 0 is off.
	ConfidenceBelow float64
	// RareBelow keeps actions whose share of their scenario's decisions so far is lower: of
	// those offered to this recorder since its start. 0 is off. Counts are kept in a table
	// of fixed size, where names may share a place; then a rare action may pass for a
	// frequent one, or the reverse. Its keep probability says which, so that estimates hold.
	RareBelow float64
}

// ParseKeep reads conditions as --sample-keep of 'clefbench record' takes them, separated by
// commas: errors (error and timeout), error, timeout, denied, abstain, not-replayable,
// confidence<X, rare<SHARE, action=A, rule=ID, scenario=S. X and SHARE are in (0,1].
// Spaces around a condition do not count; a name can hold no comma.
func ParseKeep(text string) (Sampling, error) {
	var s Sampling
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if err := s.parse(word); err != nil {
			return Sampling{}, fmt.Errorf("%w: keep condition %q: %w", ErrOptions, word, err)
		}
	}
	return s, nil
}

func (s *Sampling) parse(word string) error {
	if name, value, ok := strings.Cut(word, "="); ok {
		list := map[string]*[]string{"action": &s.Actions, "rule": &s.Rules, "scenario": &s.Scenarios}[name]
		if list == nil || value == "" {
			return fmt.Errorf("want action=A, rule=ID or scenario=S")
		}
		*list = append(*list, value)
		return nil
	}
	if name, value, ok := strings.Cut(word, "<"); ok {
		limit := map[string]*float64{"confidence": &s.ConfidenceBelow, "rare": &s.RareBelow}[name]
		x, err := strconv.ParseFloat(value, 64)
		switch {
		case limit == nil || err != nil || !(x > 0 && x <= 1):
			return fmt.Errorf("want confidence<X or rare<SHARE, above 0 and up to 1")
		case *limit != 0:
			return fmt.Errorf("%s stands twice", name)
		}
		*limit = x
		return nil
	}
	if word == "errors" {
		s.Statuses = append(s.Statuses, decision.Error, decision.Timeout)
		return nil
	}
	st, err := decision.ParseStatus(word)
	if err != nil || st == decision.OK || st == decision.StatusNone {
		return fmt.Errorf("want errors, error, timeout, denied, abstain, not-replayable, confidence<X, rare<SHARE, action=A, rule=ID or scenario=S")
	}
	s.Statuses = append(s.Statuses, st)
	return nil
}

// String prints the conditions so that [ParseKeep] reads them; "" without any.
func (s Sampling) String() string {
	var out []string
	for _, st := range s.Statuses {
		out = append(out, st.String())
	}
	for _, l := range []struct {
		name  string
		limit float64
	}{{"confidence", s.ConfidenceBelow}, {"rare", s.RareBelow}} {
		if l.limit != 0 {
			out = append(out, l.name+"<"+strconv.FormatFloat(l.limit, 'g', -1, 64))
		}
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"action", s.Actions}, {"rule", s.Rules}, {"scenario", s.Scenarios}} {
		for _, v := range l.list {
			out = append(out, l.name+"="+v)
		}
	}
	return strings.Join(out, ",")
}

// Describe says how requests are kept at a head rate, as segments record it: "rate=0.1
// by=entity keep=error,timeout"; "" when all are kept.
func (s Sampling) Describe(rate float64) string {
	if rate == 0 || rate == 1 {
		return ""
	}
	by, keep := "request", s.String()
	if s.ByEntity {
		by = "entity"
	}
	out := "rate=" + strconv.FormatFloat(rate, 'g', -1, 64) + " by=" + by
	if keep != "" {
		out += " keep=" + keep
	}
	return out
}

func (s *Sampling) validate(key []byte) error {
	for name, x := range map[string]float64{"confidence": s.ConfidenceBelow, "rare share": s.RareBelow} {
		if !(x >= 0 && x <= 1) {
			return fmt.Errorf("%w: sampling: %s below %v is not in [0,1]", ErrOptions, name, x)
		}
	}
	if s.ByEntity && len(key) == 0 {
		return fmt.Errorf("%w: sampling by entity needs an entity key", ErrOptions)
	}
	return nil
}

// tail reports whether there is any condition.
func (s *Sampling) tail() bool {
	return len(s.Statuses)+len(s.Actions)+len(s.Rules)+len(s.Scenarios) > 0 || s.ConfidenceBelow > 0 || s.RareBelow > 0
}

// SampledRow is what [Sampler] wants to know of a row.
type SampledRow struct {
	Scenario, Action, Rule string
	Status                 decision.Status
	Confidence             decision.Opt[float64]
}

// Sampler decides by a [Sampling] and a head rate which requests are kept. The recorder
// has one; it is exported for programs that write rows without a recorder. It is safe
// for concurrent use.
type Sampler struct {
	Sampling
	rate   float64
	random func() float64
	tailed bool
	// The sets hold what is always kept.
	statuses                  [16]bool
	actions, rules, scenarios map[string]bool
	counts                    *labelCounts
	macs                      sync.Pool
}

// NewSampler returns a sampler; rate is in (0,1], 0 means all, and random draws from
// [0,1). Errors wrap [ErrOptions].
func NewSampler(rate float64, s Sampling, key []byte, random func() float64) (*Sampler, error) {
	if !(rate >= 0 && rate <= 1) {
		return nil, fmt.Errorf("%w: sample rate %v is not in (0,1]", ErrOptions, rate)
	}
	if err := s.validate(key); err != nil {
		return nil, err
	}
	orDefault(&rate, 1)
	key = slices.Clone(key)
	p := &Sampler{Sampling: s, rate: rate, random: random, tailed: s.tail(), actions: setOf(s.Actions), rules: setOf(s.Rules), scenarios: setOf(s.Scenarios)}
	p.macs.New = func() any { return newMAC(key) }
	for _, st := range s.Statuses {
		if int(st) < len(p.statuses) {
			p.statuses[st] = true
		}
	}
	if s.RareBelow > 0 {
		p.counts = new(labelCounts)
	}
	return p, nil
}

func setOf(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// Draw is the head draw for one request without an entity.
func (p *Sampler) Draw() bool { return p.rate >= 1 || p.random() < p.rate }

// DrawID is Draw by the request's id instead of by chance: what is read twice is kept
// twice or not at all. It is independent of the draw of a [Shadow] by the same id.
func (p *Sampler) DrawID(request decision.ID) bool {
	return p.rate >= 1 || unit(mix64(idHash(request))) < p.rate
}

// DrawEntity is the head draw for an entity's keyed hash, as rows carry it. It is
// derived from the hash and not the hash itself, so that who splits the kept rows by
// entity splits evenly.
func (p *Sampler) DrawEntity(entity [8]byte) bool {
	return p.rate >= 1 || unit(mix64(binary.BigEndian.Uint64(entity[:]))) < p.rate
}

// hashed is the keyed hash of a raw entity, as the drain computes it for the row.
func (p *Sampler) hashed(raw string) [8]byte {
	m := p.macs.Get().(*mac)
	defer p.macs.Put(m)
	sum := m.of([]byte(raw))
	return [8]byte(sum[:8])
}

// Keep returns the factor of the keep probability that all rows of a request carry, and
// whether the request is kept, given its head draw. It must be called once a request,
// with all its rows in turn by [Sampler.Meets].
func (p *Sampler) Keep(head, met bool) (factor float64, keep bool) {
	if met {
		return 1, true
	}
	return p.rate, head
}

// Meets reports whether a row meets a condition, and counts its action. Call it for
// every row of a request, also after one that does.
func (p *Sampler) Meets(r *SampledRow) bool {
	met := int(r.Status) < len(p.statuses) && p.statuses[r.Status] ||
		r.Confidence.Set && r.Confidence.V < p.ConfidenceBelow ||
		p.actions != nil && p.actions[r.Action] || p.rules != nil && p.rules[r.Rule] ||
		p.scenarios != nil && p.scenarios[r.Scenario]
	if p.counts != nil && r.Action != "" {
		met = p.counts.share(r.Scenario, r.Action) < p.RareBelow || met
	}
	return met
}

// late reports whether what becomes of a request is known only at its end, so that it
// must be captured whatever its first draw says.
func (p *Sampler) late() bool { return p.ByEntity || p.tailed }

// head is the head draw of a request, given the draw that its begin made without entity.
func (p *Sampler) head(drawn bool, entity string, hasEntity bool) bool {
	if p.ByEntity && hasEntity && p.rate < 1 {
		return p.DrawEntity(p.hashed(entity))
	}
	return drawn
}

// keep decides for a request that is complete whether it is kept, and gives it its keep
// probability. drawn is the draw that the request's begin made.
func (r *Recorder) keep(g *group, drawn bool) bool {
	p, met := r.sampler, false
	if p.tailed {
		for i := range g.slots {
			row := &g.slots[i].row
			v := SampledRow{g.scenario, row.Action, row.RuleID, row.Status, row.Confidence}
			orDefault(&v.Scenario, r.opts.Scenario)
			if g.panicked || v.Status == decision.StatusNone {
				v = SampledRow{Scenario: v.Scenario, Status: decision.Error} // what the drain makes of it
			}
			met = p.Meets(&v) || met
		}
	}
	factor, kept := p.Keep(p.head(drawn, g.entity, g.hasEntity), met)
	g.keep = factor
	return kept
}

// keepRows is keep for rows that came complete.
func (r *Recorder) keepRows(rows []*snapshot.Snapshot) (factor float64, kept bool) {
	p, met := r.sampler, false
	if p.rate >= 1 && !p.tailed {
		return 1, true
	}
	if p.tailed {
		for _, s := range rows {
			met = p.Meets(&SampledRow{s.Scenario, s.Action, s.RuleID, s.Status, s.Confidence}) || met
		}
	}
	return p.Keep(p.headOfRow(rows[0], r.plan.Entity.Attr), met)
}

func (p *Sampler) headOfRow(s *snapshot.Snapshot, attr string) bool {
	switch {
	case !p.ByEntity || p.rate >= 1:
	case s.Entity.Set:
		return p.DrawEntity(s.Entity.V)
	case attr != "":
		if v := s.Attrs.Get(attr); !v.IsNull() {
			return p.DrawEntity(p.hashed(v.String()))
		}
	}
	return p.Draw()
}

// labelPlaces bounds the table of counts: 32 KiB for each of the two.
const labelPlaces = 4096

// labelCounts counts decisions by scenario and by action in it. It holds hashes instead
// of names: no lock, no growth, and nothing to clean up when a service makes up names.
// The hash has no secret, so that two runs over the same traffic keep the same.
type labelCounts struct {
	scenarios, labels [labelPlaces]atomic.Uint64
}

// share counts a decision and returns its action's share, the decision included.
func (c *labelCounts) share(scenario, action string) float64 {
	s := fnv1a(14695981039346656037, scenario)
	all := c.scenarios[mix64(s)%labelPlaces].Add(1)
	n := c.labels[mix64(fnv1a(s+1, action))%labelPlaces].Add(1)
	return float64(n) / float64(all)
}

// fnv1a goes on with a 64-bit FNV-1a hash.
func fnv1a(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}
