package spool_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/spool"
)

// A service records into a local directory, and its segments go to a bucket.
func Example() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	segments, bucket := filepath.Join(dir, "segments"), filepath.Join(dir, "bucket")
	if err := os.Mkdir(bucket, 0o755); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	sp, err := spool.Open(ctx, segments, spool.Options{URL: "file://" + bucket, Service: "checkout"})
	if err != nil {
		log.Fatal(err)
	}
	w, err := arrowfile.Create(segments, arrowfile.Options{Host: "web-1", Boot: "first"})
	if err != nil {
		log.Fatal(err)
	}
	rec, err := recorder.New(sp.Wrap(w, 0), recorder.Options{})
	if err != nil {
		log.Fatal(err)
	}

	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rec.Record(ctx, &snapshot.Snapshot{ID: decision.NewID(at), RequestID: decision.NewID(at), Time: at,
		Scenario: "fraud", Status: decision.OK, Action: "allow", KeepProb: 1})

	// The recorder first: it seals the last segment.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := rec.Close(ctx); err != nil {
		log.Fatal(err)
	}
	if err := sp.Close(ctx); err != nil {
		log.Fatal(err)
	}
	st := sp.Stats()
	fmt.Println("uploaded:", st.Uploaded, "segment,", st.Rows, "row; pending:", st.Pending)
	objects, err := filepath.Glob(filepath.Join(bucket, "full", "*", "*", "*"))
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range objects {
		fmt.Println(o[len(bucket)+1:])
	}
	// Output:
	// uploaded: 1 segment, 1 row; pending: 0
	// full/dt=2026-01-02/checkout/web-1-first-00000001.arrow
}
