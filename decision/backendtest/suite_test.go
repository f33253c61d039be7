package backendtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

// sound is a small engine that keeps the contract; the broken backends below each take
// one rule away from it.
type sound struct{ bind *decision.Binder }

func newSound() *sound { return &sound{decision.NewBinder("metrics.x", "headers.user-agent")} }

func (s *sound) Info() decision.Info {
	return decision.Info{
		Name: "sound", Kind: "test", Attributes: []string{"metrics.x", "headers.user-agent"},
		Artefact:     decision.Artefact{StrategyVersion: "1", StrategyDigest: [32]byte{1}},
		Capabilities: decision.Capabilities{Deterministic: true, Confidence: true, Timeout: decision.TimeoutChecked},
	}
}

func (s *sound) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = s.Info().Artefact
	for i := range out.Decisions {
		s.one(req, &out.Decisions[i])
	}
	return nil
}

func (s *sound) one(req *decision.Request, d *decision.Decision) {
	at := s.bind.Bind(req.Attrs.Schema)
	x, ok := req.Attrs.At(at[0]).Number()
	if !ok || x != x {
		d.Status, d.Reason = decision.Abstain, decision.Reason{Kind: decision.ReasonFallback, Skipped: 1}
		return
	}
	d.Status, d.Action, d.Reason = decision.OK, "allow", decision.Reason{Kind: decision.ReasonMatch, Rule: "low"}
	if x > 0.5 || strings.Contains(req.Attrs.At(at[1]).Str(), "bot") {
		d.Action, d.Reason.Rule, d.Params = "block", "high", `{"ttl":60}`
	}
	d.Confidence, d.ConfidenceDef = decision.Some(0.75), "peak"
	d.Candidates = append(d.Candidates,
		decision.Candidate{Action: "allow", Probability: decision.Some(0.25)},
		decision.Candidate{Action: "block", Probability: decision.Some(0.75)})
}

func (s *sound) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	var d decision.Decision
	s.one(req, &d)
	return &decision.Explanation{Reason: d.Reason}, nil
}

func (s *sound) Close(context.Context) error { return nil }

func cases(t *testing.T) backendtest.Cases {
	t.Helper()
	schema, err := decision.NewSchema(
		decision.Field{Name: "metrics.x", Type: decision.Double},
		decision.Field{Name: "headers.user-agent", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	c := backendtest.Cases{File: true}
	for _, row := range []struct {
		x  float64
		ua string
	}{{0.1, "Mozilla"}, {0.9, "Mozilla"}, {0.2, "a bot"}} {
		c.Requests = append(c.Requests, &decision.Request{
			ID: decision.NewID(time.Unix(1e9, 0)), Scenario: "api-abuse", Now: time.Unix(1e9, 0),
			Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(row.x), decision.StringValue(row.ua)}},
			Questions: []decision.Question{{Type: decision.QuestionAction, Candidates: []string{"allow", "block"}}},
			Body:      []byte("{}"), Features: []float32{1, 2},
		})
	}
	return c
}

func TestSoundBackendPasses(t *testing.T) {
	backendtest.Run(t, func(*testing.T) decision.Backend { return newSound() }, cases(t))
	for _, err := range backendtest.Check(newSound(), cases(t)) {
		t.Error(err)
	}
}

// broken overrides parts of a sound backend.
type broken struct {
	*sound
	decide  func(s *sound, req *decision.Request, out *decision.Response) error
	info    func(i decision.Info) decision.Info
	explain func(e *decision.Explanation)
	close   func() error
}

func (b *broken) Info() decision.Info {
	i := b.sound.Info()
	if b.info != nil {
		i = b.info(i)
	}
	return i
}

func (b *broken) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	if b.decide != nil {
		return b.decide(b.sound, req, out)
	}
	return b.sound.Decide(ctx, req, out)
}

