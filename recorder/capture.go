package recorder

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
)

// Redaction says what happens to an attribute before it is written.
type Redaction string

// The redactions.
const (
	// Keep stores the value; it is the default. What looks like a secret in a string is
	// replaced, unless CaptureField.Raw says otherwise.
	Keep Redaction = "keep"
	// Drop stores nothing, and the row says that there was a value.
	Drop Redaction = "drop"
	// Mask stores CaptureField.KeepFirst leading characters and "***". The type is string.
	Mask Redaction = "mask"
	// Hash stores 32 hexadecimal digits of the keyed hash: equal values stay equal, in
	// every row under one key. The type is string.
	Hash Redaction = "hash"
	// Bucket stores the lower edge of the value's bucket. The type is int or double, so
	// that rules over the attribute still compile; a value below the first edge is dropped.
	Bucket Redaction = "bucket"
)

// CaptureField allows one attribute. The name says where the middleware finds it:
// headers.NAME, query.NAME, method or path; any other name is for the handler or the
// wrapped backend to give. A repeated header is joined with ", ", of a repeated query
// parameter the first value counts.
type CaptureField struct {
	Name string
	// Type is the type that is stored. A value that is not of this type (text is parsed)
	// is left out, and the row says so.
	Type   decision.Type
	Redact Redaction
	// KeepFirst is for Mask, Edges (ascending) for Bucket.
	KeepFirst int
	Edges     []float64
	// Func, when set, rewrites the value before Redact sees it. An error or a panic drops
	// the request's rows and counts them as redaction-failed.
	Func func(decision.Value) (decision.Value, error)
	// Raw, with Keep, stores a string as it is: nobody looks for secrets in it. It is for
	// attributes that are what is looked for elsewhere, such as mail addresses.
	Raw bool
}

// EntitySource says where user, session or account stand; at most one is set. The raw
// value is never stored, only its keyed hash: a session cookie may be named here.
type EntitySource struct {
	Header, Cookie, Query string
	// Attr is the name of an attribute, for the wrapped backend and for Record; it need
	// not be on the list.
	Attr string
}

// Capture is the allow-list: what is not named here is not recorded. Authorization,
// cookies, API keys, sessions, signatures and their like cannot be named, whatever the
// redaction: [New] refuses such a list. It judges by the words of a name. Of a header or
// query parameter every word counts (x-auth-key, sessionid, sig), and key, code, pin,
// pass and ticket count when they are the whole name (query.key, but not
// headers.idempotency-key, which is an id, nor cache-key or country-code); of any other
// name the last words count (user.api_key, not metrics.token_count). A measure or an
// identity is no credential: x-token-count, max_tokens, x-auth-email. A value that the
// names are wrong about reaches the rows under another name, given by the handler.
//
// Headers that hold a whole URL (referer, location, and names that end in url, uri or
// path) may be named; query, fragment and userinfo are cut off before anything else sees
// the value, and the row says so (headers.referer:query).
type Capture struct {
	Fields []CaptureField
	Entity EntitySource
	// Input and Output store the bodies of request and response, with length and digest of
	// the original. Secrets in them are replaced (see "Credentials" in the package's
	// documentation); everything else stays byte for byte. A body that begins as JSON, or
	// is declared as such, and does not parse is not stored, nor is one that is no text. A
	// body longer than Options.MaxBody is cut where it passes by, and then does not parse
	// if it is JSON: half a secret would not be recognised.
	Input, Output bool
	// RawBodies stores bodies as they are, secrets and all, cut ones too. The segments say
	// so.
	RawBodies bool
	// RedactBody, when set, rewrites each stored body (already cut to MaxBody) before
	// secrets are looked for; it gets a copy of its own. An error or a panic drops the
	// request's rows.
	RedactBody func(body []byte) ([]byte, error)
	// All stands for a list of everything: rows of Record and Wrap keep whatever
	// attributes they come with, save those that no list may name and what is cut off URLs
	// in headers. It is for imports of
	// rows that have passed a list before; the middleware then captures no attribute.
	All bool
}

// Digest returns the SHA-256 of the list, for the metadata of the segments that were
// written under it. A Func counts as present or absent only.
func (c Capture) Digest() [32]byte {
	type line struct {
		Name, Type string
		Redact     Redaction
		KeepFirst  int
		Edges      []float64
		Func, Raw  bool
	}
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, f := range c.Fields {
		orDefault(&f.Redact, Keep)
		// Encoding into a hash fails only for edges that are not finite, which New refuses.
		_ = enc.Encode(line{f.Name, f.Type.String(), f.Redact, f.KeepFirst, f.Edges, f.Func != nil, f.Raw})
	}
	_ = enc.Encode(c.Entity)
	_ = enc.Encode([]bool{c.Input, c.Output, c.RedactBody != nil, c.All, c.RawBodies})
	return [32]byte(h.Sum(nil))
}

// needsKey names the first part of the list that cannot do without a key.
func (c *Capture) needsKey() string {
	for _, f := range c.Fields {
		if f.Redact == Hash {
			return fmt.Sprintf("hashed attribute %q", f.Name)
		}
	}
	if c.Entity != (EntitySource{}) {
		return "capturing the entity"
	}
	return ""
}

// origin is where the middleware finds an attribute.
type origin uint8

const (
	fromCaller origin = iota
	fromHeader
	fromHost
	fromQuery
	fromMethod
	fromPath
)

// field is a compiled CaptureField; the notes are what a row's Redacted says.
type field struct {
	CaptureField
	origin                    origin
	key                       string
	note, typeNote, belowNote string
	// queryNote is set for a header that holds a URL.
	queryNote string
}

