package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// line is one recorded decision as a JSON line; docs/formats/record.md describes it.
type line struct {
	ID           decision.ID                `json:"id"`
	RequestID    decision.ID                `json:"request_id"`
	SourceID     string                     `json:"source_id"`
	Time         *time.Time                 `json:"ts"`
	Scenario     string                     `json:"scenario"`
	Question     string                     `json:"question"`
	QuestionType decision.QuestionType      `json:"question_type"`
	Entity       string                     `json:"entity"`
	Attrs        map[string]json.RawMessage `json:"attrs"`
	Input        json.RawMessage            `json:"input"`
	Output       json.RawMessage            `json:"output"`
	Candidates   []lineCandidate            `json:"candidates"`
	Features     []float32                  `json:"features"`
	FeatureSet   string                     `json:"feature_set"`

	Status        string          `json:"status"`
	Action        string          `json:"action"`
	Params        json.RawMessage `json:"params"`
	Applied       string          `json:"applied"`
	Confidence    *float64        `json:"confidence"`
	ConfidenceDef string          `json:"confidence_def"`
	Reason        string          `json:"reason"`
	RuleID        string          `json:"rule_id"`
	Error         string          `json:"error"`
	ErrorCode     string          `json:"error_code"`

	Backend         string `json:"backend"`
	EngineVersion   string `json:"engine_version"`
	StrategyVersion string `json:"strategy_version"`
	StrategyDigest  string `json:"strategy_digest"`
	ModelRequested  string `json:"model_requested"`
	ModelResolved   string `json:"model_resolved"`

	LatencyNs      *int64   `json:"latency_ns"`
	Propensity     *float64 `json:"propensity"`
	PropensityKind string   `json:"propensity_kind"`
	KeepProb       *float64 `json:"keep_prob"`
	TokensIn       *int64   `json:"tokens_in"`
	TokensOut      *int64   `json:"tokens_out"`
	CostNano       *int64   `json:"cost_nano"`

	lineColumns
}

// lineCandidate is an action, as text or with what production thought of it.
type lineCandidate struct{ decision.Candidate }

func (c *lineCandidate) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Action)
	}
	var full struct {
		Action      string   `json:"action"`
		Score       *float32 `json:"score"`
		Probability *float64 `json:"probability"`
	}
	if err := strictJSON(b, &full); err != nil {
		return err
	}
	c.Candidate = decision.Candidate{Action: full.Action, Score: opt(full.Score), Probability: opt(full.Probability)}
	return nil
}

func opt[T any](p *T) decision.Opt[T] {
	if p == nil {
		return decision.Opt[T]{}
	}
	return decision.Some(*p)
}

// strictJSON decodes exactly one value and refuses unknown fields.
func strictJSON(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value on the line")
	}
	return nil
}

// plain puts the decoder's errors into words without Go types.
func plain(err error) error {
	var kind *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("a decision is a JSON object, this is %s", article(kind.Value))
	case errors.As(err, &kind):
		return fmt.Errorf("%s is %s", kind.Field, article(kind.Value))
	case errors.As(err, &when):
		return fmt.Errorf("ts is %s, not a time such as 2026-01-02T03:04:05.000000006Z", when.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the line ends inside the object")
	}
	return err
}

// article says what kind of JSON value was found.
func article(kind string) string {
	switch kind[0] {
	case 'a', 'o':
		return "an " + kind + ", which does not fit"
	}
	return "a " + kind + ", which does not fit"
}

// lineReader turns JSON lines into snapshots. Its attribute schema grows with the
// lines; numbers are doubles unless declared, because 1 and 1.5 may stand for the same
// attribute in two lines.
type lineReader struct {
	declared map[string]decision.Type
	schema   *decision.Schema
	key      []byte
	now      func() time.Time
	fields   map[string]bool // the names of line, as they must be written
	labels   int64           // lines with a label, which is not recorded
}

func newLineReader(declared map[string]decision.Type, key []byte, now func() time.Time) *lineReader {
	r := &lineReader{declared: declared, key: key, now: now, fields: map[string]bool{}}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[line]()) {
		r.fields[f.Tag.Get("json")] = true
	}
	delete(r.fields, "") // the embedded struct
	return r
}

