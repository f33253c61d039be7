package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1"

func TestBodiesLoseTheirSecrets(t *testing.T) {
	long := strings.Repeat("x", DefaultMaxBody)
	for _, c := range []struct{ kind, in, want, notes string }{
		{"", `{"messages":[{"content":"see ` + jwt + `"}],"n": 1.0}`, `{"messages":[{"content":"see [redacted:jwt]"}],"n": 1.0}`, "input:/messages/0/content:jwt"},
		{"", `{"password":"hunter2"}`, `{"password":"[redacted:credential]"}`, "input:/password:credential"},
		{"", `user=a%40b.co&n=1`, `user=[redacted:email]&n=1`, "input:email"},
		{"", `{"a":1}`, `{"a":1}`, ""}, {"", `{"a":`, "", "input:unparsable"}, {"", "\xff\xfe", "", "input:binary"}, {"", " ", " ", ""},
		{"application/json; charset=utf-8", "a@b.co", "", "input:unparsable"}, {"application/problem+json", "[1]", "[1]", ""}, {"text/plain", "a@b.co", "[redacted:email]", "input:email"},
		{"", `{"a":"` + long + `"}`, "", "input:truncated,input:unparsable"}, {"", "a@b.co " + long, "[redacted:email] ", "input:truncated,input:email"},
		{"", `["x"` + strings.Repeat(`,"a@b.co"`, 18) + `]`, `["x"` + strings.Repeat(`,"[redacted:email]"`, 18) + `]`, "and 2 more"},
	} {
		sink := &memory{}
		r := newRecorder(t, sink, Options{Scenario: "s", EntityKey: key, Capture: Capture{Input: true, Output: true}})
		req := httptest.NewRequest("POST", "/", strings.NewReader(c.in))
		req.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			w.Header().Set("Content-Type", c.kind)
			w.Write(body)
			choose(req, "allow")
		})).ServeHTTP(w, req)
		closeNow(t, r)
		got := sink.all()[0]
		if w.Body.String() != c.in {
			t.Errorf("the client got %q", w.Body)
		}
		if string(got.Input) != c.want || string(got.Output) != c.want || (got.Input == nil) != (c.want == "") || got.InputLen.V != int64(len(c.in)) {
			t.Errorf("%.60q: stored %.80q and %.80q", c.in, got.Input, got.Output)
		}
		notes := strings.Join(got.Redacted, ",")
		half := strings.ReplaceAll(notes[len(notes)/2:], "output", "input")
		if len(c.in) <= DefaultMaxBody && (got.InputDigest.V != sum(key, c.in) || got.OutputDigest.V != got.InputDigest.V) {
			t.Errorf("%.60q: the digest is not the original's", c.in)
		}
		if c.notes == "" && notes != "" || c.notes != "" && !strings.HasSuffix(half, c.notes) || !strings.HasPrefix(notes, strings.Split(c.notes, ",")[0]) && !strings.HasPrefix(c.notes, "and") {
			t.Errorf("%.60q: notes %s, want %s twice", c.in, notes, c.notes)
		}
	}
}

func TestRawBodiesAndRawFields(t *testing.T) {
	sink := &memory{}
	fields := []CaptureField{{Name: "mail", Type: decision.String, Raw: true}, {Name: "note", Type: decision.String}, {Name: "hashed", Type: decision.String, Redact: Hash}}
	r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{Fields: fields, Input: true, RawBodies: true}})
	schema, _ := decision.NewSchema(decision.Field{Name: "mail", Type: decision.String}, decision.Field{Name: "note", Type: decision.String}, decision.Field{Name: "hashed", Type: decision.String})
	s := row(1)
	v := decision.StringValue("a@b.co")
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{v, v, v}}
	s.Input = []byte(`{"broken ` + jwt)
	r.Record(context.Background(), s)
	closeNow(t, r)
	got := sink.all()[0]
	if string(got.Input) != string(s.Input) || got.Attrs.Get("mail") != v || got.Attrs.Get("note").Str() != "[redacted:email]" ||
		got.Attrs.Get("hashed").Str() != hexSum("a@b.co") || fmt.Sprint(got.Redacted) != "[note:email hashed:hash]" {
		t.Errorf("row %+v", got)
	}
}

