// Command middleware is a decision service with the recorder in it: the ten lines of the
// README around a handler. Run it, ask it, stop it with an interrupt, and replay what it
// recorded:
//
//	go run ./examples/middleware &
//	curl http://127.0.0.1:8321/some/path
//	clefbench datasets describe snapshots
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "snapshots", "127.0.0.1:8321"); err != nil {
		log.Fatal(err)
	}
}

// run serves until the context ends, and then seals the recording.
func run(ctx context.Context, dir, addr string) error {
	service, rec, err := newService(dir)
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: addr, Handler: service, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		srv.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return rec.Close(context.WithoutCancel(ctx))
}

func newService(dir string) (http.Handler, *recorder.Recorder, error) {
	sink, err := arrowfile.Create(dir, arrowfile.Options{})
	if err != nil {
		return nil, nil, err
	}
	rec, err := recorder.New(sink, recorder.Options{Scenario: "edge", Capture: recorder.Capture{Fields: []recorder.CaptureField{
		{Name: "path", Type: decision.String},
		{Name: "headers.user-agent", Type: decision.String},
	}}})
	if err != nil {
		return nil, nil, err
	}
	return rec.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := recorder.FromContext(r.Context()).Decision("")
		d.SetActions("allow", "block")
		d.Choose(decide(r))
		fmt.Fprintln(w, decide(r))
	})), rec, nil
}

// decide is the service's own rule.
func decide(r *http.Request) string {
	if strings.Contains(strings.ToLower(r.UserAgent()), "bot") {
		return "block"
	}
	return "allow"
}
