package recorder

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// Middleware records the decisions that next makes: it reads the attributes that the
// capture list names, puts a [Recording] into the request's context for next to fill,
// and hands the rows over when next has returned. A request for which next opens no
// decision leaves no row, save that a panic where Options.Scenario is set leaves one.
//
// It changes no byte either way. The writer that next gets still has the abilities of
// the server's own (http.Flusher, http.Hijacker, io.ReaderFrom, http.Pusher, and by way
// of http.ResponseController all others). A panic of next goes on to the server; one of
// the recorder's own ends in the recorder.
//
// The hand-over waits for nothing under [PolicyDrop]. A response that is longer than
// the server's buffer, or flushed, has left before it; a shorter one leaves directly
// after it.
func (r *Recorder) Middleware(next http.Handler) http.Handler {
	if r == nil {
		return next
	}
	return &middleware{r, next}
}

type middleware struct {
	r    *Recorder
	next http.Handler
}

// exchange is one request on its way through the middleware.
type exchange struct {
	rec      *Recording
	original *http.Request
	req      *http.Request
	writer   *responseWriter
	in       *tap
}

func (m *middleware) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if m.r.bypass(req.Context(), 1) {
		marked := req.WithContext(m.r.mark(req.Context()))
		defer keepServersView(req, marked)
		m.next.ServeHTTP(w, marked)
		return
	}
	x := m.begin(w, req)
	if x == nil {
		m.next.ServeHTTP(w, req)
		return
	}
	// No recover around the handler: its panic keeps its own stack on the way up.
	returned := false
	defer func() { m.end(x, returned) }()
	m.next.ServeHTTP(x.writer.able(), x.req)
	returned = true
}

// begin returns nil when the recorder itself failed; the request goes on without it.
func (m *middleware) begin(w http.ResponseWriter, req *http.Request) (x *exchange) {
	defer func() {
		if p := recover(); p != nil {
			m.r.panicked(p)
			x = nil
		}
	}()
	r := m.r
	rec := r.open(req.Context())
	if rec == nil {
		return nil
	}
	g := rec.g
	x = &exchange{rec: rec, original: req, writer: &responseWriter{ResponseWriter: w}}
	x.req = req.WithContext(context.WithValue(req.Context(), contextKey{}, rec))
	if !rec.kept && !r.sampler.late() {
		return x
	}
	r.plan.read(req, g.attrs)
	g.entity = r.plan.entity(req)
	g.hasEntity = g.entity != ""
	if !g.trace.Set {
		g.trace, g.span = parseTraceparent(req.Header.Get("Traceparent"))
	}
	if r.plan.Output {
		x.writer.out = &tap{max: r.opts.MaxBody, key: r.opts.EntityKey}
	}
	if r.plan.Input {
		x.in = &tap{max: r.opts.MaxBody, key: r.opts.EntityKey}
		if req.Body == nil || req.Body == http.NoBody {
			x.in.end() // handlers compare with NoBody: it stays
		} else {
			x.req.Body = &tapBody{req.Body, x.in}
		}
	}
	return x
}

// end takes the rows out of the handler's reach and hands them over.
func (m *middleware) end(x *exchange, returned bool) {
	keepServersView(x.original, x.req)
	x.rec.finish(x.original.Context(), returned, func(g *group) { x.fill(g, returned) })
}

// keepServersView hands back what the handler left in its copy of the request, where
// the server or an outer handler looks for it: the server removes a form's files.
func keepServersView(original, inner *http.Request) {
	if original.MultipartForm == nil {
		original.MultipartForm = inner.MultipartForm
	}
	if original.Pattern == "" {
		original.Pattern = inner.Pattern
	}
}

// fill adds what is known once the handler has returned.
func (x *exchange) fill(g *group, returned bool) {
	w, first := x.writer, &g.slots[0]
	length := x.original.ContentLength
	g.httpStatus = w.status
	if w.status == 0 && returned && !w.hijacked {
		g.httpStatus = http.StatusOK // what the server writes for a silent handler
	}
	for i := range g.slots {
		usage := &g.slots[i].row.Usage
		if !w.hijacked && !usage.BytesOut.Set {
			usage.BytesOut = decision.Some(w.written)
		}
		if length >= 0 && !usage.BytesIn.Set {
			usage.BytesIn = decision.Some(length)
		}
	}
	if x.in != nil {
		first.in = x.in.take(length)
		first.in.json = isJSON(x.original.Header)
	}
	if w.out != nil {
		if returned && !w.hijacked {
			w.out.end()
		}
		first.out = w.out.take(-1)
		first.out.json = isJSON(w.Header())
	}
}

// isJSON reports whether a body is declared as one JSON value.
func isJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// parseTraceparent reads a W3C traceparent header; anything malformed is absent.
func parseTraceparent(h string) (trace decision.Opt[[16]byte], span decision.Opt[[8]byte]) {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(h) < length || h[2] != '-' || h[35] != '-' || h[52] != '-' || h[:2] == "ff" ||
		len(h) > length && (h[:2] == "00" || h[length] != '-') {
		return trace, span
	}
	var t [16]byte
	var s [8]byte
	for _, part := range []struct {
		dst []byte
		src string
	}{{make([]byte, 1), h[:2]}, {t[:], h[3:35]}, {s[:], h[36:52]}, {make([]byte, 1), h[53:55]}} {
		if !lowerHex(part.src) {
			return trace, span
		}
		hex.Decode(part.dst, []byte(part.src))
	}
	if t != [16]byte{} && s != [8]byte{} {
		trace, span = decision.Some(t), decision.Some(s)
	}
	return trace, span
}

// lowerHex: the standard allows no capitals.
func lowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// clock is the recorder's clock for calls that a handler makes itself: a panic of an
// injected clock must not reach it.
func (r *Recorder) clock() (t time.Time) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(p)
			t = time.Now()
		}
	}()
	return r.opts.Clock()
}
