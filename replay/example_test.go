package replay_test

import (
	"context"
	"fmt"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/replay"
	"github.com/clefbench/clefbench/snapshot"
)

// always is the smallest backend there is.
type always string

func (a always) Info() decision.Info         { return decision.Info{Name: string(a), Kind: "constant"} }
func (a always) Close(context.Context) error { return nil }
func (a always) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	for i := range out.Decisions {
		out.Decisions[i] = decision.Decision{Status: decision.OK, Action: string(a)}
	}
	return nil
}

func ExampleRun() {
	recorded := func(yield func(*snapshot.Snapshot, error) bool) {
		yield(&snapshot.Snapshot{
			Ref: snapshot.Ref{Segment: "host-boot-0000"},
			ID:  decision.ID{1}, RequestID: decision.ID{1}, Scenario: "edge", Time: time.Unix(0, 0),
			Status: decision.OK, Action: "block", KeepProb: 1,
			Candidates: []decision.Candidate{{Action: "allow"}, {Action: "block"}},
		}, nil)
	}
	plan := replay.DefaultPlan()
	plan.Audit = 0
	lanes := []replay.Lane{{Name: "recorded"}, {Name: "open", Backend: always("allow")}}
	for o, err := range replay.Run(context.Background(), recorded, lanes, plan) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if o.Phase == snapshot.PhaseMeasured {
			fmt.Println(o.Backend, o.Action)
		}
	}
	// Unordered output:
	// recorded block
	// open allow
}
