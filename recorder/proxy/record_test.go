package proxy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// script answers the attempts of a client one after the other.
func script(t *testing.T, answers ...func(w http.ResponseWriter)) string {
	var n atomic.Int32
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		answers[min(int(n.Add(1)), len(answers))-1](w)
	})
}

func status(code int, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"detail":{"error_type":"overloaded","message":"try later %d"}}`, code)
	}
}

func fine(w http.ResponseWriter) { io.WriteString(w, answer1) }

func TestRetriesAreOneDecision(t *testing.T) {
	s := start(t, script(t, status(429, "Retry-After-Ms", "5"), status(529), fine))
	post(t, s.url+"/v1/systemone", ask1)
	time.Sleep(3 * time.Millisecond)
	post(t, s.url+"/v1/systemone", ask1, "X-TypeSafe-Retry-Count", "1")
	post(t, s.url+"/v1/systemone", ask1, "X-TypeSafe-Retry-Count", "2")
	r := only(t, s.rows())
	if r.Status != decision.OK || r.Action != "a" || r.Attempts.V != 3 || r.Artefact.HTTPStatus != 200 || !r.Stages.Queue.Set || r.Stages.Queue.V < 3*time.Millisecond {
		t.Errorf("%+v", r)
	}
	if sum := r.Stages.Queue.V + r.Stages.Transport.V; r.Latency.V < sum {
		t.Errorf("latency %v of parts %+v", r.Latency, r.Stages)
	}
	for _, part := range []string{`"attempts":[{"at_ns":0,`, `"http_status":429`, `"http_status":529`, `"http_status":200`} {
		if !strings.Contains(r.ND, part) {
			t.Errorf("no %s in %s", part, r.ND)
		}
	}
	if st := s.proxy.Stats(); st.Attempts != 3 || st.Retries != 2 || st.Decisions != 1 {
		t.Errorf("%+v", st)
	}
}

// What must not be taken for a retry: another body, another client, no word of a retry, a
// decision that was answered.
func TestWhatIsNoRetry(t *testing.T) {
	s := start(t, script(t, status(500), fine))
	other := strings.Replace(ask1, `"x"`, `"y"`, 1)
	post(t, s.url+"/v1/systemone", ask1)
	post(t, s.url+"/v1/systemone", ask1)                                                          // the same question, asked anew
	post(t, s.url+"/v1/systemone", other, "X-TypeSafe-Retry-Count", "1")                          // another question
	post(t, s.url+"/v1/systemone", ask1, "X-TypeSafe-Retry-Count", "1", "User-Agent", "somebody") // another client
	rows := s.rows()
	if len(rows) != 4 || s.proxy.Stats().Retries != 0 {
		t.Fatalf("%d rows, %+v", len(rows), s.proxy.Stats())
	}
	failed := 0
	for _, r := range rows {
		if r.Status == decision.Error {
			failed++
			if r.ErrorCode != "http-500" || r.Error != "overloaded: try later 500" || r.Attempts.V != 1 {
				t.Errorf("%+v", r)
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d failures", failed)
	}
}

func TestTwoClientsRetryTheSameBody(t *testing.T) {
	s := start(t, script(t, status(503), status(503), fine))
	for _, h := range []string{"", "", "1", "1"} {
		post(t, s.url+"/v1/systemone", ask1, "X-Stainless-Retry-Count", h)
	}
	rows := s.rows()
	if len(rows) != 2 || rows[0].Attempts.V != 2 || rows[1].Attempts.V != 2 || rows[0].Status != decision.OK || rows[1].Status != decision.OK {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
}

func TestIdempotencyKeyNamesARetry(t *testing.T) {
	s := start(t, script(t, status(503), fine))
	for _, key := range []string{"k1", "k1"} {
		post(t, s.url+"/v1/systemone", ask1, "Idempotency-Key", key)
	}
	if r := only(t, s.rows()); r.Attempts.V != 2 {
		t.Errorf("%+v", r)
	}
}

// A failure whose retry does not come is recorded when its time is over, not at the end.
func TestRetryWindowEnds(t *testing.T) {
	s := start(t, script(t, status(500)), func(o *Options, r *recorder.Options) {
		o.RetryWindow, r.FlushInterval = 20*time.Millisecond, 5*time.Millisecond
	})
	post(t, s.url+"/v1/systemone", ask1)
	for end := time.Now().Add(20 * time.Second); s.rec.Watermark() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the failure waits for ever")
		}
	}
	only(t, s.rows())
}

// Many failures must neither fill the memory that new requests need nor wait without bound.
func TestPendingFailuresGiveWay(t *testing.T) {
	s := start(t, script(t, status(500)), func(o *Options, _ *recorder.Options) { o.Budget, o.RetryWindow = 1<<20, time.Hour })
	body := strings.Replace(ask1, `"x"`, `"`+strings.Repeat("x", 8<<10)+`"`, 1)
	for i := range 300 {
		post(t, s.url+"/v1/systemone", body)
		if i%20 == 19 { // what is not read yet has no way to give: here it is a quarter of the memory
			s.read(uint64(i + 1))
		}
	}
	if rows := s.rows(); len(rows) != 300 {
		t.Errorf("%d rows of 300: %+v", len(rows), s.rec.Stats().Ledger)
	}
}

func written(rows []*snapshot.Snapshot) []byte {
	var b bytes.Buffer
	for _, r := range rows {
		fmt.Fprintf(&b, "%+v %s %s\n", *r, r.Input, r.Output)
	}
	return b.Bytes()
}

// Credentials of the request and what a 422 repeats of it are nowhere in what is written.
func TestSecretsAreNowhere(t *testing.T) {
	const token, password, echoed, apiKey = "tok-4f9d1c77aa", "pa55-word-77", "planted-in-the-state", "key-81c2d9e0"
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + password))
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(string(body), "E422"):
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"detail":[{"loc":["body","state"],"msg":"Input '%s' is bad","type":"string_type","input":%q,"ctx":{"h":%q}}]}`,
				echoed, echoed, r.Header.Get("Authorization"))
		case strings.Contains(string(body), "HTML"):
			w.WriteHeader(500)
			fmt.Fprintf(w, `<pre>%s %s</pre>`, echoed, r.Header)
		default:
			_, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			fmt.Fprintf(w, `{"success":false,"errors":[{"code":1,"message":"%s %s"}],"result":{"input":%q}}`, sent, apiKey, echoed)
		}
	})
	s := start(t, upstream, func(_ *Options, r *recorder.Options) { r.Capture.Input = false })
	for _, state := range []string{"E422", "HTML", "200"} {
		for _, auth := range []string{"Bearer " + token, "Basic " + basic} {
			body := strings.Replace(ask1, `"x"`, fmt.Sprintf("%q", state+echoed), 1)
			post(t, s.url+"/v1/systemone?api_key="+apiKey, body, "Authorization", auth, "X-Api-Key", apiKey, "Cookie", "session=tok-session-123")
		}
	}
	rows := s.rows()
	if len(rows) != 6 {
		t.Fatalf("%d rows", len(rows))
	}
	out := written(rows)
	for _, secret := range []string{token, password, echoed, apiKey, basic, "tok-session-123"} {
		if i := bytes.Index(out, []byte(secret)); i >= 0 {
			t.Errorf("%s in ...%s...", secret, out[max(0, i-200):min(len(out), i+60)])
		}
	}
	for _, want := range []string{"output:echo", "output:drop", "output:credential", "body.state string_type", `"input":null`} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q", want)
		}
	}
}

