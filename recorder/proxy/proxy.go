package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/recorder"
)

// Codes of attempts that got no answer, or not all of it.
const (
	// CodeCanceled: the client went away first.
	CodeCanceled = "canceled"
	// CodeTimeout: one of the proxy's own limits of time passed.
	CodeTimeout = "timeout"
	// CodeConnect: there was no connection to the upstream.
	CodeConnect = "connect"
	// CodeTransport: the connection broke.
	CodeTransport = "transport"
)

// errTimeout is the cause of a context that Options.Timeout ended.
var errTimeout = errors.New("the proxy's limit of time has passed")

// Proxy is a reverse proxy that records. It is an http.Handler; [Proxy.Serve] has the
// limits of a server as well. All methods are safe for concurrent use.
type Proxy struct {
	opts      Options
	upstream  *url.URL
	base      string // the upstream's path, without a slash at its end
	rec       *recorder.Recorder
	reverse   *httputil.ReverseProxy
	transport *http.Transport
	server    *http.Server
	budget    budget
	fields    attributes

	mu     sync.Mutex
	ended  []*attempt // wait to be read
	closed bool
	// alarm goes off a moment after the first attempt of a batch has ended: to wake the
	// reading goroutine for each of them costs more than reading them together.
	alarm    *time.Timer
	wake     chan struct{}
	quit     chan struct{}
	done     chan struct{}
	stop     sync.Once
	underway sync.WaitGroup
	counts   counts
}

type counts struct {
	requests, passed, upgrades, attempts, decisions, retries, panics atomic.Uint64
}

// Stats are a proxy's counts at one moment. What of the decisions was written is in the
// recorder's own.
type Stats struct {
	// Requests counts all; Passed of them were no decisions, Upgrades changed the protocol.
	Requests, Passed, Upgrades uint64
	// Attempts were decisions, Retries of them belonged to one before; Decisions went to
	// the recorder, one a request of its client.
	Attempts, Retries, Decisions uint64
	// Panics of the recording code, which were contained.
	Panics uint64
	// Captured bytes are in memory now.
	Captured int64
}

// Stats returns the counts.
func (p *Proxy) Stats() Stats {
	c := &p.counts
	return Stats{Requests: c.requests.Load(), Passed: c.passed.Load(), Upgrades: c.upgrades.Load(),
		Attempts: c.attempts.Load(), Retries: c.retries.Load(), Decisions: c.decisions.Load(),
		Panics: c.panics.Load(), Captured: p.budget.used.Load()}
}

// New checks the options and starts the goroutine that reads what was captured;
// [Proxy.Shutdown] ends it. Errors wrap [ErrOptions].
func New(opts Options) (*Proxy, error) {
	opts, u, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{opts: opts, upstream: u, rec: opts.Recorder, transport: opts.transport(u),
		base: strings.TrimSuffix(u.EscapedPath(), "/"), budget: budget{max: opts.Budget},
		alarm: time.NewTimer(time.Hour), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	p.fields = newAttributes(opts.Recorder.Schema(), opts.Entity)
	quiet := log.New(io.Discard, "", 0) // whatever it would say is a row or a count
	p.reverse = &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p.transport, FlushInterval: delayedHeaderFlush,
		ModifyResponse: p.answered, ErrorHandler: p.failed, ErrorLog: quiet, BufferPool: new(buffers),
	}
	p.server = &http.Server{Handler: p, ErrorLog: quiet, MaxHeaderBytes: opts.HeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: clientIdleTimeout, DisableGeneralOptionsHandler: true}
	go p.read()
	return p, nil
}

// Serve answers on a listener until Shutdown or Close; it then returns
// http.ErrServerClosed.
func (p *Proxy) Serve(l net.Listener) error {
	return p.server.Serve(newLimited(l, p.opts.Connections))
}

// Shutdown stops accepting, waits for the requests that are under way, and hands
// everything that was captured to the recorder, which stays open. When ctx ends first,
// connections are closed; what their requests had got so far is recorded as canceled.
func (p *Proxy) Shutdown(ctx context.Context) error {
	err := p.server.Shutdown(ctx)
	if err != nil {
		_ = p.server.Close()
	}
	idle := make(chan struct{})
	go func() { p.underway.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(time.Second): // handlers whose connections are closed end at once
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop.Do(func() { close(p.quit) })
	<-p.done
	p.transport.CloseIdleConnections()
	return err
}

type exchangeKey struct{}

// ServeHTTP forwards a request, and hands what was captured of it over once it has ended.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.counts.requests.Add(1)
	if r.Method == http.MethodConnect {
		p.counts.passed.Add(1)
		http.Error(w, "this is no forward proxy", http.StatusMethodNotAllowed)
		return
	}
	p.underway.Add(1)
	defer p.underway.Done()
	ctx := r.Context()
	if p.opts.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, p.opts.Timeout, errTimeout)
		defer cancel()
		ctx = limited
	}
	x := p.begin(r)
	if x != nil {
		defer p.end(x)
		ctx = context.WithValue(httptrace.WithClientTrace(ctx, x.timing.trace()), exchangeKey{}, x)
	}
	body := r.Body
	if body != nil && body != http.NoBody {
		body = requestBody{body}
		if x != nil {
			body = &tee{ReadCloser: body, c: &x.in}
		}
		ctx = context.WithValue(ctx, bodyKey{}, body) // ReverseProxy keeps it from its error handler
	}
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	r.Body = body
	// Without it the server reads the request's body to its end, and closes it, once the
	// answer begins; the transport, which may still look for that end, then breaks the
	// upstream's connection off in the middle of the answer. Seen in 1 of 200 requests of
	// 50 kB, with a bare ReverseProxy as well.
	_ = http.NewResponseController(w).EnableFullDuplex()
	p.reverse.ServeHTTP(newWriter(w), r)
}

