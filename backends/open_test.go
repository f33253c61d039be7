package backends_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/decision/backendtest"
)

// constant answers with the action that its file holds; a second line lists scenarios.
type constant struct {
	action    string
	scenarios []string
	digest    [32]byte
	hard      bool
	warmed    []*decision.Request
	closed    int
	ready     error
}

func (c *constant) Info() decision.Info {
	i := decision.Info{Name: "file name", Kind: "engine", Scenarios: c.scenarios, Attributes: []string{"path", c.action},
		Artefact:     decision.Artefact{EngineVersion: "e1", StrategyVersion: c.action, StrategyDigest: c.digest},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked}}
	if c.hard {
		i.Capabilities.Timeout = decision.TimeoutHard
	}
	return i
}

func (c *constant) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = c.Info().Artefact
	for i := range out.Decisions {
		out.Decisions[i].Status, out.Decisions[i].Action = decision.OK, c.action
		out.Decisions[i].Reason = decision.Reason{Kind: decision.ReasonMatch, Rule: "always"}
	}
	return nil
}

func (c *constant) Warm(_ context.Context, reqs []*decision.Request) error {
	c.warmed = append(c.warmed, reqs...)
	return nil
}

func (c *constant) Ready(context.Context) error { return c.ready }

func (c *constant) Close(context.Context) error { c.closed++; return nil }

// Labels of a constant: one action, and doubles across engines are the caller's matter.
func (c *constant) Labels() decision.Labels {
	return decision.Labels{Actions: []string{c.action}, Rules: []string{"always"}, Artefacts: []decision.Artefact{c.Info().Artefact}}
}

// explained is a constant that can say why.
type explained struct{ *constant }

func (explained) Explain(context.Context, *decision.Request) (*decision.Explanation, error) {
	return &decision.Explanation{Reason: decision.Reason{Kind: decision.ReasonMatch, Rule: "always"}}, nil
}

var errBadFile = errors.New("edge.txt:1:1: bad file")

// kinds has an explained engine for files and a plain one for targets.
func kinds(made *[]*constant) map[string]backends.Kind {
	open := func(_ context.Context, src backends.Source) (decision.Backend, error) {
		if string(src.Data) == "bad" {
			return nil, errBadFile
		}
		lines := strings.Split(string(src.Data), "\n")
		c := &constant{action: lines[0], digest: sha256.Sum256(src.Data)}
		if len(lines) > 1 {
			c.scenarios = strings.Fields(lines[1])
		}
		if made != nil {
			*made = append(*made, c)
		}
		if src.Path == "" {
			c.action, c.hard = src.Target, true
			return c, nil
		}
		return explained{c}, nil
	}
	return map[string]backends.Kind{"rules": {File: "rules.txt", Options: []string{"limit"}, Open: open}, "remote": {Open: open}}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, text string, made *[]*constant) decision.Backend {
	t.Helper()
	b, err := tryOpen(text, made)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func tryOpen(text string, made *[]*constant) (decision.Backend, error) {
	spec, err := backends.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	return backends.Open(context.Background(), spec, kinds(made), nil)
}

func request(scenario string) *decision.Request {
	return &decision.Request{ID: decision.NewID(time.Unix(1e9, 0)), Scenario: scenario, Questions: []decision.Question{{Type: decision.QuestionAction}}}
}

func decide(t *testing.T, b decision.Backend, scenario string) decision.Decision {
	t.Helper()
	var out decision.Response
	if err := b.Decide(context.Background(), request(scenario), &out); err != nil {
		t.Fatal(err)
	}
	return out.Decisions[0]
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"any.txt": "allow", "some.txt": "block\nfraud edge"})
	b := open(t, "mine=rules:"+filepath.Join(dir, "any.txt"), nil)
	if i := b.Info(); i.Name != "mine" || i.Kind != "rules" || i.Artefact.StrategyDigest != sha256.Sum256([]byte("allow")) {
		t.Errorf("info %+v", i)
	}
	if d := decide(t, b, "anything"); d.Action != "allow" {
		t.Errorf("decision %+v", d)
	}

	b = open(t, "rules:"+filepath.Join(dir, "some.txt")+"?limit=3", nil)
	if d := decide(t, b, "fraud"); d.Action != "block" {
		t.Errorf("declared scenario: %+v", d)
	}
	d := decide(t, b, "other")
	if d.Status != decision.NotReplayable || d.ErrorCode != backends.CodeNoStrategy {
		t.Errorf("scenario that the file does not declare: %+v", d)
	}
}

func TestOpenDirectoryRoutesByScenario(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"fraud/rules.txt": "block\nfraud", "edge/rules.txt": "cache", "empty/other.txt": "x", "README": "x"})
	var made []*constant
	b := open(t, "rules:"+dir, &made)
	for scenario, want := range map[string]string{"fraud": "block", "edge": "cache", "empty": "", "README": "", "": ""} {
		if d := decide(t, b, scenario); d.Action != want || (want == "") != (d.ErrorCode == backends.CodeNoStrategy) {
			t.Errorf("%q: %+v", scenario, d)
		}
	}
	info := b.Info()
	if got := strings.Join(info.Scenarios, " "); got != "edge fraud" {
		t.Errorf("scenarios %q", got)
	}
	if got := strings.Join(info.Attributes, " "); got != "block cache path" {
		t.Errorf("attributes %q", got)
	}
	edge, fraud := sha256.Sum256([]byte("cache")), sha256.Sum256([]byte("block\nfraud"))
	want := sha256.Sum256([]byte("4:edge" + string(edge[:]) + "5:fraud" + string(fraud[:])))
	if info.Artefact.StrategyDigest != want || info.Artefact.StrategyVersion != "" || info.Artefact.EngineVersion != "e1" {
		t.Errorf("artefact %+v", info.Artefact)
	}
	warmAndClose(t, b, made)
}

