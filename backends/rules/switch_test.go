package rules

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
)

func decideOne(t testing.TB, e *Engine, req *decision.Request) (decision.Decision, string) {
	t.Helper()
	var out decision.Response
	if err := e.Decide(context.Background(), req, &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0], out.Artefact.StrategyVersion
}

func TestDisable(t *testing.T) {
	e := compile(t, edge)
	req := requests(t)[0]
	check := func(action, version string, off ...string) {
		t.Helper()
		d, v := decideOne(t, e, req)
		if d.Action != action || v != version || !slices.Equal(e.Disabled(), off) || e.Info().Artefact.StrategyVersion != version {
			t.Errorf("%s under %q (%q), off: %q", d.Action, v, e.Info().Artefact.StrategyVersion, e.Disabled())
		}
	}
	check("block", "1.10")
	if err := e.Disable("shed", "block-scrapers", "nobody"); !errors.Is(err, ErrNoRule) {
		t.Errorf("%v", err)
	}
	check("origin", "1.10 without block-scrapers,shed", "block-scrapers", "shed")
	if x, err := e.Explain(context.Background(), req); err != nil || x.Reason.Rule != "" {
		t.Errorf("%+v, %v", x, err)
	}
	if err := e.Disable(ParseDisabled("# all of it\n\n *  \n")...); err != nil {
		t.Error(err)
	}
	check("origin", "1.10 without *", "*")
	if err := e.Disable(); err != nil {
		t.Error(err)
	}
	check("block", "1.10")
}

func TestDisableWhileDeciding(t *testing.T) {
	e, req := compile(t, edge), requests(t)[0]
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				d, v := decideOne(t, e, req)
				if (d.Action == "block") != (v == "1.10") {
					t.Errorf("%s under %s", d.Action, v)
					return
				}
			}
		})
	}
	for range 200 {
		_ = e.Disable("block-scrapers")
		_ = e.Disable()
	}
	wg.Wait()
}

const dated = `version: 1
rules:
  - id: freeze
    active: {from: "2026-12-20T00:00:00+01:00", until: 2027-01-02T00:00:00Z}
    conditions: [{field: path, operator: prefix, value: /deploy}]
    action: deny
  - id: off
    enabled: false
    conditions: []
    action: never
  - id: mark
    terminal: false
    conditions: [{field: headers.user-agent, operator: contains, value: curl}]
    tags: [tool, "a\"b"]
  - id: mark-too
    terminal: false
    conditions: [{field: headers.user-agent, operator: contains, value: curl}]
    tags: [tool, script]
  - id: busy
    conditions:
      - {compute: metrics.errors / metrics.requests, operator: gt, value: 0.5}
    action: {type: shed, after: 1, zone: b}
fallback: allow
tests:
  - name: the freeze begins in local time
    at: 2026-12-19T23:00:00Z
    given: {path: /deploy/x}
    expect: {action: deny, rule: freeze, reason: match}
  - name: and ends before until
    at: "2027-01-02T00:00:00Z"
    given: {path: /deploy/x}
    expect: allow
  - name: tags go with the answer of the rule that decides
    given: {headers: {user-agent: curl/8}, metrics.errors: 3, metrics: {requests: 4}}
    at: 2026-01-01T00:00:00Z
    expect: {action: shed, tags: [tool, "a\"b", script], params: {after: 1.0, zone: b, tags: [tool, 'a"b', script]}}
  - name: what is missing is skipped
    given: {headers: {user-agent: x}, metrics.errors: 3}
    at: 2026-01-01T00:00:00Z
    expect: {status: ok, reason: fallback, skipped: [busy], tags: []}
`

func TestFileTestsPass(t *testing.T) {
	r, err := Test("dated.yaml", []byte(dated))
	if err != nil {
		t.Fatal(err)
	}
	if r.Passed != 4 || len(r.Failed) > 0 || !slices.Equal(r.Untested, []string{"off"}) {
		t.Errorf("%+v\n%v", r, r.Failed)
	}
}

func TestADateNeedsAClock(t *testing.T) {
	e := compile(t, dated)
	req := request(t, map[string]any{"path": "/deploy", "headers.user-agent": "x", "metrics.errors": 1.0, "metrics.requests": 9.0})
	if d, _ := decideOne(t, e, req); d.Action != "allow" || d.Reason.Skipped != 1 {
		t.Errorf("%+v", d)
	}
	x, err := e.Explain(context.Background(), req)
	if err != nil || len(x.Skipped) != 1 || x.Skipped[0].Cause != "the rule is dated and the request has no clock" {
		t.Errorf("%+v, %v", x, err)
	}
	req.Now = time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
	if d, _ := decideOne(t, e, req); d.Action != "deny" {
		t.Errorf("%+v", d)
	}
}

func TestFileTestsFail(t *testing.T) {
	const text = `version: 1
rules:
  - id: a
    conditions: [{field: path, operator: eq, value: /a}]
    action: {type: cut, ttl_seconds: 5}
  - id: b
    conditions: [{field: method, operator: eq, value: GET}]
    action: pass
tests:
  - {given: {path: /a}, expect: {action: pass}}
  - {given: {path: /b}, expect: {rule: a}}
  - {given: {path: /a}, expect: {params: {ttl_seconds: 6}}}
  - {given: {path: /b}, expect: {skipped: []}}
  - {given: {path: /b, method: PUT}, expect: {status: abstain, skipped: []}}
`
	r, err := Test("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := `# 10:5 error: test 1: want action "pass", got "cut" (rule a decides)
# 11:5 error: test 2: want rule "a", got "" (no rule matches)
# 12:5 error: test 3: want params {"ttl_seconds":6}, got {"ttl_seconds":5}
# 13:5 error: test 4: want skipped [], got [b]
`
	if got := findings(r.Failed); got != want || r.Passed != 1 || !slices.Equal(r.Untested, []string{"b"}) {
		t.Errorf("%d passed, untested %v\n%s", r.Passed, r.Untested, got)
	}
	if _, err := Test("t.yaml", []byte("rules: 1")); err == nil {
		t.Error("no error for a broken file")
	}
}

func TestFollow(t *testing.T) {
	e, req := compile(t, edge), requests(t)[0]
	path := filepath.Join(t.TempDir(), "off")
	errs := make(chan error, 10)
	if err := e.Follow(path, time.Millisecond, func(err error) { errs <- err }); err != nil {
		t.Fatal(err)
	}
	if err := e.Follow(path, time.Millisecond, nil); err == nil {
		t.Error("followed twice")
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	await := func(action string) {
		t.Helper()
		for range 5000 {
			if d, _ := decideOne(t, e, req); d.Action == action {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("never %s", action)
	}
	await("block")
	write("block-scrapers\nnobody\n")
	await("origin")
	if err := <-errs; !errors.Is(err, ErrNoRule) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await("block")
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	write("*\n")
	time.Sleep(5 * time.Millisecond)
	if d, _ := decideOne(t, e, req); d.Action != "block" {
		t.Errorf("%s after Close", d.Action)
	}
	if err := compile(t, edge).Follow(t.TempDir(), time.Hour, nil); err == nil {
		t.Error("a directory is no file")
	}
}
