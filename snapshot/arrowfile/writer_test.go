package arrowfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// plainRow is a valid row with nothing but what is required.
func plainRow(scenario, action string) *snapshot.Snapshot {
	return &snapshot.Snapshot{ID: decision.NewID(time.Now()), RequestID: decision.NewID(time.Now()), Status: decision.OK,
		Time: time.Unix(1_700_000_000, 1).UTC(), Scenario: scenario, Action: action, KeepProb: 1}
}

// writing is a writer under test with a clock.
type writing struct {
	*Writer
	t   *testing.T
	dir string
	now time.Time
}

func startWriting(t *testing.T, opts Options) *writing {
	t.Helper()
	w := &writing{t: t, dir: t.TempDir(), now: time.Unix(1_700_000_000, 0)}
	opts.Host, opts.Boot, opts.Now = "h", "b", func() time.Time { return w.now }
	var err error
	if w.Writer, err = Create(w.dir, opts); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *writing) append(rows ...*snapshot.Snapshot) {
	w.t.Helper()
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *writing) flush() {
	w.t.Helper()
	if err := w.Flush(snapshot.Ledger{}); err != nil {
		w.t.Fatal(err)
	}
}

// done closes the writer, verifies all segments and returns their metadata.
func (w *writing) done() []Meta {
	w.t.Helper()
	if err := w.Close(snapshot.Ledger{}, totalOf(int(w.Watermark())+w.batch.n)); err != nil {
		w.t.Fatal(err)
	}
	var out []Meta
	for _, p := range segments(w.t, w.dir) {
		r, err := Verify(p)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, r.Meta)
	}
	return out
}

func rowCounts(ms []Meta) (out []int64) {
	for _, m := range ms {
		out = append(out, m.Rows)
	}
	return out
}

func TestANewLabelStartsASegment(t *testing.T) {
	w := startWriting(t, Options{})
	w.append(plainRow("s", "a"), plainRow("s", "b"))
	w.flush()
	w.append(plainRow("s", "a"))
	w.flush() // known labels: the same segment
	w.append(plainRow("s", "a"), plainRow("s", "c"), plainRow("s", "d"))
	w.flush() // the whole batch goes to the new segment
	if got := rowCounts(w.done()); !slices.Equal(got, []int64{3, 3}) {
		t.Errorf("rows %v", got)
	}
}

func TestSeededLabelsStartNone(t *testing.T) {
	w := startWriting(t, Options{Seed: map[string][]string{"action": {"a", "b", "c"}, "scenario": {"s", "r"}}})
	for _, a := range []string{"a", "b", "c"} {
		w.append(plainRow("s", a), plainRow("r", a))
		w.flush()
	}
	if got := rowCounts(w.done()); !slices.Equal(got, []int64{6}) {
		t.Errorf("rows %v", got)
	}
}

func TestACaptureListStartsASegment(t *testing.T) {
	one, _ := decision.NewSchema(decision.Field{Name: "x", Type: decision.Int})
	same, _ := decision.NewSchema(decision.Field{Name: "x", Type: decision.Int})
	two, _ := decision.NewSchema(decision.Field{Name: "x", Type: decision.String})
	row := func(s *decision.Schema, v decision.Value) *snapshot.Snapshot {
		r := plainRow("s", "a")
		r.Attrs = decision.Attrs{Schema: s, Values: []decision.Value{v}}
		return r
	}
	w := startWriting(t, Options{})
	w.append(row(one, decision.IntValue(1)), row(same, decision.IntValue(2)), row(two, decision.StringValue("")), plainRow("s", "a"))
	metas := w.done()
	if got := rowCounts(metas); !slices.Equal(got, []int64{2, 1, 1}) {
		t.Fatalf("rows %v", got)
	}
	if metas[0].CaptureDigest == metas[1].CaptureDigest || metas[1].CaptureDigest == metas[2].CaptureDigest {
		t.Errorf("capture digests %+v", metas)
	}
	paths := segments(t, w.dir)
	for i, want := range []*decision.Schema{one, two, nil} {
		if got := mustOpen(t, paths[i]).Schema(); !sameSchema(got, want) || (want == nil) != (got == nil) {
			t.Errorf("segment %d: schema %v, want %v", i, got.Fields(), want.Fields())
		}
	}
}

