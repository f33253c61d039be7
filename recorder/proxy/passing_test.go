package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

func TestWhatIsNoDecisionPasses(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	for _, c := range [][2]string{{"/v1/models", ""}, {"/v1/chat/completions", `{"messages":[]}`}, {"/other", "not json"}} {
		post(t, s.url+c[0], c[1])
	}
	resp, err := http.Get(s.url + "/v1/systemone")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// A path that says nothing, and a body that does.
	post(t, s.url+"/gateway/x", ask1)
	rows := s.rows()
	if st := s.proxy.Stats(); len(rows) != 1 || st.Requests != 5 || st.Passed != 4 || st.Decisions != 1 {
		t.Errorf("%d rows, %+v", len(rows), st)
	}
	if l := s.rec.Stats().Ledger; l.Offered != 1 {
		t.Errorf("offered %d", l.Offered)
	}
}

func only(t *testing.T, rows []*snapshot.Snapshot) *snapshot.Snapshot {
	t.Helper()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows[0]
}

func TestClientThatGoesAway(t *testing.T) {
	arrived, ended := make(chan bool), make(chan bool)
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- true
		<-r.Context().Done() // the upstream learns of it
		ended <- true
	}))
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/systemone", strings.NewReader(ask1))
	go func() { <-arrived; cancel() }()
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the upstream was not told")
	}
	r := only(t, s.rows())
	if r.Status != decision.Error || r.ErrorCode != CodeCanceled || r.Question != "q" || r.Artefact.HTTPStatus != 0 || len(r.Candidates) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestUpstreamThatIsDeadOrSlowOrBreaksOff(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	dead := "http://" + l.Addr().String()
	l.Close()
	s := start(t, dead)
	if code, _ := post(t, s.url+"/v1/systemone", ask1); code != 502 {
		t.Errorf("dead: %d", code)
	}
	if r := only(t, s.rows()); r.Status != decision.Error || r.ErrorCode != CodeConnect || r.Artefact.HTTPStatus != 0 {
		t.Errorf("dead: %+v", r)
	}

	release := make(chan bool)
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s = start(t, slow, func(o *Options, _ *recorder.Options) { o.Timeout = 30 * time.Millisecond })
	if code, _ := post(t, s.url+"/v1/systemone", ask1); code != 504 {
		t.Errorf("slow: %d", code)
	}
	if r := only(t, s.rows()); r.Status != decision.Timeout || r.ErrorCode != CodeTimeout || r.Reason != decision.ReasonTimeout {
		t.Errorf("slow: %+v", r)
	}
	close(release)

	upstream, _ := rawUpstream(t, func(*message) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{\"half\":"
	})
	s = start(t, "http://"+upstream)
	resp, err := http.Post(s.url+"/v1/systemone", "application/json", strings.NewReader(ask1))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("the client was not told that the answer broke off")
	}
	if r := only(t, s.rows()); r.Status != decision.Error || r.ErrorCode != CodeTransport || r.Artefact.HTTPStatus != 200 {
		t.Errorf("broken off: %+v", r)
	}
}

// Recording that fails or has no room must not be seen by clients.
func TestTrafficGoesOnWithoutRoomToRecord(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	})
	big := `{"state":"` + strings.Repeat("s", 50_000) + `","questions":{"q":{"type":"noul"}},"model":"m"}`
	for name, c := range map[string]struct {
		set    option
		reason string
	}{
		"budget":   {func(o *Options, _ *recorder.Options) { o.Budget = 1000 }, LostBudget},
		"too long": {func(o *Options, _ *recorder.Options) { o.MaxBody = 10_000 }, LostTooLong},
		"recorder": {func(_ *Options, r *recorder.Options) { r.QueueBytes = 10; r.FlushInterval = time.Hour }, recorder.DropQueueFull},
	} {
		s := start(t, upstream, c.set)
		for range 20 {
			if code, body := post(t, s.url+"/v1/systemone", big); code != 200 || body != big {
				t.Fatalf("%s: %d, %d bytes", name, code, len(body))
			}
		}
		rows := s.rows()
		l := s.rec.Stats().Ledger
		if l.Offered != 20 || l.Dropped[c.reason] != 20 || len(rows) != 0 {
			t.Errorf("%s: %d rows, %+v", name, len(rows), l)
		}
	}
}

func TestQueueFullIsCounted(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }),
		func(o *Options, _ *recorder.Options) { o.Queue = 8 })
	s.proxy.mu.Lock()
	for len(s.proxy.ended) < 8 { // as if nobody read
		s.proxy.ended = append(s.proxy.ended, &attempt{form: formUnknown, body: captured{data: []byte("{}")}})
	}
	s.proxy.alarm.Stop()
	s.proxy.mu.Unlock()
	for range 3 {
		if code, body := post(t, s.url+"/v1/systemone", ask1); code != 200 || body != answer1 {
			t.Errorf("%d %s", code, body)
		}
	}
	s.rows()
	if l := s.rec.Stats().Ledger; l.Offered != 3 || l.Dropped[LostQueue] != 3 {
		t.Errorf("%+v", l)
	}
}

func TestSwitchedOffPasses(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }))
	s.rec.SetRecording(false)
	if code, body := post(t, s.url+"/v1/systemone", ask1); code != 200 || body != answer1 {
		t.Errorf("%d %s", code, body)
	}
	if rows := s.rows(); len(rows) != 0 || s.rec.Stats().Ledger.Dropped[recorder.DropSwitchedOff] != 1 {
		t.Errorf("%d rows, %+v", len(rows), s.rec.Stats().Ledger)
	}
}

func zipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.Bytes()
}

