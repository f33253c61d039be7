// Package attribute is the attribute environment of one strategy, rules, matrix or model
// file: which names it may read (the built-in roots, its own declarations, the attributes
// of the data set at hand), of which type, and what was probably meant by a name that is
// none of them.
//
// Steps: [NewScope] over the data set's schema, [Scope.Declare] the file's own names,
// [Scope.Use] each name that is read; [Scope.Names] then lists them by slot, for a
// decision.Binder.
//
// It evaluates nothing and links no expression language: conditions are package expr's.
package attribute
