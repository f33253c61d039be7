package arrowfile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// Write two snapshots to a directory, seal the segment, verify it and read one column
// back.
func Example() {
	dir, err := os.MkdirTemp("", "segments")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, action := range []string{"allow", "block"} {
		err := w.Append(&snapshot.Snapshot{
			ID: decision.NewID(at), RequestID: decision.NewID(at), Time: at, Scenario: "fraud",
			Status: decision.OK, Action: action, KeepProb: 1,
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	lost := snapshot.Ledger{Offered: 1, SampledOut: 1}
	if err := w.Flush(lost); err != nil {
		log.Fatal(err)
	}
	fmt.Println("acknowledged:", w.Watermark())
	total := snapshot.Ledger{Offered: 3, Written: 2, SampledOut: 1}
	if err := w.Close(snapshot.Ledger{}, total); err != nil {
		log.Fatal(err)
	}

	paths, err := filepath.Glob(filepath.Join(dir, "*"+arrowfile.Ext))
	if err != nil {
		log.Fatal(err)
	}
	report, err := arrowfile.Verify(paths[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("verified:", report.Rows, "rows, sampled out:", report.Meta.Ledger.SampledOut)

	f, err := arrowfile.Open(paths[0])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for s, err := range f.Snapshots("action") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.Ref.Row, s.Action)
	}
	// Output:
	// acknowledged: 2
	// verified: 2 rows, sampled out: 1
	// 0 allow
	// 1 block
}

// A segment whose writer was killed is sealed with every whole batch.
func ExampleRecoverDir() {
	dir, err := os.MkdirTemp("", "segments")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	recovered, err := arrowfile.RecoverDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range recovered {
		fmt.Printf("%s: kept %d rows, cut %d bytes\n", r.Path, r.Rows, r.Cut)
	}
	fmt.Println(len(recovered), "recovered")
	// Output: 0 recovered
}
