package peers

import (
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/clefbench/clefbench/snapshot"
)

// ParquetRow has the filled fields of a row, none of them optional: labels in dictionaries.
type ParquetRow struct {
	ID              [16]byte           `parquet:"id"`
	RequestID       [16]byte           `parquet:"request_id"`
	Status          string             `parquet:"status,dict"`
	Time            int64              `parquet:"ts"`
	Scenario        string             `parquet:"scenario,dict"`
	KeepProb        float64            `parquet:"keep_prob"`
	Input           []byte             `parquet:"input"`
	Candidates      []ParquetCandidate `parquet:"candidates,list"`
	Features        []float32          `parquet:"features,list"`
	Action          string             `parquet:"action,dict"`
	Confidence      float64            `parquet:"confidence"`
	Backend         string             `parquet:"backend,dict"`
	EngineVersion   string             `parquet:"engine_version,dict"`
	StrategyVersion string             `parquet:"strategy_version,dict"`
	Latency         int64              `parquet:"latency_ns"`
	Stages          ParquetStages      `parquet:"stages"`
	Propensity      float64            `parquet:"propensity"`
	Cost            int64              `parquet:"cost"`
	TraceID         [16]byte           `parquet:"trace_id"`
}

// ParquetCandidate is one candidate of a row.
type ParquetCandidate struct {
	Action string  `parquet:"action,dict"`
	Score  float32 `parquet:"score"`
}

// ParquetStages are the filled stages of a row, in nanoseconds.
type ParquetStages struct {
	Queue     int64 `parquet:"queue"`
	Features  int64 `parquet:"features"`
	Rules     int64 `parquet:"rules"`
	Serialise int64 `parquet:"serialise"`
}

// set fills the row; Candidates keeps its memory.
func (r *ParquetRow) set(s *snapshot.Snapshot) {
	cs := r.Candidates[:0]
	for _, c := range s.Candidates {
		cs = append(cs, ParquetCandidate{c.Action, c.Score.V})
	}
	*r = ParquetRow{ID: s.ID, RequestID: s.RequestID, Status: s.Status.String(), Time: s.Time.UnixNano(), Scenario: s.Scenario,
		KeepProb: s.KeepProb, Input: s.Input, Candidates: cs, Features: s.Features, Action: s.Action, Confidence: s.Confidence.V,
		Backend: s.Backend, EngineVersion: s.Artefact.EngineVersion, StrategyVersion: s.Artefact.StrategyVersion,
		Latency: int64(s.Latency.V), Propensity: s.Propensity.V, Cost: s.Cost.V, TraceID: s.TraceID.V,
		Stages: ParquetStages{int64(s.Stages.Queue.V), int64(s.Stages.Features.V), int64(s.Stages.Rules.V), int64(s.Stages.Serialise.V)}}
}

// parquetBatch is how many rows are handed over at once: as many as the recorder's batch.
const parquetBatch = 8192

// parquetZstd returns an encoder into one Parquet file of row groups of 65,536 rows.
func parquetZstd(out io.Writer) func([]snapshot.Snapshot) error {
	w := parquet.NewGenericWriter[ParquetRow](out, parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}), parquet.MaxRowsPerRowGroup(1<<16))
	batch := make([]ParquetRow, parquetBatch)
	return func(rows []snapshot.Snapshot) error {
		w.Reset(out)
		for len(rows) > 0 {
			n := min(len(rows), len(batch))
			for i := range n {
				batch[i].set(&rows[i])
			}
			if _, err := w.Write(batch[:n]); err != nil {
				return err
			}
			rows = rows[n:]
		}
		return w.Close()
	}
}

// readParquet reads all rows of a file whole and returns their number.
func readParquet(file io.ReaderAt, buf []ParquetRow, each func(*ParquetRow)) (rows int, err error) {
	r := parquet.NewGenericReader[ParquetRow](file)
	for {
		n, err := r.Read(buf)
		for i := range n {
			each(&buf[i])
		}
		rows += n
		if err == io.EOF {
			return rows, r.Close()
		}
		if err != nil {
			return rows, err
		}
	}
}
