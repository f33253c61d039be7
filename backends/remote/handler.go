package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// Defaults of a handler.
const (
	DefaultMaxBody     = 1 << 20
	DefaultMaxInflight = 256
)

// HandlerOptions say how a backend is served. The zero value is useful.
type HandlerOptions struct {
	// Schema gives the types of attributes that are known; a value that does not convert
	// without loss is refused. Other attributes keep the type that they are sent with.
	Schema *decision.Schema
	// Scenario is for requests that name none.
	Scenario string
	// MaxBody bounds a request body; it defaults to [DefaultMaxBody]. Above it: 413.
	MaxBody int64
	// MaxInflight bounds the requests being served at once; it defaults to
	// [DefaultMaxInflight]. Above it: 503 with Retry-After.
	MaxInflight int
	// Timeout bounds reading and deciding; it defaults to [DefaultTimeout]. A request may
	// ask for less.
	Timeout time.Duration
	// OnDecision, when set, is called after each decision, before it is sent, and gives
	// the snapshot id: a recorder's. It must not keep what it is given. Without it, or
	// when it gives the zero id, a fresh id is made.
	OnDecision func(ctx context.Context, req *decision.Request, out *decision.Response) decision.ID
	// Now is the clock for requests without one; it defaults to [time.Now].
	Now func() time.Time
}

// handler serves one backend.
type handler struct {
	b        decision.Backend
	opts     HandlerOptions
	inflight chan struct{}
	// schema is the last one made for attributes outside opts.Schema: requests of one
	// client have one shape, and engines bind to a schema by its pointer.
	schema atomic.Pointer[decision.Schema]
}

// Handler serves POST /v1/decide and GET /healthz from a backend. It is safe for
// concurrent use; authentication and the choice of the address are the caller's.
func Handler(b decision.Backend, opts HandlerOptions) http.Handler {
	if opts.MaxBody <= 0 {
		opts.MaxBody = DefaultMaxBody
	}
	if opts.MaxInflight <= 0 {
		opts.MaxInflight = DefaultMaxInflight
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	h := &handler{b: b, opts: opts, inflight: make(chan struct{}, opts.MaxInflight)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/decide", h.decide)
	mux.HandleFunc("GET /healthz", h.health)
	return mux
}

// httpError is a refusal with its status and code.
type httpError struct {
	status        int
	code, message string
}

func (e *httpError) Error() string { return e.message }

func (h *handler) decide(w http.ResponseWriter, r *http.Request) {
	select {
	case h.inflight <- struct{}{}:
		defer func() { <-h.inflight }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, &httpError{http.StatusServiceUnavailable, "overloaded", fmt.Sprintf("%d requests are being served already", h.opts.MaxInflight)})
		return
	}
	body, err := h.serve(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that went away is nobody's error.
	_, _ = w.Write(body)
}

// serve reads, decides and gives the body of the answer.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := h.read(w, r)
	if err != nil {
		return nil, err
	}
	q, s, err := parseRequest(body)
	if err != nil {
		return nil, err
	}
	req, err := h.request(q, s)
	if err != nil {
		return nil, err
	}
	limit := h.opts.Timeout
	if req.Deadline > 0 {
		limit = min(limit, req.Deadline)
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	out := new(decision.Response)
	if err := h.b.Decide(ctx, req, out); err != nil {
		return nil, &httpError{http.StatusInternalServerError, "backend-failed", "the backend failed: " + err.Error()}
	}
	out.Check(req)
	var snapshot decision.ID
	if h.opts.OnDecision != nil {
		snapshot = h.opts.OnDecision(ctx, req, out)
	}
	if snapshot.IsZero() {
		snapshot = decision.NewID(h.opts.Now())
	}
	return encode(out, snapshot)
}

// encode writes the answer; one that JSON cannot carry becomes an error outcome.
func encode(out *decision.Response, snapshot decision.ID) ([]byte, error) {
	d := &out.Decisions[0]
	body, err := appendAnswer(make([]byte, 0, 512), d, &out.Artefact, snapshot)
	if err == nil {
		return body, nil
	}
	d.Fail(decision.Error, CodeNotEncodable, "the answer cannot be written as JSON")
	body, err = appendAnswer(body[:0], d, &decision.Artefact{}, snapshot)
	return body, err
}

// read takes the body within the limits of size and time.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if kind, _, err := mime.ParseMediaType(ct); err != nil || kind != "application/json" {
			return nil, &httpError{http.StatusUnsupportedMediaType, "unsupported-media-type", "the Content-Type must be application/json"}
		}
	}
	// Not every ResponseWriter has a deadline (recorders in tests have none); the server's
	// own ReadTimeout holds there.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.opts.Timeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	} else {
		// The deadline stays, or the server would wait for the rest of the body.
		w.Header().Set("Connection", "close")
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &httpError{http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the body has more than %d bytes", large.Limit)}
	case err != nil:
		return nil, &httpError{http.StatusBadRequest, "bad-request", "the body could not be read"}
	}
	return body, nil
}

