package recorder

import (
	"strings"
	"unicode/utf8"

	"github.com/clefbench/clefbench/internal/secret"
)

const (
	// maxError bounds the text of a recorded error, in bytes.
	maxError = 1024
	// maxScrub bounds how much of a text is looked at.
	maxScrub = 8 * maxError
	hidden   = "***"
	// blank ends a word of a text; what else may stand in a URL is part of the word.
	blank = " \t\r\n\v\f\"`<>"
	// closing is given back at the end of a word that is hidden.
	closing = "\\,;.:)]}'"
)

// scrub returns the text of an error without the credentials that it can tell from the
// text around them, at most maxError bytes. It hides too much rather than too little,
// and what it has scrubbed it leaves alone.
//
// The text is cleaned before it is cut: half of a userinfo looks like a host.
func scrub(s string) string {
	if s == "" {
		return ""
	}
	s = settle(cut(s, maxScrub, maxScrub))
	for i := 0; i < rounds && len(s) > maxError; i++ {
		s = settle(cut(s, maxError, 64)) // the cut may have opened a quotation
	}
	return cut(s, maxError, 64)
}

// rounds is more than any text has been seen to take: three.
const rounds = 8

// settle applies the rules until nothing changes: in a malformed text, what one hides may
// show another something.
func settle(s string) string {
	for range rounds {
		before := s
		if s = hideShapes(hideSchemes(hidePairs(hideURLs(s)))); s == before {
			break
		}
	}
	return s
}

// cut returns at most limit bytes of a text. It goes back to where a word begins, by at
// most back bytes: half a word may read otherwise than the whole one.
func cut(s string, limit, back int) string {
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	if i := strings.LastIndexAny(s, blank); i >= limit-back {
		return s[:i]
	} else if back == limit {
		return hidden // one word of so many bytes is data
	}
	for i := 1; i < utf8.UTFMax; i++ {
		if r := s[limit-i]; utf8.RuneStart(r) {
			if !utf8.FullRuneInString(s[limit-i:]) {
				return s[:limit-i]
			}
			break
		}
	}
	return s
}

// hider rewrites a text from left to right.
type hider struct {
	s    string
	out  strings.Builder
	done int
}

// hide replaces s[from:to]; what is hidden already is passed over.
func (h *hider) hide(from, to int) {
	from = max(from, h.done)
	if from >= to {
		return
	}
	h.out.WriteString(h.s[h.done:from])
	h.out.WriteString(hidden)
	h.done = to
}

func (h *hider) text() string {
	if h.done == 0 {
		return h.s
	}
	h.out.WriteString(h.s[h.done:])
	return h.out.String()
}

// wordEnd is where the word at i ends, by the bytes in ends.
func wordEnd(s string, i int, ends string) int {
	if n := strings.IndexAny(s[i:], ends); n >= 0 {
		return i + n
	}
	return len(s)
}

// hideURLs hides queries, fragments and userinfo, also of a path (/x?a=b) and of a data
// source name (user:pass@tcp(host)).
func hideURLs(s string) string {
	h := hider{s: s}
	for i := 0; i < len(s); {
		end := wordEnd(s, i, blank)
		if i < end {
			h.url(i, i+len(strings.TrimRight(s[i:end], closing)))
		}
		i = end + 1
	}
	return h.text()
}

func (h *hider) url(from, to int) {
	word := h.s[from:to]
	if !strings.ContainsAny(word, "?#@") && !strings.Contains(word, "://") {
		return
	}
	at := userinfo(word)
	for _, u := range at {
		h.hide(from+u[0], from+u[1])
	}
	seen := 0
	if len(at) > 0 {
		seen = at[len(at)-1][1]
	}
	tail := strings.IndexAny(word[seen:], "?#")
	if tail < 0 {
		return
	}
	tail += seen
	if strings.Contains(word[:tail], "://") || strings.Contains(word[tail:], "=") {
		h.hide(from+tail+1, to)
	}
}

// userinfo returns the parts of a word that say who logs in.
func userinfo(word string) (parts [][2]int) {
	i := strings.Index(word, "://")
	if i < 0 {
		at, colon := strings.LastIndexByte(word, '@'), strings.IndexByte(word, ':')
		if q := strings.IndexByte(word, '?'); q >= 0 && (q < colon || strings.Contains(word[:q], "@")) {
			at = strings.LastIndexByte(word[:q], '@') // an address in a query hides no host
		}
		if colon >= 0 && colon < at {
			parts = append(parts, [2]int{0, at})
		}
		return parts
	}
	last := strings.LastIndexByte(word, '@')
	for i >= 0 {
		start := i + len("://")
		end := wordEnd(word, start, "/?#")
		switch at := strings.LastIndexByte(word[start:end], '@'); {
		case at >= 0:
			parts = append(parts, [2]int{start, start + at})
			end = start + at
		case !portOrNone(word[start:end]):
			// A password with "/", "?" or "#" in it: no URL, but a text that holds one.
			end = max(end, last)
			parts = append(parts, [2]int{start, end})
		}
		if i = strings.Index(word[end:], "://"); i >= 0 {
			i += end
		}
	}
	return parts
}

