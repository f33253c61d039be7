package arrowfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/clefbench/clefbench/snapshot"
)

// otherTypes are the types of the Arrow library, simple ones first.
func otherTypes() []arrow.DataType {
	types := []arrow.DataType{arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString,
		arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal256Type{Precision: 50, Scale: 2},
		arrow.FixedWidthTypes.Float16, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns,
		arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
		&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Berlin"}}
	types = append(types, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64)
	return append(types, nestedTypes()...)
}

func nestedTypes() []arrow.DataType {
	text, view := arrow.BinaryTypes.String, arrow.BinaryTypes.StringView
	dict := func(index, value arrow.DataType) *arrow.DictionaryType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	fields := []arrow.Field{{Name: "a", Type: view, Nullable: true}, {Name: "b", Type: dict(arrow.PrimitiveTypes.Int8, text), Nullable: true}}
	return []arrow.DataType{arrow.ListOf(text), arrow.LargeListOf(view), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Uint16), arrow.MapOf(text, view),
		arrow.ListViewOf(text), arrow.LargeListViewOf(arrow.ListOf(text)), arrow.StructOf(fields...), arrow.ListOf(arrow.StructOf(fields...)),
		arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, text), arrow.SparseUnionOf(fields[:1], []arrow.UnionTypeCode{5}),
		arrow.DenseUnionOf([]arrow.Field{{Name: "x", Type: text}, {Name: "y", Type: arrow.PrimitiveTypes.Int64}}, []arrow.UnionTypeCode{1, 4}),
		dict(arrow.PrimitiveTypes.Int8, text), dict(arrow.PrimitiveTypes.Int64, text), dict(arrow.PrimitiveTypes.Uint8, text),
		dict(arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int64), dict(arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Float64),
		dict(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.Binary)}
}

// filled is an array of n values of a type: of its builder's zero value, nulls, and texts
// where it is one of text.
func filled(t *testing.T, typ arrow.DataType, n int) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	defer b.Release()
	for i := range n {
		text := fmt.Sprintf("a text that is longer than a view holds, %d", i%5)
		switch b := b.(type) {
		case array.StringLikeBuilder:
			b.Append(text)
		case *array.BinaryDictionaryBuilder:
			if err := b.AppendString(text); err != nil {
				t.Fatal(err)
			}
		case *array.Int64Builder:
			b.Append(int64(i))
		case *array.Decimal128Builder:
			b.Append(decimal128.FromU64(uint64(i)))
		case *array.ListBuilder:
			b.Append(true)
			for range i % 3 {
				b.ValueBuilder().AppendEmptyValue()
			}
		default:
			b.AppendEmptyValue()
		}
		if i%4 == 3 && i < n-1 {
			b.AppendNull()
		}
	}
	all := b.NewArray()
	return array.NewSlice(all, 0, int64(n))
}

// withEverywhere puts columns between those of a record, at its head and at its end.
func withEverywhere(rec arrow.Record, extra []arrow.Field, values []arrow.Array) arrow.Record {
	fields, columns := slices.Clone(rec.Schema().Fields()), slices.Clone(rec.Columns())
	for i := range extra {
		at := (i * 7) % (len(fields) + 1)
		if i == len(extra)-1 {
			at = len(fields)
		}
		fields, columns = slices.Insert(fields, at, extra[i]), slices.Insert(columns, at, values[i])
	}
	meta := rec.Schema().Metadata()
	return array.NewRecord(arrow.NewSchema(fields, &meta), columns, rec.NumRows())
}

// readLibrary lets the Arrow library write records and reads the rows.
func readLibrary(t *testing.T, rec arrow.Record, opts ...ipc.Option) ([]*snapshot.Snapshot, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.arrow")
	writeLibrary(t, path, []arrow.Record{rec}, opts...)
	f, err := OpenForeign(path)
	if err != nil {
		return nil, err
	}
	return readAll(f)
}

