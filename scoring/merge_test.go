package scoring

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/snapshot"
)

func seqOf[T any](xs []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range xs {
			if !yield(x, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

func at(segment string, row int64) *snapshot.Outcome {
	o := outcome("x", int(row), "a")
	o.Ref.Segment = segment
	return o
}

func labelAt(segment string, row int64) *snapshot.Label {
	l := label(int(row), "a")
	l.Ref.Segment = segment
	return l
}

// describe writes a merged row as segment/row and who is there.
func describe(r *Row) string {
	var ref snapshot.Ref
	var b strings.Builder
	if r.Label != nil {
		b.WriteByte('L')
	}
	for i, o := range r.Outcomes {
		if o != nil {
			ref = o.Ref
			fmt.Fprint(&b, i)
		}
	}
	return fmt.Sprintf("%s%d:%s", ref.Segment, ref.Row, b.String())
}

func drain(seq iter.Seq2[*Row, error]) (out []string, err error) {
	for r, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, describe(r))
	}
	return out, nil
}

func TestMerge(t *testing.T) {
	labels := seqOf([]*snapshot.Label{labelAt("a", 0), labelAt("a", 2), labelAt("a", 9), labelAt("b", 1)}, nil)
	lanes := []iter.Seq2[*snapshot.Outcome, error]{
		seqOf([]*snapshot.Outcome{at("a", 1), at("a", 2), at("b", 0)}, nil),
		seqOf([]*snapshot.Outcome{at("a", 0), at("a", 2), at("a", 10)}, nil),
		seqOf([]*snapshot.Outcome(nil), nil),
	}
	got, err := drain(Merge(labels, lanes))
	if err != nil {
		t.Fatal(err)
	}
	// Rows are numbers, not text: 10 comes after 2. The labels of a9 and b1 have no decision.
	want := []string{"a0:L1", "a1:0", "a2:L01", "a10:1", "b0:0"}
	if !slices.Equal(got, want) {
		t.Errorf("merged %q, want %q", got, want)
	}
	got, err = drain(Merge(nil, lanes[:1]))
	if err != nil || len(got) != 3 {
		t.Errorf("without labels: %q, %v", got, err)
	}
}

func TestMergeRefuses(t *testing.T) {
	broken := errors.New("bad block at 77")
	wrongID := at("a", 1)
	wrongID.ID = idOf(99)
	wrongLabel := labelAt("a", 0)
	wrongLabel.ID = idOf(98)
	ok := []*snapshot.Outcome{at("a", 0), at("a", 1)}
	for _, tc := range []struct {
		name   string
		labels []*snapshot.Label
		lanes  [][]*snapshot.Outcome
		tail   error
		rows   int
		is     error
		want   string
	}{
		{"backwards", nil, [][]*snapshot.Outcome{ok, {at("a", 1), at("a", 0)}}, nil, 2, ErrOrder, "lane 2: a row 0 after a row 1"},
		{"repeated", nil, [][]*snapshot.Outcome{{at("a", 0), at("a", 0)}}, nil, 1, ErrOrder, "lane 1: a row 0 after a row 0"},
		{"segments backwards", nil, [][]*snapshot.Outcome{{at("b", 0), at("a", 1)}}, nil, 1, ErrOrder, "lane 1: a row 1 after b row 0"},
		{"labels backwards", []*snapshot.Label{labelAt("a", 1), labelAt("a", 0)}, [][]*snapshot.Outcome{{at("b", 0)}}, nil, 0, ErrOrder, "labels: a row 0"},
		{"other decision", nil, [][]*snapshot.Outcome{ok, {wrongID}}, nil, 1, ErrMismatch, "lane 2: a row 1 is decision"},
		{"other label", []*snapshot.Label{wrongLabel}, [][]*snapshot.Outcome{ok}, nil, 0, ErrMismatch, "labels: a row 0 is decision"},
		{"input fails", nil, [][]*snapshot.Outcome{ok}, broken, 2, broken, "lane 1: bad block at 77"},
		{"input fails at once", nil, [][]*snapshot.Outcome{nil}, broken, 0, broken, "lane 1: bad block at 77"},
	} {
		var lanes []iter.Seq2[*snapshot.Outcome, error]
		for _, l := range tc.lanes {
			lanes = append(lanes, seqOf(l, tc.tail))
		}
		rows, err := drain(Merge(seqOf(tc.labels, nil), lanes))
		if !errors.Is(err, tc.is) || !strings.Contains(fmt.Sprint(err), tc.want) || len(rows) != tc.rows {
			t.Errorf("%s: %d rows and error %v, want %d and %s", tc.name, len(rows), err, tc.rows, tc.want)
		}
	}
	_, err := drain(Merge(seqOf([]*snapshot.Label(nil), broken), []iter.Seq2[*snapshot.Outcome, error]{seqOf(ok, nil)}))
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "labels: ") {
		t.Errorf("labels fail: %v", err)
	}
}

func TestMergeStopsWhenAsked(t *testing.T) {
	closed := 0
	lane := func(yield func(*snapshot.Outcome, error) bool) {
		defer func() { closed++ }()
		for i := int64(0); ; i++ {
			if !yield(at("a", i), nil) {
				return
			}
		}
	}
	n := 0
	for range Merge(nil, []iter.Seq2[*snapshot.Outcome, error]{lane, lane}) {
		if n++; n == 3 {
			break
		}
	}
	if closed != 2 {
		t.Errorf("%d of 2 inputs were released", closed)
	}
}

func TestMergeAgainstASort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		want := map[snapshot.Ref]string{}
		var lanes []iter.Seq2[*snapshot.Outcome, error]
		for i := range 4 {
			var lane []*snapshot.Outcome
			for _, segment := range []string{"a", "b"} {
				for row := range int64(12) {
					if rng.IntN(3) == 0 {
						lane = append(lane, at(segment, row))
						want[snapshot.Ref{Segment: segment, Row: row}] += fmt.Sprint(i)
					}
				}
			}
			lanes = append(lanes, seqOf(lane, nil))
		}
		refs := make([]snapshot.Ref, 0, len(want))
		for r := range want {
			refs = append(refs, r)
		}
		slices.SortFunc(refs, compareRefs)
		var expect []string
		for _, r := range refs {
			expect = append(expect, fmt.Sprintf("%s%d:%s", r.Segment, r.Row, want[r]))
		}
		got, err := drain(Merge(nil, lanes))
		if err != nil || !slices.Equal(got, expect) {
			t.Fatalf("merged %q, want %q (%v)", got, expect, err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	rows := make([]*snapshot.Outcome, 10_000)
	for i := range rows {
		rows[i] = at("a", int64(i))
	}
	for b.Loop() {
		lanes := []iter.Seq2[*snapshot.Outcome, error]{seqOf(rows, nil), seqOf(rows, nil), seqOf(rows, nil), seqOf(rows, nil), seqOf(rows, nil)}
		for _, err := range Merge(nil, lanes) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/outcome")
}
