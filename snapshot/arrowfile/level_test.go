package arrowfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same rows come back from every level, also to the Arrow library's own reader, and
// what takes more CPU takes less space.
func TestLevels(t *testing.T) {
	rows := traffic(1500)
	var want []object
	for _, s := range rows {
		want = append(want, canonSnapshot(s))
	}
	last := int64(1 << 40)
	for _, l := range []Level{LevelFastest, LevelBetter, LevelBest} {
		w := startWriting(t, Options{Level: l, Seed: labelsOf(t, rows)})
		w.append(rows...)
		w.done()
		if got := int64(fileBytes(t, w.dir)); got >= last {
			t.Errorf("%s: %d bytes, the level before took %d", l, got, last)
		} else {
			last = got
		}
		f := mustOpen(t, segments(t, w.dir)[0])
		var got []object
		for _, s := range collect(t, f.Snapshots(), cloneSnapshot) {
			got = append(got, canonSnapshot(s))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s (-want +got):\n%.3000s", l, d)
		}
		if d := cmp.Diff(want, canonRecords(libraryRecords(t, f.data))); d != "" {
			t.Fatalf("%s (-want +got):\n%.3000s", l, d)
		}
	}
	if _, err := Create(t.TempDir(), Options{Level: "tiny"}); err == nil {
		t.Error("an unknown level")
	}
}

func TestDictionaries(t *testing.T) {
	rows := randomRows(newGen(81), 60)
	path, _ := oneSegment(t, rows, 30)
	got := mustOpen(t, path).Dictionaries()
	have := map[string]bool{}
	for _, l := range got["scenario"] {
		have[l] = true
	}
	for _, s := range rows {
		if !have[s.Scenario] {
			t.Fatalf("scenario %q is not among %q", s.Scenario, got["scenario"])
		}
	}
	if len(got["id"]) > 0 || len(got["action"]) == 0 {
		t.Errorf("%q", got)
	}
	// Seeded with them, a writer needs one segment whatever the order of the rows.
	w := startWriting(t, Options{Seed: got, BatchRows: 1})
	for i := range rows {
		w.append(rows[len(rows)-1-i])
	}
	if n := len(w.done()); n != 1 {
		t.Errorf("%d segments", n)
	}
}

func BenchmarkLevels(b *testing.B) {
	rows := traffic(8192)
	for _, l := range []Level{LevelFastest, LevelDefault, LevelBetter, LevelBest} {
		b.Run(string(l), func(b *testing.B) {
			for b.Loop() {
				w, err := Create(b.TempDir(), Options{Level: l, FS: discardFS{}})
				if err != nil {
					b.Fatal(err)
				}
				for _, s := range rows {
					if err := w.Append(s); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.writeBatch(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(w.Stats().Bytes)/float64(len(rows)), "B/row")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
		})
	}
}
