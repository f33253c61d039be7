package flash

import (
	"math"
	"strconv"
	"strings"
)

// parseRange reads "lo-hi", "lo+", "<hi" or ">=lo" as [lo,hi). isRange is false when the
// text has none of these shapes; then it is a word. An empty range has lo >= hi.
func parseRange(s string) (r span, isRange bool) {
	if rest, ok := strings.CutPrefix(s, ">="); ok {
		lo, tail, ok := number(strings.TrimSpace(rest))
		return span{lo: lo, hi: math.Inf(1)}, ok && tail == ""
	}
	if rest, ok := strings.CutPrefix(s, "<"); ok {
		hi, tail, ok := number(strings.TrimSpace(rest))
		return span{lo: math.Inf(-1), hi: hi}, ok && tail == ""
	}
	lo, tail, ok := number(s)
	if !ok {
		return span{}, false
	}
	if tail == "+" {
		return span{lo: lo, hi: math.Inf(1)}, true
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(tail), "-")
	if !ok {
		return span{}, false
	}
	hi, tail, ok := number(strings.TrimSpace(rest))
	return span{lo: lo, hi: hi}, ok && tail == ""
}

// number reads the longest decimal number that s starts with. A sign belongs to it, so
// that "-1--0.5" is the range from -1 to -0.5.
func number(s string) (x float64, tail string, ok bool) {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	i = digits(s, i)
	if i < len(s) && s[i] == '.' {
		i = digits(s, i+1)
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if k := digits(s, j); k > j {
			i = k
		}
	}
	x, err := strconv.ParseFloat(s[:i], 64)
	return x, s[i:], err == nil
}

func digits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// String prints a range as it is written in a mapping.
func (s span) String() string {
	lo, hi := strconv.FormatFloat(s.lo, 'g', -1, 64), strconv.FormatFloat(s.hi, 'g', -1, 64)
	switch {
	case math.IsInf(s.lo, -1):
		return "<" + hi
	case math.IsInf(s.hi, 1):
		return lo + "+"
	}
	return lo + "-" + hi
}