// portOrNone reports whether what follows the host's colon is a port, if anything does.
func portOrNone(host string) bool {
	colon := strings.LastIndexByte(host, ':')
	return colon < 0 || strings.HasPrefix(host, "[") || strings.Trim(host[colon+1:], "0123456789") == ""
}

// hideSchemes hides what follows the name of an authentication scheme.
func hideSchemes(s string) string {
	h := hider{s: s}
	for i := 0; i < len(s); i++ {
		if i > 0 && nameByte(s[i-1]) {
			continue
		}
		if n := schemeAt(s[i:]); n > 0 {
			h.scheme(i, i+n)
		}
	}
	return h.text()
}

// schemeAt returns the length of the scheme's name that a text begins with.
func schemeAt(s string) int {
	for _, scheme := range []string{"bearer", "basic", "negotiate", "ntlm"} {
		if n := len(scheme); len(s) > n && strings.EqualFold(s[:n], scheme) && strings.IndexByte(" \t\r\n", s[n]) >= 0 {
			return n
		}
	}
	return 0
}

func (h *hider) scheme(name, end int) {
	from := skip(h.s, end, " \t\r\n")
	if schemeAt(h.s[from:]) > 0 {
		return // it has a turn of its own; a chain of them would take quadratic time
	}
	from, to := pair{}.value(h.s, from-1)
	word := h.s[from:to]
	if n := strings.IndexAny(word, ":= \t"); n >= 0 {
		word = word[:n]
	}
	switch word {
	case "token", "tokens", "auth", "authentication", "authorization", "scheme", "realm", "error", "scope":
		return // of a message or a challenge
	}
	if !strings.EqualFold(h.s[name:end], "bearer") && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
		return // "basic plan": base64 has capitals or digits
	}
	h.hide(from, to)
}

// hideShapes hides words that are tokens by their form, whatever stands beside them.
func hideShapes(s string) string {
	const least = 16
	h := hider{s: s}
	for i := 0; i < len(s); i++ {
		if i > 0 && nameByte(s[i-1]) {
			continue
		}
		end := i
		for end < len(s) && nameByte(s[end]) {
			end++
		}
		if end-i >= least {
			for _, p := range []string{"sk-", "sk_", "rk_", "ghp_", "gho_", "ghs_", "ghu_",
				"github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "eyJ"} {
				if strings.HasPrefix(s[i:end], p) {
					h.hide(i, end)
					break
				}
			}
		}
		i = end
	}
	return h.text()
}

// nameByte reports whether a byte may stand in a name, as of a parameter or a header.
func nameByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '-' || b == '_' || b == '.'
}

// hidePairs hides the value beside the name of a credential: k=v, k: v, "k": "v" and
// \"k\": \"v\".
func hidePairs(s string) string {
	h := hider{s: s}
	for i := 0; i < len(s); i++ {
		if s[i] != ':' && s[i] != '=' || i < h.done {
			continue
		}
		p := pairAt(s, i)
		if !p.secret {
			continue
		}
		from, to := p.value(s, i)
		if !p.ordinary(s[from:to], s[i]) {
			h.hide(from, to)
		}
	}
	return h.text()
}

// pair is the name in front of a ':' or '='.
type pair struct {
	words  []string
	secret bool
	// inForm: "?" or "&" stands before the name.
	inForm bool
}

// pairAt reads the name in front of s[i].
func pairAt(s string, i int) pair {
	const longest = 128
	end := len(strings.TrimRight(strings.TrimRight(strings.TrimRight(s[:i], " \t"), "\"'`"), "\\"))
	start := nameStart(s, end, end-longest)
	p := pair{words: secret.Words(s[start:end]), inForm: start > 0 && (s[start-1] == '&' || s[start-1] == '?')}
	if len(p.words) == 0 {
		return p
	}
	p.secret = secret.Parameter(s[start:end])
	switch last := p.words[len(p.words)-1]; {
	case last != "key" && last != "id", start == 0, s[start-1] != ' ':
	case !p.secret || len(p.words) == 1:
		// "api key: x", "session id: x"
		if before := nameStart(s, start-1, start-longest); secret.Parameter(s[before:end]) {
			p.words, p.secret = secret.Words(s[before:end]), true
		}
	}
	return p
}

func nameStart(s string, end, least int) int {
	for end > max(0, least) && (nameByte(s[end-1]) || s[end-1] == '[' || s[end-1] == ']') {
		end--
	}
	return end
}

// ordinary reports whether the value is plainly no credential, though the name may be
// one: "code=unavailable", "jwt: expired". Names that mean nothing else have no such
// values.
func (p pair) ordinary(value string, sep byte) bool {
	number := strings.Trim(value, "0123456789") == ""
	switch n := len(p.words); {
	case p.inForm:
		return false
	case p.words[n-1] == "tokens": // counted far more often than given
		return number || plainWord(value)
	case n != 1:
		return false
	}
	switch p.words[0] {
	case "token": // "cannot fetch token: 401 Unauthorized"
		return sep == ':' && number && len(value) == 3
	case "code", "ticket", "pin":
	case "key", "pass", "auth", "oauth", "oauth2", "oidc", "saml", "jwt", "session", "signature":
		if sep == '=' {
			return false
		}
	default:
		return false
	}
	return number || plainWord(value)
}

func plainWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == ""
}

// value finds the value behind the separator s[i]. One that is or ends in a name with a
// separator takes that name's value with it.
func (p pair) value(s string, i int) (from, to int) {
	for i++; i < len(s) && (s[i] == '=' || s[i] == '>'); i++ {
	}
	from = skip(s, i, " \t")
	to = valueEnd(s, from)
	to = chained(s, from, to)
	for w := nameStart(s, to, from); w < to && schemeAt(s[w:]) == to-w; w = nameStart(s, to, from) {
		to = chained(s, w, valueEnd(s, skip(s, to, " \t\r\n"))) // "token: Bearer x"
	}
	if p.wholeLine() && to > from && quote(s[from:]) == 0 {
		return from, wordEnd(s, to, "\r\n")
	}
	return unmarked(s, from, to)
}

// chained returns to, or where the value ends of the last name within s[from:to] or at its
// end: "password= token: x", "key=[a=(b c)]".
func chained(s string, from, to int) int {
	at := from
	if marked(s, from) {
		at = to
	}
	for ; to > from && at <= to; at++ {
		if at == to {
			at = skip(s, at, " \t")
		}
		if at == len(s) || s[at] != ':' && s[at] != '=' {
			continue
		}
		next := skip(s, at+1, " \t:=>")
		if next < to && !marked(s, next) {
			continue
		}
		to = max(to, next, valueEnd(s, next))
		if marked(s, next) {
			at = to - 1
		}
	}
	return to
}

// skip passes over the bytes in over.
func skip(s string, i int, over string) int {
	return i + len(s[i:]) - len(strings.TrimLeft(s[i:], over))
}

// marked reports whether a quotation or a bracket begins at i.
func marked(s string, i int) bool {
	return i < len(s) && (quote(s[i:]) > 0 || strings.IndexByte("[({", s[i]) >= 0)
}

// wholeLine: these headers have values of several words.
func (p pair) wholeLine() bool {
	if len(p.words) == 0 {
		return false
	}
	switch p.words[len(p.words)-1] {
	case "authorization", "cookie", "cookie2":
		return true
	}
	return false
}

// unmarked is a value without the marks around it, where they are a pair, else to where
// it ends without them.
func unmarked(s string, from, to int) (int, int) {
	n := quote(s[from:to])
	switch {
	case n > 0 && to-from >= 2*n && strings.HasSuffix(s[from+n:to], s[from:from+n]):
		return from + n, to - n
	case to-from >= 2 && strings.Contains("[](){}", s[from:from+1]+s[to-1:to]):
		return from + 1, to - 1
	}
	return from, plainEnd(s, to)
}

// quote returns the length of the quotation mark, with the backslashes in front of it,
// that a text begins with.
func quote(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "\\"))
	if n < len(s) && strings.IndexByte("\"'`", s[n]) >= 0 {
		return n + 1
	}
	return 0
}

// valueEnd is where the value that begins at i ends: at its closing quote or bracket, or
// with the word.
func valueEnd(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	if n := quote(s[i:]); n > 0 {
		return quoteEnd(s, i+n, s[i:i+n])
	}
	if b := strings.IndexByte("[({", s[i]); b >= 0 {
		return bracketEnd(s, i, "])}"[b])
	}
	return plainEnd(s, i)
}

// plainEnd is where a value without marks ends, of which i is a part.
func plainEnd(s string, i int) int {
	return i + len(strings.TrimRight(s[i:wordEnd(s, i, blank+"&")], closing))
}

// bracketEnd finds the bracket that closes the one at i, behind it, or the line's end.
func bracketEnd(s string, i int, closes byte) int {
	end, depth := wordEnd(s, i, "\r\n"), 0
	for at := i; at < end; at++ {
		switch s[at] {
		case s[i]:
			depth++
		case closes:
			if depth--; depth == 0 {
				return wordGoesOn(s, at+1)
			}
		}
	}
	return end
}

// wordGoesOn is i, or the line's end where a word goes on behind a closing mark: then the
// marks were not a pair, and which of the others are is anyone's guess.
func wordGoesOn(s string, i int) int {
	if i < len(s) && nameByte(s[i]) {
		return wordEnd(s, i, "\r\n")
	}
	return i
}

// quoteEnd finds the mark that closes a quotation, behind it. A mark with more
// backslashes than the opening one is a part of the value.
func quoteEnd(s string, i int, mark string) int {
	for from := i; ; {
		n := strings.Index(s[from:], mark)
		if n < 0 {
			return len(s)
		}
		at := from + n
		from = at + len(mark)
		if at > i && s[at-1] == '\\' {
			continue
		}
		return wordGoesOn(s, from)
	}
}
