package recorder

import (
	"encoding/binary"
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
	rows []packed

	bytes      []byte
	values     []decision.Value
	candidates []decision.Candidate
	features   []float32
	notes      []string
	verdicts   []verdict
	measures   []measure
	makers     []maker
	marks      []mark

	_ [64]byte // two shards' slabs may be neighbours in memory
}

// span is a part of one of the slab's arrays: at is its place counted from 1, and 0 means
// that there is none: in a file, nil and empty are not the same.
type span struct{ at, n uint32 }

func put[T any](arena *[]T, src []T) span {
	if src == nil {
		return span{}
	}
	n := len(*arena)
	if end := n + len(src); end <= cap(*arena) {
		*arena = (*arena)[:end] // stores the length alone, which append of a slice does not
		copy((*arena)[n:], src)
	} else {
		*arena = append(*arena, src...)
	}
	return span{uint32(n) + 1, uint32(len(src))}
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
	// The first row of a request says how large it is, and ticket orders it among the
	// requests of all slabs. size is 0 in the others, and where a hand-over broke off: such
	// rows belong to nobody.
	size   count
	ticket uint64

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
	// whole: the request's rows came complete.
	whole bool

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
	return &slab{rows: make([]packed, 0, rows)}
}

// full says when a slab of so many rows is handed on. Rows with uncommonly much of
// something make it so earlier, or its arrays would grow anew for every slab.
func (sl *slab) full(rows int) bool {
	return len(sl.rows) >= rows || len(sl.bytes) >= slabBytes || len(sl.features)*4 >= slabBytes ||
		max(len(sl.values), len(sl.candidates), len(sl.notes)) >= slabBytes/32
}

// add appends an empty row.
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
	verdict, measure, maker, mark := partsOf(s)
	if verdict {
		p.verdict = sl.packVerdict(s, err)
	}
	if measure {
		p.measure = sl.packMeasure(s)
	}
	if maker {
		p.maker = sl.packMaker(s)
	}
	if mark {
		p.mark = sl.packMark(s)
	}
}

func (sl *slab) packVerdict(s *snapshot.Snapshot, err string) uint32 {
	sl.verdicts = append(sl.verdicts, verdict{question: s.Question, questionType: s.QuestionType, params: s.Params,
		confidence: s.Confidence, confidenceDef: s.ConfidenceDef, ruleID: s.RuleID, featureSet: s.FeatureSet,
		propensity: s.Propensity, propensityKind: s.PropensityKind, applied: s.Applied, err: err, errorCode: s.ErrorCode,
		nd: s.ND, reason: s.Reason, forced: s.Forced})
	return uint32(len(sl.verdicts))
}

func (sl *slab) packMeasure(s *snapshot.Snapshot) uint32 {
	sl.measures = append(sl.measures, measure{s.Latency, s.Stages, s.Usage, s.Cost, s.Cold, s.Attempts})
	return uint32(len(sl.measures))
}

// packMaker adds who decided, unless the row before has the same.
func (sl *slab) packMaker(s *snapshot.Snapshot) uint32 {
	n := len(sl.makers)
	if n > 0 && sl.makers[n-1].backend == s.Backend && sl.makers[n-1].artefact == s.Artefact {
		return uint32(n)
	}
	sl.makers = append(sl.makers, maker{s.Backend, s.Artefact})
	return uint32(n + 1)
}

func (sl *slab) packMark(s *snapshot.Snapshot) uint32 {
	sl.marks = append(sl.marks, mark{s.Entity, s.InputDigest, s.OutputDigest, s.TraceID, s.SpanID, s.Terms})
	return uint32(len(sl.marks))
}

// partsOf says which parts a row has. It joins all lengths and flags and branches once a
// part: comparing the parts with their zero values took as long as all the rest of pack, a
// chain of || half of it.
func partsOf(s *snapshot.Snapshot) (verdict, measure, maker, mark bool) {
	u, t, a := &s.Usage, &s.Stages, &s.Artefact
	verdict = len(s.Question)|len(s.QuestionType)|len(s.Params)|len(s.ConfidenceDef)|len(s.RuleID)|len(s.FeatureSet)|
		len(s.PropensityKind)|len(s.Applied)|len(s.Error)|len(s.ErrorCode)|len(s.ND)|int(s.Reason)|
		bit(s.Confidence.Set)|bit(s.Propensity.Set)|bit(s.Forced.Set) != 0
	measure = bit(s.Latency.Set)|bit(s.Cost.Set)|bit(s.Cold.Set)|bit(s.Attempts.Set)|
		bit(u.TokensIn.Set)|bit(u.TokensOut.Set)|bit(u.BytesIn.Set)|bit(u.BytesOut.Set)|bit(u.CPU.Set)|
		bit(t.Queue.Set)|bit(t.Features.Set)|bit(t.Rules.Set)|bit(t.Model.Set)|bit(t.Transport.Set)|bit(t.Serialise.Set) != 0
	maker = len(s.Backend)|len(a.EngineVersion)|len(a.StrategyVersion)|len(a.ModelRequested)|len(a.ModelResolved)|
		len(a.Provider)|len(a.Dialect)|int(a.HTTPStatus) != 0 || !zero(&a.StrategyDigest)
	mark = len(s.Terms.TrainingUse)|len(s.Terms.Publishable)|bit(s.Entity.Set)|
		bit(s.InputDigest.Set)|bit(s.OutputDigest.Set)|bit(s.TraceID.Set)|bit(s.SpanID.Set) != 0
	return verdict, measure, maker, mark
}

// zero: comparing with an empty array is a call.
func zero(d *[32]byte) bool {
	le := binary.LittleEndian
	return le.Uint64(d[:8])|le.Uint64(d[8:16])|le.Uint64(d[16:24])|le.Uint64(d[24:]) == 0
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// next returns the place of the first request at or after row i, or the end.
func (sl *slab) next(i int) int {
	for i < len(sl.rows) && sl.rows[i].size == 0 {
		i++
	}
	return i
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
