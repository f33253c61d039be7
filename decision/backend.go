package decision

import (
	"context"
	"strconv"
)

// Backend is anything that decides. Decide must be safe for concurrent use, must not
// keep req or out after it returned, and fills out completely (after out.Reset).
//
// A decision that could not be made is a status inside out, not an error: timeout,
// error, abstain, not-replayable. The error return is for a caller's mistake or a
// backend that is broken as a whole; the caller then counts the request as an error
// outcome. Close is idempotent.
type Backend interface {
	Info() Info
	Decide(ctx context.Context, req *Request, out *Response) error
	Close(ctx context.Context) error
}

// Explainer is implemented by backends that can say why. Explain is a second, untimed
// pass over the same request.
type Explainer interface {
	Explain(ctx context.Context, req *Request) (*Explanation, error)
}

// Warmer is implemented by backends that gain from seeing requests before they are
// measured (connections, caches).
type Warmer interface {
	Warm(ctx context.Context, reqs []*Request) error
}

// Readier is implemented by backends that may not be able to answer at all (a remote
// service that is down). Ready returns nil when the backend can take requests.
type Readier interface {
	Ready(ctx context.Context) error
}

// Labels are the words that a backend's answers are made of.
type Labels struct {
	// Actions and Rules are those that it may name; an action may be a candidate only.
	Actions, Rules []string
	// Artefacts are the versions under which it answers.
	Artefacts []Artefact
}

// Add adds the labels of another backend, or of a part of one; doubles may remain.
func (l *Labels) Add(o Labels) {
	l.Actions = append(l.Actions, o.Actions...)
	l.Rules = append(l.Rules, o.Rules...)
	l.Artefacts = append(l.Artefacts, o.Artefacts...)
}

// Labeller is implemented by backends that know beforehand what their answers are made
// of, so that a recording of them can prepare for it. What they list is no promise: an
// answer may hold other labels, and need not hold any of these.
type Labeller interface {
	Labels() Labels
}

// TimeoutKind says how a backend treats a deadline.
type TimeoutKind string

// The timeout kinds: checked afterwards by the caller, or enforced by the backend.
const (
	TimeoutChecked TimeoutKind = "checked"
	TimeoutHard    TimeoutKind = "hard"
)

// Capabilities say what a backend's answers are worth to replay and audit.
type Capabilities struct {
	// Deterministic: the same request gives the same answer.
	Deterministic bool
	// Network: Decide may leave the process.
	Network bool
	// Confidence: answers carry a confidence.
	Confidence bool
	// Timeout is how the deadline is kept.
	Timeout TimeoutKind
}

// BodyAttribute stands in Info.Attributes for the request's body.
const BodyAttribute = "input"

// Info describes a backend.
type Info struct {
	// Name is the user's name for it; Kind is the sort of backend (rules, flash, ...).
	Name, Kind string
	Artefact   Artefact
	// Scenarios lists what it can decide; empty means any.
	Scenarios []string
	// Attributes lists the attributes that it reads, for checking that a recording holds
	// them; empty when unknown. [BodyAttribute] among them says that it reads Request.Body.
	Attributes   []string
	Capabilities Capabilities
}

// Position is a place in a strategy, rules or matrix file; Line and Column count from
// 1, and 0 means unknown.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column, without the parts that are unknown.
func (p Position) String() string {
	s := p.File
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			s += ":" + strconv.Itoa(p.Column)
		}
	}
	return s
}

// Explanation is why a backend decided as it did.
type Explanation struct {
	Reason Reason
	// Position is where the deciding rule stands, when the backend has a file. A set
	// Line is what makes an explanation resolvable.
	Position Position
	// Text is one sentence for people.
	Text string
	// Skipped are the rules that could not be evaluated.
	Skipped []SkippedRule
	// Conditions are those of the deciding rule as they came out, in file order.
	Conditions []Condition
	// Tags are what rules added that mark without deciding.
	Tags []string
	// Cited are the attributes that the deciding rule read.
	Cited []string
}

// Condition is one condition of a rule, as it came out for a request.
type Condition struct {
	// Text is the condition in one line; Value what its left-hand side was, empty when
	// that was absent or could not be computed.
	Text, Value string
	Position    Position
	// Truth is true, false or unknown.
	Truth string
}

// SkippedRule is a rule that could not be evaluated, and why.
type SkippedRule struct {
	Rule string
	// Missing are the attributes that were absent; Cause is the reason in words.
	Missing []string
	Cause   string
}
