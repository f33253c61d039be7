package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/backends/remote"
)

func TestReady(t *testing.T) {
	e := &engine{}
	c := client(t, remote.ClientOptions{BaseURL: serve(t, remote.Handler(e, remote.HandlerOptions{}))})
	if err := c.Ready(context.Background()); err != nil {
		t.Error(err)
	}
	e.down = errors.New("secret detail")
	if err := c.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), "answers 503") {
		t.Errorf("ready: %v", err)
	}
	c = client(t, remote.ClientOptions{BaseURL: serve(t, http.NotFoundHandler())})
	if err := c.Ready(context.Background()); err != nil {
		t.Errorf("a service without /healthz is taken for ready: %v", err)
	}
}

// What a service without /healthz may do there, and the key is not its business.
func TestReadyWhereHealthIsUnknown(t *testing.T) {
	env := func(string) string { return "sk-test-0123456789" }
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"401":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, ""},
		"500":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "answers 500"},
		"half a body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(404)
		}, ""},
		"half a 500": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(502)
		}, "answers 502"},
		"no HTTP at it": {func(w http.ResponseWriter, _ *http.Request) { raw(w, "hello\n") }, ""},
	} {
		var sent atomic.Bool
		base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				sent.Store(true)
			}
			tc.h(w, r)
		}))
		err := client(t, remote.ClientOptions{BaseURL: base, KeyEnv: "KEY", Getenv: env}).Ready(context.Background())
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if sent.Load() {
			t.Errorf("%s: /healthz got the key", name)
		}
	}
}

// raw answers with bytes that need not be HTTP.
func raw(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		fmt.Fprint(conn, text)
		conn.Close()
	}
}

func TestReadyWithoutTLSOrInSilence(t *testing.T) {
	base := serve(t, http.NotFoundHandler())
	if err := client(t, remote.ClientOptions{BaseURL: strings.Replace(base, "http:", "https:", 1)}).Ready(context.Background()); err == nil {
		t.Error("a service that does not speak TLS is taken for ready")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := client(t, remote.ClientOptions{BaseURL: hanging(t, "")}).Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent service: %v", err)
	}
}
