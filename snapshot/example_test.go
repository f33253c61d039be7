package snapshot_test

import (
	"fmt"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// A backend that is replayed sees what was asked, never what production answered.
func ExampleRequest() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row := &snapshot.Snapshot{
		ID: decision.NewID(now), RequestID: decision.NewID(now), Time: now, Scenario: "fraud", KeepProb: 0.25,
		Status: decision.OK, Action: "approve", Latency: decision.Some(3 * time.Millisecond),
		Candidates: []decision.Candidate{
			{Action: "approve", Probability: decision.Some(0.8)},
			{Action: "block", Probability: decision.Some(0.2)},
		},
	}
	if err := row.Validate(); err != nil {
		panic(err)
	}
	var req decision.Request
	snapshot.Request([]*snapshot.Snapshot{row}, &req)
	fmt.Println(req.Scenario, req.Questions[0].Candidates)
	fmt.Println("stands for", row.Weight(), "decisions")
	// Output:
	// fraud [approve block]
	// stands for 4 decisions
}

func ExampleLedger_Check() {
	l := snapshot.Ledger{Offered: 10, Written: 8, SampledOut: 1}
	fmt.Println(l.Check())
	l.Drop("queue-full", 1)
	fmt.Println(l.Check())
	// Output:
	// ledger does not close: offered 10, but written 8 + sampled out 1 + dropped 0 = 9
	// <nil>
}
