package systemone

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

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
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.i - 1
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
