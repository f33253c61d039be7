package peers

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// The comparisons mean something only if all kept the same. Each peer's output is read back
// into the filled fields of a row.

const testRows = 9000 // more than one batch

func wanted(rows []snapshot.Snapshot) []ParquetRow {
	out := make([]ParquetRow, len(rows))
	for i := range rows {
		out[i].set(&rows[i])
	}
	return out
}

func same(t *testing.T, want, got []ParquetRow) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows of %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d:\n%+v\nwant\n%+v", i, got[i], want[i])
		}
	}
}

func TestSegmentKeepsTheFields(t *testing.T) {
	rows := NewTraffic(5).Rows(testRows)
	path, err := segment(t.TempDir(), rows)
	if err != nil {
		t.Fatal(err)
	}
	f, err := arrowfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]ParquetRow, 0, len(rows))
	for s, err := range f.Snapshots() {
		if err != nil {
			t.Fatal(err)
		}
		var r ParquetRow
		r.set(s)
		r.Input, r.Features = slices.Clone(r.Input), slices.Clone(r.Features)
		got = append(got, r)
	}
	same(t, wanted(rows), got)
}

func TestParquetKeepsTheFields(t *testing.T) {
	rows := NewTraffic(5).Rows(testRows)
	var b memory
	write := parquetZstd(&b)
	for range 2 { // the writer is used again
		b.Reset()
		if err := write(rows); err != nil {
			t.Fatal(err)
		}
	}
	var got []ParquetRow
	if _, err := readParquet(bytes.NewReader(b.Bytes()), make([]ParquetRow, 64), func(r *ParquetRow) {
		c := *r
		c.Input, c.Features, c.Candidates = slices.Clone(r.Input), slices.Clone(r.Features), slices.Clone(r.Candidates)
		got = append(got, c)
	}); err != nil {
		t.Fatal(err)
	}
	same(t, wanted(rows), got)
}

// The Arrow library reads its own file and ours: the columns that it is compared on have
// the names, types and values of ours.
func TestArrowKeepsTheFields(t *testing.T) {
	rows := NewTraffic(5).Rows(testRows)
	a, err := newArrowBuilder()
	if err != nil {
		t.Fatal(err)
	}
	var built memory
	for range 2 { // the builders are used again
		built.Reset()
		if err := arrowBuilt(a, &built, rows); err != nil {
			t.Fatal(err)
		}
	}
	path, err := segment(t.TempDir(), rows)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"its own": built.Bytes(), "ours": own} {
		var got []ParquetRow
		if _, err := readArrow(data, func(rec arrow.Record) { got = append(got, fromArrow(t, rec)...) }); err != nil {
			t.Fatal(name, err)
		}
		same(t, wanted(rows), got)
	}
}

// fromArrow takes the filled columns out of a record, by name.
func fromArrow(t *testing.T, rec arrow.Record) []ParquetRow {
	t.Helper()
	column := func(name string) arrow.Array {
		at := rec.Schema().FieldIndices(name)
		if len(at) != 1 {
			t.Fatalf("column %s: %v", name, at)
		}
		return rec.Column(at[0])
	}
	text := func(a arrow.Array, i int) string {
		d := a.(*array.Dictionary)
		return d.Dictionary().(*array.String).Value(d.GetValueIndex(i))
	}
	id := func(name string, i int) [16]byte { return [16]byte(column(name).(*array.FixedSizeBinary).Value(i)) }
	i64 := func(name string, i int) int64 { return column(name).(*array.Int64).Value(i) }
	f64 := func(name string, i int) float64 { return column(name).(*array.Float64).Value(i) }
	cands, features := column("candidates").(*array.List), column("features").(*array.List)
	item, stages := cands.ListValues().(*array.Struct), column("stages").(*array.Struct)
	stage := func(name string, i int) int64 {
		at, _ := stages.DataType().(*arrow.StructType).FieldIdx(name)
		return stages.Field(at).(*array.Int64).Value(i)
	}
	out := make([]ParquetRow, rec.NumRows())
	for i := range out {
		r := ParquetRow{ID: id("id", i), RequestID: id("request_id", i), Status: text(column("status"), i),
			Time: int64(column("ts").(*array.Timestamp).Value(i)), Scenario: text(column("scenario"), i), KeepProb: f64("keep_prob", i),
			Input: column("input").(*array.Binary).Value(i), Action: text(column("action"), i), Confidence: f64("confidence", i),
			Backend: text(column("backend"), i), EngineVersion: text(column("engine_version"), i), StrategyVersion: text(column("strategy_version"), i),
			Latency: i64("latency_ns", i), Propensity: f64("propensity", i), Cost: i64("cost", i), TraceID: id("trace_id", i),
			Stages: ParquetStages{stage("queue", i), stage("features", i), stage("rules", i), stage("serialise", i)}}
		from, to := cands.ValueOffsets(i)
		for k := from; k < to; k++ {
			r.Candidates = append(r.Candidates, ParquetCandidate{text(item.Field(0), int(k)), item.Field(1).(*array.Float32).Value(int(k))})
		}
		from, to = features.ValueOffsets(i)
		r.Features = slices.Clone(features.ListValues().(*array.Float32).Float32Values()[from:to])
		r.Input = slices.Clone(r.Input)
		out[i] = r
	}
	return out
}

