package remote

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting inside a body.
const maxDepth = 32

// SyntaxError is a finding in a JSON body.
type SyntaxError struct {
	// Line and Column count from 1, Column in bytes.
	Line, Column int
	Message      string
}

// Error returns line:column and the message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// scanner reads one JSON text strictly. encoding/json was not used because it accepts
// repeated keys, replaces invalid UTF-8 and lone surrogates silently, and gives no
// position for an unknown field: each of them could change a decision unseen.
type scanner struct {
	b     []byte
	i     int
	depth int
}

// errorAt makes an error at a byte offset.
func (s *scanner) errorAt(at int, format string, args ...any) error {
	before := s.b[:min(at, len(s.b))]
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

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.errorAt(s.i, "want %q, got %s", c, s.found())
	}
	s.i++
	return nil
}

func (s *scanner) found() string {
	if s.i >= len(s.b) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(s.b[s.i:])
	return strconv.QuoteRune(r)
}

// end demands that nothing follows.
func (s *scanner) end() error {
	if s.peek(); s.i < len(s.b) {
		return s.errorAt(s.i, "text after the JSON value")
	}
	return nil
}

// object reads an object; f reads the value of each key. A key may stand once.
func (s *scanner) object(f func(key string, at int) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for first := true; s.peek() != '}'; first = false {
		if !first {
			if err := s.expect(','); err != nil {
				return err
			}
			s.peek()
		}
		at := s.i
		key, err := s.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return s.errorAt(at, "field %q stands twice", key)
		}
		seen[key] = true
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := f(key, at); err != nil {
			return err
		}
	}
	s.i++
	s.depth--
	return nil
}

// list reads an array; f reads each element.
func (s *scanner) list(f func() error) error {
	if err := s.open('['); err != nil {
		return err
	}
	for first := true; s.peek() != ']'; first = false {
		if !first {
			if err := s.expect(','); err != nil {
				return err
			}
		}
		if err := f(); err != nil {
			return err
		}
	}
	s.i++
	s.depth--
	return nil
}

func (s *scanner) open(c byte) error {
	if err := s.expect(c); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.errorAt(s.i-1, "nested more than %d deep", maxDepth)
	}
	return nil
}

// text reads a string.
func (s *scanner) text() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			raw := s.b[start:s.i]
			if !utf8.Valid(raw) {
				return "", s.errorAt(start, "text that is not UTF-8")
			}
			s.i++
			return string(raw), nil
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return "", s.errorAt(s.i, "a control character in a text")
		}
		s.i++
	}
	return "", s.errorAt(s.i, "a text that does not end")
}

// escaped reads a string from its first escape on.
func (s *scanner) escaped(start int) (string, error) {
	out := append([]byte(nil), s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return "", s.errorAt(start, "text that is not UTF-8")
			}
			return string(out), nil
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < ' ':
			return "", s.errorAt(s.i-1, "a control character in a text")
		default:
			out = append(out, c)
		}
	}
	return "", s.errorAt(s.i, "a text that does not end")
}

func (s *scanner) escape() (rune, error) {
	at := s.i - 1
	if s.i >= len(s.b) {
		return 0, s.errorAt(at, "a text that does not end")
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return s.unicode(at)
	}
	return 0, s.errorAt(at, "unknown escape \\%c", c)
}

// unicode reads what follows \u; half of a surrogate pair is refused, not replaced.
func (s *scanner) unicode(at int) (rune, error) {
	r, ok := s.hex()
	if ok && utf16.IsSurrogate(r) {
		if s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
			s.i += 2
			low, lowOK := s.hex()
			r = utf16.DecodeRune(r, low)
			ok = lowOK && r != utf8.RuneError
		} else {
			ok = false
		}
	}
	if !ok {
		return 0, s.errorAt(at, "a broken \\u escape")
	}
	return r, nil
}

func (s *scanner) hex() (rune, bool) {
	if s.i+4 > len(s.b) {
		return 0, false
	}
	var r rune
	for _, c := range s.b[s.i : s.i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	s.i += 4
	return r, true
}

// number reads a number and returns it as it is written; whole says that it has neither
// a point nor an exponent.
func (s *scanner) number() (literal string, whole bool, err error) {
	s.peek()
	start := s.i
	s.take('-')
	lead := s.i
	n := s.digits()
	ok, whole := n == 1 || n > 1 && s.b[lead] != '0', true
	if s.take('.') {
		ok, whole = s.digits() > 0 && ok, false
	}
	if s.take('e') || s.take('E') {
		if !s.take('-') {
			s.take('+')
		}
		ok, whole = s.digits() > 0 && ok, false
	}
	if !ok {
		return "", false, s.errorAt(start, "want a number")
	}
	return string(s.b[start:s.i]), whole, nil
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// digits skips digits and returns how many.
func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}

// word reads true, false or null.
func (s *scanner) word(w string) error {
	s.peek()
	if !bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		return s.errorAt(s.i, "want %s, got %s", w, s.found())
	}
	s.i += len(w)
	return nil
}

// null reads null, if that is next.
func (s *scanner) null() (bool, error) {
	if s.peek() != 'n' {
		return false, nil
	}
	return true, s.word("null")
}

// skip reads any value and returns its text.
func (s *scanner) skip() ([]byte, error) {
	s.peek()
	start := s.i
	var err error
	switch c := s.peek(); c {
	case '{':
		err = s.object(func(string, int) error { _, err := s.skip(); return err })
	case '[':
		err = s.list(func() error { _, err := s.skip(); return err })
	case '"':
		_, err = s.text()
	case 't':
		err = s.word("true")
	case 'f':
		err = s.word("false")
	case 'n':
		err = s.word("null")
	default:
		_, _, err = s.number()
	}
	return s.b[start:s.i], err
}
