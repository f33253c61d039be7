package replay

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// local explains itself and is deterministic or not.
type local struct {
	fake
	rule string
	file string
	flip bool
}

func (l *local) Info() decision.Info {
	return decision.Info{Kind: "rules", Attributes: []string{"path", "metrics.gone"}}
}

func (l *local) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	l.calls++
	action := "allow"
	if l.flip && l.calls%2 == 0 {
		action = "block"
	}
	out.Artefact.StrategyDigest = [32]byte{1}
	out.Decisions[0] = decision.Decision{Status: decision.OK, Action: action, Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "r1"}}
	return nil
}

func (l *local) Explain(context.Context, *decision.Request) (*decision.Explanation, error) {
	return &decision.Explanation{
		Reason:   decision.Reason{Kind: decision.ReasonMatch, Rule: l.rule},
		Position: decision.Position{File: l.file, Line: 3},
	}, nil
}

type artefacts map[[32]byte][]string

func (a artefacts) Rule(digest [32]byte, rule string) (exists, found bool) {
	rules, found := a[digest]
	for _, r := range rules {
		exists = exists || r == rule
	}
	return exists, found
}

func auditOf(t *testing.T, lane Lane, a Artefacts) []*snapshot.Outcome {
	t.Helper()
	plan := quiet()
	plan.Audit, plan.Repeats, plan.Artefacts = 5, 3, a
	return phase(collect(t, Run(t.Context(), rows(40, 1, "s"), []Lane{lane}, plan)), lane.Name, snapshot.PhaseAudit)
}

func TestAuditAsksAgainAndExplains(t *testing.T) {
	got := auditOf(t, Lane{"b", &local{rule: "r1", file: "r.yaml"}}, nil)
	if len(got) != 15 {
		t.Fatalf("%d audit outcomes for 5 requests asked 3 times", len(got))
	}
	for i, o := range got {
		if o.Repeat != int32(i%3) {
			t.Errorf("outcome %d is repeat %d", i, o.Repeat)
		}
		if first := i%3 == 0; o.Identified.Set != first || o.Explained.Set != first || o.Complete.Set != first {
			t.Errorf("outcome %d: findings stand on the first repeat only", i)
		}
	}
	o := got[0]
	if !o.Identified.V || !o.Explained.V || o.Complete.V || len(o.Missing) != 1 || o.Missing[0] != "metrics.gone" {
		t.Errorf("findings %+v %+v %+v %v", o.Identified, o.Explained, o.Complete, o.Missing)
	}
}

func TestExplanationMustResolve(t *testing.T) {
	for name, l := range map[string]decision.Backend{
		"another rule": &local{rule: "r2", file: "r.yaml"},
		"no place":     &local{rule: "r1"},
		"none at all":  &fake{},
	} {
		if got := auditOf(t, Lane{"b", l}, nil)[0]; got.Explained.V {
			t.Errorf("%s counts as explained", name)
		}
	}
}

func TestRecordIsResolvedThroughItsArtefact(t *testing.T) {
	for name, tc := range map[string]struct {
		a                     Artefacts
		identified, explained bool
	}{
		"no artefacts":  {nil, false, false},
		"other digest":  {artefacts{{8}: {"r1"}}, false, false},
		"rule is gone":  {artefacts{{9}: {"r2"}}, true, false},
		"rule is there": {artefacts{{9}: {"r2", "r1"}}, true, true},
	} {
		got := auditOf(t, Lane{"recorded", nil}, tc.a)
		if len(got) != 5 {
			t.Fatalf("%d outcomes: a record is not executed again", len(got))
		}
		if o := got[0]; o.Identified.V != tc.identified || o.Explained.V != tc.explained || !o.Complete.V {
			t.Errorf("%s: %v %v %v", name, o.Identified.V, o.Explained.V, o.Complete.V)
		}
	}
}

func TestRedactionMakesIncomplete(t *testing.T) {
	s := &snapshot.Snapshot{Redacted: []string{"path:hash"}}
	schema, _ := decision.NewSchema(decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "method", Type: decision.String})
	s.Attrs.Schema = schema
	if got := missingAttributes([]string{"method", "path"}, s); len(got) != 1 || got[0] != "path" {
		t.Errorf("missing %v", got)
	}
	s.Input, s.InputLen = []byte("abc"), decision.Some(int64(9))
	if got := damaged(s); len(got) != 2 {
		t.Errorf("damaged %v", got)
	}
}

// A body with a mark in it is not what production saw, in however many places; one that
// redaction made shorter, and one that was not kept at all, are missing as well.
func TestRedactedBodyMakesIncomplete(t *testing.T) {
	schema, _ := decision.NewSchema(decision.Field{Name: "path", Type: decision.String})
	body := []byte(`{"a":"[redacted:jwt]"}`)
	for _, c := range []struct {
		input    []byte
		redacted []string
		missing  string
	}{
		{body, []string{"input:/a:jwt", "input:/b:card", "input:and 3 more"}, "[input]"}, {nil, []string{"input:unparsable"}, "[input]"}, {nil, nil, "[input]"},
		{body, []string{"output:/a:jwt"}, "[]"}, {body, nil, "[]"}, {body[:5], []string{"input:truncated"}, "[input]"}, {body[:5], nil, "[input]"},
	} {
		s := &snapshot.Snapshot{Input: c.input, InputLen: decision.Some(int64(len(body))), Redacted: c.redacted, Attrs: decision.Attrs{Schema: schema}}
		if got := missingAttributes([]string{"path", decision.BodyAttribute}, s); fmt.Sprint(got) != c.missing {
			t.Errorf("%q %q: missing %v", c.input, c.redacted, got)
		}
		if got := missingAttributes([]string{"path"}, s); len(got) != 0 {
			t.Errorf("a backend that reads no body misses %v", got)
		}
		if got := damaged(s); len(got) > 1 || c.input != nil && c.missing == "[input]" && len(got) != 1 {
			t.Errorf("damaged %v", got)
		}
	}
}

// Each request must be as likely as any other to be in the sample.
func TestSampleIsUniform(t *testing.T) {
	const n, size, runs = 40, 10, 4000
	var hits [n]float64
	for seed := range uint64(runs) {
		s := newSample(&Plan{Audit: size, Seed: seed})
		for i := range n {
			q := &request{}
			q.req.Scenario, q.req.Seed = "s", uint64(i)
			s.offer(q)
		}
		for _, q := range s.strat["s"].kept {
			hits[q.req.Seed]++
		}
	}
	p := float64(size) / n
	sd := math.Sqrt(runs * p * (1 - p))
	for i, h := range hits {
		if z := (h - runs*p) / sd; math.Abs(z) > 4.5 {
			t.Errorf("request %d was drawn %v times of %v expected (z = %.1f)", i, h, runs*p, z)
		}
	}
}
