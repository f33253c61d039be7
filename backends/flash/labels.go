package flash

import "github.com/clefbench/clefbench/decision"

// Labels lists the actions of the table and the name of every cell, as it stands in the
// reason of an answer.
func (t *Table) Labels() decision.Labels {
	l := decision.Labels{Artefacts: []decision.Artefact{t.info.Artefact}}
	for i := range t.c.actions {
		l.Actions = append(l.Actions, t.c.actions[i].label)
	}
	l.Rules = append(l.Rules, t.names...)
	if t.c.fallback != noDigit {
		l.Rules = append(l.Rules, RuleFallback)
	}
	return l
}
