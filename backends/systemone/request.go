package systemone

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/clefbench/clefbench/decision"
)

// Dialect names a form of request.
type Dialect string

// The dialects. They share paths, so the body tells them apart: SystemOne asks questions
// in an object, by id; Decisions in a list.
const (
	DialectSystemOne Dialect = "systemone"
	DialectDecisions Dialect = "decisions"
)

// ErrNoModel is returned by [Request.WithModel] for a body that names no model: some
// gateways take it from a header or the path.
var ErrNoModel = errors.New("the body has no model")

// Request is a parsed request body. Everything raw in it points into Body.
type Request struct {
	// Body is the whole body, not copied.
	Body    []byte
	Dialect Dialect
	// Model is what the client asked for; empty when the body does not say.
	Model string
	// State is what the questions are about, with the name that it has on the wire: state,
	// document (before 0.6) or input (Decisions).
	State Member
	// Questions are in the order of the wire.
	Questions []Question
	// Extra are the other fields, in the order of the wire.
	Extra []Member

	// modelAt and modelEnd bound the model's value in Body.
	modelAt, modelEnd int
}

// Question is one question of a request.
type Question struct {
	// ID is the question's name; a Decisions question without one gets its place, as "#0".
	ID string
	// Type is the word on the wire; Kind is what it means, empty when that is not known.
	Type string
	Kind decision.QuestionType
	// Instructions and Criteria are nil when absent or null. The criteria of a Decisions
	// question are its choices or levels.
	Instructions, Criteria json.RawMessage
	// Options are the options of a choice or the levels of a score, in the order of the
	// wire; nil when the criteria do not have the form that the type wants.
	Options []Option
	// Raw is the whole question.
	Raw json.RawMessage
}

// Option is one option of a choice or one level of a score.
type Option struct {
	// Name is the option's name, or the level's number in decimal, from 0.
	Name string
	// Bool says that the name was written as true or false without quotes.
	Bool bool
	// Label is the label of a Decisions level.
	Label string
	// Criterion says when the option applies; nil when absent or null.
	Criterion json.RawMessage
}

// Answers to a noul question, as [Question.Candidates] names them.
const (
	Yes = "true"
	No  = "false"
)

// Candidates returns the names of the possible answers in the order of the wire: options
// of a choice, levels of a score, [Yes] and [No] of a noul; nil when they are not known.
func (q *Question) Candidates() []string {
	if q.Kind == decision.QuestionNoul {
		return []string{Yes, No}
	}
	if q.Options == nil {
		return nil
	}
	names := make([]string, len(q.Options))
	for i := range q.Options {
		names[i] = q.Options[i].Name
	}
	return names
}

// ParseRequest reads a request body of either dialect. It refuses what has two readings
// or none (repeated fields, broken text, no questions, no state) with an error that wraps
// [ErrMalformed] or [ErrLimit], and takes everything else: unknown fields and types,
// criteria of the wrong form. The request points into body, which must not change.
func ParseRequest(body []byte, l Limits) (*Request, error) {
	s, err := newScanner(body, l)
	if err != nil {
		return nil, err
	}
	r := &Request{Body: body}
	if err := s.object(func(key string, at int) error { return r.field(s, key, at) }); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	switch {
	case len(r.Questions) == 0:
		return nil, s.errorAt(0, "a request without questions")
	case r.State.Raw == nil:
		return nil, s.errorAt(0, "a request without state, document or input")
	}
	return r, nil
}

func (r *Request) field(s *scanner, key string, at int) error {
	switch key {
	case "model":
		return r.model(s)
	case "questions":
		return r.questions(s)
	}
	raw, err := s.value()
	if err != nil {
		return err
	}
	switch key {
	case "state", "document", "input":
		if r.State.Raw != nil {
			return s.errorAt(at, "both %s and %s", r.State.Name, key)
		}
		r.State = Member{key, raw}
	default:
		r.Extra = append(r.Extra, Member{key, raw})
	}
	return nil
}

func (r *Request) model(s *scanner) error {
	switch s.peek() {
	case 'n':
		return s.word("null")
	case '"':
		var err error
		r.modelAt = s.i
		r.Model, err = s.text()
		r.modelEnd = s.i
		return err
	}
	return s.errorAt(s.i, "model must be a text, got %s", s.found())
}

