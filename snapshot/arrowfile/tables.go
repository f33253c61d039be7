package arrowfile

import (
	"fmt"
	"net/url"
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

type (
	snap = snapshot.Snapshot
	cand = decision.Candidate
)

// snapshotFields is schema version 1 of snapshots: every column of the design's table.
// A nil or empty schema has no attrs column, because a struct without fields is beyond
// some readers.
func snapshotFields(attrs *decision.Schema) []field[snap] {
	fields := []field[snap]{
		uuid("id", func(s *snap) *decision.ID { return &s.ID }).required(),
		uuid("request_id", func(s *snap) *decision.ID { return &s.RequestID }).required(),
		text("source_id", func(s *snap) *string { return &s.SourceID }),
		enum("status", decision.Status.String, parseStatus, func(s *snap) *decision.Status { return &s.Status }).required(),
		label("question", func(s *snap) *string { return &s.Question }),
		label("question_type", func(s *snap) *decision.QuestionType { return &s.QuestionType }),
		instant("ts", func(s *snap) *time.Time { return &s.Time }).required(),
		label("scenario", func(s *snap) *string { return &s.Scenario }).required(),
		hash("entity", func(s *snap) *decision.Opt[[8]byte] { return &s.Entity }),
	}
	if attrs.Len() > 0 {
		fields = append(fields, attrsField(attrs))
	}
	fields = append(fields, bodyFields()...)
	fields = append(fields, choiceFields()...)
	return append(fields, runFields()...)
}

func bodyFields() []field[snap] {
	return []field[snap]{
		blob("input", func(s *snap) *[]byte { return &s.Input }),
		blob("output", func(s *snap) *[]byte { return &s.Output }),
		hash("input_digest", func(s *snap) *decision.Opt[[32]byte] { return &s.InputDigest }),
		hash("output_digest", func(s *snap) *decision.Opt[[32]byte] { return &s.OutputDigest }),
		optInt64("input_len", func(s *snap) *decision.Opt[int64] { return &s.InputLen }),
		list("candidates", func(s *snap) *[]cand { return &s.Candidates }, group("item",
			label("action", func(c *cand) *string { return &c.Action }),
			optFloat32("score", func(c *cand) *decision.Opt[float32] { return &c.Score }),
			optFloat64("probability", func(c *cand) *decision.Opt[float64] { return &c.Probability }))),
		optBool("forced", func(s *snap) *decision.Opt[bool] { return &s.Forced }),
		floats("features", func(s *snap) *[]float32 { return &s.Features }),
		label("feature_set", func(s *snap) *string { return &s.FeatureSet }),
	}
}

func choiceFields() []field[snap] {
	return []field[snap]{
		label("action", func(s *snap) *string { return &s.Action }),
		text("params", func(s *snap) *string { return &s.Params }),
		label("applied", func(s *snap) *snapshot.Applied { return &s.Applied }),
		optFloat64("confidence", func(s *snap) *decision.Opt[float64] { return &s.Confidence }),
		label("confidence_def", func(s *snap) *string { return &s.ConfidenceDef }),
		enum("reason", decision.ReasonKind.String, parseReason, func(s *snap) *decision.ReasonKind { return &s.Reason }),
		label("rule_id", func(s *snap) *string { return &s.RuleID }),
		label("provider", func(s *snap) *string { return &s.Artefact.Provider }),
		number16("http_status", func(s *snap) *int16 { return &s.Artefact.HTTPStatus }),
		label("backend", func(s *snap) *string { return &s.Backend }),
		label("dialect", func(s *snap) *string { return &s.Artefact.Dialect }),
		label("engine_version", func(s *snap) *string { return &s.Artefact.EngineVersion }),
		label("model_requested", func(s *snap) *string { return &s.Artefact.ModelRequested }),
		label("model_resolved", func(s *snap) *string { return &s.Artefact.ModelResolved }),
		label("strategy_version", func(s *snap) *string { return &s.Artefact.StrategyVersion }),
		digest("strategy_digest", func(s *snap) *[32]byte { return &s.Artefact.StrategyDigest }),
	}
}

func runFields() []field[snap] {
	return []field[snap]{
		optInt64("latency_ns", func(s *snap) *optDuration { return &s.Latency }),
		stagesField(func(s *snap) *decision.Stages { return &s.Stages }),
		optBool("cold", func(s *snap) *decision.Opt[bool] { return &s.Cold }),
		optInt8("attempts", func(s *snap) *decision.Opt[int8] { return &s.Attempts }),
		optFloat64("propensity", func(s *snap) *decision.Opt[float64] { return &s.Propensity }),
		label("propensity_kind", func(s *snap) *snapshot.PropensityKind { return &s.PropensityKind }),
		weight("keep_prob", func(s *snap) *float64 { return &s.KeepProb }),
		usageField(func(s *snap) *decision.Usage { return &s.Usage }),
		optInt64("cost", func(s *snap) *decision.Opt[int64] { return &s.Cost }),
		text("error", func(s *snap) *string { return &s.Error }),
		label("error_code", func(s *snap) *string { return &s.ErrorCode }),
		hash("trace_id", func(s *snap) *decision.Opt[[16]byte] { return &s.TraceID }),
		hash("span_id", func(s *snap) *decision.Opt[[8]byte] { return &s.SpanID }),
		text("nd", func(s *snap) *string { return &s.ND }),
		terms("terms", func(s *snap) *string { return &s.Terms.TrainingUse }, func(s *snap) *string { return &s.Terms.Publishable }),
		redactedField(),
	}
}

// terms is the label of both of a provider's terms, as a query string.
func terms[R any](name string, use, publishable func(*R) *string) field[R] {
	f := label(name, use).unless(guardNone, 0)
	// other is the way from one place to the other.
	other := int(place(publishable) - place(use))
	last, lastUse, lastPub := "", "", ""
	f.put = func(c *column, p unsafe.Pointer) {
		u, pub := *(*string)(p), *(*string)(unsafe.Add(p, other))
		if u == "" && pub == "" {
			return
		}
		if u != lastUse || pub != lastPub || last == "" {
			last, lastUse, lastPub = url.Values{"training_use": {u}, "publishable": {pub}}.Encode(), u, pub
		}
		c.label(last)
	}
	f.bind = func(s *spec, v *vector, out loads) (loads, error) {
		codes, table, err := parseLabels(v, url.ParseQuery)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		return append(out, load{v, s.at, func(v *vector, from int, p places) {
			for i := range p.n {
				u, pub := (*string)(p.at(i)), (*string)(unsafe.Add(p.at(i), other))
				if *u, *pub = "", ""; v.ok(from + i) {
					q := table[codes(from+i)]
					*u, *pub = q.Get("training_use"), q.Get("publishable")
				}
			}
		}}), nil
	}
	return f
}

// stagesField and usageField serve snapshots and outcomes alike.
func stagesField[R any](at func(*R) *decision.Stages) field[R] {
	return group("stages",
		optInt64("queue", func(r *R) *optDuration { return &at(r).Queue }),
		optInt64("features", func(r *R) *optDuration { return &at(r).Features }),
		optInt64("rules", func(r *R) *optDuration { return &at(r).Rules }),
		optInt64("model", func(r *R) *optDuration { return &at(r).Model }),
		optInt64("transport", func(r *R) *optDuration { return &at(r).Transport }),
		optInt64("serialise", func(r *R) *optDuration { return &at(r).Serialise }))
}

func usageField[R any](at func(*R) *decision.Usage) field[R] {
	return group("usage",
		optInt64("tokens_in", func(r *R) *decision.Opt[int64] { return &at(r).TokensIn }),
		optInt64("tokens_out", func(r *R) *decision.Opt[int64] { return &at(r).TokensOut }),
		optInt64("bytes_in", func(r *R) *decision.Opt[int64] { return &at(r).BytesIn }),
		optInt64("bytes_out", func(r *R) *decision.Opt[int64] { return &at(r).BytesOut }),
		optInt64("cpu_ns", func(r *R) *optDuration { return &at(r).CPU }))
}

// redactedField also says which values of the row lost invalid UTF-8 ("error:utf8"). It
// is the last column, so that all others have been put before it.
func redactedField() field[snap] {
	f := list("redacted", func(s *snap) *[]string { return &s.Redacted }, label("item", func(s *string) *string { return s }))
	f = f.unless(guardNone, 0)
	put := f.put
	f.put = func(c *column, p unsafe.Pointer) {
		list := (*[]string)(p)
		if mended := *c.mended; len(mended) > 0 {
			longer := append([]string(nil), *list...)
			for _, path := range mended {
				longer = append(longer, path+":utf8")
			}
			list = &longer
		}
		if *list != nil {
			put(c, unsafe.Pointer(list))
		}
	}
	return f
}

// attrsField is the struct of the captured attributes. A row's values are a part of one
// slice for the block of rows that is being read.
func attrsField(schema *decision.Schema) field[snap] {
	fields := make([]field[snap], schema.Len())
	for i, f := range schema.Fields() {
		typ, width := attrType(f.Type)
		fields[i] = leaf[snap](f.Name, typ, width, uintptr(i)*unsafe.Sizeof(decision.Value{}), nil, loadValue)
	}
	f := group("attrs", fields...)
	f.at, f.put, f.putsChildren = place(func(s *snap) *decision.Attrs { return &s.Attrs }), putAttrs, true
	f.bind = func(s *spec, v *vector, out loads) (loads, error) {
		inner, err := bindGroup(s, v, nil)
		n := schema.Len()
		values := make([]decision.Value, blockRows*n)
		return append(out, load{v, s.at, func(_ *vector, from int, p places) {
			for i := range p.n {
				*(*decision.Attrs)(p.at(i)) = decision.Attrs{Schema: schema, Values: values[i*n : (i+1)*n : (i+1)*n]}
			}
			inner.fill(from, places{unsafe.Pointer(&values[0]), uintptr(n) * unsafe.Sizeof(values[0]), p.n})
		}}), err
	}
	return f
}

func attrType(t decision.Type) (dataType, int) {
	switch t {
	case decision.Bool:
		return typeBool, 0
	case decision.Int:
		return typeInt64, 8
	case decision.Double:
		return typeFloat64, 8
	default:
		return typeUTF8, 0
	}
}

// attrSchema rebuilds the capture list from the columns of a file; nil when there is none.
func attrSchema(columns []*shape) (*decision.Schema, error) {
	for _, s := range columns {
		if s.name != "attrs" || s.typ != typeStruct {
			continue
		}
		fields := make([]decision.Field, len(s.children))
		for i, k := range s.children {
			t, ok := valueType(k.typ)
			if !ok {
				return nil, fmt.Errorf("%w: attribute %q is %v", ErrSchema, k.name, k.typ)
			}
			fields[i] = decision.Field{Name: k.name, Type: t}
		}
		schema, err := decision.NewSchema(fields...)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSchema, err)
		}
		return schema, nil
	}
	return nil, nil
}

