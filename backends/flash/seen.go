package flash

import (
	"math/bits"
	"sync/atomic"
)

// Sizes of the memory for classified texts: seenSlots texts of at most seenWords*8 bytes,
// 270 KB in all. User agents longer than that are classified each time, as
// are those below eight bytes.
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
type seen struct{ slots []seenSlot }

type seenSlot struct {
	version atomic.Uint64
	// meta is the upper half of the hash, the length of the text and the digit; 0 is an
	// empty slot, as no text is empty.
	meta atomic.Uint64
	text [seenWords]atomic.Uint64
}

func newSeen() *seen { return &seen{make([]seenSlot, seenSlots)} }

// classifier says what the digit of a text is.
type classifier interface{ classify(text string) uint16 }

// digit returns the digit of a text, which c gives for one that is not remembered. The
// text is not empty. A text has two slots that it may stand in, since with one the few
// texts that share theirs would be classified each time.
func (s *seen) digit(text string, c classifier) uint16 {
	if len(text) < 8 || len(text) > seenWords*8 {
		return c.classify(text)
	}
	h := hash(text)
	pair := (*[2]seenSlot)(s.slots[h&(seenSlots-2):])
	meta := h&^(1<<32-1) | uint64(len(text))<<16
	for i := range pair {
		if d, ok := pair[i].get(text, meta); ok {
			return d
		}
	}
	d := c.classify(text)
	// The slots take turns.
	turn := (pair[0].version.Load() + pair[1].version.Load()) >> 1 & 1
	pair[turn].put(text, meta|uint64(d))
	return d
}

// hash is a sum of products, 16 bytes each, which a processor works out side by side; the
// last 16 bytes may overlap those before. It has no secret, as hash/maphash has at three
// times the price: texts that are made to collide cost a classification each, and nothing
// else. The text has at least 8 bytes.
func hash(text string) uint64 {
	const a, b, step = 0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0x8cb92ba72f3d8dd7
	h, place := uint64(len(text))*b, uint64(a)
	for i := 0; i+16 <= len(text); i += 16 {
		h += fold(word(text[i:])^place, word(text[i+8:])^b)
		place += step
	}
	last := text[len(text)-8:]
	if len(text) >= 16 {
		h += fold(word(text[len(text)-16:])^step, word(last)^a)
	} else {
		h += fold(word(text)^step, word(last)^a)
	}
	return fold(h^a, b)
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// get compares whole words, and then the last eight bytes, which may overlap them.
func (s *seenSlot) get(text string, meta uint64) (uint16, bool) {
	version, have := s.version.Load(), s.meta.Load()
	if version&1 != 0 || have&^(1<<16-1) != meta {
		return 0, false
	}
	n := len(text) / 8
	for i := range n {
		if s.text[i].Load() != word(text[i*8:]) {
			return 0, false
		}
	}
	if len(text)%8 != 0 && s.text[n].Load() != word(text[len(text)-8:]) {
		return 0, false
	}
	return uint16(have), s.version.Load() == version
}

// put gives way to another writer.
func (s *seenSlot) put(text string, meta uint64) {
	version := s.version.Load()
	if version&1 != 0 || !s.version.CompareAndSwap(version, version+1) {
		return
	}
	n := len(text) / 8
	for i := range n {
		s.text[i].Store(word(text[i*8:]))
	}
	if len(text)%8 != 0 {
		s.text[n].Store(word(text[len(text)-8:]))
	}
	s.meta.Store(meta)
	s.version.Store(version + 2)
}

// word is the first eight bytes of a text.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
