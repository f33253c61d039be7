package runs_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/clefbench/clefbench/datasets/runs"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Write a run and read it back.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	w, err := runs.Create(filepath.Join(dir, "run"), runs.Manifest{
		Seed: 1, Lanes: []runs.Lane{{Name: "v2", Kind: "rules"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Append(&snapshot.Outcome{
		Ref: snapshot.Ref{Segment: "host-boot-00000001"}, ID: decision.ID{1}, RequestID: decision.ID{1},
		Scenario: "fraud", KeepProb: 1, Backend: "v2", Kind: "rules", Phase: snapshot.PhaseMeasured,
		Status: decision.OK, Action: "allow",
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Close(false); err != nil {
		log.Fatal(err)
	}

	r, err := runs.Open(filepath.Join(dir, "run"))
	if err != nil {
		log.Fatal(err)
	}
	for o, err := range r.Outcomes("v2") {
		fmt.Println(o.Ref.Segment, o.Ref.Row, o.Action, err)
	}
	// Output: host-boot-00000001 0 allow <nil>
}
