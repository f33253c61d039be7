package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/open-policy-agent/opa/v1/plugins/logs"

	"github.com/clefbench/clefbench/snapshot"
)

// The chunk encoder of OPA's decision log, which is not exported. It is reached by name, so
// that what is measured is the real one and not the plugin around it with its queue, its
// masking and its uploads. (Symbols of the standard library are closed to this; those of
// other modules are not.)

//go:linkname newChunkEncoder github.com/open-policy-agent/opa/v1/plugins/logs.newChunkEncoder
func newChunkEncoder(limit int64) unsafe.Pointer

//go:linkname encodeChunk github.com/open-policy-agent/opa/v1/plugins/logs.(*chunkEncoder).Encode
func encodeChunk(enc unsafe.Pointer, event logs.EventV1, eventBytes []byte) ([][]byte, error)

//go:linkname flushChunk github.com/open-policy-agent/opa/v1/plugins/logs.(*chunkEncoder).Flush
func flushChunk(enc unsafe.Pointer) ([][]byte, error)

// defaultLimit is OPA's default of upload_size_limit_bytes.
const defaultLimit = 32 << 10

// decisionLog encodes rows as OPA's plugin does: an event each, marshalled, into gzipped
// chunks of at most limit bytes. It lives on, since it adapts to what it sees.
type decisionLog struct {
	encoder unsafe.Pointer
	chunk   func([]byte) error
}

func newDecisionLog(limit int64, chunk func([]byte) error) *decisionLog {
	return &decisionLog{newChunkEncoder(limit), chunk}
}

// add encodes rows; inputs are the parsed inputs, which OPA has at hand.
func (d *decisionLog) add(rows []snapshot.Snapshot, inputs []any) error {
	for i := range rows {
		e := event(&rows[i], &inputs[i])
		b, err := json.Marshal(&e)
		if err != nil {
			return err
		}
		if err := d.emit(encodeChunk(d.encoder, e, b)); err != nil {
			return err
		}
	}
	return nil
}

// flush ends the last chunk.
func (d *decisionLog) flush() error { return d.emit(flushChunk(d.encoder)) }

func (d *decisionLog) emit(chunks [][]byte, err error) error {
	for _, c := range chunks {
		if err := d.chunk(c); err != nil {
			return err
		}
	}
	return err
}

// event puts the filled fields of a row where OPA's event has a place for them.
func event(s *snapshot.Snapshot, input *any) logs.EventV1 {
	result := any(s.Action)
	actions, scores := make([]string, len(s.Candidates)), make([]float32, len(s.Candidates))
	for i, c := range s.Candidates {
		actions[i], scores[i] = c.Action, c.Score.V
	}
	return logs.EventV1{
		Labels:     map[string]string{"backend": s.Backend, "engine_version": s.Artefact.EngineVersion, "strategy_version": s.Artefact.StrategyVersion},
		DecisionID: hex.EncodeToString(s.ID[:]), TraceID: hex.EncodeToString(s.TraceID.V[:]), Path: s.Scenario,
		Input: input, Result: &result, Timestamp: s.Time,
		Metrics: map[string]any{"latency_ns": int64(s.Latency.V), "queue": int64(s.Stages.Queue.V), "features": int64(s.Stages.Features.V),
			"rules": int64(s.Stages.Rules.V), "serialise": int64(s.Stages.Serialise.V)},
		Custom: map[string]any{"request_id": hex.EncodeToString(s.RequestID[:]), "status": s.Status.String(), "actions": actions, "scores": scores,
			"features": s.Features, "confidence": s.Confidence.V, "propensity": s.Propensity.V, "keep_prob": s.KeepProb, "cost": s.Cost.V},
	}
}

// parse returns the inputs as OPA holds them while it decides.
func parse(rows []snapshot.Snapshot) ([]any, error) {
	inputs := make([]any, len(rows))
	for i := range rows {
		if err := json.Unmarshal(rows[i].Input, &inputs[i]); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return inputs, nil
}
