package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// roundTrip writes a value and reads it back.
func roundTrip(t testing.TB, v decision.Value) (decision.Value, string) {
	t.Helper()
	text := appendValue(nil, v)
	s := &scanner{b: text}
	var got decision.Value
	err := s.attribute("x", func(_ string, v decision.Value, _ int) error { got = v; return nil })
	if err == nil {
		err = s.end()
	}
	if err != nil {
		t.Fatalf("%v is written as %s: %v", v, text, err)
	}
	return got, string(text)
}

func TestValuesKeepTypeAndBits(t *testing.T) {
	for want, v := range map[string]decision.Value{
		"1.0": decision.DoubleValue(1), "1": decision.IntValue(1), "-0.0": decision.DoubleValue(math.Copysign(0, -1)), "0.1": decision.DoubleValue(0.1),
		"1e+21": decision.DoubleValue(1e21), "5e-324": decision.DoubleValue(5e-324), "1.7976931348623157e+308": decision.DoubleValue(math.MaxFloat64),
		`{"$double":"NaN"}`: decision.DoubleValue(math.NaN()), `{"$double":"+Inf"}`: decision.DoubleValue(math.Inf(1)), `{"$double":"-Inf"}`: decision.DoubleValue(math.Inf(-1)),
		"9223372036854775807": decision.IntValue(math.MaxInt64), "-9223372036854775808": decision.IntValue(math.MinInt64),
		"true": decision.BoolValue(true), "false": decision.BoolValue(false), "null": {}, `""`: decision.StringValue(""), `"1"`: decision.StringValue("1"),
		`"a\"\\\u000a<&>` + "\u2028\u00e9" + `"`: decision.StringValue("a\"\\\n<&>\u2028\u00e9"), `{"$bytes":"/wA="}`: decision.StringValue("\xff\x00"), `"` + "\ufffd" + `"`: decision.StringValue("\ufffd"),
	} {
		got, text := roundTrip(t, v)
		if got != v || text != want {
			t.Errorf("%v %v is written as %s (want %s) and read as %v %v", v.Type(), v, text, want, got.Type(), got)
		}
	}
}

func FuzzValue(f *testing.F) {
	f.Add(uint8(3), uint64(0x7ff8000000000000), "x")
	f.Add(uint8(4), uint64(0), "\xff\ud7ff")
	f.Fuzz(func(t *testing.T, kind uint8, bits uint64, text string) {
		v := []decision.Value{{}, decision.BoolValue(bits&1 == 1), decision.IntValue(int64(bits)), decision.DoubleValue(math.Float64frombits(bits)), decision.StringValue(text)}[kind%5]
		got, _ := roundTrip(t, v)
		if bothNaN := math.IsNaN(v.Double()) && math.IsNaN(got.Double()); got != v && !bothNaN {
			t.Errorf("%v %v is read as %v %v", v.Type(), v, got.Type(), got)
		}
	})
}

// The scanner agrees with encoding/json on what is JSON, apart from what it refuses on
// purpose, and on every value.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a": [1, -2.5e+3, "x\u00e9\ud83d\ude00\n", true, false, null, {}]}`, `[[[]]]`, `"\ud800"`, `01`, `{"a":1,"a":2}`, "\"\x01\"", ` 1 `, `-`, `1.`, `{"a"}`, `[1,]`, `{,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &scanner{b: data}
		raw, err := s.skip()
		if err == nil {
			err = s.end()
		}
		valid := json.Valid(data)
		if err == nil && !valid {
			t.Fatalf("%q was taken as JSON", data)
		}
		if err != nil && valid && !refusedOnPurpose(err) {
			t.Fatalf("%q is JSON: %v", data, err)
		}
		if err != nil || raw[0] != '"' {
			return
		}
		got, _ := (&scanner{b: data}).text()
		var want string
		if err := json.Unmarshal(data, &want); err != nil || got != want {
			t.Fatalf("%q is read as %q, want %q (%v)", data, got, want, err)
		}
	})
}

func refusedOnPurpose(err error) bool {
	for _, reason := range []string{"stands twice", "not UTF-8", `broken \u escape`, "nested more than"} {
		if strings.Contains(err.Error(), reason) {
			return true
		}
	}
	return false
}

