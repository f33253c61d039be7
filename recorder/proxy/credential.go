package proxy

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/clefbench/clefbench/internal/secret"
)

const (
	// minSecret is the shortest credential that is looked for: a shorter one stands in any
	// text by chance.
	minSecret = 8
	// maxSecrets bounds how many a request may have, and so the time that looking for them
	// takes. Browsers keep 180 cookies of a site.
	maxSecrets = 256
	// longName is the length from which on a credential of letters only is no name of a
	// member.
	longName = 20
	hidden   = "***"
)

// reach says where a credential is looked for.
type reach uint8

const (
	// whole: it is a word as others are, and hidden where it is a whole value.
	whole reach = iota
	// drawn: whole, but inside where it has letters and digits, as no word has.
	drawn
	// inside: as a part of any value.
	inside
)

// credential is a text of a request's head that no row may hold, without escapes.
type credential struct {
	text  []byte
	reach reach
}

// named reports whether it is looked for in names of members: "questions" may be a
// password, too.
func (c *credential) named() bool {
	return c.reach == inside && (len(c.text) >= longName || bytes.ContainsFunc(c.text, unicode.IsDigit))
}

// credentials gathers those of one head.
type credentials []credential

func (c *credentials) add(s string, r reach) {
	text := unescaped([]byte(strings.TrimSpace(s)))
	if len(text) < minSecret || len(*c) > maxSecrets {
		return
	}
	if r == drawn && bytes.ContainsFunc(text, unicode.IsDigit) && bytes.ContainsFunc(text, unicode.IsLetter) {
		r = inside
	}
	for i := range *c {
		if old := &(*c)[i]; bytes.Equal(old.text, text) {
			old.reach = max(old.reach, r)
			return
		}
	}
	*c = append(*c, credential{text, r})
}

func (c *credentials) header(name, value string) {
	c.add(value, inside)
	if name == "Cookie" {
		c.cookies(value)
		return
	}
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return
	}
	c.add(rest, inside)
	if !strings.EqualFold(scheme, "basic") {
		return
	}
	if plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(rest), "=")); err == nil {
		user, pass, _ := strings.Cut(string(plain), ":")
		c.add(pass, inside)
		if pass == "" {
			c.add(user, inside) // some services take a key for the name
		} else {
			c.add(user, whole)
		}
	}
}

// cookies takes the values one by one: an answer repeats one of them, not the header. Some
// are settings (theme=midnight), so that what is a word is hidden as a whole value only.
func (c *credentials) cookies(header string) {
	for part := range strings.SplitSeq(header, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			r := drawn
			if secret.Parameter(strings.TrimSpace(name)) {
				r = inside
			}
			c.add(strings.Trim(strings.TrimSpace(value), `"`), r)
		}
	}
}

// credentialsOf finds those of a request's header and query; more than maxSecrets when it
// has too many to look for.
func credentialsOf(h http.Header, query string) (c credentials) {
	for name, values := range h {
		if secret.Parameter(name) {
			for _, v := range values {
				c.header(name, v)
			}
		}
	}
	if query == "" {
		return c
	}
	values, _ := url.ParseQuery(query)
	for name, vs := range values {
		if secret.Parameter(name) {
			for _, v := range vs {
				c.add(v, inside)
			}
		}
	}
	return c
}

// hide puts *** into the place of credentials that a text repeats, as they are or escaped.
// JSON stays JSON, and keeps the names of its members unless one holds a credential that
// is no word.
func (c credentials) hide(text []byte) ([]byte, bool) {
	clear := unescaped(text)
	h := hider{text: text}
	for _, v := range c {
		if bytes.Contains(clear, v.text) {
			h.known = append(h.known, v)
		}
	}
	switch {
	case h.known == nil:
		return text, false
	case json.Valid(text):
		h.json()
	default:
		h.piece(0, len(text), false, false)
	}
	if h.done == 0 {
		return text, false
	}
	return append(h.out, text[h.done:]...), true
}

// hider goes through a text that has credentials in it. It copies to out what is before
// done.
type hider struct {
	text, out []byte
	done      int
	known     []credential
	spans     []span
}

// span is a place in a text without its escapes.
type span struct{ from, to int }

// json looks at each string and number of a valid text.
func (h *hider) json() {
	for i := 0; i < len(h.text); i++ {
		switch b := h.text[i]; {
		case b == '"':
			end := i + 1
			for h.text[end] != '"' {
				if h.text[end] == '\\' {
					end++
				}
				end++
			}
			rest := bytes.TrimLeft(h.text[end+1:], " \t\r\n")
			h.piece(i+1, end, len(rest) > 0 && rest[0] == ':', true)
			i = end
		case b == '-' || b >= '0' && b <= '9':
			end := i + 1
			for end < len(h.text) && bytes.IndexByte([]byte("+-.0123456789Ee"), h.text[end]) >= 0 {
				end++
			}
			h.number(i, end)
			i = end - 1
		}
	}
}

// number hides a number that is a credential; a text stands for it then.
func (h *hider) number(from, to int) {
	for _, v := range h.known {
		if bytes.Equal(h.text[from:to], v.text) {
			h.replace(from, to, `"`+hidden+`"`)
			return
		}
	}
}

// piece looks at text[from:to]: a name, a value, or a text that is no JSON.
func (h *hider) piece(from, to int, name, value bool) {
	raw := h.text[from:to]
	clear := unescaped(raw)
	h.spans = h.spans[:0]
	for _, v := range h.known {
		switch {
		case name && !v.named():
		case v.reach == inside:
			for at := 0; ; {
				n := bytes.Index(clear[at:], v.text)
				if n < 0 {
					break
				}
				h.spans = append(h.spans, span{at + n, at + n + len(v.text)})
				at += n + len(v.text)
			}
		case value && bytes.Equal(clear, v.text):
			h.spans = append(h.spans, span{0, len(clear)})
		}
	}
	if len(h.spans) > 0 {
		slices.SortFunc(h.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		h.splice(from, raw)
	}
}

// splice finds the places of the spans behind the escapes, and hides them. Spans that
// overlap or touch become one.
func (h *hider) splice(from int, raw []byte) {
	kept := h.spans[:1]
	for _, s := range h.spans[1:] {
		if last := &kept[len(kept)-1]; s.from <= last.to {
			last.to = max(last.to, s.to)
		} else {
			kept = append(kept, s)
		}
	}
	var own [4]byte
	for i, n, start := 0, 0, -1; i < len(raw) && len(kept) > 0; {
		out, size := element(own[:0], raw[i:])
		if n += len(out); start < 0 && n > kept[0].from {
			start = i
		}
		if i += size; n < kept[0].to {
			continue
		}
		h.replace(from+start, from+i, hidden)
		for start = -1; len(kept) > 0 && kept[0].to <= n; {
			kept = kept[1:]
		}
	}
}

func (h *hider) replace(from, to int, mark string) {
	h.out = append(append(h.out, h.text[h.done:from]...), mark...)
	h.done = to
}

// unescaped is a text without the escapes of JSON, however deep (\/ and \\\/ are both /),
// and of URLs. What is looked for is unescaped as well, so that an escape that was none
// does no harm. A text without escapes is returned itself.
func unescaped(text []byte) []byte {
	at := bytes.IndexAny(text, `\%`)
	if at < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for at >= 0 {
		out = append(out, text[:at]...)
		var n int
		out, n = element(out, text[at:])
		text = text[at+n:]
		at = bytes.IndexAny(text, `\%`)
	}
	return append(out, text...)
}
