package prefilter

import (
	"cmp"
	"slices"
)

// payFrom is the number of rules from which an index pays: it costs a hash of the text
// whatever the number of rules, a test of one rule costs about a tenth of that.
const payFrom = 12

// maxFilters bounds the texts that are looked up for one decision.
const maxFilters = 4

// Test is a test of the text in one slot that a rule cannot hold without.
type Test struct {
	Slot  int
	Op    Op
	Texts []string
}

// Index narrows many rules down to those that may hold, by the texts of several slots.
type Index struct {
	// Filters are the slots to look up.
	Filters []SlotFilter
	// Rest are the rules that no filter covers, ascending.
	Rest []int32
}

// SlotFilter is the filter of the texts in one slot.
type SlotFilter struct {
	Slot int
	*Filter
}

// NewIndex returns the index over some rules, each with the tests that it cannot hold
// without; chosen says which of them covers the rule, -1 none. The busiest slots are
// taken, since each costs a look-up. The index is nil when it would not pay.
func NewIndex(rules [][]Test) (ix *Index, chosen []int) {
	chosen = make([]int, len(rules))
	slots := busiest(rules)
	entries := map[int][]Entry{}
	ix = &Index{}
	for i, tests := range rules {
		if chosen[i] = choose(tests, slots); chosen[i] < 0 {
			ix.Rest = append(ix.Rest, int32(i))
			continue
		}
		t := tests[chosen[i]]
		entries[t.Slot] = append(entries[t.Slot], Entry{int32(i), t.Op, t.Texts})
	}
	for _, slot := range slots {
		if len(entries[slot]) > 0 {
			ix.Filters = append(ix.Filters, SlotFilter{slot, New(entries[slot])})
		}
	}
	if len(rules) < payFrom || len(ix.Filters) == 0 {
		return nil, chosen
	}
	return ix, chosen
}

// busiest returns the slots that most tests are on.
func busiest(rules [][]Test) []int {
	uses := map[int]int{}
	for _, tests := range rules {
		for _, t := range tests {
			uses[t.Slot]++
		}
	}
	var slots []int
	for slot := range uses {
		slots = append(slots, slot)
	}
	slices.SortFunc(slots, func(a, b int) int { return cmp.Or(uses[b]-uses[a], a-b) })
	return slots[:min(len(slots), maxFilters)]
}

// choose returns the first test on the busiest slot that there is a test on.
func choose(tests []Test, slots []int) int {
	for _, slot := range slots {
		for i, t := range tests {
			if t.Slot == slot {
				return i
			}
		}
	}
	return -1
}

// Walk goes through the rules that may hold, in order. The zero Walk is empty; it is
// filled by Add, one list a filter and one for the rest.
type Walk struct {
	lists [maxFilters + 1]cursor
	n     int
}

type cursor struct {
	rules   []int32
	covered bool
}

// Add adds an ascending list of rules. covered says that the test which the index chose
// is known to hold for them; of a text that is absent all rules of its filter are added,
// uncovered, because their tests are unknown.
func (w *Walk) Add(rules []int32, covered bool) {
	if len(rules) > 0 {
		w.lists[w.n] = cursor{rules, covered}
		w.n++
	}
}

// Next returns the lowest rule that is left, -1 when none is.
func (w *Walk) Next() (rule int32, covered bool) {
	best := -1
	for i := range w.n {
		if best < 0 || w.lists[i].rules[0] < w.lists[best].rules[0] {
			best = i
		}
	}
	if best < 0 {
		return -1, false
	}
	c := &w.lists[best]
	rule, covered = c.rules[0], c.covered
	if c.rules = c.rules[1:]; len(c.rules) == 0 {
		w.n--
		*c = w.lists[w.n]
	}
	return rule, covered
}
