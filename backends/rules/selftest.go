package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
)

// test is one entry of a file's tests.
type test struct {
	name  string
	pos   decision.Position
	at    time.Time
	given map[string]decision.Value
	want  expectation
}

// expectation holds what a test demands; what it does not name it does not check.
type expectation struct {
	texts map[string]string // action, rule, status, reason
	lists map[string][]string
	// params is compared as JSON; nil is unchecked.
	params any
}

// tests reads the file's tests. They come after the rules, so that every name is known.
func (r *reader) tests(nodes []*document.Node) {
	for i, n := range nodes {
		m := n.Map("name", "given", "at", "expect")
		if !n.IsMap() {
			continue
		}
		t := test{name: fmt.Sprintf("test %d", i+1), pos: n.Pos(), given: map[string]decision.Value{}}
		if name := m.Get("name"); name != nil {
			t.name, _ = name.Text()
		}
		if at := m.Get("at"); at != nil {
			t.at = r.instant(at)
		}
		if g := m.Get("given"); g != nil {
			r.given(g, "", t.given)
		}
		if e := m.Need("expect"); e != nil {
			t.want = r.expectation(e)
		}
		r.out.tests = append(r.out.tests, t)
	}
}

// given reads attributes, by dotted names or as maps in maps.
func (r *reader) given(n *document.Node, prefix string, into map[string]decision.Value) {
	for _, e := range n.Map().Entries() {
		name := prefix + e.Key
		if e.Value.IsMap() {
			r.given(e.Value, name+".", into)
			continue
		}
		v, ok := e.Value.Value()
		if !ok {
			continue
		}
		canonical, typ, known := r.out.scope.Lookup(name)
		if !known {
			_, err := r.out.scope.Use(name) // an unknown name gets no slot
			n.File().Errorf(e.KeyPos, expr.HintOf(err), "%v", err)
			continue
		}
		if typ != decision.Null {
			if v, ok = v.Convert(typ); !ok {
				e.Value.Errorf("give a value of this type", "%s is %v", canonical, typ)
				continue
			}
		}
		into[canonical] = v
	}
}

func (r *reader) expectation(n *document.Node) expectation {
	x := expectation{texts: map[string]string{}, lists: map[string][]string{}}
	if n.IsScalar() {
		x.texts["action"], _ = n.Text()
		return x
	}
	for _, e := range n.Map("action", "rule", "status", "reason", "params", "tags", "skipped").Entries() {
		switch e.Key {
		case "params":
			x.params = e.Value.JSON()
		case "tags", "skipped":
			x.lists[e.Key] = e.Value.Texts()
		default:
			x.texts[e.Key], _ = e.Value.Text()
		}
	}
	r.knownRules(n, x)
	return x
}

// knownRules refuses an expectation that could never hold.
func (r *reader) knownRules(n *document.Node, x expectation) {
	var ids []string
	for _, rule := range r.out.rules {
		ids = append(ids, rule.id)
	}
	for _, id := range append(slices.Clone(x.lists["skipped"]), x.texts["rule"]) {
		if id != "" && !slices.Contains(ids, id) {
			n.Errorf(expr.Suggest(id, ids), "no rule has the id %q", document.Short(id))
		}
	}
	if s := x.texts["status"]; s != "" {
		if _, err := decision.ParseStatus(s); err != nil {
			n.Errorf("ok or abstain", "%v", err)
		}
	}
	if s := x.texts["reason"]; s != "" {
		if _, err := decision.ParseReason(s); err != nil {
			n.Errorf("match or fallback", "%v", err)
		}
	}
}

// Report is the outcome of a file's own tests.
type Report struct {
	Passed int
	// Failed has one problem a failed test, at the test.
	Failed document.Problems
	// Untested lists the rules that decided or marked in no test, in file order.
	Untested []string
}

// Test runs the tests that stand in a rules file. The error is a document.Problems when
// the file itself is wrong.
func Test(name string, data []byte) (*Report, error) {
	e, err := Compile(name, data, nil)
	if err != nil {
		return nil, err
	}
	report, used := &Report{}, map[string]bool{}
	for i := range e.file.tests {
		t := &e.file.tests[i]
		if failure := e.run(t, used); failure != "" {
			report.Failed = append(report.Failed, &document.Problem{Pos: t.pos, Message: t.name + ": " + failure})
			continue
		}
		report.Passed++
	}
	for _, r := range e.file.rules {
		if !used[r.id] {
			report.Untested = append(report.Untested, r.id)
		}
	}
	return report, nil
}

// run returns what is wrong, or "", and notes the rules that took part.
func (e *Engine) run(t *test, used map[string]bool) string {
	in := e.file.input(t.given, t.at)
	p := e.program.Load()
	v := e.evaluate(p, &in)
	for _, r := range append(slices.Clone(v.tagged), v.rule) {
		if r != nil {
			used[r.id] = true
		}
	}
	var d decision.Decision
	v.fill(&d)
	got := map[string]string{"action": d.Action, "rule": d.Reason.Rule, "status": d.Status.String(), "reason": d.Reason.Kind.String()}
	for _, key := range []string{"status", "action", "rule", "reason"} {
		if want, ok := t.want.texts[key]; ok && want != got[key] {
			return fmt.Sprintf("want %s %q, got %q (%s)", key, want, got[key], v.why())
		}
	}
	lists := map[string][]string{"tags": v.tags(), "skipped": skippedBy(p, &v, &in)}
	for _, key := range []string{"tags", "skipped"} {
		if want, ok := t.want.lists[key]; ok && !slices.Equal(want, lists[key]) {
			return fmt.Sprintf("want %s [%s], got [%s]", key, strings.Join(want, ", "), strings.Join(lists[key], ", "))
		}
	}
	return t.want.paramsDiffer(d.Params)
}

func skippedBy(p *program, v *verdict, in *input) []string {
	var out []string
	for _, r := range p.rules {
		if r == v.rule {
			break
		}
		if s, ok := r.skipped(in); ok {
			out = append(out, s.Rule)
		}
	}
	return out
}

// why names what decided, for the text of a failure.
func (v *verdict) why() string {
	switch {
	case v.rule != nil:
		return "rule " + v.rule.id + " decides"
	case v.action != nil:
		return "no rule matches, the file's fallback answers"
	}
	return "no rule matches"
}

// paramsDiffer compares parameters as JSON, in which 1 and 1.0 are the same.
func (x *expectation) paramsDiffer(got string) string {
	if x.params == nil {
		return ""
	}
	want, err := json.Marshal(x.params)
	if err != nil {
		return err.Error()
	}
	var a, b any
	if got == "" {
		got = "{}"
	}
	if json.Unmarshal(want, &a) == nil && json.Unmarshal([]byte(got), &b) == nil && reflect.DeepEqual(a, b) {
		return ""
	}
	return fmt.Sprintf("want params %s, got %s", want, got)
}
