package expr

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
)

// The attribute environment is a package of its own, so that the table and model
// backends, which have no expressions, do not link CEL. Here it goes by its old names.
type (
	// Scope is [attribute.Scope].
	Scope = attribute.Scope
	// Attr is [attribute.Attr].
	Attr = attribute.Attr
	// UnknownError is [attribute.UnknownError].
	UnknownError = attribute.UnknownError
)

// NewScope is [attribute.NewScope].
func NewScope(schema *decision.Schema) *Scope { return attribute.NewScope(schema) }

// Suggest is [attribute.Suggest].
func Suggest(s string, known []string) string { return attribute.Suggest(s, known) }

// HintOf is [attribute.HintOf].
func HintOf(err error) string { return attribute.HintOf(err) }
