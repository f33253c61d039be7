package flash

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

func openEdge(t testing.TB) *Table {
	t.Helper()
	tab, err := Open("edge.cfb", compileEdge(t))
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// edgeRequest has the attributes of testdata/edge.json; nil leaves one out.
func edgeRequest(t testing.TB, rate, agent, key, country any) *decision.Request {
	t.Helper()
	schema, err := decision.NewSchema(
		decision.Field{Name: "headers.user-agent", Type: decision.String},
		decision.Field{Name: "metrics.edge_error_rate_1m", Type: decision.Double},
		decision.Field{Name: "env.country", Type: decision.String},
		decision.Field{Name: "headers.x-api-key", Type: decision.String})
	if err != nil {
		t.Fatal(err)
	}
	req := &decision.Request{
		ID: decision.NewID(time.Unix(1e9, 0)), Scenario: "edge-routing", Attrs: decision.Attrs{Schema: schema},
		Questions: []decision.Question{{Type: decision.QuestionAction, Candidates: []string{"edge_cache", "regional_cache", "origin"}}},
	}
	for _, x := range []any{agent, rate, country, key} {
		v, err := decision.ValueOf(x)
		if err != nil {
			t.Fatal(err)
		}
		req.Attrs.Values = append(req.Attrs.Values, v)
	}
	return req
}

const (
	mac    = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
	iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) Mobile/15E148"
	ipad   = "Mozilla/5.0 (iPad; CPU OS 18_7 like Mac OS X) Mobile/15E148"
)

func TestDecide(t *testing.T) {
	tab := openEdge(t)
	for _, tc := range []struct {
		rate, agent, key, country any
		action, rule              string
		kind                      decision.ReasonKind
		skipped                   uint16
	}{
		{0.0, mac, "k", "CN", "edge_cache", "low/desktop/yes/CN", decision.ReasonTableHit, 0},
		{0.0299, mac, nil, "FR", "regional_cache", "low/desktop/no/rest", decision.ReasonTableHit, 0},
		{0.03, ipad, nil, "rest", "origin", "mid/tablet/no/rest", decision.ReasonTableHit, 0},
		{0.1, iphone, "", "CN", "regional_cache", "high/mobile/yes/CN", decision.ReasonTableHit, 0},
		{1e9, mac, "k", "CN", "origin", "high/desktop/yes/CN", decision.ReasonTableHit, 0},
		{nil, mac, "k", "DE", "edge_cache", "low/desktop/yes/DE", decision.ReasonTableHit, 0},        // missing has a bin
		{math.NaN(), mac, "k", "DE", "edge_cache", "low/desktop/yes/DE", decision.ReasonTableHit, 0}, // and so has NaN
		{-0.1, mac, "k", "DE", "origin", RuleFallback, decision.ReasonTableMiss, 0},                  // no range
		{0.0, nil, "k", "DE", "origin", RuleFallback, decision.ReasonTableMiss, 1},                   // no bin
		{0.0, "", "k", "DE", "origin", RuleFallback, decision.ReasonTableMiss, 0},                    // no class
		{0.0, mac, "k", nil, "origin", RuleFallback, decision.ReasonTableMiss, 1},                    // <other> is not for what is missing
		{"0.01", mac, "k", "CN", "origin", RuleFallback, decision.ReasonTableMiss, 0},                // text is no number
	} {
		req, out := edgeRequest(t, tc.rate, tc.agent, tc.key, tc.country), new(decision.Response)
		if err := tab.Decide(context.Background(), req, out); err != nil {
			t.Fatal(err)
		}
		d := out.Decisions[0]
		if want := (decision.Reason{Kind: tc.kind, Rule: tc.rule, Skipped: tc.skipped}); d.Status != decision.OK || d.Action != tc.action || d.Reason != want {
			t.Errorf("%v %v %v %v: got %v %q %+v, want %q %+v", tc.rate, tc.agent, tc.key, tc.country, d.Status, d.Action, d.Reason, tc.action, want)
		}
	}
}

func TestParams(t *testing.T) {
	tab, out := openEdge(t), new(decision.Response)
	for rate, want := range map[float64]string{0: `{"ttl_seconds":60}`, 0.05: `{"key":"<path>","ttl_seconds":30}`, 0.5: `{"type":"route","upstream":"o1.example"}`} {
		if err := tab.Decide(context.Background(), edgeRequest(t, rate, mac, nil, "DE"), out); err != nil {
			t.Fatal(err)
		}
		if got := out.Decisions[0].Params; got != want {
			t.Errorf("rate %v: params %s, want %s", rate, got, want)
		}
	}
}