// read fills s from one line.
func (r *lineReader) read(b []byte, s *snapshot.Snapshot) error {
	var l line
	if err := strictJSON(b, &l); err != nil {
		return fmt.Errorf("not a decision: %w", plain(err))
	}
	if err := exactJSON(b, r.fields); err != nil {
		return fmt.Errorf("not a decision: %w", err)
	}
	*s = snapshot.Snapshot{}
	r.identity(&l, s)
	if err := l.choice(s); err != nil {
		return err
	}
	if err := l.provenance(s); err != nil {
		return err
	}
	if err := l.columns(s); err != nil {
		return err
	}
	if err := r.attributes(l.Attrs, s); err != nil {
		return err
	}
	if isValue(l.Label) {
		r.labels++
	}
	if err := l.ranges(); err != nil {
		return err
	}
	return s.Validate()
}

// ranges checks what a row could hold but a line cannot mean.
func (l *line) ranges() error {
	for _, f := range []struct {
		name string
		v    *int64
	}{{"latency_ns", l.LatencyNs}, {"tokens_in", l.TokensIn}, {"tokens_out", l.TokensOut}, {"cost_nano", l.CostNano}} {
		if f.v != nil && *f.v < 0 {
			return fmt.Errorf("%s %d is negative", f.name, *f.v)
		}
	}
	if l.Confidence != nil && !(*l.Confidence >= 0 && *l.Confidence <= 1) {
		return fmt.Errorf("confidence %v is not in [0,1]", *l.Confidence)
	}
	if l.Candidates != nil && len(l.Candidates) == 0 {
		return errors.New("candidates is empty; leave it out where any action was allowed")
	}
	seen := map[string]bool{}
	for _, c := range l.Candidates {
		if seen[c.Action] {
			return fmt.Errorf("candidate %q stands twice", c.Action)
		}
		seen[c.Action] = true
		if p := c.Probability; p.Set && !(p.V >= 0 && p.V <= 1) {
			return fmt.Errorf("probability %v of %q is not in [0,1]", p.V, c.Action)
		}
	}
	return nil
}

func (r *lineReader) identity(l *line, s *snapshot.Snapshot) {
	s.Time = r.now()
	if l.Time != nil {
		s.Time = *l.Time
	}
	s.Time = s.Time.UTC()
	s.ID, s.RequestID, s.SourceID = l.ID, l.RequestID, l.SourceID
	if s.ID.IsZero() {
		s.ID = decision.NewID(s.Time)
	}
	if s.RequestID.IsZero() {
		s.RequestID = s.ID
	}
	s.Scenario, s.Question, s.QuestionType = l.Scenario, l.Question, l.QuestionType
	if l.Entity != "" {
		mac := hmac.New(sha256.New, r.key)
		mac.Write([]byte(l.Entity))
		s.Entity = decision.Some([8]byte(mac.Sum(nil)[:8]))
	}
	s.Features, s.FeatureSet = l.Features, l.FeatureSet
	s.Input, s.Output = rawBody(l.Input), rawBody(l.Output)
	if s.Input != nil {
		s.InputLen = decision.Some(int64(len(s.Input)))
	}
}

// rawBody keeps a JSON value byte for byte; a JSON text becomes the bytes it stands for.
func rawBody(b json.RawMessage) []byte {
	var text string
	switch {
	case len(b) == 0 || string(b) == "null":
		return nil
	case b[0] == '"' && json.Unmarshal(b, &text) == nil:
		return []byte(text)
	}
	return b
}

