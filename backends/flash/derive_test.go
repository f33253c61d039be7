package flash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// thresholds is a source with two cuts on a number, one on a text, and an attribute that
// no dimension has.
type thresholds struct{ silent bool }

func (thresholds) Info() decision.Info {
	return decision.Info{Name: "t", Kind: "test", Attributes: []string{"metrics.load", "path", "local.rare"}, Artefact: decision.Artefact{StrategyVersion: "7"}}
}
func (thresholds) Close(context.Context) error { return nil }
func (s thresholds) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	for i := range out.Decisions {
		d := &out.Decisions[i]
		d.Status, d.Action, d.Reason = decision.OK, "pass", decision.Reason{Kind: decision.ReasonFallback}
		load, _ := req.Attrs.Get("metrics.load").Number()
		switch {
		case s.silent && load > 0.5:
			*d = decision.Decision{Status: decision.Abstain}
		case req.Attrs.Get("local.rare").Bool():
			d.Action, d.Reason = "odd", decision.Reason{Kind: decision.ReasonMatch, Rule: "rare"}
		case load >= 0.8:
			d.Action, d.Params, d.Reason = "shed", `{"ttl":5,"type":"x"}`, decision.Reason{Kind: decision.ReasonMatch, Rule: "high"}
		case load >= 0.3 && req.Attrs.Get("path").Str() == "/api":
			d.Action, d.Reason = "slow", decision.Reason{Kind: decision.ReasonMatch, Rule: "api"}
		}
	}
	return nil
}

const deriveDims = `{"scenarios": ["edge"], "dimensions": [
  {"name": "load", "from": "metrics.load", "values": ["low", "high"], "mapping": {"<0.5": "low", "0.5+": "high", "<missing>": "low"}},
  {"name": "path", "values": ["/api", "rest"], "mapping": {"/api": "/api", "<other>": "rest"}},
  {"name": "seen", "from": "path", "classify": "present", "values": ["yes", "no"]}
]}`

func deriveRequests(t testing.TB, n int) []*decision.Request {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "local.rare", Type: decision.Bool},
		decision.Field{Name: "metrics.load", Type: decision.Double})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var out []*decision.Request
	for i := range n {
		values := []decision.Value{decision.StringValue([]string{"/api", "/", "/x"}[r.IntN(3)]), decision.BoolValue(r.IntN(20) == 0), decision.DoubleValue(r.Float64())}
		if r.IntN(10) == 0 {
			values[r.IntN(3)] = decision.Value{}
		}
		out = append(out, &decision.Request{ID: decision.ID{byte(i >> 8), byte(i), 1}, Attrs: decision.Attrs{Schema: schema, Values: values}, Questions: make([]decision.Question, 1)})
	}
	return out
}

// The table says in each cell what its source says most, and the report holds exactly the
// requests that it answers otherwise, weight for weight.
func TestDerivedTableAndItsReport(t *testing.T) {
	ctx := context.Background()
	d, err := NewDeriver("dims.json", []byte(deriveDims), thresholds{})
	if err != nil {
		t.Fatal(err)
	}
	reqs := deriveRequests(t, 2000)
	weight := func(i int) float64 { return float64(1 + i%3) }
	for i, r := range reqs {
		if err := d.Add(ctx, r, weight(i)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cfb, err := CompileMatrix("derived.json", got.Matrix)
	if err != nil {
		t.Fatalf("%v\n%s", err, got.Matrix)
	}
	table, err := Open("derived.cfb", cfb)
	if err != nil {
		t.Fatal(err)
	}
	differs, sum := 0, 0.0
	for i, r := range reqs {
		var a, b decision.Response
		if err := errors.Join(table.Decide(ctx, r, &a), thresholds{}.Decide(ctx, r, &b)); err != nil {
			t.Fatal(err)
		}
		if x, y := a.Decisions[0], b.Decisions[0]; x.Action != y.Action || x.Params != y.Params || x.Status != y.Status {
			differs, sum = differs+1, sum+weight(i)
		}
	}
	rows, w := 0, 0.0
	for _, x := range got.Differs {
		rows, w = rows+x.Rows, w+x.Weight
	}
	if rows != differs || math.Abs(w-sum) > 1e-9 || rows == 0 {
		t.Errorf("%d rows of weight %v differ, the report has %d of %v", differs, sum, rows, w)
	}
	if got.Cells != 8 || got.Measured != 4 || got.Made != 0 || got.Unreached != 4 || got.Rows != 2000 || fmt.Sprint(got.Unread) != "[local.rare]" {
		got.Matrix = nil
		t.Errorf("%+v", got)
	}
	if v := table.Info(); v.Artefact.StrategyVersion != "7" || v.Scenarios[0] != "edge" {
		t.Errorf("%+v", v)
	}
}

// Without requests the cells hold the source's answers to made-up ones.
func TestDerivedWithoutRequests(t *testing.T) {
	d, err := NewDeriver("dims.json", []byte(deriveDims), thresholds{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Finish(context.Background())
	if err != nil || len(got.Differs) > 0 || got.Made != 4 || got.Unreached != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := `{
  "version": "7",
  "scenarios": ["edge"],
  "dimensions": [{"from":"metrics.load","mapping":{"0.5+":"high","<0.5":"low","<missing>":"low"},"name":"load","values":["low","high"]},{"mapping":{"/api":"/api","<other>":"rest"},"name":"path","values":["/api","rest"]},{"classify":"present","from":"path","name":"seen","values":["yes","no"]}],
  "actions": [{"id":1,"name":"pass"},{"id":2,"name":"shed","ttl":5,"type":"x"}],
  "matrix": [
    [
      [1,1],
      [1,1]],
    [
      [2,1],
      [2,1]]]
}
`
	if string(got.Matrix) != want {
		t.Errorf("%s", got.Matrix)
	}
}

func TestDeriveNeedsAnActionForEachCell(t *testing.T) {
	d, err := NewDeriver("dims.json", []byte(deriveDims), thresholds{silent: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Finish(context.Background()); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("%v", err)
	}
	if _, err := NewDeriver("dims.json", []byte(`{"dimensions": [], "matrix": []}`), thresholds{}); err == nil {
		t.Error("no error for a broken file")
	}
}
