package remote_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
)

// canaries are keys with each character that some encoding changes.
func canaries() []string {
	return []string{"sk-test-0123456789", `a/b+c"d\e%41&f<g>=='~`, "12345678", strings.Repeat("K9", 16)}
}

// forms are ways in which a service may send the key back inside a text.
func forms(key string) map[string]string {
	header := "Bearer " + key
	var percent strings.Builder
	for _, c := range []byte(key) {
		fmt.Fprintf(&percent, "%%%02x", c)
	}
	return map[string]string{
		"raw": key, "header": header, "twice": key + key, "query": url.QueryEscape(header), "path": url.PathEscape(key), "each byte": percent.String(),
		"base64": base64.StdEncoding.EncodeToString([]byte(key)), "base64 of the header": base64.StdEncoding.EncodeToString([]byte(header)),
		"base64 of user and key": base64.RawURLEncoding.EncodeToString([]byte("me:" + key + ":x")), "base64 at 2": base64.URLEncoding.EncodeToString([]byte("12" + key)),
		"base64 in a URL": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key))), "JSON": quote(key), "JSON in JSON": quote(quote(header)),
		"Go": fmt.Sprintf("%q", key), "HTML": html.EscapeString(key), "hex": hex.EncodeToString([]byte(key)), "URL in JSON": quote("/?k=" + url.QueryEscape(key)),
		"long and cut": strings.Repeat("x", 25) + key + strings.Repeat("y", 400),
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// escaped writes a JSON string with each ASCII character as \uXXXX.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

// leaks looks for the key in every text of a response, by other means than the client's:
// whole, in base64 at any offset, and cut.
func leaks(out *decision.Response, key string) bool {
	var texts []string
	for _, d := range out.Decisions {
		texts = append(texts, d.Action, d.Params, d.ConfidenceDef, d.Reason.Rule, d.ErrorCode, d.Error)
		for _, c := range d.Candidates {
			texts = append(texts, c.Action)
		}
	}
	a := out.Artefact
	texts = append(texts, a.EngineVersion, a.StrategyVersion, a.ModelRequested, a.ModelResolved, a.Provider, a.Dialect, string(a.StrategyDigest[:]))
	for _, text := range texts {
		for range 4 {
			// Half the key is too much as well.
			half := key[:(len(key)+1)/2]
			if strings.Contains(text, half) || strings.Contains(html.UnescapeString(text), half) || strings.Contains(text, hex.EncodeToString([]byte(key))) || inBase64(text, key) {
				return true
			}
			text = plain(text)
		}
	}
	return false
}

func plain(text string) string {
	if s, err := url.PathUnescape(text); err == nil {
		text = s
	}
	return html.UnescapeString(strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(text))
}

func inBase64(text, key string) bool {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	for i := range text {
		rest := text[i:]
		n := 0
		for n < len(rest) && strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", rune(rest[n])) {
			n++
		}
		raw, err := base64.RawStdEncoding.DecodeString(rest[:n/4*4])
		if err == nil && strings.Contains(string(raw), key[1:len(key)-2]) {
			return true
		}
	}
	return false
}

// Each field of an answer, with %s for a JSON string that holds the key.
func answers() []string {
	return []string{
		`{"action": %s}`, `{"status": %s, "action": "allow"}`, `{"action": "allow", "params": {"a": [%s]}}`, `{"action": "allow", "params": {%s: {"b": 1}}}`,
		`{"action": "allow", "confidence": 0.5, "confidence_def": %s}`, `{"action": "allow", "rule_id": %s, "reason": "match"}`, `{"action": "allow", "reason": %s}`,
		`{"action": "allow", "probabilities": {%s: 0.5}}`, `{"action": "allow", "scores": {%s: 0.5}}`, `{"action": "allow", "scores": {%s: 1e999}}`, `{"action": "allow", "probabilities": {%s: 5}}`,
		`{"action": "allow", "model": %s}`, `{"action": "allow", "engine_version": %s}`, `{"action": "allow", "strategy_version": %s}`, `{"action": "allow", "strategy_digest": %s}`,
		`{"status": "error", "code": %s}`, `{"status": "error", "error": %s}`, `{"status": "timeout", "code": "x", "error": %s}`, `{"status": "abstain", "action": %s}`,
		`{"action": "allow", "more": %s}`, `{"action": "allow", %[1]s: 1, %[1]s: 2}`, `%s`, `[%s]`, `{"action": "allow"} %s`, `{"params": %s}`, `{"error": {"message": %s}}`, `{"error": %s}`,
	}
}

// answering is a service without a network between, for thousands of answers.
type answering func() (status int, body string)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := f()
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestKeyThatIsSentBackIsTakenOut(t *testing.T) {
	var status int
	var body string
	transport := answering(func() (int, string) { return status, body })
	for _, key := range canaries() {
		c := client(t, remote.ClientOptions{BaseURL: "http://service.invalid", Transport: transport, KeyEnv: "KEY", Getenv: func(string) string { return key }})
		for form, text := range forms(key) {
			for _, template := range answers() {
				for _, literal := range []string{quote(text), escaped(text)} {
					for _, status = range []int{200, 401} {
						body = fmt.Sprintf(template, literal)
						if out := ask(t, c, request(t, 0.1)); leaks(out, key) {
							t.Errorf("%s, %d: %s gives %+v", form, status, body, out)
						}
					}
				}
			}
			status, body = 502, "<html>"+text
			if out := ask(t, c, request(t, 0.1)); leaks(out, key) {
				t.Errorf("%s, plain text: %+v", form, out)
			}
		}
	}
}

// The rest of an answer is as it was sent.
func TestOnlyTheKeyIsTakenOut(t *testing.T) {
	const key = `sk/test"0123456789`
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		fmt.Fprintf(w, `{"action": "a%%41 \u00e9", "rule_id": %s, "model": "m %s x", "params": {"a": [1.0, %s], "b": "%%2F\/"}, "confidence": 0.5}`,
			quote("r-"+auth+"-1"), base64.StdEncoding.EncodeToString([]byte(auth)), escaped(key))
	}))
	out := ask(t, client(t, remote.ClientOptions{BaseURL: base, KeyEnv: "KEY", Getenv: func(string) string { return key }}), request(t, 0.1))
	d := out.Decisions[0]
	if d.Status != decision.OK || d.Action != "a%41 é" || d.Reason.Rule != "r-Bearer ***-1" || out.Artefact.ModelResolved != "m *** x" ||
		d.Params != `{"a": [1.0, "***"], "b": "%2F\/"}` || d.Confidence.V != 0.5 {
		t.Errorf("%+v", out)
	}
}

// Errors of the HTTP client quote a status line or a header that they cannot read.
func TestKeyOutsideTheBody(t *testing.T) {
	key := canaries()[0]
	for _, text := range []string{"HTTP/1.1 abc %s\r\n\r\n", "HTTP/%s 200 OK\r\n\r\n", "%s\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
		"HTTP/1.1 307 x\r\nLocation: http://%s/\r\n\r\n", "HTTP/1.1 401 x\r\nTransfer-Encoding: %s\r\n\r\n"} {
		base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { raw(w, fmt.Sprintf(text, key)) }))
		c := client(t, remote.ClientOptions{BaseURL: base, KeyEnv: "KEY", Getenv: func(string) string { return key }})
		out := ask(t, c, request(t, 0.1))
		if d := out.Decisions[0]; leaks(out, key) || d.Status != decision.Error {
			t.Errorf("%q: %+v", text, out)
		}
		if err := c.Ready(context.Background()); err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
