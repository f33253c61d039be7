package systemone

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func mustRequest(t *testing.T, body string) *Request {
	t.Helper()
	r, err := ParseRequest([]byte(body), Limits{})
	if err != nil {
		t.Fatalf("%v in %.200s", err, body)
	}
	return r
}

func TestWithModelChangesNothingElse(t *testing.T) {
	body, err := os.ReadFile("testdata/requests/sdk-0.6.0.json")
	if err != nil {
		t.Fatal(err)
	}
	r := mustRequest(t, string(body))
	got, err := r.WithModel("jev-1.13.0")
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Replace(body, []byte(`"jev-latest"`), []byte(`"jev-1.13.0"`), 1); !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Text that says "model" elsewhere is not the model, and white space stays.
	tricky := " {\"state\": {\"model\" : \"m\", \"x\":\"\\\"model\\\":\\\"m\\\"\"} ,\n \"questions\":{\"model\":{\"type\":\"noul\",\"model\":\"m\"}} , \"m\\u006fdel\" :\t\"m\" , \"z\":1}\n"
	got, err = mustRequest(t, tricky).WithModel("a\"<>&\u2028\n\\")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(tricky, "\t\"m\"", "\t\"a\\\"<>&\u2028\\u000a\\\\\"", 1); string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := mustRequest(t, `{"state":"x","questions":{"q":{}},"model":null}`).WithModel("m"); !errors.Is(err, ErrNoModel) {
		t.Errorf("null model: %v", err)
	}
}

