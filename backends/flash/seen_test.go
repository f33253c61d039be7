package flash

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// sumOf stands for a classification that depends on every byte.
func sumOf(text string) uint16 {
	var n uint16
	for i := range len(text) {
		n = n*31 + uint16(text[i])
	}
	return n
}

type counter int

func (c *counter) classify(text string) uint16 { *c++; return sumOf(text) }

// Texts of every length, some of them equal but for one byte.
func TestSeenIsExact(t *testing.T) {
	s := newSeen()
	r := rand.New(rand.NewPCG(1, 2))
	calls := new(counter)
	texts := []string{}
	for n := 1; n < seenWords*8+20; n++ {
		base := strings.Repeat("x", n)
		texts = append(texts, base)
		at := r.IntN(n)
		texts = append(texts, base[:at]+"y"+base[at+1:], base[:n-1]+"\x00", base[:n-1]+"\xff")
	}
	for range 20_000 {
		text := texts[r.IntN(len(texts))]
		if got := s.digit(text, calls); got != sumOf(text) {
			t.Fatalf("%q gives %d, want %d", text, got, sumOf(text))
		}
	}
	if *calls == 20_000 || int(*calls) < len(texts)/2 {
		t.Errorf("%d classifications", *calls)
	}
}

// Readers and writers of one slot never see a mixture of two texts.
func TestSeenConcurrently(t *testing.T) {
	s := newSeen()
	slot := &s.slots[0]
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(w)))
			for range 20_000 {
				text := strings.Repeat(fmt.Sprint(r.IntN(3)), 90+r.IntN(2))
				meta := hash(text)&^(1<<32-1) | uint64(len(text))<<16
				if d, ok := slot.get(text, meta); ok && d != sumOf(text) {
					t.Errorf("%q gives %d", text, d)
					return
				}
				slot.put(text, meta|uint64(sumOf(text)))
			}
		})
	}
	wg.Wait()
}

// Texts that differ in one place, as user agents do, are spread over the pairs of slots
// about as evenly as chance would do it: 512 texts reach 324 of 512 pairs on average.
func TestSlotsAreSpread(t *testing.T) {
	for _, format := range []string{"Mozilla/5.0 (%04d) Chrome/126.0 Safari/537.36", "Mozilla/5.0 (X11; Linux x86_64) Chrome/126.0.%d.0", "agent %d", "%[1]d Mozilla %[1]d"} {
		used := map[uint64]bool{}
		for i := range 512 {
			used[hash(fmt.Sprintf(format, 1000+i))&(seenSlots-2)] = true
		}
		if len(used) < 290 {
			t.Errorf("%s: %d pairs", format, len(used))
		}
	}
}

// Two texts that share their slots are both remembered.
func TestPairsOfTexts(t *testing.T) {
	s, calls, byPair := newSeen(), new(counter), map[uint64]string{}
	for i := 0; ; i++ {
		text := fmt.Sprintf("user agent %d", i)
		other, shared := byPair[hash(text)&(seenSlots-2)]
		byPair[hash(text)&(seenSlots-2)] = text
		if !shared {
			continue
		}
		for range 10 {
			s.digit(text, calls)
			s.digit(other, calls)
		}
		if *calls != 2 {
			t.Errorf("%d classifications of two texts", *calls)
		}
		return
	}
}

func TestSeenAllocatesNothing(t *testing.T) {
	s, n, calls := newSeen(), 0, new(counter)
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = fmt.Sprintf("agent %d %s", i, strings.Repeat("z", i))
	}
	if got := testing.AllocsPerRun(100, func() { s.digit(texts[n%200], calls); n++ }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
