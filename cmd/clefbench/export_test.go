package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// command runs one command line in process.
func command(t *testing.T, stdin string, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, lookupEnv: func(string) (string, bool) { return "", false }}
	if code := run(context.Background(), args, a); code != want {
		t.Fatalf("%q: exit %d, want %d\n%s", args, code, want, errs.String())
	}
	return out.String(), errs.String()
}

// everyColumn is rows that use every column between them, with values that are hard to
// write down.
func everyColumn(t *testing.T) []*snapshot.Snapshot {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "headers.user-agent", Type: decision.String},
		decision.Field{Name: "metrics.n", Type: decision.Int}, decision.Field{Name: "metrics.rate", Type: decision.Double},
		decision.Field{Name: "on", Type: decision.Bool})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 6, time.UTC)
	some := decision.Some[time.Duration]
	full := &snapshot.Snapshot{
		ID: decision.NewID(at), RequestID: decision.NewID(at), SourceID: "a \"b\"\n\u2028", Status: decision.Denied, Question: "q", QuestionType: "choice",
		Time: at, Scenario: "fraud", Entity: decision.Some([8]byte{1, 2, 250}),
		Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("=<&>\t"), decision.IntValue(math.MinInt64),
			decision.DoubleValue(math.Copysign(0, -1)), decision.BoolValue(false)}},
		Input: []byte("{\"a\":\r\n 1}"), Output: []byte{0, 0xff, 0x80}, InputDigest: decision.Some([32]byte{3}), OutputDigest: decision.Some([32]byte{4}),
		InputLen:   decision.Some(int64(4096)),
		Candidates: []decision.Candidate{{Action: "allow", Score: decision.Some(float32(0.1)), Probability: decision.Some(1.0 / 3)}, {Action: "b"}},
		Forced:     decision.Some(false), Features: []float32{0.1, -3e-38, 16777217}, FeatureSet: "f1",
		Action: "allow", Params: `{"ttl": 60.50}`, Applied: "shadow", Confidence: decision.Some(0.0), ConfidenceDef: "peak", Reason: decision.ReasonTableHit, RuleID: "r/1",
		Backend: "rules",
		Artefact: decision.Artefact{EngineVersion: "1", StrategyVersion: "1.10", StrategyDigest: [32]byte{9}, ModelRequested: "m", ModelResolved: "m-1",
			Provider: "p", Dialect: "decide", HTTPStatus: 503},
		Latency: some(0), Stages: decision.Stages{Queue: some(1), Features: some(2), Rules: some(3), Model: some(4), Transport: some(5), Serialise: some(6)},
		Cold: decision.Some(true), Attempts: decision.Some(int8(3)), Propensity: decision.Some(0.7), PropensityKind: "exact", KeepProb: 0.05 * 0.1,
		Usage: decision.Usage{TokensIn: decision.Some(int64(1)), TokensOut: decision.Some(int64(2)), BytesIn: decision.Some(int64(3)),
			BytesOut: decision.Some(int64(4)), CPU: some(5)},
		Cost: decision.Some(int64(math.MaxInt64)), Error: "no", ErrorCode: "http-503", TraceID: decision.Some([16]byte{7}), SpanID: decision.Some([8]byte{8}),
		ND: `{"seed":18446744073709551615}`, Redacted: []string{"/a:mask", "b:drop"}, Terms: snapshot.Terms{TrainingUse: "forbidden", Publishable: "no"},
	}
	plain := &snapshot.Snapshot{ID: decision.NewID(at), RequestID: full.RequestID, Status: decision.Timeout, Time: at.Add(time.Nanosecond), Scenario: "fraud", KeepProb: 1,
		Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{{}, {}, decision.DoubleValue(math.Inf(-1)), {}}}, Params: "not JSON", ND: "null"}
	none := &snapshot.Snapshot{ID: decision.NewID(at), RequestID: decision.NewID(at), Status: decision.OK, Action: "allow", Time: at.Add(time.Hour), Scenario: "edge",
		KeepProb: 0.5, Attrs: decision.Attrs{Schema: schema}, Features: []float32{}, Input: []byte{}, InputLen: decision.Some(int64(0))}
	return []*snapshot.Snapshot{full, plain, none}
}

func writeRows(t *testing.T, dir string, rows []*snapshot.Snapshot) {
	t.Helper()
	w, err := arrowfile.Create(dir, arrowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: uint64(len(rows)), Written: uint64(len(rows))}); err != nil {
		t.Fatal(err)
	}
}

// readRows returns a data set's rows without their places.
func readRows(t *testing.T, dir string) []*snapshot.Snapshot {
	t.Helper()
	d, err := datasets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var out []*snapshot.Snapshot
	for s, err := range d.Snapshots(datasets.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		s = s.Clone()
		s.Ref = snapshot.Ref{}
		out = append(out, s)
	}
	return out
}

