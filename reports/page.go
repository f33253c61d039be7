package reports

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

// page is the neutral report: what text, Markdown and HTML print, each in its way.
type page struct {
	title string
	// alerts make every number doubtful.
	alerts []string
	// summary has at least one sentence, the most important first.
	summary  []string
	sections []section
	notes    []footnote
	facts    []fact
}

// section is a heading with one table below it.
type section struct {
	title string
	// caption says what the table has.
	caption string
	refs    []int
	// lead is a sentence between heading and table; may be empty.
	lead    string
	columns []column
	rows    [][]cell
	// scenario is the scenario that the section is about, if it is about one.
	scenario string
}

// column is a column's head and how it behaves when the page is narrow.
type column struct {
	head  string
	align Align
	// short is the head on a narrow page, where it differs.
	short string
	// below puts the column under the one before it on a narrow page.
	below bool
	// wide columns are left out on a narrow page, where another table has them.
	wide bool
	// narrow columns are there on a narrow page only.
	narrow bool
	// key columns say what a row is about; a table that is split repeats them.
	key bool
	// room is where text is broken on a narrow page; 0 for numbers, which never are.
	room int
}

// tone is what a cell means, for colour; it never says what the text does not.
type tone uint8

const (
	toneNone tone = iota
	toneStrong
	toneGood
	toneBad
	toneDim
)

// cell is one value, what stands beside it (an interval), and its footnotes.
type cell struct {
	text string
	sub  string
	refs []int
	tone tone
}

// fact is a line of the colophon: what was scored, with what.
type fact struct{ name, value string }

// builder lays out one scorecard.
type builder struct {
	card  *scoring.Scorecard
	notes footnotes
	warn  warned
	// place is each ranked backend's place, "1" or "1=" when tied.
	place map[string]string
}

// layOut turns a scorecard into a page.
func layOut(card *scoring.Scorecard, o Options) *page {
	b := &builder{card: card, place: places(card)}
	p := &page{title: clean(o.Title)}
	if p.title == "" {
		p.title = "clefbench report"
	}
	b.warn = b.notes.warnings(card.Warnings)
	p.alerts, p.summary = b.alerts(), b.summary()
	p.sections = append(p.sections, b.mainTable())
	if !o.Brief {
		p.sections = append(p.sections, b.besideTable(), b.countsTable())
	}
	for _, name := range card.ScenarioNames() {
		p.sections = append(p.sections, b.scenarioTable(name))
	}
	if pairs := b.pairTable(o.Brief); len(pairs.rows) > 0 {
		p.sections = append(p.sections, pairs)
	}
	if !o.Brief {
		p.sections = append(p.sections, b.evidenceTable())
	}
	p.notes = b.notes.list
	p.facts = b.facts(o)
	return p
}

// places numbers the backends by tied set. A backend that is not eligible has no place and
// takes none from the others. It may have led its set, though, and two that could not be
// told from it may well differ: what is left of a set is parted anew.
func places(card *scoring.Scorecard) map[string]string {
	eligible := map[string]bool{}
	for i := range card.Backends {
		eligible[card.Backends[i].Name] = card.Backends[i].Eligible
	}
	out := map[string]string{}
	next := 1
	for _, set := range card.Ties {
		rest := slices.DeleteFunc(slices.Clone(set), func(n string) bool { return !eligible[n] })
		for len(rest) > 0 {
			leader := rest[0]
			var tied, others []string
			for _, n := range rest {
				if n != leader && apart(card, leader, n) {
					others = append(others, n)
				} else {
					tied = append(tied, n)
				}
			}
			place := strconv.Itoa(next)
			if len(tied) > 1 {
				place += "="
			}
			for _, n := range tied {
				out[n] = place
			}
			next, rest = next+len(tied), others
		}
	}
	return out
}

// apart says whether the run told two backends' totals apart.
func apart(card *scoring.Scorecard, a, b string) bool {
	return slices.ContainsFunc(card.Pairs, func(p scoring.Pair) bool {
		return p.Measure == scoring.MeasureTotal && p.Scenario == "" &&
			(p.Base == a && p.New == b || p.Base == b && p.New == a) &&
			(p.Verdict == scoring.VerdictBetter || p.Verdict == scoring.VerdictWorse)
	})
}

// nameColumn has the names of backends.
func nameColumn(head string) column { return column{head: head, key: true, room: 14} }

