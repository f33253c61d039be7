package reports

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

//go:embed report.gohtml
var htmlPage string

//go:embed report.css
var htmlStyle string

// HTML writes the report as one file: it requests nothing, runs no script, and carries
// the scorecard as JSON in a script element of type application/json, id "scorecard".
// Every chart stands beside a table with its numbers.
func HTML(w io.Writer, card *scoring.Scorecard, o Options) error {
	v, err := newHTMLView(card, o)
	if err != nil {
		return fmt.Errorf("html report: %w", err)
	}
	t, err := template.New("report").Parse(htmlPage)
	if err != nil {
		return fmt.Errorf("html report: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("html report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("html report: %w", err)
	}
	return nil
}

// htmlView is all that the template prints; everything is text, which the template
// escapes, but for the style sheet and the data.
type htmlView struct {
	Title    string
	Style    template.CSS
	Alerts   []string
	Lead     string
	Summary  []string
	Sections []htmlSection
	Terms    htmlTable
	Legend   []legendEntry
	Notes    []htmlNote
	Facts    []htmlFact
	Data     template.JS
}

type htmlSection struct {
	ID, Title, Lead string
	Refs            []int
	Table           htmlTable
	Bars            []barChart
	CDF             []cdfChart
	Confusion       []matrix
}

type htmlTable struct {
	Caption string
	Head    []htmlHead
	Rows    [][]htmlCell
}

type htmlHead struct {
	Text  string
	Class string
}

type htmlCell struct {
	Text, Sub string
	// Range marks an interval in Sub, which is not broken.
	Range bool
	Refs  []int
	Class string
	// Header marks the cell that names its row.
	Header bool
}

type htmlNote struct {
	Number int
	Text   string
}

type htmlFact struct{ Name, Value string }

type legendEntry struct{ Class, Name string }

func newHTMLView(card *scoring.Scorecard, o Options) (*htmlView, error) {
	p := layOut(card, o)
	data, err := json.Marshal(filled(card)) // Marshal escapes <, > and &
	if err != nil {
		return nil, err
	}
	v := &htmlView{Title: p.title, Style: template.CSS(htmlStyle), Data: template.JS(data)}
	v.Alerts, v.Lead, v.Summary = p.alerts, p.summary[0], p.summary[1:]
	for i := range p.sections {
		v.Sections = append(v.Sections, newHTMLSection(&p.sections[i], i+1))
	}
	v.addCharts(card, p)
	v.Terms = termsTable(card)
	for i := range card.Backends {
		v.Legend = append(v.Legend, legendEntry{series(i), clean(card.Backends[i].Name)})
	}
	for i, n := range p.notes {
		v.Notes = append(v.Notes, htmlNote{i + 1, n.String()})
	}
	for _, f := range p.facts {
		v.Facts = append(v.Facts, htmlFact{f.name, f.value})
	}
	return v, nil
}

func newHTMLSection(s *section, n int) htmlSection {
	return htmlSection{
		ID: "s" + strconv.Itoa(n), Title: s.title, Lead: s.lead, Refs: s.refs,
		Table: newHTMLTable(s),
	}
}

func newHTMLTable(s *section) htmlTable {
	t := htmlTable{Caption: s.caption, Rows: make([][]htmlCell, len(s.rows))}
	header := 0
	for i, c := range s.columns {
		if c.room > 0 {
			header = i
			break
		}
	}
	for i, c := range s.columns {
		if c.narrow {
			continue
		}
		t.Head = append(t.Head, htmlHead{Text: c.head, Class: alignClass(c)})
		for j, row := range s.rows {
			x := htmlCell{Text: row[i].text, Sub: row[i].sub, Range: strings.HasPrefix(row[i].sub, "["), Refs: row[i].refs, Header: i == header}
			x.Class = alignClass(c) + [...]string{toneNone: "", toneStrong: " strong", toneGood: " good", toneBad: " bad", toneDim: " dim"}[row[i].tone]
			t.Rows[j] = append(t.Rows[j], x)
		}
	}
	return t
}

func alignClass(c column) string {
	if c.align == AlignRight {
		return "num"
	}
	return "txt"
}

// addCharts puts each chart into the section whose numbers it shows.
func (v *htmlView) addCharts(card *scoring.Scorecard, p *page) {
	v.Sections[0].Bars = categoryCharts(card)
	for i := range p.sections {
		name := p.sections[i].scenario
		if name == "" {
			continue
		}
		v.addScenario(&v.Sections[i], card, name)
	}
	if c, ok := newCDFChart("cdf", "Latency, all scenarios", sources(card, "")); ok {
		v.Sections[0].CDF = []cdfChart{c}
	}
}

// categoryCharts are the total and the four categories.
func categoryCharts(card *scoring.Scorecard) []barChart {
	b := &builder{card: card}
	values := make([]barValue, len(card.Backends))
	for i := range card.Backends {
		values[i] = barValue{card.Backends[i].Name, card.Backends[i].Total}
	}
	var out []barChart
	if slices.ContainsFunc(values, barValue.known) {
		out = append(out, newBarChart("bar-total", "Total", values, 100, score))
	}
	for _, c := range b.categories() {
		values := make([]barValue, len(card.Backends))
		for i := range card.Backends {
			values[i] = barValue{card.Backends[i].Name, c.of(&card.Backends[i].Categories).Estimate}
		}
		if !slices.ContainsFunc(values, barValue.known) {
			continue
		}
		title := fmt.Sprintf("%s, weight %s", c.name, strconv.FormatFloat(c.weight, 'f', -1, 64))
		out = append(out, newBarChart("bar-"+c.name, title, values, 100, score))
	}
	return out
}

// sources are the backends' distributions over the run, or in a scenario.
func sources(card *scoring.Scorecard, scenario string) []cdfSource {
	var out []cdfSource
	for i := range card.Backends {
		b := &card.Backends[i]
		s := &b.Result
		if scenario != "" {
			sc, ok := b.Scenarios[scenario]
			if !ok {
				continue
			}
			s = &sc.Result
		}
		out = append(out, cdfSource{i, b.Name, s})
	}
	return out
}

// addScenario draws a scenario's action accuracy against majority and ceiling, its
// latency, and who chose what.
func (v *htmlView) addScenario(s *htmlSection, card *scoring.Scorecard, name string) {
	majority, ceiling := math.NaN(), math.NaN()
	var values []barValue
	for i := range card.Backends {
		b := &card.Backends[i]
		sc, ok := b.Scenarios[name]
		if !ok {
			values = append(values, barValue{b.Name, scoring.Estimate{NA: "not in this scenario"}})
			continue
		}
		values = append(values, barValue{b.Name, sc.ActionAccuracy})
		if !math.IsNaN(float64(sc.Majority)) {
			majority = float64(sc.Majority)
		}
		if !math.IsNaN(float64(sc.Ceiling)) {
			ceiling = float64(sc.Ceiling)
		}
		if m, ok := newMatrix(clean(b.Name)+" in "+clean(name), sc.Confusion); ok {
			s.Confusion = append(s.Confusion, m)
		}
	}
	if slices.ContainsFunc(values, barValue.known) {
		chart := newBarChart(s.ID+"-accuracy", "Action accuracy, percent", values, 1, share)
		chart.line(majority, 1, "majority", "d1")
		chart.line(ceiling, 1, "ceiling", "d2")
		s.Bars = []barChart{chart}
	}
	if c, ok := newCDFChart(s.ID+"-cdf", "Latency", sources(card, name)); ok {
		s.CDF = []cdfChart{c}
	}
}

// termsTable shows what each category was computed from.
func termsTable(card *scoring.Scorecard) htmlTable {
	t := htmlTable{Caption: "Terms of the categories"}
	for _, h := range []string{"backend", "category", "term", "weight", "value"} {
		class := "txt"
		if h == "weight" || h == "value" {
			class = "num"
		}
		t.Head = append(t.Head, htmlHead{h, class})
	}
	b := &builder{card: card}
	for i := range card.Backends {
		x := &card.Backends[i]
		for _, c := range b.categories() {
			for _, term := range c.of(&x.Categories).Terms {
				t.Rows = append(t.Rows, termRow(x.Name, c.name, term))
			}
		}
	}
	return t
}

func termRow(backend, category string, term scoring.Term) []htmlCell {
	value := htmlCell{Class: "num"}
	switch v := float64(term.Value); {
	case term.NA != "" || math.IsNaN(v):
		value.Text, value.Sub = na, clean(term.NA)
	default:
		value.Text = termNumber(v)
		if lo, hi := float64(term.Lo), float64(term.Hi); !math.IsNaN(lo) && !math.IsNaN(hi) {
			value.Sub, value.Range = interval(lo, hi, termNumber), true
		} else {
			value.Sub = clean(term.NoInterval)
		}
	}
	return []htmlCell{
		{Text: clean(backend), Class: "txt", Header: true}, {Text: category, Class: "txt"}, {Text: clean(term.Name), Class: "txt"},
		{Text: number(term.Weight, termNumber).text, Class: "num"}, value,
	}
}

// termNumber formats a number whose unit is not known: fractions and nanoseconds alike.
func termNumber(v float64) string {
	if math.Abs(v) >= 1000 {
		return group(decimal(v, 0))
	}
	return decimal(v, 4)
}
