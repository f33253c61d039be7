package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// traffic is one day of a service: what is rare, wrong or unsure in it costs more than
// the rest, so that keeping it more often shifts every naive figure.
func traffic(rng *rand.Rand, n int) (rows [][]*snapshot.Snapshot, cost map[decision.ID]float64) {
	cost = map[decision.ID]float64{}
	for i := range n {
		s := row(i)
		s.ID, s.RequestID = decision.ID{1, byte(i >> 8), byte(i)}, decision.ID{2, byte(i >> 8), byte(i)}
		var entity [8]byte
		binary.BigEndian.PutUint64(entity[:], rng.Uint64N(60)+1)
		s.Entity, s.Scenario = decision.Some(entity), []string{"edge", "fraud"}[i%2]
		s.Confidence = decision.Some(rng.Float64())
		x := 1 + rng.Float64()
		switch u := rng.Float64(); {
		case u < 0.05:
			s.Status, s.Action, x = decision.Error, "", x+20
		case u < 0.08:
			s.Action, x = "quarantine", x+30
		case u < 0.15:
			s.RuleID, x = "R17", x+10
		}
		if s.Confidence.V < 0.2 {
			x += 5
		}
		cost[s.ID] = x
		request := []*snapshot.Snapshot{s}
		if i%3 == 0 { // a second row, which is never remarkable itself
			t := s.Clone()
			t.ID, t.Question, t.Status, t.Action, t.RuleID = decision.ID{3, byte(i >> 8), byte(i)}, "second", decision.OK, "allow", ""
			t.Confidence = decision.Some(0.9)
			cost[t.ID] = 2
			request = append(request, t)
		}
		rows = append(rows, request)
	}
	return rows, cost
}

// kept is what one recorder keeps of the traffic.
func kept(t *testing.T, seed uint64, s Sampling, rows [][]*snapshot.Snapshot) []*snapshot.Snapshot {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: 0.2, Sampling: s, Random: rng.Float64, QueueRows: 1 << 16,
		EntityKey: fmt.Appendf(nil, "%032d", seed)})
	for _, q := range rows {
		if s.ByEntity { // the rows' hashes are those of this seed's key
			for i, row := range q {
				c := *row
				c.Entity = decision.Some(r.sampler.hashed(fmt.Sprint(row.Entity.V)))
				q = append(q[:i:i], append([]*snapshot.Snapshot{&c}, q[i+1:]...)...)
			}
		}
		r.Record(context.Background(), q...)
	}
	led := closeNow(t, r)
	offered := 0
	for _, q := range rows {
		offered += len(q)
	}
	if led.Offered != uint64(offered) || led.Written+led.SampledOut != led.Offered || led.Written != uint64(len(sink.all())) {
		t.Fatalf("ledger %+v of %d rows", led, offered)
	}
	if q := led.Requests; q.Offered != uint64(len(rows)) || q.Written+q.SampledOut != q.Offered {
		t.Fatalf("ledger of requests %+v of %d", q, len(rows))
	}
	return sink.all()
}

// The mean of the weighted total over many draws is the true total; the naive mean cost
// is not the true mean wherever a condition tells requests apart.
func TestSampledEstimatesAreUnbiased(t *testing.T) {
	seeds := 250
	if testing.Short() {
		seeds = 60
	}
	rows, cost := traffic(rand.New(rand.NewPCG(7, 7)), 240)
	total, n := 0.0, 0.0
	for _, q := range rows {
		for _, s := range q {
			total, n = total+cost[s.ID], n+1
		}
	}
	for name, c := range map[string]struct {
		s      Sampling
		biased bool // the naive mean is off
	}{
		"head":       {Sampling{}, false},
		"entity":     {Sampling{ByEntity: true}, false},
		"errors":     {Sampling{Statuses: []decision.Status{decision.Error}}, true},
		"confidence": {Sampling{ConfidenceBelow: 0.3}, true},
		"rare":       {Sampling{RareBelow: 0.08}, true},
		"all": {Sampling{ByEntity: true, Statuses: []decision.Status{decision.Error}, ConfidenceBelow: 0.2, RareBelow: 0.1,
			Rules: []string{"R17"}, Actions: []string{"quarantine"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var weighted, counted, naive moments
			for seed := range seeds {
				sum, weight, plain := 0.0, 0.0, 0.0
				got := kept(t, uint64(seed), c.s, rows)
				for _, s := range got {
					sum, weight, plain = sum+cost[s.ID]*s.Weight(), weight+s.Weight(), plain+cost[s.ID]
				}
				weighted.add(sum)
				counted.add(weight)
				if len(got) > 0 {
					naive.add(plain / float64(len(got)))
				}
			}
			if z := weighted.z(total); math.Abs(z) > 4.5 {
				t.Errorf("weighted total %.0f, true %.0f, z = %.1f", weighted.mean(), total, z)
			}
			if z := counted.z(n); math.Abs(z) > 4.5 {
				t.Errorf("weighted count %.1f, true %.0f, z = %.1f", counted.mean(), n, z)
			}
			z := naive.z(total / n)
			t.Logf("z of the weighted total %.1f, of the weighted count %.1f, of the naive mean %.1f", weighted.z(total), counted.z(n), z)
			if c.biased && math.Abs(z) < 10 {
				t.Errorf("the naive mean is not off (z = %.1f): this test could not tell", z)
			}
		})
	}
}

// moments of a sample.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+x*x }
func (m *moments) mean() float64 { return m.sum / m.n }
func (m *moments) z(want float64) float64 {
	v := (m.squares - m.sum*m.sum/m.n) / (m.n - 1)
	return (m.mean() - want) / math.Sqrt(v/m.n)
}

// Requests are kept or left whole, and their rows share a keep probability, which is 1
// exactly where a condition is met.
func TestSamplingKeepsRequestsWhole(t *testing.T) {
	rows, _ := traffic(rand.New(rand.NewPCG(1, 1)), 600)
	s := Sampling{Statuses: []decision.Status{decision.Error}, Actions: []string{"quarantine"}, ConfidenceBelow: 0.1}
	want, met := map[decision.ID]int{}, map[decision.ID]bool{}
	for _, q := range rows {
		want[q[0].RequestID] = len(q)
		for _, row := range q { // the conditions, said once more
			if row.Status == decision.Error || row.Action == "quarantine" || row.Confidence.V < 0.1 {
				met[row.RequestID] = true
			}
		}
	}
	got, head := map[decision.ID]int{}, 0
	for _, row := range kept(t, 3, s, rows) {
		got[row.RequestID]++
		if p := map[bool]float64{true: 1, false: 0.2}[met[row.RequestID]]; row.KeepProb != p {
			t.Fatalf("keep probability %v, want %v", row.KeepProb, p)
		}
		if !met[row.RequestID] {
			head++
		}
	}
	for id, n := range got {
		if n != want[id] {
			t.Errorf("%d of the %d rows of a request were kept", n, want[id])
		}
	}
	for id := range met {
		if got[id] == 0 {
			t.Error("a request that meets a condition was left out")
		}
	}
	if head == 0 {
		t.Error("no request was kept by the head draw")
	}
}

// What the rows bring is multiplied, not replaced.
func TestSamplingMultiplies(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: 0.25, Random: func() float64 { return 0 }, Sampling: Sampling{Actions: []string{"deny"}}})
	for _, c := range []struct {
		action string
		given  float64
	}{{"allow", 0.5}, {"deny", 0.5}, {"allow", 0}, {"deny", 0}} {
		s := row(1)
		s.Action, s.KeepProb = c.action, c.given
		r.Record(context.Background(), s)
	}
	closeNow(t, r)
	var got []float64
	for _, s := range sink.all() {
		got = append(got, s.KeepProb)
	}
	if want := []float64{0.125, 0.5, 0.25, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Two hosts under one key keep the same entities, by every way that a row comes in;
// under another key others.
func TestSamplingByEntity(t *testing.T) {
	run := func(key []byte, seed uint64) (entities map[[8]byte]int, names map[string]bool) {
		sink := &memory{}
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRecorder(t, sink, Options{EntityKey: key, SampleRate: 0.3, Scenario: "s", Random: rng.Float64, QueueRows: 1 << 16,
			Sampling: Sampling{ByEntity: true}, Capture: Capture{Entity: EntitySource{Header: "X-User"}}})
		h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			d := FromContext(q.Context()).Decision("")
			d.Choose(q.Header.Get("X-User"))
		}))
		late := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			rec := FromContext(q.Context())
			rec.SetEntity(q.Header.Get("X-Late"))
			rec.Decision("").Choose(q.Header.Get("X-Late"))
		}))
		for i := range 400 {
			name := fmt.Sprint("user", i)
			for range 2 {
				q := httptest.NewRequest("GET", "/", nil)
				q.Header.Set("X-User", name)
				h.ServeHTTP(httptest.NewRecorder(), q)
				q = httptest.NewRequest("GET", "/", nil)
				q.Header.Set("X-Late", name)
				late.ServeHTTP(httptest.NewRecorder(), q)
			}
			s := row(i)
			s.Action, s.Entity = name, decision.Some(r.sampler.hashed(name))
			r.Record(context.Background(), s)
		}
		closeNow(t, r)
		entities, names = map[[8]byte]int{}, map[string]bool{}
		for _, s := range sink.all() {
			entities[s.Entity.V]++
			names[s.Action] = true
			if s.KeepProb != 0.3 {
				t.Fatalf("keep probability %v", s.KeepProb)
			}
		}
		return entities, names
	}
	a, names := run(key, 1)
	b, _ := run(key, 2)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("one key, but %d and %d entities", len(a), len(b))
	}
	for e, n := range a {
		if n != 5 {
			t.Errorf("%d of the 5 requests of %x were kept", n, e)
		}
	}
	if z := (float64(len(a)) - 400*0.3) / math.Sqrt(400*0.3*0.7); math.Abs(z) > 4.5 {
		t.Errorf("%d of 400 entities were kept", len(a))
	}
	_, others := run([]byte("another key, of sixteen or more"), 1)
	if reflect.DeepEqual(names, others) {
		t.Error("another key keeps the same entities")
	}
}

// The middleware captures what a condition may want before it knows; what is left out
// counts as sampled out, with the shadow of the head draw only.
func TestTailThroughTheMiddleware(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", SampleRate: 0.5, Random: func() float64 { return 0.9 }, // never by the head
		Sampling: Sampling{Statuses: []decision.Status{decision.Error}, Scenarios: []string{"watched"}},
		Capture:  Capture{Fields: []CaptureField{{Name: "path", Type: decision.String}}, Input: true}})
	s := newShadow(t, r, &candidate{}, ShadowOptions{})
	b := r.Wrap(&fake{answer: "allow"}, s)
	h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rec := FromContext(q.Context())
		body := make([]byte, 2)
		q.Body.Read(body)
		switch q.URL.Path {
		case "/open":
			rec.Decision("")
		case "/watched":
			rec.SetScenario("watched")
			rec.Decision("").Choose("allow")
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/wrapped":
			b.Decide(q.Context(), shadowRequest(), &decision.Response{})
		default:
			rec.Decision("").Choose("allow")
		}
	}))
	for _, path := range []string{"/open", "/watched", "/panic", "/wrapped", "/ordinary"} {
		func() {
			defer func() { recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, strings.NewReader("in")))
		}()
	}
	closeShadow(t, s)
	led := closeNow(t, r)
	var got []string
	for _, s := range sink.all() {
		got = append(got, s.Attrs.Get("path").Str()+" "+string(s.Input)+" "+fmt.Sprint(s.KeepProb))
	}
	if want := []string{"/open in 1", "/watched in 1", "/panic in 1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if led.SampledOut != 3 || led.Offered != 6 {
		t.Errorf("ledger %+v", led)
	}
	if r.Stats().Shadow.Asked != 0 {
		t.Error("a request that the head draw leaves out was shadowed")
	}
}

// The share of an action is counted exactly while the table has room, from many
// goroutines.
func TestRareActions(t *testing.T) {
	p, err := NewSampler(0.5, Sampling{RareBelow: 0.1}, nil, rand.Float64)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				p.Meets(&SampledRow{Scenario: "a", Action: "allow"})
				p.Meets(&SampledRow{Scenario: "b", Action: "deny"})
			}
		})
	}
	wg.Wait()
	if got := p.counts.share("a", "allow"); got != 1 {
		t.Errorf("share %v of the only action", got)
	}
	if got := p.counts.share("a", "deny"); got != 1.0/2002 {
		t.Errorf("share %v of an action seen once: that of another scenario counts", got)
	}
	for i := range 50_000 { // made-up names cost no memory, and answers stay answers
		if s := p.counts.share("c", fmt.Sprint(i)); !(s > 0) {
			t.Fatalf("share %v", s)
		}
	}
}

func TestParseKeep(t *testing.T) {
	got, err := ParseKeep(" errors, confidence<0.6,action=block,action=deny,rule=R17 , denied,rare<1e-3,scenario=a=b<c")
	want := Sampling{Statuses: []decision.Status{decision.Error, decision.Timeout, decision.Denied}, Actions: []string{"block", "deny"},
		Rules: []string{"R17"}, Scenarios: []string{"a=b<c"}, ConfidenceBelow: 0.6, RareBelow: 0.001}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v", err, got)
	}
	if s := got.String(); s != "error,timeout,denied,confidence<0.6,rare<0.001,action=block,action=deny,rule=R17,scenario=a=b<c" {
		t.Errorf("prints as %q", s)
	}
	if s, err := ParseKeep(" "); err != nil || s.tail() || s.String() != "" {
		t.Errorf("nothing reads as %+v, %v", s, err)
	}
	for _, bad := range []string{",", "errors,", "ok", "none", "always", "confidence<0", "confidence<1.1", "confidence<NaN", "confidence<x",
		"confidence<0.1,confidence<0.2", "rare", "rare<", "action=", "=x", "action", "colour=red", "confidence>0.5"} {
		if s, err := ParseKeep(bad); !errors.Is(err, ErrOptions) || s.tail() {
			t.Errorf("%q: %+v, %v", bad, s, err)
		}
	}
	for _, s := range []Sampling{{ByEntity: true}, {ConfidenceBelow: -1}, {RareBelow: 2}, {RareBelow: math.NaN()}} {
		if _, err := New(&memory{}, Options{Sampling: s}); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	s := Sampling{ByEntity: true, Statuses: []decision.Status{decision.Error}, RareBelow: 0.01}
	if got := s.Describe(0.1); got != "rate=0.1 by=entity keep=error,rare<0.01" {
		t.Errorf("got %q", got)
	}
	if got := (Sampling{}).Describe(0.25); got != "rate=0.25 by=request" {
		t.Errorf("got %q", got)
	}
	if s.Describe(1) != "" || s.Describe(0) != "" {
		t.Error("nothing is left out, but something is said")
	}
}

func FuzzParseKeep(f *testing.F) {
	for _, s := range []string{"errors,confidence<0.6,action=block,rule=R17", "rare<1,denied", " , ", "scenario=\x00=<"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseKeep(text)
		if err != nil {
			return
		}
		again, err := ParseKeep(s.String())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%q reads as %+v, prints as %q, which reads as %+v, %v", text, s, s.String(), again, err)
		}
		if err := s.validate(nil); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkSampler(b *testing.B) {
	all := Sampling{Statuses: []decision.Status{decision.Error}, Actions: []string{"block"}, ConfidenceBelow: 0.1, Rules: []string{"R1"}}
	rare := all
	rare.RareBelow = 0.01
	for name, s := range map[string]Sampling{"conditions": all, "rare": rare} {
		p, err := NewSampler(0.1, s, key, rand.Float64)
		if err != nil {
			b.Fatal(err)
		}
		row := SampledRow{Scenario: "edge", Action: "allow", Rule: "R2", Status: decision.OK, Confidence: decision.Some(0.9)}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p.Keep(p.Draw(), p.Meets(&row))
				}
			})
		})
	}
	p, err := NewSampler(0.1, Sampling{ByEntity: true}, key, rand.Float64)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("entity", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.head(true, "user 4711", true)
		}
	})
}
