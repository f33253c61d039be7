package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

// MaxJSON bounds a report that [ReadJSON] reads: 64 MiB.
const MaxJSON = 64 << 20

// ErrScoreVersion reports a report whose formulas this build does not know.
var ErrScoreVersion = errors.New("unknown score version")

// ErrReport reports text that is not a report: it cannot be parsed, lacks a field, or
// says something twice.
var ErrReport = errors.New("not a report")

// JSON writes the scorecard as the machine contract of docs/formats/report.md. Lists and
// maps that the contract names are never null.
func JSON(w io.Writer, card *scoring.Scorecard, _ Options) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(filled(card)); err != nil {
		return fmt.Errorf("json report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("json report: %w", err)
	}
	return nil
}

// filled is a copy whose lists and maps are not nil, so that no reader needs to ask.
func filled(card *scoring.Scorecard) *scoring.Scorecard {
	c := *card
	c.Backends = append([]scoring.BackendScore{}, c.Backends...)
	for i := range c.Backends {
		if c.Backends[i].Scenarios == nil {
			c.Backends[i].Scenarios = map[string]scoring.ScenarioScore{}
		}
	}
	c.Pairs = append([]scoring.Pair{}, c.Pairs...)
	c.Ties = append([][]string{}, c.Ties...)
	for i := range c.Ties {
		c.Ties[i] = append([]string{}, c.Ties[i]...)
	}
	c.Warnings = append([]scoring.Warning{}, c.Warnings...)
	c.Dataset.Ledger = c.Dataset.Ledger.Clone()
	if c.Dataset.Ledger.Dropped == nil {
		c.Dataset.Ledger.Dropped = map[string]uint64{}
	}
	if q := c.Dataset.Ledger.Requests; q != nil && q.Dropped == nil {
		q.Dropped = map[string]uint64{}
	}
	return &c
}

// ReadJSON reads what [JSON] wrote, bit for bit: null numbers are NaN again. Fields that
// it does not know are left out, since newer reports may have more; a field that is
// missing, a name that stands twice or text after the report is an error that wraps
// [ErrReport], since a published report is evidence. A report of another score version is
// [ErrScoreVersion].
func ReadJSON(r io.Reader) (*scoring.Scorecard, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxJSON+1))
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if len(data) > MaxJSON {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrReport, MaxJSON)
	}
	if err := checkVersion(data); err != nil {
		return nil, err
	}
	have, err := shapeOf(data)
	if err != nil {
		return nil, err
	}
	card := &scoring.Scorecard{}
	if err := json.Unmarshal(data, card); err != nil {
		return nil, badReport(data, err)
	}
	return card, checkComplete(card, have)
}

// checkVersion comes first: the fields of another version may well differ.
func checkVersion(data []byte) error {
	var head struct {
		Version *string `json:"score_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return badReport(data, err)
	}
	if head.Version == nil {
		return fmt.Errorf("%w: score_version is missing", ErrReport)
	}
	if *head.Version != scoring.Version {
		return fmt.Errorf("%w %q: this build knows %q", ErrScoreVersion, *head.Version, scoring.Version)
	}
	return nil
}

// badReport puts line and column before a decoder's message.
func badReport(data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typ):
		offset = typ.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return fmt.Errorf("%w: %w", ErrReport, err)
	}
	line, col := position(data, offset)
	return fmt.Errorf("%d:%d: %w: %w", line, col, ErrReport, err)
}

// position is the line and column of the byte before an offset, both from 1.
func position(data []byte, offset int64) (line, col int) {
	before := data[:max(offset-1, 0)]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// checkComplete finds what the report should have and has not: decoding silently made
// it 0. Writing the card again shows what that is.
func checkComplete(card *scoring.Scorecard, have *shape) error {
	full, err := json.Marshal(card)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReport, err)
	}
	want, err := shapeOf(full)
	if err != nil {
		return err
	}
	if path := want.missing(have); path != "" {
		return fmt.Errorf("%w: %s is missing or null", ErrReport, path[1:])
	}
	return nil
}

// shape is a JSON value without its scalars.
type shape struct {
	null    bool
	members map[string]*shape
	items   []*shape
}

// maxNesting bounds the depth of a report; a card has ten levels.
const maxNesting = 100

// shapeOf reads the shape of a JSON text that was found to be valid. A name that stands
// twice in an object is an error: readers differ in which of the two they take.
func shapeOf(data []byte) (*shape, error) {
	r := shapeReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data}
	r.dec.UseNumber()
	return r.value(0)
}

type shapeReader struct {
	dec  *json.Decoder
	data []byte
}

func (r *shapeReader) errorf(format string, args ...any) error {
	line, col := position(r.data, r.dec.InputOffset())
	return fmt.Errorf("%d:%d: %w: %w", line, col, ErrReport, fmt.Errorf(format, args...))
}

func (r *shapeReader) value(depth int) (*shape, error) {
	tok, err := r.dec.Token()
	if err != nil {
		return nil, badReport(r.data, err)
	}
	if depth > maxNesting {
		return nil, r.errorf("nested more than %d levels deep", maxNesting)
	}
	switch tok {
	case json.Delim('{'):
		return r.object(depth)
	case json.Delim('['):
		return r.list(depth)
	}
	return &shape{null: tok == nil}, nil
}

func (r *shapeReader) object(depth int) (*shape, error) {
	s := &shape{members: map[string]*shape{}}
	for r.dec.More() {
		tok, err := r.dec.Token()
		if err != nil {
			return nil, badReport(r.data, err)
		}
		name, ok := tok.(string)
		if !ok {
			return nil, r.errorf("a name is expected")
		}
		if s.members[name] != nil {
			return nil, r.errorf("%q stands twice", name)
		}
		if s.members[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := r.dec.Token()
	return s, err
}

func (r *shapeReader) list(depth int) (*shape, error) {
	s := &shape{}
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		s.items = append(s.items, item)
	}
	_, err := r.dec.Token()
	return s, err
}

// missing is the path of the first member of s that have lacks, "" if none.
func (s *shape) missing(have *shape) string {
	if have == nil || have.null && !s.null {
		return "/"
	}
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		if p := s.members[name].missing(have.members[name]); p != "" {
			return "/" + name + strings.TrimSuffix(p, "/")
		}
	}
	for i, item := range s.items {
		if i >= len(have.items) {
			return "/" + strconv.Itoa(i)
		}
		if p := item.missing(have.items[i]); p != "" {
			return "/" + strconv.Itoa(i) + strings.TrimSuffix(p, "/")
		}
	}
	return ""
}
