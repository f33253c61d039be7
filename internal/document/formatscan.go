package document

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/clefbench/clefbench/decision"
)

// scalarEnd returns the place behind a flow scalar: the line, and the column after its
// last character.
func (p *printer) scalarEnd(n *yaml.Node) (line, col int, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Style&yaml.TaggedStyle != 0:
		return 0, 0, false
	case n.Style&yaml.SingleQuotedStyle != 0:
		return p.quoteEnd(n, '\'')
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return p.quoteEnd(n, '"')
	}
	return p.plainEnd(n)
}

func (p *printer) quoteEnd(n *yaml.Node, quote rune) (line, col int, ok bool) {
	line, col = n.Line, n.Column
	if !p.at(line, col, quote) {
		return 0, 0, false
	}
	for col++; line <= len(p.lines); line, col = line+1, 1 {
		for s := p.lines[line-1]; col <= len(s); col++ {
			switch {
			case quote == '"' && s[col-1] == '\\':
				col++
			case s[col-1] != quote:
			case quote == '\'' && p.at(line, col+1, quote):
				col++
			default:
				return line, col + 1, true
			}
		}
	}
	return 0, 0, false
}

func (p *printer) at(line, col int, r rune) bool {
	return line <= len(p.lines) && col <= len(p.lines[line-1]) && p.lines[line-1][col-1] == r
}

// plainEnd walks a plain scalar's text and its source side by side; where the source breaks
// a line, the text has a blank or line ends.
func (p *printer) plainEnd(n *yaml.Node) (line, col int, ok bool) {
	line, col = n.Line, n.Column
	broken := false
	for _, r := range n.Value {
		if p.at(line, col, r) && r != ' ' {
			col, broken = col+1, false
			continue
		}
		if broken && r == '\n' {
			continue
		}
		if r != ' ' && r != '\n' {
			return 0, 0, false
		}
		if rest := p.lines[line-1][min(col-1, len(p.lines[line-1])):]; strings.TrimSpace(string(rest)) != "" {
			if r != ' ' || !p.at(line, col, ' ') {
				return 0, 0, false
			}
			col++
			continue
		}
		broken = true
		for line++; line <= len(p.lines) && strings.TrimSpace(string(p.lines[line-1])) == ""; {
			line++
		}
		if line > len(p.lines) {
			return 0, 0, false
		}
		for col = 1; p.at(line, col, ' ') || p.at(line, col, '\t'); {
			col++
		}
	}
	return line, col, true
}

// flow writes a flow map or list: on one line in the canonical way, over several as it is.
func (p *printer) flow(n *yaml.Node, shift, least int) {
	line, col, ok := p.flowEnd(n)
	if ok && line == n.Line {
		if text, simple := p.flowText(n); simple {
			p.out.WriteString(text)
			p.end(line, col)
			return
		}
	}
	p.raw(n, line, col, ok, shift, least)
}

// flowEnd returns the place behind the closing bracket: after the last entry's end only
// blanks, comments and commas come before it.
func (p *printer) flowEnd(n *yaml.Node) (line, col int, ok bool) {
	open, closing := '[', ']'
	if n.Kind == yaml.MappingNode {
		open, closing = '{', '}'
	}
	if !p.at(n.Line, n.Column, open) || n.Style&yaml.TaggedStyle != 0 {
		return 0, 0, false
	}
	line, col = n.Line, n.Column+1
	for _, c := range n.Content {
		l, k, ok := p.flowEntryEnd(c)
		if !ok {
			return 0, 0, false
		}
		if l > line || l == line && k > col { // what is left out may have no place of its own
			line, col = l, k
		}
	}
	for ; line <= len(p.lines); line, col = line+1, 1 {
		for s := p.lines[line-1]; col <= len(s); col++ {
			switch r := s[col-1]; {
			case r == closing:
				return line, col + 1, true
			case r == '#':
				col = len(s)
			case r != ' ' && r != '\t' && r != ',' && r != ':':
				return 0, 0, false
			}
		}
	}
	return 0, 0, false
}

