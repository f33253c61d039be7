package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// lineColumns are the fields of a line that other tools seldom have: with them a line
// holds every column, so that what 'datasets export' prints can be recorded again.
type lineColumns struct {
	EntityHash   string          `json:"entity_hash"`
	InputBase64  []byte          `json:"input_base64"`
	OutputBase64 []byte          `json:"output_base64"`
	InputDigest  string          `json:"input_digest"`
	OutputDigest string          `json:"output_digest"`
	InputLen     *int64          `json:"input_len"`
	Forced       *bool           `json:"forced"`
	ParamsText   string          `json:"params_text"`
	Provider     string          `json:"provider"`
	HTTPStatus   int16           `json:"http_status"`
	Dialect      string          `json:"dialect"`
	Stages       lineStages      `json:"stages"`
	Cold         *bool           `json:"cold"`
	Attempts     *int8           `json:"attempts"`
	BytesIn      *int64          `json:"bytes_in"`
	BytesOut     *int64          `json:"bytes_out"`
	CPUNs        *int64          `json:"cpu_ns"`
	TraceID      string          `json:"trace_id"`
	SpanID       string          `json:"span_id"`
	ND           json.RawMessage `json:"nd"`
	NDText       string          `json:"nd_text"`
	Redacted     []string        `json:"redacted"`
	Terms        lineTerms       `json:"terms"`
	// Label is what an export has beside the columns; recording leaves it out.
	Label json.RawMessage `json:"label"`
}

// lineStages are the parts of the latency in nanoseconds.
type lineStages struct {
	Queue     *int64 `json:"queue"`
	Features  *int64 `json:"features"`
	Rules     *int64 `json:"rules"`
	Model     *int64 `json:"model"`
	Transport *int64 `json:"transport"`
	Serialise *int64 `json:"serialise"`
}

type lineTerms struct {
	TrainingUse string `json:"training_use"`
	Publishable string `json:"publishable"`
}

// columns fills the row from the rarer fields.
func (l *line) columns(s *snapshot.Snapshot) error {
	for _, step := range []func(*snapshot.Snapshot) error{l.once, l.negative, l.hashes} {
		if err := step(s); err != nil {
			return err
		}
	}
	s.Artefact.Provider, s.Artefact.HTTPStatus, s.Artefact.Dialect = l.Provider, l.HTTPStatus, l.Dialect
	s.Cold, s.Attempts, s.Forced = opt(l.Cold), opt(l.Attempts), opt(l.Forced)
	s.Usage.BytesIn, s.Usage.BytesOut, s.Usage.CPU = opt(l.BytesIn), opt(l.BytesOut), nanos(l.CPUNs)
	g := &l.Stages
	s.Stages = decision.Stages{Queue: nanos(g.Queue), Features: nanos(g.Features), Rules: nanos(g.Rules),
		Model: nanos(g.Model), Transport: nanos(g.Transport), Serialise: nanos(g.Serialise)}
	s.ND = l.NDText
	if isValue(l.ND) {
		s.ND = string(l.ND)
	}
	s.Params += l.ParamsText
	s.Redacted = l.Redacted
	s.Terms = snapshot.Terms(l.Terms)
	l.bodies(s)
	return nil
}

// once refuses two fields that fill one column.
func (l *line) once(*snapshot.Snapshot) error {
	for _, two := range []struct {
		a, b string
		both bool
	}{
		{"entity", "entity_hash", l.Entity != "" && l.EntityHash != ""},
		{"input", "input_base64", l.Input != nil && l.InputBase64 != nil},
		{"output", "output_base64", l.Output != nil && l.OutputBase64 != nil},
		{"params", "params_text", l.Params != nil && l.ParamsText != ""},
		{"nd", "nd_text", l.ND != nil && l.NDText != ""},
	} {
		if two.both {
			return fmt.Errorf("%s and %s stand for the same column", two.a, two.b)
		}
	}
	return nil
}

// negative refuses counts and durations below zero.
func (l *line) negative(*snapshot.Snapshot) error {
	g := &l.Stages
	for _, f := range []struct {
		name string
		v    *int64
	}{{"input_len", l.InputLen}, {"bytes_in", l.BytesIn}, {"bytes_out", l.BytesOut}, {"cpu_ns", l.CPUNs},
		{"stages.queue", g.Queue}, {"stages.features", g.Features}, {"stages.rules", g.Rules},
		{"stages.model", g.Model}, {"stages.transport", g.Transport}, {"stages.serialise", g.Serialise}} {
		if f.v != nil && *f.v < 0 {
			return fmt.Errorf("%s %d is negative", f.name, *f.v)
		}
	}
	if l.Attempts != nil && *l.Attempts < 0 {
		return fmt.Errorf("attempts %d is negative", *l.Attempts)
	}
	return nil
}

// hashes reads the fields of a fixed number of hexadecimal digits.
func (l *line) hashes(s *snapshot.Snapshot) error {
	return errors.Join(
		hexField("entity_hash", l.EntityHash, &s.Entity.Set, s.Entity.V[:]),
		hexField("input_digest", l.InputDigest, &s.InputDigest.Set, s.InputDigest.V[:]),
		hexField("output_digest", l.OutputDigest, &s.OutputDigest.Set, s.OutputDigest.V[:]),
		hexField("trace_id", l.TraceID, &s.TraceID.Set, s.TraceID.V[:]),
		hexField("span_id", l.SpanID, &s.SpanID.Set, s.SpanID.V[:]))
}

func hexField(name, text string, set *bool, dst []byte) error {
	if text == "" {
		return nil
	}
	if len(text) != 2*len(dst) {
		return fmt.Errorf("%s is not %d hexadecimal digits", name, 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(text)); err != nil {
		return fmt.Errorf("%s is not %d hexadecimal digits", name, 2*len(dst))
	}
	*set = true
	return nil
}

// bodies takes the bodies that are no text, and the length of one that was cut.
func (l *line) bodies(s *snapshot.Snapshot) {
	if l.InputBase64 != nil {
		s.Input = l.InputBase64
		s.InputLen = decision.Some(int64(len(s.Input)))
	}
	if l.OutputBase64 != nil {
		s.Output = l.OutputBase64
	}
	if l.InputLen != nil {
		s.InputLen = decision.Some(*l.InputLen)
	}
}

// isValue reports whether a field stands in the line and is not null.
func isValue(b json.RawMessage) bool { return len(b) > 0 && string(b) != "null" }

func nanos(v *int64) decision.Opt[time.Duration] {
	if v == nil {
		return decision.Opt[time.Duration]{}
	}
	return decision.Some(time.Duration(*v))
}

// notANumber reads the texts that stand for doubles which JSON has no number for.
func notANumber(text string) (decision.Value, bool) {
	switch text {
	case "NaN":
		return decision.DoubleValue(math.NaN()), true
	case "Infinity":
		return decision.DoubleValue(math.Inf(1)), true
	case "-Infinity":
		return decision.DoubleValue(math.Inf(-1)), true
	}
	return decision.Value{}, false
}
