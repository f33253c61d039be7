package flash

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// RuleFallback is the rule id of a decision that the fallback action made.
const RuleFallback = "fallback"

// Table decides by look-up in an opened .cfb file. It is safe for concurrent use and
// holds no reference to the file's bytes.
type Table struct {
	name string
	info decision.Info
	c    *content
	bind *decision.Binder
	axes []axis
	// names holds the cell's values joined by slashes, for the rule id.
	names []string
}

// axis is a dimension made ready for look-up.
type axis struct {
	*dimension
	stride int
	texts  map[string]uint16
	// few are the texts when they are few: then comparing is faster than hashing.
	few []textKey
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

// Open verifies a .cfb file and makes it ready. name stands in errors, which wrap
// [ErrCorrupt] and carry the offset.
func Open(name string, cfb []byte) (*Table, error) {
	c, err := decode(name, cfb)
	if err != nil {
		return nil, err
	}
	t := &Table{name: name, c: c, axes: make([]axis, len(c.dims))}
	attrs := make([]string, len(c.dims))
	stride := len(c.cells)
	for i := range c.dims {
		d := &c.dims[i]
		stride /= len(d.values)
		t.axes[i] = newAxis(d, stride)
		attrs[i] = d.from
	}
	t.bind = decision.NewBinder(attrs...)
	t.nameCells()
	t.info = decision.Info{
		Name: name, Kind: "flash", Scenarios: c.scenarios, Attributes: unique(attrs),
		Artefact:     decision.Artefact{EngineVersion: "cfb/" + strconv.Itoa(formatVersion), StrategyVersion: c.version, StrategyDigest: sha256.Sum256(cfb)},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
	}
	return t, nil
}

func unique(in []string) []string {
	seen, out := map[string]bool{}, []string{}
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
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

func (a *axis) lookup(text string) uint16 {
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

// nameCells makes all names in one string, so that they are cheap to keep.
func (t *Table) nameCells() {
	var b strings.Builder
	b.Grow(t.c.nameBytes())
	ends := make([]int, len(t.c.cells))
	for i := range t.c.cells {
		for k := range t.axes {
			if k > 0 {
				b.WriteByte('/')
			}
			values := t.axes[k].values
			b.WriteString(values[i/t.axes[k].stride%len(values)])
		}
		ends[i] = b.Len()
	}
	all, start := b.String(), 0
	t.names = make([]string, len(ends))
	for i, end := range ends {
		t.names[i] = all[start:end]
		start = end
	}
}

// Info describes the table; the strategy digest is the SHA-256 of the .cfb bytes.
func (t *Table) Info() decision.Info {
	i := t.info
	i.Scenarios = append([]string(nil), i.Scenarios...)
	i.Attributes = append([]string(nil), i.Attributes...)
	return i
}

// Source returns the base name of the matrix file that the table was compiled from, and
// the SHA-256 of its bytes.
func (t *Table) Source() (name string, digest [32]byte) { return t.c.source, t.c.digest }

// Decide looks the request up. All questions of a request have the same answer.
func (t *Table) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = t.info.Artefact
	cell, skipped := t.cell(req.Attrs)
	for i := range out.Decisions {
		t.answer(&out.Decisions[i], cell, skipped)
	}
	return nil
}

func (t *Table) answer(d *decision.Decision, cell int, skipped uint16) {
	d.Reason = decision.Reason{Kind: decision.ReasonTableHit, Skipped: skipped}
	chosen := uint16(noDigit)
	switch {
	case cell >= 0:
		chosen = t.c.cells[cell]
		d.Reason.Rule = t.names[cell]
	case t.c.fallback != noDigit:
		chosen = t.c.fallback
		d.Reason.Kind, d.Reason.Rule = decision.ReasonTableMiss, RuleFallback
	default:
		d.Reason.Kind = decision.ReasonTableMiss
		d.Status = decision.Abstain
		return
	}
	a := &t.c.actions[chosen]
	d.Status, d.Action, d.Params = decision.OK, a.label, a.params
}

// cell returns the index of the request's cell, or -1 for a miss, and the number of
// dimensions whose attribute is missing without a value for that.
func (t *Table) cell(attrs decision.Attrs) (cell int, skipped uint16) {
	at := t.bind.Bind(attrs.Schema)
	hit := true
	for i := range t.axes {
		a := &t.axes[i]
		v := attrs.At(at[i])
		digit := a.digit(v)
		if digit == noDigit {
			hit = false
			if isMissing(v) {
				skipped++
			}
			continue
		}
		cell += int(digit) * a.stride
	}
	if !hit {
		return -1, skipped
	}
	return cell, skipped
}

// Key returns the number of the cell that attributes fall into, and -1 for a miss. It is
// the dear part of a decision; a caller that keeps keys can use [Table.At] alone.
func (t *Table) Key(attrs decision.Attrs) int {
	cell, _ := t.cell(attrs)
	return cell
}

// At returns the action of a cell that Key gave, with its parameters as JSON, and that of
// the fallback for -1; ok is false where there is none. It panics for a number that Key
// never gives.
func (t *Table) At(key int) (label, params string, ok bool) {
	chosen := t.c.fallback
	if key >= 0 {
		chosen = t.c.cells[key]
	}
	if chosen == noDigit {
		return "", "", false
	}
	a := &t.c.actions[chosen]
	return a.label, a.params, true
}

// isMissing holds for null and NaN.
func isMissing(v decision.Value) bool {
	x := v.Double()
	return v.IsNull() || x != x
}

// digit returns the value's place on the axis, or noDigit.
func (a *axis) digit(v decision.Value) uint16 {
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

func (a *axis) inRange(v decision.Value) uint16 {
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

func (a *axis) device(v decision.Value) uint16 {
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
func (a *axis) text(v decision.Value) uint16 {
	switch v.Type() {
	case decision.String:
		return a.lookup(v.Str())
	case decision.Bool:
		return a.lookup(strconv.FormatBool(v.Bool()))
	}
	for _, k := range a.numbers {
		if k.matches(v) {
			return k.digit
		}
	}
	return a.other
}

// Close does nothing: a table holds no resource.
func (t *Table) Close(context.Context) error { return nil }

// Explain names the value on each dimension and the matrix line of the cell. Attribute
// values themselves are not repeated.
func (t *Table) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	cell, skipped := t.cell(req.Attrs)
	var d decision.Decision
	t.answer(&d, cell, skipped)
	e := &decision.Explanation{Reason: d.Reason, Cited: append([]string(nil), t.info.Attributes...)}
	parts := make([]string, len(t.axes))
	for i := range t.axes {
		a := &t.axes[i]
		v := req.Attrs.Get(a.from)
		parts[i] = a.name + "=" + a.label(v)
		if a.digit(v) == noDigit {
			e.Skipped = append(e.Skipped, a.skipped(v))
		}
	}
	e.Text = t.sentence(&d, cell) + ": " + strings.Join(parts, ", ")
	e.Position = t.position(cell)
	return e, nil
}

func (t *Table) sentence(d *decision.Decision, cell int) string {
	switch {
	case cell >= 0:
		return "cell " + strconv.Itoa(cell) + " gives " + d.Action
	case t.c.fallback != noDigit:
		return "no cell for this key, the fallback gives " + d.Action
	}
	return "no cell for this key and no fallback"
}

// position is the line of the cell's row, or of the fallback. The compiler keeps lines
// only: a row is usually written on one.
func (t *Table) position(cell int) decision.Position {
	p := decision.Position{File: t.c.source}
	switch {
	case cell >= 0:
		p.Line = t.c.lines[cell/len(t.c.dims[len(t.c.dims)-1].values)]
	case t.c.fallback != noDigit:
		p.Line = t.c.fallbackLine
	}
	return p
}

func (a *axis) label(v decision.Value) string {
	switch d := a.digit(v); {
	case d != noDigit:
		return a.values[d]
	case isMissing(v):
		return "(missing)"
	}
	return "(unknown)"
}

func (a *axis) skipped(v decision.Value) decision.SkippedRule {
	s := decision.SkippedRule{Rule: a.name, Cause: "the value is on no listed value or range"}
	if isMissing(v) {
		s.Missing, s.Cause = []string{a.from}, "missing"
		if math.IsNaN(v.Double()) {
			s.Cause = "NaN"
		}
	}
	return s
}
