package remote

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"html"
	"slices"
	"strconv"
	"strings"
)

// minKey is the length below which a key is refused: a shorter one would be found, and
// taken out, in words that are no key.
const minKey = 8

// masked stands where a service sent the key back.
const masked = "***"

// maxEscapes is how many layers of escapes are looked through: JSON inside JSON that
// quotes a URL has three.
const maxEscapes = 3

// mask takes a key out of what a service sends. It works on the bytes of an answer
// before they are parsed, so that no field and no message about a broken answer can be
// forgotten; a mask on each field would also come too late for the messages, which cut
// what they quote. A nil mask changes nothing.
type mask struct {
	plain [][]byte // the key, and its digits in base 16
	runs  [][]byte // what base64 makes of the key, less the ends that depend on what stands around it
}

func newMask(key string) *mask {
	if key == "" {
		return nil
	}
	digits := hex.EncodeToString([]byte(key))
	m := &mask{plain: [][]byte{[]byte(key), []byte(digits), []byte(strings.ToUpper(digits))}}
	for shift := range 3 {
		all := append(make([]byte, shift), key...)
		first, end := (shift*8+5)/6, len(all)*8/6
		m.runs = append(m.runs, []byte(base64.RawStdEncoding.EncodeToString(all)[first:end]),
			[]byte(base64.RawURLEncoding.EncodeToString(all)[first:end]))
	}
	return m
}

// text is [mask.bytes] for a string.
func (m *mask) text(s string) string { return string(m.bytes([]byte(s))) }

// bytes returns b with each appearance of the key replaced.
func (m *mask) bytes(b []byte) []byte {
	if m == nil {
		return b
	}
	spans := m.find(nil, view{b: b}, maxEscapes)
	if len(spans) == 0 {
		return b
	}
	slices.SortFunc(spans, func(x, y span) int { return x.from - y.from })
	out, done := make([]byte, 0, len(b)), -1
	for _, s := range spans {
		if s.from > done {
			out = append(append(out, b[max(done, 0):s.from]...), masked...)
		}
		done = max(done, s.to)
	}
	return append(out, b[done:]...)
}

// span is a part of the original bytes.
type span struct{ from, to int }

// view is a text with escapes undone; at gives the original offset of each byte and of
// the end, and is nil where nothing was undone.
type view struct {
	b  []byte
	at []int
}

func (v *view) origin(i int) int {
	if v.at == nil {
		return i
	}
	return v.at[i]
}

// find adds the places of the key in a text and in what the text is with one kind of
// escape after the other undone. Undoing all kinds in one pass was not enough: it breaks
// a key that holds % itself.
func (m *mask) find(spans []span, v view, layers int) []span {
	for _, needle := range m.plain {
		spans = v.each(spans, needle, func(i, j int) (int, int) { return i, j })
	}
	for _, needle := range m.runs {
		spans = v.each(spans, needle, v.run)
	}
	if layers == 0 {
		return spans
	}
	for _, undo := range []escape{{'\\', backslash}, {'%', percent}, {'&', entity}} {
		if next, changed := v.undo(undo); changed {
			spans = m.find(spans, next, layers-1)
		}
	}
	return spans
}

// each adds the places of a needle, as widen gives them.
func (v *view) each(spans []span, needle []byte, widen func(i, j int) (int, int)) []span {
	for start := 0; ; {
		i := bytes.Index(v.b[start:], needle)
		if i < 0 {
			return spans
		}
		from, to := widen(start+i, start+i+len(needle))
		spans = append(spans, span{v.origin(from), v.origin(to)})
		start = to
	}
}

// run widens a place to the whole run of base64 around it, whose ends hold bits of the
// key too.
func (v *view) run(i, j int) (int, int) {
	for i > 0 && isBase64(v.b[i-1]) {
		i--
	}
	for j < len(v.b) && (isBase64(v.b[j]) || v.b[j] == '=') {
		j++
	}
	return i, j
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/-_", c) >= 0
}

// escape is a way of writing a byte; decode reads one at the beginning of a text that
// starts with mark, and returns its length, or 0.
type escape struct {
	mark   byte
	decode func(b []byte) (byte, int)
}

// undo decodes the escapes of one kind.
func (v *view) undo(e escape) (next view, changed bool) {
	if bytes.IndexByte(v.b, e.mark) < 0 {
		return view{}, false
	}
	next = view{make([]byte, 0, len(v.b)), make([]int, 0, len(v.b)+1)}
	for i := 0; i < len(v.b); {
		c, n := v.b[i], 0
		if c == e.mark {
			c, n = e.decode(v.b[i:])
		}
		if n == 0 {
			c, n = v.b[i], 1
		} else {
			changed = true
		}
		next.b, next.at = append(next.b, c), append(next.at, v.origin(i))
		i += n
	}
	next.at = append(next.at, v.origin(len(v.b)))
	return next, changed
}

// hexByte reads the hexadecimal digits b[from:to] as a byte.
func hexByte(b []byte, from, to int) (byte, int) {
	if len(b) < to {
		return 0, 0
	}
	x, err := strconv.ParseUint(string(b[from:to]), 16, 8)
	if err != nil {
		return 0, 0
	}
	return byte(x), to
}

// percent reads the escape of URLs.
func percent(b []byte) (byte, int) { return hexByte(b, 1, 3) }

// backslash reads the escapes of JSON and of Go's %q.
func backslash(b []byte) (byte, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/', '\'':
		return b[1], 2
	case 'u':
		return hexByte(b, 2, 6)
	case 'x':
		return hexByte(b, 2, 4)
	}
	return 0, 0
}

// entity reads the escape of HTML, which error pages are written in.
func entity(b []byte) (byte, int) {
	end := bytes.IndexByte(b[:min(len(b), 10)], ';')
	if end < 0 {
		return 0, 0
	}
	if s := html.UnescapeString(string(b[:end+1])); len(s) == 1 {
		return s[0], end + 1
	}
	return 0, 0
}
