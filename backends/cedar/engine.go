package cedar

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cedar-policy/cedar-go"

	"github.com/clefbench/clefbench/decision"
)

// EngineVersion is the version of the mapping and of cedar-go that this engine speaks.
const EngineVersion = "cedar/1 cedar-go/1.9"

// Options change how an engine works, not what it answers.
type Options struct {
	// Stages times the making of the context (Stages.Features) and the evaluation
	// (Stages.Rules). It costs three looks at the clock.
	Stages bool
}

// Engine decides by policies. It is safe for concurrent use.
type Engine struct {
	file *file
	opts Options
	info decision.Info
	plan plan
	at   map[cedar.PolicyID]int
	pool sync.Pool // of *failures
}

// Compile reads a mapping and its policies. The names stand in positions. The error is a
// document.Problems with all findings. The digest is that of the mapping's bytes followed
// by those of the policies.
func Compile(name string, data []byte, policyName string, policyData []byte, opts Options) (*Engine, error) {
	f, doc := both(name, data, policyName, policyData)
	if doc.Problems.Errors() > 0 {
		return nil, doc.Problems
	}
	e := &Engine{file: f, opts: opts, plan: plan{file: f}, at: make(map[cedar.PolicyID]int, len(f.policies))}
	for i, p := range f.policies {
		e.at[cedar.PolicyID(p.id)] = i
	}
	h := sha256.New()
	h.Write(data)
	h.Write(policyData)
	e.info = decision.Info{
		Name: "cedar", Kind: "cedar", Scenarios: f.scenarios,
		Artefact:     decision.Artefact{EngineVersion: EngineVersion, StrategyVersion: f.version, StrategyDigest: [32]byte(h.Sum(nil)), Provider: "local"},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
	}
	if !f.open {
		e.info.Attributes = f.reads
	}
	e.pool.New = func() any { return &failures{seen: make([]bool, len(f.policies))} }
	return e, nil
}

// Info describes the engine and its files. Attributes is empty when some policy reads the
// context as a whole.
func (e *Engine) Info() decision.Info { return e.info }

// Close does nothing: the engine holds no resource.
func (e *Engine) Close(context.Context) error { return nil }

// failures are the policies that were errors for a question, each once.
type failures struct {
	seen  []bool
	which []int
	cause []string
}

func (f *failures) reset() {
	for _, i := range f.which {
		f.seen[i] = false
	}
	f.which, f.cause = f.which[:0], f.cause[:0]
}

func (f *failures) add(i int, cause string) {
	if !f.seen[i] {
		f.seen[i] = true
		f.which, f.cause = append(f.which, i), append(f.cause, cause)
	}
}

// verdict is what the policies say to a question.
type verdict struct {
	chosen *action // nil: none is permitted
	by     *policy // the policy that permits it, or the first that forbids an action
}

// Decide asks Cedar about each action that is a candidate, until one is permitted.
func (e *Engine) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = e.info.Artefact
	if len(req.Questions) == 0 {
		return nil
	}
	var start, converted time.Time
	if e.opts.Stages {
		start = time.Now()
	}
	ask := e.request(req)
	if e.opts.Stages {
		converted = time.Now()
	}
	failed := e.pool.Get().(*failures)
	for i := range out.Decisions {
		v := e.evaluate(&ask, &req.Questions[i], failed)
		e.fill(&v, len(failed.which), &out.Decisions[i])
		failed.reset()
	}
	e.pool.Put(failed)
	if e.opts.Stages {
		out.Stages.Features = decision.Some(converted.Sub(start))
		out.Stages.Rules = decision.Some(time.Since(converted))
	}
	return nil
}

func (e *Engine) request(req *decision.Request) cedar.Request {
	return cedar.Request{
		Principal: cedar.NewEntityUID(principalType, "request"),
		Resource:  cedar.NewEntityUID(resourceType, cedar.String(req.Scenario)),
		Context:   e.plan.context(&req.Attrs),
	}
}

