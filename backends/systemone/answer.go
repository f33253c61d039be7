package systemone

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/clefbench/clefbench/decision"
)

// Answer is the answer to one question.
type Answer struct {
	// ID is the id of the question; an unnamed answer of a list has its place, as "#0".
	ID string
	// Type is the word on the wire; Kind is what it means, empty when that is not known.
	Type string
	Kind decision.QuestionType
	// Refused: the provider declined to answer this question.
	Refused bool
	// Choice is the chosen option, Noul the probability of yes, Score the expected level:
	// the one that the kind says.
	Choice      string
	Noul, Score decision.Opt[float64]
	// Confidence is as given, under the provider's own definition; a noul has none.
	Confidence decision.Opt[float64]
	// Probabilities are in the order of the wire, which several providers shuffle.
	Probabilities []Probability
	// Legend maps the levels of a score to their criteria.
	Legend json.RawMessage
	// Raw is the whole answer.
	Raw json.RawMessage
}

// Probability is the probability of one option or level.
type Probability struct {
	// Name is the option, or the level's number in decimal; Label is a Decisions level's.
	Name, Label string
	P           float64
}

// answer reads one answer; id is its name where it does not bring one.
func (s *scanner) answer(id string) (Answer, error) {
	s.peek()
	start := s.i
	ms, err := s.members(s.lim.Options)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{ID: id, Raw: s.b[start:s.i:s.i], Legend: field(ms, "legend")}
	if name, ok := textOf(field(ms, "name")); ok {
		a.ID = name
	}
	a.Type, _ = textOf(field(ms, "type"))
	a.Kind, a.Refused = kindOf(a.Type), a.Type == "refusal"
	switch a.Kind {
	case decision.QuestionNoul:
		a.Noul = optNumber(field(ms, "noul", "probability", "value"))
	case decision.QuestionChoice:
		a.Choice, _ = labelOf(field(ms, "choice", "value"))
	case decision.QuestionScore:
		a.Score = optNumber(field(ms, "score", "value"))
	}
	a.Confidence = optNumber(field(ms, "confidence"))
	if raw := field(ms, "probabilities"); raw != nil {
		a.Probabilities, err = s.sub(raw).probabilities()
	}
	return a, err
}

func optNumber(raw json.RawMessage) decision.Opt[float64] {
	if x, ok := numberOf(raw); ok {
		return decision.Some(x)
	}
	return decision.Opt[float64]{}
}

// probabilities reads {name: p} or [{value, label, probability}]; an entry without a
// number is left out.
func (s *scanner) probabilities() (out []Probability, err error) {
	add := func(p Probability, raw json.RawMessage) error {
		x, ok := numberOf(raw)
		if len(out) == s.lim.Options {
			return fmt.Errorf("%w: more than %d probabilities", ErrLimit, s.lim.Options)
		}
		if p.P = x; ok && p.Name != "" {
			out = append(out, p)
		}
		return nil
	}
	switch s.peek() {
	case '{':
		err = s.object(func(name string, _ int) error {
			raw, err := s.value()
			if err != nil {
				return err
			}
			return add(Probability{Name: name}, raw)
		})
	case '[':
		err = s.array(func(int) error {
			if s.peek() != '{' {
				return s.skip()
			}
			ms, err := s.members(s.lim.Options)
			if err != nil {
				return err
			}
			p := Probability{}
			p.Label, _ = textOf(field(ms, "label"))
			value := field(ms, "value")
			if name, ok := labelOf(value); ok {
				p.Name = name
			} else if _, ok := numberOf(value); ok {
				p.Name = string(value)
			}
			return add(p, field(ms, "probability"))
		})
	}
	return out, err
}

// Level returns the most probable level of a score, the lowest of several, and by
// rounding the score where there are no probabilities; false when there is neither.
func (a *Answer) Level() (string, bool) {
	best := -1
	for i, p := range a.Probabilities {
		if best < 0 || p.P > a.Probabilities[best].P || p.P == a.Probabilities[best].P && lower(p.Name, a.Probabilities[best].Name) {
			best = i
		}
	}
	switch {
	case best >= 0:
		return a.Probabilities[best].Name, true
	case a.Score.Set && a.Score.V >= 0 && a.Score.V < 1e6:
		return strconv.Itoa(int(a.Score.V + 0.5)), true
	}
	return "", false
}

// lower compares levels as numbers: the wire's order is no help where it is shuffled.
func lower(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x < y
}

// Check holds the answer to its question: a value of the question's kind, in range, and
// one that was offered. It judges neither the sum of the probabilities nor the
// confidence: providers round both.
func (a *Answer) Check(q *Question) error {
	if a.Refused {
		return nil
	}
	if a.Kind != q.Kind || a.Kind == "" && a.Type != q.Type {
		return fmt.Errorf("question %q of type %q got an answer of type %q", q.ID, q.Type, a.Type)
	}
	switch a.Kind {
	case decision.QuestionNoul:
		if !a.Noul.Set || a.Noul.V < 0 || a.Noul.V > 1 {
			return fmt.Errorf("question %q: no probability in [0,1]", q.ID)
		}
	case decision.QuestionChoice:
		if a.Choice == "" {
			return fmt.Errorf("question %q: no choice", q.ID)
		}
		if q.Options != nil && !slices.ContainsFunc(q.Options, func(o Option) bool { return o.Name == a.Choice }) {
			return fmt.Errorf("question %q: the choice %.80q is not among the options", q.ID, a.Choice)
		}
	case decision.QuestionScore:
		if _, ok := a.Level(); !ok {
			return fmt.Errorf("question %q: no score", q.ID)
		}
	}
	for _, p := range a.Probabilities {
		if p.P < 0 || p.P > 1 {
			return fmt.Errorf("question %q: the probability %v of %.80q is not in [0,1]", q.ID, p.P, p.Name)
		}
	}
	return nil
}

// Probability returns the probability that the answer gives an option or level.
func (a *Answer) Probability(name string) decision.Opt[float64] {
	for _, p := range a.Probabilities {
		if p.Name == name {
			return decision.Some(p.P)
		}
	}
	return decision.Opt[float64]{}
}
