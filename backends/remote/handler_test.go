package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
)

// post sends a body to the handler and returns status and answer.
func post(t testing.TB, h http.Handler, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/decide", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %q", ct)
	}
	return w.Code, w.Body.String()
}

// capture serves and keeps a copy of what the backend was asked.
func capture(o remote.HandlerOptions) (http.Handler, func() *decision.Request) {
	var got *decision.Request
	return remote.Handler(&engine{hook: func(_ context.Context, req *decision.Request, _ *decision.Response) error {
		got = req
		return nil
	}}, o), func() *decision.Request { return got }
}

func TestHandlerReadsTheRequest(t *testing.T) {
	h, got := capture(remote.HandlerOptions{Scenario: "default", Now: func() time.Time { return time.Unix(5, 0) }})
	code, _ := post(t, h, `{"id": "01890a5d-ac96-774b-bcce-b302099a8057", "scenario": "s", "action": "gate", "type": "choice", "candidates": ["allow", "b\u00e9\ud83d\ude00"],
 "context": {"a.b": 1, "c": {"d": 1.0, "e": {"f": "x\n"}}, "g": null, "h": true, "i": -0.0, "j": {"$double": "-Inf"}, "k": {"$bytes": "/w=="}, "l": 9007199254740993, "m": 1e2},
 "features": [1, 0.1, {"$double": "NaN"}], "feature_set": "v1", "now": "2026-01-02T03:04:05.000000006+01:00", "seed": 18446744073709551615, "timeout_ms": 0.5}`)
	req := got()
	if code != 200 || req == nil {
		t.Fatalf("status %d, request %v", code, req)
	}
	if req.ID.String() != "01890a5d-ac96-774b-bcce-b302099a8057" || req.Scenario != "s" || req.Seed != 1<<64-1 || req.Deadline != 500*time.Microsecond ||
		!req.Now.Equal(time.Date(2026, 1, 2, 2, 4, 5, 6, time.UTC)) || req.FeatureSet != "v1" || len(req.Features) != 3 || req.Features[1] != 0.1 {
		t.Errorf("request %+v", req)
	}
	if want := (decision.Question{ID: "gate", Type: decision.QuestionChoice, Candidates: []string{"allow", "bé😀"}}); !reflect.DeepEqual(req.Questions, []decision.Question{want}) {
		t.Errorf("questions %+v", req.Questions)
	}
	var lines []string
	for i, f := range req.Attrs.Schema.Fields() {
		lines = append(lines, fmt.Sprintf("%s %v %v", f.Name, f.Type, req.Attrs.At(i)))
	}
	want := []string{"a.b int 1", "c.d double 1", "c.e.f string x\n", "h bool true", "i double -0", "j double -Inf", "k string \xff", "l int 9007199254740993", "m double 100"}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("attributes\n%q\nwant\n%q", lines, want)
	}
}

func TestHandlerFillsInWhatIsAbsent(t *testing.T) {
	h, got := capture(remote.HandlerOptions{Scenario: "default", Now: func() time.Time { return time.Unix(5, 0) }})
	code, body := post(t, h, `{"context": {"metrics.rate": 0.9}}`)
	req := got()
	if code != 200 || req.ID.IsZero() || req.Scenario != "default" || !req.Now.Equal(time.Unix(5, 0)) || req.Deadline != 0 || req.Questions[0].Type != decision.QuestionAction {
		t.Errorf("status %d, request %+v", code, req)
	}
	var answer struct {
		SnapshotID decision.ID `json:"snapshot_id"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if at, ok := answer.SnapshotID.Time(); !ok || !at.Equal(time.Unix(5, 0)) {
		t.Errorf("snapshot id %v in %s", answer.SnapshotID, body)
	}
}

func TestHandlerConvertsToItsSchema(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "n", Type: decision.Int}, decision.Field{Name: "x", Type: decision.Double})
	if err != nil {
		t.Fatal(err)
	}
	h, got := capture(remote.HandlerOptions{Schema: schema})
	if code, body := post(t, h, `{"context": {"x": 1, "n": 2.0}}`); code != 200 {
		t.Fatal(body)
	}
	if a := got().Attrs; a.Schema != schema || a.Get("x") != decision.DoubleValue(1) || a.Get("n") != decision.IntValue(2) {
		t.Errorf("attributes %+v", a)
	}
	// Attributes that the schema lacks follow; requests of one shape share a schema.
	for range 2 {
		post(t, h, `{"context": {"x": 1, "new": "y"}}`)
	}
	first := got().Attrs.Schema
	post(t, h, `{"context": {"x": 3, "new": "z"}}`)
	if a := got().Attrs; a.Schema != first || a.Schema.Len() != 3 || a.Get("new").Str() != "z" || !a.Get("n").IsNull() || a.Get("x").Double() != 3 {
		t.Errorf("attributes %+v", a)
	}
	code, body := post(t, h, "{\"context\":\n {\"x\": \"1\"}}")
	if code != 400 || !strings.Contains(body, `2:8: attribute \"x\" must be double, got string`) {
		t.Errorf("%d %s", code, body)
	}
}

