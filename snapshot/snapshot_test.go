package snapshot

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// fill sets every field of a struct to something that is not zero, as deep as the
// struct goes, so that a field added later is covered too. Values of types that refuse
// reflection (a schema, an attribute value, a time) come from the table.
func fill(t *testing.T, v reflect.Value, mark string) {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "attr", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []any{schema, decision.StringValue("attribute " + mark), time.Unix(1_700_000_000, 7).UTC()} {
		if v.Type() == reflect.TypeOf(known) {
			v.Set(reflect.ValueOf(known))
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(mark)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), mark)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), mark)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), mark+"/"+v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("%s: no value for a %v", mark, v.Type())
	}
}

func full(t *testing.T) *Snapshot {
	t.Helper()
	s := new(Snapshot)
	fill(t, reflect.ValueOf(s).Elem(), "snapshot")
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotValidate(t *testing.T) {
	cases := []struct {
		name   string
		change func(s *Snapshot)
		want   string // part of the error, empty for none
	}{
		{"full", func(*Snapshot) {}, ""},
		{"no id", func(s *Snapshot) { s.ID = decision.ID{} }, "id and request_id"},
		{"no request id", func(s *Snapshot) { s.RequestID = decision.ID{} }, "id and request_id"},
		{"no status", func(s *Snapshot) { s.Status = decision.StatusNone }, "status"},
		{"unknown status", func(s *Snapshot) { s.Status = decision.NotReplayable + 1 }, "status"},
		{"no time", func(s *Snapshot) { s.Time = time.Time{} }, "ts is required"},
		{"time before nanoseconds", func(s *Snapshot) { s.Time = time.Date(1677, 12, 31, 0, 0, 0, 0, time.UTC) }, "does not fit"},
		{"time after nanoseconds", func(s *Snapshot) { s.Time = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC) }, "does not fit"},
		{"first year", func(s *Snapshot) { s.Time = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC) }, ""},
		{"last year", func(s *Snapshot) { s.Time = time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC) }, ""},
		{"no scenario", func(s *Snapshot) { s.Scenario = "" }, "scenario"},
		{"keep_prob 0", func(s *Snapshot) { s.KeepProb = 0 }, "keep_prob"},
		{"keep_prob negative", func(s *Snapshot) { s.KeepProb = -0.1 }, "keep_prob"},
		{"keep_prob above 1", func(s *Snapshot) { s.KeepProb = math.Nextafter(1, 2) }, "keep_prob"},
		{"keep_prob NaN", func(s *Snapshot) { s.KeepProb = math.NaN() }, "keep_prob"},
		{"keep_prob 1", func(s *Snapshot) { s.KeepProb = 1 }, ""},
		{"propensity 0", func(s *Snapshot) { s.Propensity.V = 0 }, ""},
		{"propensity above 1", func(s *Snapshot) { s.Propensity.V = 1.1 }, "propensity"},
		{"propensity NaN", func(s *Snapshot) { s.Propensity.V = math.NaN() }, "propensity"},
		{"propensity absent", func(s *Snapshot) { s.Propensity = decision.Opt[float64]{V: 9} }, ""},
		{"confidence NaN", func(s *Snapshot) { s.Confidence.V = math.NaN() }, "confidence"},
		{"confidence in its own unit", func(s *Snapshot) { s.Confidence.V = 3 }, ""},
		{"ok without action", func(s *Snapshot) { s.Action = "" }, "without an action"},
		{"denied without action", func(s *Snapshot) { s.Status, s.Action = decision.Denied, "" }, ""},
		{"abstain with action", func(s *Snapshot) { s.Status = decision.Abstain }, "with action"},
		{"timeout with action", func(s *Snapshot) { s.Status = decision.Timeout }, "with action"},
		{"error without action", func(s *Snapshot) { s.Status, s.Action = decision.Error, "" }, ""},
		{"nameless candidate", func(s *Snapshot) { s.Candidates[1].Action = "" }, "candidate"},
		{"no candidates", func(s *Snapshot) { s.Candidates = nil }, ""},
	}
	for _, c := range cases {
		s := full(t)
		c.change(s)
		check(t, c.name, s.Validate(), c.want)
	}
}

