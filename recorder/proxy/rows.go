package proxy

import (
	"encoding/hex"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/backends/systemone"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Error codes of rows, beside those of attempts and http-NNN.
const (
	// CodeUnreadable: the request is none of its dialect, so its questions are not known.
	CodeUnreadable = "unreadable-request"
	// CodeProvider: a body of status 200 says that there is no answer.
	CodeProvider = "provider-error"
	// CodeUnknownType: a question of a type that this version does not know.
	CodeUnknownType = "unknown-question-type"
)

// rows makes the rows of a call: one a question.
func (p *Proxy) rows(c *call) []snapshot.Snapshot {
	a := c.last
	base := p.common(c)
	var redacted []string
	a.body.data, a.reply.data, redacted = p.clean(a)
	if a.form == formDecide {
		return p.decideRows(a, base, redacted)
	}
	req, err := systemone.ParseRequest(a.body.data, limits(p.opts.MaxBody))
	if err != nil {
		return []snapshot.Snapshot{p.unreadable(a, base, err, redacted)}
	}
	return p.questionRows(a, base, req, redacted)
}

// clean takes out of both bodies what may not be stored, and notes it: credentials of the
// request, and what an error repeats of it.
func (p *Proxy) clean(a *attempt) (in, out []byte, redacted []string) {
	in, found := a.secrets.hide(a.body.data)
	if found {
		redacted = append(redacted, "input:credential")
	}
	if out, found = a.secrets.hide(a.reply.data); found {
		redacted = append(redacted, "output:credential")
	}
	detail, _ := a.secrets.hide([]byte(a.detail))
	a.detail = string(detail)
	if a.status < 300 && a.code == "" || len(out) == 0 {
		return in, out, redacted
	}
	stripped, n, err := systemone.StripEchoes(out, limits(p.opts.MaxBody))
	switch {
	case err != nil: // nobody can tell what it repeats
		return in, nil, append(redacted, "output:drop")
	case n > 0:
		redacted = append(redacted, "output:echo")
	}
	return in, stripped, redacted
}

// common is what all rows of a call have in common.
func (p *Proxy) common(c *call) snapshot.Snapshot {
	first, a := c.steps[0].start, c.last
	end := a.start.Add(a.took)
	s := snapshot.Snapshot{
		RequestID: decision.NewID(first), Time: first.Round(0).UTC(), Scenario: p.opts.Scenario,
		SourceID: a.source, Latency: decision.Some(end.Sub(first)), Stages: stages(c),
		Attempts: decision.Some(int8(min(127, max(len(c.steps), a.retry+1)))),
		Attrs:    p.fields.join(a.attrs, decision.Attrs{}), ND: c.tape(),
	}
	if a.times.connected {
		s.Cold = decision.Some(!a.times.reused)
	}
	s.Artefact = decision.Artefact{Provider: p.upstream.Host, HTTPStatus: int16(a.status)}
	s.Usage.BytesIn, s.Usage.BytesOut = decision.Some(a.body.total), decision.Some(a.reply.total)
	s.Cost = systemone.ParseCost(a.cost)
	s.TraceID, s.SpanID = traceOf(a.trace)
	return s
}

// sourceID is the id under which the provider knows the answer.
func sourceID(h http.Header) string {
	for _, name := range []string{"X-Typesafe-Request-Id", "Cf-Ai-Req-Id", "X-Request-Id", "Cf-Ray"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// stages divides a call's time: transport until the first byte of each answer, serialise
// the rest of the last answer, queue the pauses between attempts.
func stages(c *call) (s decision.Stages) {
	var transport, queue time.Duration
	for i, a := range c.steps {
		wait := a.took
		if !a.answer.IsZero() {
			wait = a.answer.Sub(a.start)
		}
		transport += wait
		if i > 0 {
			before := c.steps[i-1]
			queue += max(0, a.start.Sub(before.start.Add(before.took)))
		}
		if i == len(c.steps)-1 && !a.answer.IsZero() {
			s.Serialise = decision.Some(a.took - wait)
		}
	}
	s.Transport = decision.Some(transport)
	if len(c.steps) > 1 {
		s.Queue = decision.Some(queue)
	}
	return s
}

// tape tells of several attempts, and of a connection that had to be made first.
func (c *call) tape() string {
	b := []byte("{")
	if len(c.steps) > 1 {
		b = append(b, `"attempts":[`...)
		for i, a := range c.steps {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendInt(b, `{"at_ns":`, int64(a.start.Sub(c.steps[0].start)))
			b = appendInt(b, `,"took_ns":`, int64(a.took))
			b = appendInt(b, `,"http_status":`, int64(a.status))
			if a.code != "" {
				b = append(append(append(b, `,"error":"`...), a.code...), '"')
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if t := c.last.times; t.connected && !t.reused {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendInt(b, `"dial_ns":`, int64(t.dial))
		if t.shake > 0 {
			b = appendInt(b, `,"tls_ns":`, int64(t.shake))
		}
	}
	if len(b) == 1 {
		return ""
	}
	return string(append(b, '}'))
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// traceOf reads a W3C traceparent header; anything malformed is absent.
func traceOf(h string) (trace decision.Opt[[16]byte], span decision.Opt[[8]byte]) {
	part := strings.Split(h, "-")
	if len(part) < 4 || len(part[0]) != 2 || part[0] == "ff" || len(part[1]) != 32 || len(part[2]) != 16 {
		return trace, span
	}
	t, errT := hex.DecodeString(part[1])
	s, errS := hex.DecodeString(part[2])
	if errT != nil || errS != nil || [16]byte(t) == [16]byte{} || [8]byte(s) == [8]byte{} {
		return trace, span
	}
	return decision.Some([16]byte(t)), decision.Some([8]byte(s))
}

// bodies puts the bodies on a request's first row.
func bodies(first *snapshot.Snapshot, a *attempt, redacted []string) {
	first.Input, first.Output = a.body.data, a.reply.data
	first.InputLen = decision.Some(max(int64(len(a.body.data)), 0))
	first.Redacted = redacted
}

// unreadable is the row of a request whose questions are not known.
func (p *Proxy) unreadable(a *attempt, s snapshot.Snapshot, err error, redacted []string) snapshot.Snapshot {
	s.ID = decision.NewID(a.start)
	s.Backend, s.Artefact.Dialect = p.backend(""), string(p.opts.Dialect)
	if p.opts.Dialect == DialectAuto {
		s.Artefact.Dialect = string(DialectSystemOne)
		if a.form == formDecide {
			s.Artefact.Dialect = string(DialectDecide)
		}
	}
	status, code, text := a.failure()
	if code == "" {
		status, code, text = decision.Error, CodeUnreadable, err.Error()
	}
	fail(&s, status, code, text)
	bodies(&s, a, redacted)
	return s
}

// backend names who decided: as given, else the model that was asked for, else the host.
// The model that answered would give failed calls another name.
func (p *Proxy) backend(model string) string {
	switch {
	case p.opts.Backend != "":
		return p.opts.Backend
	case model != "":
		return model
	}
	return p.upstream.Host
}

// failure says why an attempt has no answer, from the outside; an empty code when it has
// one.
func (a *attempt) failure() (status decision.Status, code, text string) {
	switch {
	case a.code == CodeTimeout:
		return decision.Timeout, a.code, a.detail
	case a.code != "":
		return decision.Error, a.code, a.detail
	case a.status == http.StatusRequestTimeout || a.status == http.StatusGatewayTimeout:
		status = decision.Timeout
	case a.status < 200 || a.status >= 300:
		status = decision.Error
	default:
		return decision.StatusNone, "", ""
	}
	text = http.StatusText(a.status)
	if e, err := systemone.ParseError(a.reply.data, systemone.Limits{}); err == nil {
		text = describe(e, text)
	}
	return status, "http-" + strconv.Itoa(a.status), text
}

// describe puts an error body into a line; StripEchoes has been over it.
func describe(e systemone.ErrorBody, otherwise string) string {
	var parts []string
	for _, s := range []string{e.Type, e.Code, e.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	for i, it := range e.Issues {
		if i == 3 {
			parts = append(parts, "and others")
			break
		}
		parts = append(parts, it.Loc+" "+it.Type)
	}
	if len(parts) == 0 {
		return otherwise
	}
	return strings.Join(parts, ": ")
}

// fail makes a row one without an answer.
func fail(s *snapshot.Snapshot, status decision.Status, code, text string) {
	s.Status, s.Action, s.Params = status, "", ""
	s.Confidence, s.ConfidenceDef = decision.Opt[float64]{}, ""
	s.Reason = decision.ReasonError
	if status == decision.Timeout {
		s.Reason = decision.ReasonTimeout
	}
	s.ErrorCode, s.Error = code, text
}

// withoutDust takes the dust of 1-p off: twelve digits are more than any provider sends.
func withoutDust(x float64) float64 { return math.Round(x*1e12) / 1e12 }
