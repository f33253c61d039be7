package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/snapshot"
)

// The switches. Recording is on when neither is set, so that a file that is still there
// wins over a call that switches on.
const (
	offByCall uint32 = 1 << iota
	offByFile
)

// killSwitch takes the recorder out of the way at run time.
type killSwitch struct {
	// off is zero while recording: the only thing that a call reads then.
	off   atomic.Uint32
	since atomic.Int64 // Unix nanoseconds of the moment of switching off, 0 while on
	// calls passed by so far; untold are those that the ledger has not heard of, in the
	// upper half, and their rows, in the lower: one word, so that both are always told together.
	calls, untold atomic.Uint64
}

func (k *killSwitch) set(bit uint32, off bool, now time.Time) {
	if !off {
		if k.off.And(^bit)&^bit == 0 {
			k.since.Store(0)
		}
		return
	}
	if k.off.Or(bit) == 0 {
		k.since.Store(now.UnixNano())
	}
}

func (k *killSwitch) offSince() time.Time {
	if ns := k.since.Load(); ns != 0 && k.off.Load() != 0 {
		return time.Unix(0, ns).UTC()
	}
	return time.Time{}
}

// SetRecording switches recording, and with it shadows, on or off at run time. While it
// is off, middleware, wrapped backends, [Recorder.Start] and [Recorder.Record] pass
// straight through at the cost of one atomic load and a count. Middleware and Start
// leave a mark in the request's context besides, so that what the request calls in it is
// not counted as a request of its own. Requests that are under way are recorded to their
// end. Options.KillFile switches off as well, and wins.
func (r *Recorder) SetRecording(on bool) {
	if r != nil {
		r.killSwitch.set(offByCall, !on, r.clock())
	}
}

// Recording reports whether recording is on; it is not on a nil Recorder.
func (r *Recorder) Recording() bool { return r != nil && r.killSwitch.off.Load() == 0 }

// passedKey finds the mark of a request that passed by a recorder; each has its own, so
// that one that is off hides nothing of another.
type passedKey struct{ r *Recorder }

// passed is that mark. The request was counted with one row, which the first call in it
// that would have made its rows takes over.
type passed struct{ taken atomic.Bool }

// mark returns the context of a request that passed by and was counted.
func (r *Recorder) mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, passedKey{r}, new(passed))
}

// bypass reports whether a call passes by, and counts it then with the rows that it
// would have offered: only those beyond the one that counts already, where it is the
// first in a request that passed by as a whole.
func (r *Recorder) bypass(ctx context.Context, rows int) bool {
	k := &r.killSwitch
	if k.off.Load() == 0 {
		return false
	}
	if rows > 0 && ctx != nil {
		if p, _ := ctx.Value(passedKey{r}).(*passed); p != nil && p.taken.CompareAndSwap(false, true) {
			k.untold.Add(uint64(rows - 1))
			return true
		}
	}
	k.calls.Add(1)
	if rows > 0 {
		k.untold.Add(1<<32 + uint64(rows))
	}
	return true
}

// tellBypassed moves the count of what passed by into the ledger. It is not done call by
// call, so that a call does not take the ledger's mutex while recording is off.
func (r *Recorder) tellBypassed() {
	if n := r.killSwitch.untold.Swap(0); n > 0 {
		r.in.lostAll(DropSwitchedOff, tally{rows: n & (1<<32 - 1), requests: n >> 32})
	}
}

// watchKillFile looks for Options.KillFile now and once a flush interval until Close. It
// has a goroutine of its own because the drain may hang in its sink, which is when
// somebody wants to switch off.
func (r *Recorder) watchKillFile() {
	if r.opts.KillFile == "" {
		return
	}
	r.lookForKillFile()
	go func() {
		tick := time.NewTicker(r.opts.FlushInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.lookForKillFile()
			case <-r.closing:
				return
			}
		}
	}()
}

