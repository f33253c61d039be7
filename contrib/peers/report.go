package peers

import (
	"fmt"
	"io"
	"strings"
)

// Goal is what a ratio has to reach: exactly one of the two is set, or none.
type Goal struct{ AtLeast, AtMost float64 }

// Met reports whether v reaches the goal.
func (g Goal) Met(v float64) bool {
	return (g.AtLeast == 0 || v >= g.AtLeast) && (g.AtMost == 0 || v <= g.AtMost)
}

func (g Goal) String() string {
	switch {
	case g.AtLeast > 0:
		return fmt.Sprintf(">= %g", g.AtLeast)
	case g.AtMost > 0:
		return fmt.Sprintf("<= %g", g.AtMost)
	}
	return ""
}

// verdict is the text of the last column.
func (g Goal) verdict(v float64) string {
	switch {
	case g == Goal{}:
		return ""
	case g.Met(v):
		return "yes"
	}
	return "**no**"
}

// Line is one ratio of a report.
type Line struct {
	// Cells come before the ratio, one for each column of the report.
	Cells []string
	Ratio Ratio
	Goal  Goal
}

// Report is a Markdown table of ratios.
type Report struct {
	Title   string
	Columns []string
	// What the ratio is, as the heading of its column.
	What  string
	Lines []Line
	Notes []string
}

// Find returns the first line whose first cell begins with name.
func (r *Report) Find(name string) (Line, bool) {
	for _, l := range r.Lines {
		if strings.HasPrefix(l.Cells[0], name) {
			return l, true
		}
	}
	return Line{}, false
}

// WriteTo prints the report.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n", r.Title)
	head := append(append([]string{}, r.Columns...), r.What, "goal", "met")
	writeCells(&b, head)
	writeCells(&b, strings.Split(strings.Repeat("---,", len(head)-1)+"---", ","))
	for _, l := range r.Lines {
		ratio := ""
		if l.Ratio != (Ratio{}) {
			ratio = fmt.Sprintf("%s [%s, %s]", digits(l.Ratio.Median), digits(l.Ratio.Low), digits(l.Ratio.High))
		}
		writeCells(&b, append(append([]string{}, l.Cells...), ratio, l.Goal.String(), l.Goal.verdict(l.Ratio.Median)))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func writeCells(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// digits prints three significant digits or so.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
