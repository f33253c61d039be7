package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
)

// carriers are the ways in which an error text carries a credential; %s is its place.
func carriers() []string {
	return []string{
		`Post "https://host/x?api_key=%s": EOF`, `Get "https://host/x?anything=1&b=%s#top": EOF`, `open https://host/x#access_token=%s`,
		`dial https://ada:%s@host:8443/x failed`, `parse "https://%s@host/x"`, `parse "https://ada:p/%s@host/x"`, `postgres://ada:%s@db/x`,
		`ada:%s@tcp(db:3306)/x refused`, `GET /v1/x?sid=%s: 404`, `url=https://host/x?q=%s, retrying`,
		`Bearer %s`, `header "Authorization: Bearer %s" refused`, `map[Accept:[x] Authorization:[Bearer %s]]`, `basic %s`, `BEARER "%s"`,
		`api_key=%s`, `apiKey = %s`, `API key: %s`, `session id: %s`, `token: %s`, `token: Bearer %s`, `password: '%s'`, `pwd=%s;`,
		`{"api_key":"%s","n":1}`, `{"token": "%s"}`, `{"a":{"client_secret" : "x\"%s"}}`, `body "{\"api_key\":\"%s\"}"`, `x-api-key => %s`,
		`key=%s`, `pass: %s1`, `Cookie: theme=dark; sid=%s`, `Set-Cookie: a=%s; Path=/`, `Authorization: AWS4-HMAC-SHA256 Credential=a, Signature=%s`,
		`user[password]=%s`, `access_token=%s&state=1`, `secret:[a %s]`, `X-Amz-Signature=%s`, `path /a;jsessionid=%s`, `code=4/%s9&x=1`,
		`AccountKey=%s==;`, `Incorrect API key provided: sk-proj-%s.`, `bad credentials: ghp_%s0123456789`, `eyJhbGciOiJIUzI1NiJ9.%s`,
		`password= token: %s`, `basic auth token=%s`,
	}
}

// canary looks like none of the shapes, so that only the carrier can give it away.
const canary = "SECRET-456z"

func TestScrubHidesEveryCarrier(t *testing.T) {
	for _, c := range carriers() {
		in := fmt.Sprintf(c, canary)
		got := scrub(in)
		if strings.Contains(got, canary) || got == in || scrub(got) != got {
			t.Errorf("%s\ngives %s\nthen  %s", in, got, scrub(got))
		}
	}
}

func TestScrub(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		`Post "https://host/x?api_key=S-1": Bearer S-2`:                  `Post "https://host/x?***": Bearer ***`,
		`dial tcp 10.0.0.1:443: connect: connection refused`:             `dial tcp 10.0.0.1:443: connect: connection refused`,
		`Get "http://[::1]:80/a": context deadline exceeded`:             `Get "http://[::1]:80/a": context deadline exceeded`,
		`https://ada:pw@host:8443/x?a=b#c, retry`:                        `https://***@host:8443/x?***, retry`,
		`ada:pw@tcp(db:3306)/x?loc=UTC`:                                  `***@tcp(db:3306)/x?***`,
		`see https://host/@scope/pkg`:                                    `see https://host/@scope/pkg`,
		`what? a=b`:                                                      `what? a=b`,
		`rpc error: code = Unavailable desc = try again`:                 `rpc error: code = Unavailable desc = try again`,
		`{"error":{"code":"invalid_api_key","status":401}}`:              `{"error":{"code":"invalid_api_key","status":401}}`,
		`{"api_key":"S","host":"h"}`:                                     `{"api_key":"***","host":"h"}`,
		`body "{\"token\":\"S\",\"n\":1}" refused`:                       `body "{\"token\":\"***\",\"n\":1}" refused`,
		`(token=abc), then max_tokens=5 and cache_key=7`:                 `(token=***), then max_tokens=5 and cache_key=7`,
		`jwt: expired; bearer token missing; basic plan; primary key: x`: `jwt: expired; bearer token missing; basic plan; primary key: x`,
		`line one Cookie: a=b; c=d` + "\nline two":                       `line one Cookie: ***` + "\nline two",
		`token: ***, password=***`:                                       `token: ***, password=***`,
		`WWW-Authenticate says Bearer realm="x"`:                         `WWW-Authenticate says Bearer realm="x"`,
		`token:"a"b c "d"`:                                               `token:"***"`,
		`oauth2: cannot fetch token: 401 Unauthorized`:                   `oauth2: cannot fetch token: 401 Unauthorized`,
		`unknown field "tokens": want action; prompt_tokens=12`:          `unknown field "tokens": want action; prompt_tokens=12`,
		`pq: password authentication failed for user "ada"`:              `pq: password authentication failed for user "ada"`,
		`T.token of type int, session: expired after 3s`:                 `T.token of type int, session: expired after 3s`,
		`token: 4015, tokens=x9`:                                         `token: ***, tokens=***`,
		`password=a,b&x=1`:                                               `password=***&x=1`,
		`token={a {b} c} d, secret:[]x`:                                  `token={***} d, secret:***`,
	} {
		if got := scrub(in); got != want {
			t.Errorf("%s\ngives %s\nwant  %s", in, got, want)
		}
	}
}

