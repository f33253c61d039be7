package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// cellKind says what a column's bytes are.
type cellKind uint8

const (
	cellNull cellKind = iota
	// cellText is text, UTF-8.
	cellText
	// cellJSON is a JSON value as it stands.
	cellJSON
)

// exportColumn is one column of an export: value appends what a row has in it to dst.
// Columns of one group follow each other.
type exportColumn struct {
	group, name string
	value       func(dst []byte, p *pair) ([]byte, cellKind)
}

// path is the column's name in a flat table.
func (c *exportColumn) path() string {
	if c.group == "" {
		return c.name
	}
	return c.group + "." + c.name
}

type snap = snapshot.Snapshot

// exportColumns is every column of schema version 1, in the order of the file's columns,
// under the names that 'clefbench record' reads.
func exportColumns(schema *decision.Schema) []exportColumn {
	var out []exportColumn
	for _, part := range [][]exportColumn{identityColumns(), attrColumns(schema), bodyColumns(),
		choiceColumns(), artefactColumns(), measureColumns(), tailColumns(), labelColumns()} {
		out = append(out, part...)
	}
	return out
}

func identityColumns() []exportColumn {
	return []exportColumn{
		textColumn("id", func(s *snap) string { return s.ID.String() }),
		textColumn("request_id", func(s *snap) string { return s.RequestID.String() }),
		textColumn("source_id", func(s *snap) string { return s.SourceID }),
		textColumn("status", func(s *snap) string { return s.Status.String() }),
		textColumn("question", func(s *snap) string { return s.Question }),
		textColumn("question_type", func(s *snap) string { return string(s.QuestionType) }),
		textColumn("ts", func(s *snap) string { return instantText(s.Time) }),
		textColumn("scenario", func(s *snap) string { return s.Scenario }),
		hexColumn("entity_hash", func(s *snap) ([]byte, bool) { return s.Entity.V[:], s.Entity.Set }),
	}
}

func attrColumns(schema *decision.Schema) []exportColumn {
	out := make([]exportColumn, schema.Len())
	for i, f := range schema.Fields() {
		out[i] = exportColumn{"attrs", f.Name, func(dst []byte, p *pair) ([]byte, cellKind) {
			return appendAttr(dst, p.row.Attrs.At(i))
		}}
	}
	return out
}

func appendAttr(dst []byte, v decision.Value) ([]byte, cellKind) {
	switch v.Type() {
	case decision.Bool:
		return strconv.AppendBool(dst, v.Bool()), cellJSON
	case decision.Int:
		return strconv.AppendInt(dst, v.Int(), 10), cellJSON
	case decision.Double:
		return appendFloat(dst, v.Double(), 64)
	case decision.String:
		return appendText(dst, v.Str()), cellText
	}
	return dst, cellNull
}

func bodyColumns() []exportColumn {
	in := func(s *snap) []byte { return s.Input }
	out := func(s *snap) []byte { return s.Output }
	return []exportColumn{
		bodyColumn("input", in), base64Column("input_base64", in),
		bodyColumn("output", out), base64Column("output_base64", out),
		hexColumn("input_digest", func(s *snap) ([]byte, bool) { return s.InputDigest.V[:], s.InputDigest.Set }),
		hexColumn("output_digest", func(s *snap) ([]byte, bool) { return s.OutputDigest.V[:], s.OutputDigest.Set }),
		intColumn("", "input_len", func(s *snap) decision.Opt[int64] { return s.InputLen }),
		snapColumn("candidates", func(dst []byte, s *snap) ([]byte, cellKind) { return appendCandidates(dst, s.Candidates) }),
		boolColumn("forced", func(s *snap) decision.Opt[bool] { return s.Forced }),
		snapColumn("features", func(dst []byte, s *snap) ([]byte, cellKind) { return appendFeatures(dst, s.Features) }),
		textColumn("feature_set", func(s *snap) string { return s.FeatureSet }),
	}
}

