package peers

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/klauspost/compress/zstd"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// files are the same rows in the files that readers are compared on, and the frames of
// zstd that hold the filled columns.
type files struct {
	path    string
	segment *arrowfile.File
	// own are the bytes of the segment; arrow and parquet are the peers' files.
	own, arrow, parquet []byte
	frames              [][]byte
	raw                 int
	rows                int
}

func makeFiles(dir string, rows []snapshot.Snapshot) (*files, error) {
	f := &files{rows: len(rows)}
	var err error
	if f.path, err = segment(dir, rows); err != nil {
		return nil, err
	}
	if f.segment, err = arrowfile.Open(f.path); err != nil {
		return nil, err
	}
	if f.own, err = os.ReadFile(f.path); err != nil {
		return nil, err
	}
	records, err := keptRecords(rows)
	if err != nil {
		return nil, err
	}
	var a, p memory
	if err := arrowReady(&a, records); err != nil {
		return nil, err
	}
	if err := parquetZstd(&p)(rows); err != nil {
		return nil, err
	}
	f.arrow, f.parquet = a.Bytes(), p.Bytes()
	enc, err := fastest()
	if err != nil {
		return nil, err
	}
	for _, b := range columnBuffers(records) {
		f.frames = append(f.frames, enc.EncodeAll(b, nil))
		f.raw = max(f.raw, len(b))
	}
	return f, enc.Close()
}

// Read compares readers of all columns and of two.
func Read(rows []snapshot.Snapshot, rounds int) (*Report, error) {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f, err := makeFiles(dir, rows)
	if err != nil {
		return nil, err
	}
	defer f.segment.Close()
	cases, err := f.cases()
	if err != nil {
		return nil, err
	}
	results, err := Measure(rounds, cases)
	if err != nil {
		return nil, err
	}
	return readReport(len(rows), rounds, results), nil
}

// The cases of the group, in its order.
const (
	readAll = iota
	readOpen
	readTwo
	libraryAll
	librarySame
	libraryTwo
	decodeOnly
	parquetAll
)

// passes is how often a run reads the file: the collection before a run has emptied the
// readers' pools, and a recording is longer than this file.
const passes = 4

func (f *files) cases() ([]Case, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, f.raw)
	buf := make([]ParquetRow, 1024)
	checked := func(run func() (int, error)) func() (int64, error) {
		return func() (int64, error) {
			for range passes {
				if n, err := run(); err != nil || n != f.rows {
					return 0, errors.Join(err, fmt.Errorf("%d rows of %d", n, f.rows))
				}
			}
			return 0, nil
		}
	}
	c := func(name string, run func() (int, error)) Case { return Case{name, passes * f.rows, checked(run)} }
	return []Case{
		readAll:     c("arrowfile, all columns", func() (int, error) { return scan(f.segment) }),
		readOpen:    c("arrowfile, open (every digest) and all columns", func() (int, error) { return scanPath(f.path) }),
		readTwo:     c("arrowfile, two columns", func() (int, error) { return scan(f.segment, "action", "latency_ns") }),
		libraryAll:  c("the same over its own file, filled columns only", func() (int, error) { return readArrow(f.arrow, func(arrow.Record) {}) }),
		librarySame: c("Arrow v17 FileReader, all columns", func() (int, error) { return readArrow(f.own, func(arrow.Record) {}) }),
		libraryTwo:  c("Arrow v17 FileReader over its own file, two columns used", func() (int, error) { return readArrow(f.arrow, useTwo) }),
		decodeOnly:  c("zstd DecodeAll alone over the column buffers", func() (int, error) { return f.rows, f.decode(dec, out) }),
		parquetAll:  c("parquet-go, whole rows", func() (int, error) { return readParquet(bytes.NewReader(f.parquet), buf, func(*ParquetRow) {}) }),
	}, nil
}

// scan steps over the rows, as row structs.
func scan(f *arrowfile.File, columns ...string) (n int, err error) {
	for _, err := range f.Snapshots(columns...) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func scanPath(path string) (int, error) {
	f, err := arrowfile.Open(path)
	if err != nil {
		return 0, err
	}
	n, err := scan(f)
	if err != nil {
		return n, err
	}
	return n, f.Close()
}

// useTwo looks at the values of two columns.
func useTwo(rec arrow.Record) {
	codes := rec.Column(8).(*array.Dictionary)
	latency := rec.Column(13).(*array.Int64).Int64Values()
	var sum int64
	for i, v := range latency {
		sum += v + int64(codes.GetValueIndex(i))
	}
	_ = sum
}

func (f *files) decode(dec *zstd.Decoder, out []byte) error {
	for _, frame := range f.frames {
		if _, err := dec.DecodeAll(frame, out[:0]); err != nil {
			return err
		}
	}
	return nil
}

func readReport(rows, rounds int, results []Result) *Report {
	r := &Report{Title: fmt.Sprintf("Read: %d rows, %d rounds", rows, rounds), Columns: []string{"case", "ns CPU/row"}, What: "its time / ours",
		Notes: []string{"Ours is the first case of its kind: rows as structs, checksums compared; the Arrow library makes arrays and compares nothing. " +
			"In our segment the library decodes the columns that are null throughout as well; its own file has the filled ones only."}}
	add := func(i, base int, goal Goal) {
		line := Line{Cells: []string{results[i].Name, fmt.Sprintf("%.1f", quantile(results[i].NS, 0.5))}, Goal: goal}
		if base >= 0 {
			line.Ratio = RatioOf(results[i].NS, results[base].NS)
		}
		r.Lines = append(r.Lines, line)
	}
	add(readAll, -1, Goal{})
	add(librarySame, readAll, Goal{AtLeast: 2.5})
	add(libraryAll, readAll, Goal{})
	add(decodeOnly, readAll, Goal{AtLeast: 0.85})
	add(parquetAll, readAll, Goal{AtLeast: 5})
	add(readOpen, readAll, Goal{})
	add(readTwo, -1, Goal{})
	add(libraryTwo, readTwo, Goal{AtLeast: 30})
	return r
}
