package arrowfile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// gen makes random rows: every field is sometimes absent, sometimes extreme.
type gen struct {
	*rand.Rand
	schema *decision.Schema
	labels int
	// nan allows NaN, which only cmp takes for equal.
	nan bool
}

func newGen(seed uint64) *gen {
	schema, err := decision.NewSchema(
		decision.Field{Name: "headers.user-agent", Type: decision.String}, decision.Field{Name: "metrics.rate", Type: decision.Double},
		decision.Field{Name: "local.count", Type: decision.Int}, decision.Field{Name: "env.bot", Type: decision.Bool},
		decision.Field{Name: "action", Type: decision.String})
	if err != nil {
		panic(err)
	}
	return &gen{Rand: rand.New(rand.NewPCG(seed, 1)), schema: schema, labels: 12}
}

func (g *gen) some() bool { return g.IntN(3) > 0 }

func (g *gen) text(n int) string {
	if g.IntN(4) == 0 {
		return ""
	}
	const alphabet = "aé世🙂 \"\\\n{}:,0"
	r := []rune(alphabet)
	out := make([]rune, g.IntN(n))
	for i := range out {
		out[i] = r[g.IntN(len(r))]
	}
	return string(out)
}

func (g *gen) label(name string) string {
	if g.IntN(4) == 0 {
		return ""
	}
	return g.name(name)
}

func (g *gen) name(name string) string { return fmt.Sprintf("%s-%d", name, g.IntN(g.labels)) }

func (g *gen) bytes(n int) []byte {
	if g.IntN(4) == 0 {
		return nil
	}
	b := make([]byte, g.IntN(n))
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g *gen) float() float64 {
	switch g.IntN(8) {
	case 0:
		return math.Inf(1 - 2*g.IntN(2))
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return math.SmallestNonzeroFloat64
	}
	return g.NormFloat64()
}

func (g *gen) int64() int64 {
	if g.IntN(5) == 0 {
		return math.MinInt64
	}
	return int64(g.Uint64())
}

func opt[T any](g *gen, v T) decision.Opt[T] {
	if g.some() {
		return decision.Some(v)
	}
	return decision.Opt[T]{}
}

func (g *gen) id() (id decision.ID) {
	for id.IsZero() {
		id = decision.NewID(time.UnixMilli(g.Int64N(1 << 40)))
	}
	return id
}

func (g *gen) array(b []byte) {
	for i := range b {
		b[i] = byte(g.Uint32())
	}
}

func (g *gen) duration() decision.Opt[time.Duration] { return opt(g, time.Duration(g.int64())) }

func (g *gen) candidates() []decision.Candidate {
	if g.IntN(4) == 0 {
		return nil
	}
	out := make([]decision.Candidate, g.IntN(4))
	for i := range out {
		out[i] = decision.Candidate{Action: g.name("act"), Score: opt(g, float32(g.float())), Probability: opt(g, g.Float64())}
	}
	return out
}

func (g *gen) strings(n int) []string {
	if g.IntN(3) == 0 {
		return nil
	}
	out := make([]string, g.IntN(n))
	for i := range out {
		out[i] = g.label("s")
	}
	return out
}

func (g *gen) stages() decision.Stages {
	return decision.Stages{Queue: g.duration(), Features: g.duration(), Rules: g.duration(), Model: g.duration(),
		Transport: g.duration(), Serialise: g.duration()}
}

func (g *gen) usage() decision.Usage {
	return decision.Usage{TokensIn: opt(g, g.int64()), TokensOut: opt(g, g.int64()), BytesIn: opt(g, g.int64()),
		BytesOut: opt(g, g.int64()), CPU: g.duration()}
}

func (g *gen) artefact() decision.Artefact {
	a := decision.Artefact{EngineVersion: g.label("ev"), StrategyVersion: g.label("sv"), ModelRequested: g.label("mr"),
		ModelResolved: g.label("mm"), Provider: g.label("p"), Dialect: g.label("d")}
	if g.some() {
		a.HTTPStatus = int16(g.IntN(600))
		g.array(a.StrategyDigest[:])
	}
	return a
}

func (g *gen) attrs() decision.Attrs {
	if g.schema.Len() == 0 {
		return decision.Attrs{Schema: g.schema}
	}
	values := []decision.Value{decision.StringValue(g.text(30)), decision.DoubleValue(g.float()),
		decision.IntValue(g.int64()), decision.BoolValue(g.some()), decision.StringValue(g.text(9))}
	if g.nan && g.IntN(10) == 0 {
		values[1] = decision.DoubleValue(math.NaN())
	}
	for i := range values {
		if g.IntN(4) == 0 {
			values[i] = decision.Value{}
		}
	}
	return decision.Attrs{Schema: g.schema, Values: values}
}

