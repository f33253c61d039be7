package prefilter

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
)

// Op is how a text is tested.
type Op uint8

// The tests: the text is one of some texts, holds one of them, begins or ends with one.
const (
	Equal Op = iota
	Contains
	Prefix
	Suffix
)

// Entry is a test that a rule cannot hold without: the text is, holds, begins or ends
// with any one of Texts.
type Entry struct {
	// Rule is the rule's number; an entry may be the only one of its rule.
	Rule  int32
	Op    Op
	Texts []string
}

// cacheSize is the number of texts whose rules are remembered, a power of two.
const cacheSize = 4096

// Filter finds the rules that a text lets through. It is safe for concurrent use.
type Filter struct {
	all        []int32
	equal      map[string][]int32
	words      *automaton
	prefixes   affixes
	suffixes   affixes
	unfiltered []int32 // their words did not fit the automaton

	seed  maphash.Seed
	cache []atomic.Pointer[found]
}

// found is what was found for a text.
type found struct {
	text  string
	rules []int32
}

// New returns the filter of some entries.
func New(entries []Entry) *Filter {
	f := &Filter{equal: map[string][]int32{}, seed: maphash.MakeSeed(), cache: make([]atomic.Pointer[found], cacheSize)}
	var words []word
	for _, e := range entries {
		f.all = append(f.all, e.Rule)
		for _, t := range e.Texts {
			switch e.Op {
			case Equal:
				f.equal[t] = append(f.equal[t], e.Rule)
			case Prefix:
				f.prefixes.add(t, e.Rule)
			case Suffix:
				f.suffixes.add(t, e.Rule)
			case Contains:
				words = append(words, word{t, e.Rule})
			}
		}
	}
	if f.words = newAutomaton(words); f.words == nil {
		for _, w := range words {
			f.unfiltered = append(f.unfiltered, w.rule)
		}
	}
	f.all = sorted(f.all)
	return f
}

// Complete reports whether every test is indexed; otherwise [Filter.Rules] also gives
// rules whose test does not hold.
func (f *Filter) Complete() bool { return f.unfiltered == nil }

// All returns the rules of all entries, ascending.
func (f *Filter) All() []int32 { return f.all }

// Rules returns the rules whose test holds for the text, ascending. The slice is shared
// and must not be changed. A text that was seen lately costs one hash and one comparison,
// and no allocation.
func (f *Filter) Rules(text string) []int32 {
	slot := &f.cache[maphash.String(f.seed, text)&(cacheSize-1)]
	if hit := slot.Load(); hit != nil && hit.text == text {
		return hit.rules
	}
	rules := f.find(text)
	// The copy keeps the cache from holding on to a whole request.
	slot.Store(&found{strings.Clone(text), rules})
	return rules
}

func (f *Filter) find(text string) []int32 {
	var buf [64]int32
	out := append(buf[:0], f.unfiltered...)
	out = append(out, f.equal[text]...)
	if f.words != nil {
		out = f.words.find(out, text)
	}
	for _, n := range f.prefixes.lengths {
		if n <= len(text) {
			out = append(out, f.prefixes.rules[text[:n]]...)
		}
	}
	for _, n := range f.suffixes.lengths {
		if n <= len(text) {
			out = append(out, f.suffixes.rules[text[len(text)-n:]]...)
		}
	}
	return sorted(slices.Clone(out))
}

func sorted(rules []int32) []int32 {
	slices.Sort(rules)
	return slices.Compact(rules)
}

// affixes are beginnings or ends, looked up by length.
type affixes struct {
	lengths []int
	rules   map[string][]int32
}

func (a *affixes) add(text string, rule int32) {
	if a.rules == nil {
		a.rules = map[string][]int32{}
	}
	if !slices.Contains(a.lengths, len(text)) {
		a.lengths = append(a.lengths, len(text))
	}
	a.rules[text] = append(a.rules[text], rule)
}
