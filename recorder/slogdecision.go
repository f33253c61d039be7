package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// slogDecision is a decision that parsed.
type slogDecision struct {
	decision.Decision
	id, request decision.ID
	candidates  []decision.Candidate
	latency     decision.Opt[time.Duration]
	propensity  decision.Opt[float64]
}

func (f *slogFound) text(p slogPart) string {
	if !f.has[p] {
		return ""
	}
	return f.parts[p].String()
}

// decision parses the parts that are not plain text.
func (f *slogFound) decision() (d slogDecision, err error) {
	d.Action, d.Params, d.ErrorCode, d.Error = f.text(slogAction), f.text(slogParams), f.text(slogErrorCode), f.text(slogError)
	d.ConfidenceDef, d.Reason.Rule = f.text(slogConfidenceDef), f.text(slogRule)
	if s := f.text(slogStatus); s != "" {
		if d.Status, err = decision.ParseStatus(strings.ToLower(s)); err != nil {
			return d, err
		}
	}
	if s := f.text(slogReason); s != "" {
		if d.Reason.Kind, err = decision.ParseReason(strings.ToLower(s)); err != nil {
			return d, err
		}
	}
	for p, id := range map[slogPart]*decision.ID{slogID: &d.id, slogRequestID: &d.request} {
		if s := f.text(p); s != "" {
			if *id, err = decision.ParseID(s); err != nil {
				return d, err
			}
		}
	}
	if d.Confidence, err = f.number(slogConfidence); err != nil {
		return d, fmt.Errorf("confidence: %w", err)
	}
	if d.propensity, err = f.number(slogPropensity); err != nil {
		return d, fmt.Errorf("propensity: %w", err)
	}
	if d.latency, err = f.duration(slogLatency); err != nil {
		return d, fmt.Errorf("latency: %w", err)
	}
	d.candidates, err = f.candidates()
	return d, err
}

func (f *slogFound) number(p slogPart) (x decision.Opt[float64], err error) {
	if !f.has[p] {
		return x, nil
	}
	v, ok := coerce(attrOf(f.parts[p]), decision.Double)
	if !ok {
		return x, fmt.Errorf("%q is not a number", f.text(p))
	}
	return decision.Opt[float64]{V: v.Double(), Set: !v.IsNull()}, nil
}

func (f *slogFound) duration(p slogPart) (t decision.Opt[time.Duration], err error) {
	if !f.has[p] {
		return t, nil
	}
	switch v := f.parts[p]; v.Kind() {
	case slog.KindDuration:
		return decision.Some(v.Duration()), nil
	case slog.KindInt64:
		return decision.Some(time.Duration(v.Int64())), nil
	}
	took, err := time.ParseDuration(f.text(p))
	return decision.Some(took), err
}

func (f *slogFound) candidates() (out []decision.Candidate, err error) {
	if !f.has[slogCandidates] {
		return nil, nil
	}
	var names []string
	switch x := f.parts[slogCandidates].Any().(type) {
	case []decision.Candidate:
		return x, nil
	case []string:
		names = x
	case string:
		for name := range strings.SplitSeq(x, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	default:
		return nil, fmt.Errorf("candidates are %T, want []string, []decision.Candidate or text", x)
	}
	for _, name := range names {
		out = append(out, decision.Candidate{Action: name})
	}
	return out, nil
}

// hand gives the decision to the recording around it, or hands it over as a request of
// its own.
func (f *slogFound) hand(ctx context.Context, r *Recorder, at time.Time, d slogDecision) {
	outer := FromContext(ctx)
	if outer != nil && outer.r != r {
		outer = nil
	}
	if at.IsZero() {
		at = r.opts.Clock()
	}
	if f.join(outer, at, &d) {
		return
	}
	drawn := outer.drawn(r)
	if !drawn && !r.sampler.late() {
		r.in.sampledOut(1)
		return
	}
	if r.in.refuse(1) {
		return
	}
	g := r.request(ctx, outer, d.request, at)
	f.fill(g, g.add(), at, &d)
	r.settle(ctx, g, drawn)
}

// join answers a question of the recording, unless it has an answer already.
func (f *slogFound) join(rec *Recording, at time.Time, d *slogDecision) (joined bool) {
	question := f.text(slogQuestion)
	rec.edit(func(g *group) {
		for i := range g.slots {
			if s := &g.slots[i]; s.row.Question == question {
				if joined = s.row.Status == decision.StatusNone; joined {
					f.fill(g, s, at, d)
				}
				return
			}
		}
		joined = true
		f.fill(g, g.add(), at, d)
	})
	return joined
}

func (f *slogFound) fill(g *group, s *slot, at time.Time, d *slogDecision) {
	row := &s.row
	if row.ID.IsZero() {
		row.ID = d.id
	}
	if row.ID.IsZero() {
		row.ID = decision.NewID(at)
	}
	row.SourceID, row.Question = f.text(slogSourceID), f.text(slogQuestion)
	if len(d.candidates) > 0 {
		row.Candidates = refill(&s.candidates, d.candidates)
	}
	if d.Status == decision.StatusNone && d.Action != "" {
		d.Status = decision.OK
	}
	s.answer(&d.Decision)
	row.Backend, row.Artefact.StrategyVersion = f.text(slogBackend), f.text(slogStrategyVersion)
	row.Applied, row.Latency, row.Propensity = snapshot.Applied(f.text(slogApplied)), d.latency, d.propensity
	if name := f.text(slogScenario); name != "" {
		g.scenario = name
	}
	if e := f.text(slogEntity); e != "" {
		g.entity, g.hasEntity = e, true
	}
	for _, a := range f.attrs {
		g.attrs[a.at] = a.v
	}
}
