package rules

import (
	"time"

	"github.com/clefbench/clefbench/internal/document"
)

// period is when a rule is in force: from inclusive, until exclusive, either of them zero
// for no bound.
type period struct{ from, until time.Time }

func (p *period) bounded() bool { return !p.from.IsZero() || !p.until.IsZero() }

// holds tells for the request's clock whether the rule is in force.
func (p *period) holds(now time.Time) bool {
	return !now.Before(p.from) && (p.until.IsZero() || now.Before(p.until))
}

func (r *reader) period(n *document.Node) period {
	m := n.Map("from", "until")
	var p period
	if f := m.Get("from"); f != nil {
		p.from = r.instant(f)
	}
	u := m.Get("until")
	if u != nil {
		p.until = r.instant(u)
	}
	switch {
	case n.IsMap() && m.Get("from") == nil && u == nil:
		n.Errorf("write from, until or both", "%s has no bound", n.Path())
	case u != nil && !p.until.IsZero() && !p.from.Before(p.until):
		u.Errorf("until is the first moment at which the rule no longer applies", "%s is never: it ends before it begins", n.Path())
	}
	return p
}

// instant reads a time with its zone. A date alone is refused: midnight where?
func (r *reader) instant(n *document.Node) time.Time {
	text, ok := n.Text()
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1678 || t.Year() > 2261 {
		n.Errorf(`write a time with its zone, as in "2026-12-01T00:00:00Z"`, "%q is no time", document.Short(text))
		return time.Time{}
	}
	return t.UTC()
}
