package model

import (
	"context"
	"crypto/sha256"
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
	"github.com/clefbench/clefbench/internal/document"
)

func compile(t testing.TB, text string) *Model {
	t.Helper()
	m, err := Compile("model.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fraud(t testing.TB) *Model {
	t.Helper()
	data, err := os.ReadFile("testdata/fraud.json")
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, string(data))
}

// request takes pairs of name and value; a nil value is null.
func request(t testing.TB, pairs ...any) *decision.Request {
	t.Helper()
	req := &decision.Request{ID: decision.NewID(time.Unix(1e9, 0)), Scenario: "fraud", Questions: []decision.Question{{Type: decision.QuestionAction}}}
	var fields []decision.Field
	for i := 0; i < len(pairs); i += 2 {
		v, err := decision.ValueOf(pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, decision.Field{Name: pairs[i].(string), Type: max(v.Type(), decision.Bool)})
		req.Attrs.Values = append(req.Attrs.Values, v)
	}
	schema, err := decision.NewSchema(fields...)
	if err != nil {
		t.Fatal(err)
	}
	req.Attrs.Schema = schema
	return req
}

func fraudRequest(t testing.TB, amount, age, agent, country, email any) *decision.Request {
	return request(t, "amount", amount, "age_days", age, "headers.user-agent", agent, "country", country, "email", email)
}

func decide(t testing.TB, m *Model, req *decision.Request) decision.Decision {
	t.Helper()
	var out decision.Response
	if err := m.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0]
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

// Logits ln 1, ln 2 and ln 5 have the probabilities 1/8, 2/8 and 5/8.
func TestSoftmaxByHand(t *testing.T) {
	m := compile(t, fmt.Sprintf(`{"model": "logistic", "features": [{"name": "x"}],
"classes": [{"action": "a", "bias": 0, "weights": [0]}, {"action": "b", "bias": 0, "weights": [%v]}, {"action": "c", "bias": %v, "weights": [0]}]}`, math.Log(2), math.Log(5)))
	d := decide(t, m, request(t, "x", 1.0))
	if d.Status != decision.OK || d.Action != "c" || !near(d.Confidence.V, 0.625) || d.ConfidenceDef != ConfidencePeak {
		t.Errorf("%+v", d)
	}
	for i, want := range []float64{0.125, 0.25, 0.625} {
		if got := d.Candidates[i].Probability.V; !near(got, want) {
			t.Errorf("P(%s) = %v, want %v", d.Candidates[i].Action, got, want)
		}
	}
	// x = 3 makes the logits ln 1, ln 8 and ln 5.
	if d := decide(t, m, request(t, "x", 3)); d.Action != "b" || !near(d.Confidence.V, 8.0/14) {
		t.Errorf("%+v", d)
	}
}

// One class and "otherwise" is the sigmoid.
func TestSigmoidByHand(t *testing.T) {
	m := compile(t, `{"model": "logistic", "features": [{"name": "x", "mean": 10, "scale": 4}], "classes": [{"action": "block", "bias": 0.5, "weights": [2]}], "otherwise": "allow"}`)
	for _, x := range []float64{-100, 0, 9, 9.5, 10, 12, 1e6} {
		p := 1 / (1 + math.Exp(-(0.5 + 2*(x-10)/4)))
		d := decide(t, m, request(t, "x", x))
		if got := d.Candidates[0].Probability.V; math.Abs(got-p) > 1e-12 {
			t.Errorf("x = %v: P(block) = %v, want %v", x, got, p)
		}
		if want := map[bool]string{true: "block", false: "allow"}[p >= 0.5]; d.Action != want {
			t.Errorf("x = %v: %s, want %s", x, d.Action, want)
		}
	}
}

