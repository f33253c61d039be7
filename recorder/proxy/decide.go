package proxy

import (
	"encoding/json"
	"strconv"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// decideRows makes the row of a POST /v1/decide.
func (p *Proxy) decideRows(a *attempt, s snapshot.Snapshot, redacted []string) []snapshot.Snapshot {
	req, err := remote.DecodeRequest(a.body.data)
	if err != nil {
		return []snapshot.Snapshot{p.unreadable(a, s, err, redacted)}
	}
	q := &req.Questions[0]
	s.ID, s.Backend, s.Artefact.Dialect = decision.NewID(a.start), p.backend(""), string(DialectDecide)
	if !req.ID.IsZero() {
		s.RequestID = req.ID
	}
	if req.Scenario != "" {
		s.Scenario = req.Scenario
	}
	if y := req.Now.Year(); y >= 1678 && y <= 2261 { // what a row can hold; absent is year 1
		s.Time = req.Now.Round(0).UTC() // the clock that the decision used, for its replay
	}
	s.Attrs = p.fields.join(s.Attrs.Values, req.Attrs)
	s.Features, s.FeatureSet = req.Features, req.FeatureSet
	s.ND = withSeed(s.ND, req.Seed)
	s.Question, s.QuestionType = q.ID, q.Type
	for _, name := range q.Candidates {
		s.Candidates = append(s.Candidates, decision.Candidate{Action: name})
	}
	if len(s.Candidates) > 0 {
		s.Forced = decision.Some(len(s.Candidates) == 1)
	}
	p.decided(&s, a, req)
	bodies(&s, a, redacted)
	return []snapshot.Snapshot{s}
}

// decided fills in the answer, as a careful client would take it.
func (p *Proxy) decided(s *snapshot.Snapshot, a *attempt, req *decision.Request) {
	if status, code, text := a.failure(); code != "" {
		fail(s, status, code, text)
		return
	}
	resp := decision.Response{Decisions: make([]decision.Decision, 1)}
	d := &resp.Decisions[0]
	if err := remote.DecodeAnswer(a.reply.data, d, &s.Artefact); err != nil {
		fail(s, decision.Error, decision.CodeBadResponse, err.Error())
		return
	}
	resp.Check(req)
	s.Status, s.Action, s.Params = d.Status, d.Action, d.Params
	s.Confidence, s.ConfidenceDef = d.Confidence, d.ConfidenceDef
	s.Reason, s.RuleID = d.Reason.Kind, d.Reason.Rule
	s.Error, s.ErrorCode = d.Error, d.ErrorCode
	if id := snapshotID(a.reply.data); id != "" {
		s.SourceID = id
	}
	judged := make(map[string]decision.Candidate, len(d.Candidates))
	for _, c := range d.Candidates {
		judged[c.Action] = c
	}
	for i, c := range s.Candidates {
		if j, ok := judged[c.Action]; ok {
			s.Candidates[i] = j
		}
	}
	if s.Candidates == nil {
		s.Candidates = d.Candidates
	}
}

// snapshotID is the id under which the service itself recorded the decision.
func snapshotID(body []byte) string {
	var v struct {
		SnapshotID string `json:"snapshot_id"`
	}
	if json.Unmarshal(body, &v) != nil {
		return ""
	}
	return v.SnapshotID
}

// withSeed adds the randomness that a decision was given to its tape.
func withSeed(tape string, seed uint64) string {
	if seed == 0 {
		return tape
	}
	s := `{"seed":` + strconv.FormatUint(seed, 10)
	if tape == "" {
		return s + "}"
	}
	return s + "," + tape[1:]
}
