package arrowfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func TestInternerGivesEachLabelOneCode(t *testing.T) {
	d := newInterner([]string{"seed", "", "bad\xff", "seed"})
	if !slices.Equal(d.values, []string{"seed"}) {
		t.Errorf("seeded %q", d.values)
	}
	buf := []byte("label")
	first, _, ok := d.lookup(string(buf))
	if !ok || first != 1 {
		t.Errorf("code %d, %v", first, ok)
	}
	for range 3 {
		for _, want := range []string{"label", "seed"} {
			if code, mended, ok := d.lookup(want); !ok || mended || d.values[code] != want {
				t.Errorf("%q has code %d, mended %v, %v", want, code, mended, ok)
			}
		}
	}
}

func TestInternerMendsAndRemembers(t *testing.T) {
	d := newInterner(nil)
	clean, _, _ := d.lookup("x\uFFFD")
	for range 3 {
		code, mended, ok := d.lookup("x\xff")
		if !ok || !mended || code != clean {
			t.Errorf("code %d (clean %d), mended %v, %v", code, clean, mended, ok)
		}
	}
	if code, mended, ok := d.lookup("x\uFFFD"); code != clean || mended || !ok {
		t.Error("the clean label counts as mended")
	}
	if len(d.values) != 1 {
		t.Errorf("labels %q", d.values)
	}
}

func TestInternerIsCapped(t *testing.T) {
	d := newInterner(nil)
	for i := range maxLabels {
		if _, _, ok := d.lookup(fmt.Sprint(i)); !ok {
			t.Fatalf("label %d was refused", i)
		}
	}
	if _, _, ok := d.lookup("one more"); ok {
		t.Error("a label beyond the cap was taken")
	}
	if code, _, ok := d.lookup("7"); !ok || code != 7 {
		t.Errorf("a known label has code %d, %v", code, ok)
	}
}

// pattern puts values and nulls into a column and returns which rows are null.
func pattern(r *rand.Rand, c *column, rows int, null float64, put func(i int)) []bool {
	nulls := make([]bool, rows)
	for i := range rows {
		if nulls[i] = r.Float64() < null; !nulls[i] {
			put(i)
		}
		*c.rows++
	}
	c.settle()
	return nulls
}

func TestColumnsFillTheGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, null := range []float64{0, 0.3, 0.9, 1} {
		for _, n := range []int{0, 1, 7, 8, 9, 100} {
			for typ, width := range map[dataType]int{typeInt32: 4, typeUTF8: 0, typeBool: 0} {
				set := &columnSet{}
				set.rebuild([]*shape{{name: "c", typ: typ, width: width, nullable: true, dict: noDict}})
				c := set.columns[0]
				nulls := pattern(r, c, n, null, func(i int) {
					switch typ {
					case typeInt32:
						c.u32(uint32(i))
					case typeBool:
						c.bit(true)
					default:
						c.text(fmt.Sprint(i))
					}
				})
				checkColumn(t, c, nulls)
			}
		}
	}
}

func checkColumn(t *testing.T, c *column, nulls []bool) {
	t.Helper()
	n := len(nulls)
	count := 0
	for i, null := range nulls {
		if null {
			count++
		}
		if set := c.valid[i>>3]&(1<<(i&7)) != 0; set == null {
			t.Fatalf("row %d of %d: valid %v, null %v", i, n, set, null)
		}
	}
	if c.n != n || c.nulls != count || len(c.valid) != (n+7)/8 {
		t.Fatalf("%v: %d rows, %d nulls, bitmap of %d; want %d, %d", c.typ, c.n, c.nulls, len(c.valid), n, count)
	}
	switch c.typ {
	case typeInt32:
		for i, null := range nulls {
			if got := binary.LittleEndian.Uint32(c.data[4*i:]); !null && got != uint32(i) {
				t.Fatalf("row %d is %d", i, got)
			}
		}
	case typeBool:
		if len(c.data) != (n+7)/8 {
			t.Fatalf("%d bytes of bits for %d", len(c.data), n)
		}
	default:
		v := vector{shape: &c.shape, n: n, offsets: c.offsets, data: c.data, chars: string(c.data)}
		if err := v.checkOffsets(len(c.data)); err != nil || len(c.offsets) != 4*(n+1) {
			t.Fatalf("%v, %d bytes of offsets for %d rows", err, len(c.offsets), n)
		}
		for i, null := range nulls {
			if want := fmt.Sprint(i); !null && v.str(i) != want || null && v.str(i) != "" {
				t.Fatalf("row %d is %q", i, v.str(i))
			}
		}
	}
}

