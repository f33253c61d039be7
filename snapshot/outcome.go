package snapshot

import (
	"fmt"
	"slices"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// Phase says for what purpose a backend was asked.
type Phase string

// The phases of a replay. Only measured outcomes are scored for accuracy, latency and
// cost; cold holds a backend's first call, audit the re-executions that auditability
// is measured on.
const (
	PhaseMeasured Phase = "measured"
	PhaseCold     Phase = "cold"
	PhaseAudit    Phase = "audit"
)

// Outcome is what a backend answered for one snapshot: the second row kind of the file
// format. It repeats the snapshot's place, cluster and weight, so that scoring needs
// the outcomes and labels alone. The conventions for null are those of [Snapshot].
type Outcome struct {
	// Ref is the place of the SNAPSHOT, so that outcomes, labels and snapshots pair by a
	// merge and never need a hash table.
	Ref       Ref
	ID        decision.ID
	RequestID decision.ID
	Scenario  string
	Question  string
	Entity    decision.Opt[[8]byte]
	KeepProb  float64

	// Backend is the user's name for the lane; Kind is the sort of backend.
	Backend, Kind string
	Phase         Phase
	// Repeat counts re-executions in the audit phase, from 0.
	Repeat int32
	// Block is the number of the interleaved block, from 0; Position is the backend's
	// place in the block's shuffled order.
	Block, Position int32

	Status         decision.Status
	Action, Params string
	Confidence     decision.Opt[float64]
	ConfidenceDef  string
	Reason         decision.ReasonKind
	RuleID         string
	Skipped        uint16
	Candidates     []decision.Candidate
	Artefact       decision.Artefact

	// Latency is the service time of the whole request, shared by its rows.
	Latency  decision.Opt[time.Duration]
	Stages   decision.Stages
	Attempts decision.Opt[int8]
	Usage    decision.Usage
	Cost     decision.Opt[int64]

	Error, ErrorCode string

	// Recorded is what production chose ("" when it chose nothing): for agreement, never
	// for accuracy.
	Recorded string
	// Audit findings, set in the audit phase only. Identified: the artefact's digest is
	// known, matches what was asked for and can be fetched. Explained: the reason resolves
	// to a rule, cell or model that exists. Complete: nothing that the backend reads was
	// missing, truncated or masked in the snapshot.
	Identified, Explained, Complete decision.Opt[bool]
	// Missing lists the attributes that the backend reads and the snapshot lacks.
	Missing []string
}

// Validate checks ids, backend, scenario, status and keep probability; errors wrap
// [ErrInvalid].
func (o *Outcome) Validate() error {
	switch {
	case o.ID.IsZero() || o.RequestID.IsZero():
		return fmt.Errorf("%w: id and request_id are required", ErrInvalid)
	case o.Backend == "" || o.Scenario == "":
		return fmt.Errorf("%w: backend and scenario are required", ErrInvalid)
	case o.Ref.Segment == "" || o.Ref.Row < 0:
		return fmt.Errorf("%w: snapshot %q row %d", ErrInvalid, o.Ref.Segment, o.Ref.Row)
	case o.Status == decision.StatusNone || o.Status > decision.NotReplayable:
		return fmt.Errorf("%w: status %v", ErrInvalid, o.Status)
	case !(o.KeepProb > 0 && o.KeepProb <= 1):
		return fmt.Errorf("%w: keep_prob %v is not in (0,1]", ErrInvalid, o.KeepProb)
	}
	return nil
}

// Clone returns a copy that shares no memory with o.
func (o *Outcome) Clone() *Outcome {
	c := *o
	c.Candidates = slices.Clone(o.Candidates)
	c.Missing = slices.Clone(o.Missing)
	return &c
}

// ActionUtility is the utility in [0,1] of choosing an action for one row.
type ActionUtility struct {
	Action  string
	Utility float64
}

// Label is the truth that came later, for one decision. At least one of Action,
// Utilities and Reward is set.
type Label struct {
	// Ref is the place of the snapshot.
	Ref Ref
	ID  decision.ID
	// Action is the right action.
	Action string
	// Utilities is the utility of each action; an action that is not listed has none.
	Utilities []ActionUtility
	// Reward is what the chosen action earned, in [0,1].
	Reward decision.Opt[float64]
	Source string
	Time   time.Time
	// Key is the idempotency key of whoever sent the label.
	Key string
}

// Validate checks the id, and that there is a truth with utilities and reward in [0,1];
// errors wrap [ErrInvalid].
func (l *Label) Validate() error {
	if l.ID.IsZero() {
		return fmt.Errorf("%w: a label without id", ErrInvalid)
	}
	if l.Action == "" && len(l.Utilities) == 0 && !l.Reward.Set {
		return fmt.Errorf("%w: label %v holds no truth", ErrInvalid, l.ID)
	}
	for _, u := range l.Utilities {
		if u.Action == "" || !(u.Utility >= 0 && u.Utility <= 1) {
			return fmt.Errorf("%w: label %v: utility %v of %q is not in [0,1]", ErrInvalid, l.ID, u.Utility, u.Action)
		}
	}
	if l.Reward.Set && !(l.Reward.V >= 0 && l.Reward.V <= 1) {
		return fmt.Errorf("%w: label %v: reward %v is not in [0,1]", ErrInvalid, l.ID, l.Reward.V)
	}
	return nil
}

// Clone returns a copy that shares no memory with l.
func (l *Label) Clone() *Label {
	c := *l
	c.Utilities = slices.Clone(l.Utilities)
	return &c
}
