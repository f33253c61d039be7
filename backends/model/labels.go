package model

import (
	"slices"

	"github.com/clefbench/clefbench/decision"
)

// Labels lists the actions that the model chooses from, and the name that it gives as the
// rule.
func (m *Model) Labels() decision.Labels {
	return decision.Labels{Actions: slices.Clone(m.actions), Rules: []string{m.rule}, Artefacts: []decision.Artefact{m.info.Artefact}}
}
