package cel

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/clefbench/clefbench/decision"
)

// EngineVersion is the version of the file format and of cel-go that this engine speaks.
const EngineVersion = "cel/1 cel-go/0.33"

// Options change how an engine works, not what it answers.
type Options struct {
	// Stages times the conversion of each request (Stages.Features) and the evaluation
	// (Stages.Rules). It costs three looks at the clock.
	Stages bool
}

// Engine decides by a compiled file. It is safe for concurrent use.
type Engine struct {
	file *file
	opts Options
	info decision.Info
	plan plan
	pool sync.Pool // of *input
}

// Compile reads a file. The name stands in positions; schema holds the attributes of the
// data set at hand, and may be nil. The error is a document.Problems with all findings.
func Compile(name string, data []byte, schema *decision.Schema, opts Options) (*Engine, error) {
	f, doc := read(name, data, schema)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	e := &Engine{file: f, opts: opts, plan: plan{file: f}}
	e.info = decision.Info{
		Name: "cel", Kind: "cel", Scenarios: f.scenarios,
		Artefact:     decision.Artefact{EngineVersion: EngineVersion, StrategyVersion: f.version, StrategyDigest: sha256.Sum256(data), Provider: "local"},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
	}
	if !f.reads.open() {
		e.info.Attributes = f.reads.names
	}
	in, err := newInput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	e.pool.Put(in)
	return e, nil
}

// Info describes the engine and its file. Attributes is empty when some condition reads a
// namespace as a whole.
func (e *Engine) Info() decision.Info { return e.info }

// Close does nothing: the engine holds no resource.
func (e *Engine) Close(context.Context) error { return nil }

// Decide gives each question of the request the same answer.
func (e *Engine) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = e.info.Artefact
	if len(req.Questions) == 0 {
		return nil
	}
	in, err := e.input()
	if err != nil {
		return err
	}
	var start, converted time.Time
	if e.opts.Stages {
		start = time.Now()
	}
	in.fill(e.plan.of(req.Attrs.Schema), &req.Attrs)
	if e.opts.Stages {
		converted = time.Now()
	}
	v := e.evaluate(in)
	if e.opts.Stages {
		out.Stages.Features = decision.Some(converted.Sub(start))
		out.Stages.Rules = decision.Some(time.Since(converted))
	}
	for i := range out.Decisions {
		e.fill(&v, &out.Decisions[i])
	}
	in.clear()
	e.pool.Put(in)
	return nil
}

func (e *Engine) input() (*input, error) {
	if in, ok := e.pool.Get().(*input); ok {
		return in, nil
	}
	return newInput()
}

// verdict is what the rules say.
type verdict struct {
	rule    *rule // nil: no rule decides
	skipped int
}

// evaluate runs the rules in order. One whose condition is an error, or gives no truth
// value, does not match and is counted.
func (e *Engine) evaluate(in *input) verdict {
	var v verdict
	for i := range e.file.rules {
		r := &e.file.rules[i]
		switch holds, err := r.eval(in); {
		case err != nil:
			v.skipped++
		case holds:
			v.rule = r
			return v
		}
	}
	return v
}

func (r *rule) eval(in *input) (bool, error) {
	out, _, err := r.prog.Eval(in.act)
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the condition gives %s, not true or false", out.Type().TypeName())
	}
	return bool(b), nil
}

func (e *Engine) fill(v *verdict, d *decision.Decision) {
	a := &e.file.fallback
	switch {
	case v.rule != nil:
		a = &v.rule.action
		d.Reason = decision.Reason{Kind: decision.ReasonMatch, Rule: v.rule.id}
	case a.label != "":
		d.Reason.Kind = decision.ReasonFallback
	}
	d.Reason.Skipped = uint16(min(v.skipped, 1<<16-1))
	if a.label == "" {
		d.Status = decision.Abstain
		return
	}
	d.Status, d.Action, d.Params = decision.OK, a.label, a.params
}

// Explain says which rule decides, and which rules before it could not be evaluated.
func (e *Engine) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	in, err := newInput()
	if err != nil {
		return nil, err
	}
	in.fill(e.plan.of(req.Attrs.Schema), &req.Attrs)
	v := e.evaluate(in)
	var d decision.Decision
	if len(req.Questions) > 0 {
		e.fill(&v, &d)
	}
	x := &decision.Explanation{Reason: d.Reason, Position: e.file.fallbackPos}
	for i := range e.file.rules {
		r := &e.file.rules[i]
		if r == v.rule {
			break
		}
		if _, err := r.eval(in); err != nil {
			x.Skipped = append(x.Skipped, decision.SkippedRule{Rule: r.id, Missing: r.missing(&req.Attrs), Cause: err.Error()})
		}
	}
	switch {
	case v.rule != nil:
		x.Position, x.Cited = v.rule.pos, v.rule.reads.names
		x.Text = fmt.Sprintf("rule %s is true and answers %s", v.rule.id, d.Action)
	case d.Status == decision.OK:
		x.Text = "no rule is true; the fallback answers " + d.Action
	default:
		x.Text = "no rule is true and the file has no fallback"
	}
	return x, nil
}

// missing lists the attributes that the rule names and the request lacks.
func (r *rule) missing(attrs *decision.Attrs) []string {
	var out []string
	for _, n := range r.reads.names {
		if attrs.Get(n).IsNull() {
			out = append(out, n)
		}
	}
	return out
}

// Labels lists the rules of the file and the actions that they and the fallback choose.
func (e *Engine) Labels() decision.Labels {
	l := decision.Labels{Artefacts: []decision.Artefact{e.info.Artefact}}
	for i := range e.file.rules {
		l.Rules = append(l.Rules, e.file.rules[i].id)
		l.Actions = append(l.Actions, e.file.rules[i].action.label)
	}
	if a := e.file.fallback.label; a != "" {
		l.Actions = append(l.Actions, a)
	}
	return l
}
