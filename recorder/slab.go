package recorder

import (
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

const (
	// slabRows and slabBytes (of bodies) say when a slab is full. A larger slab gains
	// callers nothing, and a smaller one is still in the processor's cache when it comes
	// back: measured with 64 to 1024 rows.
	slabRows  = 256
	slabBytes = 256 << 10
)

// slab is the memory that callers copy rows into and that goes to the drain whole: no
// row has memory of its own, and what is variable in length stands in one array for all.
// It is reused. Strings stay the caller's (they do not change); they are let go with reset.
//
// A Snapshot has 1056 bytes, most of them zero in most rows. Copied as it is, the slab's
// memory costs more than all the rest of a hand-over, so a packed row holds what every row
// has, and numbers the parts that only some have.
type slab struct {
	requests []handedOver
	rows     []packed

	bytes      []byte
	values     []decision.Value
	candidates []decision.Candidate
	features   []float32
	notes      []string
	verdicts   []verdict
	measures   []measure
	makers     []maker
	marks      []mark
}

// handedOver is one request in a slab: rows [first, first+n).
type handedOver struct {
	// ticket orders the requests of all slabs.
	ticket   uint64
	size     int64
	first, n int32
	whole    bool
}

// span is a part of one of the slab's arrays: at is its place counted from 1, and 0 means
// that there is none: in a file, nil and empty are not the same.
type span struct{ at, n uint32 }

func put[T any](arena *[]T, src []T) span {
	if src == nil {
		return span{}
	}
	s := span{uint32(len(*arena)) + 1, uint32(len(src))}
	*arena = append(*arena, src...)
	return s
}

// in returns the part; it cannot be appended into its neighbour.
func in[T any](arena []T, s span) []T {
	if s.at == 0 {
		return nil
	}
	if s.n == 0 {
		return []T{} // a part of an array that has no memory yet would be nil
	}
	end := s.at - 1 + s.n
	return arena[s.at-1 : end : end]
}

// packed is a row: what every row has, and where the rest stands.
type packed struct {
	id, requestID              decision.ID
	time                       time.Time
	keepProb                   float64
	sourceID, scenario, action string
	inputLen                   decision.Opt[int64]
	schema                     *decision.Schema
	// entity is raw: the drain hashes it.
	entity          string
	hasEntity       bool
	status          decision.Status
	inKind, outKind bodyKind

	in, out, attrs, candidates, features, notes span
	verdict, measure, maker, mark               uint32
}

// verdict is what a decision says beyond its action.
type verdict struct {
	question       string
	questionType   decision.QuestionType
	params         string
	confidence     decision.Opt[float64]
	confidenceDef  string
	ruleID         string
	featureSet     string
	propensity     decision.Opt[float64]
	propensityKind snapshot.PropensityKind
	applied        snapshot.Applied
	err, errorCode string
	nd             string
	reason         decision.ReasonKind
	forced         decision.Opt[bool]
}

// measure is what a decision took.
type measure struct {
	latency  decision.Opt[time.Duration]
	stages   decision.Stages
	usage    decision.Usage
	cost     decision.Opt[int64]
	cold     decision.Opt[bool]
	attempts decision.Opt[int8]
}

// maker is who decided. Neighbours mostly share it.
type maker struct {
	backend  string
	artefact decision.Artefact
}

// mark is what ties a row to others.
type mark struct {
	entity                    decision.Opt[[8]byte]
	inputDigest, outputDigest decision.Opt[[32]byte]
	trace                     decision.Opt[[16]byte]
	span                      decision.Opt[[8]byte]
	terms                     snapshot.Terms
}

func newSlab(rows int) *slab {
	return &slab{requests: make([]handedOver, 0, rows), rows: make([]packed, 0, rows)}
}

// full says when a slab of so many rows is handed on. Rows with uncommonly much of
// something make it so earlier, or its arrays would grow anew for every slab.
func (sl *slab) full(rows int) bool {
	return len(sl.rows) >= rows || len(sl.bytes) >= slabBytes || len(sl.features)*4 >= slabBytes ||
		max(len(sl.values), len(sl.candidates), len(sl.notes)) >= slabBytes/32
}

// add appends an empty row. Rows that no request in requests claims are skipped: those of
// a hand-over that broke off.
func (sl *slab) add() *packed {
	if n := len(sl.rows); n < cap(sl.rows) {
		sl.rows = sl.rows[:n+1] // reset has cleared it
	} else {
		sl.rows = append(sl.rows, packed{})
	}
	return &sl.rows[len(sl.rows)-1]
}

// pack copies what is the same for rows of every origin: bodies, attributes and features
// are not, nor is the text of an error.
func (sl *slab) pack(p *packed, s *snapshot.Snapshot, err string) {
	p.id, p.requestID, p.time = s.ID, s.RequestID, s.Time
	p.sourceID, p.scenario, p.action, p.status = s.SourceID, s.Scenario, s.Action, s.Status
	p.inputLen = s.InputLen
	p.candidates = put(&sl.candidates, s.Candidates)
	p.notes = put(&sl.notes, s.Redacted)
	if hasVerdict(s) {
		sl.verdicts = append(sl.verdicts, verdict{question: s.Question, questionType: s.QuestionType, params: s.Params,
			confidence: s.Confidence, confidenceDef: s.ConfidenceDef, ruleID: s.RuleID, featureSet: s.FeatureSet,
			propensity: s.Propensity, propensityKind: s.PropensityKind, applied: s.Applied, err: err, errorCode: s.ErrorCode,
			nd: s.ND, reason: s.Reason, forced: s.Forced})
		p.verdict = uint32(len(sl.verdicts))
	}
	if hasMeasure(s) {
		sl.measures = append(sl.measures, measure{s.Latency, s.Stages, s.Usage, s.Cost, s.Cold, s.Attempts})
		p.measure = uint32(len(sl.measures))
	}
	if hasMark(s) {
		sl.marks = append(sl.marks, mark{s.Entity, s.InputDigest, s.OutputDigest, s.TraceID, s.SpanID, s.Terms})
		p.mark = uint32(len(sl.marks))
	}
	p.maker = sl.packMaker(s)
}

// The has functions are written out because comparing the struct with its zero value,
// padding, floats and strings included, took as long as all the rest of pack. What fields
// a row has most often stands first.

func hasVerdict(s *snapshot.Snapshot) bool {
	return s.Reason != 0 || s.Confidence.Set || s.Question != "" || s.RuleID != "" || s.FeatureSet != "" || s.Forced.Set ||
		s.Propensity.Set || s.PropensityKind != "" || s.QuestionType != "" || s.Params != "" || s.ConfidenceDef != "" ||
		s.Applied != "" || s.Error != "" || s.ErrorCode != "" || s.ND != ""
}

func hasMeasure(s *snapshot.Snapshot) bool {
	return s.Latency.Set || s.Cost.Set || s.Cold.Set || s.Attempts.Set ||
		s.Usage != (decision.Usage{}) || s.Stages != (decision.Stages{})
}

func hasMark(s *snapshot.Snapshot) bool {
	return s.Entity.Set || s.InputDigest.Set || s.OutputDigest.Set || s.TraceID.Set || s.SpanID.Set ||
		s.Terms != (snapshot.Terms{})
}

// packMaker adds who decided, unless the row before has the same.
func (sl *slab) packMaker(s *snapshot.Snapshot) uint32 {
	if s.Backend == "" && s.Artefact == (decision.Artefact{}) {
		return 0
	}
	n := len(sl.makers)
	if n > 0 && sl.makers[n-1].backend == s.Backend && sl.makers[n-1].artefact == s.Artefact {
		return uint32(n)
	}
	sl.makers = append(sl.makers, maker{s.Backend, s.Artefact})
	return uint32(n + 1)
}

// unpack is the reverse of pack, into a slot whose slices then point into the slab.
func (sl *slab) unpack(p *packed, to *slot) {
	s := &to.row
	*s = snapshot.Snapshot{ID: p.id, RequestID: p.requestID, Time: p.time, KeepProb: p.keepProb, SourceID: p.sourceID,
		Scenario: p.scenario, Action: p.action, Status: p.status, InputLen: p.inputLen,
		Attrs: decision.Attrs{Schema: p.schema, Values: in(sl.values, p.attrs)}, Candidates: in(sl.candidates, p.candidates),
		Features: in(sl.features, p.features), Redacted: in(sl.notes, p.notes)}
	if p.verdict > 0 {
		v := &sl.verdicts[p.verdict-1]
		s.Question, s.QuestionType, s.Params, s.Applied, s.ND = v.question, v.questionType, v.params, v.applied, v.nd
		s.Confidence, s.ConfidenceDef, s.RuleID, s.FeatureSet = v.confidence, v.confidenceDef, v.ruleID, v.featureSet
		s.Propensity, s.PropensityKind, s.Reason, s.Forced = v.propensity, v.propensityKind, v.reason, v.forced
		s.Error, s.ErrorCode = v.err, v.errorCode
	}
	if p.measure > 0 {
		m := &sl.measures[p.measure-1]
		s.Latency, s.Stages, s.Usage, s.Cost, s.Cold, s.Attempts = m.latency, m.stages, m.usage, m.cost, m.cold, m.attempts
	}
	if p.maker > 0 {
		s.Backend, s.Artefact = sl.makers[p.maker-1].backend, sl.makers[p.maker-1].artefact
	}
	if p.mark > 0 {
		m := &sl.marks[p.mark-1]
		s.Entity, s.InputDigest, s.OutputDigest = m.entity, m.inputDigest, m.outputDigest
		s.TraceID, s.SpanID, s.Terms = m.trace, m.span, m.terms
	}
	to.entity, to.hasEntity = p.entity, p.hasEntity
	to.in = body{data: in(sl.bytes, p.in), seen: p.in.at > 0, bodyKind: p.inKind}
	to.out = body{data: in(sl.bytes, p.out), seen: p.out.at > 0, bodyKind: p.outKind}
}

// reset empties the slab and lets go of the callers' strings.
func (sl *slab) reset() {
	reuse(&sl.requests)
	reuse(&sl.rows)
	reuse(&sl.bytes)
	reuse(&sl.values)
	reuse(&sl.candidates)
	reuse(&sl.features)
	reuse(&sl.notes)
	reuse(&sl.verdicts)
	reuse(&sl.measures)
	reuse(&sl.makers)
	reuse(&sl.marks)
}

// reuse empties an array. One that a large request made grow is left to the garbage
// collector, so that it does not hold its memory for ever.
func reuse[T any](arena *[]T) {
	var zero T
	if cap(*arena)*int(unsafe.Sizeof(zero)) > 4*slabBytes {
		*arena = nil
		return
	}
	clear(*arena)
	*arena = (*arena)[:0]
}