func TestWithoutFallbackAMissAbstains(t *testing.T) {
	cfb, err := CompileMatrix("m.json", []byte(dims(`{"name": "x", "values": ["a"]}`, "[1]")))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := Open("m.cfb", cfb)
	if err != nil {
		t.Fatal(err)
	}
	out, req := new(decision.Response), &decision.Request{Questions: make([]decision.Question, 1)}
	if err := tab.Decide(context.Background(), req, out); err != nil {
		t.Fatal(err)
	}
	if d := out.Decisions[0]; d.Status != decision.Abstain || d.Action != "" || d.Reason != (decision.Reason{Kind: decision.ReasonTableMiss, Skipped: 1}) {
		t.Errorf("%+v", d)
	}
	e, err := tab.Explain(context.Background(), req)
	if err != nil || e.Text != "no cell for this key and no fallback: x=(missing)" || len(e.Skipped) != 1 || e.Position.Line != 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

// Numbers are found under their listed text whatever type they were recorded with.
func TestListedNumbers(t *testing.T) {
	cfb, err := CompileMatrix("m.json", []byte(dims(`{"name": "x", "values": ["1", "2.5", "true", "9007199254740993", "9007199254740992"]}`, "[1, 1, 1, 1, 1]")))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := Open("m.cfb", cfb)
	if err != nil {
		t.Fatal(err)
	}
	for want, vs := range map[string][]decision.Value{
		"1":                {decision.IntValue(1), decision.DoubleValue(1), decision.StringValue("1")},
		"2.5":              {decision.DoubleValue(2.5), decision.StringValue("2.5")},
		"true":             {decision.BoolValue(true), decision.StringValue("true")},
		"9007199254740993": {decision.IntValue(9007199254740993)},
		"9007199254740992": {decision.IntValue(9007199254740992)},
		"":                 {decision.IntValue(2), decision.BoolValue(false), decision.StringValue("1.0"), decision.DoubleValue(math.Inf(1)), {}},
	} {
		for _, v := range vs {
			schema, err := decision.NewSchema(decision.Field{Name: "x", Type: max(v.Type(), decision.Bool)})
			if err != nil {
				t.Fatal(err)
			}
			out := new(decision.Response)
			req := &decision.Request{Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{v}}, Questions: make([]decision.Question, 1)}
			if err := tab.Decide(context.Background(), req, out); err != nil || out.Decisions[0].Reason.Rule != want {
				t.Errorf("%v %v: rule %q, want %q (%v)", v.Type(), v, out.Decisions[0].Reason.Rule, want, err)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	e, err := openEdge(t).Explain(context.Background(), edgeRequest(t, 0.5, ipad, "secret-key", "FR"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "cell 50 gives origin: error=high, device=tablet, key=yes, env.country=rest"; e.Text != want {
		t.Errorf("text %q, want %q", e.Text, want)
	}
	if e.Position != (decision.Position{File: "edge.json", Line: 24}) {
		t.Errorf("position %v", e.Position)
	}
	if strings.Contains(fmt.Sprint(e), "secret-key") {
		t.Error("the explanation repeats an attribute's value")
	}
	e, err = openEdge(t).Explain(context.Background(), edgeRequest(t, 0.5, ipad, nil, nil))
	want := []decision.SkippedRule{{Rule: "env.country", Missing: []string{"env.country"}, Cause: "missing"}}
	if err != nil || !reflect.DeepEqual(e.Skipped, want) || e.Position.Line != 26 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestInfo(t *testing.T) {
	tab, cfb := openEdge(t), compileEdge(t)
	i := tab.Info()
	if i.Artefact.StrategyDigest != sha256.Sum256(cfb) || i.Artefact.StrategyVersion != "1.10" || strings.Join(i.Scenarios, " ") != "edge-routing" || len(i.Attributes) != 4 {
		t.Errorf("%+v", i)
	}
	if name, digest := tab.Source(); name != "edge.json" || digest != sha256.Sum256(readFile(t, "testdata/edge.json")) {
		t.Errorf("source %s %x", name, digest)
	}
}

func TestKeepsTheContract(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) decision.Backend { return openEdge(t) }, backendtest.Cases{File: true, Requests: []*decision.Request{
		edgeRequest(t, 0.01, mac, "k", "CN"), edgeRequest(t, 0.05, iphone, nil, "DE"), edgeRequest(t, 0.5, ipad, nil, "FR"), edgeRequest(t, -1.0, nil, nil, nil),
	}})
}

// Few and many, short and long texts are found alike; the reference is a map.
func TestLookupOfTexts(t *testing.T) {
	words := []string{"", "a", "b", "ab", "a\x00", "\x00", "abcdefg", "abcdefh", "abcdefgh", "abcdefgi", "CN", "NC", "é", "1", "10", "01"}
	for n := range len(words) + 1 {
		for _, from := range []int{0, len(words) - n} {
			d, want := &dimension{other: 77}, map[string]uint16{}
			for i, w := range words[from : from+n] {
				d.texts = append(d.texts, textKey{w, uint16(i)})
				want[w] = uint16(i)
			}
			a := newAxis(d, 1)
			for _, w := range append(words, "abc", "abcdefghi", "cn") {
				expected, ok := want[w]
				if !ok {
					expected = 77
				}
				if got := a.lookup(w); got != expected {
					t.Fatalf("%q among %q: %d, want %d", w, words[from:from+n], got, expected)
				}
			}
		}
	}
}

// Key and At are Decide in two parts.
func TestKeyAndAt(t *testing.T) {
	tab, out := openEdge(t), new(decision.Response)
	for _, req := range []*decision.Request{edgeRequest(t, 0.05, iphone, "k", "FR"), edgeRequest(t, 0.5, mac, nil, "CN"), edgeRequest(t, -1.0, nil, nil, nil)} {
		if err := tab.Decide(context.Background(), req, out); err != nil {
			t.Fatal(err)
		}
		label, params, ok := tab.At(tab.Key(req.Attrs))
		if d := out.Decisions[0]; !ok || label != d.Action || params != d.Params {
			t.Errorf("%s %s %v, Decide says %+v", label, params, ok, d)
		}
	}
	cfb, err := CompileMatrix("m.json", []byte(dims(`{"name": "x", "values": ["a"]}`, "[1]")))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Open("m.cfb", cfb)
	if err != nil {
		t.Fatal(err)
	}
	if label, params, ok := bare.At(bare.Key(decision.Attrs{})); ok || label != "" || params != "" {
		t.Errorf("a miss without a fallback gives %s", label)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	tab, out := openEdge(t), new(decision.Response)
	for _, req := range []*decision.Request{edgeRequest(t, 0.05, iphone, "k", "FR"), edgeRequest(t, -1.0, nil, nil, nil)} {
		if n := testing.AllocsPerRun(100, func() {
			if err := tab.Decide(context.Background(), req, out); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations a decision", n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	tab, out := openEdge(b), new(decision.Response)
	req := edgeRequest(b, 0.05, iphone, "k", "FR")
	b.ReportAllocs()
	for b.Loop() {
		if err := tab.Decide(context.Background(), req, out); err != nil {
			b.Fatal(err)
		}
	}
}

// The look-up alone, keys included, without filling a response.
func BenchmarkCell(b *testing.B) {
	tab := openEdge(b)
	req := edgeRequest(b, 0.05, iphone, "k", "FR")
	for b.Loop() {
		tab.cell(req.Attrs)
	}
}

func ExampleOpen() {
	matrix := `{
  "dimensions": [
    {"name": "error", "from": "metrics.error_rate", "values": ["low", "high"], "mapping": {"0-0.1": "low", "0.1+": "high"}},
    {"name": "device", "from": "headers.user-agent", "classify": "device", "values": ["desktop", "mobile", "tablet"]}
  ],
  "actions": [{"id": 1, "type": "cache"}, {"id": 2, "type": "origin"}],
  "matrix": [[1, 1, 1], [2, 2, 1]]
}`
	cfb, err := CompileMatrix("edge.json", []byte(matrix))
	if err != nil {
		panic(err)
	}
	table, err := Open("edge.cfb", cfb)
	if err != nil {
		panic(err)
	}
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.error_rate", Type: decision.Double}, decision.Field{Name: "headers.user-agent", Type: decision.String})
	if err != nil {
		panic(err)
	}
	req := &decision.Request{Questions: []decision.Question{{}}, Attrs: decision.Attrs{Schema: schema}}
	var out decision.Response
	for _, rate := range []float64{0.05, 0.2, math.NaN()} {
		req.Attrs.Values = []decision.Value{decision.DoubleValue(rate), decision.StringValue("Mozilla/5.0 (iPad)")}
		if err := table.Decide(context.Background(), req, &out); err != nil {
			panic(err)
		}
		d := out.Decisions[0]
		fmt.Println(d.Status, d.Action, d.Reason.Kind, d.Reason.Rule)
	}
	// Output:
	// ok cache table-hit low/tablet
	// ok cache table-hit high/tablet
	// abstain  table-miss
}
