package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

func TestClientAndHandlerKeepTheContract(t *testing.T) {
	base := serve(t, remote.Handler(&engine{}, remote.HandlerOptions{}))
	special := request(t, math.Inf(1))
	special.Features, special.FeatureSet = []float32{1, 0.1, float32(math.NaN())}, "v1"
	backendtest.Run(t, func(t *testing.T) decision.Backend {
		return client(t, remote.ClientOptions{BaseURL: base, Deterministic: true})
	}, backendtest.Cases{Requests: []*decision.Request{request(t, 0.1), request(t, 0.9), request(t, nil), special}})
}

// Over the wire a decision is the same to the last bit.
func TestAnswersAreTheSameAsInProcess(t *testing.T) {
	c := client(t, remote.ClientOptions{BaseURL: serve(t, remote.Handler(&engine{}, remote.HandlerOptions{}))})
	for _, rate := range []any{0.1, 0.9, nil, math.NaN()} {
		req, want := request(t, rate), new(decision.Response)
		if err := (&engine{}).Decide(context.Background(), req, want); err != nil {
			t.Fatal(err)
		}
		got := ask(t, c, req)
		want.Decisions[0].Candidates = append([]decision.Candidate(nil), want.Decisions[0].Candidates...)
		if !reflect.DeepEqual(got.Decisions, want.Decisions) {
			t.Errorf("rate %v: got\n%+v\nwant\n%+v", rate, got.Decisions, want.Decisions)
		}
		a := got.Artefact
		if a.HTTPStatus != 200 || a.Dialect != "decide" || !strings.HasPrefix(a.Provider, "127.0.0.1:") || a.StrategyDigest != want.Artefact.StrategyDigest ||
			a.StrategyVersion != "1.10" || a.EngineVersion != "e-1" || a.ModelResolved != "m-1" {
			t.Errorf("artefact %+v", a)
		}
		if s := got.Stages; !s.Transport.Set || !s.Serialise.Set || s.Rules.Set || got.Attempts != 1 || got.Usage.BytesIn.V == 0 || got.Usage.BytesOut.V == 0 {
			t.Errorf("stages %+v, attempts %d, usage %+v", s, got.Attempts, got.Usage)
		}
	}
}

// A request of several questions is as many calls; each fails or succeeds by itself.
func TestQuestionsAreAskedOneByOne(t *testing.T) {
	var names []string
	c := client(t, remote.ClientOptions{BaseURL: serve(t, remote.Handler(&engine{hook: func(_ context.Context, req *decision.Request, out *decision.Response) error {
		names = append(names, req.Questions[0].ID)
		if req.Questions[0].ID == "second" {
			return errors.New("no such question")
		}
		return nil
	}}, remote.HandlerOptions{}))})
	req := request(t, 0.1)
	req.Questions = []decision.Question{{ID: "first", Type: decision.QuestionChoice}, {ID: "second"}, {ID: "third", Candidates: []string{"block"}}}
	out := ask(t, c, req)
	if fmt.Sprint(names) != "[first second third]" || out.Attempts != 3 {
		t.Errorf("asked %v in %d attempts", names, out.Attempts)
	}
	var got []string
	for _, d := range out.Decisions {
		got = append(got, d.Status.String()+" "+d.Action+d.ErrorCode)
	}
	if want := "ok allow, error http-500, error action-not-allowed"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// What a service may do wrong, and what becomes of it: never a decision.
func TestBadServices(t *testing.T) {
	body := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	for _, tc := range []struct {
		name   string
		h      http.HandlerFunc
		status decision.Status
		code   string
		want   string
	}{
		{"503", body(503, `{"error": {"code": "x", "message": "over\u0000loaded"}}`), decision.Error, "http-503", "Service Unavailable: over loaded"},
		{"403 is not a denial", body(403, "deny"), decision.Error, "http-403", "Forbidden: deny"},
		{"empty 404", body(404, ""), decision.Error, "http-404", "Not Found"},
		{"201", body(201, `{"action": "allow"}`), decision.Error, "http-201", "Created"},
		{"long error", body(500, strings.Repeat("é", 1000)), decision.Error, "http-500", "..."},
		{"HTML", body(200, "<html>"), decision.Error, "bad-response", "want '{'"},
		{"empty", body(200, ""), decision.Error, "bad-response", "want '{', got the end"},
		{"truncated", body(200, `{"status": "ok", "action": "al`), decision.Error, "bad-response", "does not end"},
		{"list", body(200, `[]`), decision.Error, "bad-response", "want '{'"},
		{"nothing in it", body(200, `{}`), decision.Error, "bad-response", "neither status nor action"},
		{"two actions", body(200, `{"action": "allow", "action": "block"}`), decision.Error, "bad-response", `"action" stands twice`},
		{"unknown status", body(200, `{"status": "maybe", "action": "allow"}`), decision.Error, "bad-response", "unknown status"},
		{"ok without action", body(200, `{"status": "ok"}`), decision.Error, "bad-response", "without an action"},
		{"abstains with action", body(200, `{"status": "abstain", "action": "allow"}`), decision.Error, "bad-response", "with the action"},
		{"confidence", body(200, `{"action": "allow", "confidence": 75}`), decision.Error, "bad-response", "not in [0,1]"},
		{"probability", body(200, `{"action": "allow", "probabilities": {"allow": 1.5}}`), decision.Error, "bad-response", "not in [0,1]"},
		{"too much", body(200, `{"action": "allow", "x": "`+strings.Repeat("x", 4096)+`"}`), decision.Error, "bad-response", "more than 4096 bytes"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.invalid/", http.StatusTemporaryRedirect)
		}, decision.Error, "http-307", "Temporary Redirect"},
		{"reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, decision.Error, "transport", ""},
		{"an error of its own", body(200, `{"status": "error"}`), decision.Error, "remote-error", ""},
		{"a timeout of its own", body(200, `{"status": "timeout", "code": "slow-model"}`), decision.Timeout, "slow-model", ""},
		{"a denial is a status", body(200, `{"status": "denied"}`), decision.Denied, "", ""},
		{"plain", body(200, `{"action": "allow", "confidence": 0.5, "snapshot_id": "x", "more": [1, {"a": null}]}`), decision.OK, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(t, remote.ClientOptions{BaseURL: serve(t, tc.h), MaxResponse: 4096})
			d := ask(t, c, request(t, 0.1)).Decisions[0]
			if d.Status != tc.status || d.ErrorCode != tc.code || !strings.Contains(d.Error, tc.want) || len(d.Error) > 400 {
				t.Errorf("got %v %q %q, want %v %q %q", d.Status, d.ErrorCode, d.Error, tc.status, tc.code, tc.want)
			}
			if !d.Status.Answered() && (d.Action != "" || d.Confidence.Set) {
				t.Errorf("a failed decision keeps %+v", d)
			}
		})
	}
}