func (g *gen) snapshot() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		ID: g.id(), RequestID: g.id(), SourceID: g.text(20), Status: decision.Status(1 + g.IntN(6)),
		Question: g.label("q"), QuestionType: decision.QuestionType(g.label("choice")),
		Time: time.Unix(g.Int64N(1<<33)-1<<32, g.Int64N(1e9)).UTC(), Scenario: g.name("scenario"),
		Attrs: g.attrs(), Input: g.bytes(200), Output: g.bytes(50), InputLen: opt(g, g.int64()),
		Candidates: g.candidates(), Forced: opt(g, g.some()), FeatureSet: g.label("fs"), Params: g.text(20),
		Applied: snapshot.Applied(g.label("applied")), Confidence: opt(g, g.float()), ConfidenceDef: g.label("cd"),
		Reason: decision.ReasonKind(g.IntN(9)), RuleID: g.label("rule"), Backend: g.label("backend"), Artefact: g.artefact(),
		Latency: g.duration(), Stages: g.stages(), Cold: opt(g, g.some()), Attempts: opt(g, int8(g.IntN(256)-128)),
		Propensity: opt(g, g.Float64()), PropensityKind: snapshot.PropensityKind(g.label("exact")),
		KeepProb: 1 - g.Float64(), Usage: g.usage(), Cost: opt(g, g.int64()), Error: g.text(40), ErrorCode: g.label("code"),
		ND: g.text(30), Redacted: g.strings(4), Terms: snapshot.Terms{TrainingUse: g.text(4), Publishable: g.label("yes&=%")},
	}
	if s.Status == decision.OK || s.Status == decision.Denied {
		s.Action = g.name("act")
	}
	g.hashes(s)
	if g.some() {
		s.Features = make([]float32, g.IntN(6))
		for i := range s.Features {
			s.Features[i] = float32(g.float())
		}
	}
	return s
}

func (g *gen) hashes(s *snapshot.Snapshot) {
	for _, h := range []struct {
		b   []byte
		set *bool
	}{{s.Entity.V[:], &s.Entity.Set}, {s.InputDigest.V[:], &s.InputDigest.Set}, {s.OutputDigest.V[:], &s.OutputDigest.Set},
		{s.TraceID.V[:], &s.TraceID.Set}, {s.SpanID.V[:], &s.SpanID.Set}} {
		if *h.set = g.some(); *h.set {
			g.array(h.b)
		}
	}
}

func (g *gen) outcome(i int) *snapshot.Outcome {
	o := &snapshot.Outcome{
		Ref: snapshot.Ref{Segment: "segment", Row: int64(i)}, ID: g.id(), RequestID: g.id(), Scenario: g.name("scenario"),
		Question: g.label("q"), KeepProb: 1 - g.Float64(), Backend: g.name("lane"), Kind: g.label("rules"),
		Phase: snapshot.Phase(g.label("measured")), Repeat: int32(g.Uint32()), Block: int32(g.Uint32()), Position: int32(g.Uint32()),
		Status: decision.Status(1 + g.IntN(6)), Action: g.text(30), Params: g.text(30), Confidence: opt(g, g.float()),
		ConfidenceDef: g.label("cd"), Reason: decision.ReasonKind(g.IntN(9)), RuleID: g.label("rule"), Skipped: uint16(g.Uint32()),
		Candidates: g.candidates(), Artefact: g.artefact(), Latency: g.duration(), Stages: g.stages(),
		Attempts: opt(g, int8(g.IntN(256)-128)), Usage: g.usage(), Cost: opt(g, g.int64()), Error: g.text(30), ErrorCode: g.label("c"),
		Recorded: g.label("act"), Identified: opt(g, g.some()), Explained: opt(g, g.some()), Complete: opt(g, g.some()),
		Missing: g.strings(3),
	}
	if o.Entity.Set = g.some(); o.Entity.Set {
		g.array(o.Entity.V[:])
	}
	return o
}

func (g *gen) truth(i int) *snapshot.Label {
	if g.IntN(3) == 0 {
		return nil
	}
	l := &snapshot.Label{Ref: snapshot.Ref{Segment: "segment", Row: int64(i)}, ID: g.id(), Action: g.name("act"),
		Reward: opt(g, g.Float64()), Source: g.text(9), Key: g.text(9)}
	if g.some() {
		l.Time = time.Unix(0, g.int64()/2).UTC()
		l.Utilities = make([]snapshot.ActionUtility, g.IntN(4))
		for i := range l.Utilities {
			l.Utilities[i] = snapshot.ActionUtility{Action: g.name("act"), Utility: g.Float64()}
		}
	}
	return l
}