// The features of testdata/fraud.json by hand: amount e^7-1 gives (7-4)/1.5 = 2.
func TestFeaturesByHand(t *testing.T) {
	m := fraud(t)
	amount := math.Exp(7) - 1
	for _, tc := range []struct {
		name                           string
		amount, age, ua, country, mail any
		half                           float64 // the logit of block; approve has the negative
	}{
		{"all set", amount, 0.5, "a bOT/1", "CN", "x", -1 + 0.5*2 + 1 + 2 + 0.75 - 0.5},
		{"edges belong to the upper bin", amount, 1.0, "Mozilla", "DE", nil, -1 + 0.5*2 - 0.25},
		{"last bin", amount, 30, "Mozilla", "DE", nil, -1 + 0.5*2 - 0.5},
		{"declared missing values", amount, nil, nil, nil, nil, -1 + 0.5*2 + 1},
		{"NaN is missing", amount, math.NaN(), "x", "x", "", -1 + 0.5*2 + 1 - 0.5},
		{"a bool is a number", true, 2, "x", "x", nil, -1 + 0.5*(math.Log(2)-4)/1.5 - 0.25},
	} {
		d := decide(t, m, fraudRequest(t, tc.amount, tc.age, tc.ua, tc.country, tc.mail))
		want := 1 / (1 + math.Exp(-2*tc.half))
		if block := d.Candidates[2]; block.Action != "block" || !near(block.Probability.V, want) {
			t.Errorf("%s: P(%s) = %v, want %v", tc.name, block.Action, block.Probability.V, want)
		}
	}
}

// approve pays p - 4(1-p), review 0.7p + 0.6(1-p), block 1-p: review is best between
// p = 0.4/1.1 and p = 4.6/4.9.
func TestUtilityChoosesByExpectedUtility(t *testing.T) {
	m := fraud(t)
	seen := map[string]int{}
	for _, amount := range []float64{0, 1, 10, 50, 100, 300, 500, 1000, 5000, 1e5} {
		d := decide(t, m, fraudRequest(t, amount, 10, "x", "x", nil))
		p := d.Candidates[0].Probability.V
		want := "manual_review"
		if p < 0.4/1.1 {
			want = "block"
		} else if p > 4.6/4.9 {
			want = "approve"
		}
		if d.Action != want || !near(d.Confidence.V, max(p, 1-p)) {
			t.Errorf("amount %v, P(approve) %v: %s with confidence %v, want %s", amount, p, d.Action, d.Confidence.V, want)
		}
		if c := d.Candidates[1]; c.Action != "manual_review" || c.Probability.Set || math.Abs(float64(c.Score.V)-(0.7*p+0.6*(1-p))) > 1e-6 {
			t.Errorf("amount %v: candidate %+v", amount, c)
		}
		seen[want]++
	}
	if len(seen) != 3 {
		t.Errorf("the amounts reach %v only", seen)
	}
}

func TestChoosesAmongCandidates(t *testing.T) {
	m := fraud(t)
	req := fraudRequest(t, 1e5, 10, "bot", "CN", nil)
	for _, tc := range []struct {
		candidates []string
		want       string
		listed     int
	}{{nil, "block", 3}, {[]string{"approve", "manual_review"}, "manual_review", 2}, {[]string{"approve"}, "approve", 1}, {[]string{"other"}, "block", 0}} {
		req.Questions[0].Candidates = tc.candidates
		d := decide(t, m, req)
		if d.Action != tc.want || len(d.Candidates) != tc.listed {
			t.Errorf("%v: %s with %d candidates, want %s with %d", tc.candidates, d.Action, len(d.Candidates), tc.want, tc.listed)
		}
	}
	// The same action for every order of the same candidates.
	req.Questions[0].Candidates = []string{"block", "manual_review", "approve"}
	if d := decide(t, m, req); d.Action != "block" {
		t.Errorf("%+v", d)
	}
}

func TestTiesGoToTheFirstAction(t *testing.T) {
	m := compile(t, `{"model": "logistic", "features": [], "classes": [{"action": "a", "bias": 1, "weights": []}, {"action": "b", "bias": 1, "weights": []}]}`)
	if d := decide(t, m, request(t)); d.Action != "a" || d.Confidence.V != 0.5 {
		t.Errorf("%+v", d)
	}
}

