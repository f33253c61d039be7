package systemone

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/clefbench/clefbench/decision"
)

// Envelope names what a body is wrapped in, which tells through whom it came.
type Envelope string

// The envelopes.
const (
	EnvelopeBare       Envelope = "bare"
	EnvelopeCloudflare Envelope = "cloudflare"
	EnvelopeVercel     Envelope = "vercel"
	EnvelopeOpenRouter Envelope = "openrouter"
	EnvelopeBifrost    Envelope = "bifrost"
	EnvelopeDecisions  Envelope = "decisions"
)

// Response is a parsed answer body. Everything raw in it points into the body.
type Response struct {
	Envelope Envelope
	// Model is what answered; empty where a gateway does not say.
	Model string
	// ID is the answer's id in its body, Provider who answered behind a gateway.
	ID, Provider string
	// Answers are in the order of the wire, which is not that of the questions.
	Answers []Answer
	// TokensIn and TokensOut are absent where the body does not say.
	TokensIn, TokensOut decision.Opt[int64]
	// Cost is the price that the body names, in 1e-9 units of its currency.
	Cost decision.Opt[int64]
	// Truncated says that the provider cut the state to make it fit.
	Truncated bool
	// Failure is set where a body of status 200 says that there is no answer (Cloudflare's
	// success: false, a gateway's error field).
	Failure *ErrorBody
}

// ParseResponse reads a body of status 200 out of its envelope. Errors wrap
// [ErrMalformed] or [ErrLimit]. A body without answers is an error, unless it says why
// ([Response.Failure]). The response points into body, which must not change.
func ParseResponse(body []byte, l Limits) (*Response, error) {
	s, err := newScanner(body, l)
	if err != nil {
		return nil, err
	}
	ms, err := s.members(s.lim.Questions)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	r := &Response{Envelope: EnvelopeBare}
	if success := field(ms, "success"); success != nil && (has(ms, "result") || has(ms, "errors")) {
		r.Envelope = EnvelopeCloudflare
		if string(success) != "true" {
			r.fail(s, ms)
			return r, nil
		}
		result := field(ms, "result")
		if result == nil {
			return nil, s.errorAt(0, "success without a result")
		}
		if ms, err = s.sub(result).members(s.lim.Questions); err != nil {
			return nil, err
		}
	}
	if err := r.read(s, ms); err != nil {
		return nil, err
	}
	return r, nil
}

func has(ms []Member, name string) bool {
	for i := range ms {
		if ms[i].Name == name {
			return true
		}
	}
	return false
}

func (r *Response) fail(s *scanner, ms []Member) {
	e := readError(s, ms)
	r.Failure = &e
}

// read takes what an envelope holds.
func (r *Response) read(s *scanner, ms []Member) error {
	r.Model, _ = textOf(field(ms, "model"))
	r.ID, _ = textOf(field(ms, "id"))
	r.Provider, _ = textOf(field(ms, "provider"))
	answers := field(ms, "answers")
	if answers == nil {
		if field(ms, "error", "errors", "detail") == nil {
			return s.errorAt(0, "a body without answers")
		}
		r.fail(s, ms)
		return nil
	}
	if err := r.usage(s, field(ms, "usage")); err != nil {
		return err
	}
	if err := r.answers(s, answers); err != nil {
		return err
	}
	if err := r.gateway(s, ms); err != nil {
		return err
	}
	if r.Envelope == EnvelopeBare {
		r.Envelope = r.envelope(ms, answers)
	}
	return nil
}

// envelope tells who wrapped a body that says nothing of it: by fields that nobody else
// adds.
func (r *Response) envelope(ms []Member, answers json.RawMessage) Envelope {
	switch {
	case has(ms, "providerMetadata"):
		return EnvelopeVercel
	case has(ms, "extra_fields"):
		return EnvelopeBifrost
	case answers[0] == '[':
		return EnvelopeDecisions
	case r.ID != "" && r.Provider != "" || r.Cost.Set:
		return EnvelopeOpenRouter
	}
	return EnvelopeBare
}

func (r *Response) usage(s *scanner, raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	ms, err := s.sub(raw).members(s.lim.Options)
	if err != nil {
		return err
	}
	r.TokensIn = countOf(field(ms, "input_tokens", "inputTokens", "prompt_tokens"))
	r.TokensOut = countOf(field(ms, "output_tokens", "outputTokens", "completion_tokens"))
	cost := field(ms, "cost")
	if len(cost) > 0 && cost[0] == '{' {
		parts, err := s.sub(cost).members(s.lim.Options)
		if err != nil {
			return err
		}
		cost = field(parts, "total_cost", "total")
	}
	r.Cost = ParseCost(string(cost))
	r.Truncated = string(field(ms, "truncated")) == "true"
	return nil
}

func countOf(raw json.RawMessage) decision.Opt[int64] {
	x, ok := numberOf(raw)
	if !ok || x < 0 || x != math.Trunc(x) || x > 1<<53 {
		return decision.Opt[int64]{}
	}
	return decision.Some(int64(x))
}

// ParseCost reads a decimal amount, as bodies and headers carry it, into 1e-9 units;
// absent when it is no amount.
func ParseCost(s string) decision.Opt[int64] {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x < 1e9) {
		return decision.Opt[int64]{}
	}
	return decision.Some(int64(math.Round(x * 1e9)))
}

func (r *Response) answers(s *scanner, raw json.RawMessage) error {
	sub := s.sub(raw)
	add := func(id string) error {
		if len(r.Answers) == s.lim.Questions {
			return fmt.Errorf("%w: more than %d answers", ErrLimit, s.lim.Questions)
		}
		a, err := sub.answer(id)
		r.Answers = append(r.Answers, a)
		return err
	}
	switch sub.peek() {
	case '[':
		return sub.array(func(i int) error { return add("#" + strconv.Itoa(i)) })
	case '{':
		return sub.object(func(id string, _ int) error {
			err := add(id)
			r.Answers[len(r.Answers)-1].ID = id
			return err
		})
	}
	return s.errorAt(0, "answers must be an object or a list")
}

// gateway reads what gateways put beside the answers: Vercel the confidences, Bifrost the
// provider and whether the state was cut.
func (r *Response) gateway(s *scanner, ms []Member) error {
	if raw := field(ms, "extra_fields"); len(raw) > 0 && raw[0] == '{' {
		extra, err := s.sub(raw).members(s.lim.Options)
		if err != nil {
			return err
		}
		if p, ok := textOf(field(extra, "provider")); ok {
			r.Provider = p
		}
		r.Truncated = r.Truncated || string(field(extra, "truncated")) == "true"
	}
	raw := field(ms, "providerMetadata")
	for _, name := range []string{"typesafe", "confidence"} {
		if len(raw) == 0 || raw[0] != '{' {
			return nil
		}
		inner, err := s.sub(raw).members(s.lim.Questions)
		if err != nil {
			return err
		}
		raw = field(inner, name)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	given, err := s.sub(raw).members(s.lim.Questions)
	for i := range r.Answers {
		a := &r.Answers[i]
		if x, ok := numberOf(field(given, a.ID)); ok && !a.Confidence.Set {
			a.Confidence = decision.Some(x)
		}
	}
	return err
}

// Answer returns the answer to the i-th question: by its id, and in a list without names
// by its place. Nil when there is none.
func (r *Response) Answer(q *Question, i int) *Answer {
	for j := range r.Answers {
		if r.Answers[j].ID == q.ID {
			return &r.Answers[j]
		}
	}
	if i < len(r.Answers) && r.Answers[i].ID == "#"+strconv.Itoa(i) {
		return &r.Answers[i]
	}
	return nil
}
