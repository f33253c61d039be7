package arrowfile

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// ruleBook is a rules file whose rules each choose an action of their own.
func ruleBook(t *testing.T, n int) *rules.Engine {
	t.Helper()
	text := "version: 7\nscenarios: [edge]\nattributes:\n  n: int\nrules:\n"
	for i := range n {
		text += fmt.Sprintf("  - id: rule-%d\n    conditions: [{field: n, operator: eq, value: %d}]\n    action: act-%d\n", i, i, i)
	}
	e, err := rules.Compile("book.yaml", []byte(text+"fallback: none\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// decided is the row of an engine's answer.
func decided(t *testing.T, b decision.Backend, n int) *snapshot.Snapshot {
	t.Helper()
	schema, err := decision.NewSchema(decision.Field{Name: "n", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	req := decision.Request{Scenario: "edge", Questions: []decision.Question{{Type: decision.QuestionAction}},
		Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{decision.IntValue(int64(n))}}}
	var out decision.Response
	if err := b.Decide(context.Background(), &req, &out); err != nil {
		t.Fatal(err)
	}
	s := plainRow("edge", out.Decisions[0].Action)
	s.Backend, s.RuleID, s.Reason, s.Artefact = b.Info().Name, out.Decisions[0].Reason.Rule, out.Decisions[0].Reason.Kind, out.Artefact
	s.QuestionType, s.Applied, s.PropensityKind = decision.QuestionAction, snapshot.AppliedYes, snapshot.PropensityDeterministic
	return s
}

// A backend that says beforehand what it may answer is recorded into one segment,
// whatever it answers when; one that does not, into several.
func TestASeededRecordingIsOneSegment(t *testing.T) {
	engine := ruleBook(t, 6)
	record := func(seed map[string][]string) int {
		w := startWriting(t, Options{Seed: seed})
		for i := range 8 { // the last two meet the fallback
			w.append(decided(t, engine, i))
			if err := w.Flush(snapshot.Ledger{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(snapshot.Ledger{}, totalOf(8)); err != nil {
			t.Fatal(err)
		}
		rows := readDir(t, w.dir)
		if len(rows) != 8 || rows[3].RuleID != "rule-3" || rows[7].Action != "none" {
			t.Fatalf("%d rows: %+v", len(rows), rows)
		}
		paths := segments(t, w.dir)
		if last := paths[len(paths)-1]; hasDict(t, last, "rule_id") != (seed != nil) {
			t.Errorf("%d segments: the last has the dictionary: %v", len(paths), seed == nil)
		}
		return len(paths)
	}
	if n := record(nil); n < 3 {
		t.Errorf("%d segments without a seed: the test shows nothing", n)
	}
	if n := record(SeedOf(nil, engine)); n != 1 {
		t.Errorf("%d segments with the backend's own labels", n)
	}
}

// A new segment starts with the labels of the one before: what forced it forces no
// further one.
func TestDictionariesAreSeededFromTheSegmentBefore(t *testing.T) {
	w := startWriting(t, Options{})
	flush := func(actions ...string) {
		for _, a := range actions {
			w.append(plainRow("s", a))
		}
		if err := w.Flush(snapshot.Ledger{}); err != nil {
			t.Fatal(err)
		}
	}
	flush("a", "b")
	flush("b", "c") // the second segment
	for range 5 {
		flush("a")
		flush("c", "b", "a")
	}
	if n := len(w.forced); n != 1 {
		t.Errorf("%d columns forced a segment: %v", n, w.forced)
	}
	w.done()
	if n := len(segments(t, w.dir)); n != 2 {
		t.Errorf("%d segments, want 2", n)
	}
	for _, path := range segments(t, w.dir) {
		if !hasDict(t, path, "action") {
			t.Errorf("%s: the column gave up its dictionary", path)
		}
	}
}

func TestSeedOf(t *testing.T) {
	engine := ruleBook(t, 3)
	seed := SeedOf(map[string][]string{"backend": {"incumbent"}}, engine)
	for column, want := range map[string][]string{
		"action": {"act-0", "act-1", "act-2", "none"}, "rule_id": {"rule-0", "rule-1", "rule-2"}, "scenario": {"edge"},
		"strategy_version": {"7"}, "engine_version": {rules.EngineVersion}, "provider": {"local"},
		"backend": {"rules", "incumbent"}, "question_type": {"action", "choice", "noul", "score"},
	} {
		if !slices.Equal(seed[column], want) {
			t.Errorf("%s: %q, want %q", column, seed[column], want)
		}
	}
	if l := SeedOf(nil, ruleBook(t, maxSeed+1))["rule_id"]; l != nil {
		t.Errorf("%d rules are seeded", len(l))
	}
}