func TestMissingWithoutAValueAbstains(t *testing.T) {
	m := fraud(t)
	for name, amount := range map[string]any{"null": nil, "NaN": math.NaN(), "text": "12", "outside log1p": -2.0, "edge of log1p": -1.0} {
		req := fraudRequest(t, amount, 10, "x", "x", nil)
		d := decide(t, m, req)
		if want := (decision.Reason{Kind: decision.ReasonModel, Rule: "fraud-logit", Skipped: 1}); d.Status != decision.Abstain || d.Action != "" || d.Confidence.Set || d.Reason != want {
			t.Errorf("%s: %+v", name, d)
		}
		e, err := m.Explain(context.Background(), req)
		if err != nil || len(e.Skipped) != 1 || e.Skipped[0].Rule != "amount" || e.Position.Line != 0 || !strings.HasPrefix(e.Text, "1 of 5 features have no value") {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestOverflowIsAnErrorOutcome(t *testing.T) {
	m := compile(t, `{"model": "logistic", "features": [{"name": "x"}], "classes": [{"action": "a", "bias": 0, "weights": [1e300]}, {"action": "b", "bias": 0, "weights": [-1e300]}]}`)
	if d := decide(t, m, request(t, "x", 1e300)); d.Status != decision.Error || d.ErrorCode != CodeNotFinite {
		t.Errorf("%+v", d)
	}
	if d := decide(t, m, request(t, "x", 1)); d.Status != decision.OK || d.Confidence.V != 1 {
		t.Errorf("a logit of 1e300 is fine: %+v", d)
	}
}

func TestExplain(t *testing.T) {
	e, err := fraud(t).Explain(context.Background(), fraudRequest(t, math.Exp(7)-1, 0.5, "a bot", "CN", "x"))
	if err != nil {
		t.Fatal(err)
	}
	// Block over approve: twice the weights, largest first; the bias of -2 stands before amount's 2 as in the file.
	want := `block: P(block) = 0.9985, P(approve) = 0.001501; for block over approve: headers.user-agent contains "bot" +4, bias -2, amount +2, age_days (binned) +2, country = CN +1.5`
	if e.Text != want {
		t.Errorf("got  %s\nwant %s", e.Text, want)
	}
	if e.Position.String() != "model.json:18:55" || len(e.Cited) != 5 || e.Skipped != nil {
		t.Errorf("%v %+v", e.Position, e)
	}
}

func TestInfo(t *testing.T) {
	data, err := os.ReadFile("testdata/fraud.json")
	if err != nil {
		t.Fatal(err)
	}
	i := fraud(t).Info()
	if i.Artefact.StrategyDigest != sha256.Sum256(data) || i.Artefact.StrategyVersion != "3" || !reflect.DeepEqual(i.Scenarios, []string{"fraud"}) ||
		!reflect.DeepEqual(i.Attributes, []string{"amount", "age_days", "headers.user-agent", "country", "email"}) {
		t.Errorf("%+v", i)
	}
}

func TestKeepsTheContract(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) decision.Backend { return fraud(t) }, backendtest.Cases{File: true, Requests: []*decision.Request{
		fraudRequest(t, 10.0, 10, "x", "x", "m"), fraudRequest(t, 1e5, 0.5, "bot", "CN", nil), fraudRequest(t, nil, nil, nil, nil, nil),
	}})
}

func TestDecideAllocatesNothing(t *testing.T) {
	m, out := fraud(t), new(decision.Response)
	req := fraudRequest(t, 1e5, 0.5, "a Bot", "CN", nil)
	if n := testing.AllocsPerRun(100, func() {
		if err := m.Decide(context.Background(), req, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a decision", n)
	}
}

// The same numbers from a plain reading: one dot product a class, no layout tricks.
func TestSameAsPlainDotProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		features, classes := 1+rng.IntN(6), 2+rng.IntN(4)
		weights := make([][]float64, classes)
		var fs, cs []string
		for i := range features {
			fs = append(fs, fmt.Sprintf(`{"name": "x%d"}`, i))
		}
		for k := range classes {
			weights[k] = make([]float64, features+1)
			for i := range weights[k] {
				weights[k][i] = rng.NormFloat64()
			}
			cs = append(cs, fmt.Sprintf(`{"action": "a%d", "bias": %v, "weights": %s}`, k, weights[k][features], strings.ReplaceAll(fmt.Sprint(weights[k][:features]), " ", ",")))
		}
		m := compile(t, fmt.Sprintf(`{"model": "logistic", "features": [%s], "classes": [%s]}`, strings.Join(fs, ","), strings.Join(cs, ",")))
		var pairs []any
		x := make([]float64, features)
		for i := range x {
			x[i] = rng.NormFloat64()
			pairs = append(pairs, fmt.Sprint("x", i), x[i])
		}
		d, sum := decide(t, m, request(t, pairs...)), 0.0
		odds := make([]float64, classes)
		for k := range odds {
			z := weights[k][features]
			for i := range x {
				z += weights[k][i] * x[i]
			}
			odds[k] = math.Exp(z)
			sum += odds[k]
		}
		for k := range odds {
			if got := d.Candidates[k].Probability.V; math.Abs(got-odds[k]/sum) > 1e-12 {
				t.Fatalf("P(a%d) = %v, want %v", k, got, odds[k]/sum)
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	file := func(features, classes, rest string) string {
		return `{"model": "logistic", "features": [` + features + `],
"classes": [` + classes + `]` + rest + `}`
	}
	two := `{"action": "a", "bias": 0, "weights": [1]}, {"action": "b", "bias": 0, "weights": [2]}`
	x := `{"name": "x"}`
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", "file is empty"},
		{"list", "[]", "model.json:1:1: the file must be a map"},
		{"nothing", "{}", `missing field "classes"`},
		{"other model", `{"model": "tree", "features": [], "classes": []}`, `model.json:1:11: unknown model "tree"`},
		{"unknown field", file(x, two, `, "weights": []`), `model.json:2:102: unknown field "weights"`},
		{"too few weights", file(x+", "+x, two, ""), "classes[0].weights has 1 weights, the features have 2 columns"},
		{"bins have more columns", file(`{"name": "x", "bins": [1, 2]}`, two, ""), "the features have 3 columns"},
		{"one class", file(x, `{"action": "a", "bias": 0, "weights": [1]}`, ""), "1 classes, want at least 2"},
		{"otherwise with two", file(x, two, `, "otherwise": "c"`), "otherwise goes with exactly one class, there are 2"},
		{"class twice", file(x, `{"action": "a", "bias": 0, "weights": [1]}`, `, "otherwise": "a"`), `class "a" stands twice`},
		{"no bias", file(x, `{"action": "a", "weights": [1]}`, `, "otherwise": "b"`), `missing field "bias"`},
		{"text weight", file(x, `{"action": "a", "bias": 0, "weights": ["1"]}`, `, "otherwise": "b"`), "model.json:2:52: classes[0].weights[0] must be a finite number"},
		{"NaN bias", file(x, `{"action": "a", "bias": .nan, "weights": [1]}`, `, "otherwise": "b"`), "classes[0].bias must be a finite number"},
		{"scale 0", file(`{"name": "x", "scale": 0}`, two, ""), "model.json:1:59: features[0].scale must be above 0"},
		{"transform", file(`{"name": "x", "transform": "log"}`, two, ""), `unknown transform "log"`},
		{"mixed kinds", file(`{"name": "x", "contains": "a", "scale": 2}`, two, ""), `"scale" does not go with "contains"`},
		{"case of a number", file(`{"name": "x", "ignore_case": true}`, two, ""), `"ignore_case" does not go with "name"`},
		{"edges out of order", file(`{"name": "x", "bins": [1, 1]}`, two, ""), "features[0].bins[1] must be above the edge before it"},
		{"no edges", file(`{"name": "x", "bins": []}`, two, ""), "features[0].bins is empty"},
		{"missing of an indicator", file(`{"name": "x", "contains": "a", "missing": 2}`, two, ""), "features[0].missing must be 0 or 1 here"},
		{"missing outside the transform", file(`{"name": "x", "transform": "log1p", "missing": -1}`, two, ""), "the transform of -1 is no number"},
		{"missing of present", file(`{"name": "x", "present": true, "missing": 1}`, two, ""), `"missing" does not go with "present"`},
		{"not present", file(`{"name": "x", "present": false}`, two, ""), "features[0].present can only be true"},
		{"empty contains", file(`{"name": "x", "contains": ""}`, two, ""), "features[0].contains must not be empty"},
		{"null equals", file(`{"name": "x", "equals": null}`, two, ""), "model.json:1:60: features[0].equals has no value"},
		{"null bins", file(`{"name": "x", "bins": null, "missing": 1}`, two, ""), "features[0].bins has no value"},
		{"no features", file("", two, ""), "model.json:1:35: features is empty"},
		{"no scenarios", file(x, two, `, "scenarios": []`), "scenarios is empty"},
		{"utility of no class", file(x, two, `, "utility": {"a": {"m": 1}, "b": {"m": 0}, "c": {"m": 0}}`), `no class is called "c"`},
		{"utility lacks a class", file(x, two, `, "utility": {"a": {"m": 1}}`), `utility has no row for the class "b"`},
		{"utility lacks an action", file(x, two, `, "utility": {"a": {"m": 1, "n": 2}, "b": {"m": 0}}`), `utility.b has no utility for the action "n"`},
		{"utility of another action", file(x, two, `, "utility": {"a": {"m": 1}, "b": {"m": 0, "n": 2}}`), `the first row has no action "n"`},
		{"utility without actions", file(x, two, `, "utility": {"a": {}, "b": {}}`), "utility.a is empty"},
		{"utility without a name", file(x, two, `, "utility": {"a": {"": 1}, "b": {"": 0}}`), "an action without a name"},
		{"too many classes", file(x, strings.TrimSuffix(strings.Repeat(`{"action": "a", "bias": 0, "weights": [1]},`, 65), ","), ""), "65 classes, the limit is 64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := Compile("model.json", []byte(tc.in))
			var ps document.Problems
			if m != nil || !errors.As(err, &ps) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

func FuzzCompile(f *testing.F) {
	data, err := os.ReadFile("testdata/fraud.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"model": "logistic", "features": [{"name": "x", "bins": [1], "missing": 0}], "classes": [{"action": "a", "bias": 0, "weights": [1, 2]}], "otherwise": "b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Compile("f", data)
		if err != nil {
			return
		}
		for _, req := range []*decision.Request{request(t), fraudRequest(t, 5.0, 3, "a bot", "CN", nil), request(t, "x", math.Inf(1))} {
			if d := decide(t, m, req); d.Status == decision.StatusNone {
				t.Fatalf("no status: %+v", d)
			}
			if _, err := m.Explain(context.Background(), req); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	m, out := fraud(b), new(decision.Response)
	req := fraudRequest(b, 1e5, 0.5, "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36", "CN", nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Decide(context.Background(), req, out); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleCompile() {
	m, err := Compile("model.json", []byte(`{
  "model": "logistic",
  "features": [{"name": "requests_per_minute", "transform": "log1p", "missing": 0}, {"name": "headers.user-agent", "contains": "bot", "ignore_case": true, "missing": 1}],
  "classes": [{"action": "block", "bias": -6, "weights": [1, 3]}],
  "otherwise": "allow"
}`))
	if err != nil {
		panic(err)
	}
	schema, err := decision.NewSchema(decision.Field{Name: "requests_per_minute", Type: decision.Int}, decision.Field{Name: "headers.user-agent", Type: decision.String})
	if err != nil {
		panic(err)
	}
	var out decision.Response
	for _, rate := range []int64{2, 200} {
		req := &decision.Request{Questions: []decision.Question{{}}, Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{decision.IntValue(rate), decision.StringValue("GoodBot/1.0")}}}
		if err := m.Decide(context.Background(), req, &out); err != nil {
			panic(err)
		}
		fmt.Printf("%s %.2f\n", out.Decisions[0].Action, out.Decisions[0].Confidence.V)
	}
	// Output:
	// allow 0.87
	// block 0.91
}
