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

// remember keeps a value that was found by its name alone. Services repeat what they were
// sent, under other names: an answer with the status 422 says which input was wrong.
func (s *Scanner) remember(value string) {
	if len(value) >= minEcho && len(value) <= maxEcho && len(s.known) < maxEchoes && !slices.Contains(s.known, value) {
		s.known = append(s.known, strings.Clone(value))
	}
}

// rememberAll remembers what is named in a body that is dropped: its answer may repeat it.
func (s *Scanner) rememberAll(text string) {
	s.matches = FindString(s.matches[:0], text)
	for _, m := range s.matches {
		if m.Kind == Credential {
			s.remember(text[m.Start:m.End])
		}
	}
}

// Forget ends what belongs together: until then a value that was found beside the name of a
// credential is found wherever it comes again, in that text or a later one.
func (s *Scanner) Forget() {
	clear(s.known)
	s.known = s.known[:0]
}

// addEchoes adds to the matches from before on those of the values that are known. What
// overlaps becomes one.
func (s *Scanner) addEchoes(dst []Match, before int, text string) []Match {
	if len(s.known) == 0 {
		return dst
	}
	found := len(dst)
	for _, value := range s.known {
		for at := 0; ; {
			n := strings.Index(text[at:], value)
			if n < 0 {
				break
			}
			dst = append(dst, Match{at + n, at + n + len(value), Credential})
			at += n + len(value)
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
