package recorder

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/snapshot"
)

const plantedLabel = "sk-TiY7rQaB3dE5gHaB3dE5"

// everyLabel is a row with a text in every label, the text of a field by its name.
func everyLabel(text func(field string) string) *snapshot.Snapshot {
	s := row(1)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; {
			case name == "Ref" || name == "Attrs":
			case v.Field(i).Kind() == reflect.String:
				v.Field(i).SetString(text(name))
			case name == "Artefact" || name == "Terms":
				fill(v.Field(i))
			}
		}
	}
	fill(reflect.ValueOf(s).Elem())
	s.Candidates = []decision.Candidate{{Action: "allow"}, {Action: text("Action")}, {Action: text("other")}}
	s.Redacted = []string{text("Redacted")}
	return s
}

// cleaned are the ways by which complete rows come.
func cleaned(t *testing.T, s *snapshot.Snapshot) map[string]*snapshot.Snapshot {
	t.Helper()
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{All: true, Input: true, Output: true}})
	r.Record(context.Background(), s.Clone())
	closeNow(t, r)
	own := s.Clone()
	var rd Redactor
	if err := rd.Redact(own); err != nil {
		t.Fatal(err)
	}
	return map[string]*snapshot.Snapshot{"Record": sink.all()[0], "Redactor": own}
}

// A column of labels that is added to the row and forgotten fails here.
func TestLabelsLoseTheirSecrets(t *testing.T) {
	s := everyLabel(func(field string) string { return plantedLabel + field })
	for way, got := range cleaned(t, s) {
		if text := texts(reflect.ValueOf(got)); strings.Contains(text, plantedLabel) {
			t.Errorf("%s: %s", way, text)
		}
		for _, column := range []string{"action", "candidates", "question", "scenario", "backend", "rule_id", "model_requested", "model_resolved", "engine_version",
			"strategy_version", "source_id", "feature_set", "error_code", "confidence_def", "applied", "provider", "dialect", "terms", "question_type", "propensity_kind"} {
			if !slices.Contains(got.Redacted, column+":api-key") {
				t.Errorf("%s: no note of %s in %v", way, column, got.Redacted)
			}
		}
		// The action is that candidate, and two candidates are two.
		if got.Action != got.Candidates[1].Action || got.Candidates[1].Action == got.Candidates[2].Action || got.Candidates[0].Action != "allow" {
			t.Errorf("%s: %s of %v", way, got.Action, got.Candidates)
		}
		if err := got.Validate(); err != nil {
			t.Error(err)
		}
		before := fmt.Sprint(got)
		for way, again := range cleaned(t, got) {
			if fmt.Sprint(again) != before {
				t.Errorf("%s changes it again: %+v", way, again)
			}
		}
	}
	ordinary := everyLabel(func(field string) string { return "ordinary-" + field })
	for way, got := range cleaned(t, ordinary) {
		if fmt.Sprint(got.Redacted) != "[ordinary-Redacted]" || got.Action != "ordinary-Action" || got.Candidates[2].Action != "ordinary-other" {
			t.Errorf("%s: %+v", way, got)
		}
	}
}

// A caller cannot rename the actions of a service by naming one as a password; a value
// that looks drawn is looked for in labels, too.
func TestLabelsAndEchoes(t *testing.T) {
	s := row(1)
	s.Input = []byte(`{"password":"challenge","token":"zX81kk02qq"}`)
	s.Action, s.RuleID, s.Params = "challenge", "rule-zX81kk02qq", `{"then":"challenge"}`
	for way, got := range cleaned(t, s) {
		if got.Action != "challenge" || got.RuleID != "rule-[redacted:credential]" || strings.Contains(got.Params, "challenge") {
			t.Errorf("%s: %+v", way, got)
		}
	}
}

