package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// ErrExportFormat reports a name that is no [ExportFormat].
var ErrExportFormat = errors.New("unknown export format")

// ExportFormat is how [Dataset.Export] writes rows.
type ExportFormat string

// The export formats: one JSON object a line, or comma-separated values (RFC 4180).
const (
	ExportJSONL ExportFormat = "jsonl"
	ExportCSV   ExportFormat = "csv"
)

// ParseExportFormat reads jsonl or csv; the error wraps [ErrExportFormat].
func ParseExportFormat(s string) (ExportFormat, error) {
	switch f := ExportFormat(s); f {
	case ExportJSONL, ExportCSV:
		return f, nil
	}
	return "", fmt.Errorf("%w %q", ErrExportFormat, s)
}

// Export writes the selected rows in the order of their Ref, each with every column that
// a snapshot has and its label, and returns how many it wrote. docs/formats/export.md
// describes both formats. No more than one segment is in memory at a time. Where nothing
// is selected, nothing is written and the error wraps [ErrEmpty].
func (d *Dataset) Export(w io.Writer, to ExportFormat, f Filter) (int64, error) {
	if _, err := ParseExportFormat(string(to)); err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	e := &exporter{w: out, columns: exportColumns(d.schema)}
	write := e.object
	if to == ExportCSV {
		write = e.record
	}
	n := int64(0)
	for p, err := range d.labelled(f) {
		if err != nil {
			return n, errors.Join(err, out.Flush())
		}
		if n == 0 && to == ExportCSV {
			e.header()
		}
		write(&p)
		n++
		if err := e.emit(); err != nil {
			return n, err
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: no snapshot of scenario %q", ErrEmpty, f.Scenarios)
	}
	return n, out.Flush()
}

// labelled yields the selected rows with their labels, and with the attributes of the
// data set's schema.
func (d *Dataset) labelled(f Filter) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		var values []decision.Value
		for i := range d.segments {
			s := &d.segments[i]
			at := positions(s.schema, d.schema)
			for p, err := range s.pairs() {
				if err != nil {
					yield(pair{}, err)
					return
				}
				if !f.holds(p.row.Scenario) {
					continue
				}
				// A copy of the row: the reader's own keeps its attributes.
				row := *p.row
				values = widen(values[:0], row.Attrs, at, d.schema.Len())
				row.Attrs = decision.Attrs{Schema: d.schema, Values: values}
				if !yield(pair{&row, p.label}, nil) {
					return
				}
			}
		}
	}
}

// exporter turns rows into lines, in buffers that it reuses.
type exporter struct {
	w       *bufio.Writer
	columns []exportColumn
	line    []byte
	cell    []byte
}

// emit writes the line that was built.
func (e *exporter) emit() error {
	_, err := e.w.Write(e.line)
	e.line = e.line[:0]
	return err
}

// object builds a JSON line. Null is left out; columns of one group stand in an object of
// their own, which is left out when it is empty.
func (e *exporter) object(p *pair) {
	e.line = append(e.line, '{')
	open := "" // the group whose object is open
	for i := range e.columns {
		c := &e.columns[i]
		var k cellKind
		if e.cell, k = c.value(e.cell[:0], p); k == cellNull {
			continue
		}
		if c.group != open {
			if open != "" {
				e.line = append(e.line, '}')
			}
			if open = c.group; open != "" {
				e.key(open)
				e.line = append(e.line, '{')
			}
		}
		e.key(c.name)
		if k == cellText {
			e.line = appendJSONText(e.line, e.cell)
		} else {
			e.line = append(e.line, e.cell...)
		}
	}
	if open != "" {
		e.line = append(e.line, '}')
	}
	e.line = append(e.line, "}\n"...)
}

// key appends a member's name, after a comma where one is due.
func (e *exporter) key(name string) {
	if e.line[len(e.line)-1] != '{' {
		e.line = append(e.line, ',')
	}
	e.line = appendJSONText(e.line, []byte(name))
	e.line = append(e.line, ':')
}

// header builds the CSV line of column names.
func (e *exporter) header() {
	for i := range e.columns {
		e.comma(i)
		e.line = appendCSV(e.line, []byte(e.columns[i].path()))
	}
	e.line = append(e.line, "\r\n"...)
}

// record builds a CSV line. Null is an empty cell, empty text is a quoted one.
func (e *exporter) record(p *pair) {
	for i := range e.columns {
		e.comma(i)
		var k cellKind
		if e.cell, k = e.columns[i].value(e.cell[:0], p); k != cellNull {
			e.line = appendCSV(e.line, e.cell)
		}
	}
	e.line = append(e.line, "\r\n"...)
}

func (e *exporter) comma(i int) {
	if i > 0 {
		e.line = append(e.line, ',')
	}
}

// appendCSV quotes a cell where RFC 4180 asks for it, and where a reader might take it
// for null or cut spaces off.
func appendCSV(dst, cell []byte) []byte {
	text := string(cell)
	if text != "" && !strings.ContainsAny(text, "\",\r\n") && text[0] != ' ' && text[len(text)-1] != ' ' {
		return append(dst, cell...)
	}
	dst = append(dst, '"')
	for _, b := range cell {
		if b == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}

// appendJSONText writes a JSON string and escapes no more than it must: encoding/json
// would write <, > and & as numbers, which nobody reads by eye.
func appendJSONText(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, b := range text {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b == '\r':
			dst = append(dst, '\\', 'r')
		case b == '\t':
			dst = append(dst, '\\', 't')
		case b < 0x20 || b == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