// A compressed answer passes compressed, and is recorded plain; a bomb is lost, not blown up.
func TestCompressedBodies(t *testing.T) {
	var answer []byte
	encoding := "gzip"
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		w.Write(answer)
	}), func(o *Options, _ *recorder.Options) { o.MaxBody = 1 << 20 })
	send := func() []byte {
		req, _ := http.NewRequest("POST", s.url+"/v1/systemone", strings.NewReader(ask1))
		req.Header.Set("Accept-Encoding", "gzip, deflate")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return b
	}
	for _, answer = range [][]byte{zipped(answer1), zipped(strings.Repeat("0", 10<<20))} {
		if got := send(); !bytes.Equal(got, answer) {
			t.Errorf("%d bytes became %d", len(answer), len(got))
		}
	}
	encoding, answer = "br", []byte("\x0b\x02\x80")
	send()
	r := only(t, s.rows())
	if r.Status != decision.OK || string(r.Output) != answer1 || r.Usage.BytesOut.V != int64(len(zipped(answer1))) {
		t.Errorf("%+v", r)
	}
	if l := s.rec.Stats().Ledger; l.Dropped[LostTooLong] != 1 || l.Dropped[LostEncoding] != 1 {
		t.Errorf("%+v", l)
	}
}

func TestShutdownFinishesWhatIsUnderWay(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- true
		<-release
		io.WriteString(w, answer1)
	}))
	codes := make(chan int)
	go func() { code, _ := post(t, s.url+"/v1/systemone", ask1); codes <- code }()
	<-arrived
	down := make(chan []*snapshot.Snapshot)
	go func() { down <- s.rows() }()
	for { // until it no longer accepts
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			break
		}
		c.Close()
	}
	close(release)
	if code := <-codes; code != 200 {
		t.Error(code)
	}
	if rows := <-down; len(rows) != 1 || rows[0].Status != decision.OK {
		t.Errorf("%d rows", len(rows))
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hi") }),
		func(o *Options, _ *recorder.Options) { o.Connections = 1 })
	first, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(first, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	if _, err := readMessage(bufio.NewReader(first), false); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	io.WriteString(second, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	second.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("a second connection was served")
	}
	first.Close()
	second.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := readMessage(bufio.NewReader(second), false); err != nil {
		t.Errorf("the second connection is never served: %v", err)
	}
}

func TestRefusedOptions(t *testing.T) {
	rec, err := recorder.New(&memory{}, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close(context.Background())
	for _, o := range []Options{
		{}, {Upstream: "http://h"}, {Upstream: "ftp://h", Recorder: rec}, {Upstream: "http://", Recorder: rec}, {Upstream: "localhost:80", Recorder: rec},
		{Upstream: "https://me:hunter22@h", Recorder: rec}, {Upstream: "http://h?x", Recorder: rec}, {Upstream: "http://h/#f", Recorder: rec},
		{Upstream: "http://h", Recorder: rec, Dialect: "mcp"}, {Upstream: "http://h", Recorder: rec, MaxBody: -1},
	} {
		p, err := New(o)
		if !errors.Is(err, ErrOptions) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%+v: %v %v", o, p, err)
		}
	}
}

// An upstream's certificate is verified; one of an authority of its own can be named.
func TestCertificatesAreVerified(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	s := start(t, srv.URL)
	if code, body := post(t, s.url+"/v1/systemone", ask1); code != 502 {
		t.Errorf("unverified: %d %s", code, body)
	}
	if r := only(t, s.rows()); r.Status != decision.Error || r.ErrorCode != CodeTransport || !strings.Contains(r.Error, "certificate") {
		t.Errorf("unverified: %+v", r)
	}
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	s = start(t, srv.URL, func(o *Options, _ *recorder.Options) { o.TLS = &tls.Config{RootCAs: roots} })
	if code, body := post(t, s.url+"/v1/systemone", ask1); code != 200 || body != answer1 {
		t.Errorf("%d %s", code, body)
	}
	if r := only(t, s.rows()); r.Status != decision.OK || !strings.Contains(r.ND, `"tls_ns":`) {
		t.Errorf("%+v", r)
	}
}

func TestLargeHeadersAreRefused(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("it was forwarded") }),
		func(o *Options, _ *recorder.Options) { o.HeaderBytes = 8 << 10 })
	code, _ := post(t, s.url+"/v1/systemone", ask1, "X-Large", strings.Repeat("x", 20<<10))
	if rows := s.rows(); code != 431 || len(rows) != 0 {
		t.Errorf("%d, %d rows", code, len(rows))
	}
}

// An upstream that is not there: each call is a 502 on a connection that stays, and a row
// with the input that never got there.
func TestNoUpstreamKeepsConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	l.Close()
	s := start(t, gone, func(o *Options, _ *recorder.Options) { o.RetryWindow = time.Millisecond })
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	const calls = 200
	for i := range calls {
		body := strings.Replace(ask1, `"x"`, `"`+strconv.Itoa(i)+`"`, 1)
		resp, err := client.Post(s.url+"/v1/systemone", "application/json", struct{ io.Reader }{strings.NewReader(body)})
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadGateway || resp.Close {
			t.Fatalf("call %d: status %d, closed %v", i, resp.StatusCode, resp.Close)
		}
	}
	rows := s.rows()
	if len(rows) != calls {
		t.Errorf("%d rows of %d calls", len(rows), calls)
	}
	for _, r := range rows {
		if r.ErrorCode != CodeConnect || len(r.Input) == 0 {
			t.Fatalf("%s with %d bytes of input", r.ErrorCode, len(r.Input))
		}
	}
}
