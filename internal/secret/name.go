package secret

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// weight says where a word makes a name that of a credential.
type weight uint8

const (
	// inside: as any word of a header's or parameter's name.
	inside weight = iota + 1
	// anywhere: there, and as the last word of a name that the caller gives.
	anywhere
	// alone: as the whole name of a header or parameter; as a part of one it is ordinary.
	alone
	// qualifier: before "key". A key of another kind (idempotency, cache, partition,
	// websocket) opens nothing.
	qualifier
)

// credentialWords has the words of names.
var credentialWords = map[string]weight{
	"authorization": anywhere, "cookie": anywhere, "cookies": anywhere, "cookie2": anywhere, "password": anywhere,
	"passwords": anywhere, "passwd": anywhere, "pwd": anywhere, "passphrase": anywhere, "passcode": anywhere,
	"secret": anywhere, "secrets": anywhere, "token": anywhere, "jwt": anywhere, "credential": anywhere,
	"credentials": anywhere, "apikey": anywhere, "sessionid": anywhere,

	"auth": inside, "oauth": inside, "oauth2": inside, "authn": inside, "authz": inside, "authentication": inside,
	"oidc": inside, "saml": inside, "bearer": inside, "session": inside, "sid": inside, "dpop": inside, "sig": inside,
	"sas": inside, "hmac": inside, "otp": inside, "totp": inside, "csrf": inside, "xsrf": inside, "verifier": inside,

	"key": alone, "code": alone, "pin": alone, "pass": alone, "ticket": alone,

	"api": qualifier, "access": qualifier, "private": qualifier, "client": qualifier, "app": qualifier,
	"application": qualifier, "subscription": qualifier, "function": qualifier, "functions": qualifier,
	"master": qualifier, "admin": qualifier, "account": qualifier, "storage": qualifier, "shared": qualifier,
	"signing": qualifier, "encryption": qualifier, "ssh": qualifier, "license": qualifier, "consumer": qualifier,
	"service": qualifier,
}

// Attribute reports whether an attribute's name is that of a credential. Of a header, a
// query parameter, a cookie or a form field every word counts (headers.x-auth-key,
// query.sig), and key, code, pin, pass and ticket count when they are the whole name; of
// any other name the last words count (user.api_key, not metrics.token_count).
func Attribute(name string) bool {
	space, rest, ok := strings.Cut(name, ".")
	if ok {
		switch strings.ToLower(space) {
		case "headers", "query", "cookies", "form":
			return Parameter(rest)
		}
	}
	var own wordMemory
	w := own.split(name[strings.LastIndexByte(name, '.')+1:])
	return w.secretName()
}

// Parameter reports whether the name of a header, parameter, cookie or option is that of
// a credential.
func Parameter(name string) bool {
	var own wordMemory
	w := own.split(name)
	return w.secretInput()
}

// words are those of a name, in lower case and one behind the other.
type words struct {
	text []byte
	ends []int
}

// wordMemory is memory for the words of a name of usual length, on the caller's stack:
// names are judged for every pair in a text.
type wordMemory struct {
	text [64]byte
	ends [12]int
}

// split cuts a name at everything that is no letter or digit, and inside accessToken and
// SAMLResponse, and lowers it.
func (m *wordMemory) split(name string) words {
	w := words{m.text[:0], m.ends[:0]}
	begun := 0
	cut := func() {
		if len(w.text) > begun {
			begun = len(w.text)
			w.ends = append(w.ends, begun)
		}
	}
	before := ' '
	for i, r := range name {
		lower := r
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut()
			before = r
			continue
		case unicode.IsUpper(r):
			if unicode.IsLower(before) || unicode.IsUpper(before) && lowerAfter(name, i, r) {
				cut()
			}
			lower = unicode.ToLower(r)
		}
		w.text = utf8.AppendRune(w.text, lower)
		before = r
	}
	cut()
	return w
}

func lowerAfter(name string, i int, r rune) bool {
	next, _ := utf8.DecodeRuneInString(name[min(len(name), i+utf8.RuneLen(r)):])
	return unicode.IsLower(next)
}

