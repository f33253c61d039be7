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
				if d, ok := slot.get(text); ok && d != sumOf(text) {
					t.Errorf("%q gives %d", text, d)
					return
				}
				slot.put(text, sumOf(text))
			}
		})
	}
	wg.Wait()
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
