package main

import (
	"bytes"
	"strings"
	"testing"
)

// All engines agree with the reference, and some inputs reach a rule and some none.
func TestGate(t *testing.T) {
	for _, n := range []int{2, 10, 100} {
		s := newRuleset(n)
		all, err := contenders(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if err := gate(s, c); err != nil {
				t.Error(err)
			}
		}
		matched := 0
		for _, w := range s.want {
			if w >= 0 {
				matched++
			}
		}
		if matched < 30 || matched > nInputs-30 {
			t.Errorf("%d rules: %d of %d inputs match", n, matched, nInputs)
		}
	}
}

// The gate can fail: one wrong expectation is found in every engine.
func TestGateFindsAWrongAnswer(t *testing.T) {
	s := newRuleset(10)
	all, err := contenders(s)
	if err != nil {
		t.Fatal(err)
	}
	s.want[17] = 9 - s.want[17]
	for _, c := range all {
		if err := gate(s, c); err == nil || !strings.Contains(err.Error(), "input 17") {
			t.Errorf("%s: %v", c.engine, err)
		}
	}
}

func TestFlashGate(t *testing.T) {
	tab, err := newTable(true, 500, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.gate(); err != nil {
		t.Error(err)
	}
	tab.want[3] += "x"
	if tab.gate() == nil {
		t.Error("a wrong expectation passes")
	}
}

func TestReport(t *testing.T) {
	var b bytes.Buffer
	if err := run(&b, []int{2, 10}, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{engineOPA, flashNew, "cel-go", "| 2 rules | 10 rules |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestGoals(t *testing.T) {
	rs := results{
		{name: engineRules, rules: 1000, ns: []float64{70, 50}}, {name: engineRules, rules: 10, ns: []float64{20, 25}},
		{name: engineCEL, rules: 1000, ns: []float64{70_000, 50_000}},
	}
	var met []bool
	for _, g := range rs.goals() {
		met = append(met, g.met())
	}
	if len(met) != 3 || !met[0] || !met[1] || met[2] {
		t.Errorf("%v of %+v", met, rs.goals())
	}
}
