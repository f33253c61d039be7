package recorder

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/clefbench/clefbench/decision"
)

// tap keeps the first max bytes of a body that passes, counts all, and hashes the whole
// once it has outgrown what is kept. It is locked because a proxy's transport may read
// a request body for longer than the handler runs.
type tap struct {
	max int
	key []byte

	mu    sync.Mutex
	data  []byte
	total int64
	ended bool
	taken bool
	mac   hash.Hash
}

func (t *tap) pass(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return
	}
	t.total += int64(len(p))
	keep := min(len(p), t.max-len(t.data))
	if keep < len(p) && t.mac == nil && len(t.key) > 0 {
		t.mac = hmac.New(sha256.New, t.key)
		t.mac.Write(t.data)
	}
	if t.mac != nil {
		t.mac.Write(p)
	}
	t.data = append(t.data, p[:keep]...)
}

// end marks the body as complete.
func (t *tap) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = t.ended || !t.taken
}

// take returns what was seen and stops looking. declared is the length that was announced,
// or negative: a reader may stop behind the last byte, without having seen the end.
func (t *tap) take(declared int64) body {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = true
	whole := t.ended || t.total == declared
	b := body{seen: true, data: t.data}
	b.cut = !whole || t.total > int64(len(t.data))
	if b.data == nil {
		b.data = []byte{} // seen and empty is not the same as not captured
	}
	switch {
	case whole:
		b.length = decision.Some(t.total)
		if t.mac != nil {
			b.digest = decision.Some([32]byte(t.mac.Sum(nil)))
		}
	case declared >= 0:
		b.length = decision.Some(declared)
	}
	return b
}

// tapBody is a request body with a tap.
type tapBody struct {
	io.ReadCloser
	tap *tap
}

func (b *tapBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.tap.pass(p[:n])
	}
	if err == io.EOF {
		b.tap.end()
	}
	return n, err
}

// responseWriter notes status and size of a response, and its bytes where the list
// allows them.
type responseWriter struct {
	http.ResponseWriter
	out      *tap
	status   int
	written  int64
	hijacked bool
}

// Unwrap lets http.ResponseController find what is below.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *responseWriter) WriteHeader(status int) {
	// Informational headers may come several times before the final one; 101 is final.
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) note(p []byte) {
	if w.out != nil {
		w.out.pass(p)
	}
}

func (w *responseWriter) count(n int64) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.written += n
}

func (w *responseWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.count(int64(n))
	w.note(p[:n])
	return n, err
}

// WriteString keeps io.WriteString as cheap as it is on the server's own writer.
func (w *responseWriter) WriteString(s string) (int, error) {
	n, err := io.WriteString(w.ResponseWriter, s)
	w.count(int64(n))
	if w.out != nil {
		w.out.pass([]byte(s[:n]))
	}
	return n, err
}

type flusher struct{ w *responseWriter }

func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is what http.ResponseController asks for before Flush.
func (f flusher) FlushError() error {
	return http.NewResponseController(f.w.ResponseWriter).Flush()
}

type hijacker struct{ w *responseWriter }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.w.ResponseWriter).Hijack()
	if err == nil {
		h.w.hijacked = true
	}
	return c, rw, err
}

type readerFrom struct{ w *responseWriter }

// ReadFrom leaves copying to the server, which may use sendfile, unless the bytes are
// to be kept.
func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	if r.w.out != nil {
		return io.Copy(struct{ io.Writer }{r.w}, src)
	}
	n, err := r.w.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	r.w.count(n)
	return n, err
}

// able returns the writer with the abilities of the one below, since code asserts them
// directly. These are the combinations that servers and common middlewares have; of any
// other the largest part that is here, the rest by http.ResponseController.
func (w *responseWriter) able() http.ResponseWriter {
	_, flush := w.ResponseWriter.(http.Flusher)
	_, hijack := w.ResponseWriter.(http.Hijacker)
	_, readFrom := w.ResponseWriter.(io.ReaderFrom)
	push, _ := w.ResponseWriter.(http.Pusher)
	f, h, rf := flusher{w}, hijacker{w}, readerFrom{w}
	switch {
	case flush && hijack && readFrom:
		return struct {
			*responseWriter
			flusher
			hijacker
			readerFrom
		}{w, f, h, rf}
	case flush && hijack:
		return struct {
			*responseWriter
			flusher
			hijacker
		}{w, f, h}
	case flush && push != nil:
		return struct {
			*responseWriter
			flusher
			http.Pusher
		}{w, f, push}
	case flush && readFrom:
		return struct {
			*responseWriter
			flusher
			readerFrom
		}{w, f, rf}
	case flush:
		return struct {
			*responseWriter
			flusher
		}{w, f}
	}
	return w
}
