package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// maxFields bounds the fields of an object that is walked.
const maxFields = 1000

// jsonReader walks a large JSON file without holding a tree of it, and knows where it is.
// Package document reads the small files that people write; it keeps a node of some
// hundred bytes for each number, of which a tree file has a million.
type jsonReader struct {
	name string
	data []byte
	dec  *json.Decoder
}

func newJSONReader(name string, data []byte) *jsonReader {
	data = nanAsText(data)
	return &jsonReader{name, data, json.NewDecoder(bytes.NewReader(data))}
}

// nanAsText puts an empty text where a bare NaN stands, which XGBoost writes as the
// threshold of a split on categories and JSON does not know. The length stays, so that
// positions do; what reads a number refuses the text, save [xgFloat].
func nanAsText(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) {
		return data
	}
	data = bytes.Clone(data)
	for i, quoted := 0, false; i < len(data); i++ {
		switch {
		case data[i] == '"':
			quoted = !quoted
		case quoted && data[i] == '\\':
			i++
		case !quoted && bytes.HasPrefix(data[i:], []byte("NaN")):
			copy(data[i:], `"" `)
			i += 2
		}
	}
	return data
}

// xgFloat is a float32, or NaN.
type xgFloat float32

// UnmarshalJSON reads a number, or the empty text as NaN.
func (f *xgFloat) UnmarshalJSON(b []byte) error {
	if string(b) == `""` {
		*f = xgFloat(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float32)(f))
}

// at turns an offset into a position.
func (r *jsonReader) at(offset int64) decision.Position {
	before := r.data[:min(int(offset), len(r.data))]
	return decision.Position{File: r.name, Line: bytes.Count(before, []byte{'\n'}) + 1, Column: len(before) - bytes.LastIndexByte(before, '\n')}
}

// here is where the next value begins.
func (r *jsonReader) here() int64 {
	i := r.dec.InputOffset()
	for int(i) < len(r.data) && strings.IndexByte(" \t\r\n:,", r.data[i]) >= 0 {
		i++
	}
	return i
}

func (r *jsonReader) errorf(offset int64, hint, format string, args ...any) error {
	return problem(r.at(offset), hint, format, args...)
}

// fail gives an error of the decoder its position; one that has it stays as it is.
func (r *jsonReader) fail(start int64, path string, err error) error {
	var ps document.Problems
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &ps):
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return r.errorf(int64(len(r.data)), "the file may have been cut off", "the file ends too early")
	case errors.As(err, &kind):
		return r.errorf(start, "", "%s: a JSON %s cannot stand here", path, document.Short(kind.Value))
	case errors.As(err, &syntax):
		return r.errorf(max(syntax.Offset-1, 0), "", "%s: %s", path, syntax.Error())
	}
	return r.errorf(start, "", "%s: %s", path, document.Short(err.Error()))
}

// object calls field for each key; field must read the value. What the path is is for
// messages only.
func (r *jsonReader) object(path string, field func(key string) error) error {
	var seen []string
	return r.bracketed(path, '{', "an object", func() error {
		at := r.here()
		token, err := r.dec.Token()
		if err != nil {
			return r.fail(at, path, err)
		}
		key, _ := token.(string) // the decoder lets nothing else be a key
		if slices.Contains(seen, key) {
			return r.errorf(at, "", "%s: field %q stands twice", path, document.Short(key))
		}
		if seen = append(seen, key); len(seen) > maxFields {
			return r.errorf(at, "", "%s: more than %d fields", path, maxFields)
		}
		return field(key)
	})
}

// array calls item for each element; item must read it.
func (r *jsonReader) array(path string, item func() error) error {
	return r.bracketed(path, '[', "a list", item)
}

func (r *jsonReader) bracketed(path string, open json.Delim, what string, item func() error) error {
	at := r.here()
	t, err := r.dec.Token()
	if err != nil {
		return r.fail(at, path, err)
	}
	if t != open {
		return r.errorf(at, "", "%s must be %s", path, what)
	}
	for r.dec.More() {
		if err := item(); err != nil {
			return err
		}
	}
	at = r.here()
	if _, err := r.dec.Token(); err != nil {
		return r.fail(at, path, err)
	}
	return nil
}

// value decodes the next value into v.
func (r *jsonReader) value(path string, v any) error {
	at := r.here()
	err := r.dec.Decode(v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// The decoder counts from somewhere inside of its buffer, Unmarshal from the value.
		if again := json.Unmarshal(r.data[at:], new(json.RawMessage)); errors.As(again, &syntax) {
			err, syntax.Offset = again, syntax.Offset+at
		}
	}
	if err != nil {
		return r.fail(at, path, err)
	}
	return nil
}

// skip passes over the next value.
func (r *jsonReader) skip(path string) error {
	var raw json.RawMessage
	return r.value(path, &raw)
}
