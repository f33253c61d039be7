package replay

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// emitRecorded yields what production chose, as production measured it: its latency
// is the recorded one, and nothing is executed again.
func (r *runner) emitRecorded(lane *competitor, q *request, set func(*snapshot.Outcome)) bool {
	for _, s := range q.rows {
		r.out = snapshot.Outcome{
			Ref: s.Ref, ID: s.ID, RequestID: s.RequestID, Scenario: s.Scenario, Question: s.Question,
			Entity: s.Entity, KeepProb: s.KeepProb,
			Backend: lane.Name, Kind: lane.kind,
			Status: s.Status, Action: s.Action, Params: s.Params,
			Confidence: s.Confidence, ConfidenceDef: s.ConfidenceDef,
			Reason: s.Reason, RuleID: s.RuleID,
			Candidates: judged(s.Candidates), Artefact: s.Artefact,
			Latency: s.Latency, Stages: s.Stages, Attempts: s.Attempts,
			Usage: s.Usage, Cost: s.Cost,
			Error: s.Error, ErrorCode: s.ErrorCode, Recorded: s.Action,
		}
		set(&r.out)
		if !r.yield(&r.out, nil) {
			return false
		}
	}
	return true
}

// judged returns the candidates only when production judged them: an action set without
// a score or a probability says nothing about the backend.
func judged(cs []decision.Candidate) []decision.Candidate {
	for _, c := range cs {
		if c.Score.Set || c.Probability.Set {
			return cs
		}
	}
	return nil
}
