package snapshot

import (
	"math"
	"reflect"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func TestOutcomeValidate(t *testing.T) {
	cases := []struct {
		name   string
		change func(o *Outcome)
		want   string
	}{
		{"full", func(*Outcome) {}, ""},
		{"no id", func(o *Outcome) { o.ID = decision.ID{} }, "id and request_id"},
		{"no request id", func(o *Outcome) { o.RequestID = decision.ID{} }, "id and request_id"},
		{"no backend", func(o *Outcome) { o.Backend = "" }, "backend and scenario"},
		{"no scenario", func(o *Outcome) { o.Scenario = "" }, "backend and scenario"},
		{"no segment", func(o *Outcome) { o.Ref.Segment = "" }, "snapshot"},
		{"negative row", func(o *Outcome) { o.Ref.Row = -1 }, "snapshot"},
		{"first row", func(o *Outcome) { o.Ref.Row = 0 }, ""},
		{"no status", func(o *Outcome) { o.Status = decision.StatusNone }, "status"},
		{"unknown status", func(o *Outcome) { o.Status = decision.NotReplayable + 1 }, "status"},
		{"not replayable", func(o *Outcome) { o.Status, o.Action = decision.NotReplayable, "" }, ""},
		{"keep_prob 0", func(o *Outcome) { o.KeepProb = 0 }, "keep_prob"},
		{"keep_prob NaN", func(o *Outcome) { o.KeepProb = math.NaN() }, "keep_prob"},
		{"keep_prob above 1", func(o *Outcome) { o.KeepProb = 2 }, "keep_prob"},
	}
	for _, c := range cases {
		o := new(Outcome)
		fill(t, reflect.ValueOf(o).Elem(), "outcome")
		c.change(o)
		check(t, c.name, o.Validate(), c.want)
	}
}

func TestLabelValidate(t *testing.T) {
	id := decision.ID{1}
	cases := []struct {
		name  string
		label Label
		want  string
	}{
		{"action", Label{ID: id, Action: "allow"}, ""},
		{"reward 0", Label{ID: id, Reward: decision.Some(0.0)}, ""},
		{"reward 1", Label{ID: id, Reward: decision.Some(1.0)}, ""},
		{"utilities", Label{ID: id, Utilities: []ActionUtility{{"allow", 0}, {"block", 1}}}, ""},
		{"no id", Label{Action: "allow"}, "without id"},
		{"no truth", Label{ID: id, Source: "chargeback"}, "no truth"},
		{"empty utilities", Label{ID: id, Utilities: []ActionUtility{}}, "no truth"},
		{"utility above 1", Label{ID: id, Utilities: []ActionUtility{{"allow", 1}, {"block", 1.01}}}, "utility 1.01 of"},
		{"utility negative", Label{ID: id, Utilities: []ActionUtility{{"allow", -1}}}, "utility"},
		{"utility NaN", Label{ID: id, Utilities: []ActionUtility{{"allow", math.NaN()}}}, "utility"},
		{"utility of nothing", Label{ID: id, Utilities: []ActionUtility{{"", 1}}}, "utility"},
		{"reward above 1", Label{ID: id, Reward: decision.Some(1.5)}, "reward"},
		{"reward NaN beside an action", Label{ID: id, Action: "allow", Reward: decision.Some(math.NaN())}, "reward"},
	}
	for _, c := range cases {
		check(t, c.name, c.label.Validate(), c.want)
	}
}
