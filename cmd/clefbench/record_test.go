package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func testReader() *lineReader {
	return newLineReader(map[string]decision.Type{"metrics.n": decision.Int}, []byte("key"), func() time.Time { return time.Unix(1, 0) })
}

func TestLineKeepsWhatIsWritten(t *testing.T) {
	var s snapshot.Snapshot
	err := testReader().read([]byte(`{"id":"0190b5a1-0000-7000-8000-000000000001","ts":"2026-01-02T03:04:05.000000006Z",
		"scenario":"edge","action":"allow","candidates":["allow",{"action":"block","score":0.5,"probability":0.25}],
		"attrs":{"path":"/a","metrics.n":3,"metrics.rate":1,"local.on":true,"gone":null},
		"input":{"b":1, "a":[2]},"output":"text","confidence":0,"keep_prob":0.5,"latency_ns":12,"entity":"user-1",
		"strategy_digest":"`+strings.Repeat("ab", 32)+`","reason":"match","rule_id":"r"}`), &s)
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Input) != `{"b":1, "a":[2]}` || string(s.Output) != "text" {
		t.Errorf("bodies %q %q are not byte for byte", s.Input, s.Output)
	}
	if s.Time.Nanosecond() != 6 || s.RequestID != s.ID || s.KeepProb != 0.5 || s.Latency.V != 12 {
		t.Errorf("got %+v", s)
	}
	if !s.Confidence.Set || s.Confidence.V != 0 {
		t.Error("confidence 0 is not missing")
	}
	for name, want := range map[string]decision.Value{
		"path": decision.StringValue("/a"), "metrics.n": decision.IntValue(3),
		"metrics.rate": decision.DoubleValue(1), "local.on": decision.BoolValue(true), "gone": {},
	} {
		if got := s.Attrs.Get(name); got != want {
			t.Errorf("%s = %v %v, want %v", name, got.Type(), got, want)
		}
	}
	if c := s.Candidates[1]; c.Action != "block" || c.Score.V != 0.5 || c.Probability.V != 0.25 || s.Candidates[0].Score.Set {
		t.Errorf("candidates %+v", s.Candidates)
	}
	if !s.Entity.Set || strings.Contains(string(s.Entity.V[:]), "user") {
		t.Errorf("entity %x", s.Entity.V)
	}
}

func TestSchemaGrowsAndKeepsTypes(t *testing.T) {
	r := testReader()
	var s snapshot.Snapshot
	read := func(attrs string) error {
		return r.read([]byte(`{"scenario":"s","action":"a","attrs":`+attrs+`}`), &s)
	}
	if err := read(`{"b":1}`); err != nil {
		t.Fatal(err)
	}
	first := r.schema
	if err := read(`{"b":2.5}`); err != nil || r.schema != first {
		t.Errorf("the schema changed without a new name (%v)", err)
	}
	if err := read(`{"a":"x"}`); err != nil || r.schema.Len() != 2 || !s.Attrs.Get("b").IsNull() {
		t.Errorf("a new name: %v, %v", err, r.schema.Fields())
	}
	if err := read(`{"b":"text"}`); err == nil || !strings.Contains(err.Error(), "attrs.b: string where earlier lines or --attr have double") {
		t.Errorf("a changed type: %v", err)
	}
}

func TestLineRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"scenario":"s","action":"a","acton":"b"}`:                `unknown field "acton"`,
		`{"scenario":"s"}`:                                         "neither status nor action",
		`{"action":"a"}`:                                           "scenario is required",
		`{"scenario":"s","action":"a"} {}`:                         "more than one value",
		`{"scenario":"s","action":"a","keep_prob":0}`:              "keep_prob",
		`{"scenario":"s","action":"a","keep_prob":2}`:              "keep_prob",
		`{"scenario":"s","status":"fine"}`:                         `unknown status "fine"`,
		`{"scenario":"s","action":"a","strategy_digest":"ab"}`:     "64 hexadecimal digits",
		`{"scenario":"s","action":"a","attrs":{"x":[1]}}`:          "attributes are text",
		`{"scenario":"s","action":"a","attrs":{"x":1e999}}`:        "out of range",
		`{"scenario":"s","action":"a","candidates":[{"act":"x"}]}`: `unknown field "act"`,
		`[1]`:                           "a decision is a JSON object, this is an array",
		`{`:                             "the line ends inside the object",
		`{"Scenario":"s","action":"a"}`: `unknown field "Scenario"`,
		`{"scenario":"s","action":"a","action":"b"}`:                                  `the key "action" stands twice`,
		`{"scenario":"s","action":"a","attrs":{"x":1,"x":2}}`:                         `the key "x" stands twice`,
		"{\"scenario\":\"s\",\"action\":\"\xff\"}":                                    "not UTF-8",
		`{"scenario":"s","action":"\ud800"}`:                                          "surrogate",
		`{"scenario":"s","action":"\udc00\ud800"}`:                                    "surrogate",
		`{"scenario":"s","action":"a","ts":"2026"}`:                                   "not a time such as",
		`{"scenario":"s","action":7}`:                                                 "action is a number",
		`{"scenario":"s","action":"a","latency_ns":-7}`:                               "latency_ns -7 is negative",
		`{"scenario":"s","action":"a","cost_nano":-1}`:                                "cost_nano -1 is negative",
		`{"scenario":"s","action":"a","confidence":7}`:                                "confidence 7 is not in [0,1]",
		`{"scenario":"s","action":"a","candidates":[]}`:                               "candidates is empty",
		`{"scenario":"s","action":"a","candidates":["a","a"]}`:                        `candidate "a" stands twice`,
		`{"scenario":"s","action":"a","candidates":[{"action":"a","probability":2}]}`: "probability 2",
	} {
		var s snapshot.Snapshot
		if err := testReader().read([]byte(in), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestFormatPageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/record.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range jsonNames(line{}) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/formats/record.md does not name %s", name)
		}
	}
}

func TestLineTakesWhatIsOdd(t *testing.T) {
	for _, in := range []string{
		`{"scenario":"s","action":"\ud83d\ude00"}`,
		`{"scenario":"s","action":"a\\u","attrs":{"k":"\"","\\":1,"{":"}","[":"\"x\":1"}}`,
		`{"scenario":"s","action":"a","input":{"a":{"x":1},"b":{"x":2},"c":[{"x":1},{"x":2}]}}`,
	} {
		var s snapshot.Snapshot
		if err := testReader().read([]byte(in), &s); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"scenario":"s","action":"a","attrs":{"x":1,"y":null},"candidates":["a",{"action":"b"}]}`))
	f.Add([]byte(`{"scenario":"s","status":"abstain","input":"a"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s snapshot.Snapshot
		if err := testReader().read(b, &s); err == nil {
			if err := s.Validate(); err != nil {
				t.Errorf("accepted an invalid row: %v", err)
			}
		}
	})
}

// A line of the longest length is read, a longer one is one bad line, and what follows is
// read again.
func TestRecordLinesThatAreTooLong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	line := func(n int) string {
		head, tail := `{"scenario":"edge","action":"allow","input":"`, `"}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail + "\n"
	}
	text := line(100) + line(maxLine) + line(maxLine+1) + line(100) + strings.TrimSuffix(line(100), "\n")
	_, stderr := command(t, text, exitOK, "record", "-o", dir, "--skip-bad")
	if !strings.Contains(stderr, "stdin:3: the line has more than 16 MiB") || !strings.Contains(stderr, "recorded 4 of 5 decisions") {
		t.Errorf("%s", stderr)
	}
	_, stderr = command(t, text, exitData, "record", "-o", dir)
	if !strings.Contains(stderr, "stdin:3:") {
		t.Errorf("%s", stderr)
	}
}

func TestRecordRefusesFlagsOfTheOtherForm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	_, stderr := command(t, "", exitUsage, "record", "-o", dir, "--kill-file", "x")
	if !strings.Contains(stderr, "--kill-file has no meaning without --listen") {
		t.Errorf("%s", stderr)
	}
	_, stderr = command(t, "", exitUsage, "record", "-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--skip-bad")
	if !strings.Contains(stderr, "--skip-bad has no meaning with --listen") {
		t.Errorf("%s", stderr)
	}
}

func TestRecordErrorsDoNotRepeatSecrets(t *testing.T) {
	const key = "AKIAIOSFODNN7EXAMPLE"
	_, stderr := command(t, `{"scenario":"edge","action":"allow","ts":"`+key+`"}`+"\n", exitData, "record", "-o", filepath.Join(t.TempDir(), "ds"))
	if strings.Contains(stderr, key) || !strings.Contains(stderr, "stdin:1:") {
		t.Errorf("%s", stderr)
	}
}
