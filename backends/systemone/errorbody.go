package systemone

import (
	"bytes"
	"encoding/json"
	"strings"
)

// ErrorBody is what a body says about a call that brought no answer.
type ErrorBody struct {
	// Type is a word (authentication_error, max_tokens_exceeded), Code a provider's number
	// or word; either may be empty, as may the message.
	Type, Code, Message string
	// Issues are the findings of a 422.
	Issues []Issue
}

// Issue is one finding about a request's field.
type Issue struct {
	// Loc is the path of the field, joined with dots: body.questions.q.
	Loc, Type, Message string
}

// ParseError reads an error body of any known form: FastAPI's detail as text, object or
// list, error as text or object, message, and Cloudflare's errors. A body of another form
// gives the zero value; errors wrap [ErrMalformed] or [ErrLimit].
func ParseError(body []byte, l Limits) (ErrorBody, error) {
	s, err := newScanner(body, l)
	if err != nil {
		return ErrorBody{}, err
	}
	ms, err := s.members(s.lim.Options)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return ErrorBody{}, err
	}
	return readError(s, ms), nil
}

func readError(s *scanner, ms []Member) (e ErrorBody) {
	for _, name := range []string{"detail", "error", "errors"} {
		raw := field(ms, name)
		if len(raw) == 0 {
			continue
		}
		switch raw[0] {
		case '"':
			e.Message, _ = textOf(raw)
		case '{':
			e.object(s, raw)
		case '[':
			e.list(s, raw)
		}
		return e
	}
	e.Message, _ = textOf(field(ms, "message"))
	return e
}

func (e *ErrorBody) object(s *scanner, raw json.RawMessage) {
	ms, err := s.sub(raw).members(s.lim.Options)
	if err != nil {
		return
	}
	e.Type, _ = textOf(field(ms, "error_type", "type"))
	e.Code = wordOf(field(ms, "code"))
	e.Message, _ = textOf(field(ms, "message", "msg"))
}

// list reads FastAPI's findings, or Cloudflare's errors, of which the first counts.
func (e *ErrorBody) list(s *scanner, raw json.RawMessage) {
	sub := s.sub(raw)
	_ = sub.array(func(i int) error {
		if sub.peek() != '{' {
			return sub.skip()
		}
		ms, err := sub.members(s.lim.Options)
		if err != nil {
			return err
		}
		if loc := field(ms, "loc"); loc != nil {
			it := Issue{Loc: path(s.sub(loc))}
			it.Type, _ = textOf(field(ms, "type"))
			it.Message, _ = textOf(field(ms, "msg"))
			e.Issues = append(e.Issues, it)
		} else if i == 0 {
			e.Code = wordOf(field(ms, "code"))
			e.Message, _ = textOf(field(ms, "message"))
		}
		return nil
	})
}

func wordOf(raw json.RawMessage) string {
	if s, ok := textOf(raw); ok {
		return s
	}
	if _, ok := numberOf(raw); ok {
		return string(raw)
	}
	return ""
}

func path(s *scanner) string {
	var parts []string
	if s.peek() == '[' {
		_ = s.array(func(int) error {
			raw, err := s.value()
			parts = append(parts, wordOf(raw))
			return err
		})
	}
	return strings.Join(parts, ".")
}

// minEcho is the shortest text that is looked for in messages: shorter ones stand in any.
const minEcho = 4

// StripEchoes returns an error body without what it repeats of the request: the values of
// all fields named input and ctx become null, and so does a msg or message that quotes a
// text out of one of them. The rest stays byte for byte. It returns how many values it
// took out; an error wraps [ErrMalformed] or [ErrLimit], and then the body cannot be told
// to be free of echoes.
func StripEchoes(body []byte, l Limits) ([]byte, int, error) {
	s, err := newScanner(body, l)
	if err != nil {
		return nil, 0, err
	}
	var f echoFinder
	if err := f.walk(s, ""); err != nil {
		return nil, 0, err
	}
	if err := s.end(); err != nil {
		return nil, 0, err
	}
	return f.strip(body), f.taken, nil
}

// span is a value's place in a body.
type span struct {
	from, to int
	message  bool
}

type echoFinder struct {
	spans  []span
	quotes []string
	taken  int
}

// walk visits the value that is next; name is the field that it is the value of.
func (f *echoFinder) walk(s *scanner, name string) error {
	c := s.peek()
	start := s.i
	switch {
	case name == "input" || name == "ctx":
		raw, err := s.value()
		if err == nil && string(raw) != "null" {
			f.spans = append(f.spans, span{start, s.i, false})
			f.collect(s.sub(raw))
		}
		return err
	case c == '{':
		return s.each(func(key string, _ int) error { return f.walk(s, key) })
	case c == '[':
		return s.array(func(int) error { return f.walk(s, "") })
	}
	err := s.scalar(c)
	if c == '"' && (name == "msg" || name == "message") {
		f.spans = append(f.spans, span{start, s.i, true})
	}
	return err
}

// collect gathers the texts of an echoed value; it was scanned before, so errors (half of
// a surrogate pair) only mean a text that no message can quote.
func (f *echoFinder) collect(s *scanner) {
	switch s.peek() {
	case '{':
		_ = s.each(func(string, int) error { f.element(s); return nil })
	case '[':
		_ = s.array(func(int) error { f.element(s); return nil })
	case '"':
		if t, ok := textOf(s.b); ok && len(t) >= minEcho {
			f.quotes = append(f.quotes, t)
		}
	}
}

func (f *echoFinder) element(s *scanner) {
	if raw, err := s.value(); err == nil {
		f.collect(s.sub(raw))
	}
}

func (f *echoFinder) strip(body []byte) []byte {
	var out []byte
	done := 0
	for _, p := range f.spans {
		if p.message && !f.quoted(body[p.from:p.to]) {
			continue
		}
		out = append(append(out, body[done:p.from]...), "null"...)
		done = p.to
		f.taken++
	}
	return append(out, body[done:]...)
}

func (f *echoFinder) quoted(raw []byte) bool {
	text, ok := textOf(raw)
	for _, q := range f.quotes {
		if !ok || strings.Contains(text, q) || bytes.Contains(raw, []byte(q)) {
			return true
		}
	}
	return false
}
