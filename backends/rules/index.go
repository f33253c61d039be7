package rules

import (
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// index narrows the rules down to those that may match. A rule is left out only when one
// of its conditions is false for certain: such a rule neither matches nor counts as
// skipped, so the answer and its explanation are those of a walk through all rules.
type index struct {
	*prefilter.Index
	attrs []expr.Attr // of the filters
	// short is what is left to test of a rule once its filter has let it through, by rule.
	short [][]node
}

// newIndex returns nil when it would not pay.
func newIndex(rules []*rule) *index {
	tests, conditions := make([][]prefilter.Test, len(rules)), make([][]*condition, len(rules))
	attrs := map[int]expr.Attr{}
	for i, r := range rules {
		for _, c := range conjuncts(r.conditions) {
			if t, ok := c.prefilter(); ok {
				tests[i], conditions[i] = append(tests[i], t), append(conditions[i], c)
				attrs[t.Slot] = c.attr
			}
		}
	}
	found, chosen := prefilter.NewIndex(tests)
	if found == nil {
		return nil
	}
	ix := &index{Index: found, short: make([][]node, len(rules))}
	complete := map[int]bool{}
	for _, f := range found.Filters {
		ix.attrs, complete[f.Slot] = append(ix.attrs, attrs[f.Slot]), f.Complete()
	}
	for i, r := range rules {
		ix.short[i] = r.conditions
		if at := chosen[i]; at >= 0 && complete[tests[i][at].Slot] {
			ix.short[i] = without(r.conditions, conditions[i][at])
		}
	}
	return ix
}

// without returns the nodes but for one condition, where it stands at the top.
func without(nodes []node, c *condition) []node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n node) bool { return n.form == formLeaf && n.leaf == c })
}

// prefilter is the condition as a test of a text; false when it is none.
func (c *condition) prefilter() (prefilter.Test, bool) {
	t := prefilter.Test{Slot: c.attr.Slot, Texts: []string{c.value.Str()}}
	if c.calc != nil || c.attr.Late {
		return t, false
	}
	switch c.op {
	case opEq:
		return t, c.value.Type() == decision.String
	case opIn:
		t.Texts = nil
		for _, v := range c.list {
			t.Texts = append(t.Texts, v.Str())
		}
		return t, c.set != nil
	case opContains:
		t.Op = prefilter.Contains
	case opPrefix:
		t.Op = prefilter.Prefix
	case opSuffix:
		t.Op = prefilter.Suffix
	default:
		return t, false
	}
	return t, true
}
