package rules

import (
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// form is what a node does with its kids.
type form uint8

const (
	formLeaf form = iota
	formAll
	formAny
	formNot
)

// node is a condition, or conditions joined by all, any or not. The logic is Kleene's:
// what one side decides for certain, an unknown on the other side does not change.
type node struct {
	form form
	pos  decision.Position
	leaf *condition // of formLeaf
	kids []node     // of the others; formNot has one
}

// holds evaluates a node for a row.
func (n *node) holds(row *expr.Row) expr.Truth {
	switch n.form {
	case formLeaf:
		return n.leaf.holds(row)
	case formAny:
		return anyOf(n.kids, row)
	case formNot:
		return opposite(n.kids[0].holds(row))
	}
	return allOf(n.kids, row)
}

func opposite(t expr.Truth) expr.Truth {
	switch t {
	case expr.True:
		return expr.False
	case expr.False:
		return expr.True
	}
	return expr.Unknown
}

// allOf is True when all hold, False when one fails for certain, Unknown otherwise. It
// does not stop at Unknown: a later one may still fail, and then nothing was skipped.
func allOf(kids []node, row *expr.Row) expr.Truth {
	out := expr.True
	for i := range kids {
		switch kids[i].holds(row) {
		case expr.False:
			return expr.False
		case expr.Unknown:
			out = expr.Unknown
		}
	}
	return out
}

func anyOf(kids []node, row *expr.Row) expr.Truth {
	out := expr.False
	for i := range kids {
		switch kids[i].holds(row) {
		case expr.True:
			return expr.True
		case expr.Unknown:
			out = expr.Unknown
		}
	}
	return out
}

// leaves calls f for each condition below some nodes, in file order.
func leaves(nodes []node, f func(n *node)) {
	for i := range nodes {
		if n := &nodes[i]; n.form == formLeaf {
			f(n)
		} else {
			leaves(n.kids, f)
		}
	}
}

// conjuncts returns the conditions that must all hold: those at the top and inside all.
func conjuncts(nodes []node) (out []*condition) {
	for i := range nodes {
		switch n := &nodes[i]; n.form {
		case formLeaf:
			out = append(out, n.leaf)
		case formAll:
			out = append(out, conjuncts(n.kids)...)
		}
	}
	return out
}

// text is the node in one line.
func (n *node) text() string {
	if n.form == formLeaf {
		return n.leaf.text()
	}
	var parts []string
	for i := range n.kids {
		parts = append(parts, n.kids[i].text())
	}
	return [...]string{formAll: "all", formAny: "any", formNot: "not"}[n.form] + "(" + strings.Join(parts, "; ") + ")"
}