// What is exported and recorded again is the same row, field by field.
func TestExportRoundTrip(t *testing.T) {
	dir := t.TempDir()
	first, again := filepath.Join(dir, "first"), filepath.Join(dir, "again")
	writeRows(t, first, everyColumn(t))
	text, note := command(t, "", exitOK, "datasets", "export", first)
	if !strings.Contains(note, "clefbench record --attr 'metrics.n:int'") {
		t.Errorf("nothing says that there are integers: %q", note)
	}
	command(t, text, exitOK, "record", "-o", again, "--raw-input", "keep", "--attr", "metrics.n:int", "--attr", "metrics.rate:double")
	want, got := readRows(t, first), readRows(t, again)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		sameRow(t, want[i], got[i])
	}
}

// sameRow compares two rows field by field, the attributes by name.
func sameRow(t *testing.T, want, got *snapshot.Snapshot) {
	t.Helper()
	for _, f := range want.Attrs.Schema.Fields() {
		a, b := want.Attrs.Get(f.Name), got.Attrs.Get(f.Name)
		if a != b {
			t.Errorf("row %v: attrs.%s is %v %v, was %v %v", want.ID, f.Name, b.Type(), b, a.Type(), a)
		}
	}
	a, b := reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem()
	for i := range a.NumField() {
		if name := a.Type().Field(i).Name; name != "Attrs" && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			t.Errorf("row %v: %s is %v, was %v", want.ID, name, b.Field(i), a.Field(i))
		}
	}
}

// Labels are exported, and recording says that it leaves them out.
func TestExportedLabelsAreNotRecorded(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	writeRows(t, first, everyColumn(t))
	_, err := datasets.AttachLabels(first, func(s *snapshot.Snapshot) *snapshot.Label {
		if s.Scenario != "fraud" {
			return nil
		}
		return &snapshot.Label{Action: "block", Reward: decision.Some(0.0)}
	})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := command(t, "", exitOK, "datasets", "export", first)
	if n := strings.Count(text, `"label":{"action":"block","reward":0.0}`); n != 2 {
		t.Errorf("%d labels in %s", n, text)
	}
	_, errs := command(t, text, exitOK, "record", "-o", filepath.Join(dir, "again"), "--attr", "metrics.rate:double")
	if !strings.Contains(errs, "note: 2 lines have a label") {
		t.Errorf("nothing says that labels were left out: %s", errs)
	}
}

func TestLineRefusesContradictions(t *testing.T) {
	for in, want := range map[string]string{
		`"entity":"a","entity_hash":"0011223344556677"`: "entity and entity_hash stand for the same column",
		`"input":"a","input_base64":"AA=="`:             "input and input_base64",
		`"output":1,"output_base64":"AA=="`:             "output and output_base64",
		`"params":{},"params_text":"x"`:                 "params and params_text",
		`"nd":{},"nd_text":"x"`:                         "nd and nd_text",
		`"entity_hash":"00"`:                            "entity_hash is not 16 hexadecimal digits",
		`"trace_id":"zz112233445566770011223344556677"`: "trace_id is not 32 hexadecimal digits",
		`"stages":{"queue":-1}`:                         "stages.queue -1 is negative",
		`"stages":{"que":1}`:                            `unknown field "que"`,
		`"cpu_ns":-1`:                                   "cpu_ns -1 is negative",
		`"attempts":-1`:                                 "attempts -1 is negative",
		`"attempts":200`:                                "attempts is a number 200",
		`"input_base64":"?"`:                            "base64",
	} {
		var s snapshot.Snapshot
		if err := testReader().read([]byte(`{"scenario":"s","action":"a",`+in+`}`), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestLineNulls(t *testing.T) {
	r := testReader()
	var s snapshot.Snapshot
	err := r.read([]byte(`{"scenario":"s","action":"a","nd":null,"label":null,"redacted":null,"stages":null,"terms":null,"cold":null}`), &s)
	if err != nil || s.ND != "" || s.Redacted != nil || s.Cold.Set || r.labels != 0 {
		t.Errorf("%v: %+v, %d labels", err, s, r.labels)
	}
	if r.fields[""] || !r.fields["nd_text"] || !r.fields["scenario"] {
		t.Errorf("fields %v", r.fields)
	}
}

// The page of the format names every column that an export can have.
func TestExportPageNamesEveryColumn(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/export.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeRows(t, dir, everyColumn(t))
	text, _ := command(t, "", exitOK, "datasets", "export", dir, "--to", "csv", "-q")
	header, _, _ := strings.Cut(text, "\r\n")
	columns := strings.Split(header, ",")
	for _, name := range columns {
		if !strings.HasPrefix(name, "attrs.") && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/formats/export.md does not name %s", name)
		}
	}
	if len(columns) < 70 || slices.Contains(columns, "") {
		t.Errorf("header %q", header)
	}
}
