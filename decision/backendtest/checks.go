package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/clefbench/clefbench/decision"
)

func checkCount(b decision.Backend, c Cases) []error {
	return each(c, func(req *decision.Request) error {
		for _, n := range []int{0, 1, 3, 1} {
			out := new(decision.Response)
			out.Reset(2)
			if err := decideInto(b, withQuestions(req, n), out); err != nil {
				return err
			}
		}
		return nil
	})
}

func checkValid(b decision.Backend, c Cases) []error {
	return each(c, func(req *decision.Request) error {
		out, err := decide(b, req)
		if err != nil {
			return err
		}
		return validResponse(out)
	})
}

func checkAnswered(b decision.Backend, c Cases) []error {
	if c.AllowError {
		return nil
	}
	return each(c, func(req *decision.Request) error {
		out, err := decide(b, req)
		if err != nil {
			return err
		}
		for i, d := range out.Decisions {
			if !d.Status.Answered() {
				return fmt.Errorf("question %d: %v %s %s", i, d.Status, d.ErrorCode, d.Error)
			}
		}
		return nil
	})
}

func checkReuse(b decision.Backend, c Cases) []error {
	return each(c, func(req *decision.Request) error {
		fresh, err := decide(b, req)
		if err != nil {
			return err
		}
		used := dirty(len(req.Questions) + 2)
		if err := decideInto(b, req, used); err != nil {
			return err
		}
		if left := leftover(used); left != "" {
			return fmt.Errorf("an earlier call's %s is still there", left)
		}
		if b.Info().Capabilities.Deterministic {
			return sameAnswer(fresh, used)
		}
		return nil
	})
}

func checkDeterministic(b decision.Backend, c Cases) []error {
	if !b.Info().Capabilities.Deterministic {
		return nil
	}
	first := make([]*decision.Response, len(c.Requests))
	for i, req := range c.Requests {
		out, err := decide(b, req)
		if err != nil {
			return []error{fmt.Errorf("request %d: %w", i, err)}
		}
		first[i] = out
	}
	var found []error
	for i := len(c.Requests) - 1; i >= 0; i-- {
		for range 2 {
			again, err := decide(b, c.Requests[i])
			if err == nil {
				err = sameAnswer(first[i], again)
			}
			if err != nil {
				found = append(found, fmt.Errorf("request %d: %w", i, err))
				break
			}
		}
	}
	return found
}

// checkRequestReuse walks through the requests twice with one Request value that is
// overwritten in place, as replay does.
func checkRequestReuse(b decision.Backend, c Cases) []error {
	if !b.Info().Capabilities.Deterministic {
		return nil
	}
	shared := new(decision.Request)
	var found []error
	for round := range 2 {
		for i, req := range c.Requests {
			want, err := decide(b, req)
			if err != nil {
				return append(found, fmt.Errorf("request %d: %w", i, err))
			}
			overwrite(shared, req)
			got, err := decide(b, shared)
			if err == nil {
				err = sameAnswer(want, got)
			}
			if err != nil {
				found = append(found, fmt.Errorf("request %d, round %d: %w", i, round, err))
			}
		}
	}
	return found
}

