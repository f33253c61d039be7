package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The client sends its body only when it is told to, and may be refused before.
func TestExpectContinue(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			r.ReadString('\n')
			h, _ := lines(r)
			if refuse {
				io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				got <- strings.Join(h, "|")
				return
			}
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			body := make([]byte, len(ask1))
			io.ReadFull(r, body)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			got <- strings.Join(h, "|") + string(body)
		}()
		s := start(t, "http://"+l.Addr().String())
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "POST /v1/systemone HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(ask1))
		r := bufio.NewReader(c)
		line, err := r.ReadString('\n')
		want := "HTTP/1.1 100 Continue"
		if refuse {
			want = "HTTP/1.1 401 Unauthorized"
		}
		if err != nil || strings.TrimSpace(line) != want {
			t.Fatalf("refuse %v: %q %v", refuse, line, err)
		}
		if !refuse {
			r.ReadString('\n')
			io.WriteString(c, ask1)
			m, err := readMessage(r, false)
			if err != nil || string(m.body) != "ok" || len(m.informed) != 0 {
				t.Errorf("%+v %v", m, err)
			}
		}
		if head := <-got; !strings.Contains(head, "Expect: 100-continue") || !refuse && !strings.HasSuffix(head, ask1) {
			t.Errorf("the upstream got %q", head)
		}
		c.Close()
		l.Close()
	}
}

func TestUpgradesPassUnrecorded(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nSec-WebSocket-Accept: x\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		rw.WriteString("echo " + line)
		rw.Flush()
	})
	s := start(t, upstream)
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, "GET /v1/systemone HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(c)
	line, _ := r.ReadString('\n')
	h, err := lines(r)
	if err != nil || !strings.Contains(line, "101") || !strings.Contains(strings.Join(h, "|"), "Sec-Websocket-Accept: x") {
		t.Fatalf("%q %q %v", line, h, err)
	}
	io.WriteString(c, "hello\n")
	if line, err = r.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("%q %v", line, err)
	}
	c.Close()
	if rows := s.rows(); len(rows) != 0 || s.proxy.Stats().Upgrades != 1 {
		t.Errorf("%d rows, %+v", len(rows), s.proxy.Stats())
	}
}

// Each part must arrive before the next one is sent, in both directions, whether or not
// the length is known beforehand; so must the header before the body.
func TestBodiesStream(t *testing.T) {
	for _, length := range []string{"", "12"} {
		up := make(chan string)
		goOn := make(chan bool)
		s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			b := make([]byte, 4)
			for range 3 {
				if _, err := io.ReadFull(r.Body, b); err != nil {
					t.Error(err)
				}
				up <- string(b)
			}
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			w.WriteHeader(200)
			http.NewResponseController(w).Flush()
			for range 3 {
				<-goOn
				io.WriteString(w, "part")
				http.NewResponseController(w).Flush()
			}
			<-goOn
		}))
		pr, pw := io.Pipe()
		req, _ := http.NewRequest("POST", s.url+"/v1/systemone", pr)
		if length != "" {
			req.ContentLength = 12
		}
		got := make(chan *http.Response)
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
			}
			got <- resp
		}()
		within := time.After(30 * time.Second)
		for range 3 {
			io.WriteString(pw, "send")
			select {
			case <-up:
			case <-within:
				t.Fatal("the request does not stream")
			}
		}
		pw.Close()
		var resp *http.Response
		select {
		case resp = <-got: // the header, before any byte of the body
		case <-within:
			t.Fatal("the header waits for the body")
		}
		b := make([]byte, 4)
		for range 3 {
			goOn <- true
			read := make(chan error, 1)
			go func() { _, err := io.ReadFull(resp.Body, b); read <- err }()
			select {
			case err := <-read:
				if err != nil || string(b) != "part" {
					t.Fatal(string(b), err)
				}
			case <-within:
				t.Fatal("the answer does not stream")
			}
		}
		goOn <- true
		resp.Body.Close()
		s.rows()
	}
}

// An upstream may answer before the request has ended: both directions go on together.
func TestBothDirectionsAtOnce(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := c.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(200)
		c.Flush()
		b := make([]byte, 4)
		for {
			n, err := io.ReadFull(r.Body, b)
			w.Write(b[:n])
			c.Flush()
			if err != nil {
				return
			}
		}
	}))
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, "POST /v1/systemone HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
	r := bufio.NewReader(c)
	for i := range 3 {
		fmt.Fprintf(c, "4\r\npa%02d\r\n", i)
		if i == 0 {
			if _, err := r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if _, err := lines(r); err != nil {
				t.Fatal(err)
			}
		}
		var got [9]byte
		if _, err := io.ReadFull(r, got[:]); err != nil || string(got[:]) != fmt.Sprintf("4\r\npa%02d\r\n", i) {
			t.Fatalf("%q %v", got, err)
		}
	}
	io.WriteString(c, "0\r\n\r\n")
	if rest, err := r.ReadString('\n'); rest != "0\r\n" {
		t.Errorf("%q %v", rest, err)
	}
}
