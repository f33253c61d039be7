package scoring

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/snapshot"
)

func audits(n, repeats int, change func(i, k int, o *snapshot.Outcome)) []*snapshot.Outcome {
	var out []*snapshot.Outcome
	for i := range n {
		for k := range repeats {
			o := outcome("x", i, "allow")
			o.Phase, o.Repeat = snapshot.PhaseAudit, int32(k)
			o.Identified, o.Explained, o.Complete = decision.Some(true), decision.Some(true), decision.Some(true)
			change(i, k, o)
			out = append(out, o)
		}
	}
	return out
}

func TestAuditByHand(t *testing.T) {
	in := one(100, func(int, *Row, *snapshot.Outcome) {})
	in.Audit = outcomes(audits(100, 3, func(i, k int, o *snapshot.Outcome) {
		o.Identified = decision.Some(i%10 > 0)         // .9
		o.Explained = decision.Some(i%2 == 0)          // .5
		o.Complete = decision.Some(i%4 != 0 || k == 1) // .75: one finding against is enough
		if i%5 == 0 && k == 2 {                        // .8
			o.Action = "block"
		}
	}))
	b, _ := scoreOne(t, in, preset(t, "default"))
	q := b.Scenarios["s1"].Categories.Auditability
	for name, want := range map[string]float64{"q1 identified": 0.9, "q2 reproducible": 0.8, "q3 explained": 0.5, "q5 complete": 0.75, "q6 intact": 1} {
		is(t, name, q.term(name).Value, want)
	}
	isNA(t, "q4", q.term("q4 faithful").Estimate, "not measured")
	want := (0.15*0.9 + 0.25*0.8 + 0.10*0.5 + 0.15*0.75 + 0.15*1) / 0.80
	is(t, "auditability", q.Value, 100*want)
	lo, hi := stats.Wilson(0.8, 100)
	is(t, "lower bound of q2", q.term("q2 reproducible").Lo, lo)
	is(t, "upper bound of q2", q.term("q2 reproducible").Hi, hi)
	if !(q.Lo < q.Value && q.Value < q.Hi) || !strings.Contains(q.Evidence, "unmeasured: q4 faithful") {
		t.Errorf("auditability is %+v", q.Estimate)
	}
}

func TestReproducedMeansTheSameActionAndProbabilities(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(k int, o *snapshot.Outcome)
		want   float64
	}{
		"same":          {func(int, *snapshot.Outcome) {}, 1},
		"params differ": {func(k int, o *snapshot.Outcome) { o.Params = strings.Repeat(" ", k) }, 1},
		"float noise": {func(k int, o *snapshot.Outcome) {
			o.Candidates = []decision.Candidate{{Action: "a", Probability: decision.Some(0.5 + 1e-9*float64(k))}}
		}, 1},
		"probability moves": {func(k int, o *snapshot.Outcome) {
			o.Candidates = []decision.Candidate{{Action: "a", Probability: decision.Some(0.5 + 1e-3*float64(k))}}
		}, 0},
		"a candidate less": {func(k int, o *snapshot.Outcome) {
			if k == 1 {
				o.Candidates = []decision.Candidate{{Action: "a", Probability: decision.Some(1.0)}}
			}
		}, 0},
		"times out once": {func(k int, o *snapshot.Outcome) {
			if k == 2 {
				o.Status, o.Action = decision.Timeout, ""
			}
		}, 0},
	} {
		in := one(30, func(int, *Row, *snapshot.Outcome) {})
		rows := audits(30, 3, func(_, k int, o *snapshot.Outcome) { tc.change(k, o) })
		in.Audit = outcomes(rows)
		b, _ := scoreOne(t, in, preset(t, "default"))
		q := b.Scenarios["s1"].Categories.Auditability
		is(t, name, q.term("q2 reproducible").Value, tc.want)
		// Rows of the sample may come in any order.
		slices.Reverse(rows)
		in.Audit = outcomes(rows)
		again, _ := scoreOne(t, in, preset(t, "default"))
		r := again.Scenarios["s1"].Categories.Auditability
		if d := r.Value; d != q.Value {
			t.Errorf("%s: %v backwards, %v forwards", name, d, q.Value)
		}
	}
}

