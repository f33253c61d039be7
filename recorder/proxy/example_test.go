package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/recorder/proxy"
	"github.com/clefbench/clefbench/snapshot"
)

// printer is a sink that prints what it gets; a service uses that of snapshot/arrowfile.
type printer struct{}

func (printer) Append(s *snapshot.Snapshot) error {
	fmt.Println(s.Scenario, s.Question, s.Status, s.Action, s.Confidence.V, s.Artefact.ModelResolved)
	return nil
}
func (printer) Flush(snapshot.Ledger) error      { return nil }
func (printer) Close(_, _ snapshot.Ledger) error { return nil }

func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"model":"jev-1.13.0","answers":{"team":{"type":"choice","choice":"billing","confidence":0.86,"probabilities":{"billing":0.93,"tech":0.07}}}}`)
	}))
	defer service.Close()

	rec, err := recorder.New(printer{}, recorder.Options{Capture: recorder.Capture{Input: true, Output: true}})
	if err != nil {
		panic(err)
	}
	p, err := proxy.New(proxy.Options{Upstream: service.URL, Recorder: rec, Scenario: "tickets"})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go p.Serve(l)

	resp, err := http.Post("http://"+l.Addr().String()+"/v1/systemone", "application/json",
		strings.NewReader(`{"state":"Refund me","questions":{"team":{"type":"choice","criteria":{"tech":null,"billing":null}}},"model":"jev-latest"}`))
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	if err := p.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	if err := rec.Close(context.Background()); err != nil {
		panic(err)
	}
	// Output: tickets team ok billing 0.86 jev-1.13.0
}
