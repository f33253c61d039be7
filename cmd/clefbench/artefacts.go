package main

import (
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/internal/document"
)

// artefacts resolves recorded rule ids in the strategy files that a data set keeps by
// content hash.
type artefacts struct {
	dataset *datasets.Dataset
	rules   map[[32]byte]map[string]bool
}

// Rule implements replay.Artefacts.
func (a *artefacts) Rule(digest [32]byte, rule string) (exists, found bool) {
	ids, known := a.rules[digest]
	if !known {
		if data, err := a.dataset.Artefact(digest); err == nil {
			ids = ruleIDs(data)
		}
		a.rules[digest] = ids
	}
	return ids[rule], ids != nil
}

// ruleIDs lists the rules of a rules or strategy file; an artefact of another kind is
// there, but names no rule.
func ruleIDs(data []byte) map[string]bool {
	ids := map[string]bool{}
	_, root, err := document.Parse("artefact", data)
	if err != nil || !root.IsMap() {
		return ids
	}
	list := root.Map().Get("rules")
	if list == nil || !list.IsList() {
		return ids
	}
	for _, rule := range list.List() {
		if !rule.IsMap() {
			continue
		}
		if id := rule.Map().Get("id"); id != nil {
			if text, ok := id.Text(); ok {
				ids[text] = true
			}
		}
	}
	return ids
}