func sampleRequest(t testing.TB) *decision.Request {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "a.b", Type: decision.Double}, decision.Field{Name: "c", Type: decision.Int}, decision.Field{Name: "d", Type: decision.String}, decision.Field{Name: "e", Type: decision.Bool})
	if err != nil {
		t.Fatal(err)
	}
	return &decision.Request{
		ID: decision.ID{1, 6: 0x70, 8: 0x80}, Scenario: "s", Features: []float32{0, 0.1, float32(math.Inf(1))}, FeatureSet: "v1",
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(2), decision.IntValue(2), {}, decision.BoolValue(true)}},
		Questions: []decision.Question{{ID: "q", Type: decision.QuestionChoice, Candidates: []string{"x", "y"}}},
		Now:       time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Seed: 7,
	}
}

func TestRequestBytes(t *testing.T) {
	body, err := appendRequest(nil, sampleRequest(t), &sampleRequest(t).Questions[0], 1500*time.Microsecond)
	want := `{"id":"01000000-0000-7000-8000-000000000000","scenario":"s","action":"q","type":"choice","candidates":["x","y"],"context":{"a.b":2.0,"c":2,"e":true},` +
		`"features":[0.0,0.1,{"$double":"+Inf"}],"feature_set":"v1","now":"2026-01-02T03:04:05.000000006Z","seed":7,"timeout_ms":1.5}`
	if err != nil || string(body) != want {
		t.Errorf("got  %s, %v\nwant %s", body, err, want)
	}
}

// What the client writes, the server reads as the same request.
func TestRequestRoundTrip(t *testing.T) {
	req := sampleRequest(t)
	body, err := appendRequest(nil, req, &req.Questions[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	q, s, err := parseRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	h := &handler{opts: HandlerOptions{Schema: req.Attrs.Schema}}
	got, err := h.request(q, s)
	if err != nil {
		t.Fatal(err)
	}
	want := *req
	want.Body = body
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, &want)
	}
}

func FuzzParseRequest(f *testing.F) {
	req := sampleRequest(f)
	body, err := appendRequest(nil, req, &req.Questions[0], time.Second)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"context": {"a": {"b": {"$bytes": "/w=="}}, "c": null}, "candidates": []}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, s, err := parseRequest(data)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 {
				t.Fatalf("error without a position: %v", err)
			}
			return
		}
		h := &handler{opts: HandlerOptions{Now: time.Now}}
		first, err := h.request(q, s)
		if err != nil {
			t.Fatal(err)
		}
		// Written again and read again it must be the same request.
		again, err := appendRequest(nil, first, &first.Questions[0], first.Deadline)
		if err != nil {
			if !errors.Is(err, errNotEncodable) {
				t.Fatal(err)
			}
			return
		}
		q, s, err = parseRequest(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		second, err := h.request(q, s)
		if err != nil {
			t.Fatal(err)
		}
		first.Body, second.Body = nil, nil
		if a, b := fmt.Sprintf("%+v %v", *first, first.Attrs.Schema.Fields()), fmt.Sprintf("%+v %v", *second, second.Attrs.Schema.Fields()); !sameText(a, b) {
			t.Fatalf("first\n%s\nthen\n%s", a, b)
		}
	})
}

// sameText compares two dumps without the parts that hold pointers and clock readings.
func sameText(a, b string) bool {
	cut := func(s string) string {
		out, _, _ := strings.Cut(s, "Attrs:")
		_, rest, _ := strings.Cut(s, "Values:")
		rest, _, _ = strings.Cut(rest, "Now:")
		_, tail, _ := strings.Cut(s, "Seed:")
		return out + rest + tail
	}
	return cut(a) == cut(b)
}

func sampleAnswer() (decision.Decision, decision.Artefact) {
	return decision.Decision{
			Status: decision.OK, Action: "x", Params: `{"a": [1, {"b": "<"}]}`, Confidence: decision.Some(0.3), ConfidenceDef: "peak",
			Reason: decision.Reason{Kind: decision.ReasonModel, Rule: "m", Skipped: 3},
			Candidates: []decision.Candidate{{Action: "x", Probability: decision.Some(1.0 / 3)}, {Action: "y", Score: decision.Some(float32(0.1))},
				{Action: "z", Score: decision.Some(float32(-2)), Probability: decision.Some(0.0)}, {Action: "w"}},
		}, decision.Artefact{
			EngineVersion: "e", StrategyVersion: "1.10", StrategyDigest: [32]byte{1, 31: 2}, ModelResolved: "m-1",
		}
}

