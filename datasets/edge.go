package datasets

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// The edge-routing world: an object was asked for some times within the last window; the
// service decides where to keep it, and pays for what the next horizon brings.
const (
	edgeWindow  = 3600.0 // seconds that the request count covers
	edgeHorizon = 1800.0 // seconds that a placement is judged by, at most to expiry
)

// edgeClass is one kind of content: its request rate per second is Gamma(shape, rate),
// the logarithm of its size in KB is normal, and it expires after ttl seconds.
type edgeClass struct {
	name                    string
	share                   float64
	shape, rate             float64
	logSize, logSpread, ttl float64
}

func edgeClasses() [4]edgeClass {
	return [4]edgeClass{
		{"html", 0.30, 0.7, 90, 3.4, 0.7, 7200},
		{"image", 0.35, 0.6, 100, 4.8, 0.9, 86400},
		{"video", 0.15, 0.5, 60, 7.6, 0.8, 86400},
		{"api", 0.20, 0.9, 40, 1.6, 0.8, 1200},
	}
}

// EdgeTruth is what a backend never sees: the latent state of a row, and the exact
// distribution of its truth given what is visible. The slices run parallel to the
// example's candidates.
type EdgeTruth struct {
	// Rate is the object's own request rate per second, Demand the number of requests
	// that came within Horizon seconds.
	Rate, Horizon float64
	Demand        int
	// Reuse is P(Demand > 0 | visible attributes) = 1 - ((b+T)/(b+T+horizon))^(a+c).
	Reuse float64
	// Best is the probability that the candidate turns out cheapest; Expected is its
	// expected utility. The ceiling of a set of rows is the mean of their maxima.
	Best, Expected []float64
}

// EdgeRouting generates rows from, from+1, ... from+n-1 of the edge-routing scenario.
// Every row has a random stream of its own (PCG seeded by SHA-256 of seed, row and
// scenario), so that a row does not depend on which others are generated. Attributes and
// utilities are rounded to 1e-6, so that they are the same bits on machines that fuse
// multiplications and additions.
//
// A row's object has a rate from its class's Gamma distribution, so that past and future
// counts are Gamma-Poisson and the posterior given the past count has a closed form. The
// label's utilities are realised: 1 - (cost-min)/(max-min) over the candidates for the
// demand that came.
func EdgeRouting(seed uint64, from, n int) iter.Seq2[*Example, *EdgeTruth] {
	return func(yield func(*Example, *EdgeTruth) bool) {
		schema, err := edgeSchema()
		if err != nil {
			return // not reached: the fields are fixed and distinct
		}
		for row := from; row < from+n; row++ {
			if !yield(edgeExample(schema, seed, row)) {
				return
			}
		}
	}
}

func edgeSchema() (*decision.Schema, error) {
	return schemaOf(
		decision.Field{Name: "local.content_class", Type: decision.String},
		decision.Field{Name: "metrics.window_requests", Type: decision.Int},
		decision.Field{Name: "metrics.object_kb", Type: decision.Double},
		decision.Field{Name: "metrics.age_s", Type: decision.Double},
		decision.Field{Name: "metrics.fresh_s", Type: decision.Double})
}

func edgeTask() scoring.Task {
	t := scoring.Task{
		Candidates:    []string{"edge_cache", "regional", "origin"},
		LabelStrength: "exact: generated, with a known posterior",
	}
	sum, n := 0.0, 0
	for ex, truth := range EdgeRouting(demoEdgeSeed, 0, demoEdgeRows) {
		if !ex.Train {
			sum += max(truth.Best[0], truth.Best[1], truth.Best[2])
			n++
		}
	}
	t.Ceiling = scoring.Number(sum / float64(n))
	return t
}

// edgeObject is one row before it becomes an example.
type edgeObject struct {
	class     edgeClass
	count     int
	kb, age   float64
	horizon   float64
	rate      float64
	demand    int
	pathToken uint64
}

func edgeExample(schema *decision.Schema, seed uint64, row int) (*Example, *EdgeTruth) {
	o := drawEdge(seed, row)
	path := fmt.Sprintf("/%s/%016x", o.class.name, o.pathToken)
	id := fmt.Sprintf("edge-routing/%d/%d", seed, row)
	ex := &Example{
		Scenario: EdgeRoute, Method: "GET", Path: path,
		Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{
			decision.StringValue("GET"), decision.StringValue(path),
			decision.StringValue(o.class.name), decision.IntValue(int64(o.count)),
			decision.DoubleValue(o.kb), decision.DoubleValue(o.age), decision.DoubleValue(round6(o.class.ttl - o.age)),
		}},
		Candidates: []string{"edge_cache", "regional", "origin"},
		Label:      snapshot.Label{Source: "edge-routing generator"},
		SourceID:   id,
		Entity:     path,
		Train:      inTrain(id),
	}
	u, best := edgeUtilities(o.kb, o.demand)
	ex.Label.Action = ex.Candidates[best]
	for i, a := range ex.Candidates {
		ex.Label.Utilities = append(ex.Label.Utilities, snapshot.ActionUtility{Action: a, Utility: u[i]})
	}
	return ex, o.truth()
}

