package scoring

import (
	"encoding/binary"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

func idOf(n uint64) (id decision.ID) {
	binary.BigEndian.PutUint64(id[8:], n+1)
	return id
}

// outcome is an answered outcome of row n: its own request and cluster.
func outcome(lane string, n int, action string) *snapshot.Outcome {
	return &snapshot.Outcome{
		Ref: snapshot.Ref{Segment: "s", Row: int64(n)}, ID: idOf(uint64(n)), RequestID: idOf(uint64(n)),
		Scenario: "s1", KeepProb: 1, Backend: lane, Status: decision.OK, Action: action,
		Latency: decision.Some(time.Millisecond),
	}
}

func label(n int, action string) *snapshot.Label {
	return &snapshot.Label{Ref: snapshot.Ref{Segment: "s", Row: int64(n)}, ID: idOf(uint64(n)), Action: action}
}

func rowsOf(rows []*Row) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func preset(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSmoke(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []*Row
	for n := range 2000 {
		truth := []string{"allow", "block"}[rng.IntN(2)]
		r := &Row{Label: label(n, truth)}
		for _, acc := range []float64{0.9, 0.8, 0.8} {
			a := truth
			if rng.Float64() > acc {
				a = "other"
			}
			o := outcome("x", n, a)
			o.Latency = decision.Some(time.Duration(1e6 * rng.ExpFloat64()))
			r.Outcomes = append(r.Outcomes, o)
		}
		rows = append(rows, r)
	}
	p := preset(t, "default")
	p.Prices = &PriceBook{Currency: "USD", Prices: []Price{{Backend: "*", Unit: "decision", Price: 1e-6}}}
	card, err := Score(Input{Lanes: []Lane{{"a", "rules"}, {"b", "rules"}, {"c", "flash"}}, Rows: rowsOf(rows)}, p)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.MarshalIndent(card, "", " ")
	t.Logf("%s", data)
	if err := Recompute(card); err != nil {
		t.Error(err)
	}
}