func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want an invalid row: %s", name, err, want)
	}
}

func TestRequestHoldsTheQuestionNotTheAnswer(t *testing.T) {
	s := full(t)
	var req decision.Request
	Request([]*Snapshot{s}, &req)
	want := decision.Request{ID: s.RequestID, Scenario: s.Scenario, Attrs: s.Attrs, Features: s.Features, FeatureSet: s.FeatureSet,
		Questions: []decision.Question{{ID: s.Question, Type: s.QuestionType, Candidates: []string{s.Candidates[0].Action, s.Candidates[1].Action}}},
		Body:      s.Input, Now: s.Time}
	if !reflect.DeepEqual(req, want) {
		t.Errorf("got  %+v\nwant %+v", req, want)
	}
}

// answers are the fields of a row that a backend must not see; question are those that
// make up a request. A new field belongs to one of them, which is for people to decide.
var (
	question = []string{"RequestID", "Question", "QuestionType", "Time", "Scenario", "Attrs", "Input", "Candidates", "Features", "FeatureSet"}
	answers  = []string{"Ref", "ID", "SourceID", "Status", "Entity", "Output", "InputDigest", "OutputDigest", "InputLen", "Forced", "Action", "Params",
		"Applied", "Confidence", "ConfidenceDef", "Reason", "RuleID", "Backend", "Artefact", "Latency", "Stages", "Cold", "Attempts", "Propensity",
		"PropensityKind", "KeepProb", "Usage", "Cost", "Error", "ErrorCode", "TraceID", "SpanID", "ND", "Redacted", "Terms"}
)

// Whatever production chose, scored and measured, the request is the same.
func TestRequestDoesNotDependOnTheAnswer(t *testing.T) {
	known := map[string]bool{}
	for _, name := range append(append([]string(nil), question...), answers...) {
		known[name] = true
	}
	typ := reflect.TypeFor[Snapshot]()
	if len(known) != typ.NumField() {
		t.Errorf("%d fields are sorted into question and answer, a row has %d", len(known), typ.NumField())
	}
	var before decision.Request
	Request([]*Snapshot{full(t)}, &before)
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if !known[name] {
			t.Errorf("field %s is neither question nor answer", name)
		}
		s := full(t)
		field := reflect.ValueOf(s).Elem().Field(i)
		field.SetZero()
		var after decision.Request
		Request([]*Snapshot{s}, &after)
		same := reflect.DeepEqual(before, after)
		if isAnswer := slices.Contains(answers, name); same != isAnswer {
			t.Errorf("without %s the request is the same: %v, but it is an answer: %v", name, same, isAnswer)
		}
	}
	scored := full(t)
	for i := range scored.Candidates {
		scored.Candidates[i].Score, scored.Candidates[i].Probability = decision.Some(float32(9)), decision.Some(0.99)
	}
	var after decision.Request
	Request([]*Snapshot{scored}, &after)
	if !reflect.DeepEqual(before, after) {
		t.Error("the scores of the candidates reach the request")
	}
}

// The types of a request have no place for an answer either.
func TestRequestHasNoRoomForAnAnswer(t *testing.T) {
	forbidden := []reflect.Type{reflect.TypeFor[decision.Status](), reflect.TypeFor[decision.Decision](), reflect.TypeFor[decision.Reason](),
		reflect.TypeFor[decision.Candidate](), reflect.TypeFor[decision.Artefact](), reflect.TypeFor[decision.Stages](), reflect.TypeFor[decision.Usage](),
		reflect.TypeFor[Applied](), reflect.TypeFor[Snapshot](), reflect.TypeFor[decision.Opt[float64]]()}
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		if seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		for _, f := range forbidden {
			if typ == f {
				t.Errorf("%s is a %v", path, typ)
			}
		}
		switch typ.Kind() {
		case reflect.Struct:
			for i := range typ.NumField() {
				walk(typ.Field(i).Type, path+"."+typ.Field(i).Name)
			}
		case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
			walk(typ.Elem(), path)
		}
	}
	walk(reflect.TypeFor[decision.Request](), "Request")
	if !seen[reflect.TypeFor[decision.Question]()] {
		t.Error("the walk did not reach the questions")
	}
}

