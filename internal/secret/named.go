package secret

import "strings"

// Pairs of a name and a value, as logs of HTTP and lists of variables have them:
// {"name": "Authorization", "value": "x"}, ["authorization", "x"].

// nameKey reports whether a member of this name may name what another one holds.
func nameKey(name string) bool {
	switch len(name) {
	case 1:
		return name == "k"
	case 3:
		return strings.EqualFold(name, "key")
	case 4:
		return strings.EqualFold(name, "name")
	case 5:
		return strings.EqualFold(name, "field") || strings.EqualFold(name, "param")
	case 6:
		return strings.EqualFold(name, "header")
	case 8:
		return strings.EqualFold(name, "variable") || strings.EqualFold(name, "property")
	case 9:
		return strings.EqualFold(name, "attribute") || strings.EqualFold(name, "parameter")
	case 10:
		return strings.EqualFold(name, "headerName")
	case 11:
		return strings.EqualFold(name, "header_name")
	}
	return false
}

// valueKey reports whether a member of this name may hold what another one names.
func valueKey(name string) bool {
	switch len(name) {
	case 1:
		return name == "v"
	case 3:
		return strings.EqualFold(name, "val")
	case 5:
		return strings.EqualFold(name, "value")
	case 6:
		return strings.EqualFold(name, "values")
	case 11:
		return strings.EqualFold(name, "headerValue")
	case 12:
		return strings.EqualFold(name, "header_value")
	}
	return false
}

// pairGrade is the grade of a text as the name of a pair: it is no sentence.
func pairGrade(name string) grade {
	if len(name) > maxName || !hints(name) {
		return ordinary
	}
	for i := 0; i < len(name); i++ {
		if class[name[i]]&isName == 0 && strings.IndexByte("[]:", name[i]) < 0 {
			return ordinary
		}
	}
	return gradeOf(name)
}

// naming keeps what a member's text makes of the object's value.
func (st *step) naming(text string) {
	if len(text) <= 6*maxName && strings.IndexByte(text, '\\') >= 0 {
		clear, _ := unescape(nil, nil, text, &jsonEscapes)
		text = string(clear)
	}
	if g := pairGrade(text); g > st.named {
		st.named, st.counts = g, endsIn(text, "token")
	}
}

// pairValue is the grade of the value at hand, which begins behind w.i: the object has
// named it, or names it further on.
func (w *walker) pairValue() grade {
	here := &w.path[len(w.path)-1]
	if here.named == ordinary && !here.looked {
		here.looked = true
		from := w.i
		w.lookAhead(here)
		w.work += w.i - from
		w.i = from
	}
	return here.named
}

// lookAhead goes through the members that follow, up to the first that is no text, number or
// word: each object does so once and never into another, so that the work stays in proportion.
func (w *walker) lookAhead(here *step) {
	name := "" // of the value itself: it is no name
	for {
		if w.space(); w.peek() != ':' {
			return
		}
		w.i++
		w.space()
		switch w.peek() {
		case '{', '[':
			return
		case '"':
			from, to, _, err := w.text()
			if err != nil {
				return
			}
			if nameKey(name) {
				here.naming(w.s[from:to])
			}
		default:
			for w.i < len(w.s) && strings.IndexByte(",}]\"", w.s[w.i]) < 0 {
				w.i++
			}
		}
		if more, err := w.more('}'); !more || err != nil {
			return
		}
		if w.space(); w.peek() != '"' {
			return
		}
		from, to, _, err := w.text()
		if err != nil {
			return
		}
		name = w.s[from:to]
	}
}

// element judges a text of an array by the one before it: flat lists of names and values,
// and lists of pairs. Lists of names are far more frequent, so that the value has to look
// like one.
func (w *walker) element(text string) grade {
	here := &w.path[len(w.path)-1]
	before := here.named
	if here.namedAt != here.index-1 {
		before = ordinary
	}
	cookie := here.counts
	here.named, here.namedAt, here.counts = pairGrade(text), here.index, endsIn(text, "cookie")
	switch pair := here.index == 1 && w.inPairs(); {
	case before == ordinary:
	case pair && before >= hinted && drawn(text, 8), before >= telling && drawn(text, 8):
		return before
	case before == header && cookie && strings.IndexByte(text, '=') > 0, before == header && !cookie && schemeLen(text) > 0:
		return before
	case pair && before >= telling && here.named == ordinary && wordWithDigit(text):
		return before
	}
	return ordinary
}

// inPairs: the array at hand ends here, and is itself in an array.
func (w *walker) inPairs() bool {
	n := len(w.path)
	if n < 2 || w.path[n-2].index < 0 {
		return false
	}
	i := w.i
	for i < len(w.s) && isSpace(w.s[i]) {
		i++
	}
	return i < len(w.s) && w.s[i] == ']'
}

// wordWithDigit: a word of letters and digits, with signs that no rule of a validator has.
func wordWithDigit(s string) bool {
	var all uint16
	for i := 0; i < min(len(s), maxJudged); i++ {
		if strings.IndexByte(" |:,/\t\r\n", s[i]) >= 0 {
			return false
		}
		all |= class[s[i]]
	}
	return len(s) >= minText && all&isDigit != 0 && all&(isUpper|isLower) != 0 && !date(s)
}

// named looks for the pairs in text, where the value follows its name: "name": "x-api-key",
// "value": "x", and likewise without quotation marks. It returns the value's grade.
func (f *finder) named(from, end, i int) grade {
	switch name := f.s[from:end]; {
	case valueKey(name):
		if f.pairGrade > ordinary && from-f.pairEnd < 2*maxQuote {
			return f.pairGrade
		}
	case nameKey(name):
		at := i + 1
		for at < len(f.s) && at-i < maxQuote && (f.s[at] == ' ' || f.s[at] == '\t') {
			at++
		}
		n := quoteLen(f.s[at:])
		to := at + n
		to += f.span(to, isName)
		f.pairGrade, f.pairEnd = ordinary, to
		if to-at <= maxName {
			f.pairGrade = pairGrade(f.s[at+n : to])
		}
	}
	return ordinary
}
