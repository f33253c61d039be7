package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/clefbench/clefbench/backends/systemone"
)

// readable makes an attempt ready to be read, or returns the reason why it cannot be. One
// that turns out to be no decision gets formNone.
func (p *Proxy) readable(a *attempt) (lost string) {
	a.reduce()
	for _, b := range []*captured{&a.body, &a.reply} {
		if b.lost == "" {
			p.unpack(b)
		}
		if b.lost != "" {
			return b.lost
		}
	}
	if len(a.secrets) > maxSecrets {
		return LostCredentials
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

var errEncoding = errors.New("unknown content encoding")

// unpack undoes a body's content encoding, within the memory that all requests share. A
// body that broke off will be read by nobody.
func (p *Proxy) unpack(b *captured) {
	if b.encoding == "" || b.encoding == "identity" || len(b.data) == 0 || b.wire != nil {
		return
	}
	if !b.whole {
		b.data = nil
		return
	}
	r, err := decoder(b.encoding, b.data)
	if err != nil {
		b.lost = LostEncoding
		return
	}
	plain := capture{budget: &p.budget, max: p.opts.MaxBody}
	_, err = io.Copy(&plain, r)
	out := plain.take()
	switch {
	case out.lost != "":
		b.lost = out.lost
	case err != nil:
		p.budget.give(out.held)
		b.lost = LostEncoding
	default:
		b.wire, b.data, b.held = b.data, out.data, b.held+out.held
	}
}

// pack goes back to what came over the wire: an attempt that waits for its retry is not
// read until then.
func (p *Proxy) pack(b *captured) {
	if b.wire == nil {
		return
	}
	n := int64(cap(b.data))
	p.budget.give(n)
	b.data, b.wire, b.held = b.wire, nil, b.held-n
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
