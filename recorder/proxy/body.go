package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/clefbench/clefbench/backends/systemone"
	"github.com/clefbench/clefbench/internal/secret"
)

// readable makes an attempt's bodies ready to be read, or returns the reason why they
// cannot be. One that turns out to be no decision gets formNone.
func (p *Proxy) readable(a *attempt) (lost string) {
	if a.body.lost != "" {
		return a.body.lost
	}
	if a.reply.lost != "" {
		return a.reply.lost
	}
	in := decoded(&a.body, a.header, p.opts.MaxBody)
	out := decoded(&a.reply, a.answer, p.opts.MaxBody)
	switch err := errors.Join(in, out); {
	case errors.Is(err, errTooLong):
		return LostTooLong
	case err != nil:
		return LostEncoding
	}
	if a.form == formUnknown {
		a.form = formQuestions
		if _, err := systemone.ParseRequest(a.body.data, limits(p.opts.MaxBody)); err != nil {
			a.form = formNone
		}
	}
	return ""
}

func limits(maxBody int) systemone.Limits { return systemone.Limits{Bytes: maxBody} }

var (
	errTooLong  = errors.New("the body is too long")
	errEncoding = errors.New("unknown content encoding")
)

// decoded undoes a body's content encoding. A body that broke off stays as it is: it will
// be read by nobody.
func decoded(b *captured, h http.Header, limit int) error {
	encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
	if encoding == "" || encoding == "identity" || len(b.data) == 0 {
		return nil
	}
	if !b.whole {
		b.data = nil
		return nil
	}
	r, err := decoder(encoding, b.data)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return errEncoding
	case len(data) > limit:
		return errTooLong
	}
	b.data = data
	return nil
}

func decoder(encoding string, data []byte) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(bytes.NewReader(data))
	case "deflate":
		// The standard means zlib; some servers send the bare stream.
		if r, err := zlib.NewReader(bytes.NewReader(data)); err == nil {
			return r, nil
		}
		return flate.NewReader(bytes.NewReader(data)), nil
	}
	return nil, errEncoding
}

// minSecret is the shortest credential that is looked for: a shorter one stands in any
// text by chance.
const minSecret = 8

// secrets are the credentials that a request's head carries, longest first where one
// holds another.
func (a *attempt) secrets() (out []string) {
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= minSecret {
			out = append(out, s)
		}
	}
	for name, values := range a.header {
		if !secret.Parameter(name) {
			continue
		}
		for _, v := range values {
			add(v)
			scheme, rest, ok := strings.Cut(v, " ")
			if !ok {
				continue
			}
			add(rest)
			if strings.EqualFold(scheme, "basic") {
				if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
					user, pass, _ := strings.Cut(string(plain), ":")
					add(user)
					add(pass)
				}
			}
		}
	}
	if a.query == "" {
		return out
	}
	values, _ := url.ParseQuery(a.query)
	for name, vs := range values {
		if secret.Parameter(name) {
			for _, v := range vs {
				add(v)
			}
		}
	}
	return out
}

// conceal takes credentials out of a text that repeats them.
func conceal(b []byte, secrets []string) ([]byte, bool) {
	found := false
	for _, s := range secrets {
		if bytes.Contains(b, []byte(s)) {
			b, found = bytes.ReplaceAll(b, []byte(s), []byte("***")), true
		}
	}
	return b, found
}
