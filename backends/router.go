package backends

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/clefbench/clefbench/decision"
)

// CodeNoStrategy is the error code of a request whose scenario has no engine.
const CodeNoStrategy = "no-strategy"

// Router is the backend that [Open] returns: it sends each request to the engine of its
// scenario. It is safe for concurrent use when its engines are, and adds no allocation.
type Router struct {
	info decision.Info
	// engines holds each engine once. anyScenario sends everything to the first; else
	// routes gives the engine of a scenario.
	engines     []decision.Backend
	anyScenario bool
	routes      map[string]int
}

// explaining is a Router all of whose engines can say why.
type explaining struct{ *Router }

// single is the router of one engine, for all scenarios or those that it declares.
func single(spec Spec, b decision.Backend) decision.Backend {
	r := &Router{info: b.Info(), engines: []decision.Backend{b}, routes: map[string]int{}}
	r.anyScenario = len(r.info.Scenarios) == 0
	for _, s := range r.info.Scenarios {
		r.routes[s] = 0
	}
	return r.named(spec)
}

// perScenario is the router of one engine for each scenario.
func perScenario(spec Spec, engines map[string]decision.Backend) decision.Backend {
	r := &Router{info: aggregate(engines), routes: map[string]int{}}
	for _, s := range r.info.Scenarios {
		r.routes[s] = len(r.engines)
		r.engines = append(r.engines, engines[s])
	}
	return r.named(spec)
}

func (r *Router) named(spec Spec) decision.Backend {
	r.info.Name, r.info.Kind = spec.Name, spec.Kind
	for _, b := range r.engines {
		if _, ok := b.(decision.Explainer); !ok {
			return r
		}
	}
	return explaining{r}
}

// aggregate describes several engines as one: what all of them promise, what any of
// them reads.
func aggregate(routes map[string]decision.Backend) decision.Info {
	info := decision.Info{Capabilities: decision.Capabilities{Deterministic: true, Confidence: true, Timeout: decision.TimeoutHard}}
	info.Scenarios = slices.Sorted(maps.Keys(routes))
	digest := sha256.New()
	attrs := map[string]bool{}
	for i, scenario := range info.Scenarios {
		part := routes[scenario].Info()
		fmt.Fprintf(digest, "%d:%s", len(scenario), scenario)
		digest.Write(part.Artefact.StrategyDigest[:])
		for _, a := range part.Attributes {
			attrs[a] = true
		}
		mergeCapabilities(&info.Capabilities, part.Capabilities)
		if i == 0 {
			info.Artefact = part.Artefact
		}
		mergeArtefact(&info.Artefact, part.Artefact)
	}
	info.Attributes = slices.Sorted(maps.Keys(attrs))
	digest.Sum(info.Artefact.StrategyDigest[:0])
	return info
}

func mergeCapabilities(sum *decision.Capabilities, part decision.Capabilities) {
	sum.Deterministic = sum.Deterministic && part.Deterministic
	sum.Confidence = sum.Confidence && part.Confidence
	sum.Network = sum.Network || part.Network
	if part.Timeout != decision.TimeoutHard {
		sum.Timeout = decision.TimeoutChecked
	}
}

// mergeArtefact keeps what all parts have in common; a version that differs is left
// out rather than taken from one of them.
func mergeArtefact(sum *decision.Artefact, part decision.Artefact) {
	for _, f := range []struct {
		sum  *string
		part string
	}{
		{&sum.EngineVersion, part.EngineVersion}, {&sum.StrategyVersion, part.StrategyVersion}, {&sum.ModelRequested, part.ModelRequested},
		{&sum.ModelResolved, part.ModelResolved}, {&sum.Provider, part.Provider}, {&sum.Dialect, part.Dialect},
	} {
		if *f.sum != f.part {
			*f.sum = ""
		}
	}
}

// Info describes the router under the user's name. With one engine a scenario, the
// strategy digest is the SHA-256 over each scenario (in order, as decimal length, a
// colon, the name) followed by its engine's digest; each response names the digest of
// the engine that decided.
func (r *Router) Info() decision.Info {
	info := r.info
	info.Scenarios, info.Attributes = slices.Clone(info.Scenarios), slices.Clone(info.Attributes)
	return info
}

// Route returns the engine of a scenario, or nil.
func (r *Router) Route(scenario string) decision.Backend {
	if i, ok := r.index(scenario); ok {
		return r.engines[i]
	}
	return nil
}

func (r *Router) index(scenario string) (int, bool) {
	if r.anyScenario {
		return 0, true
	}
	i, ok := r.routes[scenario]
	return i, ok
}

// Decide asks the engine of the request's scenario; without one, all decisions are
// not-replayable with [CodeNoStrategy].
func (r *Router) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	b := r.Route(req.Scenario)
	if b == nil {
		out.Reset(len(req.Questions))
		out.FailAll(decision.NotReplayable, CodeNoStrategy, "no strategy for this scenario")
		return nil
	}
	return b.Decide(ctx, req, out)
}

// Explain asks the engine of the request's scenario.
func (e explaining) Explain(ctx context.Context, req *decision.Request) (*decision.Explanation, error) {
	b := e.Route(req.Scenario)
	if b == nil {
		return &decision.Explanation{
			Reason: decision.Reason{Kind: decision.ReasonError},
			Text:   fmt.Sprintf("no strategy for the scenario %q; there is one for %q", req.Scenario, e.info.Scenarios),
		}, nil
	}
	return b.(decision.Explainer).Explain(ctx, req)
}

// Labels gathers what the engines know of themselves.
func (r *Router) Labels() decision.Labels {
	var l decision.Labels
	for _, b := range r.engines {
		if known, ok := b.(decision.Labeller); ok {
			l.Add(known.Labels())
		}
	}
	return l
}

// Warm hands each engine that wants it the requests of its scenarios.
func (r *Router) Warm(ctx context.Context, reqs []*decision.Request) error {
	own := make([][]*decision.Request, len(r.engines))
	for _, req := range reqs {
		if i, ok := r.index(req.Scenario); ok {
			own[i] = append(own[i], req)
		}
	}
	var errs []error
	for i, b := range r.engines {
		if w, ok := b.(decision.Warmer); ok {
			errs = append(errs, w.Warm(ctx, own[i]))
		}
	}
	return errors.Join(errs...)
}

// Ready asks each engine that can be down.
func (r *Router) Ready(ctx context.Context) error {
	var errs []error
	for _, b := range r.engines {
		if rd, ok := b.(decision.Readier); ok {
			errs = append(errs, rd.Ready(ctx))
		}
	}
	return errors.Join(errs...)
}

// Close closes every engine.
func (r *Router) Close(ctx context.Context) error {
	var errs []error
	for _, b := range r.engines {
		errs = append(errs, b.Close(ctx))
	}
	return errors.Join(errs...)
}
