package secret

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
)

// maxDepth bounds how deep a JSON body may be nested.
const maxDepth = 1000

var errSyntax = errors.New("not JSON")

// step is one part of the way to a value: the name in an object, where index is below 0,
// or the place in an array.
type step struct {
	name  string
	index int
	// of is the grade of the name that the object's "loc" ends in.
	of grade
	// named is the grade of the text that names the object's value, or of the array's element
	// namedAt; counts: its number is an amount, in an array: it is a cookie's.
	named   grade
	namedAt int
	counts  bool
	// looked: the object was gone through for a name that follows its value.
	looked bool
}

// walker goes through a JSON text once: it checks the syntax, which is RFC 8259's, and
// copies the text to out up to the last thing that it replaced.
type walker struct {
	*Scanner
	s    string
	i    int
	out  []byte
	done int
	path []step
	// doc counts the values of a text that holds several.
	doc int
	// names counts replaced names: two of one object must not become one.
	names int
}

// run takes one value, or several with space between them, as log files and streams have.
func (w *walker) run() error {
	for w.space(); ; w.doc++ {
		first := w.peek()
		if err := w.value(ordinary, ordinary); err != nil {
			return err
		}
		end := w.i
		if w.space(); w.i == len(w.s) {
			return nil
		}
		// Numbers in a row are text: the groups of a card, for one.
		if next := w.peek(); w.i == end || first != '{' && first != '[' || next != '{' && next != '[' {
			return errSyntax
		}
	}
}

func (w *walker) space() {
	for w.i < len(w.s) && isSpace(w.s[w.i]) {
		w.i++
	}
}

// peek is the next byte, 0 at the end: no valid text has one.
func (w *walker) peek() byte {
	if w.i < len(w.s) {
		return w.s[w.i]
	}
	return 0
}

// value takes one value. Its name has grade g; around is that of the names further up.
func (w *walker) value(g, around grade) error {
	switch c := w.peek(); {
	case c == '"':
		from, to, escaped, err := w.text()
		if err == nil {
			w.textValue(from, to, escaped, max(g, around))
		}
		return err
	case c == '{':
		return w.object(max(g, around))
	case c == '[':
		return w.array(g, around)
	case c == '-' || c >= '0' && c <= '9':
		return w.number(g)
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(w.s[w.i:], word) {
			w.i += len(word)
			return nil
		}
	}
	return errSyntax
}

func (w *walker) push(s step) error {
	if len(w.path) >= maxDepth {
		return errSyntax
	}
	w.path = append(w.path, s)
	return nil
}

func (w *walker) object(around grade) error {
	w.i++
	if w.space(); w.peek() == '}' {
		w.i++
		return nil
	}
	if around < telling {
		around = ordinary // only what is surely a credential colours what is inside
	}
	if err := w.push(step{index: -1}); err != nil {
		return err
	}
	defer func() { w.path = w.path[:len(w.path)-1] }()
	for {
		if w.space(); w.peek() != '"' {
			return errSyntax
		}
		from, to, escaped, err := w.text()
		if err != nil {
			return err
		}
		g := w.name(from, to, escaped)
		if w.space(); w.peek() != ':' {
			return errSyntax
		}
		w.i++
		w.space()
		if err := w.value(g, around); err != nil {
			return err
		}
		if more, err := w.more('}'); !more {
			return err
		}
	}
}

func (w *walker) array(g, around grade) error {
	w.i++
	if w.space(); w.peek() == ']' {
		w.i++
		return nil
	}
	if err := w.push(step{}); err != nil {
		return err
	}
	defer func() { w.path = w.path[:len(w.path)-1] }()
	for n := 0; ; n++ {
		w.path[len(w.path)-1].index = n
		w.space()
		if err := w.value(g, around); err != nil {
			return err
		}
		if more, err := w.more(']'); !more {
			return err
		}
	}
}

// more takes what follows an element: a comma, or the end of the object or array.
func (w *walker) more(end byte) (bool, error) {
	w.space()
	switch w.peek() {
	case ',':
		w.i++
		return true, nil
	case end:
		w.i++
		return false, nil
	}
	return false, errSyntax
}

// text takes a string and returns where it stands between the quotes.
func (w *walker) text() (from, to int, escaped bool, err error) {
	s, i := w.s, w.i+1
	from = i
	for i < len(s) {
		switch c := s[i]; {
		case c == '"':
			w.i = i + 1
			return from, i, escaped, nil
		case c < ' ':
			return 0, 0, false, errSyntax
		case c == '\\':
			escaped = true
			n := escapeLen(s[i:])
			if n == 0 {
				return 0, 0, false, errSyntax
			}
			i += n
		default:
			i++
		}
	}
	return 0, 0, false, errSyntax
}

// number takes a number. A card's is one without sign and fraction.
func (w *walker) number(g grade) error {
	start := w.i
	if w.peek() == '-' {
		w.i++
	}
	digits := w.i
	n := w.digits()
	if n == 0 || n > 1 && w.s[digits] == '0' {
		return errSyntax
	}
	whole := digits == start
	if w.peek() == '.' {
		w.i++
		whole = false
		if w.digits() == 0 {
			return errSyntax
		}
	}
	if c := w.peek(); c == 'e' || c == 'E' {
		w.i++
		whole = false
		if c := w.peek(); c == '+' || c == '-' {
			w.i++
		}
		if w.digits() == 0 {
			return errSyntax
		}
	}
	w.numberValue(g, start, whole && n >= 13)
	return nil
}

