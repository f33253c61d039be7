package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/clefbench/clefbench/decision"
)

// Dialect names the wire in responses.
const Dialect = "decide"

// Error codes of a call that gave no decision. A status other than 200 has the code
// http-NNN.
const (
	CodeTimeout      = "timeout"
	CodeCanceled     = "canceled"
	CodeConnect      = "connect"
	CodeTransport    = "transport"
	CodeNotEncodable = "not-encodable"
)

// Client asks a service over POST /v1/decide. It is safe for concurrent use and keeps
// its connections.
type Client struct {
	opts   ClientOptions
	decide string
	health string
	key    string
	mask   *mask
	http   *http.Client
	info   decision.Info

	breaker breaker
	life    context.Context // ends with Close; patient calls live under it
	end     context.CancelFunc
}

// NewClient checks the options and makes a client; it does not call the service.
func NewClient(opts ClientOptions) (*Client, error) {
	opts = opts.withDefaults()
	base, err := parseBase(opts.BaseURL)
	if err != nil {
		return nil, err
	}
	key, err := opts.key()
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Client{
		opts: opts, key: key, mask: newMask(key), life: life, end: end,
		breaker: breaker{done: opts.NoBreaker},
		decide:  base.JoinPath("v1", "decide").String(),
		health:  base.JoinPath("healthz").String(),
		http: &http.Client{
			Transport: opts.Transport,
			// A redirect would send the key and the request elsewhere, or turn the POST
			// into a GET: it is an outcome (http-307) instead.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		info: decision.Info{
			Name: opts.Name, Kind: Dialect,
			Artefact:     decision.Artefact{Provider: base.Host, Dialect: Dialect},
			Capabilities: decision.Capabilities{Deterministic: opts.Deterministic, Network: true, Confidence: true, Timeout: decision.TimeoutHard},
		},
	}, nil
}

// Info describes the client. What the service runs is known from its answers only.
func (c *Client) Info() decision.Info { return c.info }

// Decide asks each question in a call of its own, all within the smaller of the
// request's deadline and [ClientOptions.Timeout].
func (c *Client) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = c.info.Artefact
	end := time.Now().Add(c.limit(req.Deadline))
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	var t tally
	for i := range req.Questions {
		c.ask(ctx, req, i, end, out, &t)
	}
	if len(req.Questions) > 0 {
		t.report(out)
	}
	return nil
}

// limit is the smaller of the two limits that are set.
func (c *Client) limit(deadline time.Duration) time.Duration {
	switch timeout := c.opts.Timeout; {
	case deadline <= 0 && timeout <= 0:
		return DefaultTimeout
	case deadline <= 0 || timeout > 0 && timeout < deadline:
		return timeout
	}
	return deadline
}

// tally adds up the calls of one request.
type tally struct {
	transport, serialise time.Duration
	in, out              int64
	calls                int
}

func (t *tally) report(out *decision.Response) {
	out.Attempts = t.calls
	out.Stages.Serialise = decision.Some(t.serialise)
	out.Stages.Transport = decision.Some(t.transport)
	out.Usage.BytesIn, out.Usage.BytesOut = decision.Some(t.in), decision.Some(t.out)
}

// ask makes one call and fills one decision.
func (c *Client) ask(ctx context.Context, req *decision.Request, i int, end time.Time, out *decision.Response, t *tally) {
	d := &out.Decisions[i]
	start := time.Now()
	body, err := appendRequest(make([]byte, 0, 1024), req, &req.Questions[i], end.Sub(start))
	sent := time.Now()
	t.serialise += sent.Sub(start)
	if err != nil {
		d.Fail(decision.NotReplayable, CodeNotEncodable, err.Error())
		return
	}
	if !c.breaker.admit() {
		circuitOpen(d)
		return
	}
	late := ctx.Err() != nil // an earlier question took all the time: no word on the service
	t.calls++
	t.in += int64(len(body))
	status, answer, err := c.post(ctx, body, req.ID, i)
	received := time.Now()
	t.transport += received.Sub(sent)
	t.out += int64(len(answer))
	out.Artefact.HTTPStatus = int16(status)
	c.settle(ctx, status, answer, err, d, &out.Artefact)
	t.serialise += time.Since(received)
	if !late {
		c.observe(status, d.ErrorCode, body, end.Sub(sent))
	}
}

