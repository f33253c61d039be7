// Package rules is the Clef rules engine: a YAML file of rules, each a list of
// conditions on attributes that must all hold, and the first rule that matches decides.
// The format is described in docs/formats/rules.md.
//
// Steps: [Compile] a file against the attributes of the data set at hand, then
// [Engine.Decide] for each request; [Engine.Explain] says why. [Check] lists everything
// that is wrong or doubtful in a file.
//
// A rule whose condition cannot be evaluated (an absent attribute, NaN, a value of
// another type) is not matched; it is counted in Reason.Skipped and named by Explain.
// When nothing matches and the file has no fallback the answer is abstain: there is no
// default action.
//
// Decide takes no lock, reads no clock and allocates nothing, unless the deciding rule
// renders a template. The package does not evaluate expressions: conditions in CEL are
// the strategy engine's.
package rules
