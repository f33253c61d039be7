package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Align is where a column's cells stand.
type Align uint8

// The alignments.
const (
	AlignLeft Align = iota
	AlignRight
)

// Table is a table of plain text: a header, rows, and footnotes below it. A line break in
// a cell is a line break in print. Rows may be shorter than the header.
//
// It hides tablewriter, and mends what its version 1.1.5 does to tables: it rewrites
// headers ("p95_ms" to "P 95 MS"), keeps the caller's slices, trims blanks, hides empty
// columns, pads lines with blanks, lets a "|" or a line break in a cell break Markdown, and
// guesses the width of a character from the machine's locale.
type Table struct {
	Header    []string
	Align     []Align
	Rows      [][]string
	Footnotes []string
}

// hardSpace stands for the leading blanks of a cell while tablewriter, which would trim
// them, has it.
const hardSpace = "\u00a0"

// WriteText writes the table for a terminal: no border, a rule below the header.
func (t *Table) WriteText(w io.Writer) error {
	var b strings.Builder
	err := t.render(&b, textRenderer(), indentText)
	if err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(strings.ReplaceAll(line, hardSpace, " "), " \n")
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return t.writeFootnotes(w, "")
}

// WriteMarkdown writes the table as GitHub-flavoured Markdown. The cells are Markdown;
// only what would break the table is escaped.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	if err := t.render(&b, renderer.NewMarkdown(), escapeMarkdownCell); err != nil {
		return err
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return t.writeFootnotes(w, "\n")
}

func (t *Table) writeFootnotes(w io.Writer, between string) error {
	for _, n := range t.Footnotes {
		if _, err := io.WriteString(w, between+n+"\n"); err != nil {
			return fmt.Errorf("write footnotes: %w", err)
		}
	}
	return nil
}

// render hands tablewriter its own copy of every cell.
func (t *Table) render(w io.Writer, r tw.Renderer, prepare func(string) string) error {
	if len(t.Header) == 0 {
		return nil
	}
	table := tablewriter.NewTable(w, t.options(r)...)
	table.Header(t.row(t.Header, prepare))
	for _, row := range t.Rows {
		if err := table.Append(t.row(row, prepare)); err != nil {
			return fmt.Errorf("lay out table: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("lay out table: %w", err)
	}
	return nil
}

// row prepares the cells of a row, as many as the header has.
func (t *Table) row(cells []string, prepare func(string) string) []string {
	out := make([]string, len(t.Header))
	for i := range out {
		if i < len(cells) {
			out[i] = prepare(cells[i])
		}
	}
	return out
}

func (t *Table) options(r tw.Renderer) []tablewriter.Option {
	align := tw.CellAlignment{PerColumn: make([]tw.Align, len(t.Header))}
	for i := range align.PerColumn {
		align.PerColumn[i] = tw.AlignLeft
		if i < len(t.Align) && t.Align[i] == AlignRight {
			align.PerColumn[i] = tw.AlignRight
		}
	}
	return []tablewriter.Option{
		tablewriter.WithRenderer(r),
		tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithRowAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off), tablewriter.WithTrimTab(tw.Off), tablewriter.WithTrimLine(tw.Off),
		tablewriter.WithAutoHide(tw.Off),
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(align), tablewriter.WithRowAlignmentConfig(align),
	}
}

func textRenderer() tw.Renderer {
	return renderer.NewBlueprint(tw.Rendition{
		Borders: tw.BorderNone,
		Symbols: tw.NewSymbols(tw.StyleLight),
		Settings: tw.Settings{
			Separators: tw.Separators{ShowHeader: tw.On, BetweenRows: tw.Off, BetweenColumns: tw.Off},
			Lines:      tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On},
		},
	})
}

// indentText keeps the leading blanks of each line.
func indentText(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r", ""), "\n")
	for i, l := range lines {
		rest := strings.TrimLeft(l, " ")
		lines[i] = strings.Repeat(hardSpace, len(l)-len(rest)) + strings.TrimRight(rest, " ")
	}
	return strings.Join(lines, "\n")
}

// escapeMarkdownCell escapes the pipes that are not escaped yet and writes line breaks as
// <br>: a bare one would start another row.
func escapeMarkdownCell(s string) string {
	var b strings.Builder
	escaped := false
	for _, r := range s {
		switch {
		case r == '\r':
			continue
		case r == '\n':
			b.WriteString("<br>")
		case r == '|' && !escaped:
			b.WriteString(`\|`)
		default:
			b.WriteRune(r)
		}
		escaped = r == '\\' && !escaped
	}
	return b.String()
}

// displayWidth is the number of terminal columns of the widest line; colours count 0.
func displayWidth(s string) int {
	var w int
	for line := range strings.Lines(s) {
		w = max(w, twwidth.WidthWithOptions(strings.TrimRight(line, "\n"), twwidth.Options{}))
	}
	return w
}

// wrapText breaks a line into lines of at most width columns, at blanks and after
// characters that end a part of a name where possible. A width of 0 leaves it whole.
func wrapText(s string, width int) []string {
	if width <= 0 || displayWidth(s) <= width {
		return []string{s}
	}
	var lines []string
	rest := []rune(s)
	for len(rest) > 0 {
		n := breakAt(rest, width)
		lines = append(lines, strings.TrimSpace(string(rest[:n])))
		rest = rest[n:]
	}
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" })
}

// breakAt is how many runes go on the line: all that fit, back to the last good place.
func breakAt(rest []rune, width int) int {
	fit := 1
	for fit < len(rest) && displayWidth(string(rest[:fit+1])) <= width {
		fit++
	}
	if fit == len(rest) {
		return fit
	}
	if rest[fit] == ' ' {
		return fit
	}
	for n := fit; n > 0; n-- {
		if rest[n-1] == ' ' {
			return n
		}
	}
	for n := fit; n > fit/2; n-- {
		if strings.ContainsRune("-_/.:,;", rest[n-1]) {
			return n
		}
	}
	return fit
}