func checkConcurrent(b decision.Backend, c Cases) []error {
	const workers, rounds = 8, 20
	deterministic := b.Info().Capabilities.Deterministic
	want := make([]*decision.Response, len(c.Requests))
	for i, req := range c.Requests {
		var err error
		if want[i], err = decide(b, req); err != nil {
			return []error{err}
		}
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			out := new(decision.Response)
			for k := range rounds {
				i := (w + k) % len(c.Requests)
				err := decideInto(b, c.Requests[i], out)
				if err == nil && deterministic {
					err = sameAnswer(want[i], out)
				}
				if err != nil {
					errs[w] = fmt.Errorf("worker %d, request %d: %w", w, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return compact(errs)
}

func compact(errs []error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

func checkMissing(b decision.Backend, c Cases) []error {
	return each(c, func(req *decision.Request) error {
		for _, v := range missingVariants(req) {
			out, err := decide(b, v.req)
			if err == nil {
				err = validResponse(out)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", v.what, err)
			}
		}
		return nil
	})
}

func checkSchemaOrder(b decision.Backend, c Cases) []error {
	if !b.Info().Capabilities.Deterministic {
		return nil
	}
	return each(c, func(req *decision.Request) error {
		want, err := decide(b, req)
		if err != nil {
			return err
		}
		for _, v := range []*decision.Request{reversed(req), padded(req)} {
			got, err := decide(b, v)
			if err == nil {
				err = sameAnswer(want, got)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func checkReadOnly(b decision.Backend, c Cases) []error {
	return each(c, func(req *decision.Request) error {
		asked, kept := clone(req), clone(req)
		if _, err := decide(b, asked); err != nil {
			return err
		}
		if ex, ok := b.(decision.Explainer); ok {
			if _, err := ex.Explain(context.Background(), asked); err != nil {
				return fmt.Errorf("explain: %w", err)
			}
		}
		if !sameFeatures(asked.Features, kept.Features) {
			return fmt.Errorf("the features were %v and are now %v", kept.Features, asked.Features)
		}
		asked.Features, kept.Features = nil, nil
		if !reflect.DeepEqual(asked, kept) {
			return fmt.Errorf("the request was %+v and is now %+v", kept, asked)
		}
		return nil
	})
}

// sameFeatures compares bits, for a NaN is a value like any other here.
func sameFeatures(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// madeUp is an action that no strategy has.
const madeUp = "backendtest-no-such-action"

func checkCandidates(b decision.Backend, c Cases) []error {
	return each(c, func(req *decision.Request) error {
		asked := clone(req)
		for i := range asked.Questions {
			asked.Questions[i].Candidates = []string{madeUp}
		}
		out, err := decide(b, asked)
		if err != nil {
			return err
		}
		out.Check(asked)
		for i, d := range out.Decisions {
			switch {
			case d.ErrorCode == decision.CodeBadResponse:
				return fmt.Errorf("question %d: %s", i, d.Error)
			case d.Action == madeUp && !c.OpenActions:
				return fmt.Errorf("question %d: the made-up candidate %q was chosen", i, madeUp)
			}
		}
		return nil
	})
}

func checkCanceled(b decision.Backend, c Cases) []error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return each(c, func(req *decision.Request) error {
		out := new(decision.Response)
		if err := b.Decide(ctx, req, out); err != nil {
			if !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
		if len(out.Decisions) != len(req.Questions) {
			return fmt.Errorf("%d decisions for %d questions", len(out.Decisions), len(req.Questions))
		}
		return validResponse(out)
	})
}

func checkExplain(b decision.Backend, c Cases) []error {
	ex, ok := b.(decision.Explainer)
	if !ok || !b.Info().Capabilities.Deterministic {
		return nil
	}
	return each(c, func(req *decision.Request) error {
		out, err := decide(b, req)
		if err != nil || len(out.Decisions) == 0 {
			return err
		}
		why, err := ex.Explain(context.Background(), req)
		if err != nil {
			return fmt.Errorf("explain: %w", err)
		}
		if why == nil {
			return errors.New("explain returned nothing")
		}
		if got, want := why.Reason, out.Decisions[0].Reason; got != want {
			return fmt.Errorf("explain gives the reason %v %q (skipped %d), Decide gave %v %q (skipped %d)", got.Kind, got.Rule, got.Skipped, want.Kind, want.Rule, want.Skipped)
		}
		return nil
	})
}

func checkInfo(b decision.Backend, c Cases) []error {
	before := b.Info()
	found := infoFields(before, c)
	found = append(found, each(c, func(req *decision.Request) error {
		out, err := decide(b, req)
		if err != nil || !c.File {
			return err
		}
		switch got := out.Artefact.StrategyDigest; {
		case got == [32]byte{}:
			return errors.New("the response names no strategy digest")
		case !c.Router && got != before.Artefact.StrategyDigest:
			return fmt.Errorf("the response names digest %x, Info %x", got, before.Artefact.StrategyDigest)
		}
		return nil
	})...)
	if after := b.Info(); !reflect.DeepEqual(before, after) {
		found = append(found, fmt.Errorf("info was %+v and is now %+v", before, after))
	}
	return found
}

func infoFields(info decision.Info, c Cases) []error {
	var found []error
	if info.Name == "" || info.Kind == "" {
		found = append(found, fmt.Errorf("name %q, kind %q: both are needed", info.Name, info.Kind))
	}
	if k := info.Capabilities.Timeout; k != decision.TimeoutChecked && k != decision.TimeoutHard {
		found = append(found, fmt.Errorf("timeout capability %q is neither checked nor hard", k))
	}
	if c.File && info.Artefact.StrategyDigest == [32]byte{} {
		found = append(found, errors.New("no strategy digest, though there is a file"))
	}
	return found
}

func checkClose(b decision.Backend, _ Cases) []error {
	var found []error
	for i := range 3 {
		if err := b.Close(context.Background()); err != nil {
			found = append(found, fmt.Errorf("call %d: %w", i+1, err))
		}
	}
	if b.Info().Kind == "" {
		found = append(found, errors.New("info is empty after close"))
	}
	return found
}
