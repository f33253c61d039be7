package prefilter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every rule that the walk leaves out has a test that does not hold; covered ones come
// only where the chosen test holds; the order is that of the rules, each once.
func TestIndexLeavesOutWhatCannotHold(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		rules := make([][]Test, payFrom+r.IntN(60))
		for i := range rules {
			for range r.IntN(3) {
				rules[i] = append(rules[i], Test{r.IntN(6), Op(r.IntN(4)), []string{randomText(r, 3)}})
			}
		}
		ix, chosen := NewIndex(rules)
		if ix == nil {
			continue
		}
		if len(ix.Filters) > maxFilters {
			t.Fatalf("%d filters", len(ix.Filters))
		}
		for range 20 {
			checkWalk(t, r, rules, ix, chosen)
		}
	}
}

func checkWalk(t *testing.T, r *rand.Rand, rules [][]Test, ix *Index, chosen []int) {
	t.Helper()
	texts, absent := map[int]string{}, map[int]bool{}
	for slot := range 6 {
		texts[slot], absent[slot] = randomText(r, 8), r.IntN(4) == 0
	}
	var w Walk
	for _, f := range ix.Filters {
		if absent[f.Slot] {
			w.Add(f.All(), false)
		} else {
			w.Add(f.Rules(texts[f.Slot]), true)
		}
	}
	w.Add(ix.Rest, false)
	var got []int32
	for i, covered := w.Next(); i >= 0; i, covered = w.Next() {
		if len(got) > 0 && i <= got[len(got)-1] {
			t.Fatalf("%d after %v", i, got)
		}
		if covered && !holds(rules[i][chosen[i]], texts) {
			t.Fatalf("rule %d is covered by %+v, texts %v", i, rules[i][chosen[i]], texts)
		}
		got = append(got, i)
	}
	for i, tests := range rules {
		out := chosen[i] >= 0 && !absent[tests[chosen[i]].Slot] && !holds(tests[chosen[i]], texts)
		if slices.Contains(got, int32(i)) == out {
			t.Fatalf("rule %d: left out %v, want %v", i, !out, out)
		}
	}
}

func holds(test Test, texts map[int]string) bool {
	return len(reference([]Entry{{0, test.Op, test.Texts}}, texts[test.Slot])) > 0
}

func TestFewRulesHaveNoIndex(t *testing.T) {
	rules := slices.Repeat([][]Test{{{0, Equal, []string{"x"}}}}, payFrom-1)
	if ix, _ := NewIndex(rules); ix != nil {
		t.Error("an index over few rules")
	}
	if ix, _ := NewIndex(append(rules, rules[0])); ix == nil {
		t.Error("no index over many")
	}
	if ix, chosen := NewIndex(make([][]Test, 50)); ix != nil || chosen[49] != -1 {
		t.Error("an index without tests")
	}
}