func choiceColumns() []exportColumn {
	params := func(s *snap) string { return s.Params }
	return []exportColumn{
		textColumn("action", func(s *snap) string { return s.Action }),
		jsonColumn("params", params), looseColumn("params_text", params),
		textColumn("applied", func(s *snap) string { return string(s.Applied) }),
		floatColumn("confidence", func(s *snap) decision.Opt[float64] { return s.Confidence }),
		textColumn("confidence_def", func(s *snap) string { return s.ConfidenceDef }),
		textColumn("reason", func(s *snap) string {
			if s.Reason == decision.ReasonNone {
				return ""
			}
			return s.Reason.String()
		}),
		textColumn("rule_id", func(s *snap) string { return s.RuleID }),
	}
}

func artefactColumns() []exportColumn {
	return []exportColumn{
		textColumn("provider", func(s *snap) string { return s.Artefact.Provider }),
		intColumn("", "http_status", func(s *snap) decision.Opt[int16] {
			return decision.Opt[int16]{V: s.Artefact.HTTPStatus, Set: s.Artefact.HTTPStatus != 0}
		}),
		textColumn("backend", func(s *snap) string { return s.Backend }),
		textColumn("dialect", func(s *snap) string { return s.Artefact.Dialect }),
		textColumn("engine_version", func(s *snap) string { return s.Artefact.EngineVersion }),
		textColumn("model_requested", func(s *snap) string { return s.Artefact.ModelRequested }),
		textColumn("model_resolved", func(s *snap) string { return s.Artefact.ModelResolved }),
		textColumn("strategy_version", func(s *snap) string { return s.Artefact.StrategyVersion }),
		hexColumn("strategy_digest", func(s *snap) ([]byte, bool) {
			return s.Artefact.StrategyDigest[:], s.Artefact.StrategyDigest != [32]byte{}
		}),
	}
}

func measureColumns() []exportColumn {
	return []exportColumn{
		intColumn("", "latency_ns", func(s *snap) decision.Opt[time.Duration] { return s.Latency }),
		intColumn("stages", "queue", func(s *snap) decision.Opt[time.Duration] { return s.Stages.Queue }),
		intColumn("stages", "features", func(s *snap) decision.Opt[time.Duration] { return s.Stages.Features }),
		intColumn("stages", "rules", func(s *snap) decision.Opt[time.Duration] { return s.Stages.Rules }),
		intColumn("stages", "model", func(s *snap) decision.Opt[time.Duration] { return s.Stages.Model }),
		intColumn("stages", "transport", func(s *snap) decision.Opt[time.Duration] { return s.Stages.Transport }),
		intColumn("stages", "serialise", func(s *snap) decision.Opt[time.Duration] { return s.Stages.Serialise }),
		boolColumn("cold", func(s *snap) decision.Opt[bool] { return s.Cold }),
		intColumn("", "attempts", func(s *snap) decision.Opt[int8] { return s.Attempts }),
		floatColumn("propensity", func(s *snap) decision.Opt[float64] { return s.Propensity }),
		textColumn("propensity_kind", func(s *snap) string { return string(s.PropensityKind) }),
		floatColumn("keep_prob", func(s *snap) decision.Opt[float64] { return decision.Some(s.KeepProb) }),
		intColumn("", "tokens_in", func(s *snap) decision.Opt[int64] { return s.Usage.TokensIn }),
		intColumn("", "tokens_out", func(s *snap) decision.Opt[int64] { return s.Usage.TokensOut }),
		intColumn("", "bytes_in", func(s *snap) decision.Opt[int64] { return s.Usage.BytesIn }),
		intColumn("", "bytes_out", func(s *snap) decision.Opt[int64] { return s.Usage.BytesOut }),
		intColumn("", "cpu_ns", func(s *snap) decision.Opt[time.Duration] { return s.Usage.CPU }),
		intColumn("", "cost_nano", func(s *snap) decision.Opt[int64] { return s.Cost }),
	}
}

