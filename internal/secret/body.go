package secret

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Errors of [Scanner.Body]: the body must not be stored as it is.
var (
	// ErrUnparsable reports a body that is said to be JSON, or begins as such, and is none:
	// what stands where in it is not known.
	ErrUnparsable = errors.New("not the JSON that it begins as")
	// ErrBinary reports a body that is no UTF-8.
	ErrBinary = errors.New("not text")
)

// MaxFindings bounds how many places [Scanner.Body] lists unless it is told otherwise; further ones are replaced and
// counted.
const MaxFindings = 16

// Finding is the place of a secret in a body: a JSON pointer (RFC 6901), empty for a body
// of plain text.
type Finding struct {
	Pointer string
	Kind    Kind
}

// Scanner looks through bodies and reuses its memory. It is not safe for concurrent use.
// The zero Scanner is ready.
type Scanner struct {
	// Max is the number of places that are listed of a body, MaxFindings where it is 0.
	Max     int
	all     []Finding
	found   []Finding
	omitted int
	known   []echo
	labels  labels
	// drawnOnly looks for known values only where they look drawn.
	drawnOnly bool
	matches   []Match
	scratch   []byte
	places    []int
	path      []step
	// work counts the bytes that were looked at ahead of the walk, as a finder's does.
	work int
}

// Shape says what a body is known to be.
type Shape uint8

// The shapes of bodies.
const (
	// Whole is the default: what it is shows.
	Whole Shape = iota
	// DeclaredJSON is a body that its sender calls JSON.
	DeclaredJSON
	// Truncated is the beginning of a body.
	Truncated
)

// Body returns a body with a mark in the place of each secret. JSON, and JSON values one
// behind the other, stay valid: a match is replaced inside its string, names of members
// are looked at as well, a number becomes a string, and everything else stays as it was,
// byte for byte. In other text matches are replaced as they stand, also behind percent
// escapes. A body without a secret is returned itself; else the result is new.
//
// Truncated JSON is refused, since half a secret is not recognised; other text loses its
// last word. A value that is whole is none the less: its reader stopped behind it.
//
// The findings are valid until the next call; omitted counts what was found beyond
// Max.
func (s *Scanner) Body(body []byte, shape Shape) (clean []byte, found []Finding, omitted int, err error) {
	clean, found, omitted, err = s.once(body, shape)
	if err != nil || len(found) == 0 {
		return clean, found, omitted, err
	}
	clean, omitted = s.again(clean, omitted, func(body []byte) ([]byte, []Finding, int, error) { return s.once(body, Whole) })
	return clean, s.all, omitted, nil
}

// maxRounds is more than ordinary bodies take: two.
const maxRounds = 4

// again looks through what is left, until nothing is found: what stood before a name may be
// an echo of its value, and what was replaced may have hidden where something begins. The
// findings of all rounds are in s.all.
func (s *Scanner) again(clean []byte, omitted int, look func([]byte) ([]byte, []Finding, int, error)) ([]byte, int) {
	s.all = append(s.all[:0], s.found...)
	for range maxRounds {
		next, found, more, err := look(clean)
		if err != nil || len(found) == 0 {
			break
		}
		clean, omitted = next, omitted+more
		for _, f := range found {
			switch {
			case slices.Contains(s.all, f):
			case len(s.all) < cmp.Or(s.Max, MaxFindings):
				s.all = append(s.all, f)
			default:
				omitted++
			}
		}
	}
	return clean, omitted
}

func (s *Scanner) once(body []byte, shape Shape) (clean []byte, found []Finding, omitted int, err error) {
	s.found, s.omitted = s.found[:0], 0
	text := unsafe.String(unsafe.SliceData(body), len(body))
	if shape == Truncated && !looksJSON(text) {
		body = body[:lastWord(text)]
		text = text[:len(body)]
	}
	if !utf8.Valid(body) {
		return nil, nil, 0, ErrBinary
	}
	if mayBeJSON(text) {
		w := walker{Scanner: s, s: text, path: s.path[:0]}
		err := w.run()
		s.path = w.path[:0]
		switch {
		case err == nil && w.done == 0:
			return body, nil, 0, nil
		case err == nil:
			return append(w.out, text[w.done:]...), s.found, s.omitted, nil
		}
		s.found, s.omitted = s.found[:0], 0
	}
	if shape == DeclaredJSON && strings.TrimSpace(text) != "" || looksJSON(text) {
		s.rememberAll(text)
		return nil, nil, 0, ErrUnparsable
	}
	return s.plain(body, text)
}

// Text is [Scanner.Body] for a text that is no body: it is never refused. JSON in it is
// treated as JSON.
func (s *Scanner) Text(text string) (clean string, found []Finding) {
	body := unsafe.Slice(unsafe.StringData(text), len(text))
	out, found, _, err := s.Body(body, Whole)
	if err != nil {
		s.found = s.found[:0]
		out, found = s.plainText(body)
	}
	if len(found) == 0 {
		return text, nil
	}
	return string(out), found
}

// plainText is Text for what is no JSON.
func (s *Scanner) plainText(body []byte) ([]byte, []Finding) {
	look := func(body []byte) ([]byte, []Finding, int, error) {
		s.found = s.found[:0]
		return s.plain(body, unsafe.String(unsafe.SliceData(body), len(body)))
	}
	out, found, _, _ := look(body)
	if len(found) == 0 {
		return out, nil
	}
	out, _ = s.again(out, 0, look)
	return out, s.all
}

