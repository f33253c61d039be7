//go:build unix

package arrowfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// traffic makes rows like those of a busy edge service: a JSON input of some 380 bytes,
// three candidates, twelve features, a handful of attributes.
func traffic(n int) []*snapshot.Snapshot {
	r := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(r, 1.2, 4, 1499)
	schema, err := decision.NewSchema(decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "metrics.error_rate", Type: decision.Double}, decision.Field{Name: "local.inflight", Type: decision.Int})
	if err != nil {
		panic(err)
	}
	actions := []string{"edge", "origin", "shield"}
	start := time.Unix(1_700_000_000, 0)
	rows := make([]*snapshot.Snapshot, n)
	for i := range rows {
		at := start.Add(time.Duration(i)*120*time.Microsecond + time.Duration(r.IntN(90_000)))
		path := fmt.Sprintf("/api/v1/items/%d", zipf.Uint64())
		s := &snapshot.Snapshot{ID: decision.NewID(at), RequestID: decision.NewID(at), Status: decision.OK, Time: at.UTC(),
			Scenario: "edge-routing", KeepProb: 1, Action: actions[r.IntN(3)], Backend: "rules", RuleID: fmt.Sprint("r", r.IntN(9)),
			Reason: decision.ReasonMatch, Confidence: decision.Some(float64(r.Float32())),
			Latency: decision.Some(time.Duration(800 + r.IntN(4000))), Propensity: decision.Some(1.0), PropensityKind: snapshot.PropensityExact,
			Artefact: decision.Artefact{EngineVersion: "1.2.3", StrategyVersion: "42", StrategyDigest: [32]byte{1}}}
		s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue(path),
			decision.DoubleValue(float64(r.IntN(100)) / 1000), decision.IntValue(int64(r.IntN(64)))}}
		s.Input = fmt.Appendf(nil, `{"method":"GET","path":%q,"headers":{"user-agent":"Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%d.0","accept":"application/json, text/plain, */*","accept-language":"en-US,en;q=0.5","x-forwarded-for":"10.%d.%d.%d","x-visit":"%016x","cache-control":"no-cache"},"country":"DE","tls":"TLSv1.3","colo":"FRA"}`,
			path, zipf.Uint64(), zipf.Uint64(), r.IntN(256), r.IntN(256), r.IntN(256), zipf.Uint64())
		for _, a := range actions {
			s.Candidates = append(s.Candidates, decision.Candidate{Action: a, Score: decision.Some(r.Float32())})
		}
		s.Features = make([]float32, 12)
		for k := range s.Features {
			s.Features[k] = float32(r.IntN(1 << (2 * k)))
		}
		rows[i] = s
	}
	return rows
}

// cpuTime is the processor time of the process, which other load on the machine disturbs
// less than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// discardFS takes the writes and keeps nothing.
type discardFS struct{}

func (discardFS) Create(string) (WriteFile, error) { return discardFile{}, nil }
func (discardFS) Rename(string, string) error      { return nil }
func (discardFS) SyncDir(string) error             { return nil }

type discardFile struct{}

func (discardFile) Write(b []byte) (int, error) { return len(b), nil }
func (discardFile) Sync() error                 { return nil }
func (discardFile) Truncate(int64) error        { return nil }
func (discardFile) Close() error                { return nil }

// columnBuffers returns the column buffers of rows that hold values.
func columnBuffers(b *testing.B, rows []*snapshot.Snapshot) (buffers [][]byte) {
	b.Helper()
	w, err := Create(b.TempDir(), Options{FS: discardFS{}})
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			b.Fatal(err)
		}
	}
	walk(w.batch.columns, func(c *column) {
		if c.nulls == c.n {
			return // the writer compresses these once
		}
		for _, buf := range [][]byte{c.valid, c.offsets, c.data} {
			if len(buf) > 0 {
				buffers = append(buffers, bytes.Clone(buf))
			}
		}
	})
	return buffers
}