// requestBody is a request's body that only the server closes. The transport closes what it
// is given when it cannot reach the upstream, and a server whose request body was closed
// early breaks the connection off behind the answer: the client's next request on it is
// then lost, without an answer and without a row.
type requestBody struct{ io.ReadCloser }

type bodyKey struct{}

func (requestBody) Close() error { return nil }

// rewrite undoes what httputil.ReverseProxy changes beyond the connection's own headers:
// it cleans the query, re-encodes the path and drops forwarding headers.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	out, in := pr.Out, pr.In
	out.URL = p.target(in)
	out.Host = p.upstream.Host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := in.Header[name]; ok && !hopByHop(in.Header, name) {
			out.Header[name] = v
		}
	}
	switch {
	case in.ContentLength < 0 && out.Body != nil:
		p.trailers(out, in)
	case in.ContentLength == 0 && in.Header["Content-Length"] != nil:
		// Together these make net/http send the length for any method.
		out.Body, out.TransferEncoding = http.NoBody, []string{"identity"}
	}
}

// hopByHop reports whether a client says that a header is meant for this connection only
// (RFC 9110, 7.6.1).
func hopByHop(h http.Header, name string) bool {
	for _, list := range h["Connection"] {
		for option := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(option), name) {
				return true
			}
		}
	}
	return false
}

// target is a request's place at the upstream. net/http would escape what a client left
// unescaped; an opaque URL goes out as it is.
func (p *Proxy) target(in *http.Request) *url.URL {
	u := &url.URL{Scheme: p.upstream.Scheme, Host: p.upstream.Host}
	target := in.RequestURI
	if !strings.HasPrefix(target, "/") && target != "*" {
		// The absolute form is meant for a forward proxy; only its path is the upstream's.
		_, target, _ = strings.Cut(target, "://")
		if i := strings.IndexAny(target, "/?"); i < 0 {
			target = "/"
		} else if target = target[i:]; target[0] == '?' {
			target = "/" + target
		}
	}
	if u.Opaque = p.base + target; target == "*" && p.base != "" {
		u.Opaque = p.base
	}
	if strings.HasPrefix(u.Opaque, "//") { // an opaque URL of this form would name a host
		u.Opaque, u.Path, u.RawPath = "", in.URL.Path, in.URL.RawPath
		u.RawQuery, u.ForceQuery = in.URL.RawQuery, in.URL.ForceQuery
	}
	return u
}

// trailers passes on the trailers of a chunked request. Those that were announced share
// their map with the incoming request; others are known only once the body has ended.
func (p *Proxy) trailers(out, in *http.Request) {
	out.Trailer = in.Trailer
	if out.Trailer == nil {
		out.Trailer = make(http.Header)
	}
	out.Body = &trailing{ReadCloser: out.Body, in: in, out: out.Trailer}
}

type trailing struct {
	io.ReadCloser
	in  *http.Request
	out http.Header
}

func (t *trailing) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		for k, v := range t.in.Trailer {
			t.out[k] = v
		}
	}
	return n, err
}

// answered notes an answer's head and puts a tee on its body.
func (p *Proxy) answered(res *http.Response) error {
	x, _ := res.Request.Context().Value(exchangeKey{}).(*exchange)
	if res.StatusCode == http.StatusSwitchingProtocols {
		p.counts.upgrades.Add(1)
	}
	if x == nil {
		return nil
	}
	x.status, x.answer = res.StatusCode, res.Header
	if res.StatusCode == http.StatusSwitchingProtocols {
		return nil // its body is the connection, and must stay one
	}
	if res.Body == nil || res.Body == http.NoBody {
		x.out.end()
		return nil
	}
	x.out.expect(res.ContentLength)
	ctx := res.Request.Context()
	res.Body = &tee{ReadCloser: res.Body, c: &x.out, failed: func(err error) { x.fail(ctx, err) }}
	return nil
}

// failed answers for an upstream that did not.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	code := codeOf(r.Context(), err)
	if x, _ := r.Context().Value(exchangeKey{}).(*exchange); x != nil {
		x.fail(r.Context(), err)
	}
	status := http.StatusBadGateway
	if code == CodeTimeout {
		status = http.StatusGatewayTimeout
	}
	if body, ok := r.Context().Value(bodyKey{}).(io.Reader); ok && !drained(body) {
		w.Header().Set("Connection", "close") // the server closes it, and the client has to know
	}
	http.Error(w, "clefbench: the upstream gave no answer ("+code+")", status)
}

// maxDrained is what is read of a request that was not passed on, to keep its connection.
const maxDrained = 256 << 10

// drained reads the rest of a request's body; false when that is too long or fails.
func drained(body io.Reader) bool {
	_, err := io.CopyN(io.Discard, body, maxDrained)
	return err == io.EOF
}

// codeOf tells what an error of an attempt means.
func codeOf(ctx context.Context, err error) string {
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return CodeTimeout
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return CodeCanceled
	case errors.As(err, &timeout) && timeout.Timeout():
		return CodeTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return CodeConnect
	}
	return CodeTransport
}

// buffers lends ReverseProxy the memory to copy with; by itself it allocates 32 KiB for
// each answer.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
