package arrowfile

import (
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

type (
	optDuration = decision.Opt[time.Duration]
	outcome     = snapshot.Outcome
	truth       = snapshot.Label
	utility     = snapshot.ActionUtility
)

func parseStatus(s string) (decision.Status, error)     { return decision.ParseStatus(s) }
func parseReason(s string) (decision.ReasonKind, error) { return decision.ParseReason(s) }

// outcomeFields is schema version 1 of outcomes. They are one file, which cannot start a
// new segment when a label is new: only sets that are closed by their type have a
// dictionary.
func outcomeFields() []field[outcome] {
	fields := []field[outcome]{
		text("segment", func(o *outcome) *string { return &o.Ref.Segment }).required(),
		number64("row", func(o *outcome) *int64 { return &o.Ref.Row }),
		uuid("id", func(o *outcome) *decision.ID { return &o.ID }).required(),
		uuid("request_id", func(o *outcome) *decision.ID { return &o.RequestID }).required(),
		text("scenario", func(o *outcome) *string { return &o.Scenario }).required(),
		text("question", func(o *outcome) *string { return &o.Question }),
		hash("entity", 8, func(o *outcome) ([]byte, *bool) { return o.Entity.V[:], &o.Entity.Set }),
		weight("keep_prob", func(o *outcome) *float64 { return &o.KeepProb }),
		text("backend", func(o *outcome) *string { return &o.Backend }).required(),
		text("kind", func(o *outcome) *string { return &o.Kind }),
		text("phase", func(o *outcome) *snapshot.Phase { return &o.Phase }),
		number32("repeat", func(o *outcome) *int32 { return &o.Repeat }),
		number32("block", func(o *outcome) *int32 { return &o.Block }),
		number32("position", func(o *outcome) *int32 { return &o.Position }),
	}
	fields = append(fields, answerFields()...)
	return append(fields, evidenceFields()...)
}

func answerFields() []field[outcome] {
	return []field[outcome]{
		enum("status", decision.Status.String, parseStatus, func(o *outcome) *decision.Status { return &o.Status }).required(),
		text("action", func(o *outcome) *string { return &o.Action }),
		text("params", func(o *outcome) *string { return &o.Params }),
		optFloat64("confidence", func(o *outcome) *decision.Opt[float64] { return &o.Confidence }),
		text("confidence_def", func(o *outcome) *string { return &o.ConfidenceDef }),
		enum("reason", decision.ReasonKind.String, parseReason, func(o *outcome) *decision.ReasonKind { return &o.Reason }),
		text("rule_id", func(o *outcome) *string { return &o.RuleID }),
		number32("skipped", func(o *outcome) *uint16 { return &o.Skipped }),
		list("candidates", func(o *outcome) *[]cand { return &o.Candidates }, group("item",
			text("action", func(c *cand) *string { return &c.Action }),
			optFloat32("score", func(c *cand) *decision.Opt[float32] { return &c.Score }),
			optFloat64("probability", func(c *cand) *decision.Opt[float64] { return &c.Probability }))),
		text("provider", func(o *outcome) *string { return &o.Artefact.Provider }),
		number16("http_status", func(o *outcome) *int16 { return &o.Artefact.HTTPStatus }),
		text("dialect", func(o *outcome) *string { return &o.Artefact.Dialect }),
		text("engine_version", func(o *outcome) *string { return &o.Artefact.EngineVersion }),
		text("model_requested", func(o *outcome) *string { return &o.Artefact.ModelRequested }),
		text("model_resolved", func(o *outcome) *string { return &o.Artefact.ModelResolved }),
		text("strategy_version", func(o *outcome) *string { return &o.Artefact.StrategyVersion }),
		digest("strategy_digest", func(o *outcome) *[32]byte { return &o.Artefact.StrategyDigest }),
	}
}

func evidenceFields() []field[outcome] {
	return []field[outcome]{
		optInt64("latency_ns", func(o *outcome) *optDuration { return &o.Latency }),
		stagesField(func(o *outcome) *decision.Stages { return &o.Stages }),
		optInt8("attempts", func(o *outcome) *decision.Opt[int8] { return &o.Attempts }),
		usageField(func(o *outcome) *decision.Usage { return &o.Usage }),
		optInt64("cost", func(o *outcome) *decision.Opt[int64] { return &o.Cost }),
		text("error", func(o *outcome) *string { return &o.Error }),
		text("error_code", func(o *outcome) *string { return &o.ErrorCode }),
		text("recorded", func(o *outcome) *string { return &o.Recorded }),
		optBool("identified", func(o *outcome) *decision.Opt[bool] { return &o.Identified }),
		optBool("explained", func(o *outcome) *decision.Opt[bool] { return &o.Explained }),
		optBool("complete", func(o *outcome) *decision.Opt[bool] { return &o.Complete }),
		list("missing", func(o *outcome) *[]string { return &o.Missing }, text("item", func(s *string) *string { return s })),
	}
}

// labelFields is schema version 1 of labels. A snapshot without a label is a row of nulls,
// so every column is nullable.
func labelFields() []field[truth] {
	row := number64("row", func(l *truth) *int64 { return &l.Ref.Row })
	row.shape.nullable = true
	u := leaf("utility", typeFloat64, 8,
		func(c *column, a *utility) { c.f64(a.Utility) },
		func(v *vector, i int, a *utility) { a.Utility = v.f64(i) })
	return []field[truth]{
		text("segment", func(l *truth) *string { return &l.Ref.Segment }),
		row,
		uuid("id", func(l *truth) *decision.ID { return &l.ID }),
		text("action", func(l *truth) *string { return &l.Action }),
		list("utilities", func(l *truth) *[]utility { return &l.Utilities },
			group("item", text("action", func(a *utility) *string { return &a.Action }), u)),
		optFloat64("reward", func(l *truth) *decision.Opt[float64] { return &l.Reward }),
		text("source", func(l *truth) *string { return &l.Source }),
		instant("ts", func(l *truth) *time.Time { return &l.Time }),
		text("key", func(l *truth) *string { return &l.Key }),
	}
}