func (l *line) choice(s *snapshot.Snapshot) (err error) {
	for _, c := range l.Candidates {
		s.Candidates = append(s.Candidates, c.Candidate)
	}
	s.Action, s.Params = l.Action, string(l.Params)
	s.Confidence, s.ConfidenceDef = opt(l.Confidence), l.ConfidenceDef
	s.Applied, s.RuleID = snapshot.Applied(l.Applied), l.RuleID
	s.Error, s.ErrorCode = l.Error, l.ErrorCode
	switch {
	case l.Status != "":
		s.Status, err = decision.ParseStatus(l.Status)
	case l.Action != "":
		s.Status = decision.OK
	default:
		err = errors.New("neither status nor action")
	}
	if err == nil && l.Reason != "" {
		s.Reason, err = decision.ParseReason(l.Reason)
	}
	return err
}

func (l *line) provenance(s *snapshot.Snapshot) error {
	s.Backend = l.Backend
	s.Artefact = decision.Artefact{EngineVersion: l.EngineVersion, StrategyVersion: l.StrategyVersion,
		ModelRequested: l.ModelRequested, ModelResolved: l.ModelResolved}
	if l.StrategyDigest != "" {
		n, err := hex.Decode(s.Artefact.StrategyDigest[:], []byte(l.StrategyDigest[:min(64, len(l.StrategyDigest))]))
		if err != nil || n != 32 || len(l.StrategyDigest) != 64 {
			return errors.New("strategy_digest is not 64 hexadecimal digits")
		}
	}
	if l.LatencyNs != nil {
		s.Latency = decision.Some(time.Duration(*l.LatencyNs))
	}
	s.Propensity, s.PropensityKind = opt(l.Propensity), snapshot.PropensityKind(l.PropensityKind)
	s.KeepProb = 1
	if l.KeepProb != nil {
		s.KeepProb = *l.KeepProb
	}
	s.Usage.TokensIn, s.Usage.TokensOut = opt(l.TokensIn), opt(l.TokensOut)
	s.Cost = opt(l.CostNano)
	return nil
}

// attributes fills the row's attributes, and first lets the schema grow by new names.
func (r *lineReader) attributes(in map[string]json.RawMessage, s *snapshot.Snapshot) error {
	names := slices.Sorted(maps.Keys(in))
	values := make([]decision.Value, len(names))
	var fresh []decision.Field
	for i, name := range names {
		want := r.declared[name]
		at := r.schema.Index(name)
		if at >= 0 {
			want = r.schema.Fields()[at].Type
		}
		v, err := attrValue(in[name], want)
		if err != nil {
			return fmt.Errorf("attrs.%s: %w", name, err)
		}
		if values[i] = v; at < 0 && !v.IsNull() {
			fresh = append(fresh, decision.Field{Name: name, Type: v.Type()})
		}
	}
	if len(fresh) > 0 {
		grown, err := decision.NewSchema(append(slices.Clone(r.schema.Fields()), fresh...)...)
		if err != nil {
			return err
		}
		r.schema = grown
	}
	s.Attrs = decision.Attrs{Schema: r.schema, Values: make([]decision.Value, r.schema.Len())}
	for i, name := range names {
		if at := r.schema.Index(name); at >= 0 {
			s.Attrs.Values[at] = values[i]
		}
	}
	return nil
}

// attrValue reads a JSON scalar as the wanted type; Null wants whatever it is.
func attrValue(b json.RawMessage, want decision.Type) (decision.Value, error) {
	var x any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&x); err != nil {
		return decision.Value{}, err
	}
	var v decision.Value
	switch x := x.(type) {
	case nil:
		return v, nil
	case bool:
		v = decision.BoolValue(x)
	case string:
		v = decision.StringValue(x)
		if d, ok := notANumber(x); ok && want == decision.Double {
			v = d
		}
	case json.Number:
		if i, err := x.Int64(); err == nil && want == decision.Int {
			return decision.IntValue(i), nil
		}
		f, err := x.Float64()
		if err != nil || math.IsInf(f, 0) {
			return v, fmt.Errorf("number %s is out of range", x)
		}
		v = decision.DoubleValue(f)
	default:
		return v, errors.New("attributes are text, numbers, true or false; write nested values as a.b")
	}
	if want == decision.Null {
		return v, nil
	}
	if out, ok := v.Convert(want); ok {
		return out, nil
	}
	return v, fmt.Errorf("%v where earlier lines or --attr have %v", v.Type(), want)
}
