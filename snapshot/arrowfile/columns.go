package arrowfile

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// column gathers one column of a batch: its slices are the Arrow buffers. A null costs
// nothing when it comes: the next value, or the end of the batch, fills the gap. Most
// columns of most rows are null.
type column struct {
	shape
	path     string
	children []*column
	dict     *interner
	// mended collects the paths of the values of the current row in which invalid UTF-8
	// was replaced; it is shared by all columns.
	mended *[]string

	// rows is the number of the current row, or of the current element of a list; slots are
	// filled up to n. items counts the elements of a list's children.
	rows            *int
	n, nulls, items int
	// valid is left empty while there is no null: such a bitmap is not written.
	valid, offsets, data []byte
	// overflowed: the column gave up its dictionary while rows were added.
	overflowed bool
	// elem puts one element of a list.
	elem program
	// unmatched is the number of batches for which no matches are looked for: see
	// encoder.numbers.
	unmatched int
}

// newColumn makes the column of a shape, in a set that shares interners by name and knows
// which columns gave up their dictionary.
func newColumn(s *shape, prefix string, b *columnSet, rows *int) *column {
	c := &column{shape: *s, path: prefix + s.name, mended: &b.mended, rows: rows}
	if s.typ == typeList {
		rows = &c.items
	}
	c.shape.children = nil
	if s.dict != noDict {
		c.dict = b.interner(s.name)
		if c.dict == nil {
			c.shape.dict = noDict
		}
	}
	for _, k := range s.children {
		c.children = append(c.children, newColumn(k, c.path+".", b, rows))
	}
	c.reset()
	return c
}

func (c *column) reset() {
	c.n, c.nulls, c.items = 0, 0, 0
	c.valid, c.data = c.valid[:0], c.data[:0]
	c.offsets = append(c.offsets[:0], 0, 0, 0, 0)
	for _, k := range c.children {
		k.reset()
	}
}

// hasOffsets: the type is of variable length.
func (c *column) hasOffsets() bool {
	return c.typ == typeList || (c.dict == nil && (c.typ == typeUTF8 || c.typ == typeBinary))
}

// end is the running end of the values, for the offsets.
func (c *column) end() int {
	if c.typ == typeList {
		return c.items
	}
	return len(c.data)
}

// slotWidth is the width of a value in data, 0 when values have none of their own.
func (c *column) slotWidth() int {
	if c.dict != nil {
		return 2
	}
	return c.width
}

// fill appends k nulls.
func (c *column) fill(k int) {
	if c.nullable {
		c.allValid()
		c.valid = growBits(c.valid, c.n+k)
	}
	c.n, c.nulls = c.n+k, c.nulls+k
	switch {
	case c.hasOffsets():
		for range k {
			c.close()
		}
	case c.typ == typeBool:
		c.data = growBits(c.data, c.n)
	default:
		c.data = append(c.data, make([]byte, k*c.slotWidth())...)
	}
}

// allValid makes the bitmap of a column that had no null until now.
func (c *column) allValid() {
	if c.nulls > 0 {
		return
	}
	c.valid = c.valid[:0]
	for len(c.valid)*8 < c.n {
		c.valid = append(c.valid, 0xff)
	}
	if rest := c.n & 7; rest > 0 {
		c.valid[c.n>>3] = 1<<rest - 1
	}
}

func growBits(b []byte, n int) []byte {
	for len(b)*8 < n {
		b = append(b, 0)
	}
	return b
}

// begin starts the value of the current row; the caller appends it to data, or to the
// children, and calls close when it has offsets.
func (c *column) begin() {
	if c.n != *c.rows || c.nulls > 0 {
		c.catchUp()
	}
	c.n++
}

// catchUp fills the gap before a value and sets its bit.
func (c *column) catchUp() {
	if gap := *c.rows - c.n; gap > 0 {
		c.fill(gap)
	}
	if c.nulls == 0 || !c.nullable {
		return
	}
	if c.n&7 == 0 {
		c.valid = append(c.valid, 0)
	}
	c.valid[c.n>>3] |= 1 << (c.n & 7)
}

// close ends a value of variable length.
func (c *column) close() {
	c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(c.end()))
}

func (c *column) bit(v bool) {
	c.begin()
	c.data = growBits(c.data, c.n)
	if i := c.n - 1; v {
		c.data[i>>3] |= 1 << (i & 7)
	}
}

func (c *column) u8(v uint8)   { c.begin(); c.data = append(c.data, v) }
func (c *column) u16(v uint16) { c.begin(); c.data = binary.LittleEndian.AppendUint16(c.data, v) }
func (c *column) u32(v uint32) { c.begin(); c.data = binary.LittleEndian.AppendUint32(c.data, v) }
func (c *column) u64(v uint64) { c.begin(); c.data = binary.LittleEndian.AppendUint64(c.data, v) }

