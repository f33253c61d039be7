package document

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/clefbench/clefbench/decision"
)

// ErrJSON is returned by [Format] for a file in JSON, which other tools format.
var ErrJSON = errors.New("the file is JSON and is left as it is")

// Format writes a YAML file in the one canonical form: two blanks for each level, lists
// indented below their field, one blank within { } and after commas, one blank before a
// comment, at most one empty line in a row, no blanks at line ends. Order, comments, quotes
// and line breaks stay as they are; a value over several lines moves as a whole.
//
// The result reads as the same values with the same comments: that is checked before it is
// returned. The error is a [Problems] for a file that [Parse] refuses or that cannot be
// formatted, or [ErrJSON].
func Format(name string, data []byte) ([]byte, error) {
	data = []byte(strings.TrimPrefix(string(data), "\ufeff"))
	f, root, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	if root.y.Style&yaml.FlowStyle != 0 {
		return nil, ErrJSON
	}
	p := &printer{file: f}
	for line := range strings.Lines(string(data)) {
		p.lines = append(p.lines, []rune(strings.TrimRight(line, "\r\n")))
	}
	p.otherBreaks()
	if !p.failed {
		p.print(root.y)
	}
	if p.failed {
		return nil, f.Err()
	}
	out := []byte(p.out.String())
	if at, ok := sameContent(name, data, out); !ok {
		f.Errorf(at, "format it by hand", "formatting would change what the file says")
		return nil, f.Err()
	}
	return out, nil
}

// printer writes a tree beside its source, of which it reads comments, empty lines and how
// scalars are written.
type printer struct {
	file  *File
	lines [][]rune
	// next is the first line, from 0, that is not written yet.
	next int
	out  strings.Builder
	// levels are the open blocks: where they stand in the source and in the result.
	levels []level
	begun  bool // the root is reached: before it, markers and directives pass
	failed bool
}

// level is a block's column in the source, from 1, and its indentation in the result.
type level struct{ col, indent int }

func (l level) shift() int { return l.indent - (l.col - 1) }

// fail reports what the printer does not understand, once.
func (p *printer) fail(line, col int, what string) {
	if !p.failed {
		p.failed = true
		p.file.Errorf(decision.Position{File: p.file.Name, Line: line, Column: col}, "write it in a simpler form", "cannot format %s", what)
	}
}

// otherBreaks refuses the characters that end a line in YAML and nowhere else.
func (p *printer) otherBreaks() {
	for i, line := range p.lines {
		for k, r := range line {
			if strings.ContainsRune("\r\u0085\u2028\u2029", r) {
				p.fail(i+1, k+1, "a line end other than \\n and \\r\\n")
			}
		}
	}
}

func (p *printer) print(root *yaml.Node) {
	p.block(root, level{root.Column, 0}, false)
	p.gap(len(p.lines)+1, level{1, 0})
}

// block writes a block map or list; begun says that its first entry follows on the line
// that is open.
func (p *printer) block(n *yaml.Node, at level, begun bool) {
	if n.Style&yaml.TaggedStyle != 0 || n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		p.fail(n.Line, n.Column, "a value with a tag")
		return
	}
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step <= len(n.Content) && !p.failed; i += step {
		if step == 2 {
			p.field(n.Content[i], n.Content[i+1], at, begun && i == 0)
		} else {
			p.item(n, n.Content[i], at, begun && i == 0)
		}
	}
}

// start begins the line of an entry, with what stands before it.
func (p *printer) start(line int, at level, begun bool) {
	if !begun {
		p.gap(line, at)
		p.out.WriteString(strings.Repeat(" ", at.indent))
	}
	p.begun = true
	p.levels = slices.DeleteFunc(p.levels, func(l level) bool { return l.col >= at.col })
	p.levels = append(p.levels, at)
}

func (p *printer) field(key, value *yaml.Node, at level, begun bool) {
	p.start(key.Line, at, begun)
	line, col, ok := p.scalarEnd(key)
	if !ok || line != key.Line || key.Column != at.col {
		p.fail(key.Line, key.Column, "this field")
		return
	}
	p.out.WriteString(p.slice(key.Line, key.Column, col))
	for col <= len(p.lines[line-1]) && p.lines[line-1][col-1] == ' ' {
		col++
	}
	if col > len(p.lines[line-1]) || p.lines[line-1][col-1] != ':' {
		p.fail(line, key.Column, "this field")
		return
	}
	p.out.WriteString(":")
	p.value(value, at, line, col+1)
}

