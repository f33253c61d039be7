package prefilter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// reference tests every entry on its own.
func reference(entries []Entry, text string) []int32 {
	var out []int32
	for _, e := range entries {
		if slices.ContainsFunc(e.Texts, func(t string) bool {
			switch e.Op {
			case Contains:
				return strings.Contains(text, t)
			case Prefix:
				return strings.HasPrefix(text, t)
			case Suffix:
				return strings.HasSuffix(text, t)
			}
			return text == t
		}) {
			out = append(out, e.Rule)
		}
	}
	return sorted(out)
}

func randomText(r *rand.Rand, most int) string {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = "aab\xffc"[r.IntN(5)]
	}
	return string(b)
}

func randomEntries(r *rand.Rand, n int) []Entry {
	out := make([]Entry, n)
	for i := range out {
		out[i] = Entry{Rule: int32(i), Op: Op(r.IntN(4))}
		for range 1 + r.IntN(3) {
			out[i].Texts = append(out[i].Texts, randomText(r, 4))
		}
	}
	return out
}

// Small alphabets make words that overlap, repeat and hold each other, the empty one
// included.
func TestRulesAreThoseOfAReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		entries := randomEntries(r, 1+r.IntN(40))
		f := New(entries)
		if !f.Complete() {
			t.Fatal("not complete")
		}
		for range 50 {
			text := randomText(r, 12)
			want := reference(entries, text)
			for range 2 { // the second time from the cache
				if got := f.Rules(text); !slices.Equal(got, want) {
					t.Fatalf("%q in %+v: got %v, want %v", text, entries, got, want)
				}
			}
		}
	}
}

// Words of all 256 byte values leave no class for other bytes: their rules are never
// filtered out.
func TestWordsThatDoNotFit(t *testing.T) {
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	f := New([]Entry{{Rule: 3, Op: Contains, Texts: []string{all.String()}}, {Rule: 5, Op: Equal, Texts: []string{"x"}}})
	if f.Complete() || !slices.Equal(f.Rules("x"), []int32{3, 5}) || !slices.Equal(f.Rules("y"), []int32{3}) {
		t.Errorf("complete %v, %v, %v", f.Complete(), f.Rules("x"), f.Rules("y"))
	}
	if !slices.Equal(f.All(), []int32{3, 5}) {
		t.Errorf("all %v", f.All())
	}
}

func TestConcurrentUse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	entries := randomEntries(r, 20)
	f := New(entries)
	var texts []string
	for range 200 {
		texts = append(texts, randomText(r, 10))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				for _, text := range texts {
					if got := f.Rules(text); !slices.Equal(got, reference(entries, text)) {
						t.Errorf("%q: %v", text, got)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestSeenTextsAllocateNothing(t *testing.T) {
	f := New(randomEntries(rand.New(rand.NewPCG(5, 6)), 100))
	f.Rules("abcabc")
	if n := testing.AllocsPerRun(100, func() { f.Rules("abcabc") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRules(f *testing.F) {
	f.Add("a,bc,c", "abc", uint8(1))
	f.Add(",aa,aaa", "aaaa", uint8(2))
	f.Fuzz(func(t *testing.T, words, text string, op uint8) {
		if len(words) > 1000 || len(text) > 10_000 {
			return
		}
		var entries []Entry
		for i, w := range strings.Split(words, ",") {
			entries = append(entries, Entry{Rule: int32(i), Op: Op(op % 4), Texts: []string{w}})
		}
		got, want := New(entries).Rules(text), reference(entries, text)
		if !slices.Equal(got, want) {
			t.Fatalf("%q, op %d, %q: got %v, want %v", words, op%4, text, got, want)
		}
	})
}

func BenchmarkRules(b *testing.B) {
	var entries []Entry
	for i := range 1000 {
		entries = append(entries, Entry{Rule: int32(i), Op: Contains, Texts: []string{fmt.Sprintf("token%d", i)}})
	}
	f := New(entries)
	text := "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
	b.Run("seen", func(b *testing.B) {
		for b.Loop() {
			f.Rules(text)
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			f.find(text)
		}
	})
}
