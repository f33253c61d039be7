package main

import (
	"context"
	"io/fs"
	"testing"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
)

// open compiles the committed strategies of a scenario against its attributes.
func open(t *testing.T, scenario string, schema *decision.Schema) map[string]decision.Backend {
	t.Helper()
	read := func(file string) []byte {
		data, err := fs.ReadFile(datasets.DemoFiles(), "backends/"+scenario+"/"+file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	incumbent, err := rules.Compile("incumbent.yaml", read("incumbent.yaml"), schema)
	must(err)
	hand, err := rules.Compile("rules.yaml", read("rules.yaml"), schema)
	must(err)
	fitted, err := model.Compile("model.json", read("model.json"))
	must(err)
	file, err := strategy.ModelOf("strategy.yaml", read("strategy.yaml"))
	must(err)
	if file != "model.json" {
		t.Errorf("the strategy asks for the model %q", file)
	}
	mixed, err := strategy.Compile("strategy.yaml", read("strategy.yaml"), schema, fitted)
	must(err)
	cfb, err := flash.CompileMatrix("matrix.json", read("matrix.json"))
	must(err)
	table, err := flash.Open("flash.cfb", cfb)
	must(err)
	for name, findings := range map[string]int{
		"incumbent.yaml": len(rules.Check("incumbent.yaml", read("incumbent.yaml"), schema)),
		"rules.yaml":     len(rules.Check("rules.yaml", read("rules.yaml"), schema)),
		"strategy.yaml":  len(strategy.Check("strategy.yaml", read("strategy.yaml"), schema)),
		"matrix.json":    len(flash.Check("matrix.json", read("matrix.json"), nil)),
	} {
		if findings > 0 {
			t.Errorf("%s/%s: the validator has %d findings", scenario, name, findings)
		}
	}
	return map[string]decision.Backend{"incumbent": incumbent, "rules": hand, "strategy": mixed, "flash": table, "model": fitted}
}

// quality is how a backend does on some rows.
type quality struct{ n, right, utility, unanswered float64 }

func (q *quality) add(s *scenario, ex *datasets.Example, d *decision.Decision) {
	q.n++
	if d.Status != decision.OK {
		q.unanswered++
		return
	}
	if d.Action == ex.Label.Action {
		q.right++
	}
	for i, c := range s.task.Candidates {
		if c == d.Action {
			q.utility += s.utilities(ex)[i]
		}
	}
}

// constants are the best constant answers of some rows.
type constants struct {
	n               float64
	right, utility  map[string]float64
	accuracy, value float64
}

func (c *constants) add(s *scenario, ex *datasets.Example) {
	c.n++
	c.right[ex.Label.Action]++
	for i, a := range s.task.Candidates {
		c.utility[a] += s.utilities(ex)[i]
		c.accuracy = max(c.accuracy, c.right[a])
	}
}

// The strategies earn their place: on rows that they were not made from, each is well
// above the best constant answer, in utility (which is scored) and in accuracy, and the
// four made from the training rows are above the incumbent. The margins are far below
// what was measured, so that only a fault makes the test fail.
func TestStrategiesBeatConstants(t *testing.T) {
	for _, name := range datasets.DemoScenarios() {
		rows, err := trainingRows(datasets.Demo(name))
		if err != nil {
			t.Fatal(err)
		}
		s, err := setUp(name, rows)
		if err != nil {
			t.Fatal(err)
		}
		backends := open(t, name, rows[0].Attrs.Schema)
		scores := map[string]*quality{}
		base := &constants{right: map[string]float64{}, utility: map[string]float64{}}
		for ex, err := range datasets.Demo(name) {
			if err != nil {
				t.Fatal(err)
			}
			if ex.Train {
				continue
			}
			base.add(s, ex)
			for lane, b := range backends {
				var out decision.Response
				req := request(ex)
				if err := b.Decide(context.Background(), req, &out); err != nil {
					t.Fatal(err)
				}
				out.Check(req)
				if scores[lane] == nil {
					scores[lane] = &quality{}
				}
				scores[lane].add(s, ex, &out.Decisions[0])
			}
		}
		report(t, s, base, scores)
	}
}

func report(t *testing.T, s *scenario, base *constants, scores map[string]*quality) {
	t.Helper()
	for _, u := range base.utility {
		base.value = max(base.value, u/base.n)
	}
	majority := base.accuracy / base.n
	t.Logf("%-13s %-10s accuracy %.4f utility %.4f (%.0f rows, ceiling %.4f)", s.name, "constant", majority, base.value, base.n, float64(s.task.Ceiling))
	for _, lane := range []string{"incumbent", "rules", "strategy", "flash", "model"} {
		q := scores[lane]
		accuracy, utility := q.right/q.n, q.utility/q.n
		t.Logf("%-13s %-10s accuracy %.4f utility %.4f unanswered %.0f", s.name, lane, accuracy, utility, q.unanswered)
		if q.unanswered > 0 {
			t.Errorf("%s %s: %.0f rows are not answered", s.name, lane, q.unanswered)
		}
		if lane == "incumbent" {
			continue
		}
		if accuracy < majority+0.015 || utility < base.value+0.03 {
			t.Errorf("%s %s: accuracy %.4f and utility %.4f, a constant gets %.4f and %.4f", s.name, lane, accuracy, utility, majority, base.value)
		}
		if old := scores["incumbent"]; utility < old.utility/old.n {
			t.Errorf("%s %s: utility %.4f is below the incumbent's %.4f", s.name, lane, utility, old.utility/old.n)
		}
	}
}
