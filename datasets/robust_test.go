package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// Segments of random schemas, spread over two directories and two recorders, give back
// every value at its name, whatever the order of the patterns.
func TestOpenAgainstMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	all := []decision.Field{
		{Name: "a", Type: decision.String}, {Name: "b", Type: decision.Int}, {Name: "c", Type: decision.Double},
		{Name: "d", Type: decision.String}, {Name: "e", Type: decision.Int},
	}
	for round := range 5 {
		dirs := []string{t.TempDir(), t.TempDir()}
		var rows []*snapshot.Snapshot
		for i, dir := range dirs {
			var s *decision.Schema
			record(t, dir, fmt.Sprintf("boot%d", i), i*100, i*100+60, func(n int) *decision.Schema {
				if n%10 == 0 {
					order := r.Perm(len(all))[:r.IntN(len(all)+1)]
					fields := make([]decision.Field, len(order))
					for k, at := range order {
						fields[k] = all[at]
					}
					s = schema(t, fields...)
				}
				rows = append(rows, row(n, s))
				return s
			})
		}
		r.Shuffle(2, func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
		d := opened(t, dirs...)
		n := 0
		for got, err := range d.Snapshots(Filter{}) {
			must(t, err)
			want := rows[n]
			for _, f := range all {
				if got.Attrs.Get(f.Name) != want.Attrs.Get(f.Name) {
					t.Fatalf("round %d, row %d: %s is %v, want %v", round, n, f.Name, got.Attrs.Get(f.Name), want.Attrs.Get(f.Name))
				}
			}
			if got.ID != want.ID {
				t.Fatalf("round %d: row %d out of order", round, n)
			}
			n++
		}
		if n != len(rows) {
			t.Errorf("round %d: %d rows, want %d", round, n, len(rows))
		}
	}
}

// A snapshot that was cloned stays as it was while the iteration goes on.
func TestClonesSurviveTheIteration(t *testing.T) {
	d := opened(t, two(t))
	var kept []*snapshot.Snapshot
	for s, err := range d.Snapshots(Filter{}) {
		must(t, err)
		kept = append(kept, s.Clone())
	}
	for n, s := range kept {
		if s.Attrs.Get("path").Str() != fmt.Sprintf("path-%d", n) {
			t.Errorf("row %d now has %v", n, s.Attrs.Values)
		}
	}
}

func TestManifestRoundTripOfRandomTasks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	word := func() string {
		alphabet := []rune("ab:#-'\"\\{}[],&*!|>%@` \tä世\u2028😀0.~")
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	number := func() scoring.Number {
		if r.IntN(3) == 0 {
			return scoring.Number(math.NaN())
		}
		return scoring.Number(math.Ldexp(r.Float64(), -r.IntN(60)))
	}
	for range 300 {
		m := &Manifest{Name: word(), Preset: word(), Tasks: map[string]scoring.Task{}}
		for range r.IntN(3) {
			task := scoring.Task{Baseline: number(), Top: number(), Majority: number(), Ceiling: number(), BaselineAction: word(), LabelStrength: word()}
			if r.IntN(2) == 0 {
				task.Utility = map[string]map[string]float64{word(): {word(): r.Float64()}}
			}
			m.Tasks[word()] = task
		}
		got, err := ParseManifest("m.yaml", m.Format())
		if err != nil {
			t.Fatalf("%v\n%s", err, m.Format())
		}
		if d := cmp.Diff(m, got, sameNumber()); d != "" {
			t.Fatal(d)
		}
	}
}

// The embedded files are fixed, but their readers are not to trust them.
func TestDemoSourcesRefuse(t *testing.T) {
	for _, line := range []string{``, `{`, `{"ua":"x","category":"teapot"}`} {
		if _, err := agentExample(nil, 7, []byte(line)); err == nil || !strings.Contains(err.Error(), "jsonl:7:") {
			t.Errorf("%q: %v", line, err)
		}
	}
	s, err := creditSchema()
	must(t, err)
	good := strings.Split("good,9,rent,60,30,married,no,freelance,73,129,0,0,800,846", ",")
	for at, cell := range map[int]string{0: "so-so", 1: "nine", 13: "1e400"} {
		bad := slices.Clone(good)
		bad[at] = cell
		if _, err := creditExample(s, 3, bad); err == nil || !strings.Contains(err.Error(), "row 3") {
			t.Errorf("%q: %v", cell, err)
		}
	}
	ex, err := creditExample(s, 3, good)
	must(t, err)
	if got := ex.Attrs.Get("local.financed").Double(); math.Abs(got-800.0/846) > 1e-6 {
		t.Errorf("financed %v", got)
	}
	good[13], good[9] = "0", ""
	ex, err = creditExample(s, 3, good)
	must(t, err)
	if !ex.Attrs.Get("local.financed").IsNull() || !ex.Attrs.Get("local.income").IsNull() {
		t.Errorf("a price of 0 and an empty income give %v", ex.Attrs.Values)
	}
	if _, err := embedded("absent.gz"); err == nil {
		t.Error("no error for a file that is not embedded")
	}
	for _, err := range failing(fs.ErrInvalid) {
		if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("error %v", err)
		}
	}
}

// Rows by strategies, statuses without an action, and a request that spans scenarios.
func TestInfoOfMixedRows(t *testing.T) {
	dir := t.TempDir()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot1"})
	must(t, err)
	for n := range 6 {
		s := row(n, nil)
		switch n {
		case 1, 2:
			s.Artefact = decision.Artefact{StrategyVersion: "v2"}
		case 4:
			s.Status, s.Action = decision.Timeout, ""
		case 5:
			s.Backend = "backup"
		}
		must(t, w.Append(s))
	}
	must(t, w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 6, Written: 6}))
	info, err := Describe(dir)
	must(t, err)
	digest := "07" + strings.Repeat("0", 62)
	if d := cmp.Diff([]StrategyInfo{{"backup", "v1", digest, 1}, {"incumbent", "v1", digest, 3}, {"incumbent", "v2", "", 2}}, info.Strategies); d != "" {
		t.Error(d)
	}
	if got := info.Scenarios[0]; got.Actions["(timeout)"] != 1 || got.Snapshots != 4 || got.Requests != 2 {
		t.Errorf("%+v", got)
	}
}
