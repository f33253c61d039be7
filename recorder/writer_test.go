package recorder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func TestBodiesAreBoundedAndExact(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16*3) // 192 KiB
	for _, c := range []struct {
		name  string
		body  []byte
		read  int64 // how much the handler reads; -1 all
		plain bool  // without Content-Length
	}{
		{"empty", nil, -1, false}, {"small", []byte("x\x00y"), -1, false}, {"exact", big[:1000], -1, false}, {"over", big[:1001], -1, false},
		{"large", big, -1, false}, {"unread", big, 0, false}, {"half read", big[:900], 400, false}, {"chunked", big, -1, true}, {"chunked, half read", big, 100, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := &memory{}
			lent := bytes.Clone(key)
			r := newRecorder(t, sink, Options{Scenario: "s", EntityKey: lent, MaxBody: 1000, Capture: Capture{Input: true, Output: true, RawBodies: true}})
			clear(lent) // New took a copy
			s := serve(t, r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				choose(req, "allow")
				body := io.Reader(req.Body)
				if c.read >= 0 {
					body = io.LimitReader(body, c.read)
				}
				got, _ := io.ReadAll(body)
				w.Write(got[:len(got)/2])
				io.Copy(w, struct{ io.Reader }{bytes.NewReader(got[len(got)/2:])}) // by way of ReadFrom
			})))
			var body io.Reader = bytes.NewReader(c.body)
			if c.plain {
				body = struct{ io.Reader }{body}
			}
			resp, err := http.Post(s.URL, "", body)
			if err != nil {
				t.Fatal(err)
			}
			echoed, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			read := c.body
			if c.read >= 0 {
				read = c.body[:c.read]
			}
			if !bytes.Equal(echoed, read) {
				t.Fatalf("the client got %d bytes back, want %d", len(echoed), len(read))
			}
			closeNow(t, r)
			checkBodies(t, sink.all()[0], c.body, read, c.plain)
		})
	}
}

func checkBodies(t *testing.T, row *snapshot.Snapshot, sent, read []byte, chunked bool) {
	t.Helper()
	whole := len(read) == len(sent)
	if want := read[:min(len(read), 1000)]; !bytes.Equal(row.Input, want) || !bytes.Equal(row.Output, want) {
		t.Errorf("stored %d of input and %d of output, want %d", len(row.Input), len(row.Output), len(want))
	}
	if row.Input == nil || row.Output == nil {
		t.Error("a body that was seen is not the same as none")
	}
	if known := whole || !chunked; row.InputLen.Set != known || known && row.InputLen.V != int64(len(sent)) {
		t.Errorf("input_len %v", row.InputLen)
	}
	if row.InputDigest.Set != whole || whole && row.InputDigest.V != sum(key, string(sent)) {
		t.Errorf("input digest %x", row.InputDigest.V)
	}
	if !row.OutputDigest.Set || row.OutputDigest.V != sum(key, string(read)) {
		t.Errorf("output digest %x", row.OutputDigest.V)
	}
	var want []string
	if !whole || len(sent) > 1000 {
		want = append(want, "input:truncated")
	}
	if len(read) > 1000 {
		want = append(want, "output:truncated")
	}
	if fmt.Sprint(row.Redacted) != fmt.Sprint(want) {
		t.Errorf("redacted %q, want %q", row.Redacted, want)
	}
}

