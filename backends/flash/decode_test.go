package flash

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// reseal makes the length and the checksum of a changed file right again, so that the
// checks behind them are reached.
func reseal(b []byte) []byte {
	if len(b) < headerSize+sumSize {
		return b
	}
	b = append([]byte(nil), b...)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)))
	sum := sha256.Sum256(b[:len(b)-sumSize])
	copy(b[len(b)-sumSize:], sum[:])
	return b
}

// Each byte of a file is covered, and what the checksum would let through is checked too.
func TestOpenRefusesDamage(t *testing.T) {
	good := compileEdge(t)
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1 << (i % 8)
		if _, err := Open("x.cfb", bad); !errors.Is(err, ErrCorrupt) || !strings.HasPrefix(err.Error(), "x.cfb: ") || !strings.Contains(err.Error(), "offset ") {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := Open("x.cfb", good[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
		for _, resealed := range [][]byte{reseal(bad), reseal(good[:i])} {
			if tab, err := Open("x.cfb", resealed); err == nil {
				exercise(t, tab)
			} else if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d resealed: %v", i, err)
			}
		}
	}
	if _, err := Open("x.cfb", append(good, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := Open("x.cfb", make([]byte, MaxSize+1)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the limit is 65536") {
		t.Errorf("too large: %v", err)
	}
	for offset, want := range map[int]string{0: "offset 0: wrong magic", 8: "offset 8: format version", 16: "offset 10: cell width 1, reserved byte 0, 1"} {
		bad := append([]byte(nil), good...)
		bad[offset+1] = 0xff
		if offset == 16 {
			bad[18] = 0xff
		}
		if _, err := Open("x.cfb", reseal(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// exercise asks an opened table something on each dimension; only a panic is wrong.
func exercise(t *testing.T, tab *Table) {
	t.Helper()
	out := new(decision.Response)
	for _, req := range []*decision.Request{edgeRequest(t, 0.05, iphone, "k", "FR"), edgeRequest(t, nil, nil, nil, nil)} {
		if err := tab.Decide(context.Background(), req, out); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Explain(context.Background(), req); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	good := compileEdge(f)
	f.Add(good)
	f.Add(good[:100])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, b := range [][]byte{data, reseal(data)} {
			if tab, err := Open("f.cfb", b); err == nil {
				exercise(t, tab)
			} else if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v is no ErrCorrupt", err)
			}
		}
	})
}

// A file whose checksum is right but whose parts contradict each other is refused: each
// rule of content.validate is broken in turn.
func TestOpenRefusesContradictions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(c *content)
		want   string
	}{
		{"no dimensions", func(c *content) { c.dims, c.lines = nil, nil }, "0 dimensions, want 1 to 16"},
		{"too many dimensions", func(c *content) { c.dims = slices.Repeat(c.dims, 5) }, "20 dimensions, want 1 to 16"},
		{"no actions", func(c *content) { c.actions = nil }, "no actions"},
		{"fallback", func(c *content) { c.fallback = 3 }, "fallback action 3 of 3"},
		{"action without a label", func(c *content) { c.actions[1].label = "" }, "action 1 has no label"},
		{"cell", func(c *content) { c.cells[5] = 3 }, "cell 5 has action 3 of 3"},
		{"too few cells", func(c *content) { c.cells, c.lines = c.cells[:51], c.lines[:17] }, "51 cells, the dimensions have 54"},
		{"a line too many", func(c *content) { c.lines = append(c.lines, 99) }, "bytes are left over"},
		{"a line too few", func(c *content) { c.lines = c.lines[:17] }, "cut off"},
		{"dimension without a name", func(c *content) { c.dims[0].name = "" }, "dimension 0: name"},
		{"dimension without an attribute", func(c *content) { c.dims[0].from = "" }, "dimension 0: name"},
		{"dimension without values", func(c *content) { c.dims[1].values = nil }, "dimension 1: name"},
		{"unknown kind", func(c *content) { c.dims[0].kind = kindCount }, "kind 4"},
		{"missing bin", func(c *content) { c.dims[0].missing = 3 }, "dimension 0: value 3 of 3"},
		{"other bin", func(c *content) { c.dims[3].other = 9 }, "dimension 3: value 9 of 3"},
		{"word", func(c *content) { c.dims[3].texts[0].digit = 9 }, "dimension 3: value 9 of 3"},
		{"range", func(c *content) { c.dims[0].spans[2].digit = 9 }, "dimension 0: value 9 of 3"},
		{"empty range", func(c *content) { c.dims[0].spans[0].hi = 0 }, "range 0 [0,0) is empty or out of order"},
		{"NaN range", func(c *content) { c.dims[0].spans[0].lo = math.NaN() }, "is empty or out of order"},
		{"overlapping ranges", func(c *content) { c.dims[0].spans[1].lo = 0.01 }, "range 1 [0.01,0.1) is empty or out of order"},
		{"long text", func(c *content) { c.version = strings.Repeat("x", maxText+1) }, "too long or not UTF-8"},
		{"text that is not UTF-8", func(c *content) { c.scenarios[0] = "\xff" }, "too long or not UTF-8"},
		{"names", func(c *content) { c.dims, c.cells, c.lines = longNames() }, "the names of all cells take"},
		{"cells", func(c *content) { c.dims[2].values = slices.Repeat([]string{"v"}, 9000) }, "more than 65536 cells"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := decode("edge.cfb", compileEdge(t))
			if err != nil {
				t.Fatal(err)
			}
			tc.damage(c)
			if _, err := Open("x.cfb", c.encode()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// longNames is a table of 36,000 cells whose names take more than 4 MiB together.
func longNames() ([]dimension, []uint16, []int) {
	dims := []dimension{
		{name: "a", from: "a", values: slices.Repeat([]string{strings.Repeat("w", 100)}, 180), missing: noDigit, other: noDigit},
		{name: "b", from: "b", values: slices.Repeat([]string{strings.Repeat("v", 20)}, 200), missing: noDigit, other: noDigit},
	}
	return dims, make([]uint16, 180*200), make([]int, 180)
}