// plan is a compiled capture list.
type plan struct {
	Capture
	fields []field
	schema *decision.Schema
	binder *decision.Binder
	// same is a caller's schema with the attributes of the list, in its order.
	same  atomic.Pointer[decision.Schema]
	query bool
	// denied remembers, for Capture.All, which attributes of a schema no list may name or
	// hold a URL.
	denied deniedCache
}

func compile(c Capture) (*plan, error) {
	if c.All && len(c.Fields) > 0 {
		return nil, fmt.Errorf("%w: a capture list of fields and All exclude each other", ErrOptions)
	}
	p := &plan{Capture: c}
	names := make([]string, len(c.Fields))
	fields := make([]decision.Field, len(c.Fields))
	for i, cf := range c.Fields {
		f, err := compileField(cf)
		if err != nil {
			name, _ := hiddenName(cf.Name, new(secret.Scanner))
			return nil, fmt.Errorf("%w: attribute %q: %w", ErrOptions, name, err)
		}
		p.fields = append(p.fields, f)
		p.query = p.query || f.origin == fromQuery
		names[i], fields[i] = cf.Name, decision.Field{Name: cf.Name, Type: cf.Type}
	}
	schema, err := decision.NewSchema(fields...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	p.schema, p.binder = schema, decision.NewBinder(names...)
	return p, c.Entity.validate()
}

func compileField(cf CaptureField) (field, error) {
	orDefault(&cf.Redact, Keep)
	f := field{CaptureField: cf, note: cf.Name + ":" + string(cf.Redact)}
	f.typeNote, f.belowNote = cf.Name+":type-error", cf.Name+":below-first-bucket"
	if _, hidden := hiddenName(cf.Name, new(secret.Scanner)); hidden {
		return f, errors.New("its name holds a secret")
	}
	if secret.Attribute(cf.Name) {
		return f, errors.New("it holds credentials and may not be captured, whatever the redaction")
	}
	f.origin, f.key = originOf(cf.Name)
	if urlHeader(cf.Name) {
		f.queryNote = cf.Name + ":query"
	}
	switch cf.Redact {
	case Keep, Drop:
		return f, nil
	case Mask, Hash:
		if cf.Type != decision.String {
			return f, fmt.Errorf("%s gives a string, not a %v", cf.Redact, cf.Type)
		}
		if cf.KeepFirst < 0 {
			return f, errors.New("keep-first is negative")
		}
		return f, nil
	case Bucket:
		return f, checkEdges(&cf)
	}
	return f, fmt.Errorf("unknown redaction %q (want keep, drop, mask, hash or bucket)", cf.Redact)
}

func checkEdges(cf *CaptureField) error {
	if cf.Type != decision.Int && cf.Type != decision.Double {
		return fmt.Errorf("bucket gives an int or a double, not a %v", cf.Type)
	}
	if len(cf.Edges) == 0 {
		return errors.New("bucket without edges")
	}
	for i, e := range cf.Edges {
		if math.IsNaN(e) || math.IsInf(e, 0) || i > 0 && e <= cf.Edges[i-1] {
			return fmt.Errorf("bucket edges %v are not finite and ascending", cf.Edges)
		}
		if cf.Type == decision.Int && (e != math.Trunc(e) || math.Abs(e) > 1<<53) {
			return fmt.Errorf("bucket edge %v of an int is not a whole number", e)
		}
	}
	return nil
}

func originOf(name string) (origin, string) {
	if h, ok := strings.CutPrefix(name, "headers."); ok {
		if strings.EqualFold(h, "host") { // net/http moves it out of the header map
			return fromHost, ""
		}
		return fromHeader, textproto.CanonicalMIMEHeaderKey(h)
	}
	if q, ok := strings.CutPrefix(name, "query."); ok {
		return fromQuery, q
	}
	switch name {
	case "method":
		return fromMethod, ""
	case "path":
		return fromPath, ""
	}
	return fromCaller, ""
}

func (e EntitySource) validate() error {
	n := 0
	for _, s := range []string{e.Header, e.Cookie, e.Query, e.Attr} {
		if s != "" {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("%w: more than one entity source", ErrOptions)
	}
	return nil
}

// read takes the allowed attributes of a request, as they are; redaction comes later,
// off the caller's goroutine.
func (p *plan) read(r *http.Request, vals []decision.Value) {
	var query map[string][]string
	if p.query && r.URL.RawQuery != "" {
		query = r.URL.Query()
	}
	for i := range p.fields {
		switch f := &p.fields[i]; f.origin {
		case fromHeader:
			switch vs := r.Header[f.key]; len(vs) {
			case 0:
			case 1:
				vals[i] = decision.StringValue(vs[0])
			default:
				vals[i] = decision.StringValue(strings.Join(vs, ", "))
			}
		case fromHost:
			vals[i] = decision.StringValue(r.Host)
		case fromQuery:
			if vs := query[f.key]; len(vs) > 0 {
				vals[i] = decision.StringValue(vs[0])
			}
		case fromMethod:
			vals[i] = decision.StringValue(r.Method)
		case fromPath:
			vals[i] = decision.StringValue(r.URL.Path)
		}
	}
}

// entity returns the raw entity of a request, "" when there is none.
func (p *plan) entity(r *http.Request) string {
	switch e := p.Entity; {
	case e.Header != "":
		return r.Header.Get(e.Header)
	case e.Cookie != "":
		if c, err := r.Cookie(e.Cookie); err == nil {
			return c.Value
		}
	case e.Query != "":
		return r.URL.Query().Get(e.Query)
	}
	return ""
}
