package rules

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

func absent(c *decision.Column, row int) bool { return c.Absent != nil && c.Absent[row] }

// comparison compares a column of doubles with a number.
type comparison struct {
	doubles []float64
	absent  []bool
	number  float64
	op      operator
}

// batchNode is a node bound to columns.
type batchNode struct {
	form form
	kids []batchNode
	leaf *condition
	col  *decision.Column // nil: absent in every row, or computed
	// truths are by code, for a condition on a text: its truth and known, once asked for.
	// Most are never asked for, since the index leaves their rules out.
	truths []uint8
}

// conjunction binds conditions that must all hold, those that are cheapest apart.
func (b *batch) conjunction(nodes []node) conjunction {
	var out conjunction
	for i := range nodes {
		n := &nodes[i]
		if c, ok := b.comparison(n); ok {
			out.numbers = append(out.numbers, c)
		} else {
			out.nodes = append(out.nodes, b.node(n))
		}
	}
	return out
}

func (b *batch) comparison(n *node) (comparison, bool) {
	if n.form != formLeaf || n.leaf.calc != nil || n.leaf.op > opLe {
		return comparison{}, false
	}
	number, ok := n.leaf.value.Number() // an int is compared as the double nearest to it
	col := b.cols[n.leaf.attr.Slot]
	if !ok || col == nil || col.Type != decision.Double {
		return comparison{}, false
	}
	return comparison{col.Doubles, col.Absent, number, n.leaf.op}, true
}

func (b *batch) node(n *node) batchNode {
	out := batchNode{form: n.form, leaf: n.leaf}
	for i := range n.kids {
		out.kids = append(out.kids, b.node(&n.kids[i]))
	}
	if n.form == formLeaf && n.leaf.calc == nil {
		out.col = b.cols[n.leaf.attr.Slot]
	}
	return out
}

// all is allOf on columns.
func (b *batch) all(c *conjunction, row int) expr.Truth {
	out := expr.True
	for i := range c.numbers {
		n := &c.numbers[i]
		t := expr.Unknown
		if n.absent == nil || !n.absent[row] {
			t = ordered(n.op, n.doubles[row], n.number)
		}
		if t == expr.False {
			return expr.False
		}
		out = max(out, t) // True is below Unknown
	}
	for i := range c.nodes {
		t := b.holds(&c.nodes[i], row)
		if t == expr.False {
			return expr.False
		}
		out = max(out, t)
	}
	return out
}

func (b *batch) holds(n *batchNode, row int) expr.Truth {
	switch n.form {
	case formLeaf:
		return b.test(n, row)
	case formNot:
		return opposite(b.holds(&n.kids[0], row))
	}
	out, decides := expr.True, expr.False
	if n.form == formAny {
		out, decides = expr.False, expr.True
	}
	for i := range n.kids {
		switch b.holds(&n.kids[i], row) {
		case decides:
			return decides
		case expr.Unknown:
			out = expr.Unknown
		}
	}
	return out
}

func (b *batch) test(n *batchNode, row int) expr.Truth {
	c := n.leaf
	switch {
	case c.calc != nil:
		return b.computed(c, row)
	case c.op == opExists:
		return truth((n.col != nil && !absent(n.col, row)) == c.value.Bool())
	case n.col == nil || absent(n.col, row):
		return expr.Unknown
	case n.col.Type == decision.String:
		return n.text(n.col.Codes[row])
	}
	v := n.col.Value(row)
	return c.test(&v)
}

// known is added to a truth that was worked out.
const known = 0x80

func (n *batchNode) text(code uint32) expr.Truth {
	if n.truths == nil {
		n.truths = make([]uint8, len(n.col.Texts))
	}
	if n.truths[code] == 0 {
		v := decision.StringValue(n.col.Texts[code])
		n.truths[code] = known | uint8(n.leaf.test(&v))
	}
	return expr.Truth(n.truths[code] &^ known)
}

// ordered compares two doubles; NaN is unknown.
func ordered(op operator, x, y float64) expr.Truth {
	if x != x || y != y {
		return expr.Unknown
	}
	switch op {
	case opEq:
		return truth(x == y)
	case opNe:
		return truth(x != y)
	case opGt:
		return truth(x > y)
	case opGe:
		return truth(x >= y)
	case opLt:
		return truth(x < y)
	}
	return truth(x <= y)
}

// computed evaluates a calculation on the values of a row.
func (b *batch) computed(c *condition, row int) expr.Truth {
	for _, a := range c.calc.Reads() {
		b.row.Values[a.Slot] = decision.Value{}
		if col := b.cols[a.Slot]; col != nil {
			b.row.Values[a.Slot] = col.Value(row)
		}
	}
	return c.holds(&b.row)
}
