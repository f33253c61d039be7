package recorder

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
)

// sum is the keyed hash, by the standard library alone.
func sum(key []byte, s string) [32]byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return [32]byte(h.Sum(nil))
}

func hexSum(s string) string {
	d := sum(key, s)
	return hex.EncodeToString(d[:16])
}

func TestRedaction(t *testing.T) {
	str, num, in := decision.StringValue, decision.DoubleValue, decision.IntValue
	edges := []float64{0, 10, 100}
	failing := func(decision.Value) (decision.Value, error) { return decision.Value{}, errors.New("no") }
	double := func(v decision.Value) (decision.Value, error) { return decision.IntValue(2 * v.Int()), nil }
	empty := func(decision.Value) (decision.Value, error) { return decision.Value{}, nil }
	cases := []struct {
		field   CaptureField
		in      decision.Value
		want    decision.Value
		note    string
		dropped bool
	}{
		{CaptureField{Type: decision.String}, str("x"), str("x"), "", false},
		{CaptureField{Type: decision.String}, str(""), str(""), "", false},
		{CaptureField{Type: decision.String}, in(1), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Int}, str("12"), in(12), "", false},
		{CaptureField{Type: decision.Int}, str("12.5"), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Int}, str("99999999999999999999"), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Int}, num(3), in(3), "", false},
		{CaptureField{Type: decision.Int}, num(3.5), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Double}, in(3), num(3), "", false},
		{CaptureField{Type: decision.Double}, str("1e3"), num(1000), "", false},
		{CaptureField{Type: decision.Double}, str("NaN"), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Double}, str("-inf"), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Bool}, str("true"), decision.BoolValue(true), "", false},
		{CaptureField{Type: decision.Bool}, str("yes"), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.String, Redact: Drop}, str("x"), decision.Value{}, "a:drop", false},
		{CaptureField{Type: decision.String, Redact: Drop}, decision.Value{}, decision.Value{}, "", false},
		{CaptureField{Type: decision.String, Redact: Mask}, str("secret"), str("***"), "a:mask", false},
		{CaptureField{Type: decision.String, Redact: Mask, KeepFirst: 2}, str("éèsecret"), str("éè***"), "a:mask", false},
		{CaptureField{Type: decision.String, Redact: Mask, KeepFirst: 9}, str("secret"), str("***"), "a:mask", false},
		{CaptureField{Type: decision.String, Redact: Mask, KeepFirst: 6}, str("secret"), str("***"), "a:mask", false},
		{CaptureField{Type: decision.String, Redact: Hash}, str("ada"), str(hexSum("ada")), "a:hash", false},
		{CaptureField{Type: decision.String, Redact: Hash}, in(12), str(hexSum("12")), "a:hash", false},
		{CaptureField{Type: decision.Double, Redact: Bucket, Edges: edges}, num(99.9), num(10), "a:bucket", false},
		{CaptureField{Type: decision.Double, Redact: Bucket, Edges: edges}, num(100), num(100), "a:bucket", false},
		{CaptureField{Type: decision.Double, Redact: Bucket, Edges: edges}, num(math.Inf(1)), num(100), "a:bucket", false},
		{CaptureField{Type: decision.Double, Redact: Bucket, Edges: edges}, num(-0.1), decision.Value{}, "a:below-first-bucket", false},
		{CaptureField{Type: decision.Double, Redact: Bucket, Edges: edges}, num(math.NaN()), decision.Value{}, "a:below-first-bucket", false},
		{CaptureField{Type: decision.Int, Redact: Bucket, Edges: edges}, str("42"), in(10), "a:bucket", false},
		{CaptureField{Type: decision.Int, Redact: Bucket, Edges: edges}, str("x"), decision.Value{}, "a:type-error", false},
		{CaptureField{Type: decision.Int, Func: double}, in(4), in(8), "a:rewritten", false},
		{CaptureField{Type: decision.Int, Func: empty}, in(4), decision.Value{}, "a:drop", false},
		{CaptureField{Type: decision.Int, Func: failing}, in(4), decision.Value{}, "", true},
		{CaptureField{Type: decision.Int, Func: func(decision.Value) (decision.Value, error) { panic("bug") }}, in(4), decision.Value{}, "", true},
	}
	for i, c := range cases {
		c.field.Name = "a"
		t.Run(fmt.Sprintf("%d %s %v %v", i, c.field.Redact, c.field.Type, c.in), func(t *testing.T) {
			sink := &memory{}
			r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{Fields: []CaptureField{c.field}}})
			schema, _ := decision.NewSchema(decision.Field{Name: "a", Type: decision.String})
			s := row(1)
			s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{c.in}}
			r.Record(context.Background(), s, row(2))
			led := closeNow(t, r)
			if c.dropped {
				if led.Dropped[DropRedaction] != 2 || len(sink.all()) != 0 {
					t.Errorf("ledger %+v", led)
				}
				return
			}
			got := sink.all()[0]
			if got.Attrs.At(0) != c.want || strings.Join(got.Redacted, ",") != c.note {
				t.Errorf("got %v %q, want %v %q", got.Attrs.At(0), got.Redacted, c.want, c.note)
			}
			if s.Attrs.Values[0] != c.in {
				t.Error("the caller's own value was changed")
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	field := func(f CaptureField) Options {
		return Options{EntityKey: key, Capture: Capture{Fields: []CaptureField{f}}}
	}
	cases := map[string]Options{
		"16":                    {EntityKey: []byte("short")},
		"negative limit":        {QueueRows: -1},
		"a negative limit":      {FlushInterval: -1},
		"policy":                {Policy: "lose"},
		"sample rate":           {SampleRate: 1.5},
		"rate NaN":              {SampleRate: math.NaN()},
		"entity needs":          {Capture: Capture{Entity: EntitySource{Header: "X-User"}}},
		`"a" needs an entity`:   {Capture: Capture{Fields: []CaptureField{{Name: "a", Type: decision.String, Redact: Hash}}}},
		"more than one entity":  {EntityKey: key, Capture: Capture{Entity: EntitySource{Header: "a", Cookie: "b"}}},
		"exclude":               {Capture: Capture{All: true, Fields: []CaptureField{{Name: "a", Type: decision.String}}}},
		"declared twice":        {Capture: Capture{Fields: []CaptureField{{Name: "a", Type: decision.String}, {Name: "a", Type: decision.Int}}}},
		"type null":             field(CaptureField{Name: "a"}),
		"unknown redaction":     field(CaptureField{Name: "a", Type: decision.Int, Redact: "shred"}),
		"hash gives a string":   field(CaptureField{Name: "a", Type: decision.Int, Redact: Hash}),
		"mask gives a string":   field(CaptureField{Name: "a", Type: decision.Int, Redact: Mask}),
		"keep-first":            field(CaptureField{Name: "a", Type: decision.String, Redact: Mask, KeepFirst: -1}),
		"without edges":         field(CaptureField{Name: "a", Type: decision.Int, Redact: Bucket}),
		"ascending":             field(CaptureField{Name: "a", Type: decision.Int, Redact: Bucket, Edges: []float64{2, 1}}),
		"finite":                field(CaptureField{Name: "a", Type: decision.Double, Redact: Bucket, Edges: []float64{0, math.Inf(1)}}),
		"whole number":          field(CaptureField{Name: "a", Type: decision.Int, Redact: Bucket, Edges: []float64{0.5}}),
		"int or a double":       field(CaptureField{Name: "a", Type: decision.String, Redact: Bucket, Edges: []float64{1}}),
		"headers.authorization": field(CaptureField{Name: "headers.authorization", Type: decision.String, Redact: Hash}),
	}
	for _, name := range []string{"headers.Authorization", "headers.proxy-authorization", "headers.cookie", "headers.Set-Cookie", "headers.x-api-key",
		"headers.X_API_KEY", "headers.x-auth-token", "headers.x-amz-security-token", "query.access_token", "query.password", "query.client_secret",
		"password", "user.api_key", "env.client-secret", "headers.cf-access-jwt-assertion", "headers.ocp-apim-subscription-key"} {
		cases[fmt.Sprintf("%q: it holds credentials", name)] = field(CaptureField{Name: name, Type: decision.String, Redact: Drop})
	}
	for want, opts := range cases {
		r, err := New(&memory{}, opts)
		if err == nil {
			r.Close(context.Background())
			t.Errorf("%s: accepted", want)
			continue
		}
		if want != "rate NaN" && !strings.Contains(err.Error(), want) || !errors.Is(err, ErrOptions) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if _, err := New(nil, Options{}); !errors.Is(err, ErrOptions) {
		t.Errorf("no sink: %v", err)
	}
	for _, name := range []string{"headers.user-agent", "path", "metrics.token_count", "state.has_cookies", "headers.accept", "query.page"} {
		if secret.Attribute(name) {
			t.Errorf("%s is refused", name)
		}
	}
}

func TestCaptureDigest(t *testing.T) {
	base := func() Capture {
		return Capture{Fields: []CaptureField{{Name: "a", Type: decision.String}, {Name: "b", Type: decision.Int, Redact: Bucket, Edges: []float64{1, 2}}}}
	}
	same := base()
	same.Fields[0].Redact = Keep
	if base().Digest() != same.Digest() || base().Fields[0].Redact != "" {
		t.Error("the default redaction has another digest, or Digest changed the list")
	}
	seen := map[[32]byte]int{base().Digest(): -1}
	for i, change := range []func(c *Capture){
		func(c *Capture) { c.Fields[0].Name = "c" }, func(c *Capture) { c.Fields[0].Type = decision.Bool },
		func(c *Capture) { c.Fields[0].Redact = Mask }, func(c *Capture) { c.Fields[0].KeepFirst = 1 },
		func(c *Capture) { c.Fields[1].Edges = []float64{1, 3} }, func(c *Capture) { c.Entity.Header = "h" }, func(c *Capture) { c.Entity.Cookie = "h" },
		func(c *Capture) { c.Input = true }, func(c *Capture) { c.Output = true }, func(c *Capture) { c.All = true }, func(c *Capture) { c.RawBodies = true }, func(c *Capture) { c.Fields[0].Raw = true },
		func(c *Capture) { c.RedactBody = func(b []byte) ([]byte, error) { return b, nil } },
		func(c *Capture) { c.Fields[0].Func = func(v decision.Value) (decision.Value, error) { return v, nil } },
		func(c *Capture) { c.Fields = c.Fields[:1] },
	} {
		c := base()
		change(&c)
		if j, dup := seen[c.Digest()]; dup {
			t.Errorf("change %d has the digest of change %d", i, j)
		}
		seen[c.Digest()] = i
	}
}

func TestRedactBody(t *testing.T) {
	sink := &memory{}
	redact := func(b []byte) ([]byte, error) {
		switch {
		case bytes.Contains(b, []byte("fail")):
			return nil, errors.New("not JSON")
		case bytes.Contains(b, []byte("panic")):
			panic("bug")
		}
		return bytes.ReplaceAll(b, []byte("secret"), []byte("***")), nil
	}
	r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{Input: true, Output: true, RedactBody: redact}})
	for _, in := range []string{"a secret", "fail", "panic", "plain"} {
		s := row(1)
		s.Input, s.Output = []byte(in), []byte("out "+in)
		r.Record(context.Background(), s)
	}
	led := closeNow(t, r)
	rows := sink.all()
	if led.Dropped[DropRedaction] != 2 || len(rows) != 2 || r.Stats().Panics != 1 {
		t.Fatalf("ledger %+v", led)
	}
	if s := rows[0]; string(s.Input) != "a ***" || string(s.Output) != "out a ***" || s.InputLen.V != 8 ||
		s.InputDigest.V != sum(key, "a secret") || fmt.Sprint(s.Redacted) != "[input:rewritten output:rewritten]" {
		t.Errorf("row %+v", s)
	}
}