func TestSamplingIsRecorded(t *testing.T) {
	for _, want := range []string{"", "rate=0.1 by=entity keep=action=\u00e4"} {
		w := startWriting(t, Options{Sampling: want})
		w.append(plainRow("s", "a"))
		if got := w.done()[0].Sampling; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, bad := range []string{strings.Repeat("x", maxSamplingText+1), "\xff"} {
		if _, err := Create(t.TempDir(), Options{Sampling: bad}); err == nil {
			t.Errorf("%d bytes of sampling rules are accepted", len(bad))
		}
	}
}

func TestRotationBySizeAndAge(t *testing.T) {
	w := startWriting(t, Options{SegmentBytes: 1})
	for range 3 {
		w.append(plainRow("s", "a"))
		w.flush()
	}
	if got := rowCounts(w.done()); len(got) < 3 {
		t.Errorf("by size: rows %v", got)
	}
	w = startWriting(t, Options{SegmentAge: time.Minute})
	w.append(plainRow("s", "a"))
	w.flush()
	w.now = w.now.Add(59 * time.Second)
	w.append(plainRow("s", "a"))
	w.flush()
	w.now = w.now.Add(2 * time.Second)
	w.flush() // nothing pending: the old segment is sealed, and readers see it
	if got := segments(t, w.dir); len(got) != 1 {
		t.Errorf("sealed after a minute: %v", got)
	}
	w.append(plainRow("s", "a"))
	metas := w.done()
	if got := rowCounts(metas); !slices.Equal(got, []int64{2, 1}) {
		t.Errorf("by age: rows %v", got)
	}
	if metas[0].Total != nil || metas[1].Total == nil || metas[1].Sequence != 2 || metas[1].Host != "h" || metas[1].Boot != "b" {
		t.Errorf("meta %+v", metas)
	}
}

func TestSegmentMeta(t *testing.T) {
	w := startWriting(t, Options{FeatureSets: map[string][]string{"v1": {"a", "b"}}})
	for i, version := range []string{"2", "1", "2"} {
		s := plainRow("s", "a")
		s.Artefact.StrategyVersion = version
		s.Time = time.Unix(int64(100-i), 5).UTC()
		w.append(s)
	}
	m := w.done()[0]
	if !slices.Equal(m.StrategyVersions, []string{"1", "2"}) || !m.MinTime.Equal(time.Unix(98, 5)) || !m.MaxTime.Equal(time.Unix(100, 5)) {
		t.Errorf("meta %+v", m)
	}
	if !slices.Equal(m.FeatureSets["v1"], []string{"a", "b"}) || m.SchemaVersion != 1 || m.Kind != KindSnapshot || len(m.Digest) != 64 {
		t.Errorf("meta %+v", m)
	}
}

// columnTypes returns the dictionary state of the label columns in each segment.
func hasDict(t *testing.T, path, name string) bool {
	t.Helper()
	for _, s := range mustOpen(t, path).shapes {
		if s.name == name {
			return s.dict != noDict
		}
		if s.name == "candidates" && name == "candidates.action" {
			return s.children[0].children[0].dict != noDict
		}
	}
	t.Fatalf("no column %s", name)
	return false
}

func TestChurningLabelsBecomePlainText(t *testing.T) {
	w := startWriting(t, Options{})
	var want []*snapshot.Snapshot
	for i := range 6 {
		s := plainRow("s", fmt.Sprint("action-", i))
		s.Candidates = []decision.Candidate{{Action: s.Action}}
		want = append(want, s)
		w.append(s)
		w.flush()
	}
	w.done()
	paths := segments(t, w.dir)
	// The second and third segment were forced; the third is plain and takes all the rest.
	if len(paths) != 3 {
		t.Fatalf("segments %v", paths)
	}
	for _, name := range []string{"action", "question", "candidates.action"} {
		if !hasDict(t, paths[1], name) || hasDict(t, paths[2], name) {
			t.Errorf("column %s did not fall back", name)
		}
	}
	if !hasDict(t, paths[2], "scenario") {
		t.Error("scenario fell back too")
	}
	diff(t, want, withoutRefs(readDir(t, w.dir)))
}

func TestTooManyLabelsBecomePlainText(t *testing.T) {
	w := startWriting(t, Options{})
	var want []*snapshot.Snapshot
	for i := range maxLabels + 100 {
		s := plainRow("s", fmt.Sprint("action-", i%(maxLabels+50)))
		if i%7 == 0 {
			s.Candidates = []decision.Candidate{{Action: s.Action}, {Action: "x"}}
		}
		want = append(want, s)
	}
	w.append(want...)
	w.done()
	paths := segments(t, w.dir)
	if len(paths) != 1 || hasDict(t, paths[0], "action") || hasDict(t, paths[0], "candidates.action") {
		t.Errorf("segments %v", paths)
	}
	diff(t, want, withoutRefs(readDir(t, w.dir)))
}

func TestInvalidUTF8IsReplacedAndSaidSo(t *testing.T) {
	schema, _ := decision.NewSchema(decision.Field{Name: "headers.user-agent", Type: decision.String})
	row := func() *snapshot.Snapshot {
		s := plainRow("s", "a")
		s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("x\xffy")}}
		s.RuleID, s.Redacted = "r\xfe", []string{"path:masked"}
		return s
	}
	w := startWriting(t, Options{})
	w.append(row(), row(), plainRow("s", "a"))
	if m := w.done(); m[0].Mended != 4 {
		t.Errorf("mended %+v", m)
	}
	got := readDir(t, w.dir)
	for _, s := range got[:2] {
		if s.Attrs.Get("headers.user-agent").Str() != "x\uFFFDy" || s.RuleID != "r\uFFFD" {
			t.Errorf("row %+v", s)
		}
		if want := []string{"path:masked", "attrs.headers.user-agent:utf8", "rule_id:utf8"}; !slices.Equal(s.Redacted, want) {
			t.Errorf("redacted %q", s.Redacted)
		}
	}
	if got[2].Redacted != nil {
		t.Errorf("redacted %q", got[2].Redacted)
	}
}

