package replay

import (
	"context"
	"errors"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func allow(_ int, req *decision.Request, out *decision.Response) error {
	for i := range out.Decisions {
		out.Decisions[i] = decision.Decision{Status: decision.OK, Action: req.Questions[i].Candidates[0]}
	}
	return nil
}

// lazy fills nothing in and does not even reset.
type lazy struct{ fake }

func (*lazy) Decide(context.Context, *decision.Request, *decision.Response) error { return nil }

func TestAnAnswerIsNotInherited(t *testing.T) {
	all := collect(t, Run(t.Context(), rows(200, 1, "s"), []Lane{{"good", &fake{decide: allow}}, {"lazy", &lazy{}}}, quiet()))
	for _, o := range measured(all, "lazy") {
		if o.Status != decision.Error || o.ErrorCode != decision.CodeBadResponse {
			t.Fatalf("a backend that does nothing answers %v %q", o.Status, o.Action)
		}
	}
}

// vandal changes whatever it is given.
type vandal struct{ fake }

func (*vandal) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	c := req.Questions[0].Candidates
	c[0], c[1] = c[1], c[0]
	req.Attrs.Values[0] = decision.StringValue("changed")
	req.Body[0] = 'X'
	req.Features[0] = 99
	req.Questions = req.Questions[:0]
	req.Scenario = "other"
	out.Reset(0)
	return nil
}

func TestOneLaneCannotChangeWhatAnotherIsAsked(t *testing.T) {
	src := func(yield func(*snapshot.Snapshot, error) bool) {
		for s, err := range rows(100, 1, "s") {
			s.Input, s.Features = []byte("body"), []float32{1}
			if !yield(s, err) {
				return
			}
		}
	}
	watch := &fake{decide: func(n int, req *decision.Request, out *decision.Response) error {
		if req.Scenario != "s" || string(req.Body) != "body" || req.Features[0] != 1 || req.Attrs.Get("path").Str() != "/" {
			t.Errorf("call %d sees %+v", n, req)
		}
		return allow(n, req, out)
	}}
	plan := quiet()
	plan.Audit, plan.Repeats = 5, 2
	all := collect(t, Run(t.Context(), src, []Lane{{"vandal", &vandal{}}, {"watch", watch}}, plan))
	for _, o := range measured(all, "watch") {
		if o.Action != "allow" {
			t.Fatalf("action %q", o.Action)
		}
	}
	if got := measured(all, "vandal"); len(got) != 100 || got[0].Status != decision.Error {
		t.Errorf("%d outcomes of the vandal, status %v", len(got), got[0].Status)
	}
}

func TestAnInterruptedBlockIsLeftOutForAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := &fake{decide: func(n int, req *decision.Request, out *decision.Response) error {
		if n == 1+3+2*16 { // cold, warm-up, two blocks: the last call of the second
			cancel()
			return ctx.Err()
		}
		return allow(n, req, out)
	}}
	count := map[string]int{}
	var last error
	for o, err := range Run(ctx, rows(64, 1, "s"), []Lane{{"stop", stop}, {"other", &fake{decide: allow}}}, quiet()) {
		if last = err; err != nil {
			continue
		}
		if o.Phase == snapshot.PhaseMeasured {
			count[o.Backend]++
			if o.Status == decision.Error {
				t.Error("the interrupt counts as an error of the backend")
			}
		}
	}
	if !errors.Is(last, context.Canceled) || count["stop"] != 16 || count["other"] != 16 {
		t.Errorf("after %v: %v measured", last, count)
	}
}

func TestEveryLaneHasEveryPlaceOnceARound(t *testing.T) {
	lanes := []Lane{{"a", seeded()}, {"b", seeded()}, {"c", seeded()}}
	places := map[string]map[int32]int{"a": {}, "b": {}, "c": {}}
	for _, o := range collect(t, Run(t.Context(), rows(16*30, 1, "s"), lanes, quiet())) {
		if o.Phase == snapshot.PhaseMeasured {
			places[o.Backend][o.Position]++
		}
	}
	for lane, p := range places {
		for pos := range int32(3) {
			if p[pos] != 160 {
				t.Errorf("lane %s was %d times in place %d of 160", lane, p[pos], pos)
			}
		}
	}
}

func TestAnExplanationCountsForItsRowOnly(t *testing.T) {
	e := &decision.Explanation{Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "r"}, Position: decision.Position{File: "f"}}
	if !explains(e, &snapshot.Outcome{Reason: decision.ReasonMatch, RuleID: "r"}) ||
		explains(e, &snapshot.Outcome{Reason: decision.ReasonMatch, RuleID: "other"}) ||
		explains(nil, &snapshot.Outcome{Reason: decision.ReasonMatch, RuleID: "r"}) {
		t.Error("an explanation is of one answer")
	}
}

func TestRedactionCountsForABackendThatReadsAnything(t *testing.T) {
	s := &snapshot.Snapshot{Redacted: []string{"path:hash"}}
	if got := missingAttributes(nil, s); len(got) != 1 {
		t.Errorf("missing %v", got)
	}
}