// texts is every string and byte of a row, as deep as they are.
func texts(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String() + "\n"
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			var b []byte
			for i := range v.Len() {
				b = append(b, byte(v.Index(i).Uint()))
			}
			return string(b) + "\n"
		}
		var b strings.Builder
		for i := range v.Len() {
			b.WriteString(texts(v.Index(i)))
		}
		return b.String()
	case reflect.Struct:
		var b strings.Builder
		for i := range v.NumField() {
			b.WriteString(texts(v.Field(i)))
		}
		return b.String()
	case reflect.Pointer:
		if !v.IsNil() {
			return texts(v.Elem())
		}
	}
	return ""
}

// Secrets planted wherever a request can carry them are in no row and in no log line.
func TestPlantedSecretsAreNotRecorded(t *testing.T) {
	const canary = "CANARY-5f1d"
	var log bytes.Buffer
	sink := &memory{}
	n := 0
	sink.onFlush = func() error {
		if n++; n == 1 {
			return errors.New("disk full")
		}
		return nil
	}
	r := newRecorder(t, sink, Options{EntityKey: key, Scenario: "s", Logger: slog.New(slog.NewTextHandler(&log, nil)), Capture: Capture{
		Fields: []CaptureField{{Name: "path", Type: decision.String}, {Name: "query.user", Type: decision.String, Redact: Hash},
			{Name: "headers.x-account", Type: decision.String, Redact: Mask}, {Name: "headers.x-ip", Type: decision.String, Redact: Drop},
			{Name: "headers.x-age", Type: decision.Int}},
		Entity: EntitySource{Cookie: "sid"}}})
	b := r.Wrap(&fake{answer: "b"})
	h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		rec := FromContext(req.Context())
		rec.SetAttr("headers.authorization", decision.StringValue(canary))
		rec.SetAttr("unlisted", decision.StringValue(string(body)))
		w.Header().Set("Set-Cookie", "sid="+canary)
		w.Write(body)
		breq := twoQuestions()
		breq.Attrs.Values[0], breq.Attrs.Values[2] = decision.StringValue(canary), decision.StringValue(canary)
		breq.Body = body
		for range 2 {
			b.Decide(req.Context(), breq, new(decision.Response))
		}
		if req.URL.Query().Has("panic") {
			panic(canary)
		}
	}))
	for _, target := range []string{"/p?token=" + canary + "&user=" + canary, "/p?panic=1&user=" + canary} {
		req := httptest.NewRequest("POST", target, strings.NewReader(`{"password":"`+canary+`"}`))
		for _, name := range []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "X-Account", "X-Ip", "X-Age", "X-Other"} {
			req.Header.Set(name, "Bearer "+canary)
		}
		req.Header.Set("Cookie", "sid="+canary)
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), req)
		}()
	}
	r.Flush(context.Background())
	closeNow(t, r)
	rows := sink.all()
	if len(rows) != 8 {
		t.Fatalf("%d rows", len(rows))
	}
	all := ""
	for _, s := range rows {
		all += texts(reflect.ValueOf(s))
	}
	if !strings.Contains(all, "/p") || !strings.Contains(all, hexSum(canary)) || !strings.Contains(all, "headers.x-ip:drop") {
		t.Fatal("the scan does not see what was recorded")
	}
	if strings.Contains(all, canary) {
		t.Errorf("a secret is in the rows:\n%s", all)
	}
	if !strings.Contains(log.String(), "disk full") {
		t.Fatalf("the log is silent: %s", log.String())
	}
	if strings.Contains(log.String(), canary) {
		t.Errorf("a secret is in the log: %s", log.String())
	}
}

