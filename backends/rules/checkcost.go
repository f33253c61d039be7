package rules

import (
	"github.com/clefbench/clefbench/decision"
)

// Cost bounds the work of one decision by what stands in the file: no request evaluates
// more, and the index of a large file makes most evaluate far less.
type Cost struct {
	// Rules and Conditions are those up to the first rule that always matches; of the
	// conditions, Patterns are regular expressions and Computed are calculations.
	Rules, Conditions, Patterns, Computed int
}

// WorstCase returns the cost of a file. The error is a document.Problems.
func WorstCase(name string, data []byte, schema *decision.Schema) (Cost, error) {
	var c Cost
	f, problems := read(name, data, schema, false)
	if problems.Errors() > 0 {
		return c, problems
	}
	for i := range f.rules {
		x := &f.rules[i]
		if x.off {
			continue
		}
		c.Rules++
		leaves(x.conditions, func(n *node) {
			c.Conditions++
			if n.leaf.op == opMatches {
				c.Patterns++
			}
			if n.leaf.calc != nil {
				c.Computed++
			}
		})
		if x.always() {
			break
		}
	}
	return c, nil
}

// Actions returns where each action of a file stands, fallbacks included, by label. The
// error is a document.Problems.
func Actions(name string, data []byte, schema *decision.Schema) (map[string][]decision.Position, error) {
	f, problems := read(name, data, schema, false)
	if problems.Errors() > 0 {
		return nil, problems
	}
	out := map[string][]decision.Position{}
	for i := range f.rules {
		if a := f.rules[i].action; a != nil {
			out[a.Label] = append(out[a.Label], a.Pos)
		}
		if a := f.rules[i].fallback; a != nil {
			out[a.Label] = append(out[a.Label], a.Pos)
		}
	}
	if a := f.fallback; a != nil {
		out[a.Label] = append(out[a.Label], a.Pos)
	}
	return out, nil
}
