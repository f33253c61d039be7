package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// memory is a sink that keeps its rows.
type memory struct {
	mu    sync.Mutex
	rows  []*snapshot.Snapshot
	total snapshot.Ledger
}

func (m *memory) Append(s *snapshot.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = append(m.rows, s.Clone())
	return nil
}
func (m *memory) Flush(snapshot.Ledger) error { return nil }
func (m *memory) Close(_, total snapshot.Ledger) error {
	m.total = total
	return nil
}

// setup is a proxy that serves on loopback, with its recorder and sink.
type setup struct {
	t     *testing.T
	sink  *memory
	rec   *recorder.Recorder
	proxy *Proxy
	url   string
	addr  string
	done  bool
}

type option func(*Options, *recorder.Options)

// start puts a proxy before an upstream.
func start(t *testing.T, upstream string, options ...option) *setup {
	t.Helper()
	s := &setup{t: t, sink: &memory{}}
	ro := recorder.Options{MaxBody: DefaultMaxBody, Capture: recorder.Capture{Input: true, Output: true}}
	po := Options{Upstream: upstream, RetryWindow: 2 * time.Second}
	for _, o := range options {
		o(&po, &ro)
	}
	var err error
	if s.rec, err = recorder.New(s.sink, ro); err != nil {
		t.Fatal(err)
	}
	po.Recorder = s.rec
	if s.proxy, err = New(po); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.url = "http://" + s.addr
	go s.proxy.Serve(l)
	t.Cleanup(func() { s.rows() })
	return s
}

// rows stops the proxy and returns what was recorded; the ledger must close, and no
// captured byte may be left.
func (s *setup) rows() []*snapshot.Snapshot {
	s.t.Helper()
	if !s.done {
		s.done = true
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = s.proxy.Shutdown(ctx)
		if err := s.rec.Close(ctx); err != nil {
			s.t.Error(err)
		}
		if n := s.proxy.Stats().Captured; n != 0 {
			s.t.Errorf("%d captured bytes were not given back", n)
		}
		if n := s.proxy.Stats().Panics; n != 0 {
			s.t.Errorf("%d panics", n)
		}
	}
	return s.sink.rows
}

const ask1 = `{"state":"x","questions":{"q":{"type":"choice","instructions":"i","criteria":{"b":null,"a":null}}},"model":"jev-latest"}`
const answer1 = `{"model":"jev-1.13.0","answers":{"q":{"type":"choice","choice":"a","confidence":0.86,"probabilities":{"a":0.93,"b":0.07}}},"usage":{"input_tokens":10,"output_tokens":2}}`

func serve(t *testing.T, f http.HandlerFunc) string {
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return srv.URL
}

func post(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestADecisionBecomesARow(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Typesafe-Request-Id", "req_1")
		io.WriteString(w, answer1)
	}))
	if code, body := post(t, s.url+"/v1/systemone", ask1); code != 200 || body != answer1 {
		t.Fatalf("%d %s", code, body)
	}
	rows := s.rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[0]
	got := fmt.Sprint(r.Status, r.Action, r.Question, r.QuestionType, r.Candidates, r.Confidence, r.ConfidenceDef, r.Backend, r.SourceID,
		r.Artefact.ModelRequested, r.Artefact.ModelResolved, r.Artefact.Dialect, r.Artefact.HTTPStatus, r.Usage.TokensIn, r.Usage.TokensOut, r.Attempts, r.Cold, r.Scenario)
	want := "ok a q choice [{b {0 false} {0.07 true}} {a {0 false} {0.93 true}}] {0.86 true} provider jev-latest req_1" +
		" jev-latest jev-1.13.0 systemone 200 {10 true} {2 true} {1 true} {true true} default"
	if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if string(r.Input) != ask1 || string(r.Output) != answer1 {
		t.Errorf("bodies %q %q", r.Input, r.Output)
	}
	if !r.Latency.Set || !r.Stages.Transport.Set || !r.Stages.Serialise.Set || r.Stages.Transport.V+r.Stages.Serialise.V > r.Latency.V || r.Stages.Transport.V <= 0 {
		t.Errorf("latency %v, stages %+v", r.Latency, r.Stages)
	}
	if !bytes.Contains([]byte(r.ND), []byte(`"dial_ns":`)) {
		t.Errorf("nd %q", r.ND)
	}
}
