package systemone

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ErrMalformed is wrapped by every error about a body that is no JSON text of the wire's
// form; errors.As with *[SyntaxError] gives the position.
var ErrMalformed = errors.New("malformed body")

// ErrLimit is wrapped by the errors about a body that exceeds [Limits].
var ErrLimit = errors.New("body exceeds a limit")

// SyntaxError is a finding in a body. It wraps [ErrMalformed].
type SyntaxError struct {
	// Line and Column count from 1, Column in bytes.
	Line, Column int
	Message      string
}

// Error returns line:column and the message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Unwrap returns [ErrMalformed].
func (e *SyntaxError) Unwrap() error { return ErrMalformed }

// Limits bound what a parser accepts; the zero value of a field is its default.
type Limits struct {
	// Bytes bounds the body, Depth its nesting.
	Bytes, Depth int
	// Questions bounds the questions and the answers of a body, Options the options, levels
	// or probabilities of one of them.
	Questions, Options int
}

// Defaults of [Limits]. The largest request that was seen had 400 questions, the largest
// documented question 255 options.
const (
	DefaultBytes     = 32 << 20
	DefaultDepth     = 128
	DefaultQuestions = 4096
	DefaultOptions   = 4096
)

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		v   *int
		def int
	}{{&l.Bytes, DefaultBytes}, {&l.Depth, DefaultDepth}, {&l.Questions, DefaultQuestions}, {&l.Options, DefaultOptions}} {
		if *f.v <= 0 {
			*f.v = f.def
		}
	}
	return l
}

// scanner reads one JSON text strictly and keeps positions. encoding/json was not used
// because it takes the last of repeated keys and replaces broken text silently: either
// would record another question than the one that was asked.
type scanner struct {
	b     []byte
	i     int
	depth int
	lim   Limits
	// whole is the body that b is a part of, for positions; nil when b is the body.
	whole []byte
}

func newScanner(body []byte, l Limits) (*scanner, error) {
	l = l.withDefaults()
	if len(body) > l.Bytes {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrLimit, len(body), l.Bytes)
	}
	s := &scanner{b: body, lim: l}
	if !utf8.Valid(body) {
		return nil, s.errorAt(invalidUTF8(body), "text that is not UTF-8")
	}
	return s, nil
}

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// sub scans one value of the same body again.
func (s *scanner) sub(raw []byte) *scanner {
	whole := s.whole
	if whole == nil {
		whole = s.b
	}
	return &scanner{b: raw, lim: s.lim, depth: s.depth, whole: whole}
}

// offset is where b begins in the body. It is searched, since only errors need it.
func (s *scanner) offset() int {
	for i := range s.whole {
		if len(s.b) > 0 && &s.whole[i] == &s.b[0] {
			return i
		}
	}
	return 0
}

func (s *scanner) errorAt(at int, format string, args ...any) error {
	body := s.b
	if s.whole != nil {
		at += s.offset()
		body = s.whole
	}
	before := body[:min(at, len(body))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return &SyntaxError{line, column, fmt.Sprintf(format, args...)}
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return s.b[s.i]
		}
	}
	return 0
}

func (s *scanner) found() string {
	if s.i >= len(s.b) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(s.b[s.i:])
	return strconv.QuoteRune(r)
}

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.errorAt(s.i, "want %q, got %s", c, s.found())
	}
	s.i++
	return nil
}

func (s *scanner) end() error {
	if s.peek(); s.i < len(s.b) {
		return s.errorAt(s.i, "text after the JSON value")
	}
	return nil
}

func (s *scanner) enter(c byte) error {
	if err := s.expect(c); err != nil {
		return err
	}
	if s.depth++; s.depth > s.lim.Depth {
		return fmt.Errorf("%w: nesting deeper than %d", ErrLimit, s.lim.Depth)
	}
	return nil
}

// next reports whether another member follows, and reads the comma before it.
func (s *scanner) next(first bool, close byte) (bool, error) {
	if s.peek() == close {
		s.i++
		s.depth--
		return false, nil
	}
	if !first {
		return true, s.expect(',')
	}
	return true, nil
}

// each reads the keys of an object, repeated ones as well; f reads the values.
func (s *scanner) each(f func(key string, at int) error) error {
	if err := s.enter('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.next(first, '}')
		if err != nil || !more {
			return err
		}
		s.peek()
		at := s.i
		key, err := s.text()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := f(key, at); err != nil {
			return err
		}
	}
}

// object is each for objects that mean something here: no key may stand twice, since
// readers differ in which of the two they take.
func (s *scanner) object(f func(key string, at int) error) error {
	var seen keySet
	return s.each(func(key string, at int) error {
		if seen.add(key) {
			return s.errorAt(at, "field %q stands twice", key)
		}
		return f(key, at)
	})
}

// keySet is a list while it is short: most objects have a few keys.
type keySet struct {
	list []string
	set  map[string]struct{}
}

