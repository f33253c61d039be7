package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
)

// The demo's headers: what the client sends besides the example's own.
const (
	demoScenario = "Demo-Scenario"
	demoAttrs    = "Demo-Attributes" // what a feature store would give, as JSON
	demoEntity   = "Demo-Entity"
)

// demoSeed decides the order of the demo's traffic and the replay.
const demoSeed = 1

// incumbent is the demo's production service: a handler that asks a rules engine, with
// the recorder around both.
type incumbent struct {
	engine  decision.Backend // wrapped by the recorder
	schemas map[string]*decision.Schema
	tasks   map[string][]string // candidates by scenario
}

// labels are the words of a recording that the engine does not know of: the candidates
// that it is asked to choose from.
func (s *incumbent) labels() map[string][]string {
	l := map[string][]string{}
	for _, scenario := range slices.Sorted(maps.Keys(s.tasks)) {
		l["action"] = append(l["action"], s.tasks[scenario]...)
	}
	return l
}

func (s *incumbent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scenario := r.Header.Get(demoScenario)
	attrs, err := s.attributes(scenario, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rec := recorder.FromContext(r.Context())
	req := decision.Request{ID: rec.ID(), Scenario: scenario, Attrs: attrs, Now: time.Now(),
		Questions: []decision.Question{{Type: decision.QuestionAction, Candidates: s.tasks[scenario]}}}
	var resp decision.Response
	if err := s.engine.Decide(r.Context(), &req, &resp); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(demoAnswer{Action: resp.Decisions[0].Action, RequestID: rec.ID()})
}

// demoAnswer is what the service tells its client: the id lets a label find its way.
type demoAnswer struct {
	Action    string      `json:"action"`
	RequestID decision.ID `json:"request_id"`
}

// attributes builds what the engine may see from the request itself and the feature
// header.
func (s *incumbent) attributes(scenario string, r *http.Request) (decision.Attrs, error) {
	schema := s.schemas[scenario]
	if schema == nil {
		return decision.Attrs{}, fmt.Errorf("no scenario %q", scenario)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Header.Get(demoAttrs)), &given); err != nil {
		return decision.Attrs{}, fmt.Errorf("%s: %w", demoAttrs, err)
	}
	values := make([]decision.Value, schema.Len())
	for i, f := range schema.Fields() {
		switch {
		case f.Name == "method":
			values[i] = decision.StringValue(r.Method)
		case f.Name == "path":
			values[i] = decision.StringValue(r.URL.Path)
		case given[f.Name] != nil:
			v, err := attrValue(given[f.Name], f.Type)
			if err != nil {
				return decision.Attrs{}, fmt.Errorf("%s: %w", f.Name, err)
			}
			values[i] = v
		default:
			if h, ok := headerOf(f.Name); ok && r.Header.Get(h) != "" {
				values[i] = decision.StringValue(r.Header.Get(h))
			}
		}
	}
	return decision.Attrs{Schema: schema, Values: values}, nil
}

func headerOf(attr string) (string, bool) {
	const prefix = "headers."
	if len(attr) > len(prefix) && attr[:len(prefix)] == prefix {
		return attr[len(prefix):], true
	}
	return "", false
}

// captureAll lists every attribute of the demo's scenarios: they hold nothing personal.
func captureAll(schema *decision.Schema) recorder.Capture {
	c := recorder.Capture{Entity: recorder.EntitySource{Header: demoEntity}}
	for _, f := range schema.Fields() {
		c.Fields = append(c.Fields, recorder.CaptureField{Name: f.Name, Type: f.Type, Redact: recorder.Keep})
	}
	return c
}

// serveLoopback serves a handler on a free loopback port until stop is called.
func serveLoopback(h http.Handler) (url string, stop func(context.Context) error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	stop = func(ctx context.Context) error {
		if err := srv.Shutdown(ctx); err != nil {
			return err
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return "http://" + l.Addr().String(), stop, nil
}

// drive sends the examples as HTTP requests over a few connections, in a seeded order
// that mixes the scenarios, and returns which example each request id stands for.
func drive(ctx context.Context, url string, examples []*datasets.Example) (map[decision.ID]*datasets.Example, error) {
	const connections = 4
	order := rand.New(rand.NewPCG(demoSeed, 1)).Perm(len(examples))
	ids := make([]decision.ID, len(examples))
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, connections)
	var wg sync.WaitGroup
	for c := range connections {
		wg.Go(func() {
			for k := c; k < len(order) && errs[c] == nil; k += connections {
				i := order[k]
				ids[i], errs[c] = ask(ctx, client, url, examples[i])
			}
			if errs[c] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sent := make(map[decision.ID]*datasets.Example, len(examples))
	for i, id := range ids {
		sent[id] = examples[i]
	}
	return sent, nil
}

func ask(ctx context.Context, client *http.Client, url string, ex *datasets.Example) (decision.ID, error) {
	var zero decision.ID
	req, err := http.NewRequestWithContext(ctx, ex.Method, url+ex.Path, nil)
	if err != nil {
		return zero, err
	}
	extra := map[string]any{}
	for i, f := range ex.Attrs.Schema.Fields() {
		_, isHeader := headerOf(f.Name)
		if v := ex.Attrs.At(i); f.Name != "method" && f.Name != "path" && !isHeader && !v.IsNull() {
			extra[f.Name] = v.Any()
		}
	}
	features, err := json.Marshal(extra)
	if err != nil {
		return zero, err
	}
	for k, v := range ex.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set(demoScenario, ex.Scenario)
	req.Header.Set(demoAttrs, string(features))
	req.Header.Set(demoEntity, ex.Entity)
	resp, err := client.Do(req)
	if err != nil {
		return zero, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return zero, err
	}
	var answer demoAnswer
	if err := strictJSON(bytes.TrimSpace(body), &answer); resp.StatusCode != http.StatusOK || err != nil {
		return zero, fmt.Errorf("the demo's service answered %s: %q", resp.Status, body)
	}
	return answer.RequestID, nil
}
