package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// message is an HTTP/1.1 message as it stood on a connection.
type message struct {
	start    string
	header   []string // "Name: value", sorted, names in canonical case
	body     []byte
	trailer  []string
	chunked  bool
	informed []string // the start lines and headers of 1xx before it
}

func (m *message) get(name string) (string, bool) {
	for _, h := range m.header {
		if v, ok := strings.CutPrefix(h, name+": "); ok {
			return v, true
		}
	}
	return "", false
}

// lines reads header lines until the empty one, without net/http.
func lines(r *bufio.Reader) ([]string, error) {
	var out []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			slices.Sort(out)
			return out, nil
		}
		name, value, _ := strings.Cut(line, ":")
		out = append(out, textproto.CanonicalMIMEHeaderKey(name)+": "+strings.TrimSpace(value))
	}
}

// readMessage reads one message; bodiless says that it has none whatever its header says.
func readMessage(r *bufio.Reader, bodiless bool) (*message, error) {
	m := &message{}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		m.start = strings.TrimRight(line, "\r\n")
		if m.header, err = lines(r); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(m.start, "HTTP/1.1 1") {
			break
		}
		m.informed = append(append(m.informed, m.start), m.header...)
	}
	if bodiless || strings.HasPrefix(m.start, "HTTP/1.1 204") || strings.HasPrefix(m.start, "HTTP/1.1 304") {
		return m, nil
	}
	var err error
	te, _ := m.get("Transfer-Encoding")
	length, hasLength := m.get("Content-Length")
	switch {
	case te == "chunked":
		m.chunked = true
		if m.body, err = io.ReadAll(httputil.NewChunkedReader(r)); err == nil {
			m.trailer, err = lines(r)
		}
	case hasLength:
		n, _ := strconv.Atoi(length)
		m.body = make([]byte, n)
		_, err = io.ReadFull(r, m.body)
	case strings.HasPrefix(m.start, "HTTP/"):
		m.body, err = io.ReadAll(r)
	}
	return m, err
}

// rawUpstream answers each connection's requests with the bytes that reply gives.
func rawUpstream(t *testing.T, reply func(m *message) string) (addr string, seen chan *message) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	seen = make(chan *message, 1000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					m, err := readMessage(r, false)
					if err != nil {
						return
					}
					seen <- m
					out := reply(m)
					if _, err := io.WriteString(c, out); err != nil || strings.Contains(out, "Connection: close") {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), seen
}

func chunks(rng *rand.Rand, body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(len(body), 1+rng.IntN(5000))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n"
}

