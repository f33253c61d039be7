package opa

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/decision"
)

// EngineVersion is the version of the decision document and of OPA that this engine speaks.
const EngineVersion = "opa/1 opa/1.22"

// Error codes of decisions that could not be made.
const (
	// CodeRego: the evaluation failed, as when two rules give different decisions.
	CodeRego = "rego-error"
	// CodeDecision: the decision is no text and no object of action, params and rule.
	CodeDecision = "rego-decision"
)

// Options change how an engine works, not what it answers.
type Options struct {
	// Stages times the making of the input document (Stages.Features) and the evaluation
	// (Stages.Rules). It costs three looks at the clock.
	Stages bool
}

// Engine decides by a prepared policy. It is safe for concurrent use.
type Engine struct {
	policy *policy
	opts   Options
	info   decision.Info
	plan   plan
}

// Compile parses, compiles and prepares a policy file. The name stands in positions. The
// error is a document.Problems with all findings of the stage that failed.
func Compile(name string, data []byte, opts Options) (*Engine, error) {
	p, doc := read(name, data)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	e := &Engine{policy: p, opts: opts, plan: plan{policy: p}}
	e.info = decision.Info{
		Name: "opa", Kind: "opa",
		Artefact:     decision.Artefact{EngineVersion: EngineVersion, StrategyVersion: p.name, StrategyDigest: sha256.Sum256(data), Provider: "local"},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
	}
	if !p.open {
		e.info.Attributes = p.reads
	}
	return e, nil
}

// Kind is how policies are opened for `-b opa:FILE` and `-b opa:DIR`, with ?stages=on.
func Kind() backends.Kind {
	return backends.Kind{File: "policy.rego", Options: []string{"stages"}, Open: func(_ context.Context, s backends.Source) (decision.Backend, error) {
		v := s.Options.Get("stages")
		if v != "" && v != "on" && v != "off" {
			return nil, fmt.Errorf("%w: stages is on or off, not %q", backends.ErrSpec, v)
		}
		return Compile(s.Path, s.Data, Options{Stages: v == "on"})
	}}
}

// Info describes the engine and its policy, whose version is its package. Attributes is
// empty when the policy reads the input as a whole.
func (e *Engine) Info() decision.Info { return e.info }

// Close does nothing: the engine holds no resource.
func (e *Engine) Close(context.Context) error { return nil }

// Decide gives each question of the request the same answer. A context that is done stops
// the evaluation; its error is returned.
func (e *Engine) Decide(ctx context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = e.info.Artefact
	if len(req.Questions) == 0 {
		return nil
	}
	var start, converted time.Time
	if e.opts.Stages {
		start = time.Now()
	}
	in := e.plan.input(&req.Attrs)
	if e.opts.Stages {
		converted = time.Now()
	}
	d := e.decide(ctx, req, in)
	if e.opts.Stages {
		out.Stages.Features = decision.Some(converted.Sub(start))
		out.Stages.Rules = decision.Some(time.Since(converted))
	}
	for i := range out.Decisions {
		d.Candidates = out.Decisions[i].Candidates
		out.Decisions[i] = d
	}
	return ctx.Err()
}

// seed is the request's randomness for rand.intn and uuid.rfc4122.
func seed(n uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], n)
	return rand.NewChaCha8(key)
}

func (e *Engine) decide(ctx context.Context, req *decision.Request, in ast.Value, more ...rego.EvalOption) decision.Decision {
	var d decision.Decision
	rs, err := e.policy.query.Eval(ctx, append(more, rego.EvalParsedInput(in), rego.EvalTime(req.Now), rego.EvalSeed(seed(req.Seed)))...)
	if err != nil {
		d.Fail(decision.Error, CodeRego, err.Error())
		return d
	}
	if len(rs) == 0 || len(rs[0].Expressions) == 0 { // undefined
		d.Status = decision.Abstain
		return d
	}
	a, err := answerOf(rs[0].Expressions[0].Value)
	if err != nil {
		d.Fail(decision.Error, CodeDecision, err.Error())
		return d
	}
	d.Status, d.Action, d.Params = decision.OK, a.action, a.params
	d.Reason = decision.Reason{Kind: decision.ReasonMatch, Rule: a.rule}
	return d
}

// Explain evaluates once more with a trace, and names the rule of the file that gave the
// decision. Rules that were undefined because an attribute is missing are not told from
// those that are false: Rego does not tell them apart.
func (e *Engine) Explain(ctx context.Context, req *decision.Request) (*decision.Explanation, error) {
	x := &decision.Explanation{Position: e.policy.pos}
	if len(req.Questions) == 0 {
		return x, ctx.Err()
	}
	trace := topdown.NewBufferTracer()
	d := e.decide(ctx, req, e.plan.input(&req.Attrs), rego.EvalQueryTracer(trace))
	x.Reason = d.Reason
	for _, ev := range *trace {
		if r, ok := ev.Node.(*ast.Rule); ok && ev.Op == topdown.ExitOp && r.Head.Ref().String() == ruleName {
			x.Position = position(r.Location)
		}
	}
	switch d.Status {
	case decision.OK:
		x.Text = fmt.Sprintf("the rule in line %d answers %s", x.Position.Line, d.Action)
	case decision.Abstain:
		x.Text = "no rule is defined for this input"
	default:
		x.Text = d.Error
	}
	return x, ctx.Err()
}
