package flash

import (
	"reflect"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func TestLabels(t *testing.T) {
	cfb, err := CompileMatrix("m.json", []byte(dims(`{"name": "x", "values": ["a", "b"]}, {"name": "y", "values": ["c", "d"]}`, "[[1, 1], [1, 1]]")))
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open("m", cfb)
	if err != nil {
		t.Fatal(err)
	}
	want := decision.Labels{Actions: []string{"a"}, Rules: []string{"a/c", "a/d", "b/c", "b/d"}, Artefacts: []decision.Artefact{table.Info().Artefact}}
	if got := table.Labels(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if edge := openEdge(t); edge.c.fallback != noDigit {
		if rules := edge.Labels().Rules; rules[len(rules)-1] != RuleFallback {
			t.Errorf("a table with a fallback ends with %q", rules[len(rules)-1])
		}
	}
}