// Rows of one request are looked through as one, also where they come one by one.
func TestEchoesInLaterRowsOfARequest(t *testing.T) {
	rows := []*snapshot.Snapshot{row(1), row(2), row(3)}
	rows[1].RequestID = rows[0].RequestID
	rows[0].Input = []byte(`{"password":"hunter2hunter"}`)
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{All: true, Input: true}})
	var rd Redactor
	for _, s := range rows[1:] {
		s.Params = `{"x":"hunter2hunter"}`
	}
	for _, s := range rows {
		r.Record(context.Background(), s.Clone())
		if err := rd.Redact(s); err != nil {
			t.Fatal(err)
		}
	}
	closeNow(t, r)
	for _, rows := range [][]*snapshot.Snapshot{rows, sink.all()} {
		if rows[1].Params != `{"x":"[redacted:credential]"}` || rows[2].Params != `{"x":"hunter2hunter"}` {
			t.Errorf("%s, %s", rows[1].Params, rows[2].Params)
		}
	}
}

// A value that the body names is looked for in the attributes, though they come first.
func TestEchoesInAttributes(t *testing.T) {
	schema, _ := decision.NewSchema(decision.Field{Name: "a", Type: decision.String}, decision.Field{Name: "raw", Type: decision.String})
	s := row(1)
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("it is hunter2hunter"), decision.StringValue("hunter2hunter")}}
	s.Input = []byte(`{"a":"it is hunter2hunter","password":"hunter2hunter"}`)
	for way, got := range cleaned(t, s) {
		if fmt.Sprint(got.Attrs.Values) != "[it is [redacted:credential] [redacted:credential]]" || strings.Contains(string(got.Input), "hunter") ||
			!slices.Contains(got.Redacted, "a:credential") {
			t.Errorf("%s: %+v", way, got)
		}
	}
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{Input: true, Fields: []CaptureField{{Name: "a", Type: decision.String}, {Name: "raw", Type: decision.String, Raw: true}}}})
	r.Record(context.Background(), s)
	closeNow(t, r)
	if got := sink.all()[0]; fmt.Sprint(got.Attrs.Values) != "[it is [redacted:credential] hunter2hunter]" {
		t.Errorf("by list: %v", got.Attrs.Values)
	}
}

func TestNamesOfAttributesThatHoldSecrets(t *testing.T) {
	const name = "note.AKIAIOSFODNN7EXAMPLE"
	schema, _ := decision.NewSchema(decision.Field{Name: "a", Type: decision.String}, decision.Field{Name: name, Type: decision.String},
		decision.Field{Name: "b", Type: decision.String})
	s := row(1)
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("1"), decision.StringValue("x"), decision.StringValue("2")}}
	for way, got := range cleaned(t, s) {
		if got.Attrs.Schema.Len() != 2 || len(got.Attrs.Values) != 2 || got.Attrs.Get("a").Str() != "1" || got.Attrs.Get("b").Str() != "2" ||
			fmt.Sprint(got.Redacted) != "[note.[redacted:api-key]:drop]" {
			t.Errorf("%s: %+v", way, got)
		}
	}
	_, err := New(&memory{}, Options{Capture: Capture{Fields: []CaptureField{{Name: name, Type: decision.String}}}})
	if !errors.Is(err, ErrOptions) || strings.Contains(err.Error(), "AKIA") {
		t.Errorf("a list that names it: %v", err)
	}
}

// BenchmarkCleanLabels is what the labels of a row cost the drain: all that a model's
// answer has, and three candidates.
func BenchmarkCleanLabels(b *testing.B) {
	s := benchRow()
	s.SourceID, s.Question, s.RuleID, s.Backend, s.ConfidenceDef = "550e8400-e29b-41d4-a716-446655440000", "routing", "edge/overload-3", "incumbent", "probability"
	s.Artefact = decision.Artefact{Provider: "anyone", EngineVersion: "v1.14.2", StrategyVersion: "2026-11-30.4", ModelRequested: "model-large-2", ModelResolved: "model-large-2-20260901"}
	s.Candidates[2].Action = "review-by-hand"
	var scan secret.Scanner
	b.ReportAllocs()
	for b.Loop() {
		cleanLabels(s, nil, &scan)
	}
}
