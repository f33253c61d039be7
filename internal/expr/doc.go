// Package expr is the language part that the rules and the strategy engine share: which
// attributes a file may name, CEL conditions, `{{ }}` templates and actions, each
// checked at load with positions in the file.
//
// Steps:
//
//  1. [NewScope] over the attributes of the data set, then [Scope.Declare] for the
//     file's `attributes:` block. [Scope.Use] resolves a name to a slot.
//  2. [NewCompiler], then [Compiler.Bool] for each condition and [ReadAction] for each
//     action. What is wrong goes to the file's problems with line and column.
//  3. Per request, bind [Scope.Names] to the request's schema, fill a [Row], and ask
//     [Program.Eval] and [Action.Params].
//
// CEL (cel.dev/cel-go) parses and type-checks. A condition from the common subset is
// then lowered to closures over the request's values, which is 10 to 100 times faster
// than interpreting it; anything else runs as a cel-go program. Both give the same
// answer, with CEL's three-valued logic: a missing attribute is an error, which || and
// && absorb when the other side decides. A differential fuzz test holds the two
// together.
//
// Attributes are flat names with dots (headers.user-agent, metrics.error_rate). CEL
// would read headers as a map, so references are rewritten, before the type check, into
// typed reads of a slot; that is what lets an open namespace have a type for each name,
// did-you-mean for a wrong one, and no map at run time.
//
// The package evaluates one condition at a time. It knows neither rules files nor
// which rule wins, and never reads a clock, the environment or a file.
package expr
