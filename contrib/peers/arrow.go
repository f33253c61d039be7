package peers

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	allocator "github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// arrowBatch is the recorder's number of rows in a batch.
const arrowBatch = 8192

// labels are the values of the dictionaries. A file of the Arrow library cannot take
// another dictionary once it has one, so they are there before the first row.
var labels = map[string][]string{
	"status": {decision.OK.String()}, "scenario": scenarios, "action": slices.Concat(actionSets...), "backend": backends,
	"engine_version": engines, "strategy_version": plans,
}

// arrowSchema has the filled columns of a segment, under its names and types.
func arrowSchema() *arrow.Schema {
	id := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	label := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
	f32, f64, i64 := arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Int64
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	return arrow.NewSchema([]arrow.Field{
		field("id", id), field("request_id", id), field("status", label), field("ts", arrow.FixedWidthTypes.Timestamp_ns),
		field("scenario", label), field("input", arrow.BinaryTypes.Binary),
		field("candidates", arrow.ListOf(arrow.StructOf(field("action", label), field("score", f32)))),
		field("features", arrow.ListOf(f32)), field("action", label), field("confidence", f64), field("backend", label),
		field("engine_version", label), field("strategy_version", label), field("latency_ns", i64),
		field("stages", arrow.StructOf(field("queue", i64), field("features", i64), field("rules", i64), field("serialise", i64))),
		field("propensity", f64), field("keep_prob", f64), field("cost", i64), field("trace_id", id),
	}, nil)
}

// arrowBuilder fills the library's builders.
type arrowBuilder struct {
	b *array.RecordBuilder
}

