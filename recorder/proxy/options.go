package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/clefbench/clefbench/recorder"
)

// ErrOptions is wrapped by every error of [New].
var ErrOptions = errors.New("proxy options")

// Dialect says which requests are decisions.
type Dialect string

// The dialects. DialectAuto goes by the path and, where that says nothing, by the body;
// the others take every POST with a JSON body for a decision of theirs. SystemOne and
// Decisions are told apart by the body.
const (
	DialectAuto      Dialect = "auto"
	DialectSystemOne Dialect = "systemone"
	DialectDecisions Dialect = "decisions"
	DialectDecide    Dialect = "decide"
)

// ParseDialect reads the name of a dialect; empty is auto.
func ParseDialect(s string) (Dialect, error) {
	switch d := Dialect(s); d {
	case "":
		return DialectAuto, nil
	case DialectAuto, DialectSystemOne, DialectDecisions, DialectDecide:
		return d, nil
	}
	return "", fmt.Errorf("unknown dialect %q (want auto, systemone, decisions or decide)", s)
}

// Defaults of [Options].
const (
	DefaultScenario    = "default"
	DefaultMaxBody     = 4 << 20
	DefaultBudget      = 64 << 20
	DefaultQueue       = 4096
	DefaultRetryWindow = 15 * time.Second
	DefaultHeaderBytes = 256 << 10
	DefaultConnections = 8192
	maxPending         = 4096
	idleConnections    = 256
	readHeaderTimeout  = 30 * time.Second
	clientIdleTimeout  = 10 * time.Minute
	upstreamIdle       = 90 * time.Second
	expectTimeout      = time.Second
	delayedHeaderFlush = 5 * time.Millisecond
	readDelay          = 2 * time.Millisecond
)

// Options configure a [Proxy]; the zero value of a field is its default.
type Options struct {
	// Upstream is where requests go: http or https, host, and possibly a path that is put
	// before that of each request. Userinfo, a query and a fragment are refused.
	Upstream string
	// Recorder gets the rows. Its capture list says which attributes, and whether bodies,
	// are kept.
	Recorder *recorder.Recorder
	// Entity names the attribute (headers.NAME, query.NAME, or one of a decide request's
	// context) that is the recorder's Capture.Entity.Attr, when it is not on the list.
	Entity  string
	Dialect Dialect
	// Scenario is recorded where a request names none, Backend in place of the model or
	// host that was asked.
	Scenario, Backend string

	// MaxBody bounds each captured body; a decision with a longer one passes unrecorded.
	MaxBody int
	// Budget bounds the captured bytes of all requests that are under way, wait to be read,
	// or wait for a retry: bodies, also without their content encoding while they are read,
	// and the headers of what has ended.
	Budget int64
	// Queue bounds the ended attempts that wait to be read.
	Queue int
	// RetryWindow is how long a failed attempt waits for its retry.
	RetryWindow time.Duration
	// Timeout bounds an attempt from its first byte to its last; 0 leaves the time to the
	// client. DialTimeout bounds the dial, ResponseTimeout the wait for the first byte of
	// an answer; 0 is none.
	Timeout, DialTimeout, ResponseTimeout time.Duration
	// HeaderBytes bounds the header of requests and answers, Connections those of clients.
	HeaderBytes, Connections int
	// TLS is for upstreams with certificates of their own authority. Certificates are
	// always verified: InsecureSkipVerify is refused.
	TLS *tls.Config
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Validate checks everything but the recorder, which a caller may want to open last.
// Errors wrap [ErrOptions].
func (o Options) Validate() error {
	o.Recorder = new(recorder.Recorder)
	_, _, err := o.withDefaults()
	return err
}

// withDefaults checks the options and returns them complete, with the parsed upstream.
func (o Options) withDefaults() (Options, *url.URL, error) {
	u, err := parseUpstream(o.Upstream)
	if err != nil {
		return o, nil, err
	}
	if o.Dialect, err = ParseDialect(string(o.Dialect)); err != nil {
		return o, nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	switch {
	case o.Recorder == nil:
		return o, nil, fmt.Errorf("%w: no recorder", ErrOptions)
	case min(o.MaxBody, o.Queue, o.HeaderBytes, o.Connections) < 0 || o.Budget < 0 ||
		min(o.RetryWindow, o.Timeout, o.DialTimeout, o.ResponseTimeout) < 0:
		return o, nil, fmt.Errorf("%w: a negative limit", ErrOptions)
	case o.TLS != nil && o.TLS.InsecureSkipVerify:
		return o, nil, fmt.Errorf("%w: certificates must be verified", ErrOptions)
	}
	orDefault(&o.Scenario, DefaultScenario)
	orDefault(&o.MaxBody, DefaultMaxBody)
	orDefault(&o.Budget, DefaultBudget)
	orDefault(&o.Queue, DefaultQueue)
	orDefault(&o.RetryWindow, DefaultRetryWindow)
	orDefault(&o.HeaderBytes, DefaultHeaderBytes)
	orDefault(&o.Connections, DefaultConnections)
	return o, u, nil
}

// parseUpstream keeps the text of a URL out of its errors: it may hold a password.
func parseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the upstream is no URL", ErrOptions)
	case u.User != nil:
		return nil, fmt.Errorf("%w: the upstream has userinfo, which would be kept in process lists and logs; send credentials in a header", ErrOptions)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%w: the upstream must be http://HOST or https://HOST, with a path or without", ErrOptions)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("%w: the upstream has a query or a fragment", ErrOptions)
	}
	return u, nil
}

// transport is net/http's, with as many idle connections as clients may need: two a host,
// the default, would dial anew for most requests under load.
func (o *Options) transport(u *url.URL) *http.Transport {
	dialer := &net.Dialer{Timeout: o.DialTimeout, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        o.TLS.Clone(),
		DisableCompression:     true, // or Go would send an Accept-Encoding of its own and undo it
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        upstreamIdle,
		ExpectContinueTimeout:  expectTimeout,
		ResponseHeaderTimeout:  o.ResponseTimeout,
		MaxResponseHeaderBytes: int64(o.HeaderBytes),
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	if u.Scheme == "https" {
		// Only here: to a proxy, plain HTTP would need another request line.
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}
