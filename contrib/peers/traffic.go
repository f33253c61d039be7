package peers

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// Traffic makes the rows of a busy edge service: requests some 120 µs apart, user agents
// and paths by Zipf's law, addresses and visits that seldom come back, and of each row what
// a decision service knows.
type Traffic struct {
	r                         *rand.Rand
	agents, addresses, visits []string
	agent, path               *rand.Zipf
	now                       time.Time
}

// What rows are labelled with.
var (
	scenarios  = []string{"edge-routing", "bot-check", "cache-policy"}
	actionSets = [][]string{{"edge", "origin", "shield"}, {"allow", "challenge", "deny"}, {"cache", "bypass", "revalidate"}}
	backends   = []string{"rules", "model", "rules-canary"}
	engines    = []string{"1.4.2", "1.4.1", "1.3.9"}
	plans      = []string{"2026-05-28.1", "2026-05-27.3", "2026-05-21.1"}
	languages  = []string{"en-US,en;q=0.5", "de-DE,de;q=0.9,en;q=0.8", "fr-FR,fr;q=0.9"}
)

// NewTraffic returns the traffic of a seed: the same seed makes the same rows.
func NewTraffic(seed uint64) *Traffic {
	t := &Traffic{r: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_780_000_000, 0).UTC()}
	t.agent, t.path = rand.NewZipf(t.r, 1.1, 8, 1499), rand.NewZipf(t.r, 1.1, 8, 19_999)
	systems := []string{"X11; Linux x86_64", "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "iPhone; CPU iPhone OS 18_5 like Mac OS X"}
	for i := range 1500 {
		t.agents = append(t.agents, fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.%d.%d Safari/537.36",
			systems[i%len(systems)], 90+t.r.IntN(60), 4000+t.r.IntN(3000), t.r.IntN(200)))
	}
	for range 60_000 {
		t.addresses = append(t.addresses, fmt.Sprintf("%d.%d.%d.%d", 1+t.r.IntN(223), t.r.IntN(256), t.r.IntN(256), t.r.IntN(256)))
	}
	for range 20_000 {
		t.visits = append(t.visits, fmt.Sprintf("%016x", t.r.Uint64()))
	}
	return t
}

// Rows makes the next n rows.
func (t *Traffic) Rows(n int) []snapshot.Snapshot {
	rows := make([]snapshot.Snapshot, n)
	for i := range rows {
		t.fill(&rows[i])
	}
	return rows
}

func (t *Traffic) fill(s *snapshot.Snapshot) {
	r := t.r
	t.now = t.now.Add(time.Duration(60_000 + r.IntN(120_000)))
	what := pick(r, 0.6, 0.3)
	actions := actionSets[what]
	*s = snapshot.Snapshot{ID: t.timeID(), RequestID: t.randomID(), Status: decision.OK, Time: t.now, Scenario: scenarios[what],
		Input: t.input(), Action: actions[pick(r, 0.7, 0.2)], Confidence: decision.Some(float64(r.Float32())),
		Backend:    backends[pick(r, 0.9, 0.07)],
		Artefact:   decision.Artefact{EngineVersion: engines[pick(r, 0.85, 0.1)], StrategyVersion: plans[pick(r, 0.85, 0.1)]},
		Propensity: decision.Some([]float64{1, 0.95, 0.05}[pick(r, 0.95, 0.04)]), KeepProb: 1,
		Cost: decision.Some(int64(1000 * (40 + r.IntN(60))))}
	s.TraceID = decision.Some([16]byte(t.randomID()))
	t.times(s)
	for _, a := range actions {
		s.Candidates = append(s.Candidates, decision.Candidate{Action: a, Score: decision.Some(r.Float32())})
	}
	s.Features = t.features()
}

// pick draws 0, 1 or 2 with the probabilities of the first two.
func pick(r *rand.Rand, first, second float64) int {
	switch p := r.Float64(); {
	case p < first:
		return 0
	case p < first+second:
		return 1
	}
	return 2
}

// timeID is a UUIDv7 of the traffic's own clock and randomness.
func (t *Traffic) timeID() (id decision.ID) {
	binary.BigEndian.PutUint64(id[:8], uint64(t.now.UnixMilli())<<16|t.r.Uint64()&0x0fff|0x7000)
	binary.BigEndian.PutUint64(id[8:], t.r.Uint64()&^(3<<62)|2<<62)
	return id
}

func (t *Traffic) randomID() (id decision.ID) {
	binary.BigEndian.PutUint64(id[:8], t.r.Uint64())
	binary.BigEndian.PutUint64(id[8:], t.r.Uint64())
	return id
}

// input is a request's headers as JSON, some 377 bytes.
func (t *Traffic) input() []byte {
	r := t.r
	return fmt.Appendf(nil, `{"method":"GET","path":"/api/v1/items/%d","headers":{"user-agent":%q,`+
		`"accept":"text/html,*/*","accept-language":%q,"x-forwarded-for":%q,"x-visit":%q,"referer":"/list?page=%d","cache-control":"no-cache"},"tls":"1.3"}`,
		t.path.Uint64(), t.agents[t.agent.Uint64()], languages[pick(r, 0.6, 0.25)],
		t.addresses[r.IntN(len(t.addresses))], t.visits[r.IntN(len(t.visits))], t.path.Uint64())
}

// times are of log-normal latencies, in whole microseconds as a service would measure.
func (t *Traffic) times(s *snapshot.Snapshot) {
	draw := func(us float64) time.Duration {
		return time.Duration(us*math.Exp(0.3*t.r.NormFloat64())) * time.Microsecond
	}
	queue, features, rules, serialise := draw(20), draw(80), draw(150), draw(30)
	s.Stages = decision.Stages{Queue: decision.Some(queue), Features: decision.Some(features), Rules: decision.Some(rules), Serialise: decision.Some(serialise)}
	s.Latency = decision.Some(queue + features + rules + serialise + draw(10))
}

// features are three of noise, three rounded, three counts and three flags.
func (t *Traffic) features() []float32 {
	f := make([]float32, 12)
	for i := range 3 {
		f[i] = t.r.Float32()
		f[3+i] = float32(t.r.IntN(1000)) / 100
		f[6+i] = float32(int(t.r.ExpFloat64() * 20))
		f[9+i] = float32(pick(t.r, 0.9, 0.1))
	}
	return f
}
