package strategy

import "github.com/clefbench/clefbench/decision"

// Labels lists the rules of the strategy and the actions that they, the fallback and the
// model choose, as far as the model knows its own.
func (e *Engine) Labels() decision.Labels {
	l := decision.Labels{Artefacts: []decision.Artefact{e.info.Artefact}}
	for i := range e.file.rules {
		l.Rules = append(l.Rules, e.file.rules[i].id)
		l.Actions = append(l.Actions, e.file.rules[i].action.Label)
	}
	if a := e.file.fallback.action; a != nil {
		l.Actions = append(l.Actions, a.Label)
	}
	if e.asksModel() {
		l.Rules = append(l.Rules, e.modelName)
		if m, ok := e.model.(decision.Labeller); ok {
			l.Actions = append(l.Actions, m.Labels().Actions...)
		}
	}
	return l
}
