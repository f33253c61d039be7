package secret

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Bounds of what a scanner remembers of labels.
const (
	// MinLabel is the length of the shortest label that can hold a secret.
	MinLabel = minText
	// maxClean labels, of maxLabelLen bytes at most, are known to be clean: a closed set is far
	// smaller, and one that is not closed must not take memory without end.
	maxClean    = 1 << 12
	maxLabelLen = 256
	// maxDirty labels of a request have marks that are told apart.
	maxDirty = 1 << 12
)

// labels is what a scanner knows of labels.
type labels struct {
	clean map[string]struct{}
	// dirty are those of the request at hand in which something was found, used what stands
	// in their place.
	dirty map[string]dirtyLabel
	used  map[string]int
}

type dirtyLabel struct {
	clean string
	found []Finding
}

// Label is [Scanner.Text] for labels: actions, rule ids, names of models. Up to the next
// Forget the same label gives the same text, and others give others: what was two
// candidates stays two ("[redacted:api-key]", "[redacted:api-key]#2").
//
// Labels that come again cost a look-up. A value that is known from elsewhere is looked for
// only where it looks drawn: else whoever calls a service could rename its actions
// by sending them as passwords.
func (s *Scanner) Label(text string, comesAgain bool) (clean string, found []Finding) {
	if len(text) < MinLabel {
		return text, nil
	}
	if _, ok := s.labels.clean[text]; ok && !s.echoes(text) {
		return text, nil
	}
	if d, ok := s.labels.dirty[text]; ok {
		return d.clean, d.found
	}
	clean, found = s.labelText(text)
	switch mark := strings.Contains(text, markBegin); {
	case len(found) > 0:
		return s.labels.replaced(text, clean, slices.Clone(found))
	case mark:
		s.labels.reserve(text)
	case comesAgain && len(text) <= maxLabelLen:
		s.labels.remember(text)
	}
	return text, nil
}

func (s *Scanner) labelText(text string) (string, []Finding) {
	s.drawnOnly = true
	defer func() { s.drawnOnly = false }()
	if looksJSON(text) {
		return s.Text(text)
	}
	out, found := s.plainText(unsafe.Slice(unsafe.StringData(text), len(text)))
	if len(found) == 0 {
		return text, nil
	}
	return string(out), found
}

// echoes reports whether a label holds a value that is known and looks drawn.
func (s *Scanner) echoes(text string) bool {
	for _, k := range s.known {
		if k.drawn && strings.Contains(text, k.value) {
			return true
		}
	}
	return false
}

func (l *labels) remember(text string) {
	if len(l.clean) >= maxClean {
		clear(l.clean)
	}
	if l.clean == nil {
		l.clean = map[string]struct{}{}
	}
	l.clean[strings.Clone(text)] = struct{}{} // the text may be a part of a large one
}

// reserve keeps a mark that was there already from standing for something else.
func (l *labels) reserve(text string) {
	if l.used == nil {
		l.used = map[string]int{}
	}
	if len(l.used) < maxDirty && l.used[text] == 0 {
		l.used[text] = 1
	}
}

// replaced notes what stands for a label.
func (l *labels) replaced(text, clean string, found []Finding) (string, []Finding) {
	if len(l.dirty) >= maxDirty {
		return clean, found
	}
	plain := clean
	for l.used[clean] > 0 {
		l.used[plain]++
		clean = plain + "#" + strconv.Itoa(l.used[plain])
	}
	l.reserve(clean)
	if l.dirty == nil {
		l.dirty = map[string]dirtyLabel{}
	}
	l.dirty[text] = dirtyLabel{clean, found}
	return clean, found
}

func (l *labels) forget() {
	if len(l.used) > 0 {
		clear(l.used)
		clear(l.dirty)
	}
}
