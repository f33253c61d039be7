package arrowfile

import (
	"strings"
	"unicode/utf8"
)

// maxLabels is the number of labels above which a column is no closed label set: it
// becomes plain utf8. Codes are int16, so the cap also keeps them far from overflow.
const maxLabels = 4096

// interner gives labels their codes. Columns of one name share one.
type interner struct {
	codes  map[string]int16
	values []string
	// mended holds the codes of labels that were not valid UTF-8.
	mended map[string]int16
	// hot keeps labels found before by a cheap hash of theirs. To compare with the column's
	// last label first was tried: labels change too often for the branch to be foreseen.
	hot [hotLabels]hotLabel
}

// hotLabels is the number of labels that are found without the map.
const hotLabels = 64

type hotLabel struct {
	label string
	code  int16
}

// slot is where a label that is not empty is kept. Labels of one column often differ in
// their last bytes only.
func (d *interner) slot(s string) *hotLabel {
	n := len(s)
	return &d.hot[(uint(s[0])*5+uint(s[n>>1])*3+uint(s[n-1])+uint(n))%hotLabels]
}

func newInterner(seed []string) *interner {
	d := &interner{codes: map[string]int16{}}
	for _, s := range seed {
		if s != "" && utf8.ValidString(s) {
			d.lookup(s)
		}
	}
	return d
}

// lookup returns the code of a label that is not empty, and false when there are too many
// labels. mended says that the label stands in the dictionary with replacement characters.
func (d *interner) lookup(s string) (code int16, mended, ok bool) {
	hot := d.slot(s)
	if hot.label == s {
		return hot.code, false, true
	}
	code, ok = d.codes[s]
	if !ok {
		if len(d.mended) > 0 {
			if code, ok = d.mended[s]; ok {
				return code, true, true
			}
		}
		if code, mended, ok = d.insert(s); !ok || mended {
			return code, mended, ok
		}
	}
	hot.label, hot.code = d.values[code], code
	return code, false, true
}

func (d *interner) insert(s string) (code int16, mended, ok bool) {
	if len(d.values) >= maxLabels || len(d.mended) >= maxLabels {
		return 0, false, false
	}
	if !utf8.ValidString(s) {
		code, _, ok = d.lookup(mend(s))
		if ok {
			if d.mended == nil {
				d.mended = map[string]int16{}
			}
			d.mended[strings.Clone(s)] = code
		}
		return code, true, ok
	}
	// The caller's string may share memory with a request that is about to end.
	s = strings.Clone(s)
	code = int16(len(d.values))
	d.codes[s] = code
	d.values = append(d.values, s)
	return code, false, true
}

// mend makes a string valid UTF-8, which Arrow's utf8 type requires: one bad byte would
// make other readers refuse the whole batch.
func mend(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
