package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// fake is a backend whose answers a test chooses.
type fake struct {
	info   decision.Info
	calls  int
	decide func(n int, req *decision.Request, out *decision.Response) error
}

func (f *fake) Info() decision.Info         { return f.info }
func (f *fake) Close(context.Context) error { return nil }
func (f *fake) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	f.calls++
	if f.decide != nil {
		return f.decide(f.calls, req, out)
	}
	for i := range out.Decisions {
		out.Decisions[i] = decision.Decision{Status: decision.OK, Action: "allow"}
	}
	return nil
}

// rows makes n requests of per rows each; scenario alternates between the given ones.
func rows(n, per int, scenarios ...string) iter.Seq2[*snapshot.Snapshot, error] {
	schema, _ := decision.NewSchema(decision.Field{Name: "path", Type: decision.String})
	return func(yield func(*snapshot.Snapshot, error) bool) {
		var s snapshot.Snapshot
		for i := range n {
			for j := range per {
				s = snapshot.Snapshot{
					Ref:        snapshot.Ref{Segment: "seg", Row: int64(i*per + j)},
					ID:         decision.ID{1, byte(i >> 8), byte(i), byte(j)},
					RequestID:  decision.ID{2, byte(i >> 8), byte(i)},
					Status:     decision.OK,
					Question:   fmt.Sprintf("q%d", j),
					Time:       time.Unix(int64(i), 0).UTC(),
					Scenario:   scenarios[i%len(scenarios)],
					Attrs:      decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("/")}},
					Candidates: []decision.Candidate{{Action: "allow"}, {Action: "block", Probability: decision.Some(0.9)}},
					Action:     "block", Reason: decision.ReasonMatch, RuleID: "r1",
					Artefact: decision.Artefact{StrategyDigest: [32]byte{9}},
					Latency:  decision.Some(5 * time.Millisecond),
					KeepProb: 0.5,
				}
				if !yield(&s, nil) {
					return
				}
			}
		}
	}
}

func collect(t *testing.T, seq iter.Seq2[*snapshot.Outcome, error]) []*snapshot.Outcome {
	t.Helper()
	var out []*snapshot.Outcome
	for o, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		out = append(out, o.Clone())
	}
	return out
}

func measured(all []*snapshot.Outcome, lane string) []*snapshot.Outcome {
	return phase(all, lane, snapshot.PhaseMeasured)
}

func phase(all []*snapshot.Outcome, lane string, p snapshot.Phase) []*snapshot.Outcome {
	var out []*snapshot.Outcome
	for _, o := range all {
		if o.Backend == lane && o.Phase == p {
			out = append(out, o)
		}
	}
	return out
}

func quiet() Plan {
	p := DefaultPlan()
	p.Block, p.Warmup, p.Audit = 16, 3, 0
	return p
}

func TestFailuresAreOutcomes(t *testing.T) {
	b := &fake{decide: func(n int, req *decision.Request, out *decision.Response) error {
		switch req.ID[2] % 6 {
		case 0:
			return errors.New("broken")
		case 1:
			panic("boom")
		case 2:
			out.Decisions[0] = decision.Decision{Status: decision.OK, Action: "nuke"}
		case 3:
			out.Decisions = nil
		case 4:
			out.Decisions[0].Fail(decision.Timeout, "deadline", "late")
		case 5:
			out.Decisions[0] = decision.Decision{Status: decision.OK, Action: "allow"}
		}
		return nil
	}}
	got := measured(collect(t, Run(t.Context(), rows(60, 1, "s"), []Lane{{"b", b}}, quiet())), "b")
	if len(got) != 60 {
		t.Fatalf("%d outcomes for 60 decisions", len(got))
	}
	want := []struct {
		status decision.Status
		code   string
	}{
		{decision.Error, "backend-failed"}, {decision.Error, "backend-failed"},
		{decision.Error, decision.CodeActionNotAllowed}, {decision.Error, decision.CodeBadResponse},
		{decision.Timeout, "deadline"}, {decision.OK, ""},
	}
	for i, o := range got {
		if w := want[i%6]; o.Status != w.status || o.ErrorCode != w.code {
			t.Errorf("row %d: %v %q, want %v %q", i, o.Status, o.ErrorCode, w.status, w.code)
		}
		if o.Ref.Row != int64(i) || o.KeepProb != 0.5 || o.Recorded != "block" {
			t.Errorf("row %d: ref %v keep %v recorded %q", i, o.Ref, o.KeepProb, o.Recorded)
		}
	}
}