func TestManyQuestionsAreOneRequest(t *testing.T) {
	const ask = `{"state":{"k":1},"questions":{"z":{"type":"score","criteria":["l","m","h"]},"a":{"type":"noul"},"b":{"type":"box"},"r":{"type":"choice","criteria":{"x":null}},"m":{"type":"noul"},"w":{"type":"choice","criteria":{"x":null,"y":null}}},"model":"jev-1.13.0"}`
	const answer = `{"answers":{"w":{"type":"choice","choice":"elsewhere"},"b":{"type":"box","box":[1]},"r":{"type":"refusal"},"a":{"type":"noul","noul":0.98},"z":{"type":"score","score":1.25,"confidence":0.4,"legend":{},"probabilities":{"2":0.4,"0":0.15,"1":0.45}}},"model":"jev-1.13.0"}`
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer) }), func(o *Options, _ *recorder.Options) {
		o.Scenario, o.Backend = "tool-gate", "jev"
	})
	post(t, s.url+"/v1/systemone", ask)
	rows := s.rows()
	var got []string
	for i, r := range rows {
		got = append(got, fmt.Sprintf("%s %s %s %s %s %s %v", r.Question, r.QuestionType, r.Status, r.Action, r.Params, r.ErrorCode, r.Candidates))
		if r.RequestID != rows[0].RequestID || r.Backend != "jev" || r.Scenario != "tool-gate" || (i == 0) != (r.Input != nil) || (i == 0) != (r.Output != nil) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	want := []string{
		`z score ok 1 {"score":1.25}  [{0 {0 false} {0.15 true}} {1 {0 false} {0.45 true}} {2 {0 false} {0.4 true}}]`,
		`a noul ok true   [{true {0 false} {0.98 true}} {false {0 false} {0.02 true}}]`,
		`b box not-replayable   unknown-question-type []`,
		`r choice denied    [{x {0 false} {0 false}}]`,
		`m noul error   bad-response [{true {0 false} {0 false}} {false {0 false} {0 false}}]`,
		`w choice error   action-not-allowed [{x {0 false} {0 false}} {y {0 false} {0 false}}]`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(rows) == 6 && (!rows[0].Confidence.Set || rows[1].Confidence.Set || !rows[3].Forced.V) {
		t.Errorf("%+v", rows)
	}
}

func TestOtherDialects(t *testing.T) {
	var reply string
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, reply) }), func(_ *Options, r *recorder.Options) {
		r.Capture.Fields = []recorder.CaptureField{{Name: "headers.x-tenant", Type: decision.String}, {Name: "path", Type: decision.String},
			{Name: "metrics.rate", Type: decision.Double}, {Name: "query.v", Type: decision.Int}}
	})
	reply = `{"status":"ok","action":"block","confidence":0.75,"confidence_def":"peak","snapshot_id":"01890a5d-ac96-774b-bcce-b302099a8058","reason":"match","rule_id":"r1","probabilities":{"allow":0.25,"block":0.75},"engine_version":"e"}`
	post(t, s.url+"/v1/decide?v=3", `{"scenario":"edge","candidates":["allow","block"],"context":{"metrics":{"rate":0.5},"other":"x"},"seed":7}`, "X-Tenant", "t1")
	reply = `{"model":"gpt-6-luna-1","answers":[{"type":"predicate","probability":0.4,"name":null}],"usage":{"input_tokens":5,"output_tokens":0}}`
	post(t, s.url+"/v1/decisions", `{"model":"gpt-6-luna","input":"i","questions":[{"type":"predicate","instructions":"?"}]}`)
	reply = `{"result":null,"success":false,"errors":[{"code":3040,"message":"capacity"}]}`
	post(t, s.url+"/client/v4/accounts/1/ai/run/@cf/cloudflare/clef-flash", `{"state":"s","questions":{"q":{"type":"noul","instructions":"i"}}}`)
	reply = `{"error":"no"}`
	post(t, s.url+"/v1/systemone", `{"state":`)
	var got []string
	for _, r := range s.rows() {
		got = append(got, fmt.Sprint(r.Artefact.Dialect, "|", r.Backend, "|", r.Scenario, "|", r.Question, "|", r.Status, "|", r.Action, "|", r.ErrorCode, "|", r.RuleID, "|", r.SourceID, "|", r.Attrs.Values))
	}
	host := strings.TrimPrefix(s.proxy.upstream.Host, "http://")
	want := []string{
		"decide|" + host + "|edge||ok|block||r1|01890a5d-ac96-774b-bcce-b302099a8058|[t1 /v1/decide 0.5 3]",
		"decisions|gpt-6-luna|default|#0|ok|false||||[null /v1/decisions null null]",
		"systemone|@cf/cloudflare/clef-flash|default|q|error||provider-error|||[null /client/v4/accounts/1/ai/run/@cf/cloudflare/clef-flash null null]",
		"systemone|" + host + "|default||error||unreadable-request|||[null /v1/systemone null null]",
	}
	if len(got) != 4 {
		t.Fatalf("%d rows", len(got))
	}
	for i := range want {
		g := strings.ReplaceAll(got[i], " ", "")
		if w := strings.ReplaceAll(want[i], " ", ""); g != w {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	}
}

func TestEntityIsHashed(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }), func(o *Options, r *recorder.Options) {
		o.Entity = "headers.x-user"
		r.Capture.Entity.Attr, r.EntityKey = o.Entity, []byte("0123456789abcdef")
	})
	post(t, s.url+"/v1/systemone", ask1, "X-User", "ada")
	r := only(t, s.rows())
	if !r.Entity.Set || bytes.Contains(written([]*snapshot.Snapshot{r}), []byte("ada")) {
		t.Errorf("%+v", r)
	}
}
