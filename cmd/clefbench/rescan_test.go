package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// The scan's hint is true: exported and recorded again, a data set is without what the scan
// found, whatever column it stood in.
func TestRecordedAgainNothingIsFound(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "note", Type: decision.String}, decision.Field{Name: "headers.cookie", Type: decision.String},
		decision.Field{Name: "AKIAIOSFODNN7EXAMPLE", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	var rows []*snapshot.Snapshot
	add := func(plant func(s *snapshot.Snapshot)) {
		n := len(rows) + 1
		s := &snapshot.Snapshot{ID: decision.ID{1, byte(n)}, RequestID: decision.ID{2, byte(n)}, Status: decision.OK, Action: "allow", Scenario: "s", KeepProb: 1,
			Time: everyColumn(t)[0].Time, Attrs: decision.Attrs{Schema: schema, Values: make([]decision.Value, 3)}}
		plant(s)
		rows = append(rows, s)
	}
	const key = plantedKey
	add(func(s *snapshot.Snapshot) { s.Attrs.Values[0] = decision.StringValue("use " + key) })
	add(func(s *snapshot.Snapshot) { s.Attrs.Values[1] = decision.StringValue("a=b") })
	add(func(s *snapshot.Snapshot) { s.Attrs.Values[2] = decision.StringValue("v") })
	add(func(s *snapshot.Snapshot) { s.Input = []byte(`{"password":"` + plantedPassword + `","` + key + `":1}`) })
	add(func(s *snapshot.Snapshot) { s.Output = []byte("{broken " + key) })
	add(func(s *snapshot.Snapshot) { s.Output = []byte("Authorization: Bearer " + key) })
	add(func(s *snapshot.Snapshot) { s.Params = `{"AKIAIOSFODNN7EXAMPLE":1,"` + key + `":2}` })
	add(func(s *snapshot.Snapshot) { s.ND = `{"now":{"api_key":"` + key + `"}}` })
	add(func(s *snapshot.Snapshot) { s.Error = "password=" + plantedPassword + " " + key })
	add(func(s *snapshot.Snapshot) {
		s.Candidates = []decision.Candidate{{Action: "allow"}, {Action: key}, {Action: key + "x"}}
	})
	add(func(s *snapshot.Snapshot) { s.Redacted = []string{"input:" + key} })
	add(func(s *snapshot.Snapshot) { s.Terms = snapshot.Terms{TrainingUse: key, Publishable: "a@b.co"} })
	labels := func(v func(s *snapshot.Snapshot) reflect.Value) {
		kind := v(&snapshot.Snapshot{}).Type()
		for i := range kind.NumField() {
			if kind.Field(i).Type.Kind() == reflect.String {
				switch kind.Field(i).Name {
				case "QuestionType", "PropensityKind", "Params", "ND", "Error": // closed, or above
				default:
					add(func(s *snapshot.Snapshot) { v(s).Field(i).SetString(key) })
				}
			}
		}
	}
	labels(func(s *snapshot.Snapshot) reflect.Value { return reflect.ValueOf(s).Elem() })
	labels(func(s *snapshot.Snapshot) reflect.Value { return reflect.ValueOf(&s.Artefact).Elem() })
	if len(rows) < 25 {
		t.Fatalf("%d rows", len(rows))
	}
	dir := t.TempDir()
	first, again := filepath.Join(dir, "first"), filepath.Join(dir, "again")
	writeRows(t, first, rows)
	out, hint := command(t, "", exitFailed, "datasets", "scan", first)
	if !strings.Contains(out, "attrs api-key: 1\n") || !strings.Contains(hint, "datasets export") || strings.Contains(out+hint, "AKIA") {
		t.Errorf("the first scan: %s%s", out, hint)
	}
	text, _ := command(t, "", exitOK, "datasets", "export", first)
	command(t, text, exitOK, "record", "-o", again)
	out, _ = command(t, "", exitOK, "datasets", "scan", again)
	if !strings.Contains(out, fmt.Sprintf("%d snapshots, 0 labels: 0 places", len(rows))) {
		t.Errorf("recorded again: %s", out)
	}
	if got := found(written(t, again)); got != nil {
		t.Errorf("recorded again: %v", got)
	}
	for i, s := range readRows(t, again) {
		if len(s.Redacted) == 0 && s.Error == "" { // an error says itself what it lost
			t.Errorf("row %d has no note", i)
		}
		if i == 9 && (s.Candidates[1].Action != "[redacted:api-key]" || s.Candidates[2].Action != "[redacted:api-key]#2") {
			t.Errorf("candidates %+v", s.Candidates)
		}
	}
}
