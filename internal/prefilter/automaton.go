package prefilter

// maxStates bounds the automaton; its table has states x classes entries of 4 bytes.
const maxStates = 1 << 16

// automaton finds all of a set of words in a text. Bytes that no word holds share class 0,
// which keeps the table dense and small.
type automaton struct {
	classes  [256]uint8
	nclasses int
	// next holds, by state*nclasses + class, the next state; link multiplies the states by
	// nclasses and marks those that have rules, which saves a multiplication and a look
	// into out for every byte.
	next []uint32
	// out are the rules of the words that end in a state, those of its suffixes included.
	out [][]int32
}

type word struct {
	text string
	rule int32
}

// newAutomaton returns nil when the words are too many or use every byte value.
func newAutomaton(words []word) *automaton {
	if len(words) == 0 {
		return nil
	}
	a := &automaton{nclasses: 1}
	for _, w := range words {
		for _, b := range []byte(w.text) {
			if a.classes[b] != 0 {
				continue
			}
			if a.nclasses == 256 {
				return nil
			}
			a.classes[b] = uint8(a.nclasses)
			a.nclasses++
		}
	}
	if !a.insert(words) {
		return nil
	}
	a.link()
	return a
}

// insert builds the trie; 0 is the root, and no edge as well.
func (a *automaton) insert(words []word) bool {
	a.grow()
	for _, w := range words {
		s := uint32(0)
		for _, b := range []byte(w.text) {
			at := int(s)*a.nclasses + int(a.classes[b])
			if a.next[at] == 0 {
				if len(a.out) == maxStates {
					return false
				}
				a.next[at] = uint32(len(a.out))
				a.grow()
			}
			s = a.next[at]
		}
		a.out[s] = append(a.out[s], w.rule)
	}
	return true
}

func (a *automaton) grow() {
	a.next = append(a.next, make([]uint32, a.nclasses)...)
	a.out = append(a.out, nil)
}

// link turns the trie into the automaton, breadth first: where a state has no edge it
// goes where its longest proper suffix would.
func (a *automaton) link() {
	fail := make([]uint32, len(a.out))
	var queue []uint32
	for c := range a.nclasses {
		if s := a.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		a.out[s] = append(a.out[s], a.out[fail[s]]...)
		row, back := a.next[int(s)*a.nclasses:][:a.nclasses], a.next[int(fail[s])*a.nclasses:][:a.nclasses]
		for c := range row {
			if row[c] == 0 {
				row[c] = back[c]
				continue
			}
			fail[row[c]] = back[c]
			queue = append(queue, row[c])
		}
	}
	for s := range a.out {
		a.out[s] = sorted(a.out[s])
	}
	for i, s := range a.next {
		a.next[i] = s * uint32(a.nclasses)
		if len(a.out[s]) > 0 {
			a.next[i] |= marked
		}
	}
}

// marked is set in next for a state with rules.
const marked = 1 << 31

// find appends the rules of every word that the text holds, in no order, with repeats.
func (a *automaton) find(dst []int32, text string) []int32 {
	dst = append(dst, a.out[0]...)
	s := uint32(0)
	for i := range len(text) {
		s = a.next[s+uint32(a.classes[text[i]])]
		if s&marked != 0 {
			s &^= marked
			dst = append(dst, a.out[s/uint32(a.nclasses)]...)
		}
	}
	return dst
}
