package flash

import (
	"errors"
	"fmt"
	"math"
)

// Limits of the format.
const (
	// MaxSize bounds a .cfb file.
	MaxSize = 64 << 10
	// maxCells cannot be reached within MaxSize, and keeps products from overflowing.
	maxCells = 64 << 10
	maxDims  = 16
	// maxText bounds each name, value and parameter text.
	maxText = 4 << 10
	// maxNames bounds the text of all cell names together, which a Table holds in memory
	// so that a decision can name its cell without allocating.
	maxNames = 4 << 20
)

// noDigit marks a bin that no value is assigned to, and an absent fallback.
const noDigit = math.MaxUint16

// sourceKind says how a dimension turns an attribute into a value.
type sourceKind uint8

const (
	kindText sourceKind = iota
	kindRanges
	kindDevice
	kindPresent
	kindCount
)

// dimension is one axis of the table. Values are counted in the listed order; a digit
// is such a count.
type dimension struct {
	name, from string
	kind       sourceKind
	values     []string
	// missing is the digit for an absent, null or NaN attribute, other for a value that
	// nothing else takes; noDigit when the matrix does not assign them.
	missing, other uint16
	// texts map text (or a class) to a digit; spans are sorted and do not overlap.
	texts []textKey
	spans []span
}

type textKey struct {
	text  string
	digit uint16
}

// span is the range [lo,hi); hi is +Inf in the last one when it is open, which then holds
// +Inf as well.
type span struct {
	lo, hi float64
	digit  uint16
}

type action struct {
	id            int64
	label, params string
}

// content is what a .cfb file holds.
type content struct {
	version string
	// source is the base name of the matrix file, and digest the SHA-256 of its bytes.
	source       string
	digest       [32]byte
	scenarios    []string
	dims         []dimension
	actions      []action
	fallback     uint16
	fallbackLine int
	// cells holds an index into actions for each key, the first dimension outermost;
	// lines holds, for each row of the last dimension, its line in the matrix file.
	cells []uint16
	lines []int
}

// size returns the number of cells, or an error when there are too many.
func (c *content) size() (int, error) {
	n := 1
	for _, d := range c.dims {
		n *= len(d.values)
		if n > maxCells {
			return 0, fmt.Errorf("the dimensions have more than %d cells", maxCells)
		}
	}
	return n, nil
}

// rows returns the number of rows of the last dimension.
func (c *content) rows() int {
	return len(c.cells) / len(c.dims[len(c.dims)-1].values)
}

// nameBytes is the memory that the names of all cells take.
func (c *content) nameBytes() int {
	cells, sum := len(c.cells), len(c.cells)*(len(c.dims)-1)
	for _, d := range c.dims {
		for _, v := range d.values {
			sum += cells / len(d.values) * len(v)
		}
	}
	return sum
}

// validate holds what the reader of a file must not rely on, and what the compiler has
// said with positions before.
func (c *content) validate() error {
	switch {
	case len(c.dims) == 0 || len(c.dims) > maxDims:
		return fmt.Errorf("%d dimensions, want 1 to %d", len(c.dims), maxDims)
	case len(c.actions) == 0:
		return errors.New("no actions")
	case c.fallback != noDigit && int(c.fallback) >= len(c.actions):
		return fmt.Errorf("fallback action %d of %d", c.fallback, len(c.actions))
	}
	for i := range c.dims {
		if err := c.dims[i].validate(); err != nil {
			return fmt.Errorf("dimension %d: %w", i, err)
		}
	}
	for i, a := range c.actions {
		if a.label == "" {
			return fmt.Errorf("action %d has no label", i)
		}
	}
	return c.validateCells()
}

func (c *content) validateCells() error {
	n, err := c.size()
	switch {
	case err != nil:
		return err
	case n != len(c.cells):
		return fmt.Errorf("%d cells, the dimensions have %d", len(c.cells), n)
	case len(c.lines) != c.rows():
		return fmt.Errorf("%d lines for %d rows", len(c.lines), c.rows())
	case c.nameBytes() > maxNames:
		return fmt.Errorf("the names of all cells take %d bytes, the limit is %d", c.nameBytes(), maxNames)
	}
	for i, a := range c.cells {
		if int(a) >= len(c.actions) {
			return fmt.Errorf("cell %d has action %d of %d", i, a, len(c.actions))
		}
	}
	return nil
}

func (d *dimension) validate() error {
	if d.name == "" || d.from == "" || len(d.values) == 0 || d.kind >= kindCount {
		return fmt.Errorf("name %q, attribute %q, %d values, kind %d", d.name, d.from, len(d.values), d.kind)
	}
	digits := []uint16{}
	for _, b := range []uint16{d.missing, d.other} {
		if b != noDigit {
			digits = append(digits, b)
		}
	}
	for _, t := range d.texts {
		digits = append(digits, t.digit)
	}
	last := math.Inf(-1)
	for i, s := range d.spans {
		if !(s.lo < s.hi) || i > 0 && s.lo < last {
			return fmt.Errorf("range %d [%v,%v) is empty or out of order", i, s.lo, s.hi)
		}
		last = s.hi
		digits = append(digits, s.digit)
	}
	for _, x := range digits {
		if int(x) >= len(d.values) {
			return fmt.Errorf("value %d of %d", x, len(d.values))
		}
	}
	return nil
}
