package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// sameAnswer compares what a caller would act on; measured times, usage and error texts
// may differ.
func sameAnswer(want, got *decision.Response) error {
	if len(want.Decisions) != len(got.Decisions) {
		return fmt.Errorf("%d decisions, then %d", len(want.Decisions), len(got.Decisions))
	}
	for i := range want.Decisions {
		if w, g := answer(&want.Decisions[i]), answer(&got.Decisions[i]); w != g {
			return fmt.Errorf("question %d: the answer was\n\t%s\nand is now\n\t%s", i, w, g)
		}
	}
	return nil
}

func answer(d *decision.Decision) string {
	return fmt.Sprintf("%v %q params %s confidence %v %q reason %v code %q candidates %v",
		d.Status, d.Action, d.Params, d.Confidence, d.ConfidenceDef, d.Reason, d.ErrorCode, d.Candidates)
}

func validResponse(r *decision.Response) error {
	for i := range r.Decisions {
		if err := validDecision(&r.Decisions[i]); err != nil {
			return fmt.Errorf("question %d: %w", i, err)
		}
	}
	s := r.Stages
	for _, d := range []decision.Opt[time.Duration]{s.Queue, s.Features, s.Rules, s.Model, s.Transport, s.Serialise, r.Usage.CPU} {
		if d.Set && d.V < 0 {
			return fmt.Errorf("a stage of %v", d.V)
		}
	}
	if r.Attempts < 0 {
		return fmt.Errorf("%d attempts", r.Attempts)
	}
	return nil
}

func validDecision(d *decision.Decision) error {
	if err := validStatus(d); err != nil {
		return err
	}
	if d.Params != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(d.Params), &object); err != nil || object == nil {
			return fmt.Errorf("params %q are no JSON object", d.Params)
		}
	}
	if d.Confidence.Set && (!inUnit(d.Confidence.V) || d.ConfidenceDef == "") {
		return fmt.Errorf("confidence %v under the definition %q", d.Confidence.V, d.ConfidenceDef)
	}
	return validCandidates(d.Candidates)
}

func validStatus(d *decision.Decision) error {
	switch {
	case d.Status == decision.StatusNone || d.Status > decision.NotReplayable:
		return fmt.Errorf("status %v", d.Status)
	case d.Status == decision.OK && d.Action == "":
		return errors.New("status ok without an action")
	case d.Status != decision.OK && d.Status != decision.Denied && d.Action != "":
		return fmt.Errorf("status %v with the action %q", d.Status, d.Action)
	case d.Status.Answered() && (d.ErrorCode != "" || d.Error != ""):
		return fmt.Errorf("status %v with the error code %q", d.Status, d.ErrorCode)
	case !d.Status.Answered() && d.ErrorCode == "":
		return fmt.Errorf("status %v without an error code", d.Status)
	}
	return nil
}

// inUnit is false for NaN.
func inUnit(x float64) bool { return x >= 0 && x <= 1 }

// validCandidates allows a sum above 1 as far as two-decimal rounding explains it.
func validCandidates(cs []decision.Candidate) error {
	sum := 0.0
	var seen []string
	for _, c := range cs {
		switch {
		case c.Action == "" || slices.Contains(seen, c.Action):
			return fmt.Errorf("candidate %q stands twice or has no name", c.Action)
		case c.Probability.Set && !inUnit(c.Probability.V):
			return fmt.Errorf("candidate %q has probability %v", c.Action, c.Probability.V)
		case c.Score.Set && c.Score.V != c.Score.V:
			return fmt.Errorf("candidate %q has score NaN", c.Action)
		}
		seen = append(seen, c.Action)
		sum += c.Probability.V
	}
	if limit := 1 + 0.005*float64(len(cs)) + 1e-9; sum > limit {
		return fmt.Errorf("the probabilities add up to %v", sum)
	}
	return nil
}

// Marks that no backend gives by itself.
const (
	markText   = "backendtest-left-over"
	markNumber = 7_777_777_777
)

// dirty returns a response that looks as if an earlier call had set everything.
func dirty(n int) *decision.Response {
	r := &decision.Response{
		Artefact: decision.Artefact{EngineVersion: markText, StrategyVersion: markText, StrategyDigest: markDigest(), ModelRequested: markText,
			ModelResolved: markText, Provider: markText, Dialect: markText, HTTPStatus: 7777},
		Usage:    decision.Usage{TokensIn: decision.Some[int64](markNumber), TokensOut: decision.Some[int64](markNumber), BytesIn: decision.Some[int64](markNumber), BytesOut: decision.Some[int64](markNumber), CPU: decision.Some[time.Duration](markNumber)},
		Cost:     decision.Some[int64](markNumber),
		Attempts: markNumber,
	}
	for _, s := range stages(r) {
		*s = decision.Some[time.Duration](markNumber)
	}
	for range n {
		r.Decisions = append(r.Decisions, decision.Decision{
			Status: decision.Denied, Action: markText, Params: markText, Confidence: decision.Some[float64](markNumber), ConfidenceDef: markText,
			Reason:     decision.Reason{Kind: decision.ReasonCached, Rule: markText, Skipped: 7777},
			Candidates: []decision.Candidate{{Action: markText}, {Action: markText}, {Action: markText}},
			ErrorCode:  markText, Error: markText,
		})
	}
	return r
}

func markDigest() [32]byte { return [32]byte{7, 7, 7, 7, 7, 7, 7, 7} }

func stages(r *decision.Response) []*decision.Opt[time.Duration] {
	s := &r.Stages
	return []*decision.Opt[time.Duration]{&s.Queue, &s.Features, &s.Rules, &s.Model, &s.Transport, &s.Serialise}
}

// leftover names the part of a response that still carries a mark of [dirty].
func leftover(r *decision.Response) string {
	a, u := &r.Artefact, &r.Usage
	if slices.Contains([]string{a.EngineVersion, a.StrategyVersion, a.ModelRequested, a.ModelResolved, a.Provider, a.Dialect}, markText) ||
		a.StrategyDigest == markDigest() || a.HTTPStatus == 7777 {
		return "artefact"
	}
	if slices.Contains([]int64{u.TokensIn.V, u.TokensOut.V, u.BytesIn.V, u.BytesOut.V, int64(u.CPU.V), r.Cost.V, int64(r.Attempts)}, markNumber) {
		return "usage, cost or attempts"
	}
	for _, s := range stages(r) {
		if s.V == markNumber {
			return "stages"
		}
	}
	for i := range r.Decisions {
		if part := leftoverDecision(&r.Decisions[i]); part != "" {
			return part
		}
	}
	return ""
}

func leftoverDecision(d *decision.Decision) string {
	if slices.Contains([]string{d.Action, d.Params, d.ConfidenceDef, d.Reason.Rule, d.ErrorCode, d.Error}, markText) ||
		d.Confidence.V == markNumber || d.Reason.Skipped == 7777 {
		return "decision"
	}
	for _, c := range d.Candidates {
		if c.Action == markText {
			return "candidates"
		}
	}
	return ""
}
