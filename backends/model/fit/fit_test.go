package fit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/decision"
)

// world makes rows whose log odds are known: 1.5 for a load one standard deviation up, 2
// for country FR, 1 where flag is set, and 0.8 where the load is absent.
func world(n int, seed uint64) []Row {
	schema, err := decision.NewSchema(decision.Field{Name: "country", Type: decision.String}, decision.Field{Name: "flag", Type: decision.Bool},
		decision.Field{Name: "load", Type: decision.Double}, decision.Field{Name: "same", Type: decision.Int}, decision.Field{Name: "id", Type: decision.String})
	if err != nil {
		panic(err)
	}
	r := rand.New(rand.NewPCG(seed, 7))
	rows := make([]Row, n)
	for i := range rows {
		country, flag, x := []string{"DE", "DE", "FR", "US"}[r.IntN(4)], r.IntN(2) == 0, r.NormFloat64()
		logit, load := -1.0, decision.DoubleValue(100+10*x)
		if r.IntN(5) == 0 {
			load, logit = decision.Value{}, logit+0.8
		} else {
			logit += 1.5 * x
		}
		if country == "FR" {
			logit += 2
		}
		if flag {
			logit++
		}
		rows[i] = Row{Class: "allow", Weight: 1, Cluster: fmt.Append(nil, i/2), Attrs: decision.Attrs{Schema: schema,
			Values: []decision.Value{decision.StringValue(country), decision.BoolValue(flag), load, decision.IntValue(7), decision.StringValue(fmt.Sprint("r", i))}}}
		if r.Float64() < 1/(1+math.Exp(-logit)) {
			rows[i].Class = "block"
		}
	}
	return rows
}