func newArrowBuilder() (*arrowBuilder, error) {
	b := array.NewRecordBuilder(allocator.DefaultAllocator, arrowSchema())
	for i, f := range b.Schema().Fields() {
		if err := seedDictionary(b.Field(i), labels[f.Name]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	item := b.Field(6).(*array.ListBuilder).ValueBuilder().(*array.StructBuilder)
	return &arrowBuilder{b}, seedDictionary(item.FieldBuilder(0), labels["action"])
}

func seedDictionary(b array.Builder, values []string) error {
	d, ok := b.(*array.BinaryDictionaryBuilder)
	if !ok || len(values) == 0 {
		return nil
	}
	a := array.NewStringBuilder(allocator.DefaultAllocator)
	a.AppendValues(values, nil)
	return d.InsertStringDictValues(a.NewStringArray())
}

// add appends one row. The builders of labels take a string at the cost of a look-up.
func (a *arrowBuilder) add(s *snapshot.Snapshot) error {
	var err error
	label := func(i int, v string) {
		if e := a.b.Field(i).(*array.BinaryDictionaryBuilder).AppendString(v); e != nil {
			err = e
		}
	}
	a.b.Field(0).(*array.FixedSizeBinaryBuilder).Append(s.ID[:])
	a.b.Field(1).(*array.FixedSizeBinaryBuilder).Append(s.RequestID[:])
	label(2, s.Status.String())
	a.b.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(s.Time.UnixNano()))
	label(4, s.Scenario)
	a.b.Field(5).(*array.BinaryBuilder).Append(s.Input)
	if e := a.candidates(s.Candidates); e != nil {
		err = e
	}
	f := a.b.Field(7).(*array.ListBuilder)
	f.Append(true)
	f.ValueBuilder().(*array.Float32Builder).AppendValues(s.Features, nil)
	label(8, s.Action)
	a.b.Field(9).(*array.Float64Builder).Append(s.Confidence.V)
	label(10, s.Backend)
	label(11, s.Artefact.EngineVersion)
	label(12, s.Artefact.StrategyVersion)
	a.b.Field(13).(*array.Int64Builder).Append(int64(s.Latency.V))
	st := a.b.Field(14).(*array.StructBuilder)
	st.Append(true)
	for i, v := range [...]decision.Opt[time.Duration]{s.Stages.Queue, s.Stages.Features, s.Stages.Rules, s.Stages.Serialise} {
		st.FieldBuilder(i).(*array.Int64Builder).Append(int64(v.V))
	}
	a.b.Field(15).(*array.Float64Builder).Append(s.Propensity.V)
	a.b.Field(16).(*array.Float64Builder).Append(s.KeepProb)
	a.b.Field(17).(*array.Int64Builder).Append(s.Cost.V)
	a.b.Field(18).(*array.FixedSizeBinaryBuilder).Append(s.TraceID.V[:])
	return err
}

func (a *arrowBuilder) candidates(cs []decision.Candidate) error {
	list := a.b.Field(6).(*array.ListBuilder)
	list.Append(true)
	item := list.ValueBuilder().(*array.StructBuilder)
	for i := range cs {
		item.Append(true)
		if err := item.FieldBuilder(0).(*array.BinaryDictionaryBuilder).AppendString(cs[i].Action); err != nil {
			return err
		}
		item.FieldBuilder(1).(*array.Float32Builder).Append(cs[i].Score.V)
	}
	return nil
}

// records builds the batches of rows and hands each over.
func (a *arrowBuilder) records(rows []snapshot.Snapshot, each func(arrow.Record) error) error {
	for len(rows) > 0 {
		n := min(len(rows), arrowBatch)
		for i := range n {
			if err := a.add(&rows[i]); err != nil {
				return err
			}
		}
		rec := a.b.NewRecord()
		if err := each(rec); err != nil {
			return err
		}
		rec.Release()
		rows = rows[n:]
	}
	return nil
}

// arrowWriter opens the library's own writer with its own zstd, whose level has no option.
func arrowWriter(out io.WriteSeeker) (*ipc.FileWriter, error) {
	return ipc.NewFileWriter(out, ipc.WithSchema(arrowSchema()), ipc.WithZstd())
}

// arrowBuilt encodes rows through the library's builders.
func arrowBuilt(a *arrowBuilder, out io.WriteSeeker, rows []snapshot.Snapshot) error {
	w, err := arrowWriter(out)
	if err != nil {
		return err
	}
	if err := a.records(rows, w.Write); err != nil {
		return err
	}
	return w.Close()
}

// arrowReady encodes columns that are there already.
func arrowReady(out io.WriteSeeker, records []arrow.Record) error {
	w, err := arrowWriter(out)
	if err != nil {
		return err
	}
	for _, rec := range records {
		if err := w.Write(rec); err != nil {
			return err
		}
	}
	return w.Close()
}

// keptRecords builds the batches of rows and keeps them.
func keptRecords(rows []snapshot.Snapshot) (records []arrow.Record, err error) {
	a, err := newArrowBuilder()
	if err != nil {
		return nil, err
	}
	err = a.records(rows, func(rec arrow.Record) error {
		rec.Retain()
		records = append(records, rec)
		return nil
	})
	return records, err
}

// columnBuffers are the buffers of the records' columns, dictionaries left out.
func columnBuffers(records []arrow.Record) (buffers [][]byte) {
	var walk func(arrow.ArrayData)
	walk = func(d arrow.ArrayData) {
		for _, b := range d.Buffers() {
			if b != nil && b.Len() > 0 {
				buffers = append(buffers, b.Bytes())
			}
		}
		for _, c := range d.Children() {
			walk(c)
		}
	}
	for _, rec := range records {
		for _, c := range rec.Columns() {
			walk(c.Data())
		}
	}
	return buffers
}

// readArrow reads all batches of a file with the library's reader, which decodes every
// column whichever are wanted.
func readArrow(data []byte, each func(arrow.Record)) (rows int, err error) {
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	for i := range r.NumRecords() {
		rec, err := r.RecordAt(i)
		if err != nil {
			return rows, err
		}
		rows += int(rec.NumRows())
		each(rec)
		rec.Release()
	}
	return rows, r.Close()
}
