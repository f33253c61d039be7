package secret

// digits looks at a word that begins with a digit, and returns where a card number ends,
// else 0.
func (f *finder) digits(start, end int) int {
	// Only the first digits that networks have; a fraction and a telephone number are none.
	if b := f.s[start]; b < '2' || b > '6' {
		return 0
	}
	if n := end - start; n != 4 && (n < 13 || n > 19) {
		return 0
	}
	if start > 0 {
		switch p := f.s[start-1]; {
		case p == '+', p == '.' && start > 1 && class[f.s[start-2]]&isDigit != 0:
			return 0
		}
	}
	var c card
	to := c.read(f.s, start)
	f.work += to - start
	if to == 0 || !c.valid() {
		return 0
	}
	if to < len(f.s) {
		switch b := f.s[to]; {
		case class[b]&isWord != 0:
			return 0
		case b == '.' && to+1 < len(f.s) && class[f.s[to+1]]&isDigit != 0: // a fraction follows
			return 0
		}
	}
	return f.add(start, to, Card)
}

// card is a number that may be a card's.
type card struct {
	digit [19]byte
	n     int
	// group are the lengths of groups; one is a bare number.
	group  [5]int
	groups int
}

// read takes groups of digits with one and the same separator between them, and returns
// where they end.
func (c *card) read(s string, i int) int {
	sep := ""
	end := 0
	for c.groups < len(c.group) {
		n := 0
		for i < len(s) && class[s[i]]&isDigit != 0 {
			if c.n == len(c.digit) {
				return 0
			}
			c.digit[c.n] = s[i] - '0'
			c.n, n, i = c.n+1, n+1, i+1
		}
		if n == 0 {
			break
		}
		c.group[c.groups], end = n, i
		c.groups++
		if c.complete() {
			break
		}
		if n > 6 || i == len(s) {
			break
		}
		w := separator(s[i:])
		if w == 0 || sep != "" && s[i:i+w] != sep {
			break
		}
		sep = s[i : i+w]
		i += w
	}
	return end
}

// separator is the length of what may stand between groups: a space of some kind, a dash
// or a dot.
func separator(s string) int {
	switch s[0] {
	case ' ', '-', '.', '\t':
		return 1
	}
	for _, sp := range []string{"\u00a0", "\u2009", "\u202f", "\u2010", "\u2011", "\u2013"} {
		if len(s) > len(sp) && s[:len(sp)] == sp {
			return len(sp)
		}
	}
	return 0
}

// complete: the groups are those in which cards are printed, so that what follows
// (an expiry date) is no part of them. Fifth groups are not looked for.
func (c *card) complete() bool {
	g := c.group
	switch c.groups {
	case 3:
		return g[0] == 4 && g[1] == 6 && (g[2] == 5 || g[2] == 4)
	case 4:
		return g[0] == 4 && g[1] == 4 && g[2] == 4 && g[3] == 4 || g[0] == 4 && g[1] == 3 && g[2] == 3 && g[3] == 3
	}
	return false
}

// valid checks the groups, the issuer with its lengths, and the check digit.
func (c *card) valid() bool {
	bare := c.groups == 1
	if !bare && !c.complete() {
		return false
	}
	return c.issued(bare) && luhn(c.digit[:c.n])
}

// prefix is the number of the first digits.
func (c *card) prefix(digits int) int {
	n := 0
	for _, d := range c.digit[:digits] {
		n = 10*n + int(d)
	}
	return n
}

// issued knows the ranges of the networks (ISO/IEC 7812) and their lengths. Bare numbers
// of 13 digits are left out: Visa issues them no more, while article numbers and
// telephone numbers have that length.
func (c *card) issued(bare bool) bool {
	n, two, four := c.n, c.prefix(2), c.prefix(4)
	switch {
	case c.digit[0] == 4: // Visa
		return n == 16 || n == 19 || n == 13 && !bare
	case two == 34 || two == 37: // American Express
		return n == 15
	case two >= 51 && two <= 55 || four >= 2221 && four <= 2720: // Mastercard
		return n == 16
	case four >= 2200 && four <= 2204: // Mir
		return n >= 16
	case four >= 3000 && four <= 3059 || four == 3095 || two == 36 || two == 38 || two == 39: // Diners Club
		return n == 14 || n == 16
	case four >= 3528 && four <= 3589: // JCB
		return n >= 16
	case four == 6011 || four >= 6440 && four <= 6499 || two == 65 || two == 62: // Discover, UnionPay
		return n >= 16
	case four == 5018 || four == 5020 || four == 5038 || four == 5893 || four == 6304 || four == 6759 || four >= 6761 && four <= 6763: // Maestro
		return n == 16 || n >= 18
	case two == 60: // RuPay
		return n == 16
	}
	return false
}

// luhn checks the check digit of ISO/IEC 7812-1, annex B.
func luhn(digits []byte) bool {
	sum, same := 0, true
	for i := range digits {
		d := int(digits[i])
		if double := (len(digits)-i)%2 == 0; double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
		same = same && digits[i] == digits[0]
	}
	return sum%10 == 0 && !same
}
