package secret

import "strings"

// Forms in which a name and its value stand without ':' or '=' between them: elements of
// XML, options of commands, blocks of YAML, schemes behind a word for them.

// element looks at the end of an XML element, </password>, for the text before it.
func (f *finder) element(i int) int {
	to := i + len("</")
	for to < len(f.s) && to-i < maxName && (class[f.s[to]]&isName != 0 || f.s[to] == ':') {
		to++
	}
	f.work += to - i
	if to == len(f.s) || f.s[to] != '>' {
		return 0
	}
	name := f.s[i+len("</") : to]
	g := gradeOf(name[strings.IndexByte(name, ':')+1:])
	if g < hinted {
		return 0
	}
	from := i
	for from > 0 && i-from < maxEcho && f.s[from-1] != '>' && f.s[from-1] != '<' {
		from--
	}
	f.work += i - from
	if from == 0 || f.s[from-1] != '>' {
		return 0
	}
	value := strings.TrimRight(f.s[from:i], " \t\r\n")
	trimmed := strings.TrimLeft(value, " \t\r\n")
	if trimmed == "" || constant(trimmed) || !g.takes(trimmed) {
		return 0
	}
	start, end := from+len(value)-len(trimmed), from+len(value)
	if start = f.drop(start); start >= end {
		return 0
	}
	return f.add(start, end, kindOf(g, trimmed))
}

// drop takes back what was found from a place on, which is a part of what is, and returns
// where to begin: what was found before may reach beyond the place.
func (f *finder) drop(from int) int {
	n := len(f.out)
	for n > f.base && f.out[n-1].Start >= from {
		n--
	}
	f.out = f.out[:n]
	if n > f.base {
		from = max(from, f.out[n-1].End)
	}
	return from
}

// option looks at a dash that begins an option of a command: --password x, and curl's
// -u user:x.
func (f *finder) option(i int) int {
	if i > 0 && f.s[i-1] > ' ' && strings.IndexByte("\"'`[(,", f.s[i-1]) < 0 {
		return 0
	}
	end := i + min(f.span(i, isName), maxName)
	name := f.s[i:end]
	from := end
	for from < len(f.s) && from-end < maxQuote && (f.s[from] == ' ' || f.s[from] == '\t') {
		from++
	}
	if end == i+1 || from == end || from == len(f.s) {
		return 0
	}
	if f.curl > 0 && i-f.curl < 512 && (name == "-u" || name == "--user" || name == "-U" || name == "--proxy-user") {
		return f.user(from)
	}
	if name[1] != '-' {
		return 0
	}
	g := gradeOf(name)
	if g < hinted {
		return 0
	}
	return f.argument(g, from)
}

// argument takes an option's value. In prose a word follows ("--password must be"), in
// descriptions a sign.
func (f *finder) argument(g grade, from int) int {
	if g == header {
		g = telling
	}
	if n := quoteLen(f.s[from:]); n > 0 {
		return f.take(g, from+n, f.quoted(from+n, f.s[from:from+n]), true)
	}
	if strings.IndexByte("-<[({$|&;=>/.,:", f.s[from]) >= 0 {
		return 0
	}
	to := f.valueEnd(from)
	value := f.s[from:to]
	if plain(value) || number(value) && len(value) < 6 || to == from || constant(value) {
		return 0
	}
	return f.take(g, from, to, false)
}

// user takes a user's name with a password.
func (f *finder) user(from int) int {
	to := 0
	if n := quoteLen(f.s[from:]); n > 0 {
		from, to = from+n, f.quoted(from+n, f.s[from:from+n])
	} else {
		to = f.valueEnd(from)
	}
	value := f.s[from:to]
	name, password, ok := strings.Cut(value, ":")
	if !ok || password == "" || strings.ContainsAny(name, " $/[") || password[0] == '$' || marked(password) {
		return 0
	}
	return f.add(from, to, Userinfo)
}

// block takes the lines of a YAML block, password: |, whose name begins at start and whose
// separator stands at i. It is false where none begins.
func (f *finder) block(start, i int) (end int, ok bool) {
	line := f.s[i+1 : min(len(f.s), i+maxQuote)]
	sign, _, lines := strings.Cut(line, "\n")
	sign = strings.Trim(sign, " \t\r")
	if !lines && i+maxQuote < len(f.s) || sign == "" || sign[0] != '|' && sign[0] != '>' || strings.Trim(sign[1:], "+-123456789") != "" {
		return 0, false
	}
	if !lines {
		return 0, true
	}
	from := i + 1 + strings.IndexByte(line, '\n') + 1
	indent := f.indent(from)
	outer := start
	for outer > 0 && start-outer < maxName && f.s[outer-1] != '\n' {
		outer--
	}
	if indent <= f.indent(outer) || marked(f.s[from+indent:min(len(f.s), from+indent+len(markBegin))]) {
		return 0, true
	}
	to := from
	for at := from; at < len(f.s); {
		n := strings.IndexByte(f.s[at:], '\n')
		if n < 0 {
			n = len(f.s) - at
		}
		text := len(strings.TrimRight(f.s[at:at+n], " \t\r"))
		f.work += n + 1
		if text > 0 {
			if f.indent(at) < indent {
				break
			}
			to = at + text
		}
		at += n + 1
	}
	return f.add(from+indent, to, Credential), true
}

// indent counts the spaces that a line begins with.
func (f *finder) indent(at int) int {
	n := 0
	for at+n < len(f.s) && n < maxName && f.s[at+n] == ' ' {
		n++
	}
	return n
}

// behindScheme takes what follows the scheme that a value begins with, "auth: Token x".
func (f *finder) behindScheme(from, to int) int {
	n := schemeLen(f.s[from:min(len(f.s), from+maxJudged)])
	if n == 0 || from+n <= to {
		return 0
	}
	from += n
	if to = f.valueEnd(from); !drawn(f.s[from:to], 8) {
		return 0
	}
	return f.add(from, to, Authorization)
}

// told looks at words that say what follows: curl, which has a user's option, and a token
// behind a word for what it does ("authorization header Token x").
func (f *finder) told(start, end int) int {
	word := f.s[start:end]
	switch word[0] {
	case 'c':
		if word == "curl" {
			f.curl = end
		}
		return 0
	case 'a', 'A':
		switch len(word) {
		case len("auth"), len("authorization"), len("authentication"):
			if strings.EqualFold(word, "auth") || strings.EqualFold(word, "authorization") || strings.EqualFold(word, "authentication") {
				f.auth = end
			}
			return 0
		case len("apikey"):
			if !strings.EqualFold(word, "apikey") {
				return 0
			}
		default:
			return 0
		}
	default:
		if !strings.EqualFold(word, "token") {
			return 0
		}
	}
	if f.auth == 0 || start-f.auth > 32 || end == len(f.s) || f.s[end] != ' ' {
		return 0
	}
	if to := f.valueEnd(end + 1); drawn(f.s[end+1:to], 12) {
		return f.add(end+1, to, Authorization)
	}
	return 0
}