func valueType(t dataType) (decision.Type, bool) {
	switch t {
	case typeBool:
		return decision.Bool, true
	case typeInt64:
		return decision.Int, true
	case typeFloat64:
		return decision.Double, true
	case typeUTF8:
		return decision.String, true
	}
	return decision.Null, false
}

// checkAttrs refuses values that the capture list has no column for.
func checkAttrs(a decision.Attrs) error {
	fields := a.Schema.Fields()
	if len(a.Values) > len(fields) {
		return fmt.Errorf("%w: %d attribute values for a capture list of %d", snapshot.ErrInvalid, len(a.Values), len(fields))
	}
	for i := range a.Values {
		if t := a.Values[i].Type(); t != decision.Null && t != fields[i].Type {
			return fmt.Errorf("%w: attribute %q is %v in the capture list and %v in the row",
				snapshot.ErrInvalid, fields[i].Name, fields[i].Type, t)
		}
	}
	return nil
}

// sameSchema reports whether two capture lists have the same attributes in one order.
func sameSchema(a, b *decision.Schema) bool {
	if a == b {
		return true
	}
	if a.Len() != b.Len() {
		return false
	}
	for i, f := range a.Fields() {
		if b.Fields()[i] != f {
			return false
		}
	}
	return true
}

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
		hash("entity", func(o *outcome) *decision.Opt[[8]byte] { return &o.Entity }),
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
		count("skipped", func(o *outcome) *uint16 { return &o.Skipped }),
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
	u := weight("utility", func(a *utility) *float64 { return &a.Utility })
	u.shape.nullable = true
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
