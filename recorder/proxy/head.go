package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// head is what is needed of the headers, query and path of an attempt that has ended: they
// may be long, and the attempt may wait for its retry.
type head struct {
	reduced bool
	secrets credentials
	trace   string // the traceparent
	model   string // where the body has none
	source  string // the id under which the provider knows the answer
	cost    string
	after   time.Duration // how long the server asks clients to wait
}

// reduce takes what is needed and lets go of the rest.
func (a *attempt) reduce() {
	if a.reduced {
		return
	}
	a.head = head{
		reduced: true, secrets: credentialsOf(a.header, a.query), trace: a.header.Get("Traceparent"), model: strings.Clone(modelBeside(a)),
		source: sourceID(a.answer), cost: a.answer.Get("X-Litellm-Response-Cost"), after: retryAfter(a.answer),
	}
	a.body.encoding, a.reply.encoding = encodingOf(a.header), encodingOf(a.answer)
	a.header, a.answer, a.query = nil, nil, ""
}

func encodingOf(h http.Header) string {
	return strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
}

const (
	// attemptBytes and valueBytes are what the memory of an attempt and of one text in it
	// come to beside the text.
	attemptBytes = 1 << 10
	valueBytes   = 48
)

// weight is the memory that an attempt holds beside its bodies, in bytes.
func (a *attempt) weight() int64 {
	n := attemptBytes + len(a.query) + len(a.client) + len(a.path) + len(a.key) +
		len(a.trace) + len(a.model) + len(a.source) + len(a.cost) + len(a.body.encoding) + len(a.reply.encoding)
	for _, h := range []http.Header{a.header, a.answer} {
		for name, values := range h {
			n += valueBytes + len(name)
			for _, v := range values {
				n += valueBytes + len(v)
			}
		}
	}
	for i := range a.secrets {
		n += valueBytes + len(a.secrets[i].text)
	}
	for _, v := range a.attrs {
		if n += valueBytes; v.Type() == decision.String {
			n += len(v.Str())
		}
	}
	return int64(n)
}

// shelve makes an attempt that has to wait as small as it can be: its bodies as they came,
// and of its head nothing that only the next attempt's is compared with.
func (p *Proxy) shelve(a *attempt) {
	p.pack(&a.body)
	p.pack(&a.reply)
	a.client, a.path, a.key = "", "", ""
	for i, v := range a.attrs {
		if v.Type() == decision.String {
			a.attrs[i] = decision.StringValue(strings.Clone(v.Str())) // not a part of the whole query
		}
	}
	n := a.weight()
	p.budget.add(n - a.held)
	a.held = n
}