func TestAnswerBytes(t *testing.T) {
	d, a := sampleAnswer()
	body, err := appendAnswer(nil, &d, &a, decision.ID{1})
	want := `{"status":"ok","action":"x","params":{"a": [1, {"b": "<"}]},"confidence":0.3,"confidence_def":"peak","snapshot_id":"01000000-0000-0000-0000-000000000000",` +
		`"reason":"model","rule_id":"m","skipped":3,"probabilities":{"x":0.3333333333333333,"y":null,"z":0.0,"w":null},"scores":{"y":0.1,"z":-2.0},"model":"m-1",` +
		`"engine_version":"e","strategy_version":"1.10","strategy_digest":"0100000000000000000000000000000000000000000000000000000000000002"}`
	if err != nil || string(body) != want {
		t.Errorf("got  %s, %v\nwant %s", body, err, want)
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	full, artefact := sampleAnswer()
	var failed decision.Decision
	failed.Fail(decision.Timeout, "timeout", "too \"late\"\n")
	for _, want := range []decision.Decision{full, failed, {Status: decision.Abstain, Reason: decision.Reason{Kind: decision.ReasonTableMiss}}, {Status: decision.Denied}, {Status: decision.Denied, Action: "x"}} {
		body, err := appendAnswer(nil, &want, &artefact, decision.ID{1})
		if err != nil {
			t.Fatal(err)
		}
		got, gotArtefact := decision.Decision{Candidates: make([]decision.Candidate, 0, 1)}, decision.Artefact{}
		if err := parseAnswer(body, &got, &gotArtefact); err != nil {
			t.Fatal(err)
		}
		if len(got.Candidates) == 0 {
			got.Candidates = want.Candidates
		}
		if !reflect.DeepEqual(got, want) || gotArtefact != artefact {
			t.Errorf("got\n%+v\nwant\n%+v", got, want)
		}
	}
}

func TestParseAnswerRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"action": 1}`:                                      "1:12: want '\"'",
		`{"action": "a", "params": [1]}`:                     "params must be an object",
		`{"action": "a", "confidence": "x"}`:                 "want a number",
		`{"action": "a", "confidence": 1e999}`:               "out of range",
		`{"action": "a", "skipped": 65536}`:                  "skipped must be",
		`{"action": "a", "strategy_digest": "ab"}`:           "64 hexadecimal digits",
		`{"action": "a", "probabilities": {"": 1}}`:          "without a name",
		`{"action": "a", "probabilities": {"a": 1, "a": 0}}`: "stands twice",
		`{"action": "a", "scores": {"a": 1e39}}`:             "out of range",
		`{"status": "none", "action": "a"}`:                  "unknown status",
		`{"action": "a"} {}`:                                 "text after the JSON value",
	} {
		d, a := decision.Decision{Action: "kept"}, decision.Artefact{ModelResolved: "kept"}
		if err := parseAnswer([]byte(in), &d, &a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
		if d.Action != "kept" || a.ModelResolved != "kept" {
			t.Errorf("%s: a refused answer left %+v %+v", in, d, a)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	d, a := sampleAnswer()
	body, err := appendAnswer(nil, &d, &a, decision.ID{1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"status": "error", "code": null, "x": [1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d decision.Decision
		var a decision.Artefact
		if parseAnswer(data, &d, &a) != nil {
			return
		}
		body, err := appendAnswer(nil, &d, &a, decision.ID{1})
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", d, err)
		}
		var d2 decision.Decision
		var a2 decision.Artefact
		if err := parseAnswer(body, &d2, &a2); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if fmt.Sprintf("%+v", d2) != fmt.Sprintf("%+v", d) || a2 != a {
			t.Fatalf("first\n%+v\nthen\n%+v", d, d2)
		}
	})
}

func TestSyntaxErrorPosition(t *testing.T) {
	_, _, err := parseRequest([]byte("{\n  \"context\": {},\n  \"é\": 1, \"x\": 1}"))
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 3 || syntax.Column != 3 {
		t.Errorf("%+v", err)
	}
}

func TestErrorText(t *testing.T) {
	for in, want := range map[string]string{
		`{"error": {"code": 1, "message": "m"}}`: "Not Found: m", `{"error": "m"}`: `Not Found: {"error": "m"}`, `{"error": {"message": 1}}`: `Not Found: {"error": {"message": 1}}`, "": "Not Found",
	} {
		if got := errorText(404, []byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func BenchmarkCodec(b *testing.B) {
	req := sampleRequest(b)
	d, a := sampleAnswer()
	body, err := appendAnswer(nil, &d, &a, decision.ID{1})
	if err != nil {
		b.Fatal(err)
	}
	buf := bytes.NewBuffer(nil)
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		out, err := appendRequest(buf.AvailableBuffer(), req, &req.Questions[0], time.Second)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Discard.Write(out); err != nil {
			b.Fatal(err)
		}
		if err := parseAnswer(body, &d, &a); err != nil {
			b.Fatal(err)
		}
	}
}
