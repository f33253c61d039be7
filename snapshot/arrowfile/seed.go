package arrowfile

import (
	"maps"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// maxSeed leaves room in a dictionary for labels that come later: a column that fills its
// dictionary gives it up, and is larger from then on.
const maxSeed = maxLabels / 4

// SeedOf returns the labels that a recording of backends will hold, for [Options.Seed]:
// names, scenarios and the values of closed sets, and, of backends that implement
// [decision.Labeller], actions, rules and versions. A list of more than 1,024 labels is
// left out: its column learns the labels that do come. extra are further lists, by column
// name, which are kept at any length.
func SeedOf(extra map[string][]string, backends ...decision.Backend) map[string][]string {
	sets := seedSets()
	for _, b := range backends {
		info := b.Info()
		sets.add("backend", info.Name)
		sets.add("scenario", info.Scenarios...)
		sets.artefact(&info.Artefact)
		if known, ok := b.(decision.Labeller); ok {
			l := known.Labels()
			sets.add("action", l.Actions...)
			sets.add("rule_id", l.Rules...)
			for i := range l.Artefacts {
				sets.artefact(&l.Artefacts[i])
			}
		}
	}
	out := map[string][]string{}
	for column, set := range sets {
		if len(set) <= maxSeed {
			out[column] = slices.Sorted(maps.Keys(set))
		}
	}
	for column, list := range extra {
		out[column] = append(out[column], list...)
	}
	return out
}

// labelSets holds the labels of each column.
type labelSets map[string]map[string]bool

// seedSets holds the labels that every recording may have.
func seedSets() labelSets {
	s := labelSets{}
	for _, a := range []snapshot.Applied{snapshot.AppliedYes, snapshot.AppliedShadow, snapshot.AppliedRejected,
		snapshot.AppliedExpired, snapshot.AppliedSkipped, snapshot.AppliedUnknown} {
		s.add("applied", string(a))
	}
	for _, k := range []snapshot.PropensityKind{snapshot.PropensityExact, snapshot.PropensityMonteCarlo,
		snapshot.PropensityDeterministic, snapshot.PropensityUnknown} {
		s.add("propensity_kind", string(k))
	}
	for _, q := range []decision.QuestionType{decision.QuestionAction, decision.QuestionNoul, decision.QuestionChoice, decision.QuestionScore} {
		s.add("question_type", string(q))
	}
	return s
}

func (s labelSets) add(column string, labels ...string) {
	for _, l := range labels {
		if l == "" {
			continue
		}
		if s[column] == nil {
			s[column] = map[string]bool{}
		}
		s[column][l] = true
	}
}

func (s labelSets) artefact(a *decision.Artefact) {
	s.add("engine_version", a.EngineVersion)
	s.add("strategy_version", a.StrategyVersion)
	s.add("provider", a.Provider)
	s.add("dialect", a.Dialect)
	s.add("model_requested", a.ModelRequested)
	s.add("model_resolved", a.ModelResolved)
}