func (b *broken) Explain(ctx context.Context, req *decision.Request) (*decision.Explanation, error) {
	e, err := b.sound.Explain(ctx, req)
	if b.explain != nil {
		b.explain(e)
	}
	return e, err
}

func (b *broken) Close(ctx context.Context) error {
	if b.close != nil {
		return b.close()
	}
	return b.sound.Close(ctx)
}

// after decides soundly and then changes the answer.
func after(change func(req *decision.Request, out *decision.Response)) func(*sound, *decision.Request, *decision.Response) error {
	return func(s *sound, req *decision.Request, out *decision.Response) error {
		err := s.Decide(context.Background(), req, out)
		change(req, out)
		return err
	}
}

// first changes the first decision only, when there is one.
func first(change func(d *decision.Decision)) func(*sound, *decision.Request, *decision.Response) error {
	return after(func(_ *decision.Request, out *decision.Response) {
		if len(out.Decisions) > 0 {
			change(&out.Decisions[0])
		}
	})
}

// writing changes requests, though never the caller's own: those are shared by the
// concurrent check, and this test is about the finding, not about the race detector.
func writing(c backendtest.Cases, change func(req *decision.Request)) func(*sound, *decision.Request, *decision.Response) error {
	return after(func(req *decision.Request, _ *decision.Response) {
		if !slices.Contains(c.Requests, req) {
			change(req)
		}
	})
}

type breakage struct {
	name string
	// rule is the check that must find it, and want a part of what it must say.
	rule, want string
	backend    *broken
}

func breakages(c backendtest.Cases) []breakage {
	var calls, running atomic.Int64
	var kept atomic.Pointer[decision.Request]
	var infos atomic.Int64
	closed := false
	return append(answerBreakages(), []breakage{
		{"keeps old memory", "reuse of out", "artefact is still there", &broken{decide: func(s *sound, req *decision.Request, out *decision.Response) error {
			old := out.Artefact
			err := s.Decide(context.Background(), req, out)
			if old.EngineVersion != "" {
				out.Artefact = old
			}
			return err
		}}},
		{"keeps old candidates", "reuse of out", "candidates is still there", &broken{decide: func(s *sound, req *decision.Request, out *decision.Response) error {
			var old []decision.Candidate
			if len(out.Decisions) > 0 {
				old = append(old, out.Decisions[0].Candidates...)
			}
			err := s.Decide(context.Background(), req, out)
			if len(out.Decisions) > 0 {
				out.Decisions[0].Candidates = append(out.Decisions[0].Candidates, old...)
			}
			return err
		}}},
		{"counts calls", "same request, same answer", "the answer was", &broken{decide: first(func(d *decision.Decision) {
			if calls.Add(1)%2 == 0 {
				d.Reason.Rule = "even"
			}
		})}},
		{"remembers the request", "request memory is reused", "the answer was", &broken{decide: func(s *sound, req *decision.Request, out *decision.Response) error {
			if kept.Swap(req) == req { // the same pointer is taken for the same content
				return s.Decide(context.Background(), &decision.Request{Questions: req.Questions}, out)
			}
			return s.Decide(context.Background(), req, out)
		}}},
		{"not safe together", "concurrent use", "worker", &broken{decide: first(func(d *decision.Decision) {
			if running.Add(1) > 1 {
				d.Reason.Rule = "crowded"
			}
			time.Sleep(time.Millisecond)
			running.Add(-1)
		})}},
		{"writes the request", "request is read-only", "is now", &broken{decide: writing(c, func(req *decision.Request) { req.Scenario = "mine" })}},
		{"writes the candidates", "request is read-only", "is now", &broken{decide: writing(c, func(req *decision.Request) {
			if len(req.Questions) > 0 && len(req.Questions[0].Candidates) > 1 {
				req.Questions[0].Candidates[1] = "mine"
			}
		})}},
		{"writes the features", "request is read-only", "features", &broken{decide: writing(c, func(req *decision.Request) { req.Features[0] = 9 })}},
		{"info moves", "info", "is now", &broken{info: func(i decision.Info) decision.Info {
			i.Artefact.EngineVersion = strings.Repeat("x", int(infos.Add(1)%7))
			return i
		}}},
		{"nameless", "info", "both are needed", &broken{info: func(i decision.Info) decision.Info { i.Name = ""; return i }}},
		{"no timeout kind", "info", "neither checked nor hard", &broken{info: func(i decision.Info) decision.Info { i.Capabilities.Timeout = ""; return i }}},
		{"no digest", "info", "no strategy digest, though", &broken{info: func(i decision.Info) decision.Info { i.Artefact = decision.Artefact{}; return i }}},
		{"other digest in the response", "info", "the response names digest", &broken{decide: after(func(_ *decision.Request, out *decision.Response) { out.Artefact.StrategyDigest[5] = 1 })}},
		{"no digest in the response", "info", "names no strategy digest", &broken{decide: after(func(_ *decision.Request, out *decision.Response) { out.Artefact = decision.Artefact{} })}},
		{"explains another rule", "explain agrees", "explain gives the reason", &broken{explain: func(e *decision.Explanation) { e.Reason.Rule = "other" }}},
		{"closes once", "close", "already closed", &broken{close: func() error {
			if closed {
				return errors.New("already closed")
			}
			closed = true
			return nil
		}}},
	}...)
}