// All is for imports: rows keep their attributes, but never what no list may name.
func TestCaptureAll(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{All: true}})
	req := twoQuestions()
	s, short := row(1), row(2)
	s.Attrs = req.Attrs
	short.Attrs = decision.Attrs{Schema: req.Attrs.Schema, Values: req.Attrs.Values[:1]} // what is missing is null
	r.Record(context.Background(), s)
	r.Record(context.Background(), short)
	if err := r.Wrap(&fake{answer: "b"}).Decide(context.Background(), req, new(decision.Response)); err != nil {
		t.Fatal(err)
	}
	closeNow(t, r)
	rows := sink.all()
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	if got := rows[1]; got.Attrs.Get("user").Str() != "ada" || len(got.Redacted) != 0 {
		t.Errorf("the short row is %+v", got)
	}
	for _, got := range append(rows[:1], rows[2:]...) {
		if got.Attrs.Schema != req.Attrs.Schema || got.Attrs.Get("user").Str() != "ada" || got.Attrs.Get("n").Int() != 3 ||
			!got.Attrs.Get("headers.authorization").IsNull() || fmt.Sprint(got.Redacted) != "[headers.authorization:drop]" {
			t.Errorf("got %+v %q", got.Attrs, got.Redacted)
		}
	}
	if req.Attrs.Values[2].Str() != "Bearer x" {
		t.Error("the caller's request was changed")
	}
}

