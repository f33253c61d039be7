package rules

import (
	"reflect"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func TestLabels(t *testing.T) {
	e := compile(t, edge)
	if err := e.Disable("shed"); err != nil {
		t.Fatal(err)
	}
	want := decision.Labels{Actions: []string{"block", "reroute", "block", "origin"}, Rules: []string{"block-scrapers", "shed", "risky"},
		Artefacts: []decision.Artefact{e.Info().Artefact}}
	if got := e.Labels(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
