package reports

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// na stands for every number that could not be measured.
const na = "NA"

// decimal formats with a fixed number of decimals, NaN and infinities as NA, and never
// as "-0.0".
func decimal(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return na
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") == "" {
		return s[1:]
	}
	return s
}

// score formats a category or total, 0 to 100, with one decimal.
func score(v float64) string { return decimal(v, 1) }

// share formats a fraction as a percentage with one decimal.
func share(v float64) string {
	if s := decimal(100*v, 1); s != na {
		return s + "%"
	}
	return na
}

// unsigned3 formats with three decimals: utilities and p-values.
func unsigned3(v float64) string { return decimal(v, 3) }

// signed puts a plus sign before what another format printed of a positive number.
func signed(format func(float64) string) func(float64) string {
	return func(v float64) string {
		s := format(v)
		if v > 0 && s != na {
			return "+" + s
		}
		return s
	}
}

// pValue formats a p-value: three decimals, but never a plain 0 or 1.
func pValue(v float64) string {
	switch {
	case math.IsNaN(v):
		return na
	case v < 0.001:
		return "<0.001"
	case v >= 0.9995 && v < 1:
		return ">0.999"
	}
	return unsigned3(v)
}

// significant formats a number that is not negative with three significant digits, without
// an exponent, with thousands separators before the point.
func significant(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return na
	}
	if v == 0 {
		return "0"
	}
	// Round first, in decimal: 999.6 has three digits, but its rounding has four.
	mantissa := strconv.FormatFloat(v, 'e', 2, 64)
	_, e, _ := strings.Cut(mantissa, "e")
	exp, _ := strconv.Atoi(e)
	rounded, _ := strconv.ParseFloat(mantissa, 64)
	return group(strconv.FormatFloat(rounded, 'f', max(0, 2-exp), 64))
}

// money formats an amount with three significant digits; the currency stands in the head.
func money(v float64) string {
	// A row of zeros after the point cannot be read: 0.00000000717.
	if v > 0 && v < 1e-5 {
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	return significant(v)
}

// latency formats nanoseconds with a unit and three significant digits.
func latency(ns float64) string {
	if math.IsNaN(ns) || math.IsInf(ns, 0) || ns < 0 {
		return na
	}
	units := [...]string{"ns", "µs", "ms", "s"}
	u := 0
	for u < len(units)-1 && ns >= 999.5 {
		ns, u = ns/1000, u+1
	}
	return significant(ns) + " " + units[u]
}

// integer is any whole number that a report counts.
type integer interface{ ~int | ~int64 | ~uint64 }

// count formats a whole number with thousands separators.
func count[T integer](n T) string {
	if n < 0 {
		return group(strconv.FormatInt(int64(n), 10))
	}
	return group(strconv.FormatUint(uint64(n), 10))
}

// group puts commas between the thousands of the digits before the point.
func group(s string) string {
	start := 0
	if strings.HasPrefix(s, "-") {
		start = 1
	}
	end := len(s)
	if point := strings.IndexByte(s, '.'); point >= 0 {
		end = point
	}
	for i := end - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is "1 decision", "2 decisions".
func plural[T integer](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// clean makes a name or message from outside safe to print on one line: control
// characters and text-direction overrides become visible escapes (a terminal would obey
// them), line breaks and tabs become blanks, invalid UTF-8 becomes U+FFFD.
func clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r == '\r':
		case r == utf8.RuneError || r == '\u200d' || r == '\ufe0f':
			b.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}
