package proxy

import "unicode/utf8"

// element appends what the first element of a text stands for, a byte or an escape, and
// returns its length. Any number of backslashes belongs to what follows them: a JSON text
// inside a string of another has more of them. A letter behind one stands for itself,
// since no header or parameter has the control characters that it may mean.
func element(dst, s []byte) ([]byte, int) {
	switch s[0] {
	case '%':
		if b, ok := hexDigits(s[1:], 2); ok {
			return append(dst, byte(b)), 3
		}
	case '\\':
		n := 1
		for n < len(s) && s[n] == '\\' {
			n++
		}
		if n == len(s) {
			return dst, n
		}
		if s[n] == 'u' {
			if r, ok := hexDigits(s[n+1:], 4); ok {
				return utf8.AppendRune(dst, r), n + 5
			}
		}
		return append(dst, s[n]), n + 1
	}
	return append(dst, s[0]), 1
}

// hexDigits reads a number of so many hexadecimal digits.
func hexDigits(s []byte, digits int) (n rune, ok bool) {
	if len(s) < digits {
		return 0, false
	}
	for _, b := range s[:digits] {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			b = b | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | rune(b)
	}
	return n, true
}