func (w *walker) digits() int {
	start := w.i
	for w.i < len(w.s) && w.s[w.i] >= '0' && w.s[w.i] <= '9' {
		w.i++
	}
	return w.i - start
}

// numberValue replaces a number by a mark, which is text: null would hide that there was
// something.
func (w *walker) numberValue(g grade, start int, long bool) {
	var here step
	if n := len(w.path); n > 0 {
		here = w.path[n-1]
	}
	switch {
	case here.named > ordinary && valueKey(here.name) && (here.counts || w.i-start < 6): // how often it came
	case g >= telling && here.index < 0 && !endsIn(here.name, "token"):
		w.replace(start, w.i, Credential, true)
	case long:
		if found := FindString(w.matches[:0], w.s[start:w.i]); len(found) == 1 && found[0].Start == 0 {
			w.replace(start, w.i, Card, true)
		}
	}
}

// name looks at the name of a member, remembers it for the pointer and returns its grade.
func (w *walker) name(from, to int, escaped bool) grade {
	raw := w.s[from:to]
	clear := raw
	if escaped {
		w.scratch, _ = unescape(w.scratch[:0], nil, raw, &jsonEscapes)
		clear = string(w.scratch)
	}
	here := &w.path[len(w.path)-1]
	here.name = clear
	if clear == "input" && here.of > ordinary {
		return here.of // {"loc":["body","password"],"input":"x"}: a validator's complaint
	}
	if found := w.nameMatches(clear); len(found) > 0 {
		w.matches = found[:0]
		mark := Mark(found[0].Kind)
		if w.names++; w.names > 1 {
			mark = mark[:len(mark)-1] + "#" + strconv.Itoa(w.names) + "]"
		}
		w.path[len(w.path)-1].name = mark
		w.note(found[0].Kind)
		w.put(from, to, mark)
		return ordinary
	}
	g := gradeOf(clear)
	if g < telling && valueKey(clear) {
		g = max(g, w.pairValue())
	}
	return g
}

// nameMatches looks for secrets in a name, unless it is too short for one: a mail address
// has its sign, a pair too, and everything else is longer.
func (w *walker) nameMatches(name string) []Match {
	if len(w.known) == 0 && len(name) < 13 && strings.IndexByte(name, '@') < 0 && strings.IndexByte(name, '=') < 0 {
		return nil
	}
	return w.find(w.matches[:0], name, nil)
}

// naming keeps what a text makes of the values beside it, and returns what those before it
// make of the text.
func (w *walker) naming(raw string, n int) grade {
	here := &w.path[n-1]
	if here.index < 0 {
		if nameKey(here.name) {
			here.naming(raw)
		}
		return ordinary
	}
	if n > 1 && w.path[n-2].name == "loc" {
		w.path[n-2].of = gradeOf(raw)
	}
	return w.element(raw)
}

// textValue looks at the value of a string.
func (w *walker) textValue(from, to int, escaped bool, g grade) {
	if to == from {
		return
	}
	raw := w.s[from:to]
	if n := len(w.path); n > 0 {
		g = max(g, w.naming(raw, n))
	}
	if g > ordinary {
		clear := raw
		if escaped {
			w.scratch, _ = unescape(w.scratch[:0], nil, raw, &jsonEscapes)
			clear = string(w.scratch)
		}
		if g.takes(clear) && !constant(clear) {
			w.rememberAs(kindOf(g, clear), clear)
			w.replace(from, to, kindOf(g, clear), false)
			return
		}
	}
	if len(raw) < minText {
		return
	}
	var e *escapes
	switch percent := strings.IndexByte(raw, '%') >= 0; {
	case escaped && percent:
		e = &bothEscapes
	case escaped:
		e = &jsonEscapes
	case percent:
		e = &percentEscapes
	}
	w.matches = w.find(w.matches[:0], raw, e)
	for _, m := range w.matches {
		w.keep(m.Kind, raw[m.Start:m.End], e)
		w.replace(from+m.Start, from+m.End, m.Kind, false)
	}
}

// minText is the length of the shortest text that any rule knows: a@b.co.
const minText = 6

// replace puts a mark into the place of s[from:to].
func (w *walker) replace(from, to int, k Kind, quote bool) {
	w.note(k)
	mark := Mark(k)
	if quote {
		mark = `"` + mark + `"`
	}
	w.put(from, to, mark)
}

func (w *walker) put(from, to int, mark string) {
	w.out = append(append(w.out, w.s[w.done:from]...), mark...)
	w.done = to
}

// note remembers what was found where.
func (w *walker) note(k Kind) {
	if most := cmp.Or(w.Max, MaxFindings); len(w.found) >= most {
		w.omitted++
		return
	}
	f := Finding{w.pointer(), k}
	if n := len(w.found); n == 0 || w.found[n-1] != f {
		w.found = append(w.found, f)
	}
}

// maxPointer bounds a pointer's length in bytes.
const maxPointer = 256

// pointer is the JSON pointer (RFC 6901) of the value at hand. In a text of several values
// the number of the value stands before it, as in #2/a.
func (w *walker) pointer() string {
	var b strings.Builder
	if w.doc > 0 {
		b.WriteString("#" + strconv.Itoa(w.doc))
	}
	for _, p := range w.path {
		b.WriteByte('/')
		if p.index >= 0 {
			b.WriteString(strconv.Itoa(p.index))
			continue
		}
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(p.name, "~", "~0"), "/", "~1"))
		if b.Len() > maxPointer {
			return strings.ToValidUTF8(b.String()[:maxPointer], "") + "..."
		}
	}
	return b.String()
}