func mustFit(t *testing.T, rows []Row, o Options) *Result {
	t.Helper()
	r, err := Fit(rows, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The weights that made the rows are found again, within three of their standard errors
// (about 0.05 for 12,000 rows), and the probabilities are calibrated.
func TestFindsTheTruth(t *testing.T) {
	rows := world(16000, 1)
	o := DefaultOptions()
	o.L2 = 0.1
	r := mustFit(t, rows, o)
	m, err := model.Compile("model.json", r.File)
	if err != nil {
		t.Fatal(err)
	}
	logit := func(country string, flag bool, load decision.Value) float64 {
		req := &decision.Request{Questions: make([]decision.Question, 1), Attrs: rows[0].Attrs}
		req.Attrs.Values = []decision.Value{decision.StringValue(country), decision.BoolValue(flag), load, decision.IntValue(7), decision.StringValue("new")}
		var out decision.Response
		if err := m.Decide(context.Background(), req, &out); err != nil || out.Decisions[0].Status != decision.OK {
			t.Fatalf("%v %+v", err, out.Decisions)
		}
		p := out.Decisions[0].Candidates[0].Probability.V
		return math.Log(p / (1 - p))
	}
	mean := decision.DoubleValue(100)
	base := logit("DE", false, mean)
	for name, c := range map[string]struct{ got, want float64 }{
		"nothing": {base, -1}, "load": {logit("DE", false, decision.DoubleValue(110)) - base, 1.5}, "FR": {logit("FR", false, mean) - base, 2},
		"flag": {logit("DE", true, mean) - base, 1}, "no load": {logit("DE", false, decision.Value{}) - base, 0.8}, "US": {logit("US", false, mean) - base, 0}, "elsewhere": {logit("XX", false, mean) - base, 0},
	} {
		if math.Abs(c.got-c.want) > 0.3 {
			t.Errorf("%s adds %v, want %v", name, c.got, c.want)
		}
	}
	met := r.Metrics
	if met.Accuracy < met.Majority+0.1 || met.LogLoss > met.ShareLogLoss-0.1 || met.Brier > met.ShareBrier-0.05 || met.CalibrationError > 0.03 {
		t.Errorf("%+v", met)
	}
	if r.Train+r.Holdout != len(rows) || math.Abs(float64(r.Holdout)/float64(len(rows))-HoldoutShare) > 0.02 {
		t.Errorf("%d for training, %d held out", r.Train, r.Holdout)
	}
	if got := strings.Join(r.Dropped, "; "); !strings.Contains(got, "same (the same") || !strings.Contains(got, "id (one text") {
		t.Errorf("dropped %s", got)
	}
}

// The hold-out is measured, not learnt from: other truths there change no byte of the
// file. And no option moves it.
func TestHoldoutIsSealed(t *testing.T) {
	rows := world(2000, 2)
	o := DefaultOptions()
	o.Calibrate = CalibratePlatt
	a := mustFit(t, rows, o)
	flipped := world(2000, 2)
	n := 0
	for i := range flipped {
		if share(holdoutSeed, flipped[i].Cluster) < HoldoutShare {
			flipped[i].Class = map[string]string{"allow": "block", "block": "allow"}[flipped[i].Class]
			n++
		}
	}
	b := mustFit(t, flipped, o)
	if !bytes.Equal(a.File, b.File) || n != a.Holdout {
		t.Error("the hold-out changes the file")
	}
	if a.Metrics.Accuracy+b.Metrics.Accuracy < 0.999 || a.Metrics.Accuracy == b.Metrics.Accuracy {
		t.Errorf("accuracies %v and %v", a.Metrics.Accuracy, b.Metrics.Accuracy)
	}
	o.Seed = 99
	if c := mustFit(t, rows, o); c.Holdout != a.Holdout || c.Metrics.Majority != a.Metrics.Majority {
		t.Error("the seed moves the hold-out")
	}
	// Both rows of a cluster are on one side.
	train, holdout := split(rows)
	sides := map[string]int{}
	for side, part := range [][]Row{train, holdout} {
		for _, r := range part {
			if before, ok := sides[string(r.Cluster)]; ok && before != side {
				t.Fatalf("cluster %s is on both sides", r.Cluster)
			}
			sides[string(r.Cluster)] = side
		}
	}
}

func TestSameRowsGiveTheSameBytes(t *testing.T) {
	o := DefaultOptions()
	o.Calibrate = CalibrateTemperature
	a, b := mustFit(t, world(1500, 3), o), mustFit(t, world(1500, 3), o)
	if !bytes.Equal(a.File, b.File) || a.Metrics != b.Metrics {
		t.Errorf("%s\n%s", a.File, b.File)
	}
}

// A row of weight 3 is three rows, save for the mean weight of 1: the penalty is 0 here.
func TestWeightsAreRows(t *testing.T) {
	rows, tripled := world(1200, 4), []Row(nil)
	for i := range rows {
		n := 1 + i%3
		rows[i].Weight = float64(n)
		for range n {
			r := rows[i]
			r.Weight = 1
			tripled = append(tripled, r)
		}
	}
	o := DefaultOptions()
	o.L2, o.Exclude = 0, []string{"id"}
	a, b := mustFit(t, rows, o), mustFit(t, tripled, o)
	if math.Abs(a.Metrics.LogLoss-b.Metrics.LogLoss) > 1e-6 || math.Abs(a.Metrics.Brier-b.Metrics.Brier) > 1e-6 || math.Abs(a.Metrics.CalibrationError-b.Metrics.CalibrationError) > 1e-6 {
		t.Errorf("%+v\n%+v", a.Metrics, b.Metrics)
	}
}

// The columns that the fit saw are those that the finished model computes.
func TestFileGivesTheSameLogits(t *testing.T) {
	rows := world(1000, 5)
	for i := range rows { // three classes
		if i%4 == 0 {
			rows[i].Class = "review"
		}
	}
	o := DefaultOptions()
	r := mustFit(t, rows, o)
	train, _ := split(rows)
	d, err := newDesign(train, r.Classes, &o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := maximise(d.samples(train), o.L2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Compile("model.json", r.File)
	if err != nil {
		t.Fatal(err)
	}
	s, p := d.samples(rows), make([]float64, 3)
	for i := range rows {
		w.logits(s.row(i), p)
		softmax(p)
		var out decision.Response
		if err := m.Decide(context.Background(), &decision.Request{Attrs: rows[i].Attrs, Questions: make([]decision.Question, 1)}, &out); err != nil {
			t.Fatal(err)
		}
		for k, c := range out.Decisions[0].Candidates {
			if math.Abs(c.Probability.V-p[k]) > 1e-7 {
				t.Fatalf("row %d, %s: %v, want %v", i, c.Action, c.Probability.V, p[k])
			}
		}
	}
}

// Scores that are too sure by a known factor and offset are set right.
func TestCalibration(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	s := &samples{d: 1, classes: 2}
	var logits []float64
	for range 20000 {
		z := r.NormFloat64() * 2
		y := 0
		if r.Float64() < 1/(1+math.Exp(-(0.5*z-0.7))) {
			y = 1
		}
		s.x, s.y, s.w, logits = append(s.x, 1), append(s.y, y), append(s.w, 1), append(logits, 0, z)
	}
	factor, offset, err := platt(s, logits)
	if err != nil || math.Abs(factor-0.5) > 0.05 || math.Abs(offset+0.7) > 0.05 {
		t.Errorf("factor %v, offset %v, %v", factor, offset, err)
	}
	// The temperature alone is where the slope of the likelihood is 0: by search.
	best, at := math.Inf(-1), 0.0
	for f := 0.05; f < 2; f += 0.001 {
		sum := 0.0
		for i, y := range s.y {
			z := []float64{0, f * logits[2*i+1]}
			zy := z[y]
			sum += zy - softmax(z)
		}
		if sum > best {
			best, at = sum, f
		}
	}
	if got := temperature(s, logits); math.Abs(got-at) > 0.001 {
		t.Errorf("temperature %v, want %v", got, at)
	}
}

func TestRefusals(t *testing.T) {
	rare := world(400, 8)
	for i := range 5 {
		rare[i].Class = "review"
	}
	same := world(400, 8)
	for i := range same {
		same[i].Class = "allow"
	}
	leak := world(400, 8)
	for i := range leak {
		leak[i].Attrs.Values[1] = decision.BoolValue(leak[i].Class == "block")
	}
	only := func(names ...string) func(*Options) { return func(o *Options) { o.Attributes = names } }
	for _, tc := range []struct {
		rows []Row
		set  func(*Options)
		want string
	}{
		{nil, func(*Options) {}, "there are no rows with a label"},
		{rare, func(*Options) {}, "too few rows of a class (want 20 and 1): review has "},
		{same, func(*Options) {}, "all rows have the class allow"},
		{leak, func(o *Options) { o.L2 = 0 }, "columns separate the classes"},
		{world(400, 8), only("same"), "no attribute differs"},
		{world(400, 8), only("laod"), `no row has an attribute "laod"`},
		{world(4000, 8), func(o *Options) { o.Values, o.MinRows = 5000, 1 }, "more than 2000 parameters"},
	} {
		o := DefaultOptions()
		tc.set(&o)
		if _, err := Fit(tc.rows, o); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
	for _, set := range []func(*Options){
		func(o *Options) { o.L2 = -1 }, func(o *Options) { o.L2 = math.NaN() }, func(o *Options) { o.Missing = "zero" },
		func(o *Options) { o.Calibrate = "isotonic" }, func(o *Options) { o.MinRows = 0 }, func(o *Options) { o.Calibrate, o.Folds = CalibratePlatt, 1 },
	} {
		o := DefaultOptions()
		set(&o)
		if _, err := Fit(world(200, 8), o); err == nil {
			t.Errorf("%+v was fitted", o)
		}
	}
}

func TestMissingMean(t *testing.T) {
	o := DefaultOptions()
	o.Missing = MissingMean
	r := mustFit(t, world(800, 9), o)
	if bytes.Contains(r.File, []byte("present")) || !bytes.Contains(r.File, []byte(`"missing": `)) {
		t.Errorf("%s", r.File)
	}
}

// Metrics by hand: two rows, probabilities 0.8 and 0.6 for the first class.
func TestMetricsByHand(t *testing.T) {
	var m Metrics
	m.add([]float64{0.8, 0.2}, []float64{0.5, 0.5}, 0, true, 1)
	m.add([]float64{0.6, 0.4}, []float64{0.5, 0.5}, 1, false, 3)
	m.divide(4)
	for name, c := range map[string][2]float64{
		"accuracy": {m.Accuracy, 0.25}, "majority": {m.Majority, 0.25}, "log loss": {m.LogLoss, (-math.Log(0.8) - 3*math.Log(0.4)) / 4},
		"Brier": {m.Brier, (2*0.04 + 3*2*0.36) / 4}, "Brier of shares": {m.ShareBrier, 0.5}, "calibration": {m.CalibrationError, (0.2 + 3*0.6) / 4},
		"bin": {m.Reliability[6].Confidence, 0.6}, "weight": {m.Reliability[6].Weight, 3},
	} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, c[0], c[1])
		}
	}
}

func Example() {
	// Requests per second and whether they turned out to be abuse.
	schema, err := decision.NewSchema(decision.Field{Name: "metrics.rate", Type: decision.Double})
	if err != nil {
		panic(err)
	}
	var rows []Row
	for i := range 400 {
		class := "allow"
		if i%10 > 6 || i%10 == 3 {
			class = "block"
		}
		rows = append(rows, Row{Class: class, Weight: 1, Cluster: fmt.Append(nil, i), Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{decision.DoubleValue(float64(i % 10))}}})
	}
	r, err := Fit(rows, DefaultOptions())
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Metrics.Accuracy > r.Metrics.Majority, r.Columns, r.Classes[1].Action)
	// Output: true 1 block
}
