package flash

import (
	"math"
	"slices"
	"strconv"

	"github.com/clefbench/clefbench/decision"
)

// axis is a dimension made ready for look-up.
type axis struct {
	*dimension
	stride int
	texts  map[string]uint16
	// few are the texts when they are few: then comparing is faster than hashing. packed are
	// the same as numbers, when each has at most seven bytes.
	few    []textKey
	packed []uint64
	// cuts are where the ranges begin and end, ascending; bins[i] is the digit from
	// cuts[i-1] to below cuts[i].
	cuts []float64
	bins []uint16
	// seen remembers classified texts; nil when nothing is classified.
	seen *seen
	// numbers are the texts that are numbers, for attributes that are.
	numbers []numberKey
	devices [3]uint16
	present [2]uint16
}

// numberKey is a listed number. whole says that it is an int64, which is compared as
// one: ids above 2^53 differ by less than a float64 can tell.
type numberKey struct {
	float float64
	int   int64
	whole bool
	digit uint16
}

func newNumberKey(t textKey) (numberKey, bool) {
	x, tail, ok := number(t.text)
	i, err := strconv.ParseInt(t.text, 10, 64)
	return numberKey{x, i, err == nil, t.digit}, ok && tail == ""
}

func (k numberKey) matches(v decision.Value) bool {
	if v.Type() == decision.Int && k.whole {
		return v.Int() == k.int
	}
	x, ok := v.Number()
	return ok && x == k.float
}

func newAxis(d *dimension, stride int) axis {
	a := axis{dimension: d, stride: stride, texts: make(map[string]uint16, len(d.texts))}
	for _, t := range d.texts {
		a.texts[t.text] = t.digit
		if k, ok := newNumberKey(t); ok {
			a.numbers = append(a.numbers, k)
		}
	}
	if len(d.texts) <= fewTexts {
		a.few = d.texts
		a.pack()
	}
	a.cut()
	if d.kind == kindDevice {
		a.seen = newSeen()
	}
	for i, device := range []Device{Desktop, Mobile, Tablet} {
		a.devices[i] = a.lookup(string(device))
	}
	a.present = [2]uint16{a.lookup("no"), a.lookup("yes")}
	return a
}

// fewTexts is up to how many texts a walk is not slower than a map.
const fewTexts = 8

// cut turns the ranges, which are sorted and do not overlap, into cuts and bins.
func (a *axis) cut() {
	a.bins = append(a.bins, a.other)
	for _, s := range a.spans {
		if n := len(a.cuts); n > 0 && a.cuts[n-1] == s.lo {
			a.bins[n] = s.digit
		} else {
			a.cuts, a.bins = append(a.cuts, s.lo), append(a.bins, s.digit)
		}
		if !math.IsInf(s.hi, 1) { // an open range holds +Inf, too
			a.cuts, a.bins = append(a.cuts, s.hi), append(a.bins, a.other)
		}
	}
}

// maxPacked is the length of a text that fits a number together with its length.
const maxPacked = 7

// pack makes numbers of the listed texts.
func (a *axis) pack() {
	for _, t := range a.few {
		if len(t.text) > maxPacked {
			a.packed = nil
			return
		}
		a.packed = append(a.packed, packed(t.text))
	}
}

func packed(text string) uint64 {
	x := uint64(len(text)) << 56
	for i := range len(text) {
		x |= uint64(text[i]) << (8 * i)
	}
	return x
}

func (a *axis) lookup(text string) uint16 {
	if a.packed != nil {
		digit := a.other
		if len(text) > maxPacked {
			return digit
		}
		x := packed(text)
		for i, p := range a.packed { // to the end: where it is found cannot be predicted
			if p == x {
				digit = a.few[i].digit
			}
		}
		return digit
	}
	if a.few != nil {
		for i := range a.few {
			if a.few[i].text == text {
				return a.few[i].digit
			}
		}
		return a.other
	}
	if d, ok := a.texts[text]; ok {
		return d
	}
	return a.other
}

// isMissing holds for null and NaN.
func isMissing(v *decision.Value) bool {
	x := v.Double()
	return v.IsNull() || x != x
}

// digit returns the value's place on the axis, or noDigit.
func (a *axis) digit(v decision.Value) uint16 { return a.place(&v) }

// place is digit without a copy.
func (a *axis) place(v *decision.Value) uint16 {
	if isMissing(v) {
		if a.kind == kindPresent {
			return a.present[0]
		}
		return a.missing
	}
	switch a.kind {
	case kindRanges:
		return a.inRange(v)
	case kindDevice:
		return a.device(v)
	case kindPresent:
		return a.present[1]
	}
	return a.text(v)
}

func (a *axis) inRange(v *decision.Value) uint16 {
	x, ok := v.Number()
	if !ok {
		return a.other
	}
	if len(a.cuts) > fewCuts {
		i, found := slices.BinarySearch(a.cuts, x)
		if found {
			i++
		}
		return a.bins[i]
	}
	i := 0
	for _, c := range a.cuts { // without a branch on x, which nobody could predict
		if c <= x {
			i++
		}
	}
	return a.bins[i]
}

// fewCuts is up to how many cuts counting them all is not slower than a search.
const fewCuts = 16

func (a *axis) device(v *decision.Value) uint16 {
	if text := v.Str(); text != "" {
		return a.seen.digit(text, a)
	}
	return a.other
}

// classify is the digit of a user agent.
func (a *axis) classify(text string) uint16 {
	switch DeviceOf(text) {
	case Desktop:
		return a.devices[0]
	case Mobile:
		return a.devices[1]
	case Tablet:
		return a.devices[2]
	}
	return a.other
}

// text matches text with text, and numbers by value, so that 1, 1.0 and "1" are found
// under "1" whatever type the attribute was recorded with.
func (a *axis) text(v *decision.Value) uint16 {
	switch v.Type() {
	case decision.String:
		return a.lookup(v.Str())
	case decision.Bool:
		return a.lookup(strconv.FormatBool(v.Bool()))
	}
	for _, k := range a.numbers {
		if k.matches(*v) {
			return k.digit
		}
	}
	return a.other
}

func (a *axis) label(v decision.Value) string {
	switch d := a.digit(v); {
	case d != noDigit:
		return a.values[d]
	case isMissing(&v):
		return "(missing)"
	}
	return "(unknown)"
}

func (a *axis) skipped(v decision.Value) decision.SkippedRule {
	s := decision.SkippedRule{Rule: a.name, Cause: "the value is on no listed value or range"}
	if isMissing(&v) {
		s.Missing, s.Cause = []string{a.from}, "missing"
		if math.IsNaN(v.Double()) {
			s.Cause = "NaN"
		}
	}
	return s
}
