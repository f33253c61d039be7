package secret

import (
	"strings"
	"unsafe"
)

// Kind is a sort of secret.
type Kind string

// The kinds. All but Card and Email open something.
const (
	JWT        Kind = "jwt"
	PrivateKey Kind = "private-key"
	// APIKey is a key or token by its documented prefix.
	APIKey Kind = "api-key"
	// Bearer is what follows Bearer or Basic, Authorization and Cookie the values of these
	// headers.
	Bearer        Kind = "bearer"
	Authorization Kind = "authorization"
	Cookie        Kind = "cookie"
	// Userinfo is a user name with a password in a URL.
	Userinfo Kind = "userinfo"
	// Credential is a value beside the name of a credential.
	Credential Kind = "credential"
	Card       Kind = "card"
	Email      Kind = "email"
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{JWT, PrivateKey, APIKey, Bearer, Authorization, Cookie, Userinfo, Credential, Card, Email}
}

// Match is a secret in a text: text[Start:End].
type Match struct {
	Start, End int
	Kind       Kind
}

// Find appends to dst the secrets in a text, from left to right; they do not overlap. It
// allocates for dst only.
func Find(dst []Match, text []byte) []Match {
	return FindString(dst, unsafe.String(unsafe.SliceData(text), len(text)))
}

// FindString is Find for a string.
func FindString(dst []Match, text string) []Match {
	f := finder{s: text, out: dst, base: len(dst)}
	f.run()
	return f.out
}

// markBegin is how marks begin.
const markBegin = "[redacted:"

// Mark is what stands in the place of a secret.
func Mark(k Kind) string { return markBegin + string(k) + "]" }

// marked reports whether a value is a mark, or what others put in place of a secret.
func marked(value string) bool {
	return strings.HasPrefix(value, "[redacted") || strings.Trim(value, "*") == ""
}

// Replace returns the text with a mark in the place of each secret, and what was found;
// without any it returns the text itself.
func Replace(text string) (string, []Match) {
	found := FindString(nil, text)
	if len(found) == 0 {
		return text, nil
	}
	return string(splice(nil, text, found, 0)), found
}

// splice appends to dst the text with marks in place of the matches, whose places count
// from base.
func splice(dst []byte, text string, found []Match, base int) []byte {
	done := 0
	for _, m := range found {
		dst = append(dst, text[done:m.Start-base]...)
		dst = append(dst, markBegin...)
		dst = append(dst, m.Kind...)
		dst = append(dst, ']')
		done = m.End - base
	}
	return append(dst, text[done:]...)
}

// Classes of bytes.
const (
	// isWord bytes make words. Bytes of other scripts do not, so that a key which stands
	// directly behind such text begins a word.
	isWord = 1 << iota
	// isSign bytes tell of a secret before or behind them.
	isSign
	isDigit
	isUpper
	isLower
	// isToken bytes may stand in tokens, isName bytes in names, isMail bytes in mailboxes.
	isToken
	isName
	isMail
	// isPart bytes make the parts of a JWT: base64url.
	isPart
)

var class = func() (c [256]uint16) {
	for b := range c {
		switch {
		case b >= '0' && b <= '9':
			c[b] = isWord | isDigit
		case b >= 'A' && b <= 'Z':
			c[b] = isWord | isUpper
		case b >= 'a' && b <= 'z':
			c[b] = isWord | isLower
		case b >= 0x80:
			c[b] = isMail
		}
		if c[b]&isWord != 0 {
			c[b] |= isToken | isName | isMail | isPart
		}
	}
	c['_'] |= isWord | isToken | isName | isMail | isPart
	c['-'] |= isPart
	for _, b := range "-." {
		c[b] |= isToken | isName | isMail
	}
	for _, b := range "~+/" {
		c[b] |= isToken
	}
	for _, b := range "+%'" {
		c[b] |= isMail
	}
	for _, b := range "@:=-<" {
		c[b] |= isSign
	}
	return c
}()

// finder looks through one text.
type finder struct {
	s   string
	out []Match
	// base is how many of out are of other texts.
	base int
	// done is where the last match ends; nothing before it is looked at again.
	done int
	// Runs that were walked through last: a text of many beginnings of one long run must not
	// cost its length each time.
	names, tokens, values, lines run
	// parts are the three of a JWT, each of which may be met again as another; quotes are by
	// mark, which is up to maxQuote backslashes and one of three signs.
	parts  [3]run
	quotes [3 * (maxQuote + 2)]run
	// pairGrade is the grade of the last text that names a value, pairEnd where it ends.
	pairGrade grade
	pairEnd   int
	// curl and auth are where these words ended last.
	curl, auth int
	// work counts the bytes that were looked at, over and above the walk itself, for the
	// test that it stays in proportion.
	work int
}

// run is a part of the text, of bytes of one class.
type run struct{ from, to int }

func (f *finder) add(from, to int, k Kind) int {
	f.out = append(f.out, Match{from, to, k})
	f.done = to
	return to
}

// run walks over words and signs. What stands at a place is looked at by the one rule
// that its first byte calls for; a rule returns where to go on.
func (f *finder) run() {
	s := f.s
	for i := 0; i < len(s); {
		c := class[s[i]]
		if c&isWord == 0 {
			if c&isSign == 0 {
				i++
				continue
			}
			i = f.sign(i)
			continue
		}
		start := i
		for i++; i < len(s) && class[s[i]]&isWord != 0; i++ {
		}
		n := i - start
		switch {
		case n > shortWord:
			if beginsLong[s[start]]&(1<<(s[start+1]&63)) != 0 {
				i = max(i, f.word(start, i))
			} else if c&isDigit != 0 {
				i = max(i, f.digits(start, i))
			}
		case n == 1:
		case beginsShort[s[start]]&(1<<(s[start+1]&63)) != 0:
			i = max(i, f.word(start, i))
		case n == 4 && c&isDigit != 0:
			i = max(i, f.digits(start, i))
		}
	}
}

// sign looks at a byte that tells of a secret, and returns where to go on.
func (f *finder) sign(i int) int {
	end := 0
	switch f.s[i] {
	case '@':
		end = f.at(i)
	case '-':
		if strings.HasPrefix(f.s[i:], pemBegin) {
			end = f.pem(i)
		} else {
			end = f.option(i)
		}
	case '<':
		if i+1 < len(f.s) && f.s[i+1] == '/' {
			end = f.element(i)
		}
	default:
		end = f.pair(i)
	}
	return max(end, i+1)
}

// span counts the bytes of a class from i on.
func (f *finder) span(i int, of uint16) int {
	var last *run
	switch of {
	case isName:
		last = &f.names
	case isToken:
		last = &f.tokens
	}
	return f.spanIn(last, i, of)
}

// spanIn is span with the run that it remembers.
func (f *finder) spanIn(last *run, i int, of uint16) int {
	if last != nil && last.from <= i && i < last.to {
		return last.to - i
	}
	n := 0
	for i+n < len(f.s) && class[f.s[i+n]]&of != 0 {
		n++
	}
	f.work += n
	if last != nil {
		*last = run{i, i + n}
	}
	return n
}

// maxJudged bounds how much of a value is looked at to tell what it is.
const maxJudged = 128

// head is as much of a value as is judged.
func head(s string) string { return s[:min(len(s), maxJudged)] }

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }
