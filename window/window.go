package window

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/clefbench/clefbench/decision"
)

// Defaults of [Options].
const (
	DefaultSpan     = 10 * time.Second
	DefaultBuckets  = 20
	DefaultMaxNodes = 1024
)

// ErrOptions is wrapped by every error of [New] and [NewBreaker].
var ErrOptions = errors.New("window options")

// Options configure a [Window]; the zero value of a field is its default.
type Options struct {
	// Span is the length of the window, whole seconds from 1 s to 1 h; its seconds stand in
	// the names of the attributes.
	Span time.Duration
	// Buckets is the number of parts that leave the window one by one, 2 to 120.
	Buckets int
	// MaxNodes bounds the memory, about 1 KiB a bucket of each node. A call to a further
	// node is not counted, save in [Window.Refused].
	MaxNodes int
	// Now is the clock, time.Now by default. A clock that steps back counts into the
	// newest bucket.
	Now func() time.Time
}

// Window counts calls by node over a sliding span. It is safe for concurrent use.
type Window struct {
	span   time.Duration
	width  int64 // of a bucket, ns
	limit  int
	count  int
	now    func() time.Time
	suffix string

	mu      sync.RWMutex
	nodes   map[string]*node
	swept   int64 // the bucket in which silent nodes were last looked for
	refused uint64
}

// node is the ring of one node.
type node struct {
	mu      sync.Mutex
	last    int64 // number of the newest bucket
	buckets []bucket
}

// bucket is what happened in one part of the span.
type bucket struct {
	calls, failed uint64
	sum           time.Duration
	latency       [steps]uint32
}

// New returns an empty window. Errors wrap [ErrOptions].
func New(o Options) (*Window, error) {
	if o.Span == 0 {
		o.Span = DefaultSpan
	}
	if o.Buckets == 0 {
		o.Buckets = DefaultBuckets
	}
	if o.MaxNodes == 0 {
		o.MaxNodes = DefaultMaxNodes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Span < time.Second || o.Span > time.Hour || o.Span%time.Second != 0:
		return nil, fmt.Errorf("%w: span %v (want whole seconds, 1s to 1h)", ErrOptions, o.Span)
	case o.Buckets < 2 || o.Buckets > 120:
		return nil, fmt.Errorf("%w: %d buckets (want 2 to 120)", ErrOptions, o.Buckets)
	case o.MaxNodes < 1:
		return nil, fmt.Errorf("%w: %d nodes", ErrOptions, o.MaxNodes)
	}
	return &Window{span: o.Span, width: int64(o.Span) / int64(o.Buckets), limit: o.MaxNodes, count: o.Buckets, now: o.Now,
		suffix: fmt.Sprintf("_%ds", int(o.Span.Seconds())), nodes: map[string]*node{}}, nil
}

func (w *Window) tick() int64 { return w.now().UnixNano() / w.width }

// Observe counts one call to a node.
func (w *Window) Observe(name string, latency time.Duration, failed bool) {
	tick := w.tick()
	n := w.node(name, tick)
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.at(tick)
	b.calls++
	if failed {
		b.failed++
	}
	latency = max(0, latency)
	b.sum += latency
	b.latency[stepOf(latency)]++
}

// node finds a node's ring, or makes one; nil when there are too many.
func (w *Window) node(name string, tick int64) *node {
	w.mu.RLock()
	n := w.nodes[name]
	w.mu.RUnlock()
	if n != nil {
		return n
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.nodes[name]; n != nil {
		return n
	}
	if len(w.nodes) >= w.limit {
		w.sweep(tick)
	}
	if len(w.nodes) >= w.limit {
		w.refused++
		return nil
	}
	n = &node{last: tick, buckets: make([]bucket, w.count)}
	w.nodes[name] = n
	return n
}

// sweep forgets the nodes that have been silent for a window, at most once a bucket: where
// there are too many nodes for long, each call would look at all of them.
func (w *Window) sweep(tick int64) {
	if w.swept == tick {
		return
	}
	w.swept = tick
	for name, n := range w.nodes {
		n.mu.Lock()
		silent := tick-n.last >= int64(w.count)
		n.mu.Unlock()
		if silent {
			delete(w.nodes, name)
		}
	}
}

// at returns the bucket of a tick and empties what has left the window.
func (n *node) at(tick int64) *bucket {
	for range min(tick-n.last, int64(len(n.buckets))) {
		n.last++
		n.buckets[n.last%int64(len(n.buckets))] = bucket{}
	}
	n.last = max(n.last, tick)
	return &n.buckets[n.last%int64(len(n.buckets))]
}

// Refused is the number of calls that were not counted because there were too many nodes.
func (w *Window) Refused() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.refused
}

// Stats is what a window holds of a node.
type Stats struct {
	Calls, Failed uint64
	// Mean and the quantiles are 0 when there was no call.
	Mean, P50, P95, P99 time.Duration

	suffix string
}

// ErrorRate is Failed/Calls in [0,1]; false when there was no call: no news is not good
// news.
func (s *Stats) ErrorRate() (float64, bool) {
	return float64(s.Failed) / float64(max(1, s.Calls)), s.Calls > 0
}

// Read returns what the window holds of a node.
func (w *Window) Read(name string) Stats {
	s := Stats{suffix: w.suffix}
	w.mu.RLock()
	n := w.nodes[name]
	w.mu.RUnlock()
	if n == nil {
		return s
	}
	tick := w.tick()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at(tick)
	var all [steps]uint64
	var sum time.Duration
	for i := range n.buckets {
		b := &n.buckets[i]
		if b.calls == 0 {
			continue
		}
		s.Calls, s.Failed, sum = s.Calls+b.calls, s.Failed+b.failed, sum+b.sum
		for k, c := range b.latency {
			all[k] += uint64(c)
		}
	}
	if s.Calls > 0 {
		s.Mean = sum / time.Duration(s.Calls)
		s.P50, s.P95, s.P99 = quantile(&all, s.Calls, 50), quantile(&all, s.Calls, 95), quantile(&all, s.Calls, 99)
	}
	return s
}

// Fields are the attributes of [Stats.Attributes], in its order, for a capture list and for
// a schema.
func (w *Window) Fields() []decision.Field {
	names := []decision.Field{{Name: "requests", Type: decision.Int}, {Name: "errors", Type: decision.Int}, {Name: "error_rate", Type: decision.Double},
		{Name: "latency_mean_ms", Type: decision.Double}, {Name: "latency_p50_ms", Type: decision.Double},
		{Name: "latency_p95_ms", Type: decision.Double}, {Name: "latency_p99_ms", Type: decision.Double}}
	for i := range names {
		names[i].Name = "local." + names[i].Name + w.suffix
	}
	return names
}

// Attributes are the figures as attribute values, in the order of [Window.Fields]. Of a
// node without calls the counts are 0 and everything else is absent, so that a rule on the
// error rate is skipped and said to be, instead of seeing a perfect node.
func (s *Stats) Attributes() []decision.Value {
	out := make([]decision.Value, 7)
	out[0], out[1] = decision.IntValue(int64(s.Calls)), decision.IntValue(int64(s.Failed))
	rate, ok := s.ErrorRate()
	if !ok {
		return out
	}
	out[2] = decision.DoubleValue(rate)
	for i, d := range []time.Duration{s.Mean, s.P50, s.P95, s.P99} {
		out[3+i] = decision.DoubleValue(float64(d) / float64(time.Millisecond))
	}
	return out
}

// The histogram has perOctave steps from one power of two microseconds to the next, up to
// about 36 minutes; the first octave counts single microseconds.
const (
	perOctave = 8
	steps     = 240
)

// stepOf is the step of a latency: exact below 8 µs, then by the three bits after the
// highest one.
func stepOf(d time.Duration) int {
	us := uint64((d + time.Microsecond - 1) / time.Microsecond) // up, so that no quantile is too low
	if us < perOctave {
		return int(us)
	}
	e := bits.Len64(us) - 4
	return min((e+1)*perOctave+int(us>>e)-perOctave, steps-1)
}

// upper is the largest latency of a step.
func upper(step int) time.Duration {
	if step < perOctave {
		return time.Duration(step) * time.Microsecond
	}
	e := step/perOctave - 1
	us := (uint64(step%perOctave)+perOctave+1)<<e - 1
	return time.Duration(us) * time.Microsecond
}

// quantile is the upper end of the step that holds the nearest rank.
func quantile(all *[steps]uint64, n uint64, percent uint64) time.Duration {
	rank := (n*percent + 99) / 100
	for step, c := range all {
		if c >= rank {
			return upper(step)
		}
		rank -= c
	}
	return upper(steps - 1)
}
