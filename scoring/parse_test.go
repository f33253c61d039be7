package scoring

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/internal/document"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func indented(t testing.TB, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func TestGoldenFiles(t *testing.T) {
	p, err := ParseProfile("profile.yaml", read(t, "profile.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := indented(t, p); got != string(read(t, "profile.json")) {
		t.Errorf("profile is\n%s", got)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	b, err := ParsePrices("prices.yaml", read(t, "prices.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := indented(t, b); got != string(read(t, "prices.json")) {
		t.Errorf("price book is\n%s", got)
	}
}

func TestSmallProfiles(t *testing.T) {
	for text, want := range map[string]string{
		"{}":             "default",
		"extends: waf":   "waf",
		"name: mine":     "mine",
		"extends: async": "async",
	} {
		p, err := ParseProfile("p.yaml", []byte(text))
		if err != nil || p.Name != want || p.Validate() != nil {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
	p, err := ParseProfile("p.yaml", []byte("tasks: {x: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	if task := p.Tasks["x"]; !math.IsNaN(float64(task.Baseline)) || !math.IsNaN(float64(task.Ceiling)) || task.Unanswered != nil {
		t.Errorf("an empty task is %+v", task)
	}
}

func TestProfileProblems(t *testing.T) {
	for _, tc := range []struct{ name, text, want, hint string }{
		{"unknown field", "weigths: {}", `p.yaml:1:1: unknown field "weigths"`, `did you mean "weights"?`},
		{"unknown preset", "extends: froud", `p.yaml:1:10: unknown preset "froud"`, `did you mean "fraud"?`},
		{"foreign preset", "extends: somethingelse", `unknown preset "somethingelse"`, "known presets: default, "},
		{"version", "version: 2", "p.yaml:1:10: version must be a whole number from 1 to 1", ""},
		{"weights", "weights: {accuracy: 0.5, latency: 0.5, cost: 0.5, auditability: 0.5}", "p.yaml:1:10: weights must sum to 1, they sum to 2", ""},
		{"a lone weight", "weights: {accuracy: 0.5}", `missing field "latency"`, ""},
		{"negative weight", "weights: {accuracy: -1, latency: 1, cost: 1, auditability: 0}", "weights.accuracy must be from 0 to 1, got -1", ""},
		{"duration", "latency: {good: 5}", `latency.good: "5" is not a duration above 0`, "write a number with a unit"},
		{"negative duration", "latency: {good: -5ms}", "is not a duration above 0", ""},
		{"anchors", "latency:\n  good: 2s", "p.yaml:2:3: latency.bad (1s) must be above latency.good (2s)", ""},
		{"cost anchors", "cost: {bad: 0.00001}", "cost.bad (1e-05) must be above cost.good (0.0001)", ""},
		{"free anchor", "cost: {good: 0}", "cost.good must be above 0, got 0", ""},
		{"floor", "floors: {attainment: 95}", "floors.attainment must be from 0 to 1, got 95", ""},
		{"scenario weights", "scenario_weights: {a: 0.7, b: 0.7}", "must not sum to more than 1, they sum to 1.4", ""},
		{"seed", "seed: -1", "seed must be a whole number", ""},
		{"utility above 1", "tasks: {x: {utility: {t: {a: 1.5}}}}", "tasks.x.utility.t.a must be from 0 to 1, got 1.5", ""},
		{"infinite utility", "tasks: {x: {utility: {t: {a: .inf}}}}", "tasks.x.utility.t.a must be a finite number", ""},
		{"stray action", "tasks: {x: {candidates: [allow, block], utility: {t: {alow: 1}}}}", `"alow" is not among the candidates`, `did you mean "allow"?`},
		{"candidate twice", "tasks: {x: {candidates: [a, a]}}", `candidate "a" is empty or stands twice`, ""},
		{"second document", "{}\n---\n{}", "a second document", ""},
		{"list", "[]", "the file must be a map", ""},
		{"empty", "", "file is empty", ""},
	} {
		_, err := ParseProfile("p.yaml", []byte(tc.text))
		checkProblem(t, tc.name, err, tc.want, tc.hint)
	}
}

func checkProblem(t *testing.T, name string, err error, want, hint string) {
	t.Helper()
	var ps document.Problems
	if !errors.As(err, &ps) {
		t.Errorf("%s: error is %v", name, err)
		return
	}
	if !strings.Contains(err.Error(), want) || !strings.Contains(ps.Hint(), hint) {
		t.Errorf("%s: error is %v, hint %q; want %s, %s", name, err, ps.Hint(), want, hint)
	}
}

func TestPriceProblems(t *testing.T) {
	entry := func(s string) string {
		return "currency: USD\nprices:\n  - {" + s + "}"
	}
	const good = "backend: x, unit: decision, price: 1, effective: 2026-01-01"
	if _, err := ParsePrices("b.yaml", []byte(entry(good))); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, text, want, hint string }{
		{"unit", entry(strings.Replace(good, "decision", "cpu-seconds", 1)), `b.yaml:3:24: unknown unit "cpu-seconds"`, `did you mean "cpu-second"?`},
		{"foreign unit", entry(strings.Replace(good, "decision", "fortnight", 1)), `unknown unit "fortnight"`, "units: decision, 1M-tokens-in"},
		{"negative", entry(strings.Replace(good, "price: 1", "price: -1", 1)), "prices[0].price must be from 0", ""},
		{"price as text", entry(strings.Replace(good, "price: 1", "price: '1'", 1)), "prices[0].price must be a finite number", ""},
		{"date", entry(strings.Replace(good, "2026-01-01", "01/02/2026", 1)), `prices[0].effective: "01/02/2026" is not a date`, "write it as"},
		{"no date", entry("backend: x, unit: decision, price: 1"), `missing field "effective"`, ""},
		{"no backend", entry("unit: decision, price: 1, effective: 2026-01-01"), `missing field "backend"`, ""},
		{"twice", entry(good) + "\n  - {" + good + "}", "a second price of x per decision", ""},
		{"no currency", "prices: []", `missing field "currency"`, ""},
		{"no prices", "currency: USD", `missing field "prices"`, ""},
		{"unknown field", entry(good + ", modle: x"), `unknown field "modle"`, `did you mean "model"?`},
	} {
		_, err := ParsePrices("b.yaml", []byte(tc.text))
		checkProblem(t, tc.name, err, tc.want, tc.hint)
	}
}

func TestPresets(t *testing.T) {
	for name, want := range map[string]Weights{
		"default": {0.40, 0.25, 0.15, 0.20}, "fraud": {0.50, 0.20, 0.10, 0.20}, "waf": {0.35, 0.35, 0.10, 0.20},
		"inline-guard": {0.35, 0.35, 0.10, 0.20}, "llm-router": {0.45, 0.20, 0.25, 0.10}, "agent-gate": {0.45, 0.20, 0.05, 0.30},
		"async": {0.40, 0.25, 0.15, 0.20},
	} {
		p := preset(t, name)
		if p.Weights != want || p.Name != name || p.Validate() != nil {
			t.Errorf("%s: %+v, %v", name, p, p.Validate())
		}
	}
	if len(PresetNames()) != 7 {
		t.Errorf("presets %v", PresetNames())
	}
	for _, tc := range [][2]string{{"defualt", `did you mean "default"?`}, {"zzzzzzzzzz", "known are default, "}} {
		if _, err := Preset(tc[0]); !errors.Is(err, ErrUnknownPreset) || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%s: %v", tc[0], err)
		}
	}
}

func TestValidate(t *testing.T) {
	bad := 1.5
	for name, change := range map[string]func(*Profile){
		"weights sum to":         func(p *Profile) { p.Weights.Cost = 0.2 },
		"weight -0.1":            func(p *Profile) { p.Weights.Cost = -0.1 },
		"weight NaN":             func(p *Profile) { p.Weights.Cost = math.NaN() },
		"latency anchors":        func(p *Profile) { p.Latency.Good = p.Latency.Bad },
		"deadline":               func(p *Profile) { p.Latency.Deadline = 0 },
		"cost anchors":           func(p *Profile) { p.Cost.Good = 0 },
		"scenario weights sum":   func(p *Profile) { p.ScenarioWeights = map[string]float64{"a": 0.6, "b": 0.6} },
		"scenario weight 2 of a": func(p *Profile) { p.ScenarioWeights = map[string]float64{"a": 2} },
		"scenario x: utility 1.5": func(p *Profile) {
			p.Tasks["x"] = Task{Utility: map[string]map[string]float64{"t": {"a": bad}}}
		},
		"utility 1.5 of no answer": func(p *Profile) { p.Tasks["x"] = Task{Unanswered: &bad} },
		"anchor 1.5":               func(p *Profile) { p.Tasks["x"] = Task{Top: Number(bad)} },
		`unknown unit "x"`:         func(p *Profile) { p.Prices = &PriceBook{Prices: []Price{{Unit: "x"}}} },
		"price -1":                 func(p *Profile) { p.Prices = &PriceBook{Prices: []Price{{Unit: UnitDecision, Price: -1}}} },
	} {
		p := preset(t, "default")
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error is %v, want %s", err, name)
		}
	}
}

func TestAddTasksKeepsOwn(t *testing.T) {
	p := &Profile{Tasks: map[string]Task{"a": {LabelStrength: "own"}}}
	p.AddTasks(map[string]Task{"a": {LabelStrength: "data"}, "b": {LabelStrength: "data"}})
	if p.Tasks["a"].LabelStrength != "own" || p.Tasks["b"].LabelStrength != "data" {
		t.Errorf("tasks %+v", p.Tasks)
	}
	p = &Profile{}
	p.AddTasks(map[string]Task{"b": {}})
	if len(p.Tasks) != 1 {
		t.Errorf("tasks %+v", p.Tasks)
	}
}

// What parses is valid, and survives its JSON: the report carries it.
func FuzzParseProfile(f *testing.F) {
	f.Add(read(f, "profile.yaml"))
	f.Add([]byte("extends: waf\nweights: {accuracy: 1, latency: 0, cost: 0, auditability: 0}"))
	f.Add([]byte("tasks: {x: {utility: {t: {'a{b=c}': 0.5}}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile("f.yaml", data)
		if err != nil {
			var ps document.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("error is %T %v", err, err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("parsed, but not valid: %v", err)
		}
		var again Profile
		if err := json.Unmarshal([]byte(asJSON(t, p)), &again); err != nil || asJSON(t, &again) != asJSON(t, p) {
			t.Fatalf("does not survive its JSON: %v", err)
		}
	})
}

func FuzzParsePrices(f *testing.F) {
	f.Add(read(f, "prices.yaml"))
	f.Add([]byte("currency: EUR\nprices: []"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParsePrices("f.yaml", data)
		if err != nil {
			var ps document.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("error is %T %v", err, err)
			}
			return
		}
		if err := b.validate(); err != nil {
			t.Fatalf("parsed, but not valid: %v", err)
		}
	})
}