// A reader of version 1 reads files with columns that it does not know, of every type
// that the library writes, one at a time and all together.
func TestUnknownColumnsOfEveryTypeAreSteppedOver(t *testing.T) {
	rows := randomRows(newGen(31), 40)
	_, data := oneSegment(t, rows, 8192)
	rec := libraryRecords(t, data)[0]
	var fields []arrow.Field
	var values []arrow.Array
	for i, typ := range otherTypes() {
		f, v := arrow.Field{Name: fmt.Sprint("later_", i), Type: typ, Nullable: true}, filled(t, typ, len(rows))
		fields, values = append(fields, f), append(values, v)
		for name, opts := range map[string][]ipc.Option{"zstd": {ipc.WithZstd()}, "plain": nil} {
			got, err := readLibrary(t, withEverywhere(rec, []arrow.Field{f}, []arrow.Array{v}), opts...)
			if err != nil {
				t.Errorf("%v, %s: %v", typ, name, err)
				continue
			}
			diff(t, rows, got)
		}
	}
	got, err := readLibrary(t, withEverywhere(rec, fields, values), ipc.WithZstd())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, rows, got)
}

// Each optional column may be missing, and all of them together; none of the others may.
func TestOptionalColumnsMayBeMissing(t *testing.T) {
	rows := randomRows(newGen(32), 30)
	_, data := oneSegment(t, rows, 8192)
	rec := libraryRecords(t, data)[0]
	required := []string{"id", "request_id", "status", "ts", "scenario", "keep_prob"}
	without := func(drop func(string) bool) arrow.Record {
		var fields []arrow.Field
		var columns []arrow.Array
		for i, f := range rec.Schema().Fields() {
			if !drop(f.Name) {
				fields, columns = append(fields, f), append(columns, rec.Column(i))
			}
		}
		meta := rec.Schema().Metadata()
		return array.NewRecord(arrow.NewSchema(fields, &meta), columns, rec.NumRows())
	}
	for _, f := range rec.Schema().Fields() {
		got, err := readLibrary(t, without(func(name string) bool { return name == f.Name }), ipc.WithZstd())
		if slices.Contains(required, f.Name) {
			if !errors.Is(err, ErrSchema) {
				t.Errorf("without %s: %v", f.Name, err)
			}
			continue
		}
		if err != nil || len(got) != len(rows) || got[7].ID != rows[7].ID || !got[7].Time.Equal(rows[7].Time) {
			t.Errorf("without %s: %d rows, %v", f.Name, len(got), err)
		}
	}
	got, err := readLibrary(t, without(func(name string) bool { return !slices.Contains(required, name) }))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got {
		want := &snapshot.Snapshot{ID: rows[i].ID, RequestID: rows[i].RequestID, Status: rows[i].Status, Time: rows[i].Time,
			Scenario: rows[i].Scenario, KeepProb: rows[i].KeepProb}
		diff(t, []*snapshot.Snapshot{want}, []*snapshot.Snapshot{s})
	}
}

// A column of ours under another type is refused, not read as if it were empty; null
// throughout, it is.
func TestKnownColumnsOfOtherTypesAreRefused(t *testing.T) {
	rows := randomRows(newGen(33), 20)
	_, data := oneSegment(t, rows, 8192)
	rec := libraryRecords(t, data)[0]
	for _, name := range []string{"action", "keep_prob", "id", "input", "candidates"} {
		for _, typ := range []arrow.DataType{arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.PrimitiveTypes.Uint8,
			&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}} {
			changed := withColumns(rec, []string{name}, arrow.Field{Name: name, Type: typ, Nullable: true}, filled(t, typ, len(rows)))
			if _, err := readLibrary(t, changed, ipc.WithZstd()); !errors.Is(err, ErrSchema) {
				t.Errorf("%s as %v: %v", name, typ, err)
			}
		}
	}
	null := withColumns(rec, []string{"error"}, arrow.Field{Name: "error", Type: arrow.Null, Nullable: true}, array.NewNull(len(rows)))
	if got, err := readLibrary(t, null, ipc.WithZstd()); err != nil || len(got) != len(rows) || got[0].Error != "" {
		t.Errorf("a column of nulls: %d rows, %v", len(got), err)
	}
}
