package rules

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// Labels lists the rules of the file and the actions that they and the fallbacks choose.
// Rules that are switched off are among them: they may be switched on again.
func (e *Engine) Labels() decision.Labels {
	l := decision.Labels{Artefacts: []decision.Artefact{e.Info().Artefact}}
	add := func(a *expr.Action) {
		if a != nil {
			l.Actions = append(l.Actions, a.Label)
		}
	}
	for i := range e.file.rules {
		r := &e.file.rules[i]
		l.Rules = append(l.Rules, r.id)
		add(r.action)
		add(r.fallback)
	}
	add(e.file.fallback)
	return l
}