func TestEntity(t *testing.T) {
	want := sum(key, "ada")
	for name, c := range map[string]struct {
		src   EntitySource
		setup func(r *http.Request)
	}{
		"header":         {EntitySource{Header: "X-User"}, func(r *http.Request) { r.Header.Set("X-User", "ada") }},
		"cookie":         {EntitySource{Cookie: "sid"}, func(r *http.Request) { r.Header.Set("Cookie", "a=b; sid=ada") }},
		"query":          {EntitySource{Query: "u"}, func(r *http.Request) { r.URL.RawQuery = "u=ada" }},
		"absent":         {EntitySource{Query: "u"}, func(r *http.Request) {}},
		"by the handler": {EntitySource{}, func(r *http.Request) { r.URL.RawQuery = "set=ada" }},
	} {
		sink := &memory{}
		r := newRecorder(t, sink, Options{EntityKey: key, Scenario: "s", Capture: Capture{Entity: c.src}})
		req := httptest.NewRequest("GET", "/", nil)
		c.setup(req)
		r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			choose(req, "allow")
			if e := req.URL.Query().Get("set"); e != "" {
				FromContext(req.Context()).SetEntity(e)
			}
		})).ServeHTTP(httptest.NewRecorder(), req)
		closeNow(t, r)
		got := sink.all()[0].Entity
		if got.Set != (name != "absent") || got.Set && got.V != [8]byte(want[:8]) {
			t.Errorf("%s: entity %x", name, got.V)
		}
	}
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s"})
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		choose(req, "allow")
		FromContext(req.Context()).SetEntity("ada")
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	closeNow(t, r)
	if got := sink.all()[0]; got.Entity.Set || fmt.Sprint(got.Redacted) != "[entity:no-key]" {
		t.Errorf("without a key: %x %q", got.Entity.V, got.Redacted)
	}
}
