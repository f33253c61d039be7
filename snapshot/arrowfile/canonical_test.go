package arrowfile

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// The canonical form of a row, in which readers of different languages are compared:
// numbers as decimal text, bytes as hex, nulls as nil. It is written out by hand from the
// design's table, so that it checks the column names too.

type object = map[string]any

func canonText[S ~string](s S) any {
	if s == "" {
		return nil
	}
	return string(s)
}

func canonInt[T ~int8 | ~int16 | ~int32 | ~int64](o decision.Opt[T]) any {
	if !o.Set {
		return nil
	}
	return strconv.FormatInt(int64(o.V), 10)
}

func canonFloat(v float64) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func canonOptFloat(o decision.Opt[float64]) any {
	if !o.Set {
		return nil
	}
	return canonFloat(o.V)
}

func canonBool(o decision.Opt[bool]) any {
	if !o.Set {
		return nil
	}
	return o.V
}

func canonBytes(b []byte, set bool) any {
	if !set {
		return nil
	}
	return hex.EncodeToString(b)
}

func canonCandidates(cs []decision.Candidate) any {
	if cs == nil {
		return nil
	}
	out := make([]any, len(cs))
	for i, c := range cs {
		score := decision.Opt[float64]{V: float64(c.Score.V), Set: c.Score.Set}
		out[i] = object{"action": canonText(c.Action), "score": canonOptFloat(score), "probability": canonOptFloat(c.Probability)}
	}
	return out
}

func canonStrings(list []string) any {
	if list == nil {
		return nil
	}
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = canonText(s)
	}
	return out
}

func canonFeatures(fs []float32) any {
	if fs == nil {
		return nil
	}
	out := make([]any, len(fs))
	for i, f := range fs {
		out[i] = canonFloat(float64(f))
	}
	return out
}

func canonAttrs(a decision.Attrs) object {
	out := object{}
	for i, f := range a.Schema.Fields() {
		switch v := a.At(i); v.Type() {
		case decision.Null:
			out[f.Name] = nil
		case decision.Bool:
			out[f.Name] = v.Bool()
		case decision.Int:
			out[f.Name] = strconv.FormatInt(v.Int(), 10)
		case decision.Double:
			out[f.Name] = canonFloat(v.Double())
		default:
			out[f.Name] = v.Str()
		}
	}
	return out
}

func canonStages(s decision.Stages) object {
	return object{"queue": canonInt(s.Queue), "features": canonInt(s.Features), "rules": canonInt(s.Rules),
		"model": canonInt(s.Model), "transport": canonInt(s.Transport), "serialise": canonInt(s.Serialise)}
}

func canonUsage(u decision.Usage) object {
	return object{"tokens_in": canonInt(u.TokensIn), "tokens_out": canonInt(u.TokensOut), "bytes_in": canonInt(u.BytesIn),
		"bytes_out": canonInt(u.BytesOut), "cpu_ns": canonInt(u.CPU)}
}

func canonTerms(t snapshot.Terms) any {
	if t == (snapshot.Terms{}) {
		return nil
	}
	return "publishable=" + escape(t.Publishable) + "&training_use=" + escape(t.TrainingUse)
}

// escape is query escaping, for the characters that the generator makes.
func escape(s string) string {
	out := ""
	for _, b := range []byte(s) {
		switch {
		case b == ' ':
			out += "+"
		case b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-':
			out += string(rune(b))
		default:
			out += fmt.Sprintf("%%%02X", b)
		}
	}
	return out
}

func canonSnapshot(s *snapshot.Snapshot) object {
	a := s.Artefact
	row := object{
		"id": canonBytes(s.ID[:], true), "request_id": canonBytes(s.RequestID[:], true), "source_id": canonText(s.SourceID),
		"status": s.Status.String(), "question": canonText(s.Question), "question_type": canonText(s.QuestionType),
		"ts": strconv.FormatInt(s.Time.UnixNano(), 10), "scenario": s.Scenario,
		"entity": canonBytes(s.Entity.V[:], s.Entity.Set),
		"input":  canonBytes(s.Input, s.Input != nil), "output": canonBytes(s.Output, s.Output != nil),
		"input_digest":  canonBytes(s.InputDigest.V[:], s.InputDigest.Set),
		"output_digest": canonBytes(s.OutputDigest.V[:], s.OutputDigest.Set), "input_len": canonInt(s.InputLen),
		"candidates": canonCandidates(s.Candidates), "forced": canonBool(s.Forced),
		"features": canonFeatures(s.Features), "feature_set": canonText(s.FeatureSet),
		"action": canonText(s.Action), "params": canonText(s.Params), "applied": canonText(s.Applied),
		"confidence": canonOptFloat(s.Confidence), "confidence_def": canonText(s.ConfidenceDef),
		"reason": nil, "rule_id": canonText(s.RuleID), "provider": canonText(a.Provider), "http_status": nil,
		"backend": canonText(s.Backend), "dialect": canonText(a.Dialect), "engine_version": canonText(a.EngineVersion),
		"model_requested": canonText(a.ModelRequested), "model_resolved": canonText(a.ModelResolved),
		"strategy_version": canonText(a.StrategyVersion),
		"strategy_digest":  canonBytes(a.StrategyDigest[:], a.StrategyDigest != [32]byte{}),
		"latency_ns":       canonInt(s.Latency), "stages": canonStages(s.Stages), "cold": canonBool(s.Cold),
		"attempts": canonInt(s.Attempts), "propensity": canonOptFloat(s.Propensity),
		"propensity_kind": canonText(s.PropensityKind), "keep_prob": canonFloat(s.KeepProb), "usage": canonUsage(s.Usage),
		"cost": canonInt(s.Cost), "error": canonText(s.Error), "error_code": canonText(s.ErrorCode),
		"trace_id": canonBytes(s.TraceID.V[:], s.TraceID.Set), "span_id": canonBytes(s.SpanID.V[:], s.SpanID.Set),
		"nd": canonText(s.ND), "redacted": canonStrings(s.Redacted), "terms": canonTerms(s.Terms),
	}
	if s.Reason != decision.ReasonNone {
		row["reason"] = s.Reason.String()
	}
	if a.HTTPStatus != 0 {
		row["http_status"] = strconv.Itoa(int(a.HTTPStatus))
	}
	if s.Attrs.Schema.Len() > 0 {
		row["attrs"] = canonAttrs(s.Attrs)
	}
	return row
}

// arrowValue is the canonical form of one value of an array of the Arrow library.
func arrowValue(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Dictionary:
		return arrowValue(a.Dictionary(), a.GetValueIndex(i))
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return hex.EncodeToString(a.Value(i))
	case *array.Boolean:
		return a.Value(i)
	case *array.Float32:
		return canonFloat(float64(a.Value(i)))
	case *array.Float64:
		return canonFloat(a.Value(i))
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Struct:
		out := object{}
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			out[f.Name] = arrowValue(a.Field(k), i)
		}
		return out
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := make([]any, 0, to-from)
		for j := from; j < to; j++ {
			out = append(out, arrowValue(a.ListValues(), int(j)))
		}
		return out
	default:
		return a.ValueStr(i) // integers
	}
}

// normal turns a canonical row into what a JSON decoder returns.
func normal(v any) object {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out object
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}
