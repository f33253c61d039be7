package secret

import "strings"

// grade says what a name makes of the value beside it.
type grade uint8

const (
	ordinary grade = iota
	// hinted names may be those of credentials: the value has to look like one. Those that
	// are more often something else (key, code) ask for more.
	slight
	hinted
	// telling names are those of credentials, whatever the value.
	telling
	// header names have values of several words, to the end of the line.
	header
)

// hinting has the three letters in a row of which every name has some that gradeOf does not
// find ordinary, as a set of numbers of 15 bits. Most names have none, and are not cut
// into words.
var hinting = func() (set [1 << 15 / 64]uint64) {
	for _, s := range []string{"aut", "coo", "cod", "pas", "pwd", "sec", "ses", "tok", "jwt", "ede", "oid", "aml", "sas", "bea", "sid", "sig",
		"dpo", "hma", "otp", "csr", "xsr", "ifi", "key", "pin", "cke", "ert"} {
		n := int(s[0]&31)<<10 | int(s[1]&31)<<5 | int(s[2]&31)
		set[n/64] |= 1 << (n % 64)
	}
	return set
}()

func hints(name string) bool {
	n := 0
	for i := 0; i < len(name); i++ {
		b := name[i]
		if b >= 0x80 {
			return true // a letter of another script may be the same in lower case
		}
		if class[b]&(isUpper|isLower) == 0 {
			n = 0
			continue
		}
		n = n<<5&(1<<15-1) | int(b&31)
		if hinting[n/64]&(1<<(n%64)) != 0 {
			return true
		}
	}
	return false
}

// gradeOf judges the name of a field or in front of a value.
func gradeOf(name string) grade {
	if !hints(name) || strings.Contains(name, markBegin) {
		return ordinary
	}
	var own wordMemory
	w := own.split(name)
	switch n := len(w.ends); {
	case n == 0:
		return ordinary
	case string(w.last()) == "authorization", string(w.last()) == "cookie" && (n == 1 || string(w.at(n-2)) == "set"):
		return header
	case w.secretName() || fusedEnd(w):
		return telling
	case n == 1 && credentialWords[string(w.at(0))] == alone:
		return slight
	case w.secretInput():
		return hinted
	}
	return ordinary
}

// fusedEnd reports whether a name ends in the word of a credential, without a separator
// before it: accesstoken, userpassword.
func fusedEnd(w words) bool {
	if w.measure() {
		return false
	}
	last := string(w.last())
	for _, end := range []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "credentials", "cookie", "jwt", "sessionid"} {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return false
}

// takes reports whether a value of text beside a name of this grade is replaced.
func (g grade) takes(value string) bool {
	if value == "" || marked(value) {
		return false
	}
	switch g {
	case telling, header:
		return true
	case hinted:
		return drawn(value, 8)
	case slight:
		return drawn(value, 16) && mixed(value)
	}
	return false
}

// drawn reports whether a value of so many bytes has letters and two digits or more, and
// nothing that a token has not: it is neither a word nor a number nor a date.
func drawn(s string, least int) bool {
	s = head(s)
	digits, letters := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := class[s[i]]; {
		case c&isDigit != 0:
			digits++
		case c&(isUpper|isLower) != 0:
			letters++
		case c&isToken == 0 && s[i] != '=' && s[i] != '%':
			return false
		}
	}
	return len(s) >= least && digits >= 2 && letters >= 2 && !date(s)
}

// date: 2024-01-02T03:04:05Z and its like begin so.
func date(s string) bool {
	return len(s) >= 10 && s[4] == '-' && s[7] == '-' && class[s[0]]&class[s[3]]&class[s[5]]&class[s[9]]&isDigit != 0
}

// mixed reports whether a value has letters of both cases, as no UUID and no digest has.
func mixed(s string) bool {
	var all uint16
	for i := 0; i < min(len(s), maxJudged); i++ {
		all |= class[s[i]]
	}
	return all&isUpper != 0 && all&isLower != 0
}

const (
	maxName  = 64
	maxQuote = 8
)

