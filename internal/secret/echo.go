package secret

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of what a scanner remembers. A shorter value is too likely to be a part of
// something else.
const (
	maxEchoes = 16
	minEcho   = 6
	maxEcho   = 1024
)

// echo is a value that was found by what stood beside it.
type echo struct {
	value string
	drawn bool
}

// remember keeps a value that was found by its name alone. Services repeat what they were
// sent, under other names: an answer with the status 422 says which input was wrong.
func (s *Scanner) remember(value string) {
	if len(value) < minEcho || len(value) > maxEcho || len(s.known) >= maxEchoes {
		return
	}
	if !slices.ContainsFunc(s.known, func(k echo) bool { return k.value == value }) {
		s.known = append(s.known, echo{strings.Clone(value), drawn(value, 8)})
	}
}

// rememberAs keeps what of a match may come again by itself: of a header's value also what
// follows the scheme, of cookies and of a URL's user what looks drawn.
func (s *Scanner) rememberAs(k Kind, value string) {
	switch k {
	case Credential, Bearer:
		s.remember(value)
	case Authorization:
		n := schemeLen(value)
		s.remember(strings.TrimSpace(value[n:]))
		if first, _, more := strings.Cut(value[n:], " "); more && drawn(first, 8) {
			s.remember(first)
		}
		s.remember(value)
	case Cookie:
		for pair := range strings.SplitSeq(value, ";") {
			if _, v, ok := strings.Cut(pair, "="); ok && drawn(v, 8) {
				s.remember(v)
			}
		}
		s.remember(value)
	case Userinfo:
		if _, password, ok := strings.Cut(value, ":"); ok && !plain(password) && !number(password) {
			s.remember(password)
		}
	}
}

// rememberAll remembers what is named in a body that is dropped: its answer may repeat it.
func (s *Scanner) rememberAll(text string) {
	s.matches = FindString(s.matches[:0], text)
	for _, m := range s.matches {
		s.rememberAs(m.Kind, text[m.Start:m.End])
	}
}

// Remembers reports whether there is a value that is looked for wherever it comes again.
func (s *Scanner) Remembers() bool { return len(s.known) > 0 }

// Forget ends what belongs together: until then a value that was found beside the name of a
// credential is found wherever it comes again, in that text or a later one.
func (s *Scanner) Forget() {
	clear(s.known)
	s.known = s.known[:0]
	s.labels.forget()
}

// addEchoes adds to the matches from before on those of the values that are known. What
// overlaps becomes one.
func (s *Scanner) addEchoes(dst []Match, before int, text string) []Match {
	if len(s.known) == 0 {
		return dst
	}
	found := len(dst)
	for _, k := range s.known {
		if s.drawnOnly && !k.drawn {
			continue
		}
		for at := 0; ; {
			n := strings.Index(text[at:], k.value)
			if n < 0 {
				break
			}
			dst = append(dst, Match{at + n, at + n + len(k.value), Credential})
			at += n + len(k.value)
		}
	}
	if len(dst) == found {
		return dst
	}
	own := dst[before:]
	slices.SortFunc(own, func(a, b Match) int { return cmp.Compare(a.Start, b.Start) })
	kept := own[:1]
	for _, m := range own[1:] {
		if last := &kept[len(kept)-1]; m.Start < last.End {
			last.End = max(last.End, m.End)
		} else {
			kept = append(kept, m)
		}
	}
	return dst[:before+len(kept)]
}
