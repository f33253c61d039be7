package reports

import (
	"slices"
	"sort"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

// footnote is one numbered remark. Remarks with the same text are one footnote.
type footnote struct {
	text string
	// scopes says what the remark is about where nothing in the tables points to it.
	scopes []string
}

// String is the footnote without its number.
func (f footnote) String() string {
	if len(f.scopes) == 0 {
		return f.text
	}
	return f.text + " (" + strings.Join(f.scopes, "; ") + ")"
}

// footnotes numbers remarks in the order of their first use.
type footnotes struct {
	list  []footnote
	index map[string]int
}

// add returns the number of the footnote with this text.
func (f *footnotes) add(text string) int {
	text = clean(text)
	if n, ok := f.index[text]; ok {
		return n
	}
	if f.index == nil {
		f.index = map[string]int{}
	}
	f.list = append(f.list, footnote{text: text})
	f.index[text] = len(f.list)
	return len(f.list)
}

// addScoped is add, and notes what the remark is about.
func (f *footnotes) addScoped(text, scope string) int {
	n := f.add(text)
	if scope != "" && !slices.Contains(f.list[n-1].scopes, scope) {
		f.list[n-1].scopes = append(f.list[n-1].scopes, scope)
	}
	return n
}

// warned holds the footnote numbers of the scorecard's warnings by what they are about.
type warned struct {
	run      []int
	backend  map[string][]int
	scenario map[string][]int
}

// warnings makes a footnote of every warning. One about a backend is marked at its name
// in the first table, one about a scenario at that scenario's heading.
func (f *footnotes) warnings(list []scoring.Warning) warned {
	w := warned{backend: map[string][]int{}, scenario: map[string][]int{}}
	for _, x := range list {
		text := x.Text
		if text == "" {
			text = x.Code
		}
		n := f.addScoped(text, scopeOf(x))
		switch {
		case x.Backend != "":
			w.backend[x.Backend] = mark(w.backend[x.Backend], n)
		case x.Scenario != "":
			w.scenario[x.Scenario] = mark(w.scenario[x.Scenario], n)
		default:
			w.run = mark(w.run, n)
		}
	}
	return w
}

func scopeOf(x scoring.Warning) string {
	switch b, s := clean(x.Backend), clean(x.Scenario); {
	case b != "" && s != "":
		return b + " in " + s
	case b != "":
		return b
	default:
		return s
	}
}

// mark adds a footnote number once.
func mark(list []int, n int) []int {
	if slices.Contains(list, n) {
		return list
	}
	return append(list, n)
}

// counted lists counts by name, the largest first: "no-strategy 12, timeout 3".
func counted[T integer](m map[string]T) string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		if m[names[i]] != m[names[j]] {
			return m[names[i]] > m[names[j]]
		}
		return names[i] < names[j]
	})
	for i, n := range names {
		names[i] = clean(n) + " " + count(m[n])
	}
	return strings.Join(names, ", ")
}