// pair looks at the name before a ':' or '=' and, where it is a credential's, at the
// value behind it: k=v, k: v, "k": "v", also with escaped quotes. It returns where to go
// on, 0 where there is nothing.
func (f *finder) pair(i int) int {
	end := i
	for end > f.done && i-end < maxQuote && (f.s[end-1] == ' ' || f.s[end-1] == '\t') {
		end--
	}
	for end > f.done && i-end < 2*maxQuote && strings.IndexByte("\"'`\\]", f.s[end-1]) >= 0 {
		end--
	}
	from := f.nameFrom(end)
	if end < i && f.s[end] == ']' && strings.HasSuffix(f.s[:from], markBegin) {
		return 0 // the name was replaced: [redacted:api-key]: x
	}
	g := gradeOf(f.s[from:end])
	if g < telling && end == from+wordLen(f.s[from:end]) {
		g = max(g, f.twoWords(from, end))
	}
	if g < telling {
		g = max(g, f.named(from, end, i))
	}
	f.work += i - from
	if g == ordinary {
		return 0
	}
	return f.valueOf(g, from, end, i)
}

func (f *finder) nameFrom(end int) int {
	from := end
	for from > f.done && end-from < maxName && (class[f.s[from-1]]&isName != 0 || f.s[from-1] == '[') {
		from--
	}
	return from
}

func wordLen(s string) int {
	n := 0
	for n < len(s) && class[s[n]]&isWord != 0 {
		n++
	}
	return n
}

// twoWords judges "api key", "session id" and the like: names as people write them.
func (f *finder) twoWords(from, end int) grade {
	if from == f.done || f.s[from-1] != ' ' {
		return ordinary
	}
	switch last := f.s[from:end]; {
	case strings.EqualFold(last, "key"), strings.EqualFold(last, "id"):
		if g := gradeOf(f.s[f.nameFrom(from-1):end]); g == telling {
			return g
		}
	}
	return ordinary
}

// valueOf takes the value behind the separator at i, whose name is s[start:end].
func (f *finder) valueOf(g grade, start, end, i int) int {
	name, from := f.s[start:end], i+1
	if g >= telling && f.s[i] == ':' {
		if to, ok := f.block(start, i); ok {
			return to
		}
	}
	if from < len(f.s) && (f.s[from] == '=' || f.s[from] == '>') {
		from++ // := and =>
	}
	for from < len(f.s) && from-i < maxQuote && (f.s[from] == ' ' || f.s[from] == '\t') {
		from++
	}
	quoted := quoteLen(f.s[from:])
	if quoted > 0 {
		from, quoted = from+quoted, f.quoted(from+quoted, f.s[from:from+quoted])
		return f.take(g, from, quoted, true)
	}
	if g == header {
		line := f.lineEnd(from, start)
		begins := start == 0 || f.s[start-1] == '\n'
		if !headerValue(name, f.s[from:line], begins) {
			return 0
		}
		return f.take(g, from, line, true)
	}
	to := f.valueEnd(from)
	// Prose: "password: required", "token: 5", but not "password=x".
	value := f.s[from:to]
	if g >= hinted && plain(value) {
		if to := f.behindScheme(from, to); to > 0 {
			return to
		}
	}
	if f.s[i] == ':' && (plain(value) || number(value) && len(value) < 6) || number(value) && endsIn(name, "token") || constant(value) {
		return 0
	}
	return f.take(g, from, to, false)
}

// take adds a value that its name's grade says is one.
func (f *finder) take(g grade, from, to int, quoted bool) int {
	value := f.s[from:to]
	if !g.takes(value) || quoted && constant(value) {
		return 0
	}
	return f.add(from, to, kindOf(g, value))
}

func kindOf(g grade, value string) Kind {
	switch {
	case g != header:
		return Credential
	case strings.IndexByte(head(value), '=') >= 0 && schemeLen(value) == 0:
		return Cookie
	}
	return Authorization
}

// headerValue tells the value of a header from prose: a scheme with something behind it,
// a cookie's assignment, or a token. One that begins its line is a header.
func headerValue(name, value string, begins bool) bool {
	value = head(value)
	if n := schemeLen(value); n > 0 {
		rest := strings.TrimLeft(value[n:], " \t")
		return rest != "" && (begins || !plain(rest) || len(rest) >= 8 && mixed(rest)) && !marked(rest)
	}
	if endsIn(name, "cookie") {
		return strings.IndexByte(value, '=') > 0
	}
	first, _, _ := strings.Cut(value, " ")
	return drawn(first, 8)
}

