package secret

import (
	"slices"
	"strings"
	"unicode"
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

// credentialWords has the words of names; fused ones are parts of a name without its
// separators.
var (
	credentialWords = map[string]weight{
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
	fused = []string{"authorization", "cookie", "apikey", "secret", "password", "passwd", "credential", "signature",
		"jwt", "assertion", "token", "sessionid", "sessid"}
)

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
	return secretName(Words(name[strings.LastIndexByte(name, '.')+1:]))
}

// Parameter reports whether the name of a header, parameter, cookie or option is that of
// a credential.
func Parameter(name string) bool { return secretInput(Words(name)) }

// secretInput is for names that the client of a service chose: the whole name counts.
func secretInput(w []string) bool {
	if len(w) > 1 && w[0] == "x" {
		w = w[1:]
	}
	if len(w) == 0 || measure(w) {
		return false
	}
	if len(w) == 1 && credentialWords[w[0]] == alone {
		return true
	}
	name := strings.Join(w, "")
	if slices.ContainsFunc(fused, func(s string) bool { return strings.Contains(name, s) }) {
		return true
	}
	for i, s := range w {
		if s == "auth" && i < len(w)-1 && identity(w[len(w)-1]) {
			continue
		}
		if g := credentialWords[s]; g == inside || g == anywhere || secretKey(w[:i+1]) {
			return true
		}
	}
	return false
}

// secretName is for names that the service itself chose: they tell of credentials more
// often than they hold one, so only what the name ends in counts.
func secretName(w []string) bool {
	if len(w) == 0 || measure(w) {
		return false
	}
	last := len(w) - 1
	return credentialWords[w[last]] == anywhere || secretKey(w) || last > 0 && w[last] == "id" && w[last-1] == "session"
}

// secretKey reports whether the words end in a key that opens something.
func secretKey(w []string) bool {
	kind, ok := strings.CutSuffix(w[len(w)-1], "key")
	if kind == "" && len(w) > 1 {
		kind = w[len(w)-2]
	}
	g := credentialWords[kind]
	return ok && kind != "" && (g != 0 && g != alone || strings.HasSuffix(kind, "api"))
}

// measure reports whether a name speaks of an amount or a kind: token-count, max-tokens,
// has-cookies, token-type.
func measure(w []string) bool {
	switch w[0] {
	case "max", "min", "num", "total", "has", "is":
		return len(w) > 1
	}
	switch w[len(w)-1] {
	case "count", "len", "length", "size", "limit", "remaining", "used", "age", "ttl", "type":
		return true
	}
	return false
}

// identity: x-auth-email says who it is, it does not prove it.
func identity(word string) bool {
	switch word {
	case "email", "user", "username", "groups", "roles", "provider", "method", "status":
		return true
	}
	return false
}

// Words splits a name at everything that is no letter or digit, and inside accessToken
// and SAMLResponse, and lowers it.
func Words(name string) []string {
	rs := []rune(name)
	var b strings.Builder
	for i, r := range rs {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case i > 0 && unicode.IsUpper(r) && (unicode.IsLower(rs[i-1]) ||
			unicode.IsUpper(rs[i-1]) && i+1 < len(rs) && unicode.IsLower(rs[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
