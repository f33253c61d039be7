package datasets

import (
	"encoding/binary"
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
	"github.com/clefbench/clefbench/internal/wholefile"
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
	v, err := Verify(out)
	if err != nil || v.Err() != nil {
		t.Fatalf("not verified: %v %v", err, v.Err())
	}
	rows, gone := v.Ledger, int64(len(old)-len(kept))
	if rows.Requests == nil || !reflect.DeepEqual(*rows.Requests, snapshot.Counts{Offered: uint64(len(old)), Written: uint64(len(kept)), SampledOut: uint64(gone)}) {
		t.Errorf("%d of %d requests stayed, the ledger says %+v", len(kept), len(old), rows.Requests)
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
	want := snapshot.Ledger{Offered: uint64(read), Written: uint64(kept), SampledOut: uint64(read - kept), Requests: &snapshot.Counts{}}
	for _, s := range second.Strata {
		want.Requests.Offered, want.Requests.Written = want.Requests.Offered+uint64(s.RequestsRead), want.Requests.Written+uint64(s.RequestsKept)
	}
	if want.Requests.SampledOut = want.Requests.Offered - want.Requests.Written; !reflect.DeepEqual(total, want) || total.Check() != nil {
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
		if got, err := wholefile.Digest(filepath.Join(out, name)); err != nil || got != sum {
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
