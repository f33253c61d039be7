package peers

import (
	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// logRow is one structured log line with all filled fields, through the typed calls that
// cost zerolog the least: times as integers, ids as hex. The input is a string, since a
// recorder takes what a client sends.
func logRow(log *zerolog.Logger, s *snapshot.Snapshot) {
	logRest(log.Log().Bytes("input", s.Input), s)
}

// logRowRaw embeds the input as the JSON that it is here. Nothing checks that: a client that
// sends something else breaks the line, or writes lines of its own.
func logRowRaw(log *zerolog.Logger, s *snapshot.Snapshot) {
	logRest(log.Log().RawJSON("input", s.Input), s)
}

func logRest(e *zerolog.Event, s *snapshot.Snapshot) {
	e.Hex("id", s.ID[:]).Hex("request_id", s.RequestID[:]).Str("status", s.Status.String()).
		Int64("ts", s.Time.UnixNano()).Str("scenario", s.Scenario).Float64("keep_prob", s.KeepProb).
		Array("candidates", (*candidates)(&s.Candidates)).Floats32("features", s.Features).
		Str("action", s.Action).Float64("confidence", s.Confidence.V).Str("backend", s.Backend).
		Str("engine_version", s.Artefact.EngineVersion).Str("strategy_version", s.Artefact.StrategyVersion).
		Int64("latency_ns", int64(s.Latency.V)).Object("stages", (*stages)(&s.Stages)).
		Float64("propensity", s.Propensity.V).Int64("cost", s.Cost.V).Hex("trace_id", s.TraceID.V[:]).Send()
}

type candidates []decision.Candidate

// MarshalZerologArray adds the candidates. Array.Object would allocate for each.
func (c *candidates) MarshalZerologArray(a *zerolog.Array) {
	for i := range *c {
		a.Dict(zerolog.Dict().Str("action", (*c)[i].Action).Float32("score", (*c)[i].Score.V))
	}
}

type stages decision.Stages

// MarshalZerologObject adds the filled stages.
func (s *stages) MarshalZerologObject(e *zerolog.Event) {
	e.Int64("queue", int64(s.Queue.V)).Int64("features", int64(s.Features.V)).
		Int64("rules", int64(s.Rules.V)).Int64("serialise", int64(s.Serialise.V))
}

// zerologZstd returns an encoder of log lines in one zstd stream at the fastest level.
func zerologZstd(line func(*zerolog.Logger, *snapshot.Snapshot)) (func([]snapshot.Snapshot) (int64, error), error) {
	var out counter
	z, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return func(rows []snapshot.Snapshot) (int64, error) {
		out.bytes = 0
		z.Reset(&out)
		log := zerolog.New(z)
		for i := range rows {
			line(&log, &rows[i])
		}
		err := z.Close()
		return out.bytes, err
	}, nil
}
