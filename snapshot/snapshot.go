package snapshot

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// SchemaVersion is the version of the row schema that this package describes.
const SchemaVersion = 1

// Applied says what the application did with a decision.
type Applied string

// What an application does with a decision; empty is unknown.
const (
	AppliedYes      Applied = "applied"
	AppliedShadow   Applied = "shadow"
	AppliedRejected Applied = "rejected"
	AppliedExpired  Applied = "expired"
	AppliedSkipped  Applied = "skipped"
	AppliedUnknown  Applied = "unknown"
)

// PropensityKind says how a propensity was obtained.
type PropensityKind string

// The propensity kinds.
const (
	PropensityExact         PropensityKind = "exact"
	PropensityMonteCarlo    PropensityKind = "monte-carlo"
	PropensityDeterministic PropensityKind = "deterministic"
	PropensityUnknown       PropensityKind = "unknown"
)

// Ref is where a row stands: the segment's file name without directory and extension,
// and the row's number in it, from 0. Rows of a data set are ordered by Ref.
type Ref struct {
	Segment string
	Row     int64
}

// Terms are the provider's terms for one row.
type Terms struct {
	// TrainingUse is allowed, forbidden or unknown; empty is unknown.
	TrainingUse string
	// Publishable is yes or no; empty is unknown.
	Publishable string
}

// Snapshot is one recorded decision: one row of schema version 1. Empty strings, nil
// slices and unset Opts are null in the file, except for attribute values, where the
// empty string is a value.
type Snapshot struct {
	// Ref is set by readers; writers ignore it.
	Ref Ref

	ID, RequestID decision.ID
	SourceID      string
	Status        decision.Status
	Question      string
	QuestionType  decision.QuestionType
	// Time is when the decision was asked for, UTC, to the nanosecond.
	Time     time.Time
	Scenario string
	// Entity is the keyed hash of user, session or account: the cluster of intervals.
	Entity decision.Opt[[8]byte]
	Attrs  decision.Attrs

	// Input and Output are the bodies, byte for byte unless redacted; a request of
	// several rows stores them on its first row only.
	Input, Output             []byte
	InputDigest, OutputDigest decision.Opt[[32]byte]
	// InputLen is the original length in bytes; a shorter Input was truncated or redacted,
	// as Redacted says.
	InputLen decision.Opt[int64]

	// Candidates is the allowed action set with production's scores.
	Candidates []decision.Candidate
	// Forced: there was only one allowed action.
	Forced     decision.Opt[bool]
	Features   []float32
	FeatureSet string

	Action, Params string
	Applied        Applied
	Confidence     decision.Opt[float64]
	ConfidenceDef  string
	Reason         decision.ReasonKind
	RuleID         string

	// Backend names who decided; Artefact under exactly which version.
	Backend  string
	Artefact decision.Artefact
	// Latency is end to end; absent when it was not measured.
	Latency  decision.Opt[time.Duration]
	Stages   decision.Stages
	Cold     decision.Opt[bool]
	Attempts decision.Opt[int8]

	Propensity     decision.Opt[float64]
	PropensityKind PropensityKind
	// KeepProb is the product of all sampling and retention probabilities, in (0,1];
	// every estimate weighs the row by 1/KeepProb.
	KeepProb float64

	Usage decision.Usage
	// Cost is what the provider charged, in 1e-9 units of its currency.
	Cost             decision.Opt[int64]
	Error, ErrorCode string
	TraceID          decision.Opt[[16]byte]
	SpanID           decision.Opt[[8]byte]
	// ND is the tape of what was not deterministic (clock, seed, look-ups), as JSON.
	ND string
	// Redacted lists what was dropped, masked, hashed, bucketed or replaced: "path:how", of
	// a body with the JSON pointer between them: "input:/messages/0/content:jwt".
	Redacted []string
	Terms    Terms
}

// ErrInvalid is wrapped by every error of Validate.
var ErrInvalid = errors.New("invalid row")