func warmAndClose(t *testing.T, b decision.Backend, made []*constant) {
	t.Helper()
	if err := b.(decision.Warmer).Warm(context.Background(), []*decision.Request{request("fraud"), request("none")}); err != nil {
		t.Fatal(err)
	}
	if n := len(made[0].warmed) + len(made[1].warmed); n != 1 {
		t.Errorf("%d warm requests, want the one of a known scenario", n)
	}
	if err := b.(decision.Readier).Ready(context.Background()); err != nil {
		t.Error(err)
	}
	made[1].ready = errors.New("down")
	if err := b.(decision.Readier).Ready(context.Background()); !errors.Is(err, made[1].ready) {
		t.Errorf("ready: %v", err)
	}
	if err := b.Close(context.Background()); err != nil || made[0].closed != 1 || made[1].closed != 1 {
		t.Errorf("close: %v, %d, %d", err, made[0].closed, made[1].closed)
	}
}

func TestExplainIsThereWhenTheEnginesHaveIt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"fraud/rules.txt": "block"})
	ex, ok := open(t, "rules:"+dir, nil).(decision.Explainer)
	if !ok {
		t.Fatal("the engines explain, the router does not")
	}
	why, err := ex.Explain(context.Background(), request("fraud"))
	if err != nil || why.Reason.Rule != "always" {
		t.Errorf("%+v, %v", why, err)
	}
	why, err = ex.Explain(context.Background(), request("other"))
	if err != nil || !strings.Contains(why.Text, `"other"`) {
		t.Errorf("%+v, %v", why, err)
	}
	if _, ok := open(t, "remote:there", nil).(decision.Explainer); ok {
		t.Error("the engine does not explain, the router does")
	}
}

func TestRouterGathersLabels(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"fraud/rules.txt": "block", "edge/rules.txt": "allow"})
	l := open(t, "rules:"+dir, nil).(decision.Labeller).Labels()
	if !slices.Equal(l.Actions, []string{"allow", "block"}) || len(l.Rules) != 2 || len(l.Artefacts) != 2 {
		t.Errorf("%+v", l)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"bad.txt": "bad", "two/fraud/rules.txt": "bad", "two/edge/rules.txt": "bad", "two/good/rules.txt": "ok",
		"wrong/fraud/rules.txt": "block\nedge", "none/fraud/strategy.txt": "x",
	})
	for _, tc := range []struct {
		spec string
		is   error
		want string
	}{
		{"rules:" + dir + "/gone.txt", fs.ErrNotExist, "-b rules:" + dir + "/gone.txt"},
		{"v2=rules:" + dir + "/none", fs.ErrNotExist, filepath.Join(dir, "none", "<scenario>", "rules.txt")},
		{"rules:" + dir + "/bad.txt", errBadFile, "edge.txt:1:1: bad file"},
		{"rules:" + dir + "/two", errBadFile, "bad file\nedge.txt:1:1: bad file"},
		{"rules:" + dir + "/wrong", nil, "is for the scenarios edge and stands in the directory of fraud"},
		{"rule:x", backends.ErrSpec, `unknown kind "rule" (did you mean "rules"?); known kinds: remote, rules`},
		{"zzzzz", backends.ErrSpec, `unknown kind "zzzzz"; known kinds: remote, rules`},
		{"rules", backends.ErrSpec, "rules needs a file or a directory, as in rules:DIR or rules:DIR/rules.txt"},
		{"rules:/dev/null", nil, "not a regular file"},
		{"rules:" + dir + "/bad.txt?timeout=1s", backends.ErrSpec, `rules has no option "timeout"; it takes limit`},
	} {
		var made []*constant
		_, err := tryOpen(tc.spec, &made)
		if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: got %v, want %q", tc.spec, err, tc.want)
		}
		for _, c := range made {
			if c.closed != 1 {
				t.Errorf("%s: an engine was left open", tc.spec)
			}
		}
	}
}

func TestRouterKeepsTheContract(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"fraud/rules.txt": "block", "edge/rules.txt": "cache"})
	backendtest.Run(t, func(t *testing.T) decision.Backend { return open(t, "rules:"+dir, nil) },
		backendtest.Cases{Requests: []*decision.Request{request("fraud"), request("edge")}, File: true, Router: true})
	// A scenario without an engine keeps it too; it is not answered, and names no digest.
	backendtest.Run(t, func(t *testing.T) decision.Backend { return open(t, "rules:"+dir, nil) },
		backendtest.Cases{Requests: []*decision.Request{request("other")}, AllowError: true})
}

func TestRouterAllocatesNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"fraud/rules.txt": "block"})
	b := open(t, "rules:"+dir, nil)
	req, out := request("none"), new(decision.Response)
	if n := testing.AllocsPerRun(100, func() {
		if err := b.Decide(context.Background(), req, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a decision", n)
	}
}
