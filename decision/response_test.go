package decision

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNamesRoundTrip(t *testing.T) {
	for s := StatusNone; s <= NotReplayable; s++ {
		if got, err := ParseStatus(s.String()); err != nil || got != s {
			t.Errorf("%v reads as %v, %v", s, got, err)
		}
	}
	for r := ReasonNone; r <= ReasonTimeout; r++ {
		if got, err := ParseReason(r.String()); err != nil || got != r {
			t.Errorf("%v reads as %v, %v", r, got, err)
		}
	}
	if _, err := ParseStatus("OK"); err == nil || err.Error() != `unknown status "OK"` {
		t.Errorf("%v", err)
	}
	if _, err := ParseReason(""); err == nil {
		t.Error("the empty reason was read")
	}
	if Status(99).String() != "invalid(99)" || ReasonKind(99).String() != "invalid(99)" {
		t.Errorf("%v %v", Status(99), ReasonKind(99))
	}
}

func TestAnswered(t *testing.T) {
	for s := StatusNone; s <= NotReplayable; s++ {
		if got, want := s.Answered(), s == OK || s == Denied || s == Abstain; got != want {
			t.Errorf("%v answered: %v", s, got)
		}
	}
}

// filled is a response in which everything is set.
func filled(n int) *Response {
	r := &Response{Artefact: Artefact{EngineVersion: "e", HTTPStatus: 200}, Usage: Usage{CPU: Some(time.Second)}, Cost: Some[int64](3), Attempts: 2, Stages: Stages{Model: Some(time.Second)}}
	for range n {
		r.Decisions = append(r.Decisions, Decision{Status: OK, Action: "a", Params: "{}", Confidence: Some(1.0), ConfidenceDef: "peak", Reason: Reason{ReasonMatch, "r", 2},
			Candidates: []Candidate{{Action: "a"}, {Action: "b"}}, ErrorCode: "x", Error: "y"})
	}
	return r
}

func TestResetEmptiesAndKeepsMemory(t *testing.T) {
	r := filled(2)
	r.Reset(3)
	if len(r.Decisions) != 3 {
		t.Fatalf("%d decisions", len(r.Decisions))
	}
	for i, d := range r.Decisions {
		if len(d.Candidates) != 0 {
			t.Errorf("decision %d keeps %v", i, d.Candidates)
		}
		if i < 2 && cap(d.Candidates) != 2 {
			t.Errorf("decision %d lost its memory", i)
		}
		d.Candidates = nil
		if !reflect.DeepEqual(d, Decision{}) {
			t.Errorf("decision %d keeps %+v", i, d)
		}
	}
	r.Decisions = nil
	if !reflect.DeepEqual(*r, Response{}) {
		t.Errorf("the response keeps %+v", r)
	}
	r = filled(3)
	if n := testing.AllocsPerRun(100, func() { r.Reset(1); r.Reset(3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFail(t *testing.T) {
	for _, s := range []Status{Timeout, Error, NotReplayable} {
		r := filled(2)
		r.FailAll(s, "code", "text")
		want := Decision{Status: s, ErrorCode: "code", Error: "text", Reason: Reason{Kind: ReasonError}, Candidates: []Candidate{}}
		if s == Timeout {
			want.Reason.Kind = ReasonTimeout
		}
		for _, d := range r.Decisions {
			if !reflect.DeepEqual(d, want) {
				t.Errorf("%v: %+v", s, d)
			}
		}
	}
}

func TestCheckRefusesWhatTheRequestDidNotAllow(t *testing.T) {
	req := &Request{Questions: []Question{{Candidates: []string{"allow", "block"}}}}
	for _, tc := range []struct {
		name   string
		d      Decision
		code   string
		status Status
	}{
		{"ok", Decision{Status: OK, Action: "block"}, "", OK},
		{"denied with an action", Decision{Status: Denied, Action: "block"}, "", Denied},
		{"denied without", Decision{Status: Denied}, "", Denied},
		{"abstain", Decision{Status: Abstain}, "", Abstain},
		{"timeout", Decision{Status: Timeout, ErrorCode: "late"}, "late", Timeout},
		{"not among the candidates", Decision{Status: OK, Action: "Block"}, CodeActionNotAllowed, Error},
		{"denied with another action", Decision{Status: Denied, Action: "x"}, CodeActionNotAllowed, Error},
		{"no status", Decision{Action: "block"}, CodeBadResponse, Error},
		{"unknown status", Decision{Status: 9, Action: "block"}, CodeBadResponse, Error},
		{"ok without an action", Decision{Status: OK}, CodeBadResponse, Error},
		{"abstain with an action", Decision{Status: Abstain, Action: "block"}, CodeBadResponse, Error},
	} {
		r := Response{Decisions: []Decision{tc.d}}
		r.Decisions[0].Confidence = Some(0.5)
		r.Check(req)
		d := r.Decisions[0]
		if d.Status != tc.status || d.ErrorCode != tc.code {
			t.Errorf("%s: %v %q %s", tc.name, d.Status, d.ErrorCode, d.Error)
		}
		if tc.code == CodeActionNotAllowed && (d.Action != "" || d.Confidence.Set || !strings.Contains(d.Error, `is not among the candidates ["allow" "block"]`)) {
			t.Errorf("%s: %+v", tc.name, d)
		}
	}
}

func TestCheckCountsDecisions(t *testing.T) {
	for n := range 4 {
		r := filled(n)
		r.Check(&Request{Questions: make([]Question, 2)})
		if len(r.Decisions) != 2 || (n != 2) != (r.Decisions[0].ErrorCode == CodeBadResponse && r.Decisions[1].ErrorCode == CodeBadResponse) {
			t.Errorf("%d decisions for 2 questions: %+v", n, r.Decisions)
		}
	}
}

func TestQuestionAllows(t *testing.T) {
	q := Question{Candidates: []string{"a"}}
	if !q.Allows("a") || q.Allows("b") || q.Allows("") || !(&Question{}).Allows("anything") {
		t.Error("a question without candidates allows any action, one with candidates only those")
	}
}

func TestOpt(t *testing.T) {
	if Some(0).Or(7) != 0 || (Opt[int]{}).Or(7) != 7 {
		t.Error("zero and absent are not the same")
	}
}

func TestPosition(t *testing.T) {
	for want, p := range map[string]Position{"f:1:2": {"f", 1, 2}, "f:1": {"f", 1, 0}, "f": {"f", 0, 3}, "": {}} {
		if p.String() != want {
			t.Errorf("%+v prints as %q", p, p.String())
		}
	}
}