func TestRequestReusesItsMemory(t *testing.T) {
	rows := []*Snapshot{full(t), full(t), full(t)}
	rows[1].Question, rows[1].QuestionType = "second", ""
	var req decision.Request
	Request(rows, &req)
	if len(req.Questions) != 3 || req.Questions[1].ID != "second" || req.Questions[1].Type != decision.QuestionAction {
		t.Fatalf("questions %+v", req.Questions)
	}
	if n := testing.AllocsPerRun(100, func() { Request(rows, &req) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
	req.Seed, req.Deadline = 7, time.Second
	rows[0].Candidates = nil
	Request(rows[:1], &req)
	if len(req.Questions) != 1 || len(req.Questions[0].Candidates) != 0 || req.Seed != 0 || req.Deadline != 0 {
		t.Errorf("something is left of the request before: %+v", req)
	}
	Request(rows, &req)
	if len(req.Questions) != 3 || len(req.Questions[2].Candidates) != 2 {
		t.Errorf("questions %+v", req.Questions)
	}
}

// shared reports the paths at which two values of a type share memory.
func shared(a, b reflect.Value, path string) (out []string) {
	switch a.Kind() {
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			out = append(out, path)
		}
		for i := 0; i < min(a.Len(), b.Len()); i++ {
			out = append(out, shared(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			out = append(out, shared(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)...)
		}
	case reflect.Pointer, reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			out = append(out, path)
		}
	}
	return out
}

func TestCloneSharesNothing(t *testing.T) {
	s := full(t)
	c := s.Clone()
	if !reflect.DeepEqual(s, c) {
		t.Errorf("a clone differs: %+v\n%+v", s, c)
	}
	// The schema is immutable and shared on purpose; a time holds its location.
	got := strings.Join(shared(reflect.ValueOf(*s), reflect.ValueOf(*c), ""), " ")
	if want := ".Attrs.Schema"; strings.ReplaceAll(got, ".Time.loc ", "") != want {
		t.Errorf("snapshots share %q, want %q", got, want)
	}
	o, l := new(Outcome), new(Label)
	fill(t, reflect.ValueOf(o).Elem(), "outcome")
	fill(t, reflect.ValueOf(l).Elem(), "label")
	if c := o.Clone(); !reflect.DeepEqual(o, c) || len(shared(reflect.ValueOf(*o), reflect.ValueOf(*c), "")) > 0 {
		t.Errorf("outcomes share %q", shared(reflect.ValueOf(*o), reflect.ValueOf(*c), ""))
	}
	lc := l.Clone()
	if got := strings.Join(shared(reflect.ValueOf(*l), reflect.ValueOf(*lc), ""), " "); !reflect.DeepEqual(l, lc) || got != "" && got != ".Time.loc" {
		t.Errorf("labels share %q", got)
	}
}

// In the file nil is null and empty is a value.
func TestCloneTellsEmptyFromAbsent(t *testing.T) {
	for _, s := range []*Snapshot{{}, {Input: []byte{}, Output: []byte{}, Features: []float32{}, Candidates: []decision.Candidate{}, Redacted: []string{}}} {
		if c := s.Clone(); !reflect.DeepEqual(s, c) {
			t.Errorf("the clone of %+v is %+v", s, c)
		}
	}
}

func TestWeight(t *testing.T) {
	s := full(t)
	for keep, want := range map[float64]float64{1: 1, 0.25: 4, 0.05: 20} {
		if s.KeepProb = keep; s.Weight() != want {
			t.Errorf("keep_prob %v weighs %v, want %v", keep, s.Weight(), want)
		}
	}
}

func TestTimesAtTheEndsOfTheRange(t *testing.T) {
	for want, times := range map[string][]time.Time{
		"": {time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2261, 12, 31, 23, 59, 59, 999999999, time.UTC)},
		"does not fit nanoseconds": {time.Date(1677, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		for _, at := range times {
			s := new(Snapshot)
			fill(t, reflect.ValueOf(s).Elem(), "snapshot")
			s.Time = at
			check(t, at.String(), s.Validate(), want)
		}
	}
}