// schemeLen is the length of the authentication scheme that a value begins with, with
// the space behind it.
func schemeLen(value string) int {
	n := strings.IndexByte(head(value), ' ')
	if n < 0 {
		return 0
	}
	var own [24]byte
	word := own[:copy(own[:], value[:n])]
	for i, b := range word {
		if class[b]&isUpper != 0 {
			word[i] = b | 0x20
		}
	}
	switch string(word) {
	case "bearer", "basic", "digest", "negotiate", "ntlm", "token", "apikey", "hawk", "oauth", "dpop", "hmac", "sharedkey", "key",
		"aws4-hmac-sha256", "sharedkeylite", "vapid", "hoba", "mutual", "scram-sha-256", "scram-sha-1", "privatetoken":
		return n + 1
	}
	return 0
}

func endsIn(name, word string) bool {
	n := len(name) - len(word)
	return n >= 0 && strings.EqualFold(name[n:], word)
}

// valueEnd returns where an unquoted value ends, without the signs of the sentence.
func (f *finder) valueEnd(from int) int {
	if v := f.values; v.from <= from && from < v.to {
		return v.to
	}
	to := from
	for to < len(f.s) && f.s[to] > ' ' && strings.IndexByte("\"'`<>&", f.s[to]) < 0 {
		to++
	}
	f.work += to - from
	to = from + len(strings.TrimRight(f.s[from:to], ",;.:)]}"))
	f.values = run{from, to}
	return to
}

// lineEnd returns where a header's value ends, whose name begins at start: with the
// quotation around both, else with the line.
func (f *finder) lineEnd(from, start int) int {
	if start > 0 && quoteLen(f.s[start-1:start]) > 0 {
		return f.quoted(from, f.s[start-1:start])
	}
	if v := f.lines; v.from <= from && from < v.to {
		return v.to
	}
	n := strings.IndexByte(f.s[from:], '\n')
	if n < 0 {
		n = len(f.s) - from
	}
	f.work += n
	to := from + n
	if to > from && f.s[to-1] == '\r' {
		to--
	}
	f.lines = run{from, to}
	return to
}

// quoteLen is the length of the quotation mark, with the backslashes before it, that a
// text begins with.
func quoteLen(s string) int {
	n := 0
	for n < len(s) && n < maxQuote && s[n] == '\\' {
		n++
	}
	if n < len(s) && (s[n] == '"' || s[n] == '\'' || s[n] == '`') {
		return n + 1
	}
	return 0
}

// quoted returns where the quotation ends that begins at from, behind the mark: at the
// same mark with no further backslash before it, or the end of the line.
func (f *finder) quoted(from int, mark string) int {
	if strings.HasPrefix(f.s[from:], mark) {
		return from // also where the byte before is a backslash: it belongs to the first mark
	}
	last := f.quotation(mark)
	if last.from <= from && from < last.to {
		return last.to
	}
	to := from
	for ; to < len(f.s); to++ {
		b := f.s[to]
		if b == '\r' || b == '\n' || b == mark[0] && to > from && f.s[to-1] != '\\' && strings.HasPrefix(f.s[to:], mark) {
			break
		}
	}
	f.work += to - from
	*last = run{from, to}
	return to
}

// quotation is the run that a mark walked through last.
func (f *finder) quotation(mark string) *run {
	sign := strings.IndexByte("\"'`", mark[len(mark)-1])
	return &f.quotes[sign*(maxQuote+1)+len(mark)]
}

// plain reports whether a value is a word or words without digits and signs.
func plain(s string) bool {
	s = head(s)
	for i := 0; i < len(s); i++ {
		if c := class[s[i]]; c&(isUpper|isLower) == 0 && strings.IndexByte(" _-", s[i]) < 0 {
			return false
		}
	}
	return true
}

func number(s string) bool {
	s = head(s)
	for i := 0; i < len(s); i++ {
		if class[s[i]]&isDigit == 0 && s[i] != '.' {
			return false
		}
	}
	return s != ""
}

// constant: values that say that there is none, or where one goes.
func constant(s string) bool {
	switch s {
	case "null", "nil", "none", "None", "true", "false", "True", "False", "undefined", "":
		return true
	}
	return strings.HasPrefix(s, "${") || strings.HasPrefix(s, "{{") || s[0] == '<' && s[len(s)-1] == '>'
}
