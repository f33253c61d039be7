package recorder

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// What is refused is refused by New, and taken out of the rows of Capture.All.
func TestRefusedNamesReachNoRow(t *testing.T) {
	for _, name := range []string{"headers.x-auth-key", "query.sig", "headers.dpop"} {
		for _, how := range []Redaction{Keep, Drop, Mask, Hash} {
			_, err := New(&memory{}, Options{EntityKey: key, Capture: Capture{Fields: []CaptureField{{Name: name, Type: decision.String, Redact: how}}}})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s %s: %v", name, how, err)
			}
		}
	}
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{All: true}})
	schema, err := decision.NewSchema(decision.Field{Name: "query.sig", Type: decision.String}, decision.Field{Name: "headers.referer", Type: decision.String},
		decision.Field{Name: "headers.x-original-url", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	s := row(1)
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue(canary), decision.StringValue("https://h/x?t=" + canary)}}
	r.Record(context.Background(), s)
	closeNow(t, r)
	got := sink.all()[0]
	if strings.Contains(texts(reflect.ValueOf(got)), canary) || got.Attrs.Get("headers.referer").Str() != "https://h/x" ||
		fmt.Sprint(got.Redacted) != "[query.sig:drop headers.referer:query]" {
		t.Errorf("got %+v %q", got.Attrs, got.Redacted)
	}
}

func TestURLHeadersLoseTheirQueries(t *testing.T) {
	names := []string{"headers.referer", "headers.X-Original-URL", "headers.x-rewrite-url", "headers.x-forwarded-uri", "headers.origin"}
	fields := []CaptureField{{Name: "headers.location", Type: decision.String, Redact: Drop}, {Name: "headers.x-url", Type: decision.String, Redact: Hash},
		{Name: "headers.x-any-url", Type: decision.String, Func: func(v decision.Value) (decision.Value, error) { return v, nil }}}
	for _, n := range names {
		fields = append(fields, CaptureField{Name: n, Type: decision.String})
	}
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Scenario: "s", Capture: Capture{Fields: fields}})
	h := r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { choose(req, "allow") }))
	req := httptest.NewRequest("GET", "/", nil)
	for _, f := range fields {
		req.Header.Set(strings.TrimPrefix(f.Name, "headers."), "https://ada:"+canary+"@h/x;jsessionid="+canary+"?reset="+canary+"#"+canary)
	}
	req.Header.Set("Origin", "https://h")
	h.ServeHTTP(httptest.NewRecorder(), req)
	for _, f := range fields {
		req.Header.Set(strings.TrimPrefix(f.Name, "headers."), "https://h:80/x")
	}
	h.ServeHTTP(httptest.NewRecorder(), req)
	closeNow(t, r)
	rows := sink.all()
	if strings.Contains(texts(reflect.ValueOf(rows)), canary) {
		t.Errorf("a secret is in the rows: %+v", rows[0])
	}
	const bare = "https://***@h/x;jsessionid=***"
	for _, n := range names[:4] {
		if got := rows[0].Attrs.Get(n).Str(); got != bare {
			t.Errorf("%s: %q", n, got)
		}
		if got := rows[1].Attrs.Get(n).Str(); got != "https://h:80/x" {
			t.Errorf("%s: %q", n, got)
		}
	}
	if rows[0].Attrs.Get("headers.origin").Str() != "https://h" || rows[0].Attrs.Get("headers.x-url").Str() != hexSum(bare) {
		t.Errorf("got %+v", rows[0].Attrs)
	}
	want := "headers.location:drop headers.x-url:query headers.x-url:hash headers.x-any-url:query headers.x-any-url:rewritten " +
		"headers.referer:query headers.X-Original-URL:query headers.x-rewrite-url:query headers.x-forwarded-uri:query"
	if got := strings.Join(rows[0].Redacted, " "); got != want {
		t.Errorf("redacted %s", got)
	}
	if got := strings.Join(rows[1].Redacted, " "); got != "headers.location:drop headers.x-url:hash headers.x-any-url:rewritten" {
		t.Errorf("redacted without a query: %s", got)
	}
}