func (e *Engine) evaluate(ask *cedar.Request, q *decision.Question, failed *failures) verdict {
	var v verdict
	for i := range e.file.actions {
		a := &e.file.actions[i]
		if !q.Allows(a.label) {
			continue
		}
		ask.Action = a.uid
		answer, why := cedar.Authorize(a.policies, nil, *ask)
		for _, x := range why.Errors {
			failed.add(e.at[x.PolicyID], x.Message)
		}
		switch {
		case answer == cedar.Allow:
			return verdict{a, e.first(why)}
		case v.by == nil:
			v.by = e.first(why)
		}
	}
	return v
}

// first returns the policy that stands first among the reasons, or nil.
func (e *Engine) first(why cedar.Diagnostic) *policy {
	if len(why.Reasons) == 0 {
		return nil
	}
	return e.file.policies[e.at[why.Reasons[0].PolicyID]]
}

// fill writes the answer: the permitted action, the fallback, or denied.
func (e *Engine) fill(v *verdict, skipped int, d *decision.Decision) {
	a := v.chosen
	switch {
	case a != nil:
		d.Reason.Kind = decision.ReasonMatch
	case e.file.fallback.label != "":
		a = &e.file.fallback
		d.Reason.Kind = decision.ReasonFallback
	case v.by != nil:
		d.Reason.Kind = decision.ReasonMatch
	}
	if v.by != nil && d.Reason.Kind == decision.ReasonMatch {
		d.Reason.Rule = v.by.id
	}
	d.Reason.Skipped = uint16(min(skipped, 1<<16-1))
	d.Status = decision.Denied
	if a != nil {
		d.Status, d.Action, d.Params = decision.OK, a.label, a.params
	}
}

// Explain says which policy decides the first question, and which could not be evaluated.
func (e *Engine) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	var d decision.Decision
	var v verdict
	failed := &failures{seen: make([]bool, len(e.file.policies))}
	if len(req.Questions) > 0 {
		ask := e.request(req)
		v = e.evaluate(&ask, &req.Questions[0], failed)
		e.fill(&v, len(failed.which), &d)
	}
	x := &decision.Explanation{Reason: d.Reason, Position: e.file.fallback.pos}
	for i, at := range failed.which {
		p := e.file.policies[at]
		names, _ := p.reads()
		s := decision.SkippedRule{Rule: p.id, Cause: failed.cause[i]}
		for _, n := range names {
			if req.Attrs.Get(n).IsNull() {
				s.Missing = append(s.Missing, n)
			}
		}
		if left := e.plan.leftOut(names, &req.Attrs); len(left) > 0 {
			s.Cause += "; left out, since they are no decimals of four digits: " + strings.Join(left, ", ")
		}
		x.Skipped = append(x.Skipped, s)
	}
	e.describe(x, &v, &d)
	return x, nil
}

func (e *Engine) describe(x *decision.Explanation, v *verdict, d *decision.Decision) {
	if v.by != nil && d.Reason.Kind == decision.ReasonMatch {
		x.Position = v.by.pos
		x.Cited, _ = v.by.reads()
	}
	switch {
	case v.chosen != nil:
		x.Text = fmt.Sprintf("policy %s permits %s", v.by.id, d.Action)
	case d.Status == decision.OK:
		x.Text = "no action is permitted; the fallback answers " + d.Action
	case v.by != nil:
		x.Text = fmt.Sprintf("no action is permitted; policy %s forbids", v.by.id)
	default:
		x.Text = "no policy permits an action"
	}
}

// Labels lists the policies and the actions of the mapping.
func (e *Engine) Labels() decision.Labels {
	l := decision.Labels{Artefacts: []decision.Artefact{e.info.Artefact}}
	for _, p := range e.file.policies {
		l.Rules = append(l.Rules, p.id)
	}
	for i := range e.file.actions {
		l.Actions = append(l.Actions, e.file.actions[i].label)
	}
	if a := e.file.fallback.label; a != "" {
		l.Actions = append(l.Actions, a)
	}
	return l
}