func tailColumns() []exportColumn {
	nd := func(s *snap) string { return s.ND }
	use := textColumn("training_use", func(s *snap) string { return s.Terms.TrainingUse })
	publishable := textColumn("publishable", func(s *snap) string { return s.Terms.Publishable })
	use.group, publishable.group = "terms", "terms"
	return []exportColumn{
		textColumn("error", func(s *snap) string { return s.Error }),
		textColumn("error_code", func(s *snap) string { return s.ErrorCode }),
		hexColumn("trace_id", func(s *snap) ([]byte, bool) { return s.TraceID.V[:], s.TraceID.Set }),
		hexColumn("span_id", func(s *snap) ([]byte, bool) { return s.SpanID.V[:], s.SpanID.Set }),
		jsonColumn("nd", nd), looseColumn("nd_text", nd),
		use, publishable,
		snapColumn("redacted", func(dst []byte, s *snap) ([]byte, cellKind) { return appendTexts(dst, s.Redacted) }),
	}
}

// labelColumns are the truth that came later; a row without a label has none of them.
func labelColumns() []exportColumn {
	text := func(name string, at func(*snapshot.Label) string) exportColumn {
		return labelColumn(name, func(dst []byte, l *snapshot.Label) ([]byte, cellKind) { return textCell(dst, at(l)) })
	}
	return []exportColumn{
		text("action", func(l *snapshot.Label) string { return l.Action }),
		labelColumn("utilities", func(dst []byte, l *snapshot.Label) ([]byte, cellKind) { return appendUtilities(dst, l.Utilities) }),
		labelColumn("reward", func(dst []byte, l *snapshot.Label) ([]byte, cellKind) {
			if !l.Reward.Set {
				return dst, cellNull
			}
			return appendFloat(dst, l.Reward.V, 64)
		}),
		text("source", func(l *snapshot.Label) string { return l.Source }),
		text("ts", func(l *snapshot.Label) string {
			if l.Time.IsZero() {
				return ""
			}
			return instantText(l.Time)
		}),
		text("key", func(l *snapshot.Label) string { return l.Key }),
	}
}

func labelColumn(name string, value func([]byte, *snapshot.Label) ([]byte, cellKind)) exportColumn {
	return exportColumn{"label", name, func(dst []byte, p *pair) ([]byte, cellKind) {
		if p.label == nil {
			return dst, cellNull
		}
		return value(dst, p.label)
	}}
}

func snapColumn(name string, value func([]byte, *snap) ([]byte, cellKind)) exportColumn {
	return exportColumn{"", name, func(dst []byte, p *pair) ([]byte, cellKind) { return value(dst, p.row) }}
}

// textColumn is a text of the row; empty is null.
func textColumn(name string, at func(*snap) string) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) { return textCell(dst, at(s)) })
}

func textCell(dst []byte, text string) ([]byte, cellKind) {
	if text == "" {
		return dst, cellNull
	}
	return appendText(dst, text), cellText
}

func hexColumn(name string, at func(*snap) ([]byte, bool)) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		b, ok := at(s)
		if !ok {
			return dst, cellNull
		}
		return hex.AppendEncode(dst, b), cellText
	})
}

func intColumn[T ~int64 | ~int16 | ~int8](group, name string, at func(*snap) decision.Opt[T]) exportColumn {
	return exportColumn{group, name, func(dst []byte, p *pair) ([]byte, cellKind) {
		o := at(p.row)
		if !o.Set {
			return dst, cellNull
		}
		return strconv.AppendInt(dst, int64(o.V), 10), cellJSON
	}}
}

func floatColumn(name string, at func(*snap) decision.Opt[float64]) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		o := at(s)
		if !o.Set {
			return dst, cellNull
		}
		return appendFloat(dst, o.V, 64)
	})
}

func boolColumn(name string, at func(*snap) decision.Opt[bool]) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		o := at(s)
		if !o.Set {
			return dst, cellNull
		}
		return strconv.AppendBool(dst, o.V), cellJSON
	})
}

// bodyColumn is a body that is text, and base64Column the same body where it is not.
func bodyColumn(name string, at func(*snap) []byte) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		b := at(s)
		if b == nil || !utf8.Valid(b) {
			return dst, cellNull
		}
		return append(dst, b...), cellText
	})
}

