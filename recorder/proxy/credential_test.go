package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func basic(user, pass string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+pass))
}

// head is a request's head with one header.
func heads(name, value string) credentials { return credentialsOf(http.Header{name: {value}}, "") }

func TestHide(t *testing.T) {
	const key = "k9/Zq+8longvalue"
	for _, c := range []struct {
		name, value, in, want string
	}{
		// As it is, escaped, escaped twice, in a URL, in a text inside a text.
		{"X-Api-Key", key, `{"who":"k9/Zq+8longvalue"}`, `{"who":"***"}`},
		{"X-Api-Key", key, `{"who":"k9\/Zq+8longvalue"}`, `{"who":"***"}`},
		{"X-Api-Key", key, `{"who" : "\u006b9\u002FZq\u002b8long\u0076alue, you"}`, `{"who" : "***, you"}`},
		{"X-Api-Key", key, `{"m":"{\"who\":\"k9\\\/Zq+8longvalue\"}"}`, `{"m":"{\"who\":\"***\"}"}`},
		{"X-Api-Key", key, `{"m":"{\"who\":\"k9\\u002fZq+8longvalue\"}"}`, `{"m":"{\"who\":\"***\"}"}`},
		{"X-Api-Key", key, `{"u":"https://h/?k=k9%2FZq%2b8longvalue&x=1"}`, `{"u":"https://h/?k=***&x=1"}`},
		{"X-Api-Key", key, `<p>k9/Zq+8longvalue</p>`, `<p>***</p>`},
		{"X-Api-Key", key, "data: {\"who\":\"k9\\/Zq+8longvalue\"}\n", "data: {\"who\":\"***\"}\n"},
		{"X-Api-Key", key, `{"k9/Zq+8longvalue":{"a":"C:\\"}}`, `{"***":{"a":"C:\\"}}`},
		{"X-Api-Key", key, `{"a":"\\k9/Zq+8longvalue\\","b":"k9/Zq+8longvaluek9/Zq+8longvalue"}`, `{"a":"***\\","b":"***"}`},
		{"X-Api-Key", `quo"ted\pass1`, `{"a":"quo\"ted\\pass1"}`, `{"a":"***"}`},
		{"X-Api-Key", "1234567890", `{"a":1234567890,"b":[12345678901,-1]}`, `{"a":"***","b":[12345678901,-1]}`},
		{"X-Api-Key", "short", `{"a":"short"}`, `{"a":"short"}`},
		{"Authorization", "Bearer tok-123456789", `{"a":"Bearer tok-123456789","b":"tok-123456789"}`, `{"a":"***","b":"***"}`},
		// Cookies one by one; a word is one only where it stands alone.
		{"Cookie", "sid=s3cr3tvalue99; theme=dark", `{"who":"s3cr3tvalue99","theme":"dark"}`, `{"who":"***","theme":"dark"}`},
		{"Cookie", `a="s3cr3t%2Fvalue"; b`, `{"who":"is s3cr3t\/value"}`, `{"who":"is ***"}`},
		{"Cookie", "consent=accepted", `{"accepted":"accepted","b":"was accepted"}`, `{"accepted":"***","b":"was accepted"}`},
		{"Cookie", "session_token=abcdefgh", `{"abcdefgh":"x abcdefgh"}`, `{"abcdefgh":"x ***"}`},
		// A user name is a word, unless it is the key.
		{"Authorization", basic("questions", "pw12345678"), `{"questions":["questions","no questions","pw12345678"]}`, `{"questions":["***","no questions","***"]}`},
		{"Authorization", basic("sk_live_abcdefgh", ""), `{"m":"key sk_live_abcdefgh"}`, `{"m":"key ***"}`},
		{"Authorization", basic("user", "questions"), `{"questions":"my questions"}`, `{"questions":"my ***"}`},
	} {
		got, found := heads(c.name, c.value).hide([]byte(c.in))
		if string(got) != c.want || found != (c.in != c.want) {
			t.Errorf("%s: %s\n%s becomes\n%s, want\n%s", c.name, c.value, c.in, got, c.want)
		}
		if json.Valid([]byte(c.in)) && !json.Valid(got) {
			t.Errorf("%s is no JSON", got)
		}
	}
	if c := credentialsOf(nil, "api_key=k9%2FZq%2B8longvalue&q=questions"); len(c) != 1 || string(c[0].text) != key {
		t.Errorf("%q", c)
	}
}

// An answer that repeats a credential is stored without it, and stays readable.
func TestEchoesAreHidden(t *testing.T) {
	var reply string
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); io.WriteString(w, reply) }))
	with := func(who string) string { return answer1[:len(answer1)-1] + `,"who":"` + who + `"}` }
	for _, c := range [][3]string{
		{"X-Api-Key", "k9/Zq+8longvalue", `k9\/Zq+8longvalue`}, {"Cookie", "sid=s3cr3tvalue99; theme=dark", "s3cr3tvalue99"},
		{"Authorization", basic("questions", "pw12345678"), "pw12345678"},
	} {
		reply = with(c[2])
		post(t, s.url+"/v1/systemone", ask1, c[0], c[1])
	}
	rows := s.rows()
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if string(r.Output) != with("***") || string(r.Input) != ask1 || r.Action != "a" || !slices.Contains(r.Redacted, "output:credential") {
			t.Errorf("%s -> %s %v", r.Input, r.Output, r.Redacted)
		}
	}
}

func TestTooManyCredentials(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }))
	for _, n := range []int{maxSecrets - 1, 3 * maxSecrets} { // and the whole header
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "c%d=value-%d; ", i, 1000+i)
		}
		post(t, s.url+"/v1/systemone", ask1, "Cookie", b.String())
	}
	rows := s.rows()
	if l := s.rec.Stats().Ledger; len(rows) != 1 || l.Dropped[LostCredentials] != 1 {
		t.Errorf("%d rows, %+v", len(rows), l)
	}
}

// texts are the strings of a JSON value as a stock reader sees them, without names.
func texts(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		return append(out, v)
	case []any:
		for _, e := range v {
			out = texts(e, out)
		}
	case map[string]any:
		for _, e := range v {
			out = texts(e, out)
		}
	}
	return out
}

// Against encoding/json: JSON stays JSON, no value holds the credential, and a text without
// it stays as it was.
func FuzzHide(f *testing.F) {
	for _, in := range []string{`{"a":"tok-4f9\u002fd1c77","tok-4f9/d1c77":1}`, `["tok-4f9\\\/d1c77", -1.5e3, "\ud83d\ude00%74ok-4f9/d1c77"]`, `x tok-4f9/d1c77`, `"\\\\" `, `%`, `\u00`, `{"a":"\\"}`} {
		f.Add([]byte(in), "tok-4f9/d1c77")
	}
	f.Fuzz(func(t *testing.T, in []byte, key string) {
		c := heads("X-Api-Key", key)
		got, found := c.hide(in)
		if !found && !bytes.Equal(got, in) {
			t.Fatalf("%q becomes %q without a finding", in, got)
		}
		var before, after any
		if json.Unmarshal(in, &before) != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q becomes %q: %v", in, got, err)
		}
		if key = strings.TrimSpace(key); len(c) == 0 || strings.ContainsAny(key, "*\\%") || len(key) < minSecret {
			return
		}
		for _, s := range texts(after, nil) {
			if strings.Contains(s, key) {
				t.Fatalf("%q becomes %q with %q in it", in, got, key)
			}
		}
	})
}