func (p *printer) item(list, n *yaml.Node, at level, begun bool) {
	line := list.Line
	if !begun {
		line = p.dash(at.col, n.Line)
	}
	if line == 0 || list.Column != at.col {
		p.fail(n.Line, n.Column, "this list")
		return
	}
	p.start(line, at, begun)
	p.out.WriteString("-")
	inner := level{n.Column, at.indent + 2}
	if n.Line == line && blockNode(n) {
		p.out.WriteString(" ")
		p.block(n, inner, true)
		return
	}
	p.value(n, at, line, at.col+1)
}

// dash finds the line on which a list's next item begins.
func (p *printer) dash(col, last int) int {
	for line := p.next + 1; line <= last && line <= len(p.lines); line++ {
		s := p.lines[line-1]
		if len(s) >= col && s[col-1] == '-' && strings.TrimSpace(string(s[:col-1])) == "" && (len(s) == col || s[col] == ' ' || s[col] == '\t') {
			return line
		}
	}
	return 0
}

func blockNode(n *yaml.Node) bool {
	return n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// value writes what follows a field's colon or an item's dash at (line, col), and ends the
// line.
func (p *printer) value(n *yaml.Node, at level, line, col int) {
	outer := at
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0:
		p.end(line, col)
		return
	case blockNode(n):
		p.end(line, col)
		p.block(n, level{n.Column, outer.indent + 2}, false)
		return
	case n.Style&yaml.TaggedStyle != 0:
		p.fail(n.Line, n.Column, "a value with a tag")
		return
	}
	if n.Line == line {
		p.out.WriteString(" ")
	} else { // on a line of its own
		p.end(line, col)
		at = level{n.Column, outer.indent + 2}
		p.start(n.Line, at, false)
	}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.blockScalar(n, outer)
	case n.Kind == yaml.ScalarNode:
		last, end, ok := p.scalarEnd(n)
		p.raw(n, last, end, ok, at.shift(), outer.indent+1)
	default:
		p.flow(n, at.shift(), outer.indent)
	}
}

// raw writes a value as it stands, its further lines moved by shift but not before least.
func (p *printer) raw(n *yaml.Node, last, end int, ok bool, shift, least int) {
	if !ok {
		p.fail(n.Line, n.Column, "this value")
		return
	}
	for line := n.Line; line <= last; line++ {
		from, to := 1, len(p.lines[line-1])+1
		if line == n.Line {
			from = n.Column
		}
		if line == last {
			to = end
		}
		text := p.slice(line, from, to)
		if line > n.Line {
			p.out.WriteString("\n")
			if body := strings.TrimLeft(text, " "); body != "" {
				text = strings.Repeat(" ", max(least, len(text)-len(body)+shift)) + body
			}
		}
		if trimmed := strings.TrimRight(text, " \t"); line < last && !strings.HasSuffix(trimmed, `\`) {
			text = trimmed
		}
		p.out.WriteString(text)
	}
	p.end(last, end)
}

func (p *printer) slice(line, from, to int) string { return string(p.lines[line-1][from-1 : to-1]) }

// end writes the comment that may follow on the line, and ends it.
func (p *printer) end(line, col int) {
	rest := strings.TrimSpace(p.slice(line, min(col, len(p.lines[line-1])+1), len(p.lines[line-1])+1))
	switch {
	case strings.HasPrefix(rest, "#"):
		p.out.WriteString(" " + rest)
	case rest != "":
		p.fail(line, col, "what follows here")
	}
	p.out.WriteString("\n")
	p.next = line
}

// gap writes the comments and empty lines before a line; next is the block that begins
// there.
func (p *printer) gap(before int, next level) {
	empty := false
	for ; p.next < before-1; p.next++ {
		line := p.lines[p.next]
		text := strings.TrimSpace(string(line))
		if text == "" {
			empty = p.out.Len() > 0
			continue
		}
		marker := !p.begun && (strings.HasPrefix(string(line), "---") || line[0] == '%') || text == "..."
		if text[0] != '#' && !marker {
			p.fail(p.next+1, 1, "this line")
			return
		}
		if empty {
			p.out.WriteString("\n")
			empty = false
		}
		indent := 0
		if !marker {
			indent = p.commentIndent(len(line)-len([]rune(strings.TrimLeft(string(line), " \t")))+1, next)
		}
		p.out.WriteString(strings.Repeat(" ", indent) + text + "\n")
	}
	if empty && before <= len(p.lines) {
		p.out.WriteString("\n")
	}
}

// commentIndent keeps a comment at the block that it stands in: the one that follows, or
// a deeper one that has just been written.
func (p *printer) commentIndent(col int, next level) int {
	indent := next.indent
	for _, l := range p.levels {
		if l.col > next.col && l.col <= col {
			indent = max(indent, l.indent)
		}
	}
	return indent
}