func TestTextsLoseTheirSecrets(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{All: true}})
	schema, _ := decision.NewSchema(decision.Field{Name: "note", Type: decision.String}, decision.Field{Name: "n", Type: decision.Int})
	for i := range 2 {
		s := row(i + 1)
		s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("call Bearer " + jwt), decision.IntValue(1)}}
		s.Params, s.ND, s.Error = `{"upstream":"https://u:pw1@h","ttl":5}`, `{"seed":7,"looked_up":{"password":"x"}}`, "mail to a@b.co failed"
		s.Redacted = []string{"before:drop"}
		r.Record(context.Background(), s)
	}
	closeNow(t, r)
	for _, got := range sink.all() {
		if got.Params != `{"upstream":"https://[redacted:userinfo]@h","ttl":5}` || got.ND != `{"seed":7,"looked_up":{"password":"[redacted:credential]"}}` ||
			got.Error != "mail to [redacted:email] failed" || got.Attrs.At(0).Str() != "call Bearer [redacted:bearer]" ||
			fmt.Sprint(got.Redacted) != "[before:drop note:bearer params:/upstream:userinfo nd:/looked_up/password:credential error:email]" {
			t.Errorf("row %+v", got)
		}
	}
}

// The rows of a request share their notes; what is said of one is not said of the others.
func TestNotesOfOneRowAreItsOwn(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", Capture: Capture{Fields: []CaptureField{{Name: "path", Type: decision.String, Redact: Drop}}}})
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		for i, params := range []string{`{"to":"a@b.co"}`, "", `{"to":"a@b.co"}`} {
			FromContext(req.Context()).Decision(fmt.Sprint(i)).Answer(decision.Decision{Action: "a", Params: params})
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/p", nil))
	closeNow(t, r)
	for i, want := range []string{"[path:drop params:/to:email]", "[path:drop]", "[path:drop params:/to:email]"} {
		if got := fmt.Sprint(sink.all()[i].Redacted); got != want {
			t.Errorf("row %d: %s", i, got)
		}
	}
}

// What was recorded can be recorded again without losing more, though a mark is shorter
// than what it stands for.
func TestRecordingAgainChangesNothing(t *testing.T) {
	in := []byte(`{"a":"` + jwt + `","b":"` + jwt + `"}`)
	var rows [2]string
	s := row(1)
	s.Input = in
	for i := range rows {
		sink := &memory{}
		r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{Input: true}})
		r.Record(context.Background(), s)
		closeNow(t, r)
		s = sink.all()[0]
		rows[i] = fmt.Sprintf("%s %v %v %x", s.Input, s.InputLen, s.Redacted, s.InputDigest.V)
	}
	if rows[0] != rows[1] || s.InputDigest.V != sum(key, string(in)) {
		t.Errorf("first %s\nthen  %s", rows[0], rows[1])
	}
}

// The scan runs behind the caller's own rewriting, and one that fails keeps everything out.
func TestRedactBodyComesFirst(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{Input: true, RedactBody: func(b []byte) ([]byte, error) {
		if bytes.Contains(b, []byte("fail")) {
			return nil, errors.New("no")
		}
		return bytes.ReplaceAll(b, []byte("ada"), []byte("***")), nil
	}}})
	for _, in := range []string{`{"user":"ada","mail":"x@b.co"}`, "fail"} {
		s := row(1)
		s.Input = []byte(in)
		r.Record(context.Background(), s)
	}
	led := closeNow(t, r)
	rows := sink.all()
	if len(rows) != 1 || led.Dropped[DropRedaction] != 1 || string(rows[0].Input) != `{"user":"***","mail":"[redacted:email]"}` ||
		fmt.Sprint(rows[0].Redacted) != "[input:rewritten input:/mail:email]" || strings.Contains(texts(reflect.ValueOf(rows)), "x@b.co") {
		t.Errorf("%+v %+v", led, rows)
	}
}
