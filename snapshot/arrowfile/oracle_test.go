package arrowfile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// libraryRecords reads a file with the Arrow library's own reader.
func libraryRecords(t *testing.T, data []byte) []arrow.Record {
	t.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.Record
	for i := range r.NumRecords() {
		rec, err := r.RecordAt(i)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

func canonRecords(records []arrow.Record) []object {
	var out []object
	for _, rec := range records {
		for i := range int(rec.NumRows()) {
			row := object{}
			for k, f := range rec.Schema().Fields() {
				row[f.Name] = arrowValue(rec.Column(k), i)
			}
			out = append(out, row)
		}
	}
	return out
}

func TestArrowLibraryReadsTheSameRows(t *testing.T) {
	for _, batch := range []int{1, 33, 8192} {
		rows := randomRows(newGen(21), 150)
		_, data := oneSegment(t, rows, batch)
		var want []object
		for _, s := range rows {
			want = append(want, canonSnapshot(s))
		}
		if d := cmp.Diff(want, canonRecords(libraryRecords(t, data))); d != "" {
			t.Fatalf("batches of %d (-want +got):\n%.3000s", batch, d)
		}
	}
}

// The library writes the records that it read from our file into a file of its own: the
// other direction, and plain bodies beside compressed ones.
func TestWeReadWhatTheArrowLibraryWrites(t *testing.T) {
	rows := randomRows(newGen(22), 150)
	_, data := oneSegment(t, rows, 50)
	records := libraryRecords(t, data)
	for name, opts := range map[string][]ipc.Option{"zstd": {ipc.WithZstd()}, "plain": nil} {
		path := filepath.Join(t.TempDir(), name+Ext)
		writeLibrary(t, path, records, opts...)
		f, err := OpenForeign(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(f)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, rows, got)
		if f.Meta().Digest != "" || f.Meta().Rows != 150 {
			t.Errorf("meta %+v", f.Meta())
		}
		if _, err := Open(path); err == nil {
			t.Error("Open took a file without digests")
		}
	}
}

func writeLibrary(t *testing.T, path string, records []arrow.Record, opts ...ipc.Option) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(file, append(opts, ipc.WithSchema(records[0].Schema()))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// Record equality by the library: the rows in one batch and in many are the same table.
func TestBatchSizeDoesNotChangeTheTable(t *testing.T) {
	rows := randomRows(newGen(23), 90)
	_, one := oneSegment(t, rows, 8192)
	_, many := oneSegment(t, rows, 30)
	whole := libraryRecords(t, one)[0]
	for i, rec := range libraryRecords(t, many) {
		part := whole.NewSlice(int64(30*i), int64(30*i+30))
		if !array.RecordEqual(part, rec) {
			t.Errorf("batch %d differs", i)
		}
	}
}

// withColumns drops columns of a record and appends another one.
func withColumns(rec arrow.Record, drop []string, extra arrow.Field, values arrow.Array) arrow.Record {
	var fields []arrow.Field
	var columns []arrow.Array
	for i, f := range rec.Schema().Fields() {
		if !slices.Contains(drop, f.Name) {
			fields, columns = append(fields, f), append(columns, rec.Column(i))
		}
	}
	fields, columns = append([]arrow.Field{extra}, fields...), append([]arrow.Array{values}, columns...)
	meta := rec.Schema().Metadata()
	return array.NewRecord(arrow.NewSchema(fields, &meta), columns, rec.NumRows())
}

func TestUnknownAndMissingColumns(t *testing.T) {
	rows := randomRows(newGen(24), 40)
	_, data := oneSegment(t, rows, 8192)
	rec := libraryRecords(t, data)[0]
	b := array.NewMapBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Uint64, false)
	for i := range rows {
		b.Append(true)
		b.KeyBuilder().(*array.StringBuilder).Append("k")
		b.ItemBuilder().(*array.Uint64Builder).Append(uint64(i))
	}
	more := b.NewArray()
	read := func(drop ...string) ([]*snapshot.Snapshot, error) {
		path := filepath.Join(t.TempDir(), "f.arrow")
		writeLibrary(t, path, []arrow.Record{withColumns(rec, drop, arrow.Field{Name: "later", Type: more.DataType()}, more)}, ipc.WithZstd())
		f, err := OpenForeign(path)
		if err != nil {
			return nil, err
		}
		return readAll(f)
	}
	got, err := read()
	if err != nil {
		t.Fatal(err)
	}
	diff(t, rows, got)
	got, err = read("stages", "candidates", "error_code")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		s.Stages, s.Candidates, s.ErrorCode = decision.Stages{}, nil, ""
	}
	diff(t, rows, got)
	if _, err := read("id"); err == nil {
		t.Error("a file without ids was read")
	}
}