func TestRowsAreRefused(t *testing.T) {
	schema, _ := decision.NewSchema(decision.Field{Name: "x", Type: decision.Int})
	bad := map[string]func(*snapshot.Snapshot){
		"invalid": func(s *snapshot.Snapshot) { s.KeepProb = 0 },
		"attribute type": func(s *snapshot.Snapshot) {
			s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("1")}}
		},
		"attribute count": func(s *snapshot.Snapshot) { s.Attrs = decision.Attrs{Values: []decision.Value{decision.IntValue(1)}} },
		"too large":       func(s *snapshot.Snapshot) { s.Input = make([]byte, maxRowBytes+1) },
	}
	w := startWriting(t, Options{})
	for name, change := range bad {
		s := plainRow("s", "a")
		change(s)
		if err := w.Append(s); !errors.Is(err, snapshot.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.append(plainRow("s", "a"))
	if got := rowCounts(w.done()); !slices.Equal(got, []int64{1}) {
		t.Errorf("rows %v", got)
	}
}

func TestBatchesStayBelowTheirBytes(t *testing.T) {
	w := startWriting(t, Options{BatchBytes: 10_000})
	for range 5 {
		s := plainRow("s", "a")
		s.Input = make([]byte, 6000)
		w.append(s)
	}
	w.done()
	if f := mustOpen(t, segments(t, w.dir)[0]); len(f.batches) != 5 {
		t.Errorf("%d batches", len(f.batches))
	}
}

func TestLossesWithoutRows(t *testing.T) {
	w := startWriting(t, Options{})
	lose := func(n uint64) {
		t.Helper()
		if err := w.Flush(snapshot.Ledger{Offered: n, SampledOut: n}); err != nil {
			t.Fatal(err)
		}
	}
	lose(2)
	if open, _ := filepath.Glob(filepath.Join(w.dir, "*")); len(open) != 0 {
		t.Errorf("files after the first losses: %v", open)
	}
	w.now = w.now.Add(lossEvery)
	lose(3)
	open, _ := filepath.Glob(filepath.Join(w.dir, "*"+OpenExt))
	if len(open) != 1 {
		t.Fatalf("open files %v", open)
	}
	if l := mustOpen(t, open[0]).Meta().Ledger; l.Offered != 5 || l.SampledOut != 5 || l.Written != 0 {
		t.Errorf("ledger %+v", l)
	}
	if err := w.Flush(snapshot.Ledger{Offered: 1}); !errors.Is(err, snapshot.ErrLedger) {
		t.Errorf("losses that do not close: %v", err)
	}
	if err := w.Flush(snapshot.Ledger{Offered: 1, Written: 1}); !errors.Is(err, snapshot.ErrLedger) {
		t.Errorf("losses that count rows: %v", err)
	}
	w.append(plainRow("s", "a"))
	var sum snapshot.Ledger
	for _, m := range w.done() {
		sum.Add(m.Ledger)
	}
	if sum.Offered != 6 || sum.Written != 1 || sum.SampledOut != 5 || sum.Check() != nil {
		t.Errorf("ledger %+v", sum)
	}
}

func TestCloseWithoutRows(t *testing.T) {
	w := startWriting(t, Options{})
	if metas := w.done(); len(metas) != 0 {
		t.Errorf("files for nothing: %+v", metas)
	}
	schema, _ := decision.NewSchema(decision.Field{Name: "x", Type: decision.Int})
	w = startWriting(t, Options{Schema: schema})
	total := snapshot.Ledger{Offered: 3, Dropped: map[string]uint64{"closed": 3}}
	if err := w.Close(total, total); err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, segments(t, w.dir)[0])
	if m := f.Meta(); m.Rows != 0 || m.Ledger.Dropped["closed"] != 3 || m.Total.Offered != 3 || !sameSchema(f.Schema(), schema) {
		t.Errorf("meta %+v", m)
	}
	if rows := collect(t, f.Snapshots(), cloneSnapshot); len(rows) != 0 {
		t.Errorf("%d rows", len(rows))
	}
	if _, err := Verify(segments(t, w.dir)[0]); err != nil {
		t.Error(err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"host": {Host: "a/b"}, "boot": {Boot: "../x"}, "sync": {Sync: "often"}, "rows": {BatchRows: -1},
		"rows, too many": {BatchRows: maxBatchRows + 1}, "bytes": {BatchBytes: maxRowBytes + 1}, "size": {SegmentBytes: -1},
	} {
		if _, err := Create(t.TempDir(), o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(file, Options{}); err == nil {
		t.Error("a file was taken for a directory")
	}
	if _, err := CreateLabels(filepath.Join(t.TempDir(), "labels"), Options{}); err == nil || !strings.Contains(err.Error(), Ext) {
		t.Errorf("name without extension: %v", err)
	}
}

func TestSegmentsAreNeverOverwritten(t *testing.T) {
	w := startWriting(t, Options{})
	w.append(plainRow("s", "a"))
	w.done()
	again, err := Create(w.dir, Options{Host: "h", Boot: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Append(plainRow("s", "a")), again.Flush(snapshot.Ledger{})); err != nil {
		t.Fatal(err) // the open file is new
	}
	if err := again.Close(snapshot.Ledger{}, totalOf(1)); !errors.Is(err, os.ErrExist) {
		t.Errorf("close: %v", err)
	}
}

func TestLaterBootsSortLater(t *testing.T) {
	var names []string
	for _, ms := range []int64{1_000, 1_700_000_000_000, 1_700_000_000_001, 4_000_000_000_000} {
		o, err := Options{Host: "h", Now: func() time.Time { return time.UnixMilli(ms) }}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, segmentName(&o, 9), segmentName(&o, 10), segmentName(&o, 100))
	}
	if !slices.IsSorted(names) {
		t.Errorf("names %q", names)
	}
	if got := SegmentOf("/d/" + names[0] + OpenExt); got+Ext != names[0] {
		t.Errorf("segment %q of %q", got, names[0])
	}
}
