package rules

import (
	"fmt"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
	"github.com/clefbench/clefbench/internal/predicate"
)

// emptyTexts warns of parameters that render as empty text for some request that the rule
// matches: an absent attribute keeps an action from being rendered, an empty one does not,
// and a cache key that is empty is one key for everybody.
func (r *reader) emptyTexts(x *rule, when *predicate.Formula) {
	if x.action == nil {
		return
	}
	for _, b := range x.action.Bare() {
		if slices.ContainsFunc(b.Attrs, func(a expr.Attr) bool { return filled(a, when) }) {
			continue
		}
		name := b.Attrs[0].Name
		r.doc.Warnf(b.Pos, fmt.Sprintf(`add the condition {field: %s, operator: ne, value: ""}`, name), "this renders as empty text when %s is empty", name)
	}
}

// filled reports whether an attribute renders as some text whenever the rule matches. A
// path is never empty: HTTP has none.
func filled(a expr.Attr, when *predicate.Formula) bool {
	return a.Name == "path" || a.Type != decision.String && a.Type != decision.Null || !predicate.MayBeEmpty(when, a.Name)
}