func TestHandlerRefusesBadRequests(t *testing.T) {
	h := remote.Handler(&engine{}, remote.HandlerOptions{MaxBody: 4096})
	ctx := func(s string) string { return `{"context": ` + s + `}` }
	for _, tc := range []struct{ in, want string }{
		{"", `1:1: want '{', got the end`},
		{"[]", `1:1: want '{', got '['`},
		{"{}", `missing field \"context\"`},
		{`{"context": {}} x`, `1:17: text after the JSON value`},
		{`{"context": {}, "contxt": {}}`, `1:17: unknown field \"contxt\" (did you mean \"context\"?)`},
		{`{"context": {}, "context": {}}`, `1:17: field \"context\" stands twice`},
		{"{\"context\": {\"a\": 1,\n\"a\": 1}}", `2:1: field \"a\" stands twice`},
		{ctx(`{"a.b": 1, "a": {"b": 2}}`), `attribute \"a.b\" has no name or stands twice`},
		{ctx(`{"": 1}`), `attribute \"\" has no name`},
		{ctx(`{"a": [1]}`), `1:19: attribute \"a\" is a list`},
		{ctx(`{"a": 9223372036854775808}`), `is no 64-bit integer; write a point for a double`},
		{ctx(`{"a": 1e999}`), `is out of range`},
		{ctx(`{"a": 01}`), `want a number`},
		{ctx(`{"a": NaN}`), `want a number`},
		{ctx(`{"a": .5}`), `want a number`},
		{ctx(`{"a": "\ud800"}`), `a broken \\u escape`},
		{ctx(`{"a": "\ud800\u0041"}`), `a broken \\u escape`},
		{ctx(`{"a": "\x"}`), `unknown escape`},
		{ctx("{\"a\": \"\xff\"}"), `not UTF-8`},
		{ctx("{\"a\": \"\n\"}"), `a control character`},
		{ctx(`{"a": {"$double": "Inf"}}`), `must be \"NaN\", \"+Inf\" or \"-Inf\"`},
		{ctx(`{"a": {"$double": "NaN", "b": 1}}`), `stands alone`},
		{ctx(`{"a": {"b": 1, "$double": "NaN"}}`), `stands alone`},
		{ctx(`{"a": {"$bytes": "*"}}`), `is not base64`},
		{ctx(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)), `nested more than 32 deep`},
		{`{"context": {}, "candidates": ["a", "a"]}`, `1:37: candidate \"a\" is empty or stands twice`},
		{`{"context": {}, "candidates": [""]}`, `is empty or stands twice`},
		{`{"context": {}, "candidates": "a"}`, `want '[', got '\"'`},
		{`{"context": {}, "id": "x"}`, `not a UUID`},
		{`{"context": {}, "type": "guess"}`, `unknown type \"guess\"`},
		{`{"context": {}, "now": "today"}`, `is no time of RFC 3339`},
		{`{"context": {}, "seed": -1}`, `seed must be`},
		{`{"context": {}, "seed": 1.5}`, `seed must be`},
		{`{"context": {}, "timeout_ms": 0}`, `timeout_ms must be`},
		{`{"context": {}, "features": ["1"]}`, `want a number`},
		{`{"context": {}, "features": [{"$bytes": ""}]}`, `a feature must be a number`},
		{`{"context": {}, "features": [{"features": 1}]}`, `a feature must be a number`},
	} {
		if code, body := post(t, h, tc.in); code != 400 || !strings.Contains(body, tc.want) || !strings.Contains(body, `"code":"bad-request"`) {
			t.Errorf("%s: %d %s, want %s", tc.in, code, body, tc.want)
		}
	}
	if code, body := post(t, h, ctx(`{"a": "`+strings.Repeat("x", 4096)+`"}`)); code != 413 || !strings.Contains(body, "more than 4096 bytes") {
		t.Errorf("%d %s", code, body)
	}
}

func TestHandlerMethodsAndTypes(t *testing.T) {
	base := serve(t, remote.Handler(&engine{}, remote.HandlerOptions{}))
	for _, tc := range []struct {
		method, path, kind string
		want               int
	}{
		{"GET", "/v1/decide", "", 405}, {"POST", "/healthz", "", 405}, {"POST", "/v2/decide", "", 404},
		{"POST", "/v1/decide", "text/plain", 415}, {"POST", "/v1/decide", "application/x-www-form-urlencoded", 415}, {"POST", "/v1/decide", ";", 415}, {"POST", "/v1/decide", "", 200},
		{"GET", "/healthz", "", 200},
	} {
		req, err := http.NewRequest(tc.method, base+tc.path, strings.NewReader(`{"context": {}}`))
		if err != nil {
			t.Fatal(err)
		}
		if tc.kind != "" {
			req.Header.Set("Content-Type", tc.kind)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s %s %q: %d, want %d", tc.method, tc.path, tc.kind, resp.StatusCode, tc.want)
		}
	}
}

