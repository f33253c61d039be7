package strategy

import (
	"reflect"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// labelled is a model that knows its actions.
type labelled struct{ decision.Backend }

func (labelled) Labels() decision.Labels { return decision.Labels{Actions: []string{"wait"}} }

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		model decision.Backend
		more  []string
	}{{&fakeModel{}, nil}, {labelled{&fakeModel{}}, []string{"wait"}}} {
		e := compile(t, guarded, c.model)
		want := decision.Labels{Actions: append([]string{"block", "manual_review", "approve"}, c.more...),
			Rules: []string{"china", "unsure", e.modelName}, Artefacts: []decision.Artefact{e.Info().Artefact}}
		if got := e.Labels(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
}
