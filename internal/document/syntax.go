package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/clefbench/clefbench/decision"
)

// syntax adds what the parser says, in plain words where it is known to be cryptic.
func (f *File) syntax(data []byte, err error) {
	start := decision.Position{File: f.Name, Line: 1, Column: 1}
	var load *yaml.LoadError
	switch {
	case errors.Is(err, io.EOF):
		f.Errorf(start, "is it the right file, and was it saved?", "file is empty")
	case errors.As(err, &load) && load.Mark.Line > 0:
		pos := decision.Position{File: f.Name, Line: load.Mark.Line, Column: load.Mark.Column}
		message, hint := plainWords(load.Message, after(data, pos))
		if tag, ok := tagBefore(data, pos); ok && strings.Contains(load.Message, "YAML tag") {
			pos, message, hint = tag, "text that begins with ! is read as a YAML tag", "quote the expression"
		}
		f.Errorf(pos, hint, "%s", message)
	default:
		f.notText(data, start, err)
	}
}

// notText is for errors without a place: the parser gives none for bytes that it cannot
// read at all.
func (f *File) notText(data []byte, start decision.Position, err error) {
	utf16 := bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
	if utf16 || bytes.IndexByte(data, 0) >= 0 || bytes.HasPrefix(data, []byte("\x89CFB")) {
		f.Errorf(start, "a compiled table (.cfb) is checked by replay; check the matrix that it comes from", "the file is not text")
		return
	}
	for pos, i := start, 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			f.Errorf(pos, "save the file as UTF-8", "byte 0x%02x is not UTF-8", data[i])
			return
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f:
			f.Errorf(pos, `write it as an escape in double quotes, as in "\x1b"`, "control character 0x%02x", data[i])
			return
		case r == '\n':
			pos.Line, pos.Column = pos.Line+1, 0
		}
		pos.Column++
		i += size
	}
	f.Errorf(start, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// tagBefore returns where the tag begins in which the parser stumbled.
func tagBefore(data []byte, pos decision.Position) (decision.Position, bool) {
	start := pos
	start.Column = 1
	line := []rune(after(data, start))
	for at := min(pos.Column, len(line)) - 1; at >= 0; at-- {
		if line[at] == '!' {
			pos.Column = at + 1
			return pos, true
		}
	}
	return pos, false
}

// after returns the text from a position on.
func after(data []byte, pos decision.Position) string {
	rest := string(data)
	for range pos.Line - 1 {
		_, tail, found := strings.Cut(rest, "\n")
		if !found {
			return ""
		}
		rest = tail
	}
	for range pos.Column - 1 {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return rest
}

// plainWords translates a message of the parser; rest is the file from its place on.
func plainWords(message, rest string) (plain, hint string) {
	switch first, _ := utf8.DecodeRuneInString(rest); {
	case strings.Contains(message, "unexpected end of stream"):
		return "a quoted text is not closed", "add the closing quote; or the file was cut off"
	case strings.TrimSpace(rest) == "" && strings.HasPrefix(message, "did not find expected") && !strings.Contains(message, "alphabetic"):
		return "the file ends too early", "a bracket or a brace is not closed, or the file was cut off"
	case strings.Contains(message, "tab character") || strings.Contains(message, "cannot start any token") && first == '\t':
		return "a tab cannot indent", "indent with spaces"
	case strings.Contains(message, "cannot start any token"):
		return fmt.Sprintf("text cannot begin with %q", string(first)), "quote the text"
	case message == "did not find expected node content":
		return fmt.Sprintf("a value is missing before %q", string(first)), "a comma or a colon too many?"
	}
	for _, w := range wordings() {
		if strings.HasPrefix(message, w.parser) {
			return w.plain, w.hint
		}
	}
	return message, ""
}

// wording is a message of the parser and what to say instead.
type wording struct{ parser, plain, hint string }

func wordings() []wording {
	return []wording{
		{"did not find expected <document start>", "text after the end of the document", "remove it; is there a closing bracket or brace too many?"},
		{"did not find expected ',' or '}'", "expected , or }", "a comma or a closing brace is missing before this place"},
		{"did not find expected ',' or ']'", "expected , or ]", "a comma or a closing bracket is missing before this place"},
		{"did not find expected key", "expected a field, as in name: value", "check the indentation, and the quotes and brackets before this place"},
		{"did not find expected '-' indicator", "expected a list item, as in - value", "indent the fields of one item alike"},
		{"did not find expected alphabetic or numeric character", "text cannot begin with * or &", "quote the text"},
		{"did not find expected comment or line break", "text after | or > on the same line", "begin it on the next line"},
		{"mapping values are not allowed", `unexpected ": "`, `quote text that holds ": ", and indent the fields of one map alike`},
		{"found unknown escape character", "unknown escape in a quoted text", `write \\ for a backslash, or use single quotes`},
	}
}

// maxQuoted bounds how much of a value a message cites, in characters.
const maxQuoted = 40

// Short cuts a text to what a message may cite: the value that is wrong can be a whole
// file, and somebody else's.
func Short(s string) string {
	n := 0
	for i := range s {
		if n == maxQuoted {
			return s[:i] + "..."
		}
		n++
	}
	return s
}