// at returns a word; those before the first and after the last are empty.
func (w words) at(i int) []byte {
	switch {
	case i < 0 || i >= len(w.ends):
		return nil
	case i == 0:
		return w.text[:w.ends[0]]
	}
	return w.text[w.ends[i-1]:w.ends[i]]
}

func (w words) last() []byte { return w.at(len(w.ends) - 1) }

// from leaves out the words before i.
func (w words) from(i int) words {
	cut := w.ends[i-1]
	ends := w.ends[i:]
	for k := range ends {
		ends[k] -= cut
	}
	return words{w.text[cut:], ends}
}

// secretInput is for names that the client of a service chose: the whole name counts.
func (w words) secretInput() bool {
	if len(w.ends) > 1 && string(w.at(0)) == "x" {
		w = w.from(1)
	}
	if len(w.ends) == 0 || w.measure() {
		return false
	}
	if len(w.ends) == 1 && credentialWords[string(w.at(0))] == alone || fused(w.text) {
		return true
	}
	for i := range w.ends {
		word := w.at(i)
		if string(word) == "auth" && i < len(w.ends)-1 && identity(w.last()) {
			continue
		}
		if g := credentialWords[string(word)]; g == inside || g == anywhere || w.secretKey(i) {
			return true
		}
	}
	return false
}

// fused looks for words in a name that was written without separators.
func fused(name []byte) bool {
	for i := range name {
		rest := name[i:]
		switch name[i] {
		case 'a':
			if has(rest, "authorization") || has(rest, "apikey") || has(rest, "assertion") {
				return true
			}
		case 'c':
			if has(rest, "cookie") || has(rest, "credential") {
				return true
			}
		case 'j':
			if has(rest, "jwt") {
				return true
			}
		case 'p':
			if has(rest, "password") || has(rest, "passwd") {
				return true
			}
		case 's':
			if has(rest, "secret") || has(rest, "signature") || has(rest, "sessionid") || has(rest, "sessid") {
				return true
			}
		case 't':
			if has(rest, "token") {
				return true
			}
		}
	}
	return false
}

func has(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// secretName is for names that the service itself chose: they tell of credentials more
// often than they hold one, so only what the name ends in counts.
func (w words) secretName() bool {
	if len(w.ends) == 0 || w.measure() {
		return false
	}
	last := len(w.ends) - 1
	return credentialWords[string(w.at(last))] == anywhere || w.secretKey(last) ||
		string(w.at(last)) == "id" && string(w.at(last-1)) == "session"
}

// secretKey reports whether the words up to i end in a key that opens something.
func (w words) secretKey(i int) bool {
	kind, ok := bytes.CutSuffix(w.at(i), []byte("key"))
	if !ok {
		return false
	}
	if len(kind) == 0 {
		kind = w.at(i - 1)
	}
	g := credentialWords[string(kind)]
	return len(kind) > 0 && (g != 0 && g != alone || bytes.HasSuffix(kind, []byte("api")))
}

// measure reports whether a name speaks of an amount or a kind: token-count, max-tokens,
// has-cookies, token-type.
func (w words) measure() bool {
	switch string(w.at(0)) {
	case "max", "min", "num", "total", "has", "is":
		return len(w.ends) > 1
	}
	switch string(w.last()) {
	case "count", "len", "length", "size", "limit", "remaining", "used", "age", "ttl", "type":
		return true
	}
	return false
}

// identity: x-auth-email says who it is, it does not prove it.
func identity(word []byte) bool {
	switch string(word) {
	case "email", "user", "username", "groups", "roles", "provider", "method", "status":
		return true
	}
	return false
}

// Words returns the words of a name in lower case: it is cut at everything that is no
// letter or digit, and inside accessToken and SAMLResponse.
func Words(name string) []string {
	var own wordMemory
	w := own.split(name)
	out := make([]string, len(w.ends))
	for i := range w.ends {
		out[i] = string(w.at(i))
	}
	return out
}
