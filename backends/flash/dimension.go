package flash

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// Mapping keys with a meaning of their own. The brackets keep them apart from ordinary
// texts, and from ranges such as "<5".
const (
	keyMissing = "<missing>"
	keyOther   = "<other>"
)

func (r *reader) dimensions(n *document.Node) {
	list := n.List()
	switch {
	case !n.IsList():
		return
	case len(list) == 0 || len(list) > maxDims:
		n.Errorf("", "%d dimensions, want 1 to %d", len(list), maxDims)
		return
	}
	seen := map[string]bool{}
	for _, x := range list {
		d := r.dimension(x)
		if d.name != "" && seen[d.name] {
			x.Errorf("", "dimension %q stands twice", d.name)
		}
		seen[d.name] = true
		r.c.dims = append(r.c.dims, d)
	}
	if r.f.Problems.Errors() > 0 {
		return
	}
	if _, err := r.c.size(); err != nil {
		n.Errorf("use fewer values", "%v", err)
	}
}

func (r *reader) dimension(n *document.Node) dimension {
	d := dimension{missing: noDigit, other: noDigit}
	m := n.Map("name", "values", "mapping", "from", "classify")
	if !n.IsMap() {
		return d
	}
	if v := m.Need("name"); v != nil {
		d.name = r.text(v)
	}
	d.from = d.name
	if v := m.Get("from"); v != nil {
		d.from = r.text(v)
	}
	if v := m.Need("values"); v != nil {
		d.values = r.distinct(v, "value")
	}
	var classes []string
	if v := m.Get("classify"); v != nil {
		d.kind, classes = r.classify(v)
	}
	if d.values == nil {
		return d
	}
	x := &dimensionReader{reader: r, d: &d, classes: classes}
	if v := m.Get("mapping"); v != nil {
		x.mapping(v)
	} else {
		x.plain(m.Get("values"))
	}
	x.sameNumbers(m.Get("mapping"), m.Get("values"))
	x.unreached(m.Get("values"))
	r.attribute(m, &d)
	return d
}

// attribute checks that the dimension can read what it names.
func (r *reader) attribute(m *document.Map, d *dimension) {
	n := m.Get("from")
	if n == nil {
		n = m.Get("name")
	}
	if r.scope == nil || n == nil || d.from == "" {
		return
	}
	a, err := r.scope.Use(d.from)
	if err != nil {
		n.Errorf(attribute.HintOf(err), "%v", err)
		return
	}
	if a.Name != d.from {
		r.f.Warnf(n.Pos(), "write "+a.Name, "header names are recorded in lower case, %s is read as it is written", d.from)
	}
	r.scope.WarnUnrecorded(r.f, n.Pos(), a)
	if d.kind == kindRanges && (a.Type == decision.String || a.Type == decision.Bool) {
		n.Errorf("map words, or read a number", "dimension %q has ranges of numbers, but %s is %v", d.name, a.Name, a.Type)
	}
}

func (r *reader) classify(n *document.Node) (sourceKind, []string) {
	switch s, ok := n.Text(); {
	case !ok:
	case s == "device":
		return kindDevice, []string{string(Desktop), string(Mobile), string(Tablet)}
	case s == "present":
		return kindPresent, []string{"yes", "no"}
	default:
		n.Errorf(`write "device" or "present"`, "%s: unknown classifier %q", n.Path(), s)
	}
	return kindText, nil
}

// dimensionReader reads how one dimension's values come about.
type dimensionReader struct {
	*reader
	d       *dimension
	classes []string
	placed  []placedSpan
}

// placedSpan remembers where a range stands, for messages about two of them.
type placedSpan struct {
	span
	pos decision.Position
}

// plain maps each value to itself.
func (x *dimensionReader) plain(values *document.Node) {
	for i, n := range values.List() {
		v := x.d.values[i]
		x.checkClass(n.Pos(), "value", v)
		x.d.texts = append(x.d.texts, textKey{v, uint16(i)})
	}
}

// checkClass holds words to the classes of a classifier, when there is one.
func (x *dimensionReader) checkClass(pos decision.Position, what, word string) {
	if x.classes != nil && !slices.Contains(x.classes, word) {
		x.f.Errorf(pos, "", "%s %q is no class of the classifier, which gives %s", what, word, strings.Join(x.classes, ", "))
	}
}