func TestExpandKeepsTheRows(t *testing.T) {
	set := &columnSet{dicts: map[string]*interner{}, plain: map[string]bool{}}
	set.rebuild([]*shape{{name: "c", typ: typeUTF8, nullable: true, dict: 0, index: 2}})
	c := set.columns[0]
	want := []string{"a", "", "b", "a", "", "c"}
	for i, s := range want {
		if s != "" {
			c.label(s)
		}
		set.n++
		if i == 3 {
			c.expand()
		}
	}
	c.settle()
	v := vector{shape: &c.shape, n: c.n, nulls: c.nulls, valid: c.valid, offsets: c.offsets, chars: string(c.data)}
	for i, s := range want {
		if v.ok(i) != (s != "") || v.str(i) != s {
			t.Errorf("row %d is %q, want %q", i, v.str(i), s)
		}
	}
	if c.shape.dict != noDict || c.nulls != 2 {
		t.Errorf("column %+v", c.shape)
	}
}

// A batch that was written leaves nothing behind in the next one.
func TestBatchesAreIndependent(t *testing.T) {
	g := newGen(101)
	var b rowBatch[snap]
	b.init(nil, snapshotFields(g.schema))
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		t.Fatal(err)
	}
	rows := randomRows(g, 20)
	image := func() string {
		for _, s := range rows {
			b.add(s, 0)
		}
		out, _, _ := enc.recordBatch(nil, b.columns, b.n, nil, sum{})
		b.clear()
		return string(out)
	}
	first := image()
	for _, s := range randomRows(newGen(102), 33) {
		s.Attrs = decision.Attrs{Schema: g.schema, Values: s.Attrs.Values}
		b.add(s, 0)
	}
	b.clear()
	if second := image(); second != first {
		t.Error("the same rows made another batch the second time")
	}
}

func TestVectorChecks(t *testing.T) {
	offsets := func(os ...uint32) []byte {
		var b []byte
		for _, o := range os {
			b = binary.LittleEndian.AppendUint32(b, o)
		}
		return b
	}
	s := &shape{name: "c", typ: typeUTF8, dict: noDict}
	for _, c := range []struct {
		offsets []byte
		limit   int
		ok      bool
	}{
		{offsets(0, 3, 3, 9), 9, true}, {offsets(2, 3, 3, 9), 9, true}, {offsets(0, 3, 2, 9), 9, false},
		{offsets(0, 3, 3, 10), 9, false}, {offsets(0, 1<<31, 1<<31, 1<<31), math.MaxInt, false},
	} {
		v := vector{shape: s, n: 3, offsets: c.offsets}
		if err := v.checkOffsets(c.limit); (err == nil) != c.ok {
			t.Errorf("offsets %v in %d: %v", c.offsets, c.limit, err)
		}
	}
	d := &shape{name: "c", typ: typeUTF8, dict: 1}
	for _, width := range []int{1, 2, 4} {
		d.index = width
		codes := func(last byte) []byte {
			b := make([]byte, 2*width)
			b[width] = last
			return b
		}
		v := vector{shape: d, n: 2, dict: []string{"a", "b"}, data: codes(1)}
		if err := v.checkCodes(); err != nil {
			t.Errorf("width %d: %v", width, err)
		}
		v.data = codes(2)
		if err := v.checkCodes(); err == nil {
			t.Errorf("width %d: a code outside the dictionary", width)
		}
		v.data[2*width-1] = 0xff // negative
		if err := v.checkCodes(); err == nil {
			t.Errorf("width %d: a negative code", width)
		}
		v.nulls, v.valid = 1, []byte{1} // under a null, codes do not count
		if err := v.checkCodes(); err != nil {
			t.Errorf("width %d: a code under a null: %v", width, err)
		}
	}
	v := vector{shape: s, n: 4, nulls: 1, valid: []byte{0b0101}}
	if err := v.checkNulls(); err == nil {
		t.Error("a wrong null count")
	}
}
