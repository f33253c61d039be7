package reports

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/clefbench/clefbench/scoring"
)

// layout is how much room a table takes.
type layout uint8

const (
	// layoutWide writes "71.3 [69.8, 72.9]".
	layoutWide layout = iota
	// layoutStacked writes the interval below the value.
	layoutStacked
	// layoutNarrow also puts columns under their neighbours and breaks names; if that is
	// still too wide, the columns are dealt out to several tables.
	layoutNarrow
)

// Text writes the report for a terminal or a log.
func Text(w io.Writer, card *scoring.Scorecard, o Options) error {
	p := layOut(card, o)
	out := bufio.NewWriter(w)
	t := textPrinter{out: out, width: o.Width, color: o.Color}
	if err := t.print(p); err != nil {
		return fmt.Errorf("text report: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("text report: %w", err)
	}
	return nil
}

type textPrinter struct {
	out   *bufio.Writer
	width int
	color bool
}

func (t *textPrinter) print(p *page) error {
	t.heading(p.title)
	for _, s := range p.alerts {
		t.paragraph("! ", t.paint(toneBad, s))
	}
	for _, s := range p.summary {
		t.paragraph("- ", s)
	}
	for i := range p.sections {
		if err := t.section(&p.sections[i]); err != nil {
			return err
		}
	}
	if len(p.notes) > 0 {
		t.out.WriteString("\n")
		t.heading("Notes")
		for i, n := range p.notes {
			t.paragraph(fmt.Sprintf("(%d) ", i+1), n.String())
		}
	}
	t.out.WriteString("\n")
	for _, f := range p.facts {
		t.paragraph(f.name+": ", f.value)
	}
	return nil
}

func (t *textPrinter) section(s *section) error {
	t.out.WriteString("\n")
	t.heading(s.title + marks(s.refs))
	if s.lead != "" {
		t.paragraph("", s.lead)
	}
	t.out.WriteString("\n")
	text, err := t.fit(s)
	t.out.WriteString(text)
	return err
}

func (t *textPrinter) heading(s string) { t.out.WriteString(t.paint(toneStrong, s) + "\n") }

// paragraph writes a text after its mark, broken at the width and indented by the mark.
func (t *textPrinter) paragraph(mark, s string) {
	indent := displayWidth(mark)
	width := 0
	if t.width > 0 {
		width = max(t.width-indent, 20)
	}
	for i, line := range wrapText(s, width) {
		if i > 0 {
			mark = strings.Repeat(" ", indent)
		}
		t.out.WriteString(mark + line + "\n")
	}
}

// fit is the table in the first layout that fits the width.
func (t *textPrinter) fit(s *section) (string, error) {
	for _, l := range []layout{layoutWide, layoutStacked} {
		text, err := render(t.table(s, l))
		if err != nil || t.width <= 0 || displayWidth(text) <= t.width {
			return text, err
		}
	}
	table := t.table(s, layoutNarrow)
	keys := 0
	for _, c := range s.columns {
		if c.key && !c.below {
			keys++
		}
	}
	return split(table, keys, t.width)
}

func render(t *Table) (string, error) {
	var b strings.Builder
	err := t.WriteText(&b)
	return b.String(), err
}

// split writes a table as several that are no wider than width, each with the key columns
// that stand first. One column beside the keys is always taken.
func split(t *Table, keys, width int) (string, error) {
	var out strings.Builder
	for from := keys; from < len(t.Header); {
		to := len(t.Header)
		text, err := render(part(t, keys, from, to))
		for err == nil && displayWidth(text) > width && to > from+1 {
			to--
			text, err = render(part(t, keys, from, to))
		}
		if err != nil {
			return "", err
		}
		if from > keys {
			out.WriteString("\n")
		}
		out.WriteString(text)
		from = to
	}
	return out.String(), nil
}

// part is the key columns and those from one index to another.
func part(t *Table, keys, from, to int) *Table {
	cut := func(cells []string) []string {
		return slices.Concat(cells[:keys], cells[from:to])
	}
	out := &Table{Header: cut(t.Header)}
	for i := range t.Header {
		if i < keys || i >= from && i < to {
			out.Align = append(out.Align, t.Align[i])
		}
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, cut(row))
	}
	return out
}

// table lays a section out as plain strings.
func (t *textPrinter) table(s *section, l layout) *Table {
	out := &Table{}
	head := make([]cell, len(s.columns))
	for i, c := range s.columns {
		head[i] = cell{text: c.head}
		if l == layoutNarrow && c.short != "" {
			head[i].text = c.short
		}
		if !c.hidden(l) && !(l == layoutNarrow && c.below) {
			out.Align = append(out.Align, c.align)
		}
	}
	out.Header = t.row(s.columns, head, l)
	for _, row := range s.rows {
		out.Rows = append(out.Rows, t.row(s.columns, row, l))
	}
	return out
}

// hidden says whether a layout leaves the column out.
func (c column) hidden(l layout) bool {
	return c.wide && l == layoutNarrow || c.narrow && l != layoutNarrow
}

func (t *textPrinter) row(columns []column, row []cell, l layout) []string {
	var out []string
	for i, c := range columns {
		switch {
		case c.hidden(l):
		case l == layoutNarrow && c.below:
			out[len(out)-1] += "\n" + t.cell(row[i], c, l)
		default:
			out = append(out, t.cell(row[i], c, l))
		}
	}
	return out
}