// estimate is a number with its interval, or NA with its reason.
func (b *builder) estimate(e scoring.Estimate, format func(float64) string) cell {
	if e.NA != "" || math.IsNaN(float64(e.Value)) {
		return b.missing(e.NA)
	}
	c := cell{text: format(float64(e.Value))}
	lo, hi := float64(e.Lo), float64(e.Hi)
	switch {
	case !math.IsNaN(lo) || !math.IsNaN(hi):
		c.sub = interval(lo, hi, format)
	case e.NoInterval != "":
		c.refs = []int{b.notes.add("no interval: " + e.NoInterval)}
	}
	return c
}

// missing is NA with its reason.
func (b *builder) missing(reason string) cell {
	if reason == "" {
		reason = "not measured"
	}
	return cell{text: na, refs: []int{b.notes.add("NA: " + reason)}, tone: toneDim}
}

// number is a number that has no interval; NaN is a dash: there is no such number.
func number(v scoring.Number, format func(float64) string) cell {
	if math.IsNaN(float64(v)) {
		return cell{text: "-", tone: toneDim}
	}
	return cell{text: format(float64(v))}
}

func interval(lo, hi float64, format func(float64) string) string {
	return "[" + strings.TrimSuffix(format(lo), "%") + ", " + strings.TrimSuffix(format(hi), "%") + "]"
}

// quantile is a latency; where the decision at that rank got no answer, it is "miss".
func (b *builder) quantile(v scoring.Number, q float64, c scoring.Counts) cell {
	if !math.IsNaN(float64(v)) {
		return cell{text: latency(float64(v))}
	}
	missed := c.Offered - c.Answered
	if missed > 0 && float64(missed) > (1-q)*float64(c.Offered) {
		return cell{text: "miss", tone: toneBad,
			refs: []int{b.notes.add("miss: the decision at this rank got no answer, so the quantile is beyond every measured latency")}}
	}
	return b.missing("latency not measured")
}

// footnote is one numbered remark. Remarks with the same text are one footnote.
type footnote struct {
	text string
	// scopes says what the remark is about where nothing in the tables points to it.
	scopes []string
}

// String is the footnote without its number.
func (f footnote) String() string {
	if len(f.scopes) == 0 {
		return f.text
	}
	return f.text + " (" + strings.Join(f.scopes, "; ") + ")"
}

// footnotes numbers remarks in the order of their first use.
type footnotes struct {
	list  []footnote
	index map[string]int
}

// add returns the number of the footnote with this text.
func (f *footnotes) add(text string) int {
	text = clean(text)
	if n, ok := f.index[text]; ok {
		return n
	}
	if f.index == nil {
		f.index = map[string]int{}
	}
	f.list = append(f.list, footnote{text: text})
	f.index[text] = len(f.list)
	return len(f.list)
}

// addScoped is add, and notes what the remark is about.
func (f *footnotes) addScoped(text, scope string) int {
	n := f.add(text)
	if scope != "" && !slices.Contains(f.list[n-1].scopes, scope) {
		f.list[n-1].scopes = append(f.list[n-1].scopes, scope)
	}
	return n
}

// warned holds the footnote numbers of the scorecard's warnings by what they are about.
type warned struct {
	run      []int
	backend  map[string][]int
	scenario map[string][]int
}

// warnings makes a footnote of every warning. One about a backend is marked at its name
// in the first table, one about a scenario at that scenario's heading.
func (f *footnotes) warnings(list []scoring.Warning) warned {
	w := warned{backend: map[string][]int{}, scenario: map[string][]int{}}
	for _, x := range list {
		text := x.Text
		if text == "" {
			text = x.Code
		}
		n := f.addScoped(text, scopeOf(x))
		switch {
		case x.Backend != "":
			w.backend[x.Backend] = mark(w.backend[x.Backend], n)
		case x.Scenario != "":
			w.scenario[x.Scenario] = mark(w.scenario[x.Scenario], n)
		default:
			w.run = mark(w.run, n)
		}
	}
	return w
}

func scopeOf(x scoring.Warning) string {
	switch b, s := clean(x.Backend), clean(x.Scenario); {
	case b != "" && s != "":
		return b + " in " + s
	case b != "":
		return b
	default:
		return s
	}
}

// mark adds a footnote number once.
func mark(list []int, n int) []int {
	if slices.Contains(list, n) {
		return list
	}
	return append(list, n)
}

// counted lists counts by name, the largest first: "no-strategy 12, timeout 3".
func counted[T integer](m map[string]T) string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		if m[names[i]] != m[names[j]] {
			return m[names[i]] > m[names[j]]
		}
		return names[i] < names[j]
	})
	for i, n := range names {
		names[i] = clean(n) + " " + count(m[n])
	}
	return strings.Join(names, ", ")
}