// BenchmarkAppend compares writing with its floor: zstd alone over the same column
// buffers. x_encode is what filled columns cost until they stand in the file, digests
// included; x_floor is the whole way of a row, from a heap of rows that are in no cache;
// warm_ns/row is what rows cost that are in the cache, as a recorder's are, to become
// columns. All are taken turn about.
func BenchmarkAppend(b *testing.B) {
	rows := traffic(8192)
	buffers := columnBuffers(b, rows)
	enc, err := newEncoder(LevelFastest)
	if err != nil {
		b.Fatal(err)
	}
	w, err := Create(b.TempDir(), Options{FS: discardFS{}})
	if err != nil {
		b.Fatal(err)
	}
	fill := func(from []*snapshot.Snapshot) {
		for i := range rows {
			if err := w.Append(from[i%len(from)]); err != nil {
				b.Fatal(err)
			}
		}
	}
	var out []byte
	var cold, warm, encode, floor time.Duration
	lap := func(d *time.Duration, run func()) {
		start := cpuTime()
		run()
		*d += cpuTime() - start
	}
	flush := func() {
		if err := w.Flush(snapshot.Ledger{}); err != nil {
			b.Fatal(err)
		}
	}
	fill(rows) // buffers grow in the first batches only
	flush()
	b.ReportAllocs()
	for b.Loop() {
		lap(&cold, func() { fill(rows) })
		lap(&encode, flush)
		lap(&floor, func() {
			for _, buf := range buffers {
				out = enc.zstd.EncodeAll(buf, out[:0])
			}
		})
		lap(&warm, func() { fill(rows[:16]) })
		w.batch.clear()
	}
	n := float64(b.N * len(rows))
	b.ReportMetric(float64(cold)/n, "cold_ns/row")
	b.ReportMetric(float64(warm)/n, "warm_ns/row")
	b.ReportMetric(float64(encode)/n, "encode_ns/row")
	b.ReportMetric(float64(floor)/n, "floor_ns/row")
	b.ReportMetric(float64(encode)/float64(floor), "x_encode")
	b.ReportMetric(float64(cold+encode)/float64(floor), "x_floor")
}

// benchSegment writes a segment of a usual size and opens it, for one core.
func benchSegment(b *testing.B, count, times int) (f *File, path string, data []byte) {
	b.Helper()
	rows := traffic(count)
	dir := b.TempDir()
	w, err := Create(dir, Options{Host: "h", Boot: "b"})
	if err != nil {
		b.Fatal(err)
	}
	for range times {
		for _, s := range rows {
			if err := w.Append(s); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(count*times)); err != nil {
		b.Fatal(err)
	}
	path = filepath.Join(dir, "h-b-00000001.arrow")
	if data, err = os.ReadFile(path); err != nil {
		b.Fatal(err)
	}
	if f, err = Open(path, Workers(1)); err != nil {
		b.Fatal(err)
	}
	return f, path, data
}

// BenchmarkScan compares reading a segment with the Arrow library's reader, which
// decodes columns and verifies nothing. columns does the same work, with checksums and
// bounds verified; rows makes rows of them as well; floor is zstd alone over all buffers,
// low_floor over those of columns that are not null throughout. Ratios above 1 are in our
// favour, except for x_floor: what rows cost over what zstd alone costs.
func BenchmarkScan(b *testing.B) {
	const count = 4 * 32768
	f, path, data := benchSegment(b, 32768, 4)
	all, needed := floorOfScan(b, f)
	var verify, columns, rows, narrow, floor, low, library time.Duration
	// Each starts with a finished collection: what the library leaves behind would be
	// collected while the others run.
	lap := func(d *time.Duration, run func()) {
		runtime.GC()
		start := cpuTime()
		run()
		*d += cpuTime() - start
	}
	for b.Loop() {
		lap(&verify, func() { reopen(b, path) })
		lap(&columns, func() { decodeColumns(b, f) })
		lap(&rows, func() { scan(b, f, count) })
		lap(&narrow, func() { scan(b, f, count, "action", "latency_ns") })
		lap(&floor, all)
		lap(&low, needed)
		lap(&library, func() { scanLibrary(b, data) })
	}
	n := float64(b.N * count)
	for name, d := range map[string]time.Duration{"verify": verify, "columns": columns, "rows": rows, "narrow": narrow, "library": library, "floor": floor, "low_floor": low} {
		b.ReportMetric(float64(d)/n, name+"_ns/row")
	}
	b.ReportMetric(float64(library)/float64(columns), "x_columns")
	b.ReportMetric(float64(library)/float64(rows), "x_rows")
	b.ReportMetric(float64(library)/float64(narrow), "x_narrow")
	b.ReportMetric(float64(rows)/float64(floor), "x_floor")
	b.ReportMetric(float64(len(data))/float64(count), "B/row")
}

// BenchmarkScanWorkers is the time on the clock of a scan with one worker and with a
// worker a core, turn about: the fastest of all rounds, because other load on the machine
// counts double against whoever needs two cores. x_wall is the ratio.
func BenchmarkScanWorkers(b *testing.B) {
	const count = 4 * 32768
	one, path, _ := benchSegment(b, 32768, 4)
	all, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	t := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, f := range []*File{one, all} {
			start := time.Now()
			scan(b, f, count)
			t[i] = min(t[i], time.Since(start))
		}
	}
	const n = float64(count)
	b.ReportMetric(float64(t[0])/n, "one_ns/row")
	b.ReportMetric(float64(t[1])/n, "all_ns/row")
	b.ReportMetric(float64(t[0])/float64(t[1]), "x_wall")
}

