package datasets

import (
	"errors"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

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