func TestAbilitiesOfTheWriterStay(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{Scenario: "s"})
	type abilities struct{ flush, hijack, readFrom, push bool }
	of := func(w http.ResponseWriter) (a abilities) {
		_, a.flush = w.(http.Flusher)
		_, a.hijack = w.(http.Hijacker)
		_, a.readFrom = w.(io.ReaderFrom)
		_, a.push = w.(http.Pusher)
		return a
	}
	var bare, wrapped abilities
	h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		bare = of(w)
		r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			wrapped = of(w)
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("write deadline: %v", err)
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flush: %v", err)
			}
		})).ServeHTTP(w, req)
	})
	for _, http2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = http2
		s.StartTLS()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body) // until the handler is through
		resp.Body.Close()
		s.Close()
		if (resp.ProtoMajor == 2) != http2 || bare != wrapped || !bare.flush || bare.push != http2 {
			t.Errorf("%s: server %+v, handler %+v", resp.Proto, bare, wrapped)
		}
	}
	for _, w := range []http.ResponseWriter{
		struct{ http.ResponseWriter }{httptest.NewRecorder()}, httptest.NewRecorder(),
		struct {
			*httptest.ResponseRecorder
			io.ReaderFrom
		}{httptest.NewRecorder(), nil},
		struct {
			*httptest.ResponseRecorder
			http.Hijacker
		}{httptest.NewRecorder(), nil},
	} {
		if got, want := of((&responseWriter{ResponseWriter: w}).able()), of(w); got != want {
			t.Errorf("%T: %+v, want %+v", w, got, want)
		}
	}
}

// A flushed part is at the client before the handler goes on.
func TestFlushReachesTheClient(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", Capture: Capture{Output: true}})
	got := make(chan string)
	s := serve(t, r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		choose(req, "allow")
		io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		if line := <-got; line != "first\n" {
			t.Errorf("the client got %q", line)
		}
		io.WriteString(w, "second\n")
	})))
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	line, _ := lines.ReadString('\n')
	got <- line
	if line, _ = lines.ReadString('\n'); line != "second\n" {
		t.Errorf("the client got %q", line)
	}
	closeNow(t, r)
	if out := string(sink.all()[0].Output); out != "first\nsecond\n" {
		t.Errorf("output %q", out)
	}
}

func TestUpgradeIsNotBroken(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", Capture: Capture{Input: true, Output: true}})
	done := make(chan struct{})
	upgrade := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		choose(req, "allow")
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, line)
		rw.Flush()
	}))
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer close(done) // the server does not wait for a connection that was taken over
		upgrade.ServeHTTP(w, req)
	}))
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping\n")
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v %v", resp, err)
	}
	if line, _ := br.ReadString('\n'); line != "ping\n" {
		t.Errorf("echo %q", line)
	}
	<-done
	closeNow(t, r)
	row := sink.all()[0]
	if row.Status != decision.OK || row.Artefact.HTTPStatus != 0 || row.Usage.BytesOut.Set || row.OutputDigest.Set {
		t.Errorf("row %+v", row)
	}
}

// errReader fails in the middle of a body.
type errReader struct{ n int }

func (e *errReader) Read(p []byte) (int, error) {
	if e.n++; e.n > 1 {
		return 0, errors.New("reset by peer")
	}
	return copy(p, "part"), nil
}

func TestBrokenBodyIsTruncated(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", EntityKey: key, Capture: Capture{Input: true, RawBodies: true}})
	req := httptest.NewRequest("POST", "/", io.NopCloser(&errReader{}))
	r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		choose(req, "allow")
		io.ReadAll(req.Body)
	})).ServeHTTP(httptest.NewRecorder(), req)
	closeNow(t, r)
	if got := sink.all()[0]; string(got.Input) != "part" || got.InputDigest.Set || got.InputLen.Set || len(got.Redacted) != 1 {
		t.Errorf("row %+v", got)
	}
}

// A transport may go on reading a body when the handler has returned.
func TestLateReadsAreNotSeen(t *testing.T) {
	late := &tap{max: 10, key: key}
	late.pass([]byte("in time"))
	got := late.take(-1)
	late.pass(bytes.Repeat([]byte("too late"), 100))
	late.end()
	if string(got.data) != "in time" || !got.cut || got.length.Set || late.total != 7 || late.mac != nil || !late.take(-1).cut {
		t.Errorf("seen %q, %d bytes", got.data, late.total)
	}
}
