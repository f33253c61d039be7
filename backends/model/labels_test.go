package model

import (
	"slices"
	"testing"
)

func TestLabels(t *testing.T) {
	m := fraud(t)
	l := m.Labels()
	if !slices.Equal(l.Actions, []string{"approve", "manual_review", "block"}) || !slices.Equal(l.Rules, []string{m.rule}) || len(l.Artefacts) != 1 {
		t.Errorf("%+v", l)
	}
}