// drawEdge samples a row: class, size, age, then the latent rate, what the window saw of
// it and what the horizon will.
func drawEdge(seed uint64, row int) edgeObject {
	r := rowStream(seed, row, EdgeRoute)
	classes := edgeClasses()
	o := edgeObject{class: classes[len(classes)-1]}
	for u, i := r.Float64(), 0; i < len(classes); i++ {
		if u -= classes[i].share; u < 0 {
			o.class = classes[i]
			break
		}
	}
	c := o.class
	o.kb = max(round6(math.Exp(c.logSize+float64(c.logSpread*normal(r)))), 0.001)
	o.age = round6(float64(c.ttl * r.Float64()))
	o.horizon = min(edgeHorizon, round6(c.ttl-o.age))
	o.rate = gamma(r, c.shape) / c.rate
	o.count = poisson(r, float64(o.rate*edgeWindow))
	o.demand = poisson(r, float64(o.rate*o.horizon))
	o.pathToken = r.Uint64()
	return o
}

// edgeCosts prices the three candidates for a demand. A request costs latency and
// transfer, which are lower the nearer the object is; keeping it costs space, which is
// dearer the nearer it is. What all three pay alike is left out.
func edgeCosts(kb float64, demand int) [3]float64 {
	n := float64(demand)
	return [3]float64{
		4.0 + float64(0.012*kb) + float64(n*0.08),
		1.4 + float64(0.0042*kb) + float64(n*(0.5+float64(0.0008*kb))),
		float64(n * (1 + float64(0.0016*kb))),
	}
}

// edgeUtilities returns the utility of each candidate and the index of the cheapest.
func edgeUtilities(kb float64, demand int) (u [3]float64, best int) {
	c := edgeCosts(kb, demand)
	lo, hi := min(c[0], c[1], c[2]), max(c[0], c[1], c[2])
	for i, x := range c {
		u[i] = round6(1 - (x-lo)/(hi-lo))
		if x < c[best] {
			best = i
		}
	}
	return u, best
}

// truth integrates over the demand given the visible attributes. Rate | count is
// Gamma(a+c, b+T), so demand | count is negative binomial with r = a+c and
// q = horizon/(b+T+horizon). The sum stops when all but 1e-13 is covered.
func (o *edgeObject) truth() *EdgeTruth {
	t := &EdgeTruth{Rate: o.rate, Horizon: o.horizon, Demand: o.demand, Best: make([]float64, 3), Expected: make([]float64, 3)}
	r := o.class.shape + float64(o.count)
	b := o.class.rate + edgeWindow
	q := o.horizon / (b + o.horizon)
	logp := r * math.Log(b/(b+o.horizon))
	t.Reuse = -math.Expm1(logp)
	covered := 0.0
	for k := 0; covered < 1-1e-13 && k < 1<<20; k++ {
		if k > 0 {
			logp += math.Log((r + float64(k) - 1) / float64(k) * q)
		}
		p := math.Exp(logp)
		u, best := edgeUtilities(o.kb, k)
		t.Best[best] += p
		for i := range u {
			t.Expected[i] += float64(p * u[i])
		}
		if covered += p; p == 0 && float64(k) > r*q/(1-q) {
			break
		}
	}
	return t
}

// rowStream is a row's own random stream.
func rowStream(seed uint64, row int, scenario string) *rand.Rand {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(row))
	h := sha256.Sum256(append(b[:], scenario...))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(h[:8]), binary.LittleEndian.Uint64(h[8:16])))
}

// The samplers below are written out because math/rand/v2 has no gamma or Poisson, and
// promises its generators' bits but not its distributions'.

// normal is Box-Muller's cosine branch.
func normal(r *rand.Rand) float64 {
	u, v := 1-r.Float64(), r.Float64()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

// gamma samples Gamma(shape, 1) by Marsaglia and Tsang (2000), with their boost for a
// shape below 1.
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(1-r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := normal(r)
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < 0.5*x*x+d-float64(d*v)+float64(d*math.Log(v)) {
			return d * v
		}
	}
}

// poisson multiplies uniforms (Knuth), in portions that do not underflow: a sum of
// independent Poissons is Poisson.
func poisson(r *rand.Rand, mean float64) int {
	n := 0
	for ; mean > 30; mean -= 30 {
		n += poisson(r, 30)
	}
	limit := math.Exp(-mean)
	for p := 1 - r.Float64(); p > limit; p *= 1 - r.Float64() {
		n++
	}
	return n
}

func round6(x float64) float64 { return math.Round(x*1e6) / 1e6 }
