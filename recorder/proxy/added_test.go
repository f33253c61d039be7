package proxy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// addedEnv gives the number of requests of each arm; the comparison takes half a minute
// at 100000, so that nobody runs it by accident.
const addedEnv = "PROXY_ADDED"

const addedAsk = `{"state":{"ticket":"I was charged twice for the same month, please help me.","plan":"pro","age_days":412},"questions":{` +
	`"team":{"type":"choice","instructions":"Which team should answer?","criteria":{"billing":"Charges and refunds","technical":"Bugs and outages","sales":null,"other":null}},` +
	`"urgent":{"type":"noul","instructions":"Is it urgent?"},"mood":{"type":"score","instructions":"How upset?","criteria":["calm","annoyed","angry"]}},"model":"jev-latest"}`

const addedAnswer = `{"model":"jev-1.13.0","answers":{"mood":{"type":"score","score":1.1,"confidence":0.6,"legend":{"0":"calm","1":"annoyed","2":"angry"},"probabilities":{"1":0.7,"0":0.1,"2":0.2}},` +
	`"team":{"type":"choice","choice":"billing","confidence":0.92,"probabilities":{"other":0.01,"billing":0.94,"technical":0.03,"sales":0.02}},"urgent":{"type":"noul","noul":0.31}},"usage":{"input_tokens":412,"output_tokens":31}}`

func addedHandler(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Typesafe-Request-Id", "req_0123456789")
	io.WriteString(w, addedAnswer)
}

// arm is one way for the same requests.
type arm struct {
	name   string
	url    string
	rec    *recorder.Recorder
	took   []time.Duration
	failed int
}

func (a *arm) quantile(q float64) time.Duration { return a.took[int(q*float64(len(a.took)-1))] }

func listen(t *testing.T, serve func(net.Listener) error) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return "http://" + l.Addr().String()
}

func server(h http.Handler) func(net.Listener) error { return (&http.Server{Handler: h}).Serve }

// addedRecorder writes to real segments.
func addedRecorder(t *testing.T) *recorder.Recorder {
	w, err := arrowfile.Create(t.TempDir(), arrowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recorder.New(w, recorder.Options{Scenario: "tool-gate", QueueRows: 1 << 16, Capture: recorder.Capture{Input: true, Output: true,
		Fields: []recorder.CaptureField{{Name: "path", Type: decision.String}, {Name: "headers.user-agent", Type: decision.String}}}})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// proxyArms are a plain reverse proxy twice (their difference is noise), and ours.
func proxyArms(t *testing.T) []*arm {
	upstream := listen(t, server(http.HandlerFunc(addedHandler)))
	u, _ := url.Parse(upstream)
	plain := httputil.NewSingleHostReverseProxy(u)
	plain.Transport = (&Options{HeaderBytes: DefaultHeaderBytes}).transport(u) // as many idle connections as ours
	plainURL := listen(t, server(plain))
	rec := addedRecorder(t)
	p, err := New(Options{Upstream: upstream, Recorder: rec})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Shutdown(context.Background()) })
	return []*arm{{name: "plain ReverseProxy", url: plainURL}, {name: "the same again", url: plainURL},
		{name: "recording proxy", url: listen(t, p.Serve), rec: rec}}
}

// middlewareArms are a bare handler twice, and the middleware around it.
func middlewareArms(t *testing.T) []*arm {
	rec := addedRecorder(t)
	decides := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addedHandler(w, r)
		for i, q := range []string{"team", "urgent", "mood"} { // what a service adds to record
			d := recorder.FromContext(r.Context()).Decision(q)
			d.SetActions("billing", "technical", "sales", "other")
			d.Answer(decision.Decision{Action: []string{"billing", "technical", "sales"}[i], Confidence: decision.Some(0.92), ConfidenceDef: "provider"})
		}
	})
	bare := listen(t, server(http.HandlerFunc(addedHandler)))
	return []*arm{{name: "bare handler", url: bare}, {name: "the same again", url: bare},
		{name: "recorder.Middleware", url: listen(t, server(rec.Middleware(decides))), rec: rec}}
}

// drive sends n requests of an arm, one after the other on each of the clients.
func (a *arm) drive(clients []*http.Client, n int) {
	each := make([][]time.Duration, len(clients))
	failed := make([]int, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for range n / len(clients) {
				from := time.Now()
				resp, err := c.Post(a.url+"/v1/systemone", "application/json", strings.NewReader(addedAsk))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if each[i] = append(each[i], time.Since(from)); err != nil || resp.StatusCode != 200 {
					failed[i]++
				}
			}
		})
	}
	wg.Wait()
	for i := range each {
		a.took = append(a.took, each[i]...)
		a.failed += failed[i]
	}
}

// TestAdded prints what recording adds to a request: blocks of all arms in random order,
// in one run.
//
//	PROXY_ADDED=100000 go test -count 1 -run Added -v ./recorder/proxy
func TestAdded(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(addedEnv))
	if err != nil || n < 1000 {
		t.Skipf("set %s to the number of requests", addedEnv)
	}
	t.Run("proxy", func(t *testing.T) { compare(t, proxyArms(t), n) })
	t.Run("middleware", func(t *testing.T) { compare(t, middlewareArms(t), n) })
}

func compare(t *testing.T, arms []*arm, n int) {
	const block = 500
	clients := []*http.Client{{Transport: &http.Transport{}}, {Transport: &http.Transport{}}}
	for _, a := range arms {
		a.drive(clients, block) // connections and caches
		a.took = a.took[:0]
	}
	rng := rand.New(rand.NewPCG(3, 5))
	for range n / block {
		for _, i := range rng.Perm(len(arms)) {
			arms[i].drive(clients, block)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %8s %10s %10s %10s %10s %10s %7s  %s\n", "arm", "n", "p50", "p99", "p99.9", "added p50", "added p99", "failed", "recorded")
	for _, a := range arms {
		slices.Sort(a.took)
		a.line(&b, arms[0])
		if a.rec == nil {
			b.WriteByte('\n')
			continue
		}
		if _, err := a.rec.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		l := a.rec.Stats().Ledger
		fmt.Fprintf(&b, "  %d rows of %d offered\n", l.Written, l.Offered)
	}
	t.Log("\n" + b.String())
}

func (a *arm) line(w io.Writer, base *arm) {
	const digits = 100 * time.Nanosecond
	fmt.Fprintf(w, "%-20s %8d %10v %10v %10v %10v %10v %7d", a.name, len(a.took), a.quantile(0.5).Round(digits), a.quantile(0.99).Round(digits), a.quantile(0.999).Round(digits),
		(a.quantile(0.5) - base.quantile(0.5)).Round(digits), (a.quantile(0.99) - base.quantile(0.99)).Round(digits), a.failed)
}
