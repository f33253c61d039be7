package document

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
)

// Locate returns where the rune at offset of a node's text stands in the file, whose raw
// bytes are data. It walks the text and the raw bytes side by side through quotes, escapes
// and folded lines, and gives the column only while the two agree: a wrong column is worse
// than none. Where they part, the answer is the last line they shared, without a column.
func Locate(data []byte, n *Node, text string, offset int) decision.Position {
	pos := n.Pos()
	w := walker{raw: data, line: pos.Line, col: pos.Column}
	if !w.seek() {
		return decision.Position{File: pos.File, Line: pos.Line}
	}
	w.open()
	rest := text
	for i := 0; i < offset && rest != ""; i++ {
		r, size := utf8.DecodeRuneInString(rest)
		if !w.step(r) {
			return decision.Position{File: pos.File, Line: w.line}
		}
		rest = rest[size:]
	}
	if !w.settle(rest) {
		return decision.Position{File: pos.File, Line: w.line}
	}
	return decision.Position{File: pos.File, Line: w.line, Column: w.col}
}

// walker reads the raw text of one scalar.
type walker struct {
	raw       []byte
	line, col int
	style     byte // 0 plain, ' or ", | or >
	indent    int  // of a block scalar
}

// seek moves raw to the first byte of the scalar.
func (w *walker) seek() bool {
	for range w.line - 1 {
		i := bytes.IndexByte(w.raw, '\n')
		if i < 0 {
			return false
		}
		w.raw = w.raw[i+1:]
	}
	for range w.col - 1 {
		_, size := utf8.DecodeRune(w.raw)
		w.raw = w.raw[size:]
	}
	return len(w.raw) > 0
}

// open passes the quote, or the header and the indentation of a block scalar.
func (w *walker) open() {
	switch c := w.raw[0]; c {
	case '\'', '"':
		w.style = c
		w.take(1)
	case '|', '>':
		w.style = c
		w.takeLine()
		for _, line := range bytes.Split(w.raw, []byte("\n")) {
			if trimmed := bytes.TrimLeft(line, " "); len(trimmed) > 0 {
				w.indent = len(line) - len(trimmed)
				break
			}
		}
		w.takeIndent()
	}
}

// take passes n bytes of one line.
func (w *walker) take(n int) {
	w.col += utf8.RuneCount(w.raw[:n])
	w.raw = w.raw[n:]
}

func (w *walker) takeLine() {
	if i := bytes.IndexByte(w.raw, '\n'); i >= 0 {
		w.raw = w.raw[i+1:]
		w.line, w.col = w.line+1, 1
	}
}

func (w *walker) takeIndent() {
	for range w.indent {
		if len(w.raw) > 0 && w.raw[0] == ' ' {
			w.take(1)
		}
	}
}

// step passes one rune of the text, and is false when the raw bytes do not spell it.
func (w *walker) step(r rune) bool {
	if len(w.raw) == 0 {
		return false
	}
	if size := w.lineEnd(r); size {
		return true
	}
	if w.style == '"' && w.raw[0] == '\\' {
		return w.escape()
	}
	if w.style == '\'' && r == '\'' && bytes.HasPrefix(w.raw, []byte("''")) {
		w.take(2)
		return true
	}
	got, size := utf8.DecodeRune(w.raw)
	if got != r || size == 0 || r == '\n' {
		return false
	}
	w.take(size)
	return true
}

// lineEnd passes the end of a raw line where the text has a line end, or the blank that
// a folded line becomes.
func (w *walker) lineEnd(r rune) bool {
	if r != '\n' && r != ' ' || w.style == '|' && r == ' ' {
		return false
	}
	blank := len(w.raw) - len(bytes.TrimLeft(w.raw, " \t\r"))
	if blank >= len(w.raw) || w.raw[blank] != '\n' {
		return false
	}
	if (w.style == '|' || w.style == '>') && blank > 0 && w.raw[0] != '\r' {
		return false // trailing blanks belong to a block scalar
	}
	w.takeLine()
	if w.style == '|' || w.style == '>' {
		w.takeIndent()
		return true
	}
	w.take(len(w.raw) - len(bytes.TrimLeft(w.raw, " \t")))
	return true
}

// escape passes one escape of a double-quoted scalar.
func (w *walker) escape() bool {
	if len(w.raw) < 2 {
		return false
	}
	n := 2
	switch w.raw[1] {
	case 'x':
		n = 4
	case 'u':
		n = 6
	case 'U':
		n = 10
	case '\n', '\r':
		return false
	}
	if len(w.raw) < n {
		return false
	}
	w.take(n)
	return true
}

// settle checks that the place itself is where the next rune of the text is written.
func (w *walker) settle(rest string) bool {
	if rest == "" {
		return true
	}
	r, _ := utf8.DecodeRuneInString(rest)
	probe := *w
	return strings.ContainsRune(" \n", r) || probe.step(r)
}
