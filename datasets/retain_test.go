package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// retainNow is the day of the retentions in these tests.
func retainNow() time.Time { return time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC) }

// traffic records n requests of one to three rows, the last tenth of them young, and labels
// nine of ten rows. 3 % of the requests are anomalies; two policies, A and B, are right
// with .97 and .95 on ordinary requests and with .70 and .90 on anomalies; rows of
// anomalies cost more.
func traffic(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	s := schema(t, decision.Field{Name: "cost", Type: decision.Double}, decision.Field{Name: "a", Type: decision.Int}, decision.Field{Name: "b", Type: decision.Int})
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot", BatchRows: 500})
	if err != nil {
		t.Fatal(err)
	}
	r := rowStream(1, 0, "retention")
	right := func(p float64) decision.Value {
		if r.Float64() < p {
			return decision.IntValue(1)
		}
		return decision.IntValue(0)
	}
	rows := uint64(0)
	for i := range n {
		anomaly, a, b, cost := r.Float64() < 0.03, 0.97, 0.95, 1.0
		if anomaly {
			a, b, cost = 0.70, 0.90, 5
		}
		for j := range 1 + i%3 {
			row := row(3*i+j, s)
			binary.BigEndian.PutUint64(row.RequestID[8:], uint64(i)+1)
			row.Scenario, row.Action, row.Confidence = "abuse", "allow", decision.Some(0.9)
			row.Time = retainNow().Add(-30*24*time.Hour + time.Duration(i)*time.Second)
			if i >= n*9/10 {
				row.Time = retainNow().Add(-time.Hour)
			}
			if anomaly && j == 0 { // one row makes the request
				row.Confidence = decision.Some(0.3)
			}
			row.Attrs.Values = []decision.Value{decision.DoubleValue(cost * (0.5 + r.Float64())), right(a), right(b)}
			if err := w.Append(row); err != nil {
				t.Fatal(err)
			}
			rows++
		}
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: rows, Written: rows}); err != nil {
		t.Fatal(err)
	}
	if err := WriteManifest(dir, &Manifest{Name: "traffic", Tasks: map[string]scoring.Task{"abuse": scoring.NewTask()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := AttachLabels(dir, retainLabel); err != nil {
		t.Fatal(err)
	}
	if err := StoreArtefact(dir, []byte("rules: []\n")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// retainLabel says that the recorded action was right where policy A was.
func retainLabel(s *snapshot.Snapshot) *snapshot.Label {
	if s.ID[15]%10 == 0 {
		return nil
	}
	return &snapshot.Label{Action: []string{"block", "allow"}[s.Attrs.Get("a").Int()], Key: s.SourceID}
}

func policy() RetainOptions {
	return RetainOptions{Policy: RetentionPolicy{After: 7 * 24 * time.Hour, Keep: 0.1, LowConfidence: 0.6}, Now: retainNow(), Ran: retainNow(), By: "me", Tool: "test"}
}

func retain(t testing.TB, dir, out string, o RetainOptions) *Retention {
	t.Helper()
	done, err := Retain(dir, out, o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// estimates are the accuracy of the labels, the mean of an attribute and A-B, each with
// the weights and without.
func estimates(t testing.TB, dir string) (weighted, naive [3]float64) {
	t.Helper()
	d := opened(t, dir)
	var sums [2][3]float64
	var weights [2][3]float64
	for p, err := range d.labelled(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		values := [3]float64{math.NaN(), p.row.Attrs.Get("cost").Double(), float64(p.row.Attrs.Get("a").Int() - p.row.Attrs.Get("b").Int())}
		if p.label != nil {
			values[0] = 0
			if p.label.Action == p.row.Action {
				values[0] = 1
			}
		}
		for k, w := range []float64{p.row.Weight(), 1} {
			for i, v := range values {
				if !math.IsNaN(v) {
					sums[k][i] += w * v
					weights[k][i] += w
				}
			}
		}
	}
	for i := range 3 {
		weighted[i], naive[i] = sums[0][i]/weights[0][i], sums[1][i]/weights[1][i]
	}
	return weighted, naive
}

// zScore is the distance of the mean of the draws from the truth in standard errors.
func zScore(draws []float64, truth float64) float64 {
	mean, ss := 0.0, 0.0
	for _, x := range draws {
		mean += x / float64(len(draws))
	}
	for _, x := range draws {
		ss += (x - mean) * (x - mean)
	}
	n := float64(len(draws))
	return (mean - truth) / math.Sqrt(ss/(n-1)/n)
}

// Over many seeds, estimates with keep_prob have the truth as their mean, and estimates
// without it do not: A is better than B, and without weights it looks worse. So it is after
// a second retention of what the first left, under the same seed.
func TestRetentionIsUnbiased(t *testing.T) {
	const seeds = 80
	dir := traffic(t, 1500)
	truth, same := estimates(t, dir)
	if truth != same || truth[2] <= 0 {
		t.Fatalf("the original: %v and %v", truth, same)
	}
	var draws [2][2][3][]float64 // round, weighting, estimate
	root := t.TempDir()
	for seed := range seeds {
		o := policy()
		o.Seed = uint64(seed)
		from := dir
		for round := range 2 {
			out := filepath.Join(root, fmt.Sprintf("%d-%d", seed, round))
			retain(t, from, out, o)
			weighted, naive := estimates(t, out)
			for i := range 3 {
				draws[round][0][i] = append(draws[round][0][i], weighted[i])
				draws[round][1][i] = append(draws[round][1][i], naive[i])
			}
			from, o.Policy.Keep = out, 0.5
		}
	}
	for round := range 2 {
		for i, what := range []string{"accuracy", "mean cost", "A-B"} {
			z, bad := zScore(draws[round][0][i], truth[i]), zScore(draws[round][1][i], truth[i])
			t.Logf("round %d, %s: truth %.4f, z weighted %+.2f, naive %+.1f", round+1, what, truth[i], z, bad)
			if math.Abs(z) > 3.3 { // two-sided p = 0.001; the seeds are fixed
				t.Errorf("round %d: weighted %s is biased: z = %.2f", round+1, what, z)
			}
			if math.Abs(bad) < 10 {
				t.Errorf("round %d: naive %s shows no bias (z = %.2f): the test has no power", round+1, what, bad)
			}
		}
		inverted := 0
		for _, x := range draws[round][1][2] {
			if x < 0 {
				inverted++
			}
		}
		if inverted < seeds*9/10 {
			t.Errorf("round %d: without weights A looks worse than B in %d of %d seeds only", round+1, inverted, seeds)
		}
	}
}

// rowsOfRequests returns a data set's rows by request.
func rowsOfRequests(t testing.TB, dir string) map[decision.ID][]pair {
	t.Helper()
	out := map[decision.ID][]pair{}
	for request, err := range opened(t, dir).requests() {
		if err != nil {
			t.Fatal(err)
		}
		id := request[0].row.RequestID
		if out[id] != nil {
			t.Fatalf("request %v stands in two places", id)
		}
		out[id] = slices.Clone(request)
	}
	return out
}

func TestRetainKeepsWholeRequests(t *testing.T) {
	dir := traffic(t, 600)
	before := tree(t, dir)
	out := filepath.Join(t.TempDir(), "out")
	o := policy()
	done := retain(t, dir, out, o)
	if after := tree(t, dir); !same(before, after) {
		t.Error("the old data set was changed")
	}
	old, kept := rowsOfRequests(t, dir), rowsOfRequests(t, out)
	counts := map[Stratum]int64{}
	for id, request := range old {
		kind := StratumOrdinary
		if request[0].row.Confidence.V < 0.6 {
			kind = StratumAnomaly
		}
		if request[0].row.Time.After(retainNow().Add(-7 * 24 * time.Hour)) {
			kind = StratumYoung
		}
		got := kept[id]
		if got == nil {
			if kind != StratumOrdinary {
				t.Errorf("%s request %v is gone", kind, id)
			}
			continue
		}
		counts[kind]++
		want := 1.0
		if kind == StratumOrdinary {
			want = 0.1
		}
		if len(got) != len(request) {
			t.Fatalf("request %v: %d of %d rows", id, len(got), len(request))
		}
		for i := range request {
			checkKept(t, request[i], got[i], want)
		}
	}
	if counts[StratumOrdinary] == 0 || counts[StratumAnomaly] == 0 || counts[StratumYoung] != 60 {
		t.Errorf("counts %v", counts)
	}
	for _, s := range done.Strata {
		if s.RequestsKept != counts[s.Stratum] || s.Stratum != StratumOrdinary && s.RequestsRead != s.RequestsKept {
			t.Errorf("counted %+v, there are %v", s, counts)
		}
	}
	if v, err := Verify(out); err != nil || v.Err() != nil {
		t.Errorf("not verified: %v %v", err, v.Err())
	}
}

// checkKept compares a row with what it was: all is the same but keep_prob and its place.
func checkKept(t *testing.T, old, got pair, prob float64) {
	t.Helper()
	a, b := *old.row, *got.row
	if b.KeepProb != a.KeepProb*prob {
		t.Errorf("row %v: keep_prob %v, was %v, want a factor %v", a.ID, b.KeepProb, a.KeepProb, prob)
	}
	for _, f := range a.Attrs.Schema.Fields() {
		if a.Attrs.Get(f.Name) != b.Attrs.Get(f.Name) {
			t.Errorf("row %v: %s changed", a.ID, f.Name)
		}
	}
	a.Ref, b.Ref, a.KeepProb, b.KeepProb, a.Attrs, b.Attrs = snapshot.Ref{}, snapshot.Ref{}, 0, 0, decision.Attrs{}, decision.Attrs{}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("row %v: %+v, was %+v", a.ID, b, a)
	}
	if (old.label == nil) != (got.label == nil) || old.label != nil && (!sameLabel(old.label, got.label) || got.label.ID != got.row.ID || got.label.Ref != got.row.Ref) {
		t.Errorf("row %v: label %+v, was %+v", a.ID, got.label, old.label)
	}
}

// tree is every file of a data set, artefacts included.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var data []byte
			data, err = os.ReadFile(path)
			out[strings.TrimPrefix(path, dir)] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRetainTwiceMultipliesAndRemembers(t *testing.T) {
	dir, root := traffic(t, 600), t.TempDir()
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	o := policy()
	first := retain(t, dir, one, o)
	o.Policy.Keep, o.Now = 0.5, retainNow().Add(30*24*time.Hour)
	second := retain(t, one, two, o)
	probs := map[float64]int{}
	for _, request := range rowsOfRequests(t, two) {
		probs[request[0].row.KeepProb]++
	}
	// Once young: 0.5. Ordinary both times: 0.1 * 0.5. Anomalies: 1.
	if len(probs) != 3 || probs[1] == 0 || probs[0.5] == 0 || probs[0.1*0.5] == 0 {
		t.Errorf("keep_prob %v", probs)
	}
	log, err := ReadRetentions(two)
	if err != nil || len(log) != 2 || !reflect.DeepEqual(log[0], *first) || !reflect.DeepEqual(log[1], *second) {
		t.Errorf("%v: the file tells %+v", err, log)
	}
	if first.Source.Digest != opened(t, dir).digest || second.Source.Digest != opened(t, one).digest || first.By != "me" || first.Tool != "test" {
		t.Errorf("%+v", first)
	}
	read, kept := second.Rows()
	var total snapshot.Ledger
	for _, s := range opened(t, two).segments {
		total.Add(s.meta.Ledger)
	}
	if want := (snapshot.Ledger{Offered: uint64(read), Written: uint64(kept), SampledOut: uint64(read - kept)}); !reflect.DeepEqual(total, want) || total.Check() != nil {
		t.Errorf("ledger %+v, want %+v", total, want)
	}
}

// Anchors are facts of all the data, and stay; artefacts come along; the label files are
// listed where the retention is.
func TestRetainCarriesFacts(t *testing.T) {
	dir, out := traffic(t, 300), filepath.Join(t.TempDir(), "out")
	done := retain(t, dir, out, policy())
	a, b := opened(t, dir), opened(t, out)
	if !reflect.DeepEqual(a.Tasks()["abuse"].Baseline, b.Tasks()["abuse"].Baseline) || math.IsNaN(float64(b.Tasks()["abuse"].Baseline)) || b.name != "traffic" {
		t.Errorf("anchors %+v, were %+v", b.Tasks(), a.Tasks())
	}
	files, err := filepath.Glob(filepath.Join(out, ArtefactDir, "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("artefacts %v %v", files, err)
	}
	if len(done.Labels) != 1 {
		t.Errorf("label files %v", done.Labels)
	}
	for name, sum := range done.Labels {
		if got, err := fileDigest(filepath.Join(out, name)); err != nil || got != sum {
			t.Errorf("%s has %s, %v; the record says %s", name, got, err, sum)
		}
	}
	again := filepath.Join(t.TempDir(), "again")
	retain(t, dir, again, policy())
	if !same(tree(t, out), tree(t, again)) {
		t.Error("the same retention gives other bytes")
	}
	o := policy()
	o.Seed = 7
	other := filepath.Join(t.TempDir(), "other")
	retain(t, dir, other, o)
	if len(rowsOfRequests(t, other)) == len(rowsOfRequests(t, out)) && same(tree(t, out), tree(t, other)) {
		t.Error("another seed gives the same bytes")
	}
}

func TestRetainDryRunWritesNothing(t *testing.T) {
	dir, root := traffic(t, 300), t.TempDir()
	o := policy()
	o.DryRun = true
	dry := retain(t, dir, filepath.Join(root, "out"), o)
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	o.DryRun = false
	ran := retain(t, dir, filepath.Join(root, "out"), o)
	if !reflect.DeepEqual(dry.Strata, ran.Strata) {
		t.Errorf("a dry run counts %+v, the run %+v", dry.Strata, ran.Strata)
	}
}

func TestRetainRefuses(t *testing.T) {
	dir, root := traffic(t, 60), t.TempDir()
	try := func(out string, change func(o *RetainOptions), want error, text string) {
		t.Helper()
		o := policy()
		change(&o)
		if _, err := Retain(dir, out, o); !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %v with %q", err, want, text)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	out := filepath.Join(root, "out")
	nan := math.NaN()
	try(out, func(o *RetainOptions) { o.Policy.Keep = 0 }, ErrPolicy, "no weight brings back a stratum")
	try(out, func(o *RetainOptions) { o.Policy.Keep = 1.1 }, ErrPolicy, "not in (0,1]")
	try(out, func(o *RetainOptions) { o.Policy.Keep = nan }, ErrPolicy, "not in (0,1]")
	try(out, func(o *RetainOptions) { o.Policy.Keep = 1e-9 }, ErrPolicy, "2^-24")
	try(out, func(o *RetainOptions) { o.Policy.After = -1 }, ErrPolicy, "negative")
	try(out, func(o *RetainOptions) { o.Policy.LowConfidence = nan }, ErrPolicy, "low confidence")
	try(out, func(o *RetainOptions) { o.Policy.Rare = 1 }, ErrPolicy, "rare")
	try(out, func(o *RetainOptions) { o.Policy.Rules = []string{""} }, ErrPolicy, "without a name")
	try(dir, func(*RetainOptions) {}, fs.ErrExist, dir)
	try(filepath.Join(dir, "new"), func(*RetainOptions) {}, ErrPolicy, "inside the data set")
	try(filepath.Join(root, "no", "where"), func(*RetainOptions) {}, fs.ErrNotExist, "no")
	open := filepath.Join(dir, "host-boot-00000009.arrow.open")
	if err := os.WriteFile(open, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	try(out, func(*RetainOptions) {}, arrowfile.ErrUnsealed, "neither kept nor counted")
	if err := os.Remove(open); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, RetentionName), []byte(`{"version":2,"retentions":[]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	try(out, func(*RetainOptions) {}, arrowfile.ErrCorrupt, "version 2")
}

// old records rows that are old enough to go.
func old(t testing.TB, n int, change func(i int, s *snapshot.Snapshot)) string {
	t.Helper()
	dir := t.TempDir()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s := row(i, nil)
		change(i, s)
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: uint64(n), Written: uint64(n)}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A weight that scoring would refuse is refused before anything appears.
func TestRetainBoundsWeights(t *testing.T) {
	dir := old(t, 200, func(_ int, s *snapshot.Snapshot) { s.KeepProb = minKeepProb * 2 })
	o, root := policy(), t.TempDir()
	o.Policy.Keep = 0.5
	retain(t, dir, filepath.Join(root, "half"), o)
	o.Policy.Keep = 0.4
	if _, err := Retain(dir, filepath.Join(root, "less"), o); !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), "below 2^-24") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Where chance or age leaves nothing, there is no data set.
func TestRetainNothing(t *testing.T) {
	o := policy()
	o.Policy.Keep = minKeepProb
	root := t.TempDir()
	if _, err := Retain(old(t, 4, func(int, *snapshot.Snapshot) {}), filepath.Join(root, "out"), o); !errors.Is(err, ErrEmpty) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A request whose rows stand in two segments is one request: its second row keeps the first.
func TestRetainAcrossSegments(t *testing.T) {
	a, b := schema(t, decision.Field{Name: "a", Type: decision.Int}), schema(t, decision.Field{Name: "b", Type: decision.Int})
	dir := old(t, 20, func(i int, s *snapshot.Snapshot) {
		s.Attrs = decision.Attrs{Schema: a, Values: []decision.Value{decision.IntValue(int64(i))}}
		if i >= 11 { // rows 10 and 11 are one request
			s.Attrs.Schema = b
		}
		if i == 11 {
			s.RuleID = "keep"
		}
	})
	o, out := policy(), filepath.Join(t.TempDir(), "out")
	o.Policy.Keep, o.Policy.Rules = minKeepProb, []string{"keep"}
	retain(t, dir, out, o)
	var got []string
	d := opened(t, out)
	for s, err := range d.Snapshots(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v %v %v", s.SourceID, s.KeepProb, s.Attrs.Get("a"), s.Attrs.Get("b")))
	}
	if want := []string{"row/10 1 10 null", "row/11 1 null 11"}; !reflect.DeepEqual(got, want) || len(d.segments) != 2 {
		t.Errorf("%q in %d segments, want %q", got, len(d.segments), want)
	}
}

// What a request is does not depend on the order of its rows or of the rules.
func TestStratumDependsOnRowsAlone(t *testing.T) {
	s := schema(t)
	mk := func(change func(*snapshot.Snapshot)) pair {
		r := row(0, s)
		r.Confidence, r.Scenario, r.Action, r.Time = decision.Some(0.9), "s", "allow", retainNow().Add(-30*24*time.Hour)
		change(r)
		return pair{row: r}
	}
	o := policy()
	o.Policy.Rare, o.Policy.Rules = 0.05, []string{"r1", "r2"}
	plain := mk(func(*snapshot.Snapshot) {})
	cases := map[string]pair{
		"status":         mk(func(r *snapshot.Snapshot) { r.Status = decision.Denied }),
		"low-confidence": mk(func(r *snapshot.Snapshot) { r.Confidence.V = 0.5999 }),
		"rare":           mk(func(r *snapshot.Snapshot) { r.Action = "block" }),
		"rule:r2":        mk(func(r *snapshot.Snapshot) { r.RuleID = "r2" }),
		"":               mk(func(r *snapshot.Snapshot) { r.Confidence.V, r.RuleID = 0.6, "r3" }),
	}
	for _, rules := range [][]string{{"r1", "r2"}, {"r2", "r1"}} {
		o.Policy.Rules = rules
		sort := newSorter(&o, "digest")
		// block has 4 % of the rows and, because its rows stand for half as many, 2 % of the weight.
		sort.weights = map[string]map[string]float64{"s": {"": 100, "allow": 98, "block": 2}}
		for want, p := range cases {
			for _, request := range [][]pair{{plain, p}, {p, plain}, {p}} {
				kind, criteria := sort.stratum(request)
				if (kind == StratumAnomaly) != (want != "") || want != "" && (!criteria[want] || len(criteria) != 1) {
					t.Errorf("%q: %s %v", want, kind, criteria)
				}
			}
		}
		young := mk(func(r *snapshot.Snapshot) { r.Time = retainNow().Add(-time.Hour) })
		for _, request := range [][]pair{{young, cases["status"]}, {cases["status"], young}} {
			if kind, _ := sort.stratum(request); kind != StratumYoung {
				t.Errorf("a request with a young row is %s", kind)
			}
		}
		all := mk(func(r *snapshot.Snapshot) { r.Status, r.Confidence.V, r.RuleID = decision.Denied, 0, "r1" })
		if _, criteria := sort.stratum([]pair{all}); len(criteria) != 3 {
			t.Errorf("criteria %v: all that hold count", criteria)
		}
	}
}

// Rare is by weight, as the data set is thinned out already.
func TestRareIsByWeight(t *testing.T) {
	o := policy()
	o.Policy.Rare = 0.05
	sort := newSorter(&o, "")
	err := sort.weigh(func(yield func(*snapshot.Snapshot, error) bool) {
		for i := range 100 {
			r := row(0, nil)
			r.Scenario, r.Action, r.KeepProb = "s", "allow", 0.1
			if i < 10 { // 10 % of the rows, 1.1 % of the weight
				r.Action, r.KeepProb = "block", 1
			}
			if !yield(r, nil) {
				return
			}
		}
	})
	r := row(0, nil)
	r.Scenario, r.Action, r.Time = "s", "block", time.Unix(0, 0)
	if kind, c := sort.stratum([]pair{{row: r}}); err != nil || kind != StratumAnomaly || !c["rare"] {
		t.Errorf("%v: %s %v, weights %v", err, kind, c, sort.weights)
	}
}

func TestRetainWarnings(t *testing.T) {
	o := policy()
	o.Policy.Rules, o.DryRun, o.Policy.Keep = []string{"mispelt"}, true, minKeepProb
	done := retain(t, traffic(t, 60), "", o)
	codes := ""
	for _, w := range done.Warnings {
		codes += w.Code + " "
	}
	if codes != "stratum-empty rule-unseen " {
		t.Errorf("warnings %+v", done.Warnings)
	}
}

func FuzzRetentionLog(f *testing.F) {
	f.Add([]byte(`{"version":1,"retentions":[{"ran_at":"2026-01-01T00:00:00Z","policy":{"after_ns":1,"keep":0.5}}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"retentions":null} x`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseEntries("retention.json", data)
		if err != nil {
			if !errors.Is(err, arrowfile.ErrCorrupt) {
				t.Errorf("%v", err)
			}
			return
		}
		dir := t.TempDir()
		if err := writeEntries(dir, entries, &Retention{Seed: 3}); err != nil {
			t.Fatal(err)
		}
		back, err := readEntries(dir)
		if err != nil || len(back) != len(entries)+1 {
			t.Errorf("%d entries and one more are %d, %v", len(entries), len(back), err)
		}
	})
}
