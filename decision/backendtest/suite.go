package backendtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// Cases are what a backend is asked, and what it does not promise.
type Cases struct {
	// Requests are asked as they are and in many variants. There must be at least one;
	// none is modified. Each should carry one question or more and a schema.
	Requests []*decision.Request
	// AllowError accepts timeout, error and not-replayable for the requests as they are.
	// Without it each of them must be answered.
	AllowError bool
	// File says that the backend was made from a file, so that its content has a digest
	// which Info and every response must name.
	File bool
	// Router says that answers carry the digest of the part that decided, which need not
	// be the digest in Info.
	Router bool
	// OpenActions says that the backend may choose any candidate that it is offered (a
	// language model). Without it, choosing a made-up candidate is a finding: an engine
	// with a fixed set of actions never takes one up because it was offered.
	OpenActions bool
}

// check is one rule of the contract. run returns what was found wrong.
type check struct {
	name        string
	explanation string
	run         func(b decision.Backend, c Cases) []error
}

// checks returns the suite in the order in which it runs; closing comes last.
func checks() []check {
	return []check{
		{"one decision a question", "Decide must fill out.Decisions with exactly one decision for each of req.Questions, in order, for no question, one and many", checkCount},
		{"valid answer", "a decision needs a status from the set, an action exactly with ok (denied may have one), a code exactly with timeout, error and not-replayable, JSON params, and probabilities and confidence in [0,1]", checkValid},
		{"requests are answered", "the requests as given must be answered (ok, denied or abstain), unless the cases say AllowError", checkAnswered},
		{"reuse of out", "Decide must call out.Reset: nothing of an earlier call may be left in a reused response", checkReuse},
		{"same request, same answer", "a backend whose capabilities say Deterministic must give the same answer to the same request", checkDeterministic},
		{"request memory is reused", "Decide must not keep req after it returned: the caller fills the same request with the next content", checkRequestReuse},
		{"concurrent use", "Decide must be safe for concurrent use, and answer as it does alone", checkConcurrent},
		{"missing attributes", "an absent, null, NaN or wrongly typed attribute must not panic, must not be a Go error and must give a valid status", checkMissing},
		{"schema order", "attributes are found by name: another order of the schema must give the same answer", checkSchemaOrder},
		{"request is read-only", "Decide must not modify the request", checkReadOnly},
		{"unknown candidates", "with a candidate that the backend does not know, the answer must become action-not-allowed under Response.Check, or be no choice at all", checkCandidates},
		{"canceled context", "with a context that is done, Decide must still fill out, and may return the context's error only", checkCanceled},
		{"explain agrees", "an Explainer must name the same reason and rule as Decide", checkExplain},
		{"batch", "a Batcher must give each row of a batch the answer of Decide, parameters left out", checkBatch},
		{"info", "Info must be stable, name the backend and its kind, and name the file's digest where there is a file, as each response must", checkInfo},
		{"close", "Close must be idempotent, and Info must stay usable", checkClose},
	}
}

// Run checks the backend in one subtest a rule. open is called once for each, and must
// give a backend of its own; Run closes it.
func Run(t *testing.T, open func(t *testing.T) decision.Backend, c Cases) {
	t.Helper()
	if len(c.Requests) == 0 {
		t.Fatal("backendtest: no requests")
	}
	for _, ck := range checks() {
		t.Run(ck.name, func(t *testing.T) {
			b := open(t)
			for _, err := range guarded(ck, b, c) {
				t.Errorf("%v\nthe rule: %s", err, ck.explanation)
			}
			if err := b.Close(context.Background()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// Check runs the whole suite on one backend, which is closed afterwards, and returns
// the findings, each with the name of its rule and what the rule asks for. An empty
// result means that the backend keeps the contract.
func Check(b decision.Backend, c Cases) []error {
	if len(c.Requests) == 0 {
		return []error{errors.New("backendtest: no requests")}
	}
	var out []error
	for _, ck := range checks() {
		for _, err := range guarded(ck, b, c) {
			out = append(out, fmt.Errorf("%s: %w (the rule: %s)", ck.name, err, ck.explanation))
		}
	}
	return out
}

// guarded turns a panic of the backend into a finding, so that one broken rule does not
// hide the others.
func guarded(ck check, b decision.Backend, c Cases) (found []error) {
	defer func() {
		if r := recover(); r != nil {
			found = append(found, fmt.Errorf("panic: %v", r))
		}
	}()
	return ck.run(b, c)
}

// decide asks with a response of its own.
func decide(b decision.Backend, req *decision.Request) (*decision.Response, error) {
	out := new(decision.Response)
	err := decideInto(b, req, out)
	return out, err
}

// decideInto asks with the given response; a panic and a Go error are both errors here.
func decideInto(b decision.Backend, req *decision.Request, out *decision.Response) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := b.Decide(context.Background(), req, out); err != nil {
		return fmt.Errorf("it returned a Go error, which stands for a broken backend: %w", err)
	}
	if len(out.Decisions) != len(req.Questions) {
		return fmt.Errorf("%d decisions for %d questions", len(out.Decisions), len(req.Questions))
	}
	return nil
}

// each runs f on every request and names the request in what it finds.
func each(c Cases, f func(req *decision.Request) error) []error {
	var out []error
	for i, req := range c.Requests {
		if err := f(req); err != nil {
			out = append(out, fmt.Errorf("request %d: %w", i, err))
		}
	}
	return out
}