// Validate checks what the schema requires: ids, status, time, scenario, keep
// probability in (0,1], probabilities in [0,1], and an action exactly when the status
// has one. Errors wrap [ErrInvalid] and name the field.
func (s *Snapshot) Validate() error {
	switch {
	case s.ID.IsZero() || s.RequestID.IsZero():
		return fmt.Errorf("%w: id and request_id are required", ErrInvalid)
	case s.Status == decision.StatusNone || s.Status > decision.NotReplayable:
		return fmt.Errorf("%w: status %v", ErrInvalid, s.Status)
	case s.Time.IsZero():
		return fmt.Errorf("%w: ts is required", ErrInvalid)
	case s.Scenario == "":
		return fmt.Errorf("%w: scenario is required", ErrInvalid)
	case !(s.KeepProb > 0 && s.KeepProb <= 1):
		return fmt.Errorf("%w: keep_prob %v is not in (0,1]", ErrInvalid, s.KeepProb)
	case s.Propensity.Set && !(s.Propensity.V >= 0 && s.Propensity.V <= 1):
		return fmt.Errorf("%w: propensity %v is not in [0,1]", ErrInvalid, s.Propensity.V)
	case s.Confidence.Set && math.IsNaN(s.Confidence.V):
		return fmt.Errorf("%w: confidence is NaN", ErrInvalid)
	case (s.Action != "") && s.Status != decision.OK && s.Status != decision.Denied:
		return fmt.Errorf("%w: status %v with action %q", ErrInvalid, s.Status, s.Action)
	case s.Status == decision.OK && s.Action == "":
		return fmt.Errorf("%w: status ok without an action", ErrInvalid)
	}
	return s.validateRange()
}

// minUnix and endUnix are the beginnings of 1678 and of 2262.
const minUnix, endUnix = -9214560000, 9214646400

func (s *Snapshot) validateRange() error {
	// Timestamps are int64 nanoseconds since 1970: 1677-09-21 to 2262-04-11.
	// Whole years of it; to work out the year would cost more than all other checks.
	if u := s.Time.Unix(); u < minUnix || u >= endUnix {
		return fmt.Errorf("%w: ts %v does not fit nanoseconds", ErrInvalid, s.Time)
	}
	for i := range s.Candidates {
		if s.Candidates[i].Action == "" {
			return fmt.Errorf("%w: a candidate without an action", ErrInvalid)
		}
	}
	return nil
}

// ShadowOf returns the RequestID of the request that a shadow's row answers beside its
// primary backend: Applied is shadow, and SourceID is that id. It is false for other rows,
// also for those of a service that is itself in shadow and has no primary.
func (s *Snapshot) ShadowOf() (decision.ID, bool) {
	if s.Applied != AppliedShadow {
		return decision.ID{}, false
	}
	id, err := decision.ParseID(s.SourceID)
	return id, err == nil
}

// Weight is 1/KeepProb: how many offered decisions the row stands for.
func (s *Snapshot) Weight() float64 { return 1 / s.KeepProb }

// Request builds what a backend may see of the rows of one request, into req, whose
// slices are reused. Rows must belong together (same RequestID), the first one carrying
// the input. The deadline is left at 0. What production answered, scored and measured
// is left out: it is an answer key.
func Request(rows []*Snapshot, req *decision.Request) {
	first := rows[0]
	qs := req.Questions[:0]
	for _, s := range rows {
		var names []string
		if n := len(qs); n < cap(qs) {
			names = qs[:n+1][n].Candidates[:0]
		}
		for _, c := range s.Candidates {
			names = append(names, c.Action)
		}
		qt := s.QuestionType
		if qt == "" {
			qt = decision.QuestionAction
		}
		qs = append(qs, decision.Question{ID: s.Question, Type: qt, Candidates: names})
	}
	*req = decision.Request{
		ID: first.RequestID, Scenario: first.Scenario, Attrs: first.Attrs,
		Features: first.Features, FeatureSet: first.FeatureSet,
		Questions: qs, Body: first.Input, Now: first.Time,
	}
}

// Clone returns a copy that shares no memory with s, except the attribute schema. Nil
// stays nil and empty stays empty: in the file they are not the same.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.Attrs.Values = slices.Clone(s.Attrs.Values)
	c.Input = slices.Clone(s.Input)
	c.Output = slices.Clone(s.Output)
	c.Candidates = slices.Clone(s.Candidates)
	c.Features = slices.Clone(s.Features)
	c.Redacted = slices.Clone(s.Redacted)
	return &c
}
