package backendtest

import (
	"context"
	"fmt"

	"github.com/clefbench/clefbench/decision"
)

// checkBatch asks each request also as a batch of one and of three rows, the middle one
// without values, into answers that are used again.
func checkBatch(b decision.Backend, c Cases) []error {
	batcher, ok := b.(decision.Batcher)
	if !ok {
		return nil
	}
	out := &decision.Answers{Rows: []decision.Answer{{Status: decision.Denied, Action: 1}}, Actions: []string{"stale"}}
	return each(c, func(req *decision.Request) error {
		single := &decision.Request{ID: req.ID, Scenario: req.Scenario, Attrs: req.Attrs, Questions: []decision.Question{{}}, Now: req.Now,
			Features: req.Features, FeatureSet: req.FeatureSet}
		none := &decision.Request{ID: req.ID, Scenario: req.Scenario, Attrs: decision.Attrs{Schema: req.Attrs.Schema}, Questions: []decision.Question{{}}}
		for _, rows := range [][]*decision.Request{{single}, {single, none, single}} {
			in := decision.NewBatch(req.Attrs.Schema)
			for _, r := range rows {
				if err := in.Append(r.Attrs.Values, r.Now); err != nil {
					return nil // values of other types than the schema's do not come in batches
				}
				if len(r.Features) > 0 {
					in.SetFeatures(r.FeatureSet, r.Features)
				}
			}
			if err := sameAsBatch(b, batcher, rows, in, out); err != nil {
				return err
			}
		}
		return nil
	})
}

func sameAsBatch(b decision.Backend, batcher decision.Batcher, rows []*decision.Request, in *decision.Batch, out *decision.Answers) error {
	if err := batcher.DecideBatch(context.Background(), in, out); err != nil {
		return fmt.Errorf("it returned a Go error: %w", err)
	}
	if len(out.Rows) != len(rows) {
		return fmt.Errorf("%d answers for %d rows", len(out.Rows), len(rows))
	}
	for i, r := range rows {
		want, err := decide(b, r)
		if err != nil {
			return err
		}
		w, got := want.Decisions[0], out.At(i)
		if got.Status != w.Status || got.Action != w.Action || got.Reason != w.Reason {
			return fmt.Errorf("row %d of %d: the batch says %s %q by %v, Decide %s %q by %v",
				i, len(rows), got.Status, got.Action, got.Reason, w.Status, w.Action, w.Reason)
		}
	}
	return nil
}