func TestConfidenceWithoutADefinition(t *testing.T) {
	c := client(t, remote.ClientOptions{BaseURL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"action": "a", "confidence": 0.5}`) }))})
	if d := ask(t, c, request(t, 0.1)).Decisions[0]; d.ConfidenceDef != remote.ConfidenceUnspecified || d.Confidence.V != 0.5 {
		t.Errorf("%+v", d)
	}
}

func TestServiceThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	l.Close()
	c := client(t, remote.ClientOptions{BaseURL: base})
	if d := ask(t, c, request(t, 0.1)).Decisions[0]; d.Status != decision.Error || d.ErrorCode != remote.CodeConnect {
		t.Errorf("%+v", d)
	}
	if err := c.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), base+"/healthz does not answer") {
		t.Errorf("ready: %v", err)
	}
}

// hanging sends the beginning of an answer, if any, and then nothing more until the test
// ends. It does not wait for the request's context: a server notices that a client has
// gone only after it has read the whole body, which may never come.
func hanging(t *testing.T, beginning string) string {
	t.Helper()
	gone := make(chan struct{})
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if beginning != "" {
			fmt.Fprint(w, beginning)
			w.(http.Flusher).Flush()
		}
		<-gone
	}))
	t.Cleanup(func() { close(gone) }) // before the server's own, which waits for its handlers
	return base
}

func TestDeadlines(t *testing.T) {
	base := hanging(t, "")
	const short = 20 * time.Millisecond
	for _, tc := range []struct {
		name             string
		request, timeout time.Duration
	}{{"of the request", short, time.Hour}, {"of the client", 0, short}, {"of the client, before the request's", time.Hour, short}, {"of the request alone", short, 0}} {
		req := request(t, 0.1)
		req.Questions = make([]decision.Question, 3)
		req.Deadline = tc.request
		for i, d := range ask(t, client(t, remote.ClientOptions{BaseURL: base, Timeout: tc.timeout}), req).Decisions {
			if d.Status != decision.Timeout || d.ErrorCode != remote.CodeTimeout || d.Reason.Kind != decision.ReasonTimeout {
				t.Errorf("deadline %s, question %d: %+v", tc.name, i, d)
			}
		}
	}
}

func TestBodyThatNeverEnds(t *testing.T) {
	req := request(t, 0.1)
	req.Deadline = 20 * time.Millisecond
	c := client(t, remote.ClientOptions{BaseURL: hanging(t, `{"action": "allow", `)})
	if d := ask(t, c, req).Decisions[0]; d.Status != decision.Timeout {
		t.Errorf("%+v", d)
	}
}

func TestCanceledCall(t *testing.T) {
	c := client(t, remote.ClientOptions{BaseURL: hanging(t, "")})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	out := new(decision.Response)
	if err := c.Decide(ctx, request(t, 0.1), out); err != nil {
		t.Fatal(err)
	}
	if d := out.Decisions[0]; d.Status != decision.Error || d.ErrorCode != remote.CodeCanceled {
		t.Errorf("%+v", d)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(remote.Handler(&engine{}, remote.HandlerOptions{}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := client(t, remote.ClientOptions{BaseURL: s.URL})
	if err := c.Warm(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if d := ask(t, c, request(t, 0.1)).Decisions[0]; d.Status != decision.OK {
			t.Fatalf("%+v", d)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 21 calls", n)
	}
}

func TestRequestsThatJSONCannotCarry(t *testing.T) {
	c := client(t, remote.ClientOptions{BaseURL: "http://127.0.0.1:1"})
	for name, change := range map[string]func(req *decision.Request){
		"scenario":  func(req *decision.Request) { req.Scenario = "\xff" },
		"candidate": func(req *decision.Request) { req.Questions[0].Candidates = []string{"\xff"} },
		"year":      func(req *decision.Request) { req.Now = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"attribute": func(req *decision.Request) {
			schema, err := decision.NewSchema(decision.Field{Name: "$double", Type: decision.Double})
			if err != nil {
				t.Fatal(err)
			}
			req.Attrs.Schema = schema
		},
	} {
		req := request(t, 0.1)
		change(req)
		out := ask(t, c, req)
		if d := out.Decisions[0]; d.Status != decision.NotReplayable || d.ErrorCode != remote.CodeNotEncodable || out.Attempts != 0 {
			t.Errorf("%s: %+v in %d attempts", name, d, out.Attempts)
		}
	}
}

func TestKeyIsSentAndNeverShown(t *testing.T) {
	const key = "sk-test-0123456789"
	var seen atomic.Value
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"))
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"error": {"message": "the key %s is wrong"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	env := func(name string) string {
		return map[string]string{"KEY": key, "BAD": "a\nb", "SHORT": "1234567"}[name]
	}
	c := client(t, remote.ClientOptions{BaseURL: base, KeyEnv: "KEY", Getenv: env})
	d := ask(t, c, request(t, 0.1)).Decisions[0]
	if seen.Load() != "Bearer "+key {
		t.Errorf("the service saw %v", seen.Load())
	}
	if strings.Contains(fmt.Sprint(d), key) || !strings.Contains(d.Error, "***") {
		t.Errorf("decision %+v", d)
	}
	if strings.Contains(fmt.Sprintf("%+v", c.Info()), key) {
		t.Error("Info shows the key")
	}
	for name, want := range map[string]string{"GONE": "the environment variable GONE (key_env) is not set", "BAD": "holds blanks or control characters", "SHORT": "SHORT (key_env) holds fewer than 8 characters"} {
		if _, err := remote.NewClient(remote.ClientOptions{BaseURL: base, KeyEnv: name, Getenv: env}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "1234567") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewClientRefuses(t *testing.T) {
	for base, want := range map[string]string{
		"": "must be a URL", "127.0.0.1:8080": "must be a URL", "ftp://h": "must be a URL", "http://": "must be a URL", "http://u:hunter2@h": "holds a user name",
		"http://h?x=1": "must not have a query", "http://h/#x": "must not have a query", "http://h:hunter2/": "must be a URL",
	} {
		if _, err := remote.NewClient(remote.ClientOptions{BaseURL: base}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestParseOptions(t *testing.T) {
	o, err := remote.ParseOptions("lane", "http://h", url.Values{"timeout": {"15ms"}, "key_env": {"K"}, "deterministic": {"true"}, "breaker": {"off"}})
	if want := (remote.ClientOptions{Name: "lane", BaseURL: "http://h", KeyEnv: "K", Timeout: 15 * time.Millisecond, Deterministic: true, NoBreaker: true}); err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
	for key, tc := range map[string][2]string{
		"timeout": {"15", `option "timeout"`}, "timeouts": {"1s", `did you mean "timeout"?`}, "zzzz": {"1", "known options: breaker, deterministic, key_env, timeout"},
		"deterministic": {"maybe", `option "deterministic"`}, "breaker": {"of", `option "breaker": must be on or off`},
	} {
		if _, err := remote.ParseOptions("n", "http://h", url.Values{key: {tc[0]}}); err == nil || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := remote.ParseOptions("n", "http://h", url.Values{"timeout": {"-1s"}}); err == nil {
		t.Error("a negative timeout was taken")
	}
}

func ExampleNewClient() {
	server := httptest.NewServer(remote.Handler(&engine{}, remote.HandlerOptions{}))
	defer server.Close()
	c, err := remote.NewClient(remote.ClientOptions{BaseURL: server.URL})
	if err != nil {
		panic(err)
	}
	defer c.Close(context.Background())
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.rate", Type: decision.Double})
	if err != nil {
		panic(err)
	}
	req := &decision.Request{
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(0.9)}},
		Questions: []decision.Question{{Candidates: []string{"allow", "block"}}},
		Deadline:  5 * time.Second,
	}
	var out decision.Response
	if err := c.Decide(context.Background(), req, &out); err != nil {
		panic(err)
	}
	d := out.Decisions[0]
	fmt.Println(d.Status, d.Action, d.Confidence.V, d.Reason.Rule)
	// Output: ok block 0.75 high
}

func BenchmarkDecide(b *testing.B) {
	c := client(b, remote.ClientOptions{BaseURL: serve(b, remote.Handler(&engine{}, remote.HandlerOptions{}))})
	req, out := request(b, 0.9), new(decision.Response)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Decide(context.Background(), req, out); err != nil || out.Decisions[0].Status != decision.OK {
			b.Fatal(err, out.Decisions)
		}
	}
}