func (r *Request) questions(s *scanner) error {
	if s.peek() == '[' {
		r.Dialect = DialectDecisions
		var seen keySet
		return s.array(func(i int) error {
			at := s.i
			q, err := s.question("#" + strconv.Itoa(i))
			if err == nil && seen.add(q.ID) {
				err = s.errorAt(at, "question %q stands twice", q.ID)
			}
			if err != nil {
				return err
			}
			return r.add(q, s.lim)
		})
	}
	r.Dialect = DialectSystemOne
	return s.object(func(id string, _ int) error {
		q, err := s.question(id)
		if err != nil {
			return err
		}
		q.ID = id // a field "name" of a SystemOne question is nobody's name
		return r.add(q, s.lim)
	})
}

func (r *Request) add(q Question, l Limits) error {
	if len(r.Questions) == l.Questions {
		return fmt.Errorf("%w: more than %d questions", ErrLimit, l.Questions)
	}
	r.Questions = append(r.Questions, q)
	return nil
}

// question reads one question; id is its name where it does not bring one.
func (s *scanner) question(id string) (Question, error) {
	s.peek()
	start := s.i
	ms, err := s.members(s.lim.Options)
	if err != nil {
		return Question{}, err
	}
	q := Question{ID: id, Raw: s.b[start:s.i:s.i]}
	if name, ok := textOf(field(ms, "name")); ok {
		q.ID = name
	}
	q.Type, _ = textOf(field(ms, "type"))
	q.Kind = kindOf(q.Type)
	q.Instructions, q.Criteria = field(ms, "instructions"), field(ms, "criteria", "choices", "levels")
	if q.Criteria != nil {
		q.Options, err = s.sub(q.Criteria).options(q.Kind)
	}
	return q, err
}

// kindOf knows the words of all dialects: a noul is a predicate at OpenAI and a boolean at
// Vercel.
func kindOf(typ string) decision.QuestionType {
	switch typ {
	case "noul", "predicate", "boolean":
		return decision.QuestionNoul
	case "choice":
		return decision.QuestionChoice
	case "score":
		return decision.QuestionScore
	}
	return ""
}

// options reads criteria: {option: criterion}, [level], [{value, description}] or
// [{label, description}]; a score of before 0.6 has {"0": level}.
func (s *scanner) options(kind decision.QuestionType) (out []Option, err error) {
	if kind != decision.QuestionChoice && kind != decision.QuestionScore {
		return nil, nil
	}
	switch s.peek() {
	case '{':
		err = s.object(func(name string, _ int) error {
			raw, err := s.value()
			if err == nil {
				out, err = s.addOption(out, Option{Name: name, Criterion: notNull(raw)})
			}
			return err
		})
	case '[':
		err = s.array(func(i int) error {
			o, ok, err := s.option(kind, i)
			if err == nil && ok {
				out, err = s.addOption(out, o)
			}
			return err
		})
	}
	return out, err
}

func (s *scanner) addOption(out []Option, o Option) ([]Option, error) {
	if len(out) == s.lim.Options {
		return nil, fmt.Errorf("%w: more than %d options", ErrLimit, s.lim.Options)
	}
	return append(out, o), nil
}

// option reads an element of a list of levels or choices; false when it is neither.
func (s *scanner) option(kind decision.QuestionType, i int) (Option, bool, error) {
	raw, err := s.value()
	if err != nil {
		return Option{}, false, err
	}
	var ms []Member
	if raw[0] == '{' {
		if ms, err = s.sub(raw).members(s.lim.Options); err != nil {
			return Option{}, false, err
		}
	}
	if kind == decision.QuestionScore {
		o := Option{Name: strconv.Itoa(i), Criterion: notNull(raw)}
		if label, ok := textOf(field(ms, "label")); ok {
			o.Label, o.Criterion = label, field(ms, "description")
		}
		return o, true, nil
	}
	value := field(ms, "value")
	name, ok := labelOf(value)
	return Option{Name: name, Bool: ok && value[0] != '"', Criterion: field(ms, "description")}, ok, nil
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// WithModel returns a copy of the body that asks for another model; no other byte
// differs. It returns [ErrNoModel] when the body names none.
func (r *Request) WithModel(model string) ([]byte, error) {
	if r.modelEnd == 0 {
		return nil, ErrNoModel
	}
	out := make([]byte, 0, len(r.Body)+len(model)+8)
	out = append(out, r.Body[:r.modelAt]...)
	out = appendText(out, model)
	return append(out, r.Body[r.modelEnd:]...), nil
}

// appendText writes a JSON string that escapes only what must be: encoding/json would
// also escape <, > and &.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