func (t *textPrinter) cell(c cell, col column, l layout) string {
	lines := []string{c.text}
	if l == layoutNarrow && col.room > 0 {
		lines = wrapText(c.text, col.room)
	}
	for i := range lines {
		lines[i] = t.paint(c.tone, lines[i])
	}
	last := len(lines) - 1
	sub := t.paint(toneDim, narrowInterval(c.sub, l))
	refs := marks(c.refs)
	switch {
	case l == layoutNarrow && col.room > 0 && refs != "":
		// Marks beside the longest name would make the column wider.
		lines = append(lines, strings.TrimSpace(sub+refs))
	case c.sub == "":
		lines[last] += refs
	case l == layoutWide && col.room == 0:
		lines[last] += " " + sub + refs
	default:
		lines[last] += refs
		lines = append(lines, sub)
	}
	return strings.Join(lines, "\n")
}

// narrowInterval writes "[69.8, 72.9]" as "69.8–72.9": five such columns then fit into 80.
// Where there are signs, the dash could be read as one.
func narrowInterval(s string, l layout) string {
	if l != layoutNarrow || !strings.HasPrefix(s, "[") || strings.ContainsAny(s, "+-") {
		return s
	}
	return strings.ReplaceAll(strings.Trim(s, "[]"), ", ", "–")
}

// marks are footnote numbers: " (1, 2)".
func marks(refs []int) string {
	if len(refs) == 0 {
		return ""
	}
	parts := make([]string, len(refs))
	for i, r := range refs {
		parts[i] = strconv.Itoa(r)
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// paint colours a text where colours are allowed. The codes are the terminal's own
// palette, so that they follow the user's theme.
func (t *textPrinter) paint(tone tone, s string) string {
	codes := [...]string{toneNone: "", toneStrong: "1", toneGood: "32", toneBad: "31", toneDim: "2"}
	if !t.color || codes[tone] == "" || s == "" {
		return s
	}
	return "\x1b[" + codes[tone] + "m" + s + "\x1b[0m"
}

// Markdown writes the report as GitHub-flavoured Markdown.
func Markdown(w io.Writer, card *scoring.Scorecard, o Options) error {
	p := layOut(card, o)
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s\n\n", markdown(p.title))
	for _, s := range p.alerts {
		fmt.Fprintf(out, "- **%s**\n", markdown(s))
	}
	for _, s := range p.summary {
		fmt.Fprintf(out, "- %s\n", markdown(s))
	}
	for i := range p.sections {
		if err := markdownSection(out, &p.sections[i]); err != nil {
			return fmt.Errorf("markdown report: %w", err)
		}
	}
	markdownNotes(out, p)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("markdown report: %w", err)
	}
	return nil
}

func markdownSection(out *bufio.Writer, s *section) error {
	fmt.Fprintf(out, "\n## %s%s\n\n", markdown(s.title), sup(s.refs))
	if s.lead != "" {
		fmt.Fprintf(out, "%s\n\n", markdown(s.lead))
	}
	t := &Table{}
	rows := make([][]string, len(s.rows))
	for i, c := range s.columns {
		if c.narrow {
			continue
		}
		t.Header = append(t.Header, markdown(c.head))
		t.Align = append(t.Align, c.align)
		for j, row := range s.rows {
			rows[j] = append(rows[j], markdownCell(row[i], c))
		}
	}
	t.Rows = rows
	return t.WriteMarkdown(out)
}

func markdownCell(c cell, col column) string {
	text := markdown(c.text)
	if c.tone == toneStrong || c.tone == toneBad && col.room > 0 {
		text = "**" + text + "**"
	}
	text += sup(c.refs)
	switch {
	case c.sub == "":
	case col.room > 0:
		text += "\n" + markdown(c.sub)
	default:
		text += " " + markdown(c.sub)
	}
	return text
}

func markdownNotes(out *bufio.Writer, p *page) {
	if len(p.notes) > 0 {
		out.WriteString("\n## Notes\n\n")
		for i, n := range p.notes {
			fmt.Fprintf(out, "%d. %s\n", i+1, markdown(n.String()))
		}
	}
	out.WriteString("\n")
	for _, f := range p.facts {
		fmt.Fprintf(out, "- %s: %s\n", f.name, markdown(f.value))
	}
}

// sup are footnote numbers in Markdown.
func sup(refs []int) string {
	if len(refs) == 0 {
		return ""
	}
	return "<sup>" + strings.Trim(marks(refs), " ()") + "</sup>"
}

// markdown escapes what Markdown, or the HTML in it, would read as markup. Underscores and
// dashes inside words are none, and stay readable.
func markdown(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune("\\`*|~", r), markupAt(runes, i):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// markupAt says whether a character that is mostly harmless would be markup where it
// stands: the end of a link's text, an underscore at a word's edge, the mark of a heading,
// quotation or list.
func markupAt(runes []rune, i int) bool {
	first, last := i == 0, i == len(runes)-1
	switch runes[i] {
	case ']':
		return !last && strings.ContainsRune("([:", runes[i+1])
	case '_':
		return first || last || !wordRune(runes[i-1]) || !wordRune(runes[i+1])
	case '#', '>', '+', '-':
		return first && !last && runes[i+1] == ' '
	}
	return false
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
