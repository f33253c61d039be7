package decision

import (
	"fmt"
	"strconv"
	"time"
)

// Status says how a decision ended. None of them leaves the denominator of a score.
type Status uint8

// The statuses. StatusNone is the zero value and never a valid answer.
const (
	StatusNone Status = iota
	OK
	// Denied: the backend refused to choose on policy grounds (a refusal is an answer).
	Denied
	// Abstain: the backend answered that it does not know.
	Abstain
	Timeout
	Error
	// NotReplayable: this backend cannot be asked this question at all.
	NotReplayable
)

var statusNames = [...]string{"none", "ok", "denied", "abstain", "timeout", "error", "not-replayable"}

// String returns ok, denied, abstain, timeout, error or not-replayable.
func (s Status) String() string { return nameOf(statusNames[:], int(s)) }

// ParseStatus reads what [Status.String] prints.
func ParseStatus(s string) (Status, error) {
	i, err := parseName(statusNames[:], s, "status")
	return Status(i), err
}

// Answered reports whether the backend gave an answer (ok, denied or abstain).
func (s Status) Answered() bool { return s == OK || s == Denied || s == Abstain }

// ReasonKind says what produced a decision.
type ReasonKind uint8

// The reason kinds. ReasonNone is the zero value: the backend gave no reason.
const (
	ReasonNone ReasonKind = iota
	ReasonMatch
	ReasonFallback
	ReasonModel
	ReasonTableHit
	ReasonTableMiss
	ReasonCached
	ReasonError
	ReasonTimeout
)

var reasonNames = [...]string{"none", "match", "fallback", "model", "table-hit", "table-miss", "cached", "error", "timeout"}

// String returns match, fallback, model, table-hit, table-miss, cached, error, timeout
// or none.
func (r ReasonKind) String() string { return nameOf(reasonNames[:], int(r)) }

// ParseReason reads what [ReasonKind.String] prints.
func ParseReason(s string) (ReasonKind, error) {
	i, err := parseName(reasonNames[:], s, "reason")
	return ReasonKind(i), err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "invalid(" + strconv.Itoa(i) + ")"
}

func parseName(names []string, s, what string) (int, error) {
	for i, n := range names {
		if n == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q", what, s)
}

// Reason is why a decision came out as it did.
type Reason struct {
	Kind ReasonKind
	// Rule is the id of the rule, table cell or model that decided; empty when none did.
	Rule string
	// Skipped counts the rules that could not be evaluated (a missing attribute, NaN)
	// and so did not match. [Explainer] names them.
	Skipped uint16
}

// Candidate is one allowed action as a backend judged it.
type Candidate struct {
	Action string
	// Score is the backend's raw score, in its own unit.
	Score Opt[float32]
	// Probability is the backend's probability that this action is right, in [0,1].
	Probability Opt[float64]
}

// Decision is the answer to one question.
type Decision struct {
	Status Status
	// Action is the chosen label; set only when Status is OK or Denied.
	Action string
	// Params is the action's parameters as a JSON object, or empty.
	Params string
	// Confidence is as the backend gave it, in [0,1], under the definition that
	// ConfidenceDef names (peak, normalized-peak, one-minus-entropy, score, ...).
	Confidence    Opt[float64]
	ConfidenceDef string
	Reason        Reason
	// Candidates holds scores and probabilities where the backend has them; its order
	// is the backend's. Empty when it has none.
	Candidates []Candidate
	// ErrorCode is a short label from a closed set (action-not-allowed, no-strategy,
	// http-503, ...); Error is the text for people. Both empty unless Status is Timeout,
	// Error or NotReplayable.
	ErrorCode string
	Error     string
}

// Fail makes the decision an outcome without an answer: status with its code and text.
// Scores and confidence that a failed attempt left behind are dropped.
func (d *Decision) Fail(s Status, code, text string) {
	reason := Reason{Kind: ReasonError}
	if s == Timeout {
		reason.Kind = ReasonTimeout
	}
	*d = Decision{Status: s, ErrorCode: code, Error: text, Reason: reason, Candidates: d.Candidates[:0]}
}

// Stages are the parts of a latency, each absent when it was not measured. Convert,
// evaluation and transport are reported apart because the input conversion of a
// general engine is often dearer than its evaluation.
type Stages struct {
	Queue, Features, Rules, Model, Transport, Serialise Opt[time.Duration]
}

// Usage is what a response consumed; each absent when unknown.
type Usage struct {
	TokensIn, TokensOut Opt[int64]
	BytesIn, BytesOut   Opt[int64]
	// CPU is processor time, user and system.
	CPU Opt[time.Duration]
}

// Artefact names exactly what decided. It stands in every response, because a remote
// service may change under a run.
type Artefact struct {
	EngineVersion   string
	StrategyVersion string
	// StrategyDigest is the SHA-256 of the strategy, table or model file; zero when the
	// content is not known.
	StrategyDigest [32]byte
	ModelRequested string
	ModelResolved  string
	Provider       string
	Dialect        string
	HTTPStatus     int16
}

// Response is the answer to a Request. The caller owns it and reuses it; a backend
// must call [Response.Reset] first and may keep the slices' capacity.
type Response struct {
	// Decisions runs parallel to the request's Questions.
	Decisions []Decision
	Artefact  Artefact
	Usage     Usage
	// Cost is the price that the provider named, in 1e-9 units of the price book's
	// currency.
	Cost Opt[int64]
	// Attempts counts calls including retries; 0 means that the backend does not count.
	Attempts int
	Stages   Stages
}

// Reset empties the response for n questions and keeps its memory.
func (r *Response) Reset(n int) {
	ds := r.Decisions[:cap(r.Decisions)]
	for len(ds) < n {
		ds = append(ds, Decision{})
	}
	ds = ds[:n]
	for i := range ds {
		ds[i] = Decision{Candidates: ds[i].Candidates[:0]}
	}
	*r = Response{Decisions: ds}
}

// FailAll gives every decision the same failed status.
func (r *Response) FailAll(s Status, code, text string) {
	for i := range r.Decisions {
		r.Decisions[i].Fail(s, code, text)
	}
}

// Error codes that [Response.Check] sets.
const (
	CodeActionNotAllowed = "action-not-allowed"
	CodeBadResponse      = "bad-response"
)

// Check holds the response to the request: one decision a question, a valid status,
// an action exactly when there should be one, and only an allowed action. A violation
// becomes an error outcome (action-not-allowed, bad-response); nothing is repaired.
func (r *Response) Check(req *Request) {
	if len(r.Decisions) != len(req.Questions) {
		n := len(r.Decisions)
		r.Reset(len(req.Questions))
		r.FailAll(Error, CodeBadResponse, fmt.Sprintf("%d decisions for %d questions", n, len(req.Questions)))
		return
	}
	for i := range r.Decisions {
		r.Decisions[i].check(&req.Questions[i])
	}
}

func (d *Decision) check(q *Question) {
	switch {
	case d.Status == StatusNone || d.Status > NotReplayable:
		d.Fail(Error, CodeBadResponse, "no status")
	case d.Status == OK && d.Action == "":
		d.Fail(Error, CodeBadResponse, "status ok without an action")
	case d.Status != OK && d.Status != Denied && d.Action != "":
		d.Fail(Error, CodeBadResponse, "status "+d.Status.String()+" with an action")
	case d.Action != "" && !q.Allows(d.Action):
		d.Fail(Error, CodeActionNotAllowed, fmt.Sprintf("action %q is not among the candidates %q", d.Action, q.Candidates))
	}
}