func base64Column(name string, at func(*snap) []byte) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		b := at(s)
		if utf8.Valid(b) {
			return dst, cellNull
		}
		return base64.StdEncoding.AppendEncode(dst, b), cellText
	})
}

// jsonColumn is a text that is JSON and may stand in a line as it is; looseColumn is the
// same text where it may not.
func jsonColumn(name string, at func(*snap) string) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		text := at(s)
		if !fitsLine(text) {
			return dst, cellNull
		}
		return append(dst, text...), cellJSON
	})
}

func looseColumn(name string, at func(*snap) string) exportColumn {
	return snapColumn(name, func(dst []byte, s *snap) ([]byte, cellKind) {
		text := at(s)
		if fitsLine(text) {
			return dst, cellNull
		}
		return textCell(dst, text)
	})
}

// fitsLine reports whether text is one JSON value, not null, without space around it or
// line breaks in it, so that a reader of the line gets back these very bytes.
func fitsLine(text string) bool {
	b := []byte(text)
	return text != "null" && json.Valid(b) && utf8.Valid(b) && len(bytes.TrimSpace(b)) == len(b) && !bytes.ContainsAny(b, "\r\n")
}

// appendText copies text; bytes that are no UTF-8, which only foreign writers leave,
// become U+FFFD.
func appendText(dst []byte, text string) []byte {
	if utf8.ValidString(text) {
		return append(dst, text...)
	}
	return append(dst, bytes.ToValidUTF8([]byte(text), []byte("\uFFFD"))...)
}

func instantText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// appendFloat writes the shortest number that reads back as the same value, with a
// fraction or an exponent, so that doubles look like doubles. JSON has no NaN and no
// infinities: those are the texts NaN, Infinity and -Infinity.
func appendFloat(dst []byte, v float64, bits int) ([]byte, cellKind) {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...), cellText
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...), cellText
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...), cellText
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, v, 'g', -1, bits)
	if !bytes.ContainsAny(dst[at:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst, cellJSON
}

// appendNumber writes a float inside a JSON value.
func appendNumber(dst []byte, v float64, bits int) []byte {
	at := len(dst)
	dst, kind := appendFloat(dst, v, bits)
	if kind == cellText {
		return appendJSONText(dst[:at], []byte(string(dst[at:])))
	}
	return dst
}

func appendCandidates(dst []byte, cs []decision.Candidate) ([]byte, cellKind) {
	if cs == nil {
		return dst, cellNull
	}
	dst = append(dst, '[')
	for i := range cs {
		c := &cs[i]
		dst = append(separate(dst, i), `{"action":`...)
		dst = appendJSONText(dst, appendText(nil, c.Action))
		if c.Score.Set {
			dst = appendNumber(append(dst, `,"score":`...), float64(c.Score.V), 32)
		}
		if c.Probability.Set {
			dst = appendNumber(append(dst, `,"probability":`...), c.Probability.V, 64)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), cellJSON
}

func appendFeatures(dst []byte, fs []float32) ([]byte, cellKind) {
	if fs == nil {
		return dst, cellNull
	}
	dst = append(dst, '[')
	for i, f := range fs {
		dst = appendNumber(separate(dst, i), float64(f), 32)
	}
	return append(dst, ']'), cellJSON
}

func appendTexts(dst []byte, list []string) ([]byte, cellKind) {
	if list == nil {
		return dst, cellNull
	}
	dst = append(dst, '[')
	for i, text := range list {
		dst = appendJSONText(separate(dst, i), appendText(nil, text))
	}
	return append(dst, ']'), cellJSON
}

func appendUtilities(dst []byte, us []snapshot.ActionUtility) ([]byte, cellKind) {
	if us == nil {
		return dst, cellNull
	}
	dst = append(dst, '[')
	for i, u := range us {
		dst = append(separate(dst, i), `{"action":`...)
		dst = appendJSONText(dst, appendText(nil, u.Action))
		dst = append(appendNumber(append(dst, `,"utility":`...), u.Utility, 64), '}')
	}
	return append(dst, ']'), cellJSON
}

func separate(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}