func TestColdWarmAndMeasuredAreApart(t *testing.T) {
	b := &fake{}
	plan := quiet()
	all := collect(t, Run(t.Context(), rows(40, 1, "s", "t"), []Lane{{"b", b}, {"rec", nil}}, plan))
	if got := len(phase(all, "b", snapshot.PhaseCold)); got != 2 {
		t.Errorf("%d cold outcomes for two scenarios", got)
	}
	if got := len(phase(all, "rec", snapshot.PhaseCold)); got != 0 {
		t.Errorf("%d cold outcomes of the record", got)
	}
	if want := 40 + 2*(1+plan.Warmup); b.calls != want {
		t.Errorf("%d calls, want %d", b.calls, want)
	}
	for _, o := range phase(all, "b", snapshot.PhaseCold) {
		if !o.Latency.Set {
			t.Error("cold call without latency")
		}
	}
}

func TestRequestsStayWhole(t *testing.T) {
	b := &fake{}
	got := measured(collect(t, Run(t.Context(), rows(10, 3, "s"), []Lane{{"b", b}}, quiet())), "b")
	if len(got) != 30 || b.calls != 10+1+3 {
		t.Fatalf("%d outcomes from %d calls", len(got), b.calls)
	}
	for i := 0; i < 30; i += 3 {
		if got[i].Latency != got[i+2].Latency || got[i].RequestID != got[i+2].RequestID || got[i+1].Question != "q1" {
			t.Errorf("request %d is not whole", i/3)
		}
	}
}

// Rows of a recorder's shadow are a second answer to a request that is there; a service
// that is itself in shadow has no other.
func TestShadowsAreNotAskedAgain(t *testing.T) {
	with := func(source string) int {
		seq := func(yield func(*snapshot.Snapshot, error) bool) {
			for s := range rows(4, 2, "s") {
				if s.RequestID[2]%2 == 1 {
					s.Applied, s.SourceID = snapshot.AppliedShadow, source
				}
				if !yield(s, nil) {
					return
				}
			}
		}
		return len(measured(collect(t, Run(t.Context(), seq, []Lane{{"b", &fake{}}}, quiet())), "b"))
	}
	if got := with((decision.ID{2}).String()); got != 4 {
		t.Errorf("%d outcomes of 2 requests with 2 rows, each shadowed", got)
	}
	if got := with("order-17"); got != 8 {
		t.Errorf("%d outcomes of 4 requests with 2 rows", got)
	}
}

func TestRecordedLaneRepeatsTheRecord(t *testing.T) {
	o := measured(collect(t, Run(t.Context(), rows(1, 1, "s"), []Lane{{"recorded", nil}}, quiet())), "recorded")[0]
	if o.Action != "block" || o.Latency.V != 5*time.Millisecond || o.Kind != RecordedKind || len(o.Candidates) != 2 {
		t.Errorf("got %+v", o)
	}
}

func TestSameSeedSameOrder(t *testing.T) {
	run := func(seed uint64) (order, actions []string) {
		plan := quiet()
		plan.Seed = seed
		lanes := []Lane{{"a", seeded()}, {"b", seeded()}, {"c", seeded()}}
		for _, o := range collect(t, Run(t.Context(), rows(200, 1, "s"), lanes, plan)) {
			order = append(order, o.Backend)
			actions = append(actions, o.Action)
		}
		return order, actions
	}
	p1, a1 := run(7)
	p2, a2 := run(7)
	p3, a3 := run(8)
	if !cmp.Equal(p1, p2) || !cmp.Equal(a1, a2) {
		t.Error("one seed gave two runs")
	}
	if cmp.Equal(p1, p3) || cmp.Equal(a1, a3) {
		t.Error("the seed changes nothing")
	}
	first := map[string]bool{}
	for i := 6; i < len(p1); i += 3 * 16 { // behind the cold calls, a block at a time
		first[p1[i]] = true
	}
	if len(first) != 3 {
		t.Errorf("only %v ever ran first", first)
	}
}

// seeded answers by the request's seed.
func seeded() *fake {
	return &fake{decide: func(_ int, req *decision.Request, out *decision.Response) error {
		out.Decisions[0] = decision.Decision{Status: decision.OK, Action: []string{"allow", "block"}[req.Seed&1]}
		return nil
	}}
}

