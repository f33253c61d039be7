package rules

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/predicate"
)

const (
	// maxOverlapRules bounds the rules whose pairs are looked at.
	maxOverlapRules = 3000
	maxOverlaps     = 1000
)

// Overlaps lists pairs of rules with different actions that can both match, each with an
// example; the earlier rule decides. First match wins on purpose in most files, so this is
// no part of [Check]. A pair is listed only with a request that both rules match, so none
// is a false alarm; not every pair is found. The error is a document.Problems.
func Overlaps(name string, data []byte, schema *decision.Schema) (document.Problems, error) {
	f, problems := read(name, data, schema, false)
	if problems.Errors() > 0 {
		return nil, problems
	}
	doc := &document.File{Name: name}
	if len(f.rules) > maxOverlapRules {
		doc.Warnf(f.rules[maxOverlapRules].pos, "split the file by scenario", "overlaps are looked for among the first %d rules", maxOverlapRules)
	}
	rules := f.rules[:min(len(f.rules), maxOverlapRules)]
	branches := make([][][]predicate.Predicate, len(rules))
	for i := range rules {
		when := formula(rules[i].conditions)
		branches[i] = predicate.Branches(&when)
		if rules[i].action == nil || rules[i].off {
			continue
		}
		for j := range i {
			earlier, later := &rules[j], &rules[i]
			if earlier.action == nil || earlier.off || earlier.action.Label == later.action.Label || len(doc.Problems) >= maxOverlaps {
				continue
			}
			if text, ok := f.both(earlier, later, branches[j], branches[i]); ok {
				doc.Warnf(later.pos, "the earlier one decides; make them exclude each other if that is not meant",
					"rules %q (line %d) and %q can both match, and answer %s and %s: %s", earlier.id, earlier.pos.Line, later.id,
					earlier.action.Label, later.action.Label, text)
			}
		}
	}
	return doc.Problems, nil
}

// both finds a request that two rules match, and writes it as JSON.
func (f *file) both(a, b *rule, as, bs [][]predicate.Predicate) (string, bool) {
	now := a.active.from
	if b.active.from.After(now) {
		now = b.active.from
	}
	if now.IsZero() {
		now = time.Unix(0, 0).UTC()
		for _, u := range []time.Time{a.active.until, b.active.until} {
			if !u.IsZero() && !now.Before(u) {
				now = u.Add(-time.Second)
			}
		}
	}
	for _, x := range as {
		for _, y := range bs {
			given, ok := predicate.Witness(append(x[:len(x):len(x)], y...))
			if !ok {
				continue
			}
			in := f.input(given, now)
			if a.matches(a.conditions, &in) == expr.True && b.matches(b.conditions, &in) == expr.True {
				return witnessText(given), true
			}
		}
	}
	return "", false
}

// input is a request with some attributes.
func (f *file) input(given map[string]decision.Value, now time.Time) input {
	names := f.scope.Names()
	in := input{row: expr.Row{Values: make([]decision.Value, len(names)), At: make([]int, len(names))}, now: now}
	for i, name := range names {
		in.row.Values[i], in.row.At[i] = given[name], i
	}
	return in
}

func witnessText(given map[string]decision.Value) string {
	m := make(map[string]any, len(given))
	for name, v := range given {
		m[name] = v.Any()
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return "for some request"
	}
	return "as for " + document.Short(strings.TrimSpace(b.String()))
}