func (p *printer) flowEntryEnd(n *yaml.Node) (line, col int, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return p.flowEnd(n)
	case n.Value == "" && n.Style == 0:
		return 0, 0, true
	}
	return p.scalarEnd(n)
}

// flowText is a flow map or list on one line; false when it has entries that are left out.
func (p *printer) flowText(n *yaml.Node) (string, bool) {
	if n.Kind == yaml.ScalarNode {
		line, col, ok := p.scalarEnd(n)
		if !ok || line != n.Line || n.Value == "" && n.Style == 0 {
			return "", false
		}
		return p.slice(line, n.Column, col), true
	}
	parts := make([]string, len(n.Content))
	for i, c := range n.Content {
		var ok bool
		if parts[i], ok = p.flowText(c); !ok {
			return "", false
		}
	}
	if n.Kind == yaml.SequenceNode {
		return "[" + strings.Join(parts, ", ") + "]", true
	}
	for i := 0; i+1 < len(parts); i += 2 {
		parts[i/2] = parts[i] + ": " + parts[i+1]
	}
	return "{" + strings.Join(parts[:len(parts)/2], ", ") + "}", true
}

// blockScalar writes a text after | or >, its lines moved to two blanks below outer, or to
// where its header says.
func (p *printer) blockScalar(n *yaml.Node, outer level) {
	s := p.lines[n.Line-1]
	col := n.Column
	for col <= len(s) && !unicode.IsSpace(s[col-1]) {
		col++
	}
	header := p.slice(n.Line, n.Column, col)
	p.out.WriteString(header)
	p.end(n.Line, col)
	from, to := 0, outer.indent+2
	if i := strings.IndexAny(header, "123456789"); i >= 0 {
		width := int(header[i] - '0')
		from, to = outer.col-1+width, outer.indent+width
	}
	last := p.next // the last line of the text, from 1
	for i := p.next; i < len(p.lines); i++ {
		line := p.lines[i]
		indent := len(line) - len([]rune(strings.TrimLeft(string(line), " ")))
		if strings.TrimSpace(string(line)) == "" && (from == 0 || indent <= from) {
			continue
		}
		if from == 0 {
			from = indent
		}
		if indent < from || indent < outer.col {
			break
		}
		last = i + 1
	}
	if strings.Contains(header, "+") {
		for last < len(p.lines) && strings.TrimSpace(string(p.lines[last])) == "" {
			last++
		}
	}
	for ; p.next < last; p.next++ {
		line := string(p.lines[p.next])
		if from > 0 && len([]rune(line)) > from {
			line = strings.Repeat(" ", to) + string(p.lines[p.next][from:])
		} else {
			line = ""
		}
		p.out.WriteString(line + "\n")
	}
}

// sameContent reports whether two files have the same values in the same order, and the
// same comments; else, where the first of them says what the second does not.
func sameContent(name string, a, b []byte) (decision.Position, bool) {
	at := decision.Position{File: name, Line: 1, Column: 1}
	f, x, err := Parse(name, a)
	if err != nil {
		return at, false
	}
	_, y, err := Parse(name, b)
	if err != nil {
		return at, false
	}
	if n := different(x.y, y.y); n != nil {
		return f.at(n), false
	}
	return at, slices.Equal(comments(x.y), comments(y.y))
}

func different(a, b *yaml.Node) *yaml.Node {
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return a
	}
	for i := range a.Content {
		if n := different(a.Content[i], b.Content[i]); n != nil {
			return n
		}
	}
	return nil
}

// comments lists the lines of all comments, sorted: which node a parser gives a comment to
// depends on its indentation.
func comments(n *yaml.Node) []string {
	var out []string
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		for line := range strings.Lines(c) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	for _, c := range n.Content {
		out = append(out, comments(c)...)
	}
	slices.Sort(out)
	return out
}
