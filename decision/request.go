package decision

import "time"

// Opt is a value that may be absent; the zero Opt is absent. It is what keeps
// "missing" apart from zero.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, Set: true} }

// Or returns the value, or def when absent.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.V
	}
	return def
}

// QuestionType is the shape of an answer (SystemOne's noul, choice and score), or
// "action" for a plain choice among actions.
type QuestionType string

// The question types.
const (
	QuestionAction QuestionType = "action"
	QuestionNoul   QuestionType = "noul"
	QuestionChoice QuestionType = "choice"
	QuestionScore  QuestionType = "score"
)

// Question asks for one decision.
type Question struct {
	// ID names the question inside its request; empty where there is only one.
	ID   string
	Type QuestionType
	// Candidates are the actions that may be chosen, in the order in which they were
	// offered; empty means any action.
	Candidates []string
}

// Allows reports whether the action is among the candidates.
func (q *Question) Allows(action string) bool {
	if len(q.Candidates) == 0 {
		return true
	}
	for _, c := range q.Candidates {
		if c == action {
			return true
		}
	}
	return false
}

// Request is what a backend is asked at once: one or more questions about one input.
// It is the unit of pairing and of clustering. A Request is read-only for the backend
// and valid only until Decide returns.
type Request struct {
	ID       ID
	Scenario string
	Attrs    Attrs
	// Features is the vector that FeatureSet names; nil when none was recorded.
	Features   []float32
	FeatureSet string
	Questions  []Question
	// Body is the request as it came over the wire, for backends that speak that wire;
	// nil when it was not recorded.
	Body []byte
	// Now and Seed are the clock and the randomness that the decision may use. A backend
	// that reads another clock is not reproducible and must say so in its capabilities.
	Now  time.Time
	Seed uint64
	// Deadline is the time allowed, measured from the call; 0 means none. In-process
	// engines do not watch it: the caller checks it afterwards.
	Deadline time.Duration
}
