package decision

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Batcher is implemented by backends that can decide many requests at once, column by
// column. The answers are those of Decide, save that parameters are left out.
type Batcher interface {
	DecideBatch(ctx context.Context, in *Batch, out *Answers) error
}

// Batch is the attributes of many requests with one schema and one question each, column
// by column. Each distinct text is held once, so that what depends on a text alone is
// worked out once for all rows that have it.
type Batch struct {
	schema *Schema
	cols   []Column
	now    []time.Time
	intern []map[string]uint32
	// features holds the vectors of the rows that have one, one after the other; vectors
	// says which, and is nil when no row has.
	features []float32
	vectors  []vector
}

// vector is a row's part of the features.
type vector struct {
	set      string
	from, to int
}

// Column is the values of one attribute. Of Ints, Doubles and Codes one is used: ints and
// bools (0 or 1) are in Ints, doubles in Doubles, texts in Codes.
type Column struct {
	Type Type
	// Absent marks the rows without a value; nil when every row has one.
	Absent  []bool
	Ints    []int64
	Doubles []float64
	// Codes are places in Texts.
	Codes []uint32
	Texts []string
}

// NewBatch returns an empty batch over a schema.
func NewBatch(schema *Schema) *Batch {
	b := &Batch{schema: schema, cols: make([]Column, schema.Len()), intern: make([]map[string]uint32, schema.Len())}
	for i, f := range schema.Fields() {
		b.cols[i].Type = f.Type
		if f.Type == String {
			b.intern[i] = map[string]uint32{}
		}
	}
	return b
}

// Append adds a row. The values must stand in the order of the batch's schema, each of its
// field's type or null; anything else is an error, and the row is not added. Texts are
// copied. now is the request's clock, or zero.
func (b *Batch) Append(values []Value, now time.Time) error {
	for i, v := range values {
		if i >= len(b.cols) || v.Type() != Null && v.Type() != b.cols[i].Type {
			return fmt.Errorf("value %d is %v, which the schema does not have there", i, v.Type())
		}
	}
	for i := range b.cols {
		v := Value{}
		if i < len(values) {
			v = values[i]
		}
		b.put(i, v)
	}
	b.now = append(b.now, now)
	return nil
}

// SetFeatures gives the row that was appended last its feature vector, which is copied.
func (b *Batch) SetFeatures(set string, v []float32) {
	for len(b.vectors) < len(b.now) {
		b.vectors = append(b.vectors, vector{})
	}
	if n := len(b.now); n > 0 {
		b.vectors[n-1] = vector{set, len(b.features), len(b.features) + len(v)}
		b.features = append(b.features, v...)
	}
}

// Features returns a row's feature vector and the name of its schema; nil when it has none.
func (b *Batch) Features(row int) (set string, v []float32) {
	if row >= len(b.vectors) || b.vectors[row].from == b.vectors[row].to {
		return "", nil
	}
	x := b.vectors[row]
	return x.set, b.features[x.from:x.to:x.to]
}

func (b *Batch) put(i int, v Value) {
	c := &b.cols[i]
	if absent := v.IsNull(); absent || c.Absent != nil {
		for len(c.Absent) < len(b.now) {
			c.Absent = append(c.Absent, false)
		}
		c.Absent = append(c.Absent, absent)
	}
	switch c.Type {
	case Double:
		c.Doubles = append(c.Doubles, v.Double())
	case String:
		c.Codes = append(c.Codes, b.code(i, v.Str()))
	case Bool:
		n := int64(0)
		if v.Bool() {
			n = 1
		}
		c.Ints = append(c.Ints, n)
	default:
		c.Ints = append(c.Ints, v.Int())
	}
}

func (b *Batch) code(i int, text string) uint32 {
	if code, ok := b.intern[i][text]; ok {
		return code
	}
	c := &b.cols[i]
	code, text := uint32(len(c.Texts)), strings.Clone(text)
	c.Texts = append(c.Texts, text)
	b.intern[i][text] = code
	return code
}

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.now) }

// Schema returns the attributes.
func (b *Batch) Schema() *Schema { return b.schema }

// Column returns the column of a position of the schema; it must not be changed.
func (b *Batch) Column(i int) *Column { return &b.cols[i] }

// Now returns the clock of a row, zero when it has none.
func (b *Batch) Now(row int) time.Time { return b.now[row] }

// Value returns one value, null when it is absent.
func (c *Column) Value(row int) Value {
	switch {
	case c.Absent != nil && c.Absent[row]:
		return Value{}
	case c.Type == Double:
		return DoubleValue(c.Doubles[row])
	case c.Type == String:
		return StringValue(c.Texts[c.Codes[row]])
	case c.Type == Bool:
		return BoolValue(c.Ints[row] != 0)
	}
	return IntValue(c.Ints[row])
}

// Answers are the answers to a batch, row by row. The caller owns them and reuses them.
type Answers struct {
	Rows []Answer
	// Actions and Rules are what the rows refer to.
	Actions, Rules []string
}

// Answer is the answer for one row.
type Answer struct {
	Status Status
	Kind   ReasonKind
	// Skipped is Reason.Skipped.
	Skipped uint16
	// Action and Rule are places in Answers.Actions and Rules; -1 is none.
	Action, Rule int32
}

// Reset empties the answers for n rows, none of which has an answer, and keeps their
// memory.
func (a *Answers) Reset(n int) {
	if cap(a.Rows) < n {
		a.Rows = make([]Answer, n)
	}
	a.Rows = a.Rows[:n]
	for i := range a.Rows {
		a.Rows[i] = Answer{Action: -1, Rule: -1}
	}
	a.Actions, a.Rules = a.Actions[:0], a.Rules[:0]
}

// At returns the answer for a row, without parameters.
func (a *Answers) At(row int) Decision {
	r := a.Rows[row]
	d := Decision{Status: r.Status, Reason: Reason{Kind: r.Kind, Skipped: r.Skipped}}
	if r.Action >= 0 {
		d.Action = a.Actions[r.Action]
	}
	if r.Rule >= 0 {
		d.Reason.Rule = a.Rules[r.Rule]
	}
	return d
}
