package flash

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
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

// The user agents of 952 browsers, each with the device that its owner used.
func TestDeviceOfRealBrowsers(t *testing.T) {
	f, err := os.Open("../../../shared/data/bots/browser_fingerprints.csv")
	if err != nil {
		t.Skip("the browser data set is not beside this checkout")
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[Device]int{}
	for _, row := range rows[1:] {
		got := DeviceOf(row[0])
		if string(got) != row[4] {
			t.Errorf("%q is %q, want %q", row[0], got, row[4])
		}
		counts[got]++
	}
	if want := (map[Device]int{Mobile: 5611, Desktop: 4366, Tablet: 23}); !reflect.DeepEqual(counts, want) {
		t.Errorf("counts %v, want %v", counts, want)
	}
}

func TestDeviceOf(t *testing.T) {
	for ua, want := range map[string]Device{
		"": "", mac: Desktop, iphone: Mobile, ipad: Tablet, "curl/8.5.0": Desktop, "Googlebot/2.1": Desktop,
		"Mozilla/5.0 (Linux; Android 10; K) Chrome/138.0.0.0 Safari/537.36":        Tablet,
		"Mozilla/5.0 (Linux; Android 10; K) Chrome/138.0.0.0 Mobile Safari/537.36": Mobile,
		"Opera/9.80 (J2ME/MIDP; Opera Mobi/23.348)":                                Mobile,
		"Mozilla/5.0 (iPod touch; CPU iPhone OS 6_0)":                              Mobile,
		"Mozilla/5.0 (Tablet; rv:48.0) Gecko/48.0":                                 Tablet,
	} {
		if got := DeviceOf(ua); got != want {
			t.Errorf("DeviceOf(%q) = %q, want %q", ua, got, want)
		}
	}
}

// naive decides straight from the matrix JSON, as slowly and plainly as it can be
// written: an independent reading of the same file.
func naive(file map[string]any, values map[string]float64) string {
	cell := any(file["matrix"])
	for _, d := range file["dimensions"].([]any) {
		dim := d.(map[string]any)
		x, have := values[dim["name"].(string)]
		found := ""
		for text, v := range dim["mapping"].(map[string]any) {
			var lo, hi float64
			if n, _ := fmt.Sscanf(strings.Replace(text, "-", " ", 1), "%f %f", &lo, &hi); n == 1 {
				hi = math.Inf(1)
			}
			if have && x >= lo && x < hi {
				found = v.(string)
			}
		}
		at := -1
		for i, v := range dim["values"].([]any) {
			if v == found {
				at = i
			}
		}
		if at < 0 {
			return ""
		}
		cell = cell.([]any)[at]
	}
	for _, a := range file["actions"].([]any) {
		if a.(map[string]any)["id"] == cell {
			return a.(map[string]any)["type"].(string)
		}
	}
	return "no such id"
}

// randomMatrix returns a matrix file of numeric dimensions with gaps at their ends.
func randomMatrix(rng *rand.Rand) (map[string]any, []string) {
	var dims []any
	var names []string
	sizes := []int{}
	for i := range 1 + rng.IntN(4) {
		name, size := fmt.Sprint("d", i), 1+rng.IntN(5)
		var values []any
		mapping, edge := map[string]any{}, rng.Float64()
		for k := range size {
			v, next := fmt.Sprint("v", k), edge+0.1+rng.Float64()
			values = append(values, v)
			mapping[fmt.Sprintf("%.6f-%.6f", edge, next)] = v
			edge, _ = json.Number(fmt.Sprintf("%.6f", next)).Float64()
		}
		if rng.IntN(2) == 0 {
			mapping[fmt.Sprintf("%.6f+", edge)] = "v0"
		}
		dims = append(dims, map[string]any{"name": name, "values": values, "mapping": mapping})
		names, sizes = append(names, name), append(sizes, size)
	}
	var build func(d int) any
	build = func(d int) any {
		if d == len(sizes) {
			return float64(rng.IntN(300))
		}
		list := make([]any, sizes[d])
		for i := range list {
			list[i] = build(d + 1)
		}
		return list
	}
	var actions []any
	for i := range 300 { // more than 256: two bytes a cell
		actions = append(actions, map[string]any{"id": float64(i), "type": fmt.Sprint("a", i)})
	}
	return map[string]any{"dimensions": dims, "actions": actions, "matrix": build(0)}, names
}

func TestSameAsNaiveReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hits, misses := 0, 0
	for range 40 {
		file, names := randomMatrix(rng)
		data, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		cfb, err := CompileMatrix("r.json", data)
		if err != nil {
			t.Fatal(err)
		}
		tab, err := Open("r.cfb", cfb)
		if err != nil {
			t.Fatal(err)
		}
		var fields []decision.Field
		for _, n := range names {
			fields = append(fields, decision.Field{Name: n, Type: decision.Double})
		}
		schema, err := decision.NewSchema(fields...)
		if err != nil {
			t.Fatal(err)
		}
		out := new(decision.Response)
		for range 100 {
			values := map[string]float64{}
			req := &decision.Request{Attrs: decision.Attrs{Schema: schema}, Questions: make([]decision.Question, 1)}
			for _, n := range names {
				v := decision.Value{}
				if rng.IntN(20) > 0 {
					values[n] = rng.Float64() * 4
					v = decision.DoubleValue(values[n])
				}
				req.Attrs.Values = append(req.Attrs.Values, v)
			}
			if err := tab.Decide(context.Background(), req, out); err != nil {
				t.Fatal(err)
			}
			if want := naive(file, values); out.Decisions[0].Action != want {
				t.Fatalf("%v: got %q, want %q\n%s", values, out.Decisions[0].Action, want, data)
			} else if want != "" {
				hits++
			} else {
				misses++
			}
		}
	}
	if hits < 500 || misses < 500 {
		t.Errorf("%d hits and %d misses do not test much", hits, misses)
	}
}