func TestAuditRefusals(t *testing.T) {
	none := func(int, int, *snapshot.Outcome) {}
	bare := func(_, _ int, o *snapshot.Outcome) {
		o.Identified, o.Explained, o.Complete = decision.Opt[bool]{}, decision.Opt[bool]{}, decision.Opt[bool]{}
	}
	for _, tc := range []struct {
		name    string
		n, k    int
		change  func(i, k int, o *snapshot.Outcome)
		na, q2  string
		measure float64
	}{
		{"no sample", 0, 0, none, "no audit sample", "no audit sample", 0},
		// q1, q3, q5 and q6 are .55 of the weight.
		{"executed once", 30, 1, none, "", "no decision was executed twice", 100},
		// q2 and q6 are .40 of it.
		{"findings missing", 30, 3, bare, "less than half of the weight", "", 0},
	} {
		in := one(30, func(int, *Row, *snapshot.Outcome) {})
		in.Audit = outcomes(audits(tc.n, tc.k, tc.change))
		b, _ := scoreOne(t, in, preset(t, "default"))
		q := b.Scenarios["s1"].Categories.Auditability
		if tc.na != "" {
			isNA(t, tc.name, q.Estimate, tc.na)
		} else {
			is(t, tc.name, q.Value, tc.measure)
		}
		if got := q.term("q2 reproducible").NA; got != tc.q2 {
			t.Errorf("%s: q2 is NA for %q, want %q", tc.name, got, tc.q2)
		}
	}
}

// What got no answer has nothing to audit, and is not left out: a dead backend that fails
// the same way each time is not reproducible, nor complete.
func TestAuditOfNoAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(i, k int, o *snapshot.Outcome)
		// q1, q2, q3 and q5.
		want [4]float64
	}{
		"dead":             {fail(decision.Error, 100, 3), [4]float64{}},
		"dead, recorded":   {fail(decision.Timeout, 100, 1), [4]float64{0, math.NaN(), 0, 0}},
		"not replayable":   {fail(decision.NotReplayable, 100, 3), [4]float64{}},
		"some not":         {fail(decision.NotReplayable, 25, 3), [4]float64{0.75, 0.75, 0.75, 0.75}},
		"abstains":         {fail(decision.Abstain, 100, 3), [4]float64{1, 1, 1, 1}},
		"first call fails": {fail(decision.Error, 100, -1), [4]float64{0, 0, 0, 0}},
		"last call fails":  {fail(decision.Error, 100, -2), [4]float64{1, 0, 1, 1}},
	} {
		repeats := 3
		if name == "dead, recorded" {
			repeats = 1
		}
		in := one(100, func(int, *Row, *snapshot.Outcome) {})
		in.Audit = outcomes(audits(100, repeats, tc.change))
		b, _ := scoreOne(t, in, preset(t, "default"))
		q := b.Scenarios["s1"].Categories.Auditability
		for i, question := range []string{"q1 identified", "q2 reproducible", "q3 explained", "q5 complete"} {
			if got := float64(q.term(question).Value); got != tc.want[i] && !(math.IsNaN(got) && math.IsNaN(tc.want[i])) {
				t.Errorf("%s: %s is %v, want %v", name, question, got, tc.want[i])
			}
		}
		if name == "dead" {
			is(t, "auditability of a dead backend", q.Value, 100*0.15/0.80) // q6 is the data set's
		}
	}
}

// fail gives the first n decisions a status without an action, in the first repeats
// calls; -1 is the first call only, -2 the last only. Findings stand on the first call,
// as replay writes them.
func fail(status decision.Status, n, repeats int) func(i, k int, o *snapshot.Outcome) {
	return func(i, k int, o *snapshot.Outcome) {
		if k > 0 {
			o.Identified, o.Explained, o.Complete = decision.Opt[bool]{}, decision.Opt[bool]{}, decision.Opt[bool]{}
		}
		if i < n && (k < repeats || repeats == -1 && k == 0 || repeats == -2 && k == 2) {
			o.Status, o.Action = status, ""
		}
	}
}