func (c *column) f64(v float64) { c.u64(math.Float64bits(v)) }

func (c *column) fixed(v []byte) { c.begin(); c.data = append(c.data, v...) }

func (c *column) bytes(v []byte) {
	c.begin()
	c.data = append(c.data, v...)
	c.close()
}

// text appends a string, the empty one included.
func (c *column) text(s string) {
	if !utf8.ValidString(s) {
		s = mend(s)
		*c.mended = append(*c.mended, c.path)
	}
	c.begin()
	c.data = append(c.data, s...)
	c.close()
}

// label appends a label that is not empty, as a code while the column has a dictionary.
func (c *column) label(s string) {
	if c.dict == nil {
		c.text(s)
		return
	}
	code, mended, ok := c.dict.lookup(s)
	if !ok {
		c.expand()
		c.overflowed = true
		c.text(s)
		return
	}
	if mended {
		*c.mended = append(*c.mended, c.path)
	}
	c.u16(uint16(code))
}

// expand turns a column of codes into plain utf8 under the same name, the rows of the
// pending batch included.
func (c *column) expand() {
	codes, d := c.data, c.dict
	c.dict, c.shape.dict = nil, noDict
	c.data, c.offsets = nil, append(c.offsets[:0], 0, 0, 0, 0)
	for i := range c.n {
		if c.nulls == 0 || !c.nullable || c.valid[i>>3]&(1<<(i&7)) != 0 {
			c.data = append(c.data, d.values[binary.LittleEndian.Uint16(codes[2*i:])]...)
		}
		c.close()
	}
}

// settle fills up the nulls and the bitmap at the end of the batch.
func (c *column) settle() {
	if gap := *c.rows - c.n; gap > 0 {
		c.fill(gap)
	}
	if c.nullable {
		c.allValid()
	}
	for _, k := range c.children {
		k.settle()
	}
}

// columnSet is the columns of one batch, and what they share.
type columnSet struct {
	columns []*column
	dicts   map[string]*interner
	// plain names the label columns that are plain utf8.
	plain  map[string]bool
	seed   map[string][]string
	mended []string
	n      int
}

func (b *columnSet) interner(name string) *interner {
	if b.plain[name] {
		return nil
	}
	d := b.dicts[name]
	if d == nil {
		d = newInterner(b.seed[name])
		b.dicts[name] = d
	}
	return d
}

// rebuild makes the columns of the shapes; interners and fall-backs stay.
func (b *columnSet) rebuild(shapes []*shape) {
	b.columns = b.columns[:0]
	for _, s := range shapes {
		b.columns = append(b.columns, newColumn(s, "", b, &b.n))
	}
	b.reset()
}

func (b *columnSet) reset() {
	b.n = 0
	for _, c := range b.columns {
		c.reset()
	}
}

// walk calls f for every column, depth first.
func walk(columns []*column, f func(*column)) {
	for _, c := range columns {
		f(c)
		walk(c.children, f)
	}
}

// openEnded are the label columns that fall back together: remote dialects choose among
// any number of options.
func openEnded(name string) bool { return name == "action" || name == "question" }

// fallBack gives up the dictionaries of columns of a name, and of all open-ended ones
// when it is one of them.
func (b *columnSet) fallBack(name string) {
	b.plain[name] = true
	if openEnded(name) {
		b.plain["action"], b.plain["question"] = true, true
	}
	walk(b.columns, func(c *column) {
		if c.dict != nil && b.plain[c.name] {
			c.expand()
		}
	})
}

// spread lets columns that overflowed while rows were added take along those of their
// group.
func (b *columnSet) spread() {
	var over []string
	walk(b.columns, func(c *column) {
		if c.overflowed && !b.plain[c.name] {
			over = append(over, c.name)
		}
	})
	for _, name := range over {
		b.fallBack(name)
	}
}

// labels returns the number of labels of each dictionary.
func (b *columnSet) labels() map[string]int {
	m := make(map[string]int, len(b.dicts))
	for name, d := range b.dicts {
		if !b.plain[name] {
			m[name] = len(d.values)
		}
	}
	return m
}

// shapes returns the columns' present shapes, dictionaries numbered.
func (b *columnSet) shapes() []*shape {
	out := columnShapes(b.columns)
	numberDicts(out, 0)
	return out
}

func columnShapes(columns []*column) []*shape {
	out := make([]*shape, len(columns))
	for i, c := range columns {
		s := c.shape
		s.children = columnShapes(c.children)
		out[i] = &s
	}
	return out
}