func TestDeadline(t *testing.T) {
	slow := func(_ int, _ *decision.Request, out *decision.Response) error {
		time.Sleep(2 * time.Millisecond)
		out.Decisions[0] = decision.Decision{Status: decision.OK, Action: "allow"}
		return nil
	}
	plan := quiet()
	plan.Warmup, plan.Timeout = 0, time.Millisecond
	o := measured(collect(t, Run(t.Context(), rows(1, 1, "s"), []Lane{{"b", &fake{decide: slow}}}, plan)), "b")[0]
	if o.Status != decision.Timeout || o.Action != "" || o.Latency.V < plan.Timeout {
		t.Errorf("got %v %q after %v", o.Status, o.Action, o.Latency.V)
	}
}

func TestHardDeadlineReachesTheBackend(t *testing.T) {
	plan := quiet()
	plan.Warmup = 0
	var had bool
	b := &hard{had: &had}
	collect(t, Run(t.Context(), rows(1, 1, "s"), []Lane{{"b", b}}, plan))
	if !had {
		t.Error("the context has no deadline")
	}
}

type hard struct {
	fake
	had *bool
}

func (h *hard) Info() decision.Info {
	return decision.Info{Capabilities: decision.Capabilities{Timeout: decision.TimeoutHard}}
}

func (h *hard) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	_, *h.had = ctx.Deadline()
	return h.fake.Decide(ctx, req, out)
}

func TestCancelEndsWithTheContextsError(t *testing.T) {
	for _, lanes := range [][]Lane{{{"b", &fake{}}}, {{"recorded", nil}}} {
		ctx, cancel := context.WithCancel(t.Context())
		n, last := 0, error(nil)
		for _, err := range Run(ctx, rows(100, 1, "s"), lanes, DefaultPlan()) {
			last = err
			if n++; n == 50 {
				cancel()
			}
			if n > 1000 {
				t.Fatal("runs on after cancel")
			}
		}
		cancel()
		if !errors.Is(last, context.Canceled) {
			t.Errorf("last error %v", last)
		}
	}
}

func TestSourceErrorPassesOn(t *testing.T) {
	bad := errors.New("corrupt")
	src := func(yield func(*snapshot.Snapshot, error) bool) {
		for s := range rows(20, 1, "s") {
			if !yield(s, nil) {
				return
			}
		}
		yield(nil, bad)
	}
	var last error
	for _, err := range Run(t.Context(), src, []Lane{{"b", &fake{}}}, quiet()) {
		last = err
	}
	if !errors.Is(last, bad) {
		t.Errorf("last error %v", last)
	}
}

func TestPlanIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		lanes []Lane
		edit  func(*Plan)
	}{
		"no lanes":  {nil, func(*Plan) {}},
		"same name": {[]Lane{{"a", nil}, {"a", nil}}, func(*Plan) {}},
		"block":     {[]Lane{{"a", nil}}, func(p *Plan) { p.Block = 0 }},
		"repeats":   {[]Lane{{"a", nil}}, func(p *Plan) { p.Audit, p.Repeats = 5, 1 }},
		"warm-up":   {[]Lane{{"a", nil}}, func(p *Plan) { p.Warmup = -1 }},
	} {
		plan := DefaultPlan()
		tc.edit(&plan)
		for _, err := range Run(t.Context(), rows(1, 1, "s"), tc.lanes, plan) {
			if !errors.Is(err, ErrPlan) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestCPUTimeIsShared(t *testing.T) {
	if _, ok := cpuTime(); !ok {
		t.Skip("processor time is not measured on this system")
	}
	burn := func(_ int, _ *decision.Request, out *decision.Response) error {
		for start := time.Now(); time.Since(start) < 200*time.Microsecond; {
		}
		out.Decisions[0] = decision.Decision{Status: decision.OK, Action: "allow"}
		return nil
	}
	var total time.Duration
	for _, o := range measured(collect(t, Run(t.Context(), rows(100, 1, "s"), []Lane{{"b", &fake{decide: burn}}}, quiet())), "b") {
		if !o.Usage.CPU.Set {
			t.Fatal("no CPU time")
		}
		total += o.Usage.CPU.V
	}
	// Burning is wall time, so a busy machine gives less CPU than asked for.
	if total <= 0 {
		t.Errorf("100 x 200 us burnt, %v measured", total)
	}
}