// logLine is a line of the log; members without a tag have the field's name in lower case.
type logLine struct {
	ID, Status, Scenario, Action, Backend string

	RequestID       string `json:"request_id"`
	TraceID         string `json:"trace_id"`
	EngineVersion   string `json:"engine_version"`
	StrategyVersion string `json:"strategy_version"`
	Input           json.RawMessage
	Ts, Cost        int64
	Latency         int64   `json:"latency_ns"`
	KeepProb        float64 `json:"keep_prob"`

	Confidence, Propensity float64
	Features               []float32
	Candidates             []ParquetCandidate
	Stages                 ParquetStages
}

func (l *logLine) row(t *testing.T) ParquetRow {
	t.Helper()
	id := func(s string) (id [16]byte) {
		if n, err := hex.Decode(id[:], []byte(s)); err != nil || n != 16 {
			t.Fatalf("id %q: %v", s, err)
		}
		return id
	}
	return ParquetRow{ID: id(l.ID), RequestID: id(l.RequestID), TraceID: id(l.TraceID), Status: l.Status, Scenario: l.Scenario,
		Action: l.Action, Backend: l.Backend, Input: l.Input, Time: l.Ts, Latency: l.Latency, Cost: l.Cost, KeepProb: l.KeepProb,
		Confidence: l.Confidence, Propensity: l.Propensity, EngineVersion: l.EngineVersion, StrategyVersion: l.StrategyVersion,
		Features: l.Features, Candidates: l.Candidates, Stages: l.Stages}
}

func TestLogLinesKeepTheFields(t *testing.T) {
	rows := NewTraffic(5).Rows(300)
	for name, line := range map[string]func(*zerolog.Logger, *snapshot.Snapshot){"escaped": logRow, "embedded": logRowRaw} {
		var b bytes.Buffer
		log := zerolog.New(&b)
		for i := range rows {
			line(&log, &rows[i])
		}
		var got []ParquetRow
		lines := bufio.NewScanner(&b)
		for lines.Scan() {
			var l logLine
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(name, err)
			}
			if name == "escaped" {
				var s string
				if err := json.Unmarshal(l.Input, &s); err != nil {
					t.Fatal(err)
				}
				l.Input = []byte(s)
			}
			got = append(got, l.row(t))
		}
		same(t, wanted(rows), got)
	}
}

// What the zstd-only cases compress is what they say: each frame holds its buffer.
func TestFramesHoldTheColumns(t *testing.T) {
	rows := NewTraffic(5).Rows(testRows)
	f, err := makeFiles(t.TempDir(), rows)
	if err != nil {
		t.Fatal(err)
	}
	defer f.segment.Close()
	records, err := keptRecords(rows)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	total := 0
	for i, want := range columnBuffers(records) {
		got, err := dec.DecodeAll(f.frames[i], nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("buffer %d: %v", i, err)
		}
		total += len(got)
	}
	// The fixed columns alone: three ids, eleven of eight bytes, six labels, the features.
	if per := total / len(rows); per < 3*16+11*8+6*2+12*4+370 {
		t.Errorf("%d bytes a row", per)
	}
}