func (s *Scanner) plain(body []byte, text string) (clean []byte, found []Finding, omitted int, err error) {
	var e *escapes
	switch {
	case strings.IndexByte(text, '=') > 0 && !strings.ContainsAny(text, " \t\r\n"):
		e = &formEscapes
		s.form(text)
	case strings.IndexByte(text, '%') >= 0:
		e = &percentEscapes
		s.matches = s.find(s.matches[:0], text, e)
	default:
		s.matches = s.find(s.matches[:0], text, nil)
	}
	if len(s.matches) == 0 {
		return body, nil, 0, nil
	}
	for _, m := range s.matches {
		s.keep(m.Kind, text[m.Start:m.End], e)
		s.noteText(m.Kind)
	}
	return splice(nil, text, s.matches, 0), s.found, 0, nil
}

// form looks through name=value&name=value, the query of a URL among them. The escapes
// hide where a value ends, so each pair is looked at by itself.
func (s *Scanner) form(text string) {
	s.matches = s.matches[:0]
	for at := 0; at < len(text); {
		n := strings.IndexByte(text[at:], '&')
		if n < 0 {
			n = len(text) - at
		}
		s.formPair(text[at:at+n], at)
		at += n + 1
	}
}

func (s *Scanner) formPair(pair string, at int) {
	name, value, ok := strings.Cut(pair, "=")
	if ok {
		from := len(name) + 1
		s.scratch, _ = unescape(s.scratch[:0], nil, name[strings.LastIndexByte(name, '?')+1:], &formEscapes)
		if g := gradeOf(unsafe.String(unsafe.SliceData(s.scratch), len(s.scratch))); g > ordinary && !constant(value) && g.takes(value) {
			s.scratch, _ = unescape(s.scratch[:0], nil, value, &formEscapes)
			s.remember(string(s.scratch))
			s.findAt(name, at) // "https://h/KEY?sig=x"
			s.matches = append(s.matches, Match{at + from, at + len(pair), kindOf(g, value)})
			return
		}
	}
	s.findAt(pair, at)
}

// findAt adds what is found in a part of a form that stands at a place.
func (s *Scanner) findAt(part string, at int) {
	before := len(s.matches)
	s.matches = s.find(s.matches, part, &formEscapes)
	for i := before; i < len(s.matches); i++ {
		s.matches[i].Start += at
		s.matches[i].End += at
	}
}

func (s *Scanner) noteText(k Kind) {
	for _, f := range s.found {
		if f.Kind == k {
			return
		}
	}
	s.found = append(s.found, Finding{"", k})
}

// keep remembers a match, whose text is escaped as e says.
func (s *Scanner) keep(k Kind, raw string, e *escapes) {
	if k == Card || k == Email || k == APIKey || k == JWT || k == PrivateKey || len(s.known) >= maxEchoes {
		return // found by their form wherever they come
	}
	if e != nil && strings.ContainsAny(raw, e.signs) {
		s.scratch, _ = unescape(s.scratch[:0], nil, raw, e)
		raw = string(s.scratch)
	}
	s.rememberAs(k, raw)
}

// find looks for secrets in a text behind its escapes; the places are those in the text
// as it stands. Without escapes e is nil.
func (s *Scanner) find(dst []Match, text string, e *escapes) []Match {
	before := len(dst)
	if e == nil {
		return s.addEchoes(FindString(dst, text), before, text)
	}
	s.scratch, _ = unescape(s.scratch[:0], nil, text, e)
	clear := unsafe.String(unsafe.SliceData(s.scratch), len(s.scratch))
	if dst = s.addEchoes(FindString(dst, clear), before, clear); len(dst) == before {
		return dst
	}
	if s.places == nil {
		s.places = make([]int, 0, len(text)+1)
	}
	_, s.places = unescape(s.scratch[:0], s.places[:0], text, e)
	for i := before; i < len(dst); i++ {
		m := &dst[i]
		end := m.End
		for s.places[end] == s.places[end-1] {
			end++ // an escape stands for several bytes: all of it
		}
		m.Start, m.End = s.places[m.Start], s.places[end]
	}
	return dst
}

// firstBytes returns the first two bytes that are no space.
func firstBytes(s string) (a, b byte) {
	for i := 0; i < len(s); i++ {
		switch {
		case isSpace(s[i]):
		case a == 0:
			a = s[i]
		default:
			return a, s[i]
		}
	}
	return a, 0
}

// mayBeJSON: it is worth a try.
func mayBeJSON(s string) bool {
	a, _ := firstBytes(s)
	return a != 0 && strings.IndexByte(`{["-0123456789tfn`, a) >= 0
}

// looksJSON: whatever is not JSON and begins so must have been meant as JSON; "[INFO]" and
// a sentence in quotes are text.
func looksJSON(s string) bool {
	a, b := firstBytes(s)
	return a == '{' || a == '[' && (b == 0 || strings.IndexByte(`{["]`, b) >= 0)
}

// lastWord is where the last word of a text begins, with which it was cut.
func lastWord(s string) int {
	return strings.LastIndexAny(s, " \t\r\n&") + 1
}