// request makes what the backend is asked.
func (h *handler) request(q *question, s *scanner) (*decision.Request, error) {
	attrs, err := h.attrs(q, s)
	if err != nil {
		return nil, err
	}
	req := &decision.Request{
		ID: q.id, Scenario: q.scenario, Attrs: attrs, Features: q.features, FeatureSet: q.featureSet,
		Questions: []decision.Question{q.ask}, Body: s.b, Now: q.now, Deadline: q.timeout,
	}
	if req.ID.IsZero() {
		req.ID = decision.NewID(h.opts.Now())
	}
	if req.Scenario == "" {
		req.Scenario = h.opts.Scenario
	}
	if req.Now.IsZero() {
		req.Now = h.opts.Now()
	}
	if req.Seed = q.seed.V; !q.seed.Set {
		req.Seed = rand.Uint64()
	}
	return req, nil
}

// attrs lays the context out under the handler's schema, followed by the attributes that
// it does not know.
func (h *handler) attrs(q *question, s *scanner) (decision.Attrs, error) {
	known := h.opts.Schema
	values := make([]decision.Value, known.Len(), known.Len()+len(q.names))
	var extra []decision.Field
	for i, name := range q.names {
		v := q.values[i]
		k := known.Index(name)
		if k < 0 {
			if !v.IsNull() {
				extra, values = append(extra, decision.Field{Name: name, Type: v.Type()}), append(values, v)
			}
			continue
		}
		t := known.Fields()[k].Type
		converted, ok := v.Convert(t)
		if !ok {
			return decision.Attrs{}, s.errorAt(q.at[i], "attribute %q must be %v, got %v", name, t, v.Type())
		}
		values[k] = converted
	}
	if len(extra) == 0 {
		return decision.Attrs{Schema: known, Values: values}, nil
	}
	schema, err := h.schemaOf(append(slices.Clone(known.Fields()), extra...))
	return decision.Attrs{Schema: schema, Values: values}, err
}

func (h *handler) schemaOf(fields []decision.Field) (*decision.Schema, error) {
	if last := h.schema.Load(); last != nil && slices.Equal(last.Fields(), fields) {
		return last, nil
	}
	schema, err := decision.NewSchema(fields...)
	if err == nil {
		h.schema.Store(schema)
	}
	return schema, err
}

func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	if rd, ok := h.b.(decision.Readier); ok {
		if err := rd.Ready(r.Context()); err != nil {
			refuse(w, &httpError{http.StatusServiceUnavailable, "not-ready", "the backend is not ready"})
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`)
}

// refuse sends an error body. What is wrong with a request is the client's to know; it
// holds no more of the request than the offending name.
func refuse(w http.ResponseWriter, err error) {
	e := &httpError{http.StatusInternalServerError, "internal", "internal error"}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		e = &httpError{http.StatusBadRequest, "bad-request", syntax.Error()}
	}
	errors.As(err, &e)
	body := &writer{b: []byte(`{"error":{`)}
	body.text("code", e.code)
	message, encodeErr := appendText(nil, e.message)
	if encodeErr != nil {
		message = []byte(`"the message is not UTF-8"`)
	}
	body.key("message")
	body.b = append(append(body.b, message...), "}}"...)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(body.b)
}
