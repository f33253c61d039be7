// Package document reads YAML and JSON files strictly and with positions: unknown and
// repeated fields, second documents, tags (an unquoted `!has(x)`), and values of the
// wrong type are problems that carry file:line:col, and all problems of a file are
// reported at once.
//
// Steps: [Parse] the bytes, walk the tree with [Node.Map], [Node.List] and the typed
// readers ([Node.String], [Node.Float], ...), which add to the file's [Problems]
// instead of stopping; at the end, ask [File.Err].
//
// It builds on go.yaml.in/yaml/v4's Node, because decoding into structs loses
// positions, accepts 15.7 for an int, and drops tags (all measured). JSON files are
// read by the same parser: JSON is YAML but for a few corner cases that clefbench
// files do not use. It does not know any file kind; each engine walks its own.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/clefbench/clefbench/decision"
)

// MaxSize bounds a file: 8 MiB.
const MaxSize = 8 << 20

// MaxDepth bounds nesting.
const MaxDepth = 100

// Severity tells an error from a warning.
type Severity uint8

// The severities.
const (
	SevError Severity = iota
	SevWarning
)

// Problem is one finding in a file.
type Problem struct {
	Pos      decision.Position
	Severity Severity
	Message  string
	// Hint says what to do; may be empty.
	Hint string
}

// Error returns "file:line:col: message"; the hint is left to the caller.
func (p *Problem) Error() string { return p.Pos.String() + ": " + p.Message }

// Problems is a list of findings; as an error it holds at least one of severity error.
type Problems []*Problem

// Error joins the errors, one a line.
func (ps Problems) Error() string {
	var b strings.Builder
	for _, p := range ps {
		if p.Severity != SevError {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Error())
	}
	return b.String()
}

// Hint returns the first hint of an error, for printing below the message.
func (ps Problems) Hint() string {
	for _, p := range ps {
		if p.Severity == SevError && p.Hint != "" {
			return p.Hint
		}
	}
	return ""
}

// Errors counts the findings of severity error.
func (ps Problems) Errors() int {
	n := 0
	for _, p := range ps {
		if p.Severity == SevError {
			n++
		}
	}
	return n
}

// Sort orders the findings by position.
func (ps Problems) Sort() {
	sort.SliceStable(ps, func(i, j int) bool {
		a, b := ps[i].Pos, ps[j].Pos
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}

// File collects the problems of one file.
type File struct {
	Name     string
	Problems Problems
}

// Errorf adds an error at a position.
func (f *File) Errorf(pos decision.Position, hint, format string, args ...any) {
	f.add(SevError, pos, hint, fmt.Sprintf(format, args...))
}

// Warnf adds a warning at a position.
func (f *File) Warnf(pos decision.Position, hint, format string, args ...any) {
	f.add(SevWarning, pos, hint, fmt.Sprintf(format, args...))
}

// add keeps a message on one line, whatever values it cites: findings are read by line.
func (f *File) add(s Severity, pos decision.Position, hint, message string) {
	message = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(message)
	f.Problems = append(f.Problems, &Problem{Pos: pos, Severity: s, Message: message, Hint: hint})
}

// Err returns the problems as an error, ordered by position, or nil when none of them
// is an error.
func (f *File) Err() error {
	if f.Problems.Errors() == 0 {
		return nil
	}
	f.Problems.Sort()
	return f.Problems
}

// Node is one value of a parsed file.
type Node struct {
	file *File
	y    *yaml.Node
	path string
}

// Parse reads one YAML or JSON document. The name stands in positions. The error is a
// [Problems]; limits are [MaxSize] and [MaxDepth].
func Parse(name string, data []byte) (*File, *Node, error) {
	f := &File{Name: name}
	if len(data) > MaxSize {
		f.Errorf(decision.Position{File: name}, "split the file", "file has %d bytes, the limit is %d", len(data), MaxSize)
		return f, nil, f.Err()
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	if err := decode(dec, &root); err != nil {
		f.syntax(data, err)
		return f, nil, f.Err()
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
		f.Errorf(decision.Position{File: name, Line: 1, Column: 1}, "is it the right file, and was it saved?", "file is empty")
		return f, nil, f.Err()
	}
	if err := decode(dec, &second); !errors.Is(err, io.EOF) {
		if err != nil {
			f.syntax(data, err)
		} else {
			f.Errorf(f.at(&second), "put it into a file of its own", "a second document in the file")
		}
		return f, nil, f.Err()
	}
	n := &Node{file: f, y: root.Content[0]}
	f.checkTree(n.y, 0)
	return f, n, f.Err()
}

// decode guards against panics of the parser: input is untrusted.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	return dec.Decode(n)
}

func (f *File) at(y *yaml.Node) decision.Position {
	return decision.Position{File: f.Name, Line: y.Line, Column: y.Column}
}