func randomBody(rng *rand.Rand) string {
	b := make([]byte, []int{0, 1, 100, 4096, 70000}[rng.IntN(5)])
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

// framed writes body with a length, or in chunks with trailers or without.
func framed(rng *rand.Rand, body string) (header, rest string, trailer []string) {
	switch rng.IntN(3) {
	case 0:
		return fmt.Sprintf("Content-Length: %d\r\n", len(body)), "\r\n" + body, nil
	case 1:
		return "Transfer-Encoding: chunked\r\n", "\r\n" + chunks(rng, body) + "\r\n", nil
	}
	return "Transfer-Encoding: chunked\r\nTrailer: X-Sum, X-Odd\r\n", "\r\n" + chunks(rng, body) + "X-Sum: 1\r\nX-Odd:  a  b \r\n\r\n",
		[]string{"X-Odd: a  b", "X-Sum: 1"}
}

var targets = []string{"/v1/systemone", "/v1/models?x=1;y=2&z", "/a%2Fb/%7Ec|d^e?q=%zz&&=", "/?", "/%E2%82%AC/ü?ü=%", "/a//b/../c/./", "//x/y", "/v1/decide?", "/p?a=b?c#d"}

const oddHeaders = "X-Odd: \"quo\\ted\"\r\nX-Empty:\r\nX-Utf8: gr\xfc\xc3\xbc\xc3\x9f\r\nX-Twice: 1\r\nX-Twice: 2, 3\r\nx-lower: v\r\nForwarded: for=1.2.3.4\r\nX-Forwarded-For: 9.9.9.9\r\n" +
	"Accept-Encoding: gzip, deflate, br\r\nCookie: a=b; c=\"d\"\r\nAuthorization: Bearer secret-token\r\nRange: bytes=0-\r\nReferer: http://h/?q=1\r\n"

// hop are the headers of one connection, which a proxy replaces by its own.
func withoutHop(header []string) []string {
	return slices.DeleteFunc(slices.Clone(header), func(h string) bool {
		name, _, _ := strings.Cut(h, ":")
		return slices.Contains([]string{"Host", "Connection", "Transfer-Encoding", "Trailer", "Keep-Alive", "Content-Length"}, name)
	})
}

func sameMessage(t *testing.T, what string, sent, got *message) {
	t.Helper()
	if !slices.Equal(withoutHop(sent.header), withoutHop(got.header)) {
		t.Errorf("%s: header\nsent %q\ngot  %q", what, sent.header, got.header)
	}
	if !bytes.Equal(sent.body, got.body) {
		t.Errorf("%s: body of %d bytes became one of %d", what, len(sent.body), len(got.body))
	}
	if !slices.Equal(sent.trailer, got.trailer) {
		t.Errorf("%s: trailer %q became %q", what, sent.trailer, got.trailer)
	}
	if n, ok := sent.get("Content-Length"); ok {
		if m, _ := got.get("Content-Length"); m != n {
			t.Errorf("%s: Content-Length %s became %q", what, n, m)
		}
	}
}

func TestEveryByteBothWays(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var reply string
	upstream, seen := rawUpstream(t, func(*message) string { return reply })
	s := start(t, "http://"+upstream)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	r := bufio.NewReader(conn)
	for i := range 300 {
		method := []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "BREW"}[rng.IntN(8)]
		target := targets[rng.IntN(len(targets))]
		head := method + " " + target + " HTTP/1.1\r\nHost: example.org\r\n" + oddHeaders
		rest := "\r\n"
		if method != "GET" && method != "HEAD" && rng.IntN(4) > 0 {
			h, body, _ := framed(rng, randomBody(rng))
			head, rest = head+h+[]string{"", "Content-Type: application/json\r\n"}[rng.IntN(2)], body
		}
		sent, err := readMessage(bufio.NewReader(strings.NewReader(head+rest)), false)
		if err != nil {
			t.Fatal(err)
		}
		status := []string{"200 OK", "404 Not Found", "529 status code 529", "204 No Content", "304 Not Modified", "422 Unprocessable Entity"}[rng.IntN(6)]
		h, body, _ := framed(rng, randomBody(rng))
		bodiless := method == "HEAD" || status[0:3] == "204" || status[0:3] == "304"
		if bodiless {
			h, body = "ETag: \"x\"\r\n", "\r\n"
			if method == "HEAD" && status[:3] == "200" {
				h += "Content-Length: 12345\r\n"
			}
		}
		informed := ""
		if rng.IntN(4) == 0 {
			informed = "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
		}
		reply = informed + "HTTP/1.1 " + status + "\r\nX-Up: gr\xfc\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n" + h + body
		if _, err := io.WriteString(conn, head+rest); err != nil {
			t.Fatal(err)
		}
		got := <-seen
		what := fmt.Sprintf("%d %s %s", i, method, target)
		if got.start != sent.start {
			t.Errorf("%s: request line %q became %q", what, sent.start, got.start)
		}
		if host, _ := got.get("Host"); host != upstream {
			t.Errorf("%s: Host %s", what, host)
		}
		sameMessage(t, what+" request", sent, got)
		answered, err := readMessage(bufio.NewReader(strings.NewReader(reply)), bodiless)
		if err != nil {
			t.Fatal(err)
		}
		back, err := readMessage(r, bodiless)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if back.start != answered.start || !slices.Equal(back.informed, answered.informed) {
			t.Errorf("%s: %q %q became %q %q", what, answered.informed, answered.start, back.informed, back.start)
		}
		sameMessage(t, what+" answer", answered, back)
		if t.Failed() {
			return
		}
	}
}

// A header that Connection names ends here (RFC 9110, 7.6.1), forwarding headers among them.
func TestHeadersThatConnectionNames(t *testing.T) {
	upstream, seen := rawUpstream(t, func(*message) string { return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" })
	s := start(t, "http://"+upstream)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: x-forwarded-for , X-Own\r\nConnection: Forwarded,close\r\n"+
		"X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-Own: 1\r\nX-Forwarded-Host: kept\r\n\r\n")
	got := <-seen
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Own"} {
		if v, ok := got.get(name); ok {
			t.Errorf("%s: %s goes on", name, v)
		}
	}
	if v, _ := got.get("X-Forwarded-Host"); v != "kept" {
		t.Errorf("X-Forwarded-Host, which is not named: %q", v)
	}
}