// answerBreakages are those that a single answer shows.
func answerBreakages() []breakage {
	return []breakage{
		{"one decision too few", "one decision a question", "decisions for", &broken{decide: after(func(_ *decision.Request, out *decision.Response) {
			out.Decisions = out.Decisions[:len(out.Decisions)/2]
		})}},
		{"panics without a question", "one decision a question", "panic", &broken{decide: after(func(_ *decision.Request, out *decision.Response) { _ = out.Decisions[0] })}},
		{"no status", "valid answer", "status none", &broken{decide: first(func(d *decision.Decision) { d.Status = decision.StatusNone })}},
		{"a status of its own", "valid answer", "status invalid", &broken{decide: first(func(d *decision.Decision) { d.Status = 99 })}},
		{"ok without an action", "valid answer", "without an action", &broken{decide: first(func(d *decision.Decision) { d.Action = "" })}},
		{"abstains with an action", "valid answer", "with the action", &broken{decide: first(func(d *decision.Decision) { d.Status = decision.Abstain; d.Action = "allow" })}},
		{"error without a code", "valid answer", "without an error code", &broken{decide: first(func(d *decision.Decision) { d.Status, d.Action = decision.Error, "" })}},
		{"ok with a code", "valid answer", "with the error code", &broken{decide: first(func(d *decision.Decision) { d.ErrorCode = "late" })}},
		{"params that are no object", "valid answer", "no JSON object", &broken{decide: first(func(d *decision.Decision) { d.Params = "[1]" })}},
		{"confidence in percent", "valid answer", "confidence 75", &broken{decide: first(func(d *decision.Decision) { d.Confidence.V = 75 })}},
		{"confidence without a definition", "valid answer", "under the definition \"\"", &broken{decide: first(func(d *decision.Decision) { d.ConfidenceDef = "" })}},
		{"probability 2", "valid answer", "probability 2", &broken{decide: first(func(d *decision.Decision) {
			d.Candidates = []decision.Candidate{{Action: "allow", Probability: decision.Some(2.0)}}
		})}},
		{"probabilities over 1", "valid answer", "add up to", &broken{decide: first(func(d *decision.Decision) {
			d.Candidates = []decision.Candidate{{Action: "allow", Probability: decision.Some(0.9)}, {Action: "block", Probability: decision.Some(0.9)}}
		})}},
		{"a candidate twice", "valid answer", "stands twice", &broken{decide: first(func(d *decision.Decision) { d.Candidates = []decision.Candidate{{Action: "a"}, {Action: "a"}} })}},
		{"negative stage", "valid answer", "a stage of", &broken{decide: after(func(_ *decision.Request, out *decision.Response) { out.Stages.Rules = decision.Some(-time.Second) })}},
		{"a Go error as an answer", "requests are answered", "broken backend", &broken{decide: func(s *sound, req *decision.Request, out *decision.Response) error {
			out.Reset(len(req.Questions))
			return errors.New("do not know")
		}}},
		{"fails everything", "requests are answered", "http-503", &broken{decide: after(func(_ *decision.Request, out *decision.Response) { out.FailAll(decision.Error, "http-503", "down") })}},
		{"panics without a schema", "missing attributes", "no schema: panic", &broken{decide: after(func(req *decision.Request, _ *decision.Response) { _ = req.Attrs.Schema.Fields()[0] })}},
		{"panics at a null", "missing attributes", "null metrics.x", &broken{decide: after(func(req *decision.Request, _ *decision.Response) {
			if len(req.Attrs.Values) > 0 && req.Attrs.Values[0].IsNull() {
				panic("null")
			}
		})}},
		{"confident at NaN", "missing attributes", "NaN metrics.x", &broken{decide: after(func(req *decision.Request, out *decision.Response) {
			if x := req.Attrs.Get("metrics.x").Double(); x != x {
				out.Decisions[0].Confidence, out.Decisions[0].ConfidenceDef = decision.Some(x), "peak"
			}
		})}},
		{"reads by position", "schema order", "the answer was", &broken{decide: after(func(req *decision.Request, out *decision.Response) {
			if len(out.Decisions) > 0 && req.Attrs.At(0).Type() != decision.Double {
				out.Decisions[0].Reason.Rule = "lost"
			}
		})}},
		{"chooses what is offered", "unknown candidates", "made-up candidate", &broken{decide: after(func(req *decision.Request, out *decision.Response) {
			for i := range out.Decisions {
				out.Decisions[i].Action = req.Questions[i].Candidates[0]
			}
		})}},
		{"answers nothing when nothing fits", "unknown candidates", "no status", &broken{decide: after(func(req *decision.Request, out *decision.Response) {
			for i := range out.Decisions {
				if !req.Questions[i].Allows(out.Decisions[i].Action) {
					out.Decisions[i] = decision.Decision{}
				}
			}
		})}},
	}
}

