package peers

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/klauspost/compress/zstd"

	"github.com/clefbench/clefbench/snapshot"
)

// EncodePeer is what the recorder's own encoding is compared with.
type EncodePeer struct {
	Name string
	// Run encodes all rows and returns the bytes that it wrote.
	Run func() (int64, error)
	// Faster is the goal of our rows per second of processor time over the peer's, Smaller
	// that of our bytes over the peer's.
	Faster, Smaller Goal
}

// fastest is the encoder of the recorder's own settings.
func fastest() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
}

// Encode compares encoders: rows in, bytes of a whole file out, kept nowhere.
func Encode(rows []snapshot.Snapshot, rounds int) (*Report, error) {
	peers, err := encodePeers(rows)
	if err != nil {
		return nil, err
	}
	return EncodeReport("Encode, digests included", rows, rounds, peers)
}

func encodePeers(rows []snapshot.Snapshot) ([]EncodePeer, error) {
	logs, err := zerologZstd(logRow)
	if err != nil {
		return nil, err
	}
	raw, err := zerologZstd(logRowRaw)
	if err != nil {
		return nil, err
	}
	var out counter
	counted := func(run func() error) func() (int64, error) {
		return func() (int64, error) {
			out.bytes = 0
			err := run()
			return out.bytes, err
		}
	}
	parquet := parquetZstd(&out)
	builder, err := newArrowBuilder()
	if err != nil {
		return nil, err
	}
	records, err := keptRecords(rows)
	if err != nil {
		return nil, err
	}
	floor, err := zstdFloor(records)
	if err != nil {
		return nil, err
	}
	return []EncodePeer{
		{"zerolog lines + zstd fastest", func() (int64, error) { return logs(rows) }, Goal{AtLeast: 2}, Goal{AtMost: 0.85}},
		{"the same, the input embedded unchecked", func() (int64, error) { return raw(rows) }, Goal{}, Goal{}},
		{"parquet-go, zstd fastest", counted(func() error { return parquet(rows) }), Goal{AtLeast: 1.15}, Goal{}},
		{"Arrow v17 builders + FileWriter, zstd", counted(func() error { return arrowBuilt(builder, &out, rows) }), Goal{AtLeast: 1.5}, Goal{}},
		{"Arrow v17 FileWriter alone, zstd, columns ready", counted(func() error { return arrowReady(&out, records) }), Goal{}, Goal{}},
		{"zstd fastest alone, columns ready", floor, Goal{AtLeast: 0.7}, Goal{}},
	}, nil
}

// zstdFloor compresses the column buffers of the records and does nothing else.
func zstdFloor(records []arrow.Record) (func() (int64, error), error) {
	enc, err := fastest()
	if err != nil {
		return nil, err
	}
	buffers := columnBuffers(records)
	var out []byte
	return func() (n int64, err error) {
		for _, b := range buffers {
			out = enc.EncodeAll(b, out[:0])
			n += int64(len(out))
		}
		return n, nil
	}, nil
}

// EncodeReport measures the recorder's writer and the peers.
func EncodeReport(title string, rows []snapshot.Snapshot, rounds int, peers []EncodePeer) (*Report, error) {
	own, err := ours(rows)
	if err != nil {
		return nil, err
	}
	cases := []Case{{"arrowfile.Writer", len(rows), own}}
	for _, p := range peers {
		cases = append(cases, Case{p.Name, len(rows), p.Run})
	}
	results, err := Measure(rounds, cases)
	if err != nil {
		return nil, err
	}
	base := results[0]
	r := &Report{Title: fmt.Sprintf("%s: %d rows, %d rounds", title, len(rows), rounds),
		Notes:   []string{"Nothing is kept: every case writes whole files or streams to nowhere. The columns of the zstd-only and columns-ready cases are made beforehand."},
		Columns: []string{"case", "ns CPU/row", "rows/CPU-s", "B/row", "our bytes / its", "goal", "met"}, What: "our rows per CPU-s / its"}
	for i, res := range results {
		line := Line{Cells: encodeCells(res, base, Goal{})}
		if i > 0 {
			line.Cells = encodeCells(res, base, peers[i-1].Smaller)
			line.Ratio, line.Goal = RatioOf(res.NS, base.NS), peers[i-1].Faster
		}
		r.Lines = append(r.Lines, line)
	}
	return r, nil
}

func encodeCells(res, own Result, smaller Goal) []string {
	ns, size := quantile(res.NS, 0.5), own.Bytes/res.Bytes
	return []string{res.Name, fmt.Sprintf("%.0f", ns), fmt.Sprintf("%.0f k", 1e6/ns), fmt.Sprintf("%.1f", res.Bytes),
		fmt.Sprintf("%.2f", size), smaller.String(), smaller.verdict(size)}
}