// add reports whether the key was there before.
func (k *keySet) add(key string) bool {
	if k.set == nil {
		if slices.Contains(k.list, key) {
			return true
		}
		if k.list = append(k.list, key); len(k.list) > 16 {
			k.set = make(map[string]struct{}, 64)
			for _, s := range k.list {
				k.set[s] = struct{}{}
			}
		}
		return false
	}
	_, dup := k.set[key]
	k.set[key] = struct{}{}
	return dup
}

// array reads a list; f reads each element.
func (s *scanner) array(f func(i int) error) error {
	if err := s.enter('['); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.next(i == 0, ']')
		if err != nil || !more {
			return err
		}
		if err := f(i); err != nil {
			return err
		}
	}
}

// value reads any value and returns its bytes as they stand in the body.
func (s *scanner) value() (json.RawMessage, error) {
	c := s.peek()
	start := s.i
	var err error
	switch c {
	case '{':
		err = s.each(func(string, int) error { return s.skip() })
	case '[':
		err = s.array(func(int) error { return s.skip() })
	default:
		err = s.scalar(c)
	}
	return s.b[start:s.i:s.i], err
}

func (s *scanner) skip() error {
	_, err := s.value()
	return err
}

func (s *scanner) scalar(c byte) error {
	switch c {
	case '"':
		_, err := s.quoted()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		return s.errorAt(s.i, "want a value, got %s", s.found())
	}
	s.i += len(w)
	return nil
}

// quoted reads a string and returns it with its quotes.
func (s *scanner) quoted() ([]byte, error) {
	start := s.i
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start = s.i - 1
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start:s.i], nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.errorAt(s.i, "a control character in a text")
		default:
			s.i++
		}
	}
	return nil, s.errorAt(s.i, "a text that does not end")
}

func (s *scanner) escape() error {
	at := s.i
	s.i++
	if s.i >= len(s.b) {
		return s.errorAt(at, "a text that does not end")
	}
	c := s.b[s.i]
	s.i++
	if c != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), c) < 0 {
			return s.errorAt(at, "unknown escape")
		}
		return nil
	}
	for n := 0; n < 4; n++ {
		if s.i >= len(s.b) || !isHex(s.b[s.i]) {
			return s.errorAt(at, "a broken \\u escape")
		}
		s.i++
	}
	return nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// text reads a string. Half of a surrogate pair, which the grammar allows and no text can
// hold, is refused: replacing it would give two ids one name.
func (s *scanner) text() (string, error) {
	s.peek()
	at := s.i
	raw, err := s.quoted()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var out string
	if err := json.Unmarshal(raw, &out); err != nil {
		return "", s.errorAt(at, "a text that cannot be read")
	}
	lower := bytes.ToLower(raw)
	if replaced(out) > replaced(string(raw))+bytes.Count(lower, []byte(`\ufffd`)) {
		return "", s.errorAt(at, "half of a surrogate pair")
	}
	return out, nil
}

func replaced(s string) int { return bytes.Count([]byte(s), []byte("\uFFFD")) }

// number skips a number of the JSON grammar.
func (s *scanner) number() error {
	start := s.i
	s.take('-')
	lead := s.i
	n := s.digits()
	ok := n == 1 || n > 1 && s.b[lead] != '0'
	if s.take('.') {
		ok = s.digits() > 0 && ok
	}
	if s.take('e') || s.take('E') {
		if !s.take('-') {
			s.take('+')
		}
		ok = s.digits() > 0 && ok
	}
	if !ok {
		s.i = start
		return s.errorAt(start, "want a value, got %s", s.found())
	}
	return nil
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}

// members reads an object into its members, in order.
func (s *scanner) members(limit int) ([]Member, error) {
	var out []Member
	err := s.object(func(key string, _ int) error {
		if len(out) == limit {
			return fmt.Errorf("%w: an object of more than %d fields", ErrLimit, limit)
		}
		raw, err := s.value()
		out = append(out, Member{key, raw})
		return err
	})
	return out, err
}

// Member is one field of an object: its name, and its value as it stands in the body.
type Member struct {
	Name string
	Raw  json.RawMessage
}

// field returns the value of a name, nil when it is absent or null.
func field(ms []Member, names ...string) json.RawMessage {
	for _, name := range names {
		for i := range ms {
			if ms[i].Name == name && string(ms[i].Raw) != "null" {
				return ms[i].Raw
			}
		}
	}
	return nil
}

// textOf reads a raw value as text; false when it is none.
func textOf(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	out, err := (&scanner{b: raw}).text()
	return out, err == nil
}

// labelOf reads a text, or true or false as the word.
func labelOf(raw json.RawMessage) (string, bool) {
	if w := string(raw); w == "true" || w == "false" {
		return w, true
	}
	return textOf(raw)
}

// numberOf reads a raw value as a number; false when it is none.
func numberOf(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	return x, err == nil
}