// settle makes a decision of what a call brought.
func (c *Client) settle(ctx context.Context, status int, body []byte, err error, d *decision.Decision, a *decision.Artefact) {
	body = c.mask.bytes(body)
	switch {
	case err != nil:
	case status != http.StatusOK:
		d.Fail(decision.Error, "http-"+strconv.Itoa(status), c.printable(errorText(status, body)))
		return
	default:
		if err = parseAnswer(body, d, a); err == nil {
			return
		}
		err = &badResponse{err}
	}
	outcome, code := classify(ctx, err)
	d.Fail(outcome, code, c.printable(err.Error()))
}

// badResponse is an answer that cannot be read.
type badResponse struct{ error }

func (c *Client) post(ctx context.Context, body []byte, id decision.ID, question int) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.decide, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if !id.IsZero() {
		// Tells net/http that it may send again, on a fresh connection, what a server
		// closed a kept one for before it read a byte.
		req.Header.Set("Idempotency-Key", id.String()+"-"+strconv.Itoa(question))
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return c.do(req)
}

func (c *Client) do(req *http.Request) (int, []byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.opts.MaxResponse+1))
	if err == nil && int64(len(body)) > c.opts.MaxResponse {
		err = &badResponse{fmt.Errorf("the answer has more than %d bytes", c.opts.MaxResponse)}
	}
	return resp.StatusCode, body, err
}

// classify tells what an error of a call means for the decision.
func classify(ctx context.Context, err error) (decision.Status, string) {
	var bad *badResponse
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &bad):
		return decision.Error, decision.CodeBadResponse
	case errors.Is(ctx.Err(), context.Canceled):
		return decision.Error, CodeCanceled
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return decision.Timeout, CodeTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return decision.Error, CodeConnect
	}
	return decision.Error, CodeTransport
}

// errorText is the message of an error body where it has the usual form, else the
// beginning of the body.
func errorText(status int, body []byte) string {
	text := http.StatusText(status)
	s := &scanner{b: body}
	message := ""
	err := s.object(func(key string, _ int) error {
		if key == "error" && s.peek() == '{' {
			return s.object(func(key string, _ int) (err error) {
				if key == "message" && s.peek() == '"' {
					message, err = s.text()
					return err
				}
				_, err = s.skip()
				return err
			})
		}
		_, err := s.skip()
		return err
	})
	if err != nil || message == "" {
		message = string(body)
	}
	if message != "" {
		text += ": " + message
	}
	return text
}

// printable shortens a text that came from outside, drops control characters, and takes
// the key out: errors of the HTTP client quote what a service sent outside the body.
func (c *Client) printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, c.mask.text(s))
	const limit = 300
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

// Ready asks GET /healthz, without the key. A service need not have that path: any
// answer below 500 will do, and so will a connection that it closes without one. Not
// ready is who cannot be reached, says so (500 and above), or stays silent. The limit of
// a decision does not hold here, since a first call also has names to look up and a
// connection to open.
func (c *Client) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, c.health, nil)
	if err != nil {
		return err
	}
	status, _, err := c.do(req)
	switch {
	case status >= 500:
		return fmt.Errorf("%s answers %d %s", c.health, status, http.StatusText(status))
	case err == nil, status > 0, connected.Load() && ctx.Err() == nil:
		return nil
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the message names the address itself
	}
	return fmt.Errorf("%s does not answer: %w", c.health, err)
}

// Warm opens a connection, so that the first measured decision does not pay for it.
func (c *Client) Warm(ctx context.Context, _ []*decision.Request) error { return c.Ready(ctx) }

// Close gives the idle connections back and ends a patient call.
func (c *Client) Close(context.Context) error {
	c.end()
	c.http.CloseIdleConnections()
	return nil
}
