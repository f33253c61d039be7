package rules

import (
	"cmp"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// indexFrom is the number of rules from which an index pays: it costs a hash of the text
// whatever the number of rules, a condition costs about a tenth of that.
const indexFrom = 12

// maxFilters bounds the attributes that are indexed; each costs a look-up a decision.
const maxFilters = 4

// index narrows the rules down to those that may match. A rule is left out only when one
// of its conditions is false for certain: such a rule neither matches nor counts as
// skipped, so the answer and its explanation are those of a walk through all rules.
type index struct {
	filters []attrFilter
	// rest are the rules that no filter covers, ascending.
	rest []int32
}

// attrFilter covers the rules that cannot hold unless a condition on one text does.
type attrFilter struct {
	attr expr.Attr
	*prefilter.Filter
	// short holds, for the rules of the filter, what is left to test once the filter has
	// let them through; by rule number.
	short [][]node
}

// newIndex returns nil when it would not pay.
func newIndex(rules []*rule) *index {
	if len(rules) < indexFrom {
		return nil
	}
	keys := make([]*condition, len(rules))
	uses := map[int]int{}
	for _, r := range rules {
		for _, c := range conjuncts(r.conditions) {
			if _, ok := c.entry(0); ok {
				uses[c.attr.Slot]++
			}
		}
	}
	slots := busiest(uses)
	ix := &index{}
	entries := make(map[int][]prefilter.Entry)
	for i, r := range rules {
		if keys[i] = key(r, slots); keys[i] == nil {
			ix.rest = append(ix.rest, int32(i))
			continue
		}
		e, _ := keys[i].entry(int32(i))
		entries[keys[i].attr.Slot] = append(entries[keys[i].attr.Slot], e)
	}
	for _, slot := range slots {
		if len(entries[slot]) > 0 {
			ix.filters = append(ix.filters, newAttrFilter(entries[slot], rules, keys))
		}
	}
	if len(ix.filters) == 0 {
		return nil
	}
	return ix
}

// busiest returns the slots that most rules could be looked up by.
func busiest(uses map[int]int) []int {
	var slots []int
	for slot := range uses {
		slots = append(slots, slot)
	}
	slices.SortFunc(slots, func(a, b int) int { return cmp.Or(uses[b]-uses[a], a-b) })
	return slots[:min(len(slots), maxFilters)]
}

// key is the condition by which a rule is looked up, of the busiest attribute that it has:
// the fewer filters, the fewer look-ups.
func key(r *rule, slots []int) *condition {
	cs := conjuncts(r.conditions)
	for _, slot := range slots {
		for _, c := range cs {
			if _, ok := c.entry(0); ok && c.attr.Slot == slot {
				return c
			}
		}
	}
	return nil
}

func newAttrFilter(entries []prefilter.Entry, rules []*rule, keys []*condition) attrFilter {
	f := attrFilter{attr: keys[entries[0].Rule].attr, Filter: prefilter.New(entries), short: make([][]node, len(rules))}
	for _, e := range entries {
		f.short[e.Rule] = rules[e.Rule].conditions
		if f.Complete() {
			f.short[e.Rule] = without(rules[e.Rule].conditions, keys[e.Rule])
		}
	}
	return f
}

// without returns the nodes but for one condition, where it stands at the top.
func without(nodes []node, c *condition) []node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n node) bool { return n.form == formLeaf && n.leaf == c })
}

// entry is the condition as a test that the prefilter knows; false when it is none.
func (c *condition) entry(rule int32) (prefilter.Entry, bool) {
	e := prefilter.Entry{Rule: rule, Texts: []string{c.value.Str()}}
	if c.calc != nil || c.attr.Late {
		return e, false
	}
	switch c.op {
	case opEq:
		return e, c.value.Type() == decision.String
	case opIn:
		e.Texts = nil
		for _, v := range c.list {
			e.Texts = append(e.Texts, v.Str())
		}
		return e, c.set != nil
	case opContains:
		e.Op = prefilter.Contains
	case opPrefix:
		e.Op = prefilter.Prefix
	case opSuffix:
		e.Op = prefilter.Suffix
	default:
		return e, false
	}
	return e, true
}

// walk goes through the rules that may match, in order.
type walk struct {
	lists [maxFilters + 1]cursor
	n     int
}

// cursor is the rest of one ascending list of rules. short is nil where the conditions
// have to be tested in full.
type cursor struct {
	rules []int32
	short [][]node
}

// start looks the row's texts up. An attribute that is absent or no text leaves all rules
// of its filter in: their conditions are unknown, and that counts.
func (ix *index) start(w *walk, row *expr.Row) {
	for i := range ix.filters {
		f := &ix.filters[i]
		if v := row.Get(&f.attr); v != nil && v.Type() == decision.String {
			w.add(cursor{f.Rules(v.Str()), f.short})
		} else {
			w.add(cursor{f.All(), nil})
		}
	}
	w.add(cursor{ix.rest, nil})
}

func (w *walk) add(c cursor) {
	if len(c.rules) > 0 {
		w.lists[w.n] = c
		w.n++
	}
}

// next returns the lowest rule that is left, and what is to be tested where that is not
// all of its conditions; -1 when none is left.
func (w *walk) next() (rule int32, short [][]node) {
	best := -1
	for i := range w.n {
		if best < 0 || w.lists[i].rules[0] < w.lists[best].rules[0] {
			best = i
		}
	}
	if best < 0 {
		return -1, nil
	}
	c := &w.lists[best]
	rule, short = c.rules[0], c.short
	if c.rules = c.rules[1:]; len(c.rules) == 0 {
		w.n--
		*c = w.lists[w.n]
	}
	return rule, short
}