// reseal makes the length and the checksum of a changed file right again, so that the
// checks behind them are reached.
func reseal(b []byte) []byte {
	if len(b) < headerSize+sumSize {
		return b
	}
	b = append([]byte(nil), b...)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)))
	sum := sha256.Sum256(b[:len(b)-sumSize])
	copy(b[len(b)-sumSize:], sum[:])
	return b
}

// Each byte of a file is covered, and what the checksum would let through is checked too.
func TestOpenRefusesDamage(t *testing.T) {
	good := compileEdge(t)
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1 << (i % 8)
		if _, err := Open("x.cfb", bad); !errors.Is(err, ErrCorrupt) || !strings.HasPrefix(err.Error(), "x.cfb: ") || !strings.Contains(err.Error(), "offset ") {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := Open("x.cfb", good[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
		for _, resealed := range [][]byte{reseal(bad), reseal(good[:i])} {
			if tab, err := Open("x.cfb", resealed); err == nil {
				exercise(t, tab)
			} else if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d resealed: %v", i, err)
			}
		}
	}
	if _, err := Open("x.cfb", append(good, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := Open("x.cfb", make([]byte, MaxSize+1)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the limit is 65536") {
		t.Errorf("too large: %v", err)
	}
	for offset, want := range map[int]string{0: "offset 0: wrong magic", 8: "offset 8: format version", 16: "offset 10: cell width 1, reserved byte 0, 1"} {
		bad := append([]byte(nil), good...)
		bad[offset+1] = 0xff
		if offset == 16 {
			bad[18] = 0xff
		}
		if _, err := Open("x.cfb", reseal(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// exercise asks an opened table something on each dimension; only a panic is wrong.
func exercise(t *testing.T, tab *Table) {
	t.Helper()
	out := new(decision.Response)
	for _, req := range []*decision.Request{edgeRequest(t, 0.05, iphone, "k", "FR"), edgeRequest(t, nil, nil, nil, nil)} {
		if err := tab.Decide(context.Background(), req, out); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Explain(context.Background(), req); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	good := compileEdge(f)
	f.Add(good)
	f.Add(good[:100])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, b := range [][]byte{data, reseal(data)} {
			if tab, err := Open("f.cfb", b); err == nil {
				exercise(t, tab)
			} else if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v is no ErrCorrupt", err)
			}
		}
	})
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