func TestScrubBounds(t *testing.T) {
	for name, in := range map[string]string{
		"words":      strings.Repeat("all is lost ", 4000),
		"one word":   strings.Repeat("x", 5000),
		"schemes":    strings.Repeat("basic ", 4000),
		"huge word":  strings.Repeat("x", 2*maxScrub),
		"open quote": strings.Repeat("x y ", 250) + `"client_secret": "` + canary + `"` + strings.Repeat(" z", 90),
		"runes":      strings.Repeat("é", 5000),
		"half a url": strings.Repeat("y ", maxScrub/2-10) + "https://ada:" + canary + "@host/x",
		// Much is hidden, so that what stood at the edge of the scan comes into sight.
		"shrinks": strings.Repeat("token="+strings.Repeat("q", 500)+" ", 16) + "see https://" + strings.Repeat("a", 80) + canary + strings.Repeat("b", 80) + "@host/x",
	} {
		got := scrub(in)
		if len(got) > maxError || got == "" || strings.Contains(got, "SECRET") || !utf8.ValidString(got) || scrub(got) != got {
			t.Errorf("%s: %d bytes: %.80q ... %q", name, len(got), got, got[max(0, len(got)-80):])
		}
	}
}

func FuzzScrub(f *testing.F) {
	for i, c := range carriers() {
		f.Add("Get: ", uint8(i), " at line 3")
		f.Add(fmt.Sprintf(c, "x"), uint8(i+1), c)
	}
	f.Add(`token:"`, uint8(17), `"`)
	f.Add("password=[", uint8(11), "]")
	f.Fuzz(func(t *testing.T, before string, i uint8, after string) {
		all := carriers()
		in := before + " " + fmt.Sprintf(all[int(i)%len(all)], canary) + " " + after
		if strings.Contains(before+after, canary) {
			return
		}
		got := scrub(in)
		if strings.Contains(got, canary) || len(got) > maxError {
			t.Fatalf("%q gives %q", in, got)
		}
		if again := scrub(got); again != got {
			t.Fatalf("%q gives %q, and that %q", in, got, again)
		}
	})
}

// An error reaches a row by four ways, and Stats and the log by the sink and by panics.
func TestErrorTextsAreScrubbedEverywhere(t *testing.T) {
	text := `Post "https://host/x?api_key=SECRET-123": Bearer ` + canary
	const want = `Post "https://host/x?***": Bearer ***`
	var log bytes.Buffer
	sink := &memory{onFlush: func() error { return errors.New(text) }}
	r := newRecorder(t, sink, Options{Scenario: "s", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	failing := r.Wrap(&fake{answer: "b", decide: func(*decision.Request, *decision.Response) error { return errors.New(text) }})
	answering := r.Wrap(&fake{answer: "b", decide: func(_ *decision.Request, out *decision.Response) error {
		for i := range out.Decisions {
			out.Decisions[i].Fail(decision.Timeout, "deadline", text)
		}
		return nil
	}})
	var out decision.Response
	if err := failing.Decide(context.Background(), twoQuestions(), &out); err == nil || err.Error() != text {
		t.Errorf("the caller gets %v", err)
	}
	answering.Decide(context.Background(), twoQuestions(), &out)
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		rec := FromContext(req.Context())
		rec.Decision("a").Fail(decision.Error, "upstream", text)
		rec.Decision("b").Answer(decision.Decision{Status: decision.Error, Error: text})
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	s := row(1)
	s.Status, s.Action, s.Error = decision.Error, "", text
	r.Record(context.Background(), s)
	r.Flush(context.Background())
	if got := r.Stats().LastError; got != "sink flush: "+want {
		t.Errorf("last error %q", got)
	}
	closeNow(t, r)
	rows := sink.all()
	if len(rows) != 7 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, s := range rows {
		if s.Error != want {
			t.Errorf("row %d: %q", i, s.Error)
		}
	}
	r.panicked(text)
	for _, got := range []string{log.String(), r.Stats().LastError, texts(reflect.ValueOf(rows))} {
		if !strings.Contains(got, "host/x") || strings.Contains(got, "SECRET") {
			t.Errorf("kept: %s", got)
		}
	}
	if s.Error != text {
		t.Error("the caller's row was changed")
	}
}

func BenchmarkScrub(b *testing.B) {
	for name, in := range map[string]string{
		"short": `Post "https://host/x?api_key=S-1": context deadline exceeded`,
		"worst": strings.Repeat("://a:x?", maxScrub/7),
		"long":  strings.Repeat(`{"token":"x"} Bearer abc `, 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = scrub(in)
			}
		})
	}
}