// lookForKillFile leaves the switch as it is when it cannot tell: a directory that is
// not readable for a moment must not start a recording that somebody stopped.
func (r *Recorder) lookForKillFile() {
	_, err := os.Lstat(r.opts.KillFile)
	switch {
	case err == nil:
		r.killSwitch.set(offByFile, true, r.clock())
	case errors.Is(err, fs.ErrNotExist):
		r.killSwitch.set(offByFile, false, r.clock())
	default:
		r.failed(fmt.Errorf("kill file: %w", err))
	}
}

// adminBody bounds the body of a request to the admin handler.
const adminBody = 1 << 10

// status is what the admin handler tells.
type status struct {
	Recording    bool            `json:"recording"`
	OffSince     *time.Time      `json:"off_since,omitempty"`
	Bypassed     uint64          `json:"bypassed"`
	Ledger       snapshot.Ledger `json:"ledger"`
	Queued       int             `json:"queued"`
	Capacity     int             `json:"capacity"`
	Acknowledged uint64          `json:"acknowledged"`
	AppendErrors uint64          `json:"append_errors"`
	FlushErrors  uint64          `json:"flush_errors"`
	Panics       uint64          `json:"panics"`
	Unlisted     uint64          `json:"unlisted"`
	LastError    string          `json:"last_error,omitempty"`
	Shadow       ShadowStats     `json:"shadow"`
}

// AdminHandler serves the kill switch: GET answers with the recorder's [Stats] as JSON,
// POST with {"on": false} or {"on": true} and the content type application/json switches
// recording. Mount it where it fits, as at /recording of an internal listener.
//
// It has no passwords and instead answers only whom the machine itself lets in: peers on
// a loopback address, under a loopback name (which keeps pages out that rebind a name of
// their own to 127.0.0.1), from no other origin (which keeps pages out that send
// forms), and not through a proxy that says so (Forwarded, X-Forwarded-For, Via).
func (r *Recorder) AdminHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if why := foreign(req); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		switch req.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodPost:
			if code, err := r.switchTo(w, req); err != nil {
				http.Error(w, err.Error(), code)
				return
			}
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			http.Error(w, "GET shows the state, POST switches", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.status()) // who has gone needs no answer
	})
}

func (r *Recorder) status() status {
	s := r.Stats()
	out := status{Recording: s.Recording, Bypassed: s.Bypassed, Ledger: s.Ledger, Queued: s.Queued, Capacity: s.Capacity,
		Acknowledged: s.Acknowledged, AppendErrors: s.AppendErrors, FlushErrors: s.FlushErrors, Panics: s.Panics,
		Unlisted: s.Unlisted, LastError: s.LastError, Shadow: s.Shadow}
	if !s.OffSince.IsZero() {
		out.OffSince = &s.OffSince
	}
	return out
}

// switchTo reads {"on": bool} and obeys it.
func (r *Recorder) switchTo(w http.ResponseWriter, req *http.Request) (code int, err error) {
	if t, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return http.StatusUnsupportedMediaType, errors.New("the content type must be application/json")
	}
	var body struct {
		On *bool `json:"on"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, req.Body, adminBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil || body.On == nil || dec.More() {
		return http.StatusBadRequest, errors.New(`the body must be {"on": true} or {"on": false}`)
	}
	r.SetRecording(*body.On)
	return 0, nil
}

// foreign says why a request is none of this machine's own; "" when it is.
func foreign(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	switch {
	case err != nil || !loopback(host):
		return "only peers on a loopback address are answered"
	case !loopback(hostname(req.Host)):
		return "only a loopback name is answered to"
	}
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		if req.Header.Get(h) != "" {
			return "requests through a proxy are not answered"
		}
	}
	if site := req.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "requests of other sites are not answered"
	}
	for _, o := range req.Header.Values("Origin") {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, req.Host) {
			return "requests of other origins are not answered"
		}
	}
	return ""
}

// hostname is a Host header without port and brackets.
func hostname(host string) string {
	u := url.URL{Host: host}
	return u.Hostname()
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