func (x *dimensionReader) mapping(n *document.Node) {
	for _, e := range n.Map().Entries() {
		digit, ok := x.digit(e.Value)
		if !ok {
			continue
		}
		if len(e.Key) > maxText {
			x.f.Errorf(e.KeyPos, "", "a key of %d bytes, the limit is %d", len(e.Key), maxText)
			continue
		}
		x.key(e, digit)
	}
	if len(x.placed) > 0 && len(x.d.texts) > 0 {
		n.Errorf(`write ranges as "0.0-0.03", "<0.03" or "0.1+"`, "%s mixes ranges with words such as %q", n.Path(), x.d.texts[0].text)
		return
	}
	if len(x.placed) > 0 {
		x.d.kind = kindRanges
		x.sortSpans()
	}
}

// digit reads a mapping's value, which must be one of the dimension's.
func (x *dimensionReader) digit(n *document.Node) (uint16, bool) {
	s, ok := n.Text()
	if !ok {
		return 0, false
	}
	i := slices.Index(x.d.values, s)
	if i < 0 {
		hint := "the values are " + strings.Join(first(x.d.values, 8), ", ")
		if c := document.Closest(s, x.d.values); c != "" {
			hint = fmt.Sprintf("did you mean %q?", c)
		}
		n.Errorf(hint, "%s: %q is not among the values", n.Path(), s)
		return 0, false
	}
	return uint16(i), true
}

func (x *dimensionReader) key(e document.Entry, digit uint16) {
	switch e.Key {
	case keyMissing:
		if x.d.kind == kindPresent {
			x.f.Errorf(e.KeyPos, `map "no"`, "the classifier present gives no for what is missing")
		}
		x.d.missing = digit
		return
	case keyOther:
		x.d.other = digit
		return
	}
	r, isRange := parseRange(e.Key)
	switch {
	case x.classes != nil || !isRange:
		x.checkClass(e.KeyPos, "key", e.Key)
		x.warnReserved(e)
		x.d.texts = append(x.d.texts, textKey{e.Key, digit})
	case !(r.lo < r.hi):
		x.f.Errorf(e.KeyPos, "ranges are [from,to): from belongs to it, to does not", "range %q is empty", e.Key)
	default:
		r.digit = digit
		x.placed = append(x.placed, placedSpan{r, e.KeyPos})
	}
}

// warnReserved catches the words that were probably meant as one of the reserved keys.
func (x *dimensionReader) warnReserved(e document.Entry) {
	for _, reserved := range []string{keyMissing, keyOther} {
		if word := strings.Trim(reserved, "<>"); strings.EqualFold(e.Key, word) {
			x.f.Warnf(e.KeyPos, fmt.Sprintf("write %q for what is %s", reserved, word), "%q is taken as the text %q", e.Key, e.Key)
		}
	}
}

func (x *dimensionReader) sortSpans() {
	sort.SliceStable(x.placed, func(i, j int) bool { return x.placed[i].lo < x.placed[j].lo })
	for i, s := range x.placed {
		if i > 0 {
			prev := x.placed[i-1]
			switch {
			case s.lo < prev.hi:
				x.f.Errorf(s.pos, "ranges are [from,to)", "range %q overlaps %q of line %d", s.String(), prev.String(), prev.pos.Line)
			case s.lo > prev.hi:
				x.f.Warnf(s.pos, `a number in the gap has no cell; map "<other>" to give it one`, "nothing covers the numbers from %q to %q", prev.String(), s.String())
			}
		}
		x.d.spans = append(x.d.spans, s.span)
	}
}

// sameNumbers refuses two spellings of one number, such as 1 and 1.0: an attribute that
// is a number would match both.
func (x *dimensionReader) sameNumbers(mapping, values *document.Node) {
	n := values
	if mapping != nil {
		n = mapping
	}
	seen := map[float64]textKey{}
	for _, t := range x.d.texts {
		k, ok := newNumberKey(t)
		if !ok {
			continue
		}
		first, dup := seen[k.float]
		if o, _ := newNumberKey(first); dup && (!k.whole || !o.whole || k.int == o.int) {
			n.Errorf("", "%s: %q and %q are the same number", n.Path(), first.text, t.text)
		}
		seen[k.float] = t
	}
}

// unreached warns of values that no attribute can give: their cells are dead.
func (x *dimensionReader) unreached(values *document.Node) {
	reached := map[uint16]bool{x.d.missing: true, x.d.other: true}
	for _, t := range x.d.texts {
		reached[t.digit] = true
	}
	for _, s := range x.placed {
		reached[s.digit] = true
	}
	for i, n := range values.List() {
		if i < len(x.d.values) && !reached[uint16(i)] {
			x.f.Warnf(n.Pos(), "", "nothing maps to the value %q, so its cells are never used", x.d.values[i])
		}
	}
}
