package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// RecordedKind is the kind of the lane that repeats what production chose.
const RecordedKind = "recorded"

// Lane is one competitor of a replay.
type Lane struct {
	// Name is unique in a replay.
	Name string
	// Backend answers; nil makes this the recorded lane.
	Backend decision.Backend
}

// competitor is a lane with what is asked of its Info once, and with requests and
// answers of its own: nothing that one backend does to what it is given reaches another.
type competitor struct {
	Lane
	kind    string
	caps    decision.Capabilities
	copies  []requestCopy
	answers []answer // one a request of the block
}

func compete(lanes []Lane, block int) []*competitor {
	out := make([]*competitor, len(lanes))
	for i, l := range lanes {
		c := &competitor{Lane: l, kind: RecordedKind}
		if l.Backend != nil {
			info := l.Backend.Info()
			c.kind, c.caps = info.Kind, info.Capabilities
			c.copies, c.answers = make([]requestCopy, block), make([]answer, block)
		}
		out[i] = c
	}
	return out
}

// copyOf fills the lane's i-th copy from a request and returns it.
func (c *competitor) copyOf(i int, q *request) *decision.Request {
	return c.copies[i].fill(&q.req)
}

// scenarioRouter is a backend that sends each scenario to an engine of its own.
type scenarioRouter interface {
	Route(scenario string) decision.Backend
}

// infoFor describes the engine that decides a scenario; what the whole router reads
// would make every snapshot look incomplete.
func (c *competitor) infoFor(scenario string) decision.Info {
	if r, ok := c.Backend.(scenarioRouter); ok {
		if b := r.Route(scenario); b != nil {
			return b.Info()
		}
	}
	return c.Backend.Info()
}

// Artefacts answers what is known of the strategy files that decided. Rule reports
// whether a rule of that id stands in the artefact of that digest; found is false when
// the artefact cannot be fetched.
type Artefacts interface {
	Rule(digest [32]byte, rule string) (exists, found bool)
}

// Plan says how to replay. Use [DefaultPlan] and change what differs.
type Plan struct {
	// Seed decides the order of lanes and the audit sample; backends get a seed derived
	// from it and the request's id.
	Seed uint64
	// Block is the number of requests that a lane is asked before the next one.
	Block int
	// Warmup is the number of calls, not kept, after the cold call of a scenario.
	Warmup int
	// Timeout bounds one request: enforced by backends that can, checked afterwards for
	// the others. A later answer is a timeout. 0 means none.
	Timeout time.Duration
	// Audit is the size of the audit sample of each scenario, in requests; Repeats is how
	// often each is asked again.
	Audit, Repeats int
	// Artefacts resolves recorded rules; nil: none can be fetched.
	Artefacts Artefacts
	// Progress, when set, is called after every block of a lane.
	Progress func(Progress)
}

// Progress is how far a replay has come.
type Progress struct {
	// Requests and Rows count what was read so far; Calls counts measured calls over all
	// lanes.
	Requests, Rows, Calls int64
	// Phase is "replay" or "audit".
	Phase string
}

// DefaultPlan returns blocks of 256 requests, 64 warm-up calls, a timeout of 10 s and
// an audit of 400 requests a scenario, asked 3 times.
func DefaultPlan() Plan {
	return Plan{Seed: 1, Block: 256, Warmup: 64, Timeout: 10 * time.Second, Audit: 400, Repeats: 3}
}

// ErrPlan reports a plan or a set of lanes that cannot be run.
var ErrPlan = errors.New("bad replay plan")

func (p *Plan) validate(lanes []Lane) error {
	switch {
	case p.Block < 1 || p.Block > 1<<16:
		return fmt.Errorf("%w: block %d is not in 1..65536", ErrPlan, p.Block)
	case p.Warmup < 0 || p.Audit < 0 || p.Timeout < 0:
		return fmt.Errorf("%w: negative warm-up, audit or timeout", ErrPlan)
	case p.Audit > 0 && (p.Repeats < 2 || p.Repeats > 1000):
		return fmt.Errorf("%w: %d repeats: an audit needs 2 to 1000", ErrPlan, p.Repeats)
	case len(lanes) == 0:
		return fmt.Errorf("%w: no backend", ErrPlan)
	}
	seen := map[string]bool{}
	for i := range lanes {
		n := lanes[i].Name
		if n == "" || seen[n] {
			return fmt.Errorf("%w: backend name %q is empty or given twice", ErrPlan, n)
		}
		seen[n] = true
	}
	return nil
}