// Every rule of the suite is shown to fail: a gate that never failed is no gate.
func TestBrokenBackendsAreFound(t *testing.T) {
	c := cases(t)
	for _, br := range breakages(c) {
		t.Run(br.name, func(t *testing.T) {
			br.backend.sound = newSound()
			found := backendtest.Check(br.backend, c)
			for _, err := range found {
				if strings.HasPrefix(err.Error(), br.rule+": ") && strings.Contains(err.Error(), br.want) {
					return
				}
			}
			t.Errorf("no finding %q with %q among %d:\n%v", br.rule, br.want, len(found), errors.Join(found...))
		})
	}
}

// obedient notices a canceled context, in a wrong way.
type obedient struct {
	*sound
	answer func(out *decision.Response) error
}

func (b obedient) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	if ctx.Err() != nil {
		out.Reset(len(req.Questions))
		return b.answer(out)
	}
	return b.sound.Decide(ctx, req, out)
}

func TestCanceledContext(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(out *decision.Response) error
		want   string
	}{
		"context error":  {func(*decision.Response) error { return context.Canceled }, ""},
		"outcome":        {func(out *decision.Response) error { out.FailAll(decision.Error, "canceled", "canceled"); return nil }, ""},
		"other error":    {func(*decision.Response) error { return errors.New("stopped") }, "canceled context: request 0: stopped"},
		"empty decision": {func(*decision.Response) error { return nil }, "canceled context: request 0: question 0: status none"},
		"no decision":    {func(out *decision.Response) error { out.Decisions = nil; return nil }, "canceled context: request 0: 0 decisions"},
	} {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(backendtest.Check(obedient{newSound(), tc.answer}, cases(t))...)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWhatIsNotPromisedIsNotHeld(t *testing.T) {
	c := cases(t)
	c.AllowError, c.Router, c.OpenActions, c.File = true, true, true, false
	var n atomic.Int64
	loose := &broken{sound: newSound(),
		info: func(i decision.Info) decision.Info { i.Capabilities.Deterministic = false; return i },
		decide: after(func(req *decision.Request, out *decision.Response) {
			out.Artefact.StrategyDigest = [32]byte{byte(n.Add(1))}
			for i := range out.Decisions {
				if n.Load()%3 == 0 {
					out.Decisions[i].Fail(decision.Timeout, "timeout", "late")
				} else if len(req.Questions[i].Candidates) > 0 && out.Decisions[i].Status == decision.OK {
					out.Decisions[i].Action = req.Questions[i].Candidates[0]
				}
			}
		})}
	for _, err := range backendtest.Check(loose, c) {
		t.Error(err)
	}
}

// batched adds a batch path, which change spoils.
type batched struct {
	*sound
	change func(a *decision.Answers)
}

func (b batched) DecideBatch(ctx context.Context, in *decision.Batch, out *decision.Answers) error {
	out.Reset(in.Len())
	for i := range out.Rows {
		req := &decision.Request{Attrs: decision.Attrs{Schema: in.Schema()}, Questions: make([]decision.Question, 1)}
		for c := range in.Schema().Len() {
			req.Attrs.Values = append(req.Attrs.Values, in.Column(c).Value(i))
		}
		var one decision.Response
		if err := b.Decide(ctx, req, &one); err != nil {
			return err
		}
		d, r := one.Decisions[0], &out.Rows[i]
		*r = decision.Answer{Status: d.Status, Kind: d.Reason.Kind, Skipped: d.Reason.Skipped, Action: int32(len(out.Actions)), Rule: int32(len(out.Rules))}
		out.Actions, out.Rules = append(out.Actions, d.Action), append(out.Rules, d.Reason.Rule)
	}
	b.change(out)
	return nil
}

func TestBatchesAreHeldToDecide(t *testing.T) {
	for want, change := range map[string]func(a *decision.Answers){
		"":                      func(*decision.Answers) {},
		"0 answers for 1 rows":  func(a *decision.Answers) { a.Rows = a.Rows[:len(a.Rows)-1] },
		"row 0 of 1: the batch": func(a *decision.Answers) { a.Rows[0].Skipped++ },
		"row 1 of 3: the batch": func(a *decision.Answers) { a.Rows[len(a.Rows)/2].Kind += decision.ReasonKind(len(a.Rows) / 2) },
	} {
		found := fmt.Sprint(backendtest.Check(batched{newSound(), change}, cases(t)))
		if want == "" && found != "[]" || !strings.Contains(found, want) {
			t.Errorf("want %q, found %s", want, found)
		}
	}
}

func TestNoRequestsIsAFinding(t *testing.T) {
	if got := backendtest.Check(newSound(), backendtest.Cases{}); len(got) != 1 {
		t.Errorf("findings %v, want one", got)
	}
}

func ExampleCheck() {
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.x", Type: decision.Double})
	if err != nil {
		panic(err)
	}
	req := &decision.Request{
		Attrs:     decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(0.9)}},
		Questions: []decision.Question{{Candidates: []string{"allow", "block"}}},
	}
	c := backendtest.Cases{Requests: []*decision.Request{req}}
	fmt.Println("sound:", len(backendtest.Check(newSound(), c)), "findings")

	forgetful := &broken{sound: newSound(), decide: first(func(d *decision.Decision) { d.ConfidenceDef = "" })}
	name, _, _ := strings.Cut(backendtest.Check(forgetful, c)[0].Error(), ":")
	fmt.Println("forgetful:", name)
	// Output:
	// sound: 0 findings
	// forgetful: valid answer
}
