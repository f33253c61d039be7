package proxy

import (
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/backends/systemone"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// questionRows makes one row of each question of a SystemOne or Decisions request.
func (p *Proxy) questionRows(a *attempt, base snapshot.Snapshot, req *systemone.Request, redacted []string) []snapshot.Snapshot {
	model := req.Model
	if model == "" {
		model = a.model
	}
	base.Artefact.ModelRequested, base.Artefact.Dialect = model, string(req.Dialect)
	base.Backend = p.backend(model)
	status, code, text := a.failure()
	var resp *systemone.Response
	if code == "" {
		var err error
		switch resp, err = systemone.ParseResponse(a.reply.data, limits(p.opts.MaxBody)); {
		case err != nil:
			status, code, text = decision.Error, decision.CodeBadResponse, err.Error()
		case resp.Failure != nil:
			status, code, text = decision.Error, CodeProvider, describe(*resp.Failure, "the body says that there is no answer")
			redacted = p.cleanFailure(a, redacted)
			resp = nil
		default:
			described(&base, resp)
		}
	}
	rows := make([]snapshot.Snapshot, len(req.Questions))
	for i := range rows {
		q, row := &req.Questions[i], &rows[i]
		*row = base
		row.ID = decision.NewID(a.start)
		ask(row, q)
		if code != "" {
			fail(row, status, code, text)
		} else {
			answer(row, q, resp.Answer(q, i))
		}
	}
	bodies(&rows[0], a, redacted)
	return rows
}

// cleanFailure strips a failure that came with status 200 as any other.
func (p *Proxy) cleanFailure(a *attempt, redacted []string) []string {
	stripped, n, err := systemone.StripEchoes(a.reply.data, limits(p.opts.MaxBody))
	if err != nil {
		a.reply.data = nil
		return append(redacted, "output:drop")
	}
	if a.reply.data = stripped; n > 0 {
		redacted = append(redacted, "output:echo")
	}
	return redacted
}

// modelBeside finds the model where the body has none: Vercel's header, Cloudflare's path.
func modelBeside(a *attempt) string {
	if m := a.header.Get("Ai-Model-Id"); m != "" {
		return m
	}
	if _, m, ok := strings.Cut(a.path, "/ai/run/"); ok {
		return m
	}
	return ""
}

// described takes over what a response says beside its answers.
func described(s *snapshot.Snapshot, r *systemone.Response) {
	s.Artefact.ModelResolved = r.Model
	if r.Provider != "" {
		s.Artefact.Provider = r.Provider
	}
	s.Usage.TokensIn, s.Usage.TokensOut = r.TokensIn, r.TokensOut
	if r.Cost.Set {
		s.Cost = r.Cost
	}
	if s.SourceID == "" {
		s.SourceID = r.ID
	}
}

// ask fills in what a question offers.
func ask(row *snapshot.Snapshot, q *systemone.Question) {
	row.Question, row.QuestionType = q.ID, q.Kind
	if q.Kind == "" {
		row.QuestionType = decision.QuestionType(q.Type)
	}
	for _, name := range q.Candidates() {
		if name != "" { // no row can hold it; the body has it
			row.Candidates = append(row.Candidates, decision.Candidate{Action: name})
		}
	}
	if len(row.Candidates) > 0 {
		row.Forced = decision.Some(len(row.Candidates) == 1)
	}
}

// answer fills in what was answered. A noul chooses yes from 0.5 on, a score its most
// probable level; the numbers themselves stand in the candidates and in params.
func answer(row *snapshot.Snapshot, q *systemone.Question, a *systemone.Answer) {
	if a == nil {
		fail(row, decision.Error, decision.CodeBadResponse, "the question got no answer")
		return
	}
	if err := a.Check(q); err != nil {
		code := decision.CodeBadResponse
		if a.Kind == decision.QuestionChoice && a.Kind == q.Kind && a.Choice != "" {
			code = decision.CodeActionNotAllowed
		}
		fail(row, decision.Error, code, err.Error())
		return
	}
	if a.Refused {
		row.Status = decision.Denied
		return
	}
	row.Status, row.Reason = decision.OK, decision.ReasonModel
	if a.Confidence.Set {
		row.Confidence, row.ConfidenceDef = a.Confidence, string(systemone.DefinitionGiven)
	}
	switch a.Kind {
	case decision.QuestionNoul:
		row.Action = systemone.No
		if a.Noul.V >= 0.5 {
			row.Action = systemone.Yes
		}
		row.Candidates[0].Probability = a.Noul
		row.Candidates[1].Probability = decision.Some(withoutDust(1 - a.Noul.V))
		return
	case decision.QuestionChoice:
		row.Action = a.Choice
	case decision.QuestionScore:
		row.Action, _ = a.Level()
		if a.Score.Set {
			row.Params = `{"score":` + strconv.FormatFloat(a.Score.V, 'g', -1, 64) + `}`
		}
	default:
		fail(row, decision.NotReplayable, CodeUnknownType, "a question of type "+q.Type)
		return
	}
	probabilities(row, a)
}

// probabilities gives the candidates theirs, and the answer's own order where the
// question does not say what was offered.
func probabilities(row *snapshot.Snapshot, a *systemone.Answer) {
	if row.Candidates == nil {
		for _, p := range a.Probabilities {
			row.Candidates = append(row.Candidates, decision.Candidate{Action: p.Name, Probability: decision.Some(p.P)})
		}
		return
	}
	given := make(map[string]float64, len(a.Probabilities))
	for _, p := range a.Probabilities {
		given[p.Name] = p.P
	}
	for i := range row.Candidates {
		if x, ok := given[row.Candidates[i].Action]; ok {
			row.Candidates[i].Probability = decision.Some(x)
		}
	}
}