func reopen(b *testing.B, path string) {
	f, err := Open(path, Workers(1))
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// decodeColumns decodes all columns of all batches, and makes no rows.
func decodeColumns(b *testing.B, f *File) {
	dec, err := f.decoder()
	if err != nil {
		b.Fatal(err)
	}
	defer f.decoders.Put(dec.zstd)
	vectors := newVectors(f.shapes)
	for _, m := range f.batches {
		if _, err := f.batch(dec, m, vectors, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func scan(b *testing.B, f *File, want int, columns ...string) {
	n := 0
	for s, err := range f.Snapshots(columns...) {
		if err != nil {
			b.Fatal(err)
		}
		n += len(s.Action) &^ 7
		n++
	}
	if n < want {
		b.Fatalf("%d rows of %d", n, want)
	}
}

func scanLibrary(b *testing.B, data []byte) {
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	for i := range r.NumRecords() {
		rec, err := r.RecordAt(i)
		if err != nil {
			b.Fatal(err)
		}
		rec.Release()
	}
}

// floorOfScan is zstd alone over the buffers of a file: over all of them, and without those
// of columns that are null throughout, which a reader steps over.
func floorOfScan(b *testing.B, f *File) (all, needed func()) {
	dec, err := f.decoder()
	if err != nil {
		b.Fatal(err)
	}
	frames := map[bool][][]byte{}
	for _, m := range f.batches {
		rb := m.table
		pos, n := rb.vector(2, 16)
		need := neededBuffers(f, m)
		for i := range n {
			at := binary.LittleEndian.Uint64(rb.f.b[pos+16*i:])
			if size := binary.LittleEndian.Uint64(rb.f.b[pos+16*i+8:]); size > 0 {
				frames[need[i]] = append(frames[need[i]], m.body[at+8:at+size])
			}
		}
	}
	out := make([]byte, 0, 16<<20) // the decoder does not enlarge it
	over := func(frames [][]byte) {
		for _, frame := range frames {
			if out, err = dec.zstd.DecodeAll(frame, out[:0]); err != nil {
				b.Fatal(err)
			}
		}
	}
	return func() { over(frames[true]); over(frames[false]) }, func() { over(frames[true]) }
}

// neededBuffers says of each buffer of a batch whether its column has a value.
func neededBuffers(f *File, m *message) (need []bool) {
	node := 0
	pos, _ := m.table.vector(1, 16)
	var step func(shapes []*shape, wanted bool)
	step = func(shapes []*shape, wanted bool) {
		for _, s := range shapes {
			rows := binary.LittleEndian.Uint64(m.table.f.b[pos+16*node:])
			nulls := binary.LittleEndian.Uint64(m.table.f.b[pos+16*node+8:])
			node++
			wanted := wanted && (rows == 0 || nulls < rows)
			for range s.ownBuffers() {
				need = append(need, wanted)
			}
			step(s.children, wanted)
		}
	}
	step(f.shapes, true)
	return need
}

// BenchmarkDigest is the share of the digests in writing and in opening.
func BenchmarkDigest(b *testing.B) {
	part := make([]byte, 1<<20)
	b.SetBytes(int64(len(part)))
	var s sum
	for b.Loop() {
		s = digestOf(s, part, 8)
	}
	_ = hex.EncodeToString(s[:])
}