func TestHandlerBoundsConcurrency(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	h := remote.Handler(&engine{hook: func(context.Context, *decision.Request, *decision.Response) error {
		entered <- struct{}{}
		<-release
		return nil
	}}, remote.HandlerOptions{MaxInflight: 2})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if code, body := post(t, h, `{"context": {}}`); code != 200 {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	<-entered
	<-entered
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/decide", strings.NewReader(`{"context": {}}`)))
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "2 requests are being served already") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	close(release)
	wg.Wait()
	go func() { <-entered }()
	if code, _ := post(t, h, `{"context": {}}`); code != 200 {
		t.Errorf("places are not given back: %d", code)
	}
}

func TestHandlerPassesTheDeadlineOn(t *testing.T) {
	for body, want := range map[string]time.Duration{`{"context": {}}`: time.Hour, `{"context": {}, "timeout_ms": 60000}`: time.Minute, `{"context": {}, "timeout_ms": 86400000}`: time.Hour} {
		var left time.Duration
		h := remote.Handler(&engine{hook: func(ctx context.Context, _ *decision.Request, _ *decision.Response) error {
			end, _ := ctx.Deadline()
			left = time.Until(end)
			return nil
		}}, remote.HandlerOptions{Timeout: time.Hour})
		post(t, h, body)
		if left > want || left < want-30*time.Second {
			t.Errorf("%s: %v left, want %v", body, left, want)
		}
	}
}

// A client that sends its body too slowly is cut off, and does not keep its place.
func TestHandlerCutsSlowBodies(t *testing.T) {
	base := serve(t, remote.Handler(&engine{}, remote.HandlerOptions{Timeout: 20 * time.Millisecond}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 400")) || !bytes.Contains(answer, []byte("could not be read")) {
		t.Errorf("answer %q", answer)
	}
}

func TestHandlerReportsTheSnapshot(t *testing.T) {
	id := decision.NewID(time.Unix(1e9, 0))
	var seen string
	h := remote.Handler(&engine{}, remote.HandlerOptions{OnDecision: func(_ context.Context, req *decision.Request, out *decision.Response) decision.ID {
		seen = req.Scenario + " " + out.Decisions[0].Action + out.Decisions[0].ErrorCode + " " + string(req.Body[:9])
		return id
	}})
	if _, body := post(t, h, `{"scenario": "s", "candidates": ["other"], "context": {"metrics.rate": 0.9}}`); !strings.Contains(body, `"snapshot_id":"`+id.String()+`"`) || !strings.Contains(body, `"code":"action-not-allowed"`) {
		t.Error(body)
	}
	if want := `s action-not-allowed {"scenari`; seen != want {
		t.Errorf("the hook saw %q, want %q", seen, want)
	}
	if _, body := post(t, h, `{"scenario": "s", "candidates": ["block"], "context": {"metrics.rate": 0.9}}`); !strings.Contains(body, `"status":"ok","action":"block"`) {
		t.Error(body)
	}
}

// An answer that JSON cannot carry unchanged is an error outcome, not a changed answer.
func TestHandlerAnswersThatJSONCannotCarry(t *testing.T) {
	for name, change := range map[string]func(d *decision.Decision, a *decision.Artefact){
		"action":     func(d *decision.Decision, _ *decision.Artefact) { d.Action = "\xff" },
		"params":     func(d *decision.Decision, _ *decision.Artefact) { d.Params = `{"a":` },
		"list":       func(d *decision.Decision, _ *decision.Artefact) { d.Params = `[1]` },
		"two values": func(d *decision.Decision, _ *decision.Artefact) { d.Params = `{}{}` },
		"confidence": func(d *decision.Decision, _ *decision.Artefact) { d.Confidence.V = math.Inf(1) },
		"candidates": func(d *decision.Decision, _ *decision.Artefact) { d.Candidates = append(d.Candidates, d.Candidates[0]) },
		"model":      func(_ *decision.Decision, a *decision.Artefact) { a.ModelResolved = "\xff" },
	} {
		h := remote.Handler(&engine{hook: func(_ context.Context, _ *decision.Request, out *decision.Response) error {
			change(&out.Decisions[0], &out.Artefact)
			return nil
		}}, remote.HandlerOptions{})
		code, body := post(t, h, `{"context": {"metrics.rate": 0.9}}`)
		if code != 200 || !json.Valid([]byte(body)) || !strings.Contains(body, `"status":"error"`) || !strings.Contains(body, `"code":"not-encodable"`) {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

func TestHandlerBackendFailure(t *testing.T) {
	h := remote.Handler(&engine{hook: func(context.Context, *decision.Request, *decision.Response) error { return errors.New("broken \xff") }}, remote.HandlerOptions{})
	if code, body := post(t, h, `{"context": {}}`); code != 500 || !json.Valid([]byte(body)) || !strings.Contains(body, `"code":"backend-failed"`) {
		t.Errorf("%d %s", code, body)
	}
}
