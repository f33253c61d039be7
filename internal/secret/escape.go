package secret

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapeLen is the length of the escape that a text begins with, 0 where it is none.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(s[2:]); ok {
			return 6
		}
	}
	return 0
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		d := hexDigit(s[i])
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// escapes is a way of writing text: next appends to dst what one element of s stands for
// and returns its length; elements that do not begin with one of signs stand for
// themselves.
type escapes struct {
	signs string
	next  func(dst []byte, s string) ([]byte, int)
}

var (
	jsonEscapes    = escapes{`\\`, jsonEscape}
	percentEscapes = escapes{"%", percentEscape}
	formEscapes    = escapes{"%+", formEscape}
	// bothEscapes is for a URL in a JSON string.
	bothEscapes = escapes{`%\\`, func(dst []byte, s string) ([]byte, int) {
		if s[0] == '%' {
			return percentEscape(dst, s)
		}
		return jsonEscape(dst, s)
	}}
)

// unescape appends to dst what an escaped text stands for and, where at is not nil, to at
// the place of each byte's origin, and that of the end.
func unescape(dst []byte, at []int, s string, e *escapes) ([]byte, []int) {
	for i := 0; i < len(s); {
		n := 0
		if len(e.signs) == 1 {
			n = strings.IndexByte(s[i:], e.signs[0])
		} else {
			n = strings.IndexAny(s[i:], e.signs)
		}
		if n < 0 {
			n = len(s) - i
		}
		dst = append(dst, s[i:i+n]...)
		if at != nil {
			for k := range n {
				at = append(at, i+k)
			}
		}
		if i += n; i == len(s) {
			break
		}
		before := len(dst)
		dst, n = e.next(dst, s[i:])
		if at != nil {
			for range len(dst) - before {
				at = append(at, i)
			}
		}
		i += n
	}
	if at != nil {
		at = append(at, len(s))
	}
	return dst, at
}

// jsonEscape is for the text of a JSON string whose syntax is right.
func jsonEscape(dst []byte, s string) ([]byte, int) {
	if s[0] != '\\' {
		return append(dst, s[0]), 1
	}
	switch s[1] {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		r, _ := hex4(s[2:])
		if utf16.IsSurrogate(r) {
			if low, ok := hex4(s[min(len(s), 8):]); ok && s[6] == '\\' && s[7] == 'u' {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					return utf8.AppendRune(dst, both), 12
				}
			}
		}
		return utf8.AppendRune(dst, r), 6
	}
	return append(dst, s[1]), 2
}

// percentEscape is for text with percent escapes (RFC 3986); a '%' that is none stands
// for itself.
func percentEscape(dst []byte, s string) ([]byte, int) {
	if s[0] == '%' && len(s) > 2 {
		if hi, lo := hexDigit(s[1]), hexDigit(s[2]); hi >= 0 && lo >= 0 {
			return append(dst, byte(hi<<4|lo)), 3
		}
	}
	return append(dst, s[0]), 1
}

// formEscape is for application/x-www-form-urlencoded, where '+' is a space.
func formEscape(dst []byte, s string) ([]byte, int) {
	if s[0] == '+' {
		return append(dst, ' '), 1
	}
	return percentEscape(dst, s)
}
