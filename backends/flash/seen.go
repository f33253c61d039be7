package flash

import (
	"hash/maphash"
	"sync/atomic"
)

// Sizes of the memory for classified texts: seenSlots texts of at most seenWords*8 bytes,
// 270 KB in all. User agents longer than that are classified each time.
const (
	seenSlots = 1024 // a power of two
	seenWords = 32
)

// seen remembers how texts were classified, since the same user agents come again and
// again. A text is compared whole, so that a hit is exact; there is no lock and no
// allocation. A slot is written under an odd version, and a reader who saw the version
// change, or an odd one, takes it as a miss (a sequence lock, in atomic words throughout).
//
// A map of pointers, as internal/prefilter has it, was tried first: it allocates for every
// text that is new. Fingerprints instead of texts would save 5 ns and could be wrong.
type seen struct {
	seed  maphash.Seed
	slots []seenSlot
}

type seenSlot struct {
	version atomic.Uint64
	// meta is the length of the text, above the digit; 0 is an empty slot.
	meta atomic.Uint64
	text [seenWords]atomic.Uint64
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed(), slots: make([]seenSlot, seenSlots)} }

// classifier says what the digit of a text is.
type classifier interface{ classify(text string) uint16 }

// digit returns the digit of a text, which c gives for one that is not remembered. The
// text is not empty.
func (s *seen) digit(text string, c classifier) uint16 {
	if len(text) > seenWords*8 {
		return c.classify(text)
	}
	slot := &s.slots[maphash.String(s.seed, text)&(seenSlots-1)]
	if d, ok := slot.get(text); ok {
		return d
	}
	d := c.classify(text)
	slot.put(text, d)
	return d
}

func (s *seenSlot) get(text string) (uint16, bool) {
	version, meta := s.version.Load(), s.meta.Load()
	if version&1 != 0 || meta>>16 != uint64(len(text)) {
		return 0, false
	}
	n := len(text) / 8
	for i := range n {
		if s.text[i].Load() != word(text[i*8:]) {
			return 0, false
		}
	}
	if n*8 < len(text) && s.text[n].Load() != tail(text[n*8:]) {
		return 0, false
	}
	return uint16(meta), s.version.Load() == version
}

// put gives way to another writer.
func (s *seenSlot) put(text string, digit uint16) {
	version := s.version.Load()
	if version&1 != 0 || !s.version.CompareAndSwap(version, version+1) {
		return
	}
	n := len(text) / 8
	for i := range n {
		s.text[i].Store(word(text[i*8:]))
	}
	if n*8 < len(text) {
		s.text[n].Store(tail(text[n*8:]))
	}
	s.meta.Store(uint64(len(text))<<16 | uint64(digit))
	s.version.Store(version + 2)
}

// word is the first eight bytes of a text.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// tail is what is left of a text below eight bytes.
func tail(s string) uint64 {
	var x uint64
	for i := range len(s) {
		x |= uint64(s[i]) << (8 * i)
	}
	return x
}