func TestRefusedRequests(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for body, want := range map[string]string{
		``:                            "1:1: want '{', got the end",
		`[]`:                          "want '{'",
		`{}`:                          "without questions",
		`{"questions":{}}`:            "without questions",
		`{"questions":{"q":{}}}`:      "without state",
		`{"questions":7,"state":"x"}`: "want '{', got '7'",
		`{"state":"x","state":"y","questions":{"q":{}}}`:                                                          `1:14: field "state" stands twice`,
		`{"state":"x","document":"y","questions":{"q":{}}}`:                                                       "both state and document",
		`{"state":"x","questions":{"q":{},"q":{}}}`:                                                               `field "q" stands twice`,
		`{"state":"x","questions":{"q":{},"\u0071":{}}}`:                                                          `field "q" stands twice`,
		`{"input":"x","questions":[{"name":"q"},{"name":"q"}]}`:                                                   `question "q" stands twice`,
		`{"state":"x","questions":{"q":{"type":"choice","criteria":{"a":1,"a":2}}}}`:                              `1:66: field "a" stands twice`,
		`{"state":"x","questions":{"\ud800":{}}}`:                                                                 "half of a surrogate pair",
		"{\"state\":\"\xff\",\"questions\":{\"q\":{}}}":                                                           "1:11: text that is not UTF-8",
		"{\"state\":\"\n\",\"questions\":{\"q\":{}}}":                                                             "control character",
		`{"state":NaN,"questions":{"q":{}}}`:                                                                      "1:10: want a value, got 'N'",
		`{"state":01,"questions":{"q":{}}}`:                                                                       "want a value",
		`{"state":1.,"questions":{"q":{}}}`:                                                                       "want a value",
		`{"state":"x","questions":{"q":{}}`:                                                                       "want ',', got the end",
		`{"state":"x","questions":{"q":{}}} {}`:                                                                   "text after",
		`{"state":"x","questions":{"q":{}},}`:                                                                     `want '"'`,
		`{"state":"x","model":7,"questions":{"q":{}}}`:                                                            "model must be a text",
		`{"state":"\x","questions":{"q":{}}}`:                                                                     "unknown escape",
		`{"state":"\u12","questions":{"q":{}}}`:                                                                   "broken \\u escape",
		`{"state":` + deep + `,"questions":{"q":{}}}`:                                                             "nesting deeper",
		`{"state":"x","questions":{"q":{"type":"choice","criteria":{` + strings.Repeat(`"a":1,`, 3) + `"b":2}}}}`: "stands twice",
	} {
		r, err := ParseRequest([]byte(body), Limits{})
		if err == nil {
			t.Errorf("%.80q was read as %+v", body, r)
			continue
		}
		if !strings.Contains(err.Error(), want) || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
			t.Errorf("%.80q: %v (want %s)", body, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	body := []byte(`{"state":"x","questions":{"a":{"type":"choice","criteria":{"x":1,"y":2,"z":3}},"b":{"type":"score","criteria":["l","m","n"]}}}`)
	for name, l := range map[string]Limits{"bytes": {Bytes: len(body) - 1}, "depth": {Depth: 2}, "questions": {Questions: 1}, "options": {Options: 2}} {
		if _, err := ParseRequest(body, l); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseRequest(body, Limits{Bytes: len(body), Depth: 4, Questions: 2, Options: 3}); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

// The largest requests that were seen or documented, and text that re-encoding changes.
func TestLargeAndOddRequestsAreExact(t *testing.T) {
	var b strings.Builder
	state := `"` + strings.Repeat("<>&\u2028\u00e9 ", 1<<17) + `"`
	fmt.Fprintf(&b, `{"model":"m","state":%s,"questions":{`, state)
	for q := range 400 {
		if q > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"q%03d":{"type":"choice","criteria":{`, 399-q)
		for o := range 255 {
			if o > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"o%d":null`, o*7919%255)
		}
		b.WriteString("}}")
	}
	b.WriteString("}}")
	r := mustRequest(t, b.String())
	if len(r.Questions) != 400 || r.Questions[0].ID != "q399" || len(r.Questions[7].Options) != 255 || r.Questions[7].Options[1].Name != "o14" {
		t.Errorf("%d questions, first %s", len(r.Questions), r.Questions[0].ID)
	}
	if string(r.State.Raw) != state {
		t.Error("the state is not byte for byte")
	}
}

// randomJSON writes a value with white space that no encoder would.
func randomJSON(rng *rand.Rand, depth int) string {
	space := []string{"", " ", "\n", "\t "}[rng.IntN(4)]
	switch n := rng.IntN(7); {
	case n == 0 && depth > 0:
		return fmt.Sprintf("{%s\"k%d\"%s:%s}", space, rng.IntN(9), space, randomJSON(rng, depth-1))
	case n == 1 && depth > 0:
		return "[" + randomJSON(rng, depth-1) + space + "," + randomJSON(rng, depth-1) + "]"
	case n == 2:
		return []string{"1e-7", "-0", "0.10", "12345678901234567890"}[rng.IntN(4)]
	case n == 3:
		return []string{"true", "false", "null"}[rng.IntN(3)]
	}
	return []string{`"a\u0041\/"`, "\"\u2028<b>&\"", `""`, `"\ud83d\ude00"`}[rng.IntN(4)]
}

// Against encoding/json: the same raw values, for what it reads without loss.
func TestRawValuesAgreeWithEncodingJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		state, ins, crit := randomJSON(rng, 3), randomJSON(rng, 2), randomJSON(rng, 3)
		body := fmt.Sprintf(`{"state":%s,"questions":{"q":{"instructions":%s,"type":"noul","criteria":%s}}}`, state, ins, crit)
		var want struct {
			State     json.RawMessage
			Questions map[string]struct{ Instructions, Criteria *json.RawMessage }
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err, body)
		}
		r, q := mustRequest(t, body), want.Questions["q"]
		if string(r.State.Raw) != string(want.State) || !same(r.Questions[0].Instructions, q.Instructions) || !same(r.Questions[0].Criteria, q.Criteria) {
			t.Fatalf("%s\n%+v", body, r)
		}
	}
}

func same(got json.RawMessage, want *json.RawMessage) bool {
	if want == nil {
		return got == nil
	}
	return string(got) == string(*want)
}
