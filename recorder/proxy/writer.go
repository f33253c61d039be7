package proxy

import (
	"net"
	"net/http"
	"strconv"
	"sync"
)

// writer keeps net/http from adding to an answer, and sends its body as it comes.
type writer struct {
	http.ResponseWriter
	// left is what is still to come of a body of known length; negative when unknown,
	// where ReverseProxy flushes by itself.
	left int64
}

func newWriter(w http.ResponseWriter) *writer { return &writer{ResponseWriter: w, left: -1} }

// Unwrap lets http.ResponseController find flush and hijack.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status >= 200 {
		h := w.Header()
		for _, name := range []string{"Date", "Content-Type"} {
			if _, ok := h[name]; !ok {
				h[name] = nil // present without a value: the server does not make one up
			}
		}
		if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
			w.left = n
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write flushes every part of a body but the last, which goes out when the handler ends.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	if w.left > 0 {
		if w.left -= int64(n); w.left > 0 && err == nil {
			err = http.NewResponseController(w.ResponseWriter).Flush()
		}
	}
	return n, err
}

// limited is a listener with at most so many connections open; others wait in the
// system's queue, so that a flood of them costs no memory here.
type limited struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newLimited(l net.Listener, n int) *limited {
	return &limited{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: c, l: l}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	l    *limited
	once sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.l.free })
	return err
}

// CloseWrite is what the server ends an answer with before it closes a connection.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
